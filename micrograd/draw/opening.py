"""Which groups of a folded graph stand open in a picture: as many as leave the whole small enough to read."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from micrograd.draw.folding.boxes import Box, Contents, way
from micrograd.draw.folding.groups import Grouping
from micrograd.draw.folding.order import in_program_order, in_their_operations

if TYPE_CHECKING:
    from micrograd.draw.folding.boxes import Item
    from micrograd.engine.value import Value

# Points along the arrows, and across them, by an estimate that is a quarter too high (measured: 14 to 42 %): pictures
# are no wider than a laptop, of 1,280 pixels.
LONGEST, WIDEST = 1_280, 900
MOST_ITEMS = 120  # in sight
ALONG, ACROSS = 34, 14  # points between items
TITLE, MARGIN = 22, 10  # points of an open box
CARD, CONSTANT, CLOSED, STRIP, MATRIX = (90, 62), (40, 22), (100, 66), (172, 66), (150, 94)  # width and height
COLUMN = 4  # items that nothing connects, up to which they stand in one column
NEVER = ("dot", "sum", "vector", "part", "inputs")  # what is in them says no more than they do


class Opening:
    """A graph in boxes, some of which stand open.

    Of a stack that stands open the first member is in sight.

    Args:
        root: the result of the graph.
        is_upright: whether arrows lead down, and not to the right.

    Attributes:
        nodes: the Values, each after its operands.
        inside: the plain numbers that are shown in the operation that uses them; by number, the operation.
        places: what is known of parameters.
        counts: by box, how many Values are in it.
        open: the boxes that stand open.
    """

    def __init__(self, root: Value, is_upright: bool = False) -> None:
        grouping = Grouping(in_program_order(root))
        self.nodes, self.places = grouping.nodes, grouping.places
        self.inside = in_their_operations(self.nodes, root)
        self._of = {
            node: None if (number := grouping.of[node]) is None else grouping.groups[number] for node in self.nodes
        }
        self._contents = Contents((node for node in self.nodes if node not in self.inside), self._of)
        self._is_upright = is_upright
        self._outputs = self._used_outside(root)
        self.counts = Counter(box for node in self.nodes for box in way(node, self._of))
        self.open: set[Box] = set()
        self._open_what_fits()

    def items(self, box: Box | None) -> list[Item]:
        """What stands right in an open box, or in none, in an order in which it can be computed."""
        if box is not None and box.kind == "stack":
            box = self.members(box)[0]
        items = self._contents.sorted_items(box) or list(self._contents.items[box])
        if box is not None and box.kind in ("layer", "parameters"):  # what stands side by side there is numbered
            items.sort(key=lambda item: item.start if isinstance(item, Box) else -1)
        return items

    def members(self, stack: Box) -> list[Box]:
        """The boxes of a stack, in the order of the program."""
        return sorted(
            (item for item in self._contents.items[stack] if isinstance(item, Box)), key=lambda box: box.start
        )

    def shown(self, box: Box) -> list[Value]:
        """The Values that a closed box shows, those that are used outside of it.

        A stack shows the one of each of its members, or where they have more, all of the first.
        """
        if box.kind != "stack":
            return self._outputs[box]
        members = [self._outputs[member] for member in self.members(box)]
        return members[0] if any(len(outputs) > 1 for outputs in members) else [outputs[0] for outputs in members]

    def arrows(self) -> dict[tuple[Item, Item], int]:
        """From what is in sight to what is: how many arrows between Values each stands for.

        A stack that stands open stands for its members that are not in sight.
        """
        found: dict[tuple[Item, Item], int] = {}
        seen = {node: self._in_sight(node) for node in self.nodes if node not in self.inside}
        for node, head in seen.items():
            for operand in node._operands():
                if operand not in self.inside and (tail := seen[operand]) is not head:
                    found[tail, head] = found.get((tail, head), 0) + 1
        return found

    def around(self, item: Item) -> list[Box]:
        """The boxes around what is in sight, the outermost first."""
        box = item.parent if isinstance(item, Box) else self._of[item]
        return [] if box is None else box.around()[::-1]

    def _in_sight(self, node: Value) -> Item:
        """A Value, or what stands for it: the closed box around it, or the open stack that shows another member."""
        stack: Box | None = None
        for box in way(node, self._of):
            if stack is not None and box is not self._on_top[stack]:
                return stack
            if stack is None and box not in self.open:
                return box
            stack = box if box.kind == "stack" else None
        return node

    def _used_outside(self, root: Value) -> dict[Box, list[Value]]:
        outputs: dict[Box, dict[Value, None]] = {}
        for outer in way(root, self._of):
            outputs.setdefault(outer, {})[root] = None
        ways: dict[Box | None, set[Box]] = {None: set()}
        for node in self.nodes:
            own = self._of[node]
            if own is not None and own not in ways:
                ways[own] = set(own.around())
            for operand in node._operands():
                if operand in self.inside or (box := self._of[operand]) is own:
                    continue
                while box is not None and box not in ways[own]:
                    outputs.setdefault(box, {})[operand] = None
                    box = box.parent
        return {box: list(found) for box, found in outputs.items()}

    def _open_what_fits(self) -> None:
        """Open boxes from the outside to the inside, all neurons or none; parameters come last."""
        self._on_top = {box: self.members(box)[0] for box in self._contents.items if box and box.kind == "stack"}
        waiting = self._worth_opening(None)
        while waiting:
            waiting.sort(key=lambda box: box.kind == "parameters")
            together = [*filter(self._is_neuron, waiting)] if self._is_neuron(waiting[0]) else waiting[:1]
            waiting = [box for box in waiting if box not in together]
            self.open.update(together)
            if self._fits():
                waiting += [inner for box in together for inner in self._worth_opening(box)]
            else:
                self.open.difference_update(together)

    def _is_neuron(self, box: Box) -> bool:
        """Whether this is a neuron, be it the only one of its layer."""
        inside = (item.kind for item in self._contents.items[box] if isinstance(item, Box))
        return box.kind == "neuron" or (box.kind == "layer" and "neuron" not in inside)

    def _worth_opening(self, box: Box | None) -> list[Box]:
        found = [
            item for item in self.items(box) if isinstance(item, Box) and item.kind not in NEVER and not item.shape
        ]
        if box is not None and box.kind == "parameters":
            return []  # a level of them is enough
        return [item for item in found if len(self.items(item)) > 1]

    def _fits(self) -> bool:
        along, across, count = self._extent(None)
        return along <= LONGEST and across <= WIDEST and count <= MOST_ITEMS

    def _extent(self, box: Box | None) -> tuple[float, float, int]:
        """About how long and how wide the inside of an open box is, and how many items are in sight there."""
        items = self.items(box)
        rank = dict.fromkeys(items, 0)
        for item in items:
            for user in self._contents.feeds.get(item, ()):
                rank[user] = max(rank[user], rank[item] + 1)
        layers: dict[int, tuple[float, float]] = {}
        count = 0
        for item in items:
            along, across, inner = self._size(item)
            longest, wide = layers.get(rank[item], (0.0, 0.0))
            layers[rank[item]] = max(longest, along + ALONG), wide + across + ACROSS
            count += inner
        longest, widest = sum(along for along, _ in layers.values()), max(wide for _, wide in layers.values())
        if box is not None and box.kind == "parameters":
            rows = rows_of_grid(len(items))
            return longest * math.ceil(len(items) / rows), widest * rows / len(items), count
        return longest, widest, count

    def _size(self, item: Item) -> tuple[float, float, int]:
        """How long an item is in the direction of the arrows, how wide, and how many items it shows."""
        if isinstance(item, Box) and item in self.open:
            along, across, count = self._extent(item)
            frame = 2 * MARGIN, 2 * MARGIN + TITLE
            return along + frame[self._is_upright], across + frame[not self._is_upright], count
        if isinstance(item, Box):
            size = MATRIX if len(item.shape) == 2 else STRIP if len(self.shown(item)) > 1 else CLOSED
        else:
            size = CONSTANT if item.is_leaf and not item.requires_grad else CARD
        return size[self._is_upright], size[not self._is_upright], 1


def rows_of_grid(count: int) -> int:
    """How many of so many items that nothing connects stand across the arrows; the rest is in further columns.

    Example:
        >>> [rows_of_grid(count) for count in (1, 3, 4, 9, 10)]
        [1, 3, 4, 3, 4]
    """
    return count if count <= COLUMN else math.ceil(math.sqrt(count))
