"""What a node should remember: ``python tests/benchmarks/nodes.py``, which takes about a minute.

Small engines that differ in one thing each take training steps in turn, each in a process of its own. The first has
nodes as the library has them: fields for two operands and their numbers, and a count for the walk. Each has a line
more, which says how long a step takes without the garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import transformer
from engines import Engine
from run import table
from steps import compare

if TYPE_CHECKING:
    from collections.abc import Callable


class Primitive(NamedTuple):
    """A forward function, and for each operand a rule: from the gradient, the output and the operands' numbers."""

    forward: Callable[[float, float], float]
    first: Callable[[float, float, float, float], float]
    second: Callable[[float, float, float, float], float] | None = None


ADD = Primitive(lambda x, y: x + y, lambda g, out, x, y: g, lambda g, out, x, y: g)
MUL = Primitive(lambda x, y: x * y, lambda g, out, x, y: g * y, lambda g, out, x, y: g * x)
POW = Primitive(lambda x, y: x**y, lambda g, out, x, y: g * y * x ** (y - 1))
EXP = Primitive(lambda x, y: math.exp(x), lambda g, out, x, y: g * out)
LOG = Primitive(lambda x, y: math.log(x), lambda g, out, x, y: g / x)
RELU = Primitive(lambda x, y: max(0.0, x), lambda g, out, x, y: g * (x > 0))


class Node:
    """The operators; a layout says how a node is made, and what it remembers."""

    __slots__ = ("data", "grad", "uses")
    data: float

    def made(self, primitive: Primitive, other: Any) -> Any:
        """The result of a primitive of this node and another one, or a number."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        return self.made(ADD, other)

    def __mul__(self, other: Any) -> Any:
        return self.made(MUL, other)

    def __pow__(self, other: Any) -> Any:
        return self.made(POW, other)

    def exp(self) -> Any:
        """E to the power of this."""
        return self.made(EXP, 0.0)

    def log(self) -> Any:
        """The natural logarithm."""
        return self.made(LOG, 0.0)

    def relu(self) -> Any:
        """The positive part."""
        return self.made(RELU, 0.0)

    def __neg__(self) -> Any:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __truediv__(self, other: Any) -> Any:
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def operands(self) -> tuple[Any, ...]:
        """Those that are nodes."""
        raise NotImplementedError

    def pass_on(self) -> None:
        """Add to the operands' gradients."""
        raise NotImplementedError

    def backward(self) -> None:
        """Count the uses, then pass the gradients on."""
        stack = [self]
        while stack:
            for operand in stack.pop().operands():
                if not operand.uses:
                    stack.append(operand)
                operand.uses += 1
        self.grad, ready = 1.0, [self]
        while ready:
            node = ready.pop()
            node.pass_on()
            for operand in node.operands():
                operand.uses -= 1
                if not operand.uses:
                    ready.append(operand)


class Fields(Node):
    """A field for each thing."""

    __slots__ = ("first", "primitive", "second", "x", "y")

    def __init__(self, data: float) -> None:
        self.data, self.grad, self.uses = data, 0.0, 0
        self.first = self.second = None

    def made(self, primitive: Primitive, other: Any) -> Any:
        """With fields for the operands and their numbers."""
        is_node = isinstance(other, Node)
        x, y = self.data, other.data if is_node else other
        out = type(self)(primitive.forward(x, y))
        out.primitive, out.first, out.second, out.x, out.y = primitive, self, other if is_node else None, x, y
        return out

    def operands(self) -> tuple[Any, ...]:
        """Made when they are asked for."""
        if self.second is not None:
            return self.first, self.second
        return () if self.first is None else (self.first,)

    def pass_on(self) -> None:
        """By the rules."""
        if self.first is not None:
            self.first.grad += self.primitive.first(self.grad, self.data, self.x, self.y)
        if self.second is not None:
            self.second.grad += self.primitive.second(self.grad, self.data, self.x, self.y)


