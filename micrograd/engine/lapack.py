"""LAPACK's factorisations of matrices of floats: SciPy's where it is installed, and else NumPy's.

A gradient needs the equations of the forward pass once more, with the same matrix or with the transposed one. So the
last factorisations are kept, and found by the numbers of the matrix: to compare n**2 numbers is nothing beside the
2/3 n**3 operations of a factorisation.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

_BLOCK = 64  # columns that LAPACK inverts at a time; by default it goes through them one by one
_SPLIT = 64  # rows; the gradient of the factor of a larger matrix goes block by block, at 500 in a tenth of the time
# Rows. For several columns, LAPACK wakes threads: where processors are busy, 12 equations take 8 ms in place of 6 us
_ALONE = 128
_KEPT = 2  # factorisations; of each the matrix and its factors, both of n**2 numbers


@cache
def _routines(name: str = "lapack") -> Any:
    """SciPy's module of LAPACK, or of BLAS; None if SciPy is not installed."""
    try:
        return import_module(f"scipy.linalg.{name}")
    except ImportError:
        return None


class _Factors(NamedTuple):
    """A matrix and its factors.

    Attributes:
        matrix: as it lies in memory, row by row.
        factors: those of the transposed matrix, as LAPACK goes through memory column by column.
        pivots: which rows were exchanged.
    """

    matrix: Any
    factors: Any
    pivots: Any


_kept: tuple[_Factors, ...] = ()


def _factors_of(a: Any) -> tuple[_Factors, bool]:
    """The factors of a matrix or of its transpose, and whether they are those of the transpose."""
    global _kept  # one tuple takes the place of another, so that threads need no lock
    is_transposed = not a.flags.c_contiguous and a.flags.f_contiguous
    rows = np.ascontiguousarray(a.T if is_transposed else a)
    for known in _kept:
        if known.matrix.shape == rows.shape and known.matrix[0, 0] == rows[0, 0] and (known.matrix == rows).all():
            return known, is_transposed
    factors, pivots, _ = _routines().dgetrf(rows.T)
    made = _Factors(rows.copy(), factors, pivots)
    _kept = (made, *_kept[: _KEPT - 1])
    return made, is_transposed


def _is_plain(a: Any) -> bool:
    """Whether it is one matrix, and SciPy is there to factorise it."""
    return a.ndim == 2 and a.size > 0 and _routines() is not None


def solve(a: Any, b: Any) -> Any:
    """The solution of equations with the columns of b on the right; for stacks too.

    Raises:
        numpy.linalg.LinAlgError: if the matrix is singular.
    """
    if not _is_plain(a) or b.ndim != 2 or len(b) != len(a):
        return np.linalg.solve(a, b)
    known, is_transposed = _factors_of(a)
    if not known.factors.diagonal().all():
        raise np.linalg.LinAlgError("Singular matrix")
    if b.shape[1] == 1 or len(b) > _ALONE:
        return _routines().dgetrs(known.factors, known.pivots, b, trans=int(not is_transposed))[0]
    order = list(range(len(b)))  # of the rows, after all exchanges
    for row, other in enumerate(known.pivots.tolist()):
        order[row], order[other] = order[other], order[row]
    rows, dtrsm = (b[order] if is_transposed else b).T, _routines("blas").dtrsm
    for lower in (is_transposed, not is_transposed):
        rows = dtrsm(1.0, known.factors, rows, side=1, lower=lower, trans_a=is_transposed, diag=lower)
    if is_transposed:
        return rows.T
    solution = np.empty(b.shape)
    solution[order] = rows.T
    return solution


def inv(a: Any) -> Any:
    """The inverse; see solve."""
    if not _is_plain(a):
        return np.linalg.inv(a)
    known, is_transposed = _factors_of(a)
    inverse, failed = _routines().dgetri(known.factors, known.pivots, lwork=_BLOCK * len(a))
    if failed:
        raise np.linalg.LinAlgError("Singular matrix")
    return inverse if is_transposed else inverse.T


def det(a: Any) -> Any:
    """The determinant, as an array without axes for one matrix."""
    if not _is_plain(a):
        return np.asarray(np.linalg.det(a))
    diagonal, sign = _diagonal(a)
    return np.asarray(sign * diagonal.prod())


