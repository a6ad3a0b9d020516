"""Rows of integers that are the same, however many there are and however wide."""

import numpy as np
import pytest

from micrograd.compiler.passes.alike import alike_rows, different_rows, sorted_by

LARGE = 1 << 61


def matrix(rows, columns, below, seed=0):
    return np.random.default_rng(seed).integers(0, below, (rows, columns))


# Few rows, short or long, and many whose keys fit into a narrow one or do not; rows that are the same; no rows.
MATRICES = {
    "few": matrix(12, 3, 2),
    "few and long": matrix(5, 40, 2)[[0, 1, 2, 1, 3, 0, 4]] - 1,
    "narrow": matrix(1000, 3, 4),
    "packed": matrix(1000, 3, 4) * 1000 - 2000,
    "wide": matrix(1000, 3, 4) * LARGE - LARGE,
    "any integers": matrix(1000, 2, LARGE) - matrix(1000, 2, LARGE, seed=1),
    "32 bits": np.where(matrix(1000, 3, 2), (1 << 32) - 1, matrix(1000, 3, 3, seed=1)),
    "33 bits": np.where(matrix(1000, 3, 2), 1 << 32, matrix(1000, 3, 3, seed=1)),
    "few, long and wide": (matrix(5, 4000, 2) * LARGE - (LARGE >> 1))[[0, 1, 2, 1, 3, 0, 4]],
    "ends of integers": np.where(matrix(1000, 2, 2), *np.iinfo(np.int64).max * np.array([1, -1])),
    "the same": np.full((1000, 4), 7),
    "one column differs": np.concatenate([np.full((1000, 2), 7), matrix(1000, 1, 1000)], axis=1),
    "one row": matrix(1, 4, 9),
    "no rows": matrix(0, 4, 9),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_rows_that_are_the_same_come_together_in_order(name):
    rows = MATRICES[name]
    found = [(tuple(row.tolist()), where.tolist()) for row, where in alike_rows(rows[:, :2], rows[:, 2:])]
    expected = {}
    for number, row in enumerate(map(tuple, rows.tolist())):
        expected.setdefault(row, []).append(number)
    assert dict(found) == expected
    assert [row for row, _ in found] == sorted(expected, key=lambda row: row[::-1])


@pytest.mark.parametrize("name", MATRICES)
def test_different_rows_are_those_of_numpy(name):
    rows = MATRICES[name]
    first, which = different_rows(rows)
    _, expected, numbers = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    assert first.tolist() == expected.tolist()
    assert which.tolist() == numbers.ravel().tolist()


@pytest.mark.parametrize("name", MATRICES)
def test_keys_are_sorted_as_lexsort_sorts_them(name):
    keys = MATRICES[name].T
    assert sorted_by(*keys).tolist() == np.lexsort(keys).tolist()