class CountsInADictionary(Fields):
    """The same, but the walk keeps the counts beside the nodes."""

    __slots__ = ()

    def backward(self) -> None:
        """Count the uses, then pass the gradients on."""
        uses: dict[Any, int] = {}
        stack: list[Any] = [self]
        while stack:
            for operand in stack.pop().operands():
                if operand not in uses:
                    stack.append(operand)
                    uses[operand] = 0
                uses[operand] += 1
        self.grad, ready = 1.0, [self]
        while ready:
            node = ready.pop()
            node.pass_on()
            for operand in node.operands():
                uses[operand] -= 1
                if not uses[operand]:
                    ready.append(operand)


class Tuples(Node):
    """The operands in a tuple, and their numbers in another one."""

    __slots__ = ("numbers", "of", "primitive")

    def __init__(self, data: float) -> None:
        self.data, self.grad, self.uses = data, 0.0, 0
        self.of: tuple[Any, ...] = ()

    def made(self, primitive: Primitive, other: Any) -> Any:
        """With two tuples."""
        is_node = isinstance(other, Node)
        x, y = self.data, other.data if is_node else other
        out = type(self)(primitive.forward(x, y))
        out.primitive, out.of, out.numbers = primitive, (self, other) if is_node else (self,), (x, y)
        return out

    def operands(self) -> tuple[Any, ...]:
        """As they are."""
        return self.of

    def pass_on(self) -> None:
        """By the rules."""
        if not self.of:
            return
        x, y = self.numbers
        self.of[0].grad += self.primitive.first(self.grad, self.data, x, y)
        if len(self.of) == 2:
            self.of[1].grad += self.primitive.second(self.grad, self.data, x, y)


class Closures(Node):
    """A closure for each node, as in micrograd."""

    __slots__ = ("of", "pass_on")

    def __init__(self, data: float) -> None:
        self.data, self.grad, self.uses = data, 0.0, 0
        self.of: tuple[Any, ...] = ()
        self.pass_on = lambda: None

    def made(self, primitive: Primitive, other: Any) -> Any:
        """With a function that remembers the node, and so makes a cycle."""
        is_node = isinstance(other, Node)
        x, y = self.data, other.data if is_node else other
        out = type(self)(primitive.forward(x, y))
        out.of = (self, other) if is_node else (self,)

        def pass_on() -> None:
            self.grad += primitive.first(out.grad, out.data, x, y)
            if is_node:
                other.grad += primitive.second(out.grad, out.data, x, y)

        out.pass_on = pass_on
        return out

    def operands(self) -> tuple[Any, ...]:
        """As they are."""
        return self.of


class Layout(Engine):
    """An engine of such nodes."""

    leaf: Any

    def nodes(self, root: Any, parameters: list[Any]) -> int:
        """Count what root was computed from."""
        seen, stack = {root}, [root]
        while stack:
            fresh = set(stack.pop().operands()) - seen
            seen |= fresh
            stack += fresh
        return len(seen.difference(parameters))


class WithoutCollector(Layout):
    """The collector runs between the steps only."""

    def __init__(self) -> None:
        gc.disable()

    def zero(self, parameters: list[Any]) -> None:
        """Set the gradients to 0, and collect: the clock does not run."""
        super().zero(parameters)
        gc.collect()


def layouts(*kinds: type[Node]) -> list[type[Layout]]:
    """An engine of each kind, with the collector and without it."""
    made = []
    for kind in kinds:
        for base, end in ((Layout, ""), (WithoutCollector, ", without the collector")):
            name = f"{kind.__name__}{base.__name__}"
            globals()[name] = type(name, (base,), {"name": kind.__name__ + end, "leaf": kind, "__module__": __name__})
            made.append(globals()[name])
    return made


LAYOUTS = layouts(Fields, CountsInADictionary, Tuples, Closures)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="how many steps to time of each (default: 7)")
    results = compare("transformer", LAYOUTS, parser.parse_args().rounds)
    fastest = [min(result.seconds) for result in results]
    rows = [["nodes", "fastest step, ms", "times that of the first"]]
    rows += [
        [layout.name, f"{1e3 * seconds:.1f}", f"{seconds / fastest[0]:.2f}"]
        for layout, seconds in zip(LAYOUTS, fastest, strict=True)
    ]
    table(f"{transformer.TITLE}: {results[0].nodes:,} nodes", rows)


if __name__ == "__main__":
    main()
