"""Groups of Values: a tree, which groups.py builds, and what hangs together with what in it."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd.engine.history import HandWritten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from micrograd.engine.value import Value


class Box:
    """A box around Values and other boxes.

    Attributes:
        name: what it is called.
        kind: "run" of a function or a block, "question" that decided between two paths, "layer", "neuron", "network";
            "stack" of boxes that are the same part of the program; "vector" of Values side by side, "dot" and "sum";
            "parameters"; "inputs"; "part" of what is too much.
        parent: the box around it; None for none.
        start: its place in the order of the program.
        key: what is the same for boxes of the same part of the program.
        shape: rows and columns, where its Values are a matrix.
    """

    def __init__(self, name: str, kind: str, parent: Box | None, start: float = 0, key: object = None) -> None:
        self.name, self.kind, self.parent, self.start, self.key = name, kind, parent, start, key
        self.shape: tuple[int, ...] = ()

    def make_room(self, indices: tuple[int, ...]) -> None:
        """Let its shape hold an element of a vector or a matrix; of more axes, no shape is known."""
        if 1 <= len(indices) <= 2:
            before = self.shape or (0,) * len(indices)
            self.shape = tuple(max(size, index + 1) for size, index in zip(before, indices, strict=False))

    def around(self) -> list[Box]:
        """This box and those around it, the innermost first."""
        return with_outer(self)


def with_outer(inner: Any) -> list[Any]:
    """A box or a run of a part of the program, and those around it, the innermost first."""
    found = [inner]
    while (outer := found[-1].parent) is not None:
        found.append(outer)
    return found


# What the functions of the library that are programs compute, and what they pass back, in words.
ABOUT = {
    "softmax": ("exp(x) / Σ exp(x)", "Each score gets its probability p, times g minus the mean of g: p (g − Σ p g)."),
    "logsumexp": ("log Σ exp(x)", "Each x gets the gradient times its softmax."),
    "mean": ("Σ x / n", "Each x gets the gradient divided by n."),
    "cross_entropy": (
        "−log softmax(x)[target]",
        "Each score gets p − y: its softmax, less 1 for the target. Times the gradient.",
    ),
    "mean_squared_error": ("Σ (x − y)² / n", "Each prediction gets 2 (x − y) / n, times the gradient."),
    "hinge": (
        "Σ max(0, 1 − y x) / n",
        "Each score with y x below 1 gets −y / n, times the gradient; the others get 0.",
    ),
    "binary_cross_entropy": (
        "−Σ log of the probability of y / n",
        "Each score gets (p − y) / n: its sigmoid, less y. Times the gradient.",
    ),
}


def about(box: Box) -> tuple[str, str]:
    """The formula of a box, and what it passes back in words; empty texts where nothing is known.

    Example:
        >>> about(Box("mean 3", "run", None))
        ('Σ x / n', 'Each x gets the gradient divided by n.')
    """
    return ABOUT.get(box.name.rstrip("0123456789 "), ("", "")) if box.kind in ("run", "stack") else ("", "")


Item: TypeAlias = "Value | Box"  # what stands in a box


def operation_of(node: Value) -> object:
    """What is the same for Values made alike: the primitive, or the name of one that was written for a single node."""
    primitive = node._primitive
    return primitive.name if isinstance(primitive, HandWritten) else primitive


def way(node: Value, of: dict[Value, Box | None]) -> list[Box]:
    """The boxes around a Value, the outermost first."""
    box = of[node]
    return [] if box is None else box.around()[::-1]


def alike(items: Iterable[Item]) -> list[list[Box]]:
    """The boxes among some items, those of the same part of the program together."""
    found: dict[object, list[Box]] = {}
    for item in items:
        if isinstance(item, Box) and item.key is not None:
            found.setdefault(item.key, []).append(item)
    return [*found.values()]


class Contents:
    """What stands right inside of each box, and how these items feed each other.

    Args:
        nodes: the Values, each after its operands.
        of: the box of each Value.

    Attributes:
        items: by box, the items right inside of it, in the order in which the first Value of each is computed.
        feeds: by item, those right inside of the same box that use it.
    """

    def __init__(self, nodes: Iterable[Value], of: dict[Value, Box | None]) -> None:
        self.items: dict[Box | None, dict[Item, None]] = {None: {}}
        self.feeds: dict[Item, dict[Item, None]] = {}
        ways: dict[Box | None, list[Box]] = {None: []}
        for node in nodes:
            box = of[node]
            if box not in ways:
                ways[box] = own = way(node, of)
                for outer, inner in zip([None, *own], own, strict=False):
                    self.items.setdefault(outer, {})[inner] = None
            self.items.setdefault(box, {})[node] = None
            for operand in node._operands():
                tail, head = (
                    (operand, node) if of[operand] is box else _apart(operand, ways[of[operand]], node, ways[box])
                )
                self.feeds.setdefault(tail, {})[head] = None

    def in_order(self) -> list[Value] | None:
        """The Values, each after its operands and those of a box one after the other; None where that cannot be."""
        order: list[Value] = []
        stack: list[Iterator[Item]] = []
        box: Box | None = None
        while True:
            if (inside := self.sorted_items(box)) is None:
                return None
            stack.append(iter(inside))
            while (item := next(stack[-1], None)) is None or not isinstance(item, Box):
                if item is not None:
                    order.append(item)
                else:
                    stack.pop()
                    if not stack:
                        return order
            box = item

    def sorted_items(self, box: Box | None) -> list[Item] | None:
        """The items of a box, each after those that feed it; None where two boxes feed each other."""
        items = self.items[box]
        rank = {item: index for index, item in enumerate(items)}
        waiting = dict.fromkeys(items, 0)
        for item in items:
            for user in self.feeds.get(item, ()):
                waiting[user] += 1
        ready = [(rank[item], item) for item in items if not waiting[item]]
        found: list[Item] = []
        while ready:
            _, item = heappop(ready)
            found.append(item)
            for user in self.feeds.get(item, ()):
                waiting[user] -= 1
                if not waiting[user]:
                    heappush(ready, (rank[user], user))
        return found if len(found) == len(items) else None

    def comes_back(self, together: set[Item]) -> bool:
        """Whether a way leads out of these items of one box, and back into them."""
        seen: set[Item] = set(together)
        stack = [user for item in together for user in self.feeds.get(item, ()) if user not in together]
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            for user in self.feeds.get(item, ()):
                if user in together:
                    return True
                stack.append(user)
        return False


def _apart(operand: Value, its: list[Box], node: Value, own: list[Box]) -> tuple[Item, Item]:
    """The items of the innermost common box that two Values are in, by the ways to them."""
    depth, common = 0, min(len(own), len(its))
    while depth < common and own[depth] is its[depth]:
        depth += 1
    return its[depth] if depth < len(its) else operand, own[depth] if depth < len(own) else node
