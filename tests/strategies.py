"""What several test modules share: the table of primitives, strategies, and micrograd's lectures by hand.

The strategies themselves are public: micrograd.testing.strategies.
"""

from hypothesis import strategies as st

from micrograd import Value
from micrograd.engine import further_primitives
from micrograd.testing import strategies
from micrograd.testing.programs import HELPERS, KINKS
from micrograd.testing.strategies import EXTREMES, Program, operands

__all__ = [
    "EXTREMES",
    "KINKS",
    "TABLE",
    "Program",
    "by_hand",
    "lecture_order",
    "micrograds_example",
    "operands",
    "programs",
]

# Every primitive of the library that tests draw from
TABLE = [made for made in further_primitives.TABLE.values() if made not in HELPERS]


def programs(smooth: bool = True) -> st.SearchStrategy[Program]:
    """Random programs over the table, whatever a test has registered besides."""
    return strategies.expressions(primitives=TABLE, smooth=smooth)


def lecture_order(root: Value) -> list[Value]:
    """Operands first, as the lectures build it, out of _prev alone."""
    order, visited = [], set()

    def build(value):
        if value not in visited:
            visited.add(value)
            for child in value._prev:
                build(child)
            order.append(value)

    build(root)
    return order


def by_hand(root: Value, order: list[Value]) -> None:
    """Backpropagation as the lectures do it: each node's closure, in the reverse order."""
    root.grad = 1.0
    for node in reversed(order):
        node._backward()


def micrograds_example(a: Value, b: Value) -> Value:
    """The program that micrograd's own documentation shows, at -4 and 2."""
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    return g
