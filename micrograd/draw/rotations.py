"""Steps of eigenvalues, singular values and exponentials of matrices, for pictures.

LAPACK goes on until the numbers are good enough, so these steps depend on the numbers: compiled functions, which do not
know them, have no such steps. What is shown are the rotations of Jacobi (Golub and Van Loan 2013, 8.5 and 8.6.3). Their
results come in LAPACK's order, and with its signs. They have its derivatives, too: after all is small, one more round
follows.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from micrograd._support.checks import Operand
from micrograd.engine import primitives
from micrograd.engine.linear_algebra import exponential, floats_of, steps_of_solve

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL, _ROUNDS = 1e-9, 30  # what is left beside the diagonal, as a part of the largest number


def _angle(difference: Any, twice: Any) -> tuple[Any, Any] | None:
    """Cosine and sine of the rotation of two rows that share an element, or None for none.

    Args:
        difference: of their squares, or of the numbers on the diagonal.
        twice: what they share.
    """
    if not isinstance(twice, Operand) and twice == 0:
        return None
    size = primitives.sqrt(difference * difference + twice * twice)
    tangent = twice / (difference + size) if difference >= 0 else twice / (difference - size)
    cosine = 1 / primitives.sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine


def _rotated(columns: Any, p: int, q: int, cosine: Any, sine: Any) -> None:
    """Rotate two columns."""
    x, y = columns[:, p].copy(), columns[:, q].copy()
    columns[:, p], columns[:, q] = cosine * x - sine * y, sine * x + cosine * y


def _in_rounds(count: int, rotate: Callable[[int, int], float]) -> None:
    """Rotate all pairs until what they share is small, and once more."""
    left = [1.0, 1.0]  # by round
    while left[-2] > _SMALL and len(left) < _ROUNDS:
        left.append(max((rotate(p, q) for p, q in combinations(range(count), 2)), default=0.0))


def _in_order(values: Any, vectors: list[Any], like: Any) -> tuple[Any, ...]:
    """Values from the smallest, and columns of vectors, with the signs that the first have in another matrix."""
    order = np.argsort(floats_of(values), kind="stable")
    signs = np.sign((floats_of(vectors[0][:, order]) * like).sum(axis=0))
    found = [each[:, order].copy() for each in vectors]
    for each in found:
        for column in np.flatnonzero(signs < 0):
            each[:, column] = -each[:, column]
    return values[order], *found


def _steps_of_eigh(a: Any, uplo: Literal["L", "U"]) -> tuple[Any, Any]:
    n = len(a)
    half, like = a if uplo == "L" else a.T, np.linalg.eigh(floats_of(a), uplo)[1]
    a = np.array([[half[max(i, j), min(i, j)] for j in range(n)] for i in range(n)], dtype=object).reshape(n, n)
    largest, vectors = float(np.abs(floats_of(a)).max(initial=0.0)), np.eye(n).astype(object)

    def rotate(p: int, q: int) -> float:
        shared = a[p, q]
        if (found := _angle(a[q, q] - a[p, p], 2 * shared)) is None:
            return 0.0
        _rotated(a, p, q, *found)
        _rotated(a.T, p, q, *found)
        a[p, q] = a[q, p] = 0.0
        _rotated(vectors, p, q, *found)
        return abs(float(shared)) / largest

    _in_rounds(n, rotate)
    values, vectors = _in_order(a.diagonal().copy(), [vectors], like)
    return values[:, None], vectors


def _steps_of_svd(a: Any) -> tuple[Any, Any, Any]:
    like_u, _, like_vt = np.linalg.svd(floats_of(a), full_matrices=False)
    if len(a) < a.shape[1]:
        u, s, vt = _steps_of_tall(a.T, like_vt.T)
        return vt.T, s, u.T
    return _steps_of_tall(a, like_u)


def _steps_of_tall(a: Any, like: Any) -> tuple[Any, Any, Any]:
    count = a.shape[1]
    columns, v = a.astype(object), np.eye(count).astype(object)
    largest = float(np.square(floats_of(a)).sum())

    def rotate(p: int, q: int) -> float:
        x, y = columns[:, p], columns[:, q]
        shared = x @ y
        if (found := _angle(y @ y - x @ x, 2 * shared)) is None:
            return 0.0
        _rotated(columns, p, q, *found)
        _rotated(v, p, q, *found)
        return abs(float(shared)) / largest

    _in_rounds(count, rotate)
    sizes = np.array([primitives.sqrt(column @ column) for column in columns.T], dtype=object)
    s, u, v = _in_order(sizes, [columns / sizes, v], like[:, ::-1])
    return u[:, ::-1], s[::-1, None], v[:, ::-1].T


OF_KNOWN_NUMBERS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "eigh": lambda a: _steps_of_eigh(a, "L"),
    "eigh of the upper triangle": lambda a: _steps_of_eigh(a, "U"),
    "svd": _steps_of_svd,
    "expm": lambda a: (exponential(a, lambda x, y: steps_of_solve(x, y)[0]),),
}
