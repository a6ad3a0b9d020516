"""The parts of normalise that are quick for millions of nodes, against what is plain and slow."""

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.passes.normalise import _followed

SIZE = 300


def forest(kind, size):
    """Where each node goes, and the factor of that; a node that stays goes to itself."""
    rng = np.random.default_rng(size)
    target, factor = np.arange(size), np.where(rng.random(size) < 0.2, -1.0, 1.0)
    if kind == "up":
        target[:-1] += 1
    elif kind == "down":
        target[1:] -= 1
    elif kind == "two":
        target[:-2] += 2
    elif kind == "none":
        factor[:] = 1.0
    else:
        positions = rng.permutation(size)
        nodes = positions[1:][rng.random(size - 1) < 0.9]  # a node goes to one that comes before it
        ranks = np.argsort(positions)[nodes]
        target[nodes] = positions[np.maximum(0, ranks - 1 - (rng.random(len(ranks)) * 3).astype(int))]
    factor[target == np.arange(size)] = 1.0
    return target, factor


def walked(target, factor, node):
    """The end of a node's chain, the product along it, and how long it is."""
    product, length = 1.0, 0
    while target[node] != node:
        product, length, node = product * factor[node], length + 1, target[node]
    return node, product, length


@pytest.mark.parametrize("kind", ["up", "down", "two", "none", "any"])
def test_chains_are_followed_to_their_ends(kind):
    target, factor = forest(kind, SIZE)
    expected = [walked(target, factor, node) for node in range(SIZE)]
    length = _followed(target, factor, np.flatnonzero(target != np.arange(SIZE)))
    assert [*zip(target.tolist(), factor.tolist(), length.tolist(), strict=True)] == expected


def test_a_long_chain_is_followed_to_its_end():
    size = 20_000
    target, factor = forest("up", size)
    length = _followed(target, factor, np.arange(size - 1))
    assert (target == size - 1).all()
    assert length.tolist() == [*range(size - 1, -1, -1)]


@pytest.mark.parametrize("x", [0.1, -0.0, 3e-320, 1.7e300])
def test_a_sum_of_a_number_and_itself_is_one_term(x):
    def square(x):
        return x * x + x * x - x

    fast = mg.compile(square, backend="numpy")
    assert fast(x).hex() == square(x).hex()
    assert len(fast.program(x).program.kernels) == 1
    slope = mg.compile(mg.grad(lambda x: mg.sin(x) * mg.sin(x)), backend="numpy")
    assert slope(0.3) == mg.grad(lambda x: mg.sin(x) * mg.sin(x))(0.3)
