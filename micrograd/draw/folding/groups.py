"""Which Values belong together, as a tree of groups: what repeats is one group, so a large graph is a small picture.

In this order: the runs of functions, modules and blocks (runs.py); neurons in layers in networks; what runs share, the
parameters; samples (samples.py); sums, dot products and what is done to many Values side by side (patterns.py); runs of
the same part of the program, in stacks. What is still too much is put into parts.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from micrograd.draw.folding.boxes import Box, Contents, alike, way, with_outer
from micrograd.draw.folding.parameters import place_in_layer, places_of_parameters
from micrograd.draw.folding.patterns import Patterns
from micrograd.draw.folding.runs import Run, runs_of
from micrograd.draw.folding.samples import put_into_samples
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from micrograd.draw.folding.boxes import Item
    from micrograd.draw.folding.parameters import Place

NONE: Mapping[Value, Place] = MappingProxyType({})
PART = 150  # items without a box are put into parts of this size, where there are more than LARGEST of them
LARGEST = 300  # items side by side: Graphviz lays these out in a second or two
LARGEST_GRID = 2_000  # the same, where nothing connects them: a browser draws so many at once
FEW_LEAVES = 8  # leaves of no network; more of them, used in one place, are put into a box


class Grouping:
    """The groups of a graph, and the group of each of its Values.

    Args:
        nodes: the Values, each after its operands.
        known: the places of parameters that are known beside those of networks that ran.
        inputs: the places of inputs, in boxes by name.

    Attributes:
        groups: the boxes, each after the one around it.
        of: for each Value the position of its group, or None.
        places: what is known of parameters.

    Example:
        >>> from micrograd import nn, topological_order
        >>> grouping = Grouping(topological_order(nn.MLP(2, [2, 1])([1.0, 2.0])))
        >>> [group.name for group in grouping.groups]
        ['Layer 1', 'Neuron 1', 'Neuron 2', 'Layer 2']
    """

    def __init__(
        self, nodes: list[Value], known: Mapping[Value, Place] = NONE, inputs: Mapping[Value, Place] = NONE
    ) -> None:
        self.nodes = nodes
        self._box: dict[Value, Box | None] = dict.fromkeys(nodes)
        self._users: dict[Value, list[Value]] = {node: [] for node in nodes}
        for node in nodes:
            for operand in node._operands():
                self._users[operand].append(node)
        taken = runs_of(nodes)
        networks = _networks(_layers(taken))
        self.places: dict[Value, Place] = {**known, **_places(taken, networks)}
        self._put_into_runs(taken, networks)
        self._put_leaves(known, inputs)
        put_into_samples(self.nodes, self._box)
        Patterns(self.nodes, self._box, self._users, self.places).add()
        self._stack()
        self._part()
        self._number()

    def _put_into_runs(self, taken: dict[Value, Run], networks: list[list[list[Run]]]) -> None:
        boxes: dict[Run | None, Box | None] = {None: None}

        def box_of(run: Run | None) -> Box | None:
            if run is not None and run not in boxes:
                boxes[run] = Box(run.name, run.kind, box_of(run.parent), run.start, run.key)
            return boxes[run]

        several = [network for network in networks if len(network) > 1]
        for network in networks:
            around = box_of(network[0][0].parent)
            start = min(run.start for layer in network for run in layer)
            if len(network) > 1 and len(several) > 1:
                key = ("network", *(id(run.of) for run in network[0]))
                around = Box(f"Network {several.index(network) + 1}", "network", around, start, key)
            for place, layer in enumerate(network, 1):
                alone = len(network) == len(layer) == 1
                keys = tuple(id(run.of) for run in layer)
                name, kind = ("Neuron", "neuron") if alone else (f"Layer {place}", "layer")
                box = Box(name, kind, around, layer[0].start, (kind, keys))
                for index, run in enumerate(layer):
                    name = f"Neuron {place_in_layer(run.of, index) + 1}"
                    boxes[run] = box if len(layer) == 1 else Box(name, "neuron", box, run.start)
        self._box.update({node: box_of(run) for node, run in taken.items()})

    def _put_leaves(self, known: Mapping[Value, Place], inputs: Mapping[Value, Place]) -> None:
        """Put constants and leaves where they are used, inputs into boxes, and what boxes share into another."""
        shared: list[Value] = []
        for node in reversed(self.nodes):  # each after its users
            if not node.is_leaf or not self._users[node]:
                continue
            used_in = {self._box[user] for user in self._users[node]}
            place = self.places.get(node)
            if len(used_in) == 1 and (place is None or (len(place.boxes) != 1 and node not in known)):
                self._box[node] = used_in.pop()
            elif place is not None and place.boxes and node.requires_grad:
                shared.append(node)
            else:
                box = _common([way(user, self._box) for user in self._users[node]])
                while box is not None and box.kind in ("layer", "network"):
                    box = box.parent  # what goes in stands before it
                self._box[node] = box
        self._put_inputs(inputs)
        loose: dict[Box | None, list[Value]] = {}
        for node in self.nodes:
            if node.is_leaf and node.requires_grad and not node.label and not self._is_placed(node):
                loose.setdefault(self._box[node], []).append(node)
        for around, leaves in loose.items():
            if len(leaves) > FEW_LEAVES:
                self._box.update(dict.fromkeys(leaves, Box("Leaves", "parameters", around)))
        self._put_parameters(shared[::-1])

    def _is_placed(self, leaf: Value) -> bool:
        box = self._box[leaf]
        return leaf in self.places or (box is not None and box.kind == "inputs")

    def _put_inputs(self, named: Mapping[Value, Place]) -> None:
        """Put inputs into boxes by name; and those without one that are many, and go into the same layer."""
        boxes: dict[Any, Box] = {}
        for node, place in named.items():
            around, name = self._box[node], place.boxes[0]
            while around is not None and around.kind == "run":
                around = around.parent  # what a kernel or a call is given stands before it
            box = self._box[node] = boxes.setdefault((around, name), Box(name, "inputs", around))
            box.make_room(place.indices)
        self.places |= named
        unnamed: dict[Any, list[Value]] = {}
        for node in self.nodes:
            if node.is_leaf and node not in self.places:
                into = frozenset(self._box[user] for user in self._users[node])
                if len(into) > 1:
                    unnamed.setdefault((self._box[node], into), []).append(node)
        for (around, _), leaves in unnamed.items():
            if len(leaves) > FEW_LEAVES:
                self._box.update(dict.fromkeys(leaves, Box("Inputs", "inputs", around)))

    def _put_parameters(self, parameters: list[Value]) -> None:
        if not parameters:
            return
        whole = Box("Parameters", "parameters", None)
        boxes: dict[tuple[str, ...], Box] = {(): whole}
        order = list(self.places)
        rank = {parameter: index for index, parameter in enumerate(order)}
        for parameter in sorted(parameters, key=rank.__getitem__):
            path = self.places[parameter].boxes
            for depth in range(1, len(path) + 1):
                if path[:depth] not in boxes:
                    boxes[path[:depth]] = Box(path[depth - 1], "parameters", boxes[path[: depth - 1]], rank[parameter])
            box = self._box[parameter] = boxes[path]
            if len(path) == 1:
                box.make_room(self.places[parameter].indices)

    def _stack(self) -> None:
        """Put boxes of the same part of the program into a stack, where nothing between them needs them apart."""
        contents = Contents(self.nodes, self._box)
        for around, items in contents.items.items():
            for boxes in alike(items):
                if len(boxes) > 1 and len(boxes) < len(items) and not contents.comes_back(set(boxes)):
                    boxes.sort(key=lambda box: box.start)
                    first = boxes[0]
                    name = first.name if first.kind == "question" else first.name.rstrip("0123456789 ")
                    stack = Box(name, "stack", around, boxes[0].start)
                    for number, box in enumerate(boxes, 1):
                        box.parent, box.name = stack, f"{name} {number}"

    def _part(self) -> None:
        """Where too many items are side by side, gather them into parts, in the order of computation."""
        contents = Contents(self.nodes, self._box)
        for around, items in list(contents.items.items()):
            if around is not None and around.kind == "stack":
                continue  # it is looked through one by one
            is_tangle = len(items) > LARGEST and any(
                contents.feeds.get(item, {}).keys() & items.keys() for item in items
            )
            if not is_tangle and len(items) <= LARGEST_GRID:
                continue
            self._put_into_parts(list(items), around)

    def _put_into_parts(self, items: Sequence[Item], around: Box | None) -> None:
        """Put items into parts of the box around them; where these are too many, into parts of parts."""
        parts = []
        for number, start in enumerate(range(0, len(items), PART), 1):
            parts.append(part := Box(f"Part {number}", "part", around, start))
            for item in items[start : start + PART]:
                if isinstance(item, Box):
                    item.parent = part
                else:
                    self._box[item] = part
        if len(parts) > PART:
            self._put_into_parts(parts, around)

    def in_order(self) -> list[Value]:
        """The Values, each after its operands, and those of a box one after the other wherever that can be."""
        return Contents(self.nodes, self._box).in_order() or self.nodes

    def _number(self) -> None:
        """Number the boxes that have something in them, each after the one around it."""
        number: dict[Box | None, int | None] = {None: None}
        self.groups: list[Box] = []
        boxes = [box for box in dict.fromkeys(self._box[node] for node in self.in_order()) if box is not None]
        ways = {box: box.around()[::-1] for box in boxes}
        first: dict[Box, float] = {}
        for index, box in enumerate(boxes):
            for outer in ways[box]:
                is_numbered = outer.parent is not None and outer.parent.kind in (
                    "stack",
                    "layer",
                    "parameters",
                    "inputs",
                )
                first.setdefault(outer, outer.start if is_numbered else index)
        for box in sorted(boxes, key=lambda box: [first[outer] for outer in ways[box]]):
            for outer in ways[box]:
                if outer not in number:
                    number[outer] = len(self.groups)
                    self.groups.append(outer)
        self.of = {node: number[self._box[node]] for node in self.nodes}
        self.parents = [number[box.parent] for box in self.groups]


def places_of(nodes: list[Value]) -> dict[Value, Place]:
    """The places of the parameters in a graph.

    Args:
        nodes: the Values, each after its operands.

    Example:
        >>> from micrograd import nn, topological_order
        >>> [place.name for place in places_of(topological_order(nn.Layer(1, 2)([3.0])[1])).values()]
        ['neurons[1].w[0]', 'neurons[1].b']
    """
    taken = runs_of(nodes)
    return _places(taken, _networks(_layers(taken)))


def _places(taken: dict[Value, Run], networks: list[list[list[Run]]]) -> dict[Value, Place]:
    """The places of the parameters of what ran."""
    runs = {run: None for taker in taken.values() for run in with_outer(taker)}
    return places_of_parameters(runs, [[[run.of for run in layer] for layer in network] for network in networks])


def _common(ways: list[list[Box]]) -> Box | None:
    """The innermost box around all of them."""
    first = ways[0]
    depth = len(first)
    for other in ways[1:]:
        depth = min(depth, len(other))
        while depth and first[depth - 1] is not other[depth - 1]:
            depth -= 1
    return first[depth - 1] if depth else None


def _layers(taken: dict[Value, Run]) -> list[list[Run]]:
    """The runs of neurons by the list of inputs that they were called with."""
    layers: dict[int, list[Run]] = {}
    for run in sorted({run for run in taken.values() if run.given is not None}, key=lambda run: run.start):
        layers.setdefault(id(run.given), []).append(run)
    return list(layers.values())


def _networks(layers: list[list[Run]]) -> list[list[list[Run]]]:
    """The layers, those that feed each other together."""
    network_of: dict[Value, list[list[Run]]] = {}
    networks: list[list[list[Run]]] = []
    for layer in layers:  # in the order of computation, so what feeds a layer comes before it
        feeding = [network_of[x] for x in layer[0].given if isinstance(x, Value) and x in network_of]
        if feeding and feeding[0][0][0].parent is layer[0].parent:
            network = feeding[0]
        else:
            networks.append(network := [])
        network.append(layer)
        network_of.update((output, network) for run in layer for output in run.outputs)
    return networks
