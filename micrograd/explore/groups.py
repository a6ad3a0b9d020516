"""Which Values belong together: those of a neuron, a layer or a network; others make parts of a large graph.

What a Neuron returns remembers the neuron and its inputs, so the neuron's group is what lies between. It
holds only what nothing outside uses: a weight that two calls share belongs to neither. Neurons that were
called with one list of inputs are a layer, and layers that feed each other a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


PART = 150  # Values without a group are put into parts of this size, where there are more than LARGEST of them
LARGEST = 600  # items side by side: Graphviz lays these out in a second or two


@dataclass
class Group:
    """A box around Values and other groups; parent is the position of the group around it, if any."""

    name: str
    parent: int | None = None


@dataclass
class _Call:
    """One call of a neuron: the nodes between its inputs and its output."""

    number: int
    inputs: Sequence[object]
    output: Value
    members: list[Value]


class Grouping:
    """The groups of a graph, and the group of each of its Values.

    Args:
        nodes: the Values, each after its operands.

    Attributes:
        groups: the groups, each after the one around it.
        of: for each Value the position of its group, or None.
        hints: names for parameters that have no label: ``w1``, ``b``.

    Example:
        >>> from micrograd import nn, topological_order
        >>> grouping = Grouping(topological_order(nn.MLP(2, [2, 1])([1.0, 2.0])))
        >>> [group.name for group in grouping.groups]
        ['Layer 1', 'Neuron 1', 'Neuron 2', 'Layer 2']
    """

    def __init__(self, nodes: list[Value]) -> None:
        self.nodes = nodes
        self.groups: list[Group] = []
        self.of: dict[Value, int | None] = dict.fromkeys(nodes)
        self.hints: dict[Value, str] = {}
        self._users: dict[Value, list[Value]] = {node: [] for node in nodes}
        for node in nodes:
            for operand in node._operands():
                self._users[operand].append(node)
        self._add_networks(_layers(self._calls()))
        self._add_parts()

    def _calls(self) -> list[_Call]:
        calls, taken = [], set[Value]()
        position = {node: index for index, node in enumerate(self.nodes)}
        for output in self.nodes:
            if (call := getattr(output, "_call", None)) is None:
                continue
            neuron, inputs, number = call
            members = [node for node in self._between(output, inputs, position) if node not in taken]
            taken.update(members)
            calls.append(_Call(number, inputs, output, members))
            self.hints |= {weight: f"w{index}" for index, weight in enumerate(neuron.w, 1)} | {neuron.b: "b"}
        return calls

    def _between(self, output: Value, inputs: Iterable[object], position: dict[Value, int]) -> list[Value]:
        """The nodes between inputs and output that nothing else uses."""
        stops = {value for value in inputs if isinstance(value, Value)}
        found, stack = {output}, [output]
        while stack:
            for operand in stack.pop()._operands():
                if operand not in found and operand not in stops:
                    found.add(operand)
                    stack.append(operand)
        inside = {output}
        for node in sorted(found - {output}, key=position.__getitem__, reverse=True):
            if all(user in inside for user in self._users[node]):
                inside.add(node)
        return list(inside)

    def _add_networks(self, layers: list[list[_Call]]) -> None:
        networks = _networks(layers)
        for number, network in enumerate(networks, 1):
            around = self._add(f"Network {number}", None) if len(networks) > 1 and len(network) > 1 else None
            alone = len(network) == 1 and len(network[0]) == 1
            for place, layer in enumerate(network, 1):
                box = self._add("Neuron" if alone else f"Layer {place}", around)
                for index, call in enumerate(layer, 1):
                    own = box if len(layer) == 1 else self._add(f"Neuron {index}", box)
                    self.of.update(dict.fromkeys(call.members, own))

    def _add_parts(self) -> None:
        """Where too many items are side by side, gather them into parts, in the order of computation."""
        order: dict[tuple[str, int], None] = {}  # the outermost items, by their last Values
        for index, node in enumerate(self.nodes):
            group = self.of[node]
            while group is not None and (parent := self.groups[group].parent) is not None:
                group = parent
            item = ("node", index) if group is None else ("group", group)
            order.pop(item, None)
            order[item] = None
        if len(order) <= LARGEST:
            return
        items = list(order)
        for number, start in enumerate(range(0, len(items), PART), 1):
            part = self._add(f"Part {number}", None)
            for kind, index in items[start : start + PART]:
                if kind == "node":
                    self.of[self.nodes[index]] = part
                else:
                    self.groups[index].parent = part

    def _add(self, name: str, parent: int | None) -> int:
        self.groups.append(Group(name, parent))
        return len(self.groups) - 1


def _layers(calls: list[_Call]) -> list[list[_Call]]:
    """The calls by the list of inputs that they were made with."""
    layers: dict[int, list[_Call]] = {}
    for call in calls:
        layers.setdefault(id(call.inputs), []).append(call)
    return [sorted(layer, key=lambda call: call.number) for layer in layers.values()]


def _networks(layers: list[list[_Call]]) -> list[list[list[_Call]]]:
    """The layers, those that feed each other together."""
    network_of: dict[Value, list[list[_Call]]] = {}
    networks: list[list[list[_Call]]] = []
    for layer in layers:  # in the order of computation, so what feeds a layer comes before it
        feeding = [network_of[x] for x in layer[0].inputs if isinstance(x, Value) and x in network_of]
        if feeding:
            network = feeding[0]
        else:
            networks.append(network := [])
        network.append(layer)
        network_of.update((call.output, network) for call in layer)
    return networks