def slogdet(a: Any) -> tuple[Any, Any]:
    """The sign of the determinant, and the logarithm of its size."""
    if not _is_plain(a):
        sign, logarithm = np.linalg.slogdet(a)
        return np.asarray(sign), np.asarray(logarithm)
    diagonal, sign = _diagonal(a)
    with np.errstate(divide="ignore"):
        return np.asarray(sign * np.sign(diagonal).prod()), np.asarray(np.log(np.abs(diagonal)).sum())


def _diagonal(a: Any) -> tuple[Any, float]:
    """What the determinant is the product of, and its sign."""
    known, _ = _factors_of(a)
    exchanges = np.count_nonzero(known.pivots != np.arange(len(a)))
    return known.factors.diagonal(), -1.0 if exchanges % 2 else 1.0


def cholesky(a: Any) -> Any:
    """The lower factor of a symmetric matrix, of which the lower triangle is looked at.

    Raises:
        numpy.linalg.LinAlgError: if it is not positive definite.
    """
    if not _is_plain(a):
        return np.linalg.cholesky(a)
    factor, failed = _routines().dpotrf(a.T, lower=0)  # row by row, the lower triangle is the upper one of LAPACK
    if failed:
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factor.T


@lru_cache(maxsize=8)
def weights(count: int, diagonal: float) -> Any:
    """Ones below the diagonal, on which there is another number, and zeros above."""
    return np.tri(count, k=-1) + diagonal * np.eye(count)


def gradient_of_cholesky(factor: Any, gradient: Any) -> Any:
    """The gradient of the lower triangle of one matrix of floats, from that of its factor (Murray 2016, 3.1 and 3.3).

    None where there are several matrices, no floats, or no SciPy.
    """
    if not (isinstance(factor, np.ndarray) and factor.dtype == gradient.dtype == float and _is_plain(factor)):
        return None
    return _twice_symmetric(np.ascontiguousarray(factor), gradient) * weights(len(factor), 0.5)


def _twice_symmetric(factor: Any, gradient: Any) -> Any:
    """Twice the symmetric matrix whose product with a change of the matrix is the change of what is differentiated."""
    count, blas = len(factor), _routines("blas")
    if count <= _SPLIT:
        upper = factor.T  # as LAPACK goes through memory
        # Above the diagonal, the gradient counts for nothing in what is below it of this product
        inner = blas.dtrmm(1.0, upper, gradient.T, side=1, trans_a=1)
        inner *= weights(count, 0.5).T
        half = blas.dtrsm(1.0, upper, inner, side=1, trans_a=1, overwrite_b=1)
        whole = blas.dtrsm(1.0, upper, half, overwrite_b=1)
        return whole + whole.T
    k = count // 2
    first, below = np.ascontiguousarray(factor[:k, :k]), factor[k:, :k]
    found = np.empty(factor.shape)
    found[k:, k:] = last = _twice_symmetric(np.ascontiguousarray(factor[k:, k:]), gradient[k:, k:])
    of_below = gradient[k:, :k] - last @ below
    found[k:, :k] = of_below = blas.dtrsm(1.0, first.T, of_below.T, overwrite_b=1).T
    found[:k, k:] = of_below.T
    found[:k, :k] = _twice_symmetric(first, gradient[:k, :k] - of_below.T @ below)
    return found


def solve_triangular(a: Any, b: Any, lower: bool) -> Any:
    """The solution of equations with one triangle of a matrix.

    Raises:
        numpy.linalg.LinAlgError: if there is a 0 on the diagonal.
    """
    if not _is_plain(a) or b.ndim != 2 or len(b) != len(a):
        return np.linalg.solve(np.tril(a) if lower else np.triu(a), b)
    if np.count_nonzero(a.diagonal()) < len(a):
        raise np.linalg.LinAlgError("Singular matrix")
    is_turned, dtrsm = a.flags.c_contiguous, _routines("blas").dtrsm
    columns, is_lower = (a.T, not lower) if is_turned else (a, lower)
    if b.flags.f_contiguous:
        return dtrsm(1.0, columns, b, lower=is_lower, trans_a=is_turned)
    # Row by row, it is the transposed one: nothing is moved
    return dtrsm(1.0, columns, b.T, side=1, lower=is_lower, trans_a=not is_turned).T
