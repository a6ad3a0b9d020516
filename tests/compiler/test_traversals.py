"""Traversals through a graph, all of a frontier at a time, against traversals from node to node."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.compiler.ir.traversals import Edges, Rows
from micrograd.compiler.numbers import order_of

SIZE = 30


def random_edges(seed):
    """Pairs of source and target, the target the greater one; some twice, and some nodes with none."""
    rng = random.Random(seed)
    nodes = rng.sample(range(SIZE), 22)
    return [tuple(sorted(rng.sample(nodes, 2))) for _ in range(seed % 4 * 15)]


def made(pairs):
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Edges(SIZE, *(np.array_split(ends, 3) for ends in table.T))


def made_with_rows(pairs):
    """Some edges are sorted already, in two columns; one edge of each row leads nowhere."""
    rows = [(start, -1, end) if start % 2 else (start, end, -1) for start, end in sorted(pairs[::2])]
    table, others = np.array(rows, dtype=np.int64).reshape(-1, 3), np.array(pairs[1::2], dtype=np.int64).reshape(-1, 2)
    sources, *targets = np.ascontiguousarray(table.T)
    return Edges(SIZE, *([ends] for ends in others.T), Rows(sources, targets))


MADE = pytest.mark.parametrize("made", [made, made_with_rows])


@MADE
@pytest.mark.parametrize("seed", range(12))
def test_edges_leaving_nodes(seed, made):
    pairs = random_edges(seed)
    edges = made(pairs)
    for nodes in ([], [0], [29], [3, 7, 11], list(range(SIZE))):
        found = [target for target in edges.leaving(np.array(nodes, dtype=np.int64)).tolist() if target != -1]
        assert sorted(found) == sorted(target for source, target in pairs if source in nodes)


@MADE
@pytest.mark.parametrize("seed", range(12))
def test_what_is_forgotten_leaves_no_node(seed, made):
    pairs, edges = random_edges(seed), made(random_edges(seed))
    gone = np.arange(SIZE) % 3 == 0
    edges.forget(gone)
    found = edges.leaving(np.arange(SIZE)).tolist()
    assert sorted(target for target in found if target != -1) == sorted(end for start, end in pairs if not gone[start])


def test_from_nowhere_nothing_is_reached():
    found = made_with_rows([(0, SIZE - 1)]).out_of_reach(np.array([-1, 3]))
    assert np.flatnonzero(~found).tolist() == [3]


@MADE
@pytest.mark.parametrize("seed", range(12))
def test_what_can_be_reached(seed, made):
    pairs = random_edges(seed)
    for start in ([], [2], [5, 5, 9]):
        expected = set(start)
        for source, target in sorted(pairs):  # targets are greater: each source has its marks by now
            if source in expected:
                expected.add(target)
        found = made(pairs).out_of_reach(np.array(start, dtype=np.int64))
        assert set(np.flatnonzero(~found).tolist()) == expected


@MADE
@pytest.mark.parametrize("seed", range(12))
def test_no_traversal_takes_an_edge_that_is_forgotten(seed, made):
    pairs = random_edges(seed)
    gone = np.arange(SIZE) % 3 == 0
    edges, left = made(pairs), made([(start, end) for start, end in pairs if not gone[start]])
    edges.forget(gone)
    for start in ([], [2, 3], [5, 5, 9]):
        nodes = np.array(start, dtype=np.int64)
        assert (edges.out_of_reach(nodes) == left.out_of_reach(nodes)).all()


@pytest.mark.parametrize("seed", range(12))
def test_levels_are_the_lengths_of_the_longest_ways(seed):
    pairs = random_edges(seed)
    expected = [0] * SIZE
    for source, target in sorted(pairs):
        expected[target] = max(expected[target], expected[source] + 1)
    assert made(pairs).levels().tolist() == expected


@given(st.lists(st.integers(-1, 2**31 - 1) | st.integers(0, 5), max_size=60))
def test_the_order_of_integers_is_that_of_a_stable_sort(keys):
    assert order_of(np.array(keys, dtype=np.int64)).tolist() == sorted(range(len(keys)), key=keys.__getitem__)
    assert order_of(np.array(keys, dtype=np.int32)).tolist() == sorted(range(len(keys)), key=keys.__getitem__)
