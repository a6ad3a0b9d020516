"""Loops for tests: random bodies for scan, and the Python loops that scan and vmap stand for."""

from typing import Any, NamedTuple

from hypothesis import strategies as st

import micrograd as mg

# On small integers all of these are exact.
OPERATIONS = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "neg": (1, lambda x: -x),
    "square": (1, lambda x: x**2),
    "cube": (1, lambda x: x**3),
    "first power": (1, lambda x: x**1),
    "double": (1, lambda x: 2 * x),
    "from one": (1, lambda x: 1 - x),
    "nothing": (1, lambda x: x * 0.0),
    "abs": (1, mg.abs),
    "relu": (1, mg.relu),
    "maximum": (2, mg.maximum),
    "where less": (4, lambda a, b, x, y: mg.where(a < b, x, y)),
    "detach": (1, mg.detach),
    "dot": (4, lambda a, b, c, d: mg.dot([a, b], [c, d])),
    "take": (3, lambda x, y, z: mg.take([x, y, z], 1)),
    "derivative": (1, lambda x: mg.grad(lambda z: z**3 - z * x)(x)),
}
# Of any numbers, these are smooth, and stay small.
SMOOTH = {
    "add": (2, lambda x, y: (x + y) / 2),
    "sub": (2, lambda x, y: x / 3 - y),
    "tanh": (1, mg.tanh),
    "sin": (1, mg.sin),
    "sigmoid of a product": (2, lambda x, y: mg.sigmoid(x * y)),
    "quotient": (2, lambda x, y: x / (1 + y * y)),
    "softplus": (1, mg.softplus),
    "dot": (4, lambda a, b, c, d: mg.tanh(mg.dot([a, b], [c, d]))),
    "square": (1, lambda x: mg.tanh(x) ** 2),
}
WIDTH = 2  # numbers in a state


class Body(NamedTuple):
    """A body of a loop: operations on a state, an input and two weights, and which of the numbers are returned."""

    operations: dict[str, Any]
    steps: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[int, ...]
    bound: float

    def __call__(self, weights, state, x):
        numbers = [*state, x, *weights]
        for name, positions in self.steps:
            numbers.append(self.operations[name][1](*[numbers[position % len(numbers)] for position in positions]))
        *state, output = [numbers[position % len(numbers)] for position in self.results]
        if self.bound:
            state = [mg.minimum(mg.maximum(number, -self.bound), self.bound) for number in state]
        return tuple(state), output


def bodies(operations, bound):
    """Random bodies; their states are kept within the bound, unless it is 0."""
    step = st.sampled_from(sorted(operations)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[st.integers(0, 20)] * operations[name][0]))
    )
    return st.builds(
        Body,
        st.just(operations),
        st.lists(step, min_size=1, max_size=6).map(tuple),
        st.tuples(*[st.integers(0, 20)] * (WIDTH + 1)),
        st.just(bound),
    )


def plain_scan(step, state, inputs):
    """What scan gives, as a Python loop."""
    outputs = []
    for x in inputs:
        state, output = step(state, x)
        outputs.append(output)
    return state, outputs
