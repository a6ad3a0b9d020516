"""Linear algebra on arrays of Values: NumPy's functions of matrices, each call one node with a rule.

Rules are those of Giles (2008, An extended collection of matrix derivative results), of Magnus and Neudecker (Matrix
Differential Calculus), of Golub and Pereyra (1973) for the pseudoinverse, and of Murray (2016) for Cholesky's factor.
They take arrays of floats or of Values, with any number of leading axes. Numbers go to LAPACK. The steps, which
compiled functions have in its place for a small matrix of symbols, are Householder's and Cholesky's algorithms. What
they cannot do, such as a singular matrix, gives NaN, and the function runs eagerly, which says what is wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import Operand, is_unknown, is_value
from micrograd.engine import lapack, primitives
from micrograd.engine.array_calls import LARGEST, ArrayFunction
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable


def _t(a: Any) -> Any:
    return a.swapaxes(-1, -2)


def _summed_to(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of an operand that was broadcast from a shape."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    gradient = gradient.sum(axis=tuple(range(extra))) if extra else gradient
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def _is_zero(array: Any) -> bool:
    """Whether all elements are known to be the number 0, so that nothing depends on them."""
    if not isinstance(array, np.ndarray):  # in another library, while it compiles
        return False
    if array.dtype != object:
        return not array.any()
    return not any(is_value(x) or x for x in array.flat)


def floats_of(array: Any) -> Any:
    """The numbers of an array of Values or floats."""
    if array.dtype != object:
        return array
    return np.array([x._data if is_value(x) else x for x in array.flat], dtype=float).reshape(array.shape)


def _like_first(a: Any, *_: Any) -> list[tuple[int, ...]]:
    return [a]


def _with_columns(a: Any, b: Any) -> list[tuple[int, ...]]:
    return [(*np.broadcast_shapes(a[:-2], b[:-2]), a[-1], b[-1])]


# Products


def _rule_of_product(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (a, b) = gradients, operands
    return [
        _summed_to(_product(g, _t(b)), a.shape) if needed[0] else None,
        _summed_to(_product(_t(a), g), b.shape) if needed[1] else None,
    ]


def _multiplied(a: Any, b: Any) -> tuple[Any]:
    if a.ndim == b.ndim == 2:
        return (np.dot(a, b),)
    return (a * b if a.shape[-1] == b.shape[-2] == 1 else np.matmul(a, b),)  # which takes half as long then


PRODUCT = ArrayFunction(
    "matmul",
    _multiplied,
    _rule_of_product,
    lambda a, b: [(*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])],
    lambda a, b: (np.matmul(a, b),),
    LARGEST**3,
    lambda a, b: a.shape[-2] * b.size,  # products of numbers
)


def _product(a: Any, b: Any) -> Any:
    return PRODUCT(a, b)[0]


def _times(*matrices: Any) -> Any:
    """The product of several matrices, from the left."""
    result, *others = matrices
    for matrix in others:
        result = _product(result, matrix)
    return result


# Steps on a matrix of symbols


def _reflected(a: Any, others: Any) -> tuple[Any, Any, Any]:
    """The triangle that Householder's reflections make of a matrix, others reflected, and the sign of them all."""
    r, others, sign = a.astype(object), others.astype(object), 1.0
    for k in range(min(len(r) - 1, r.shape[1])):
        column = r[k:, k]
        rest = _sum(column[1:] * column[1:])
        if not isinstance(rest, Operand) and rest == 0:  # known zeros, which have no gradient
            continue
        squares = column[0] * column[0] + rest
        if is_unknown(squares):  # of a column of zeros, eager code finds the gradient
            squares = primitives.where(primitives.is_zero(squares), math.inf, squares).only_finite()
        size = primitives.sqrt(squares)
        head = primitives.where(column[0] < 0, size, -size)
        below = column.copy()
        below[0] = column[0] - head
        factor = 1 / (head * below[0])  # -2 / |below|^2
        back = primitives.where(primitives.is_zero(rest), -1.0, 1.0)  # LAPACK does not reflect then
        for matrix, start in ((r, k + 1), (others, 0)):
            matrix[k:, start:] = matrix[k:, start:] + np.outer(below, factor * (below @ matrix[k:, start:]))
            matrix[k, start:] = back * matrix[k, start:]
        r[k, k] = back * head
        r[k + 1 :, k] = 0.0
        sign = -back * sign
    return r, others, sign


def _sum(terms: Any) -> Any:
    total = 0.0
    for term in terms:
        total = total + term
    return total


def _from_below(r: Any, b: Any) -> Any:
    """The solution of triangular equations, from the last row up."""
    x = b[: r.shape[1]].astype(object)
    for k in reversed(range(r.shape[1])):
        x[k] = (x[k] - r[k, k + 1 :] @ x[k + 1 :]) / r[k, k] if k + 1 < len(x) else x[k] / r[k, k]
    return x


# Rows or columns of a matrix that compiled functions take apart by reflections in each of many calls. Larger ones call
# LAPACK: of ten inverses after each other, of 12 rows, a first call takes 0.7 s in place of 8.9, and a call 0.49 ms in
# place of 0.41; of 16 rows 0.8 s in place of 16, and 0.6 ms in place of 1.2. One by itself is quicker in steps: of 10
# rows, value and gradient of a solution take 16 us in place of 56
REFLECTED = 8


def steps_of_solve(a: Any, b: Any) -> tuple[Any, ...]:
    """The solution of equations, after reflections; of more equations than unknowns, the closest."""
    r, b, _ = _reflected(a, b)
    return (_from_below(r, b),)


def _steps_of_qr(a: Any) -> tuple[Any, ...]:
    r, q, _ = _reflected(a, np.eye(len(a)))
    count = min(a.shape)
    return _t(q)[:, :count], r[:count]


def _steps_of_determinant(a: Any) -> tuple[Any, ...]:
    r, _, sign = _reflected(a, np.empty((len(a), 0)))
    for k in range(len(a)):
        sign = sign * r[k, k]
    return (np.array([[sign]], dtype=object),)


def _steps_of_logarithm(a: Any) -> tuple[Any, ...]:
    r, _, sign = _reflected(a, np.empty((len(a), 0)))
    logarithm: Any = 0.0
    for k in range(len(a)):
        sign = primitives.where(r[k, k] < 0, -sign, sign)
        logarithm = logarithm + primitives.log(primitives.abs(r[k, k]))
    return np.array([[sign]], dtype=object), np.array([[logarithm]], dtype=object)


def _steps_of_cholesky(a: Any) -> tuple[Any, ...]:
    n = len(a)
    factor = np.zeros((n, n)).astype(object)
    for j in range(n):
        for i in range(j, n):
            left = a[i, j] - _sum(factor[i, :j] * factor[j, :j])
            factor[i, j] = primitives.sqrt(left) if i == j else left / factor[j, j]
    return (factor,)


# Equations


def _rule_of_solve(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (x,), (a, b) = gradients, results, operands
    of_b = SOLVE(_t(a), g)[0]
    return [
        _summed_to(-_product(of_b, _t(x)), a.shape) if needed[0] else None,
        _summed_to(of_b, b.shape) if needed[1] else None,
    ]


SOLVE = ArrayFunction(
    "solve",
    lambda a, b: (lapack.solve(a, b),),
    _rule_of_solve,
    _with_columns,
    steps_of_solve,
    largest_of_many=REFLECTED,
)


def _triangular(lower: bool) -> ArrayFunction:
    """The function that solves equations with the lower or the upper triangle, and looks at no other element."""

    def rule(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
        (g,), (x,), (a, b) = gradients, results, operands
        of_b = TRIANGULAR[not lower](_t(a), g)[0]
        return [
            _summed_to(half(of_b, x), a.shape) if needed[0] else None,
            _summed_to(of_b, b.shape) if needed[1] else None,
        ]

    def half(of_b: Any, x: Any) -> Any:
        return _below(_product(-of_b, _t(x)), 1.0) if lower else _t(_below(_product(x, _t(-of_b)), 1.0))

    def steps(a: Any, b: Any) -> tuple[Any, ...]:
        return (_from_below(a[::-1, ::-1], b[::-1])[::-1] if lower else _from_below(a, b),)

    name = f"solve with the {'lower' if lower else 'upper'} triangle"
    return ArrayFunction(name, lambda a, b: (lapack.solve_triangular(a, b, lower),), rule, _with_columns, steps)


TRIANGULAR = {lower: _triangular(lower) for lower in (False, True)}


def solve(a: Any, b: Any) -> Any:
    """The solution x of a @ x = b; see np.linalg.solve.

    The gradient of b solves the transposed equations, and that of a is minus its product with x (Giles 2008, 2.3.1).

    Example:
        >>> import micrograd as mg
        >>> a, b = mg.array([[2.0, 0.0], [0.0, 4.0]]), mg.array([2.0, 8.0])
        >>> np.linalg.solve(a, b).sum().backward()
        >>> mg.gradients(b)
        array([0.5 , 0.25])
    """
    a, b = _square(a, "solve"), np.asarray(b)
    return _of_columns(SOLVE, a, b)


def _of_columns(function: ArrayFunction, a: Any, b: Any) -> Any:
    """The solution for a vector, or for columns."""
    return function(a, b[:, None])[0][..., 0] if b.ndim == 1 else function(a, b)[0]


def _matrices(a: Any, name: str) -> Any:
    """An array of matrices, as a function with this name takes them."""
    a = np.asarray(a)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"{name} takes matrices in the last two axes, not an array of shape {a.shape}")
    return a


def _square(a: Any, name: str) -> Any:
    """An array of square matrices."""
    a = np.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(
            f"{name} takes square matrices in the last two axes, not an array of shape {a.shape}"
        )
    return a


INVERSE = ArrayFunction(
    "inv",
    lambda a: (lapack.inv(a),),
    lambda gradients, results, operands, needed: [_times(-_t(results[0]), gradients[0], _t(results[0]))],
    _like_first,
    lambda a: steps_of_solve(a, np.eye(len(a))),
    largest_of_many=REFLECTED,
)


def inv(a: Any) -> Any:
    """The inverse; see np.linalg.inv (Giles 2008, 2.2.3)."""
    return INVERSE(_square(a, "inv"))[0]


# Determinants


def _cofactors(a: Any) -> Any:
    """The slopes of the determinant; by singular values, where there is no inverse that is good for its digits."""
    try:
        inverse = lapack.inv(a)
    except np.linalg.LinAlgError:
        inverse = np.full(a.shape, np.inf)
    sizes = [np.abs(each).sum(axis=-2).max(axis=-1, initial=0.0) for each in (a, inverse)]
    if (sizes[0] * sizes[1] < _CONDITION).all():
        return lapack.det(a)[..., None, None] * _t(inverse)
    u, s, vt = np.linalg.svd(a)
    count = s.shape[-1]
    others = np.where(np.eye(count, dtype=bool), 1.0, s[..., None, :]).prod(axis=-1)
    sign = np.linalg.det(u) * np.linalg.det(vt)
    return sign[..., None, None] * np.matmul(u * others[..., None, :], vt)


_CONDITION = 1e5  # up to which an inverse has eleven digits


def _rule_of_cofactors(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (out,), (a,) = gradients, results, operands
    along = (g * out).sum(axis=(-2, -1), keepdims=True)
    return [(along * out - _times(out, _t(g), out)) / DETERMINANT(a)[0]]


COFACTORS = ArrayFunction(
    "cofactors",
    lambda a: (_cofactors(a),),
    _rule_of_cofactors,
    _like_first,
    lambda a: (_steps_of_determinant(a)[0] * _t(steps_of_solve(a, np.eye(len(a)))[0]),),
    largest_of_many=REFLECTED,
)


def _numbers_of_matrices(a: Any) -> list[tuple[int, ...]]:
    return [(*a[:-2], 1, 1)]


DETERMINANT = ArrayFunction(
    "det",
    lambda a: (lapack.det(a)[..., None, None],),
    lambda gradients, results, operands, needed: [gradients[0] * COFACTORS(operands[0])[0]],
    _numbers_of_matrices,
    _steps_of_determinant,
    largest_of_many=REFLECTED,
)


def det(a: Any) -> Any:
    """The determinant; see np.linalg.det. Singular matrices have a first derivative (Magnus and Neudecker 8.3)."""
    return DETERMINANT(_square(a, "det"))[0][..., 0, 0][()]


LOGARITHM = ArrayFunction(
    "logdet",
    lambda a: tuple(part[..., None, None] for part in lapack.slogdet(a)),
    lambda gradients, results, operands, needed: [gradients[1] * _t(INVERSE(operands[0])[0])],
    lambda a: 2 * _numbers_of_matrices(a),
    _steps_of_logarithm,
    largest_of_many=REFLECTED,
)


def slogdet(a: Any) -> Any:
    """The sign of the determinant, and the logarithm of its size; see np.linalg.slogdet (Giles 2008, 2.2.4)."""
    sign, logarithm = (part[..., 0, 0] for part in LOGARITHM(_square(a, "slogdet")))
    return _like_numpy(np.linalg.slogdet(np.eye(1)), _as_numbers(sign)[()], logarithm[()])


def _as_numbers(array: Any) -> Any:
    """The plain numbers of an array of Values; of symbols, what stands for these."""
    tracer = tracer_on_top()
    if tracer is None or not any(map(is_unknown, array.flat)):
        return floats_of(array)
    numbers = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        numbers[index] = tracer.number_of(array[index]) if is_value(array[index]) else array[index]
    return tracer.array(numbers)


def _like_numpy(of_numpy: Any, *results: Any) -> Any:
    """The results in a tuple of the kind that NumPy gives; None stands for what is in it already."""
    found = [theirs if ours is None else ours for theirs, ours in zip(of_numpy, results, strict=True)]
    return tuple(found) if type(of_numpy) is tuple else type(of_numpy)(*found)


# Factors


def _below(a: Any, diagonal: float) -> Any:
    """The lower triangle, its diagonal times a number."""
    weights = lapack.weights(a.shape[-1], diagonal)
    return a * weights if a.dtype != object else np.where(weights > 0, a * weights, 0.0)


def _rule_of_cholesky(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (factor,) = gradients, results
    if (found := lapack.gradient_of_cholesky(factor, g)) is not None:
        return [found]
    inner = _below(_product(_t(factor), _below(g, 1.0)), 0.5)
    half = TRIANGULAR[False](_t(factor), inner)[0]
    whole = TRIANGULAR[False](_t(factor), _t(half))[0]
    return [_to_triangle(whole, lower=True)]


def _to_triangle(slopes: Any, lower: bool) -> Any:
    """The gradient of one triangle, below or above the diagonal: its elements stand for those of the other one too."""
    weights = lapack.weights(slopes.shape[-1], 0.5)
    return (slopes + _t(slopes)) * (weights if lower else weights.T)


CHOLESKY = ArrayFunction(
    "cholesky", lambda a: (lapack.cholesky(a),), _rule_of_cholesky, _like_first, _steps_of_cholesky
)


def cholesky(a: Any, *, upper: bool = False) -> Any:
    """The lower factor of a symmetric matrix; see np.linalg.cholesky (Murray 2016, 8).

    As NumPy looks at the lower triangle only, the elements above it have no gradient.
    """
    a = _square(a, "cholesky")
    factor = CHOLESKY(a)[0]
    if a.shape[-1] <= LARGEST or not any(map(is_unknown, factor.flat)):
        factor = np.where(np.tri(a.shape[-1], dtype=bool), factor, 0.0)
    return _t(factor) if upper else factor


def _copied_up(a: Any) -> Any:
    return _below(a, 1.0) + _t(_below(a, 0.0))


def _rule_of_qr(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (of_q, of_r), (q, r) = gradients, results
    of_r = _t(_below(_t(of_r), 1.0))
    inner = _product(r, _t(of_r)) - _product(_t(of_q), q)
    return [_t(TRIANGULAR[False](r, _t(of_q + _product(q, _copied_up(inner))))[0])]


def _shapes_of_qr(a: Any) -> list[tuple[int, ...]]:
    count = min(a[-2:])
    return [(*a[:-1], count), (*a[:-2], count, a[-1])]


QR = ArrayFunction(
    "qr", lambda a: tuple(np.linalg.qr(a)), _rule_of_qr, _shapes_of_qr, _steps_of_qr, largest_of_many=REFLECTED
)


def qr(a: Any, mode: str = "reduced") -> Any:
    """The orthonormal and the triangular factor; see np.linalg.qr (Seeger and others 2017, 5.2).

    Raises:
        TypeError: for the modes "complete", unless the matrix is square, and "raw".
    """
    if not isinstance(mode, str):
        raise ValueError(f"the mode of np.linalg.qr must be a str, not {type(mode).__name__}: {mode!r:.80}")
    a = _matrices(a, "qr")
    rows, columns = a.shape[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows == columns):
        raise TypeError(f"micrograd has no np.linalg.qr of Values with mode={mode!r}: write mode='reduced'")
    q, r = QR(a[..., :rows])
    r = np.where(np.tri(r.shape[-2], r.shape[-1], -1, dtype=bool), 0.0, r)
    if columns > rows:
        r = np.concatenate([r, _product(_t(q), a[..., rows:])], axis=-1)
    return r if mode == "r" else _like_numpy(np.linalg.qr(np.eye(1)), q, r)


# Eigenvalues and singular values


def _gaps(name: str, what: str) -> ArrayFunction:
    """The function of values that gives 1 / (values[j] - values[i]), and 0 on the diagonal.

    Args:
        name: of the function that has the values.
        what: the values are called; equal ones are refused by their indexes.
    """

    def forward(values: Any) -> tuple[Any]:
        count = values.shape[-2]
        gaps = _t(values) - values
        largest = np.abs(values).max(axis=(-2, -1), initial=0.0, keepdims=True)
        same = np.argwhere((np.abs(gaps) <= 4e-16 * largest * count) & ~np.eye(count, dtype=bool))
        if len(same):
            *_, i, j = (int(position) for position in same[0])
            raise ValueError(
                f"the {what} {i} and {j} of {name} are equal, so their vectors have no derivative: differentiate the "
                f"{what} only, or move the matrix away from where they meet"
            )
        return ((1.0 - np.eye(count)) / (gaps + np.eye(count)),)

    def rule(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
        slopes = gradients[0] * results[0] * results[0]
        return [(slopes - _t(slopes)).sum(axis=-1, keepdims=True)]

    return ArrayFunction(f"gaps of {what}", forward, rule, lambda values: [(*values[:-1], values[-2])])


def _rule_of_eigh(gradients: Any, results: Any, lower: bool) -> list[Any]:
    (of_w, of_v), (w, v) = gradients, results
    inner = of_w * np.eye(v.shape[-1])
    if not _is_zero(of_v):
        inner = inner + _GAPS_OF_EIGH(w)[0] * _product(_t(v), of_v)
    return [_to_triangle(_times(v, inner, _t(v)), lower)]


_GAPS_OF_EIGH = _gaps("np.linalg.eigh", "eigenvalues")


def _eigen(uplo: Any) -> ArrayFunction:
    """The function that looks at one triangle, "L" or "U"."""

    def forward(a: Any) -> tuple[Any, Any]:
        w, v = np.linalg.eigh(a, uplo)
        return w[..., None], v

    def rule(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
        return _rule_of_eigh(gradients, results, uplo == "L")

    name = "eigh" if uplo == "L" else "eigh of the upper triangle"
    return ArrayFunction(name, forward, rule, lambda a: [(*a[:-1], 1), a])


EIGEN = {uplo: _eigen(uplo) for uplo in "LU"}


def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  # NumPy's name
    """The eigenvalues and vectors of a symmetric matrix, of which one triangle is looked at; see np.linalg.eigh.

    Raises:
        ValueError: in a derivative of vectors, where two eigenvalues are equal (Giles 2008, 3.1).
    """
    if (triangle := UPLO.upper()) not in EIGEN:
        raise ValueError(f'UPLO must be "L" or "U", not {UPLO!r:.80}')
    w, v = EIGEN[triangle](_square(a, "eigh"))
    return _like_numpy(np.linalg.eigh(np.eye(1)), w[..., 0], v)


def _rule_of_svd(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (of_u, of_s, of_vt), (u, s, vt) = gradients, results
    count = s.shape[-2]
    inner = of_s * np.eye(count)
    rest = 0.0
    if not (_is_zero(of_u) and _is_zero(of_vt)):
        v, of_v = _t(vt), _t(of_vt)
        gaps, row = _GAPS_OF_SVD(s * s)[0], _t(s)
        of_left, of_right = gaps * _product(_t(u), of_u), gaps * _product(vt, of_v)
        inner = inner + (of_left + _t(of_left)) * row + s * (of_right + _t(of_right))
        left, right = of_u / row, of_v / row
        if u.shape[-2] > count:
            rest = rest + _product(left - _times(u, _t(u), left), vt)
        if v.shape[-2] > count:
            rest = rest + _product(u, _t(right - _times(v, vt, right)))
    return [_times(u, inner, vt) + rest]


def _singular(a: Any) -> tuple[Any, Any, Any]:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return u, s[..., None], vt


_GAPS_OF_SVD = _gaps("np.linalg.svd", "singular values")


def _shapes_of_svd(a: Any) -> list[tuple[int, ...]]:
    count = min(a[-2:])
    return [(*a[:-1], count), (*a[:-2], count, 1), (*a[:-2], count, a[-1])]


SINGULAR = ArrayFunction("svd", _singular, _rule_of_svd, _shapes_of_svd)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular values and vectors; see np.linalg.svd (Giles 2008, 3.2).

    Raises:
        TypeError: for the full matrices of one that is not square: the vectors that are added have no derivative.
        ValueError: in a derivative of vectors, where two singular values are equal.
    """
    a = _matrices(a, "svd")
    if compute_uv and full_matrices and a.shape[-1] != a.shape[-2]:
        raise TypeError(
            "micrograd has no np.linalg.svd of Values with all vectors: write full_matrices=False, as the vectors that "
            "are added have no derivative"
        )
    u, s, vt = SINGULAR(a)
    return _like_numpy(np.linalg.svd(np.eye(1)), u, s[..., 0], vt) if compute_uv else s[..., 0]


# Least squares


def _rule_of_pinv(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (p,), (a,) = gradients, results, operands
    rows, columns = a.shape[-2:]
    found = -_times(_t(p), g, _t(p))
    left, right = _times(_t(g), p, _t(p)), _times(_t(p), p, _t(g))
    if rows > columns or not _has_full_rank(a):
        found = found + left - _times(a, p, left)
    if columns > rows or not _has_full_rank(a):
        found = found + right - _times(right, p, a)
    return [found]


def _has_full_rank(a: Any) -> bool:
    """Whether every matrix of an array is known to have full rank."""
    if not isinstance(a, np.ndarray):
        return False
    if any(is_unknown(x) for x in a.flat if a.dtype == object):
        return False
    return bool((np.linalg.matrix_rank(floats_of(a)) == min(a.shape[-2:])).all())


def _steps_of_pinv(a: Any) -> tuple[Any, ...]:
    if len(a) < a.shape[1]:
        return (_t(_steps_of_pinv(_t(a))[0]),)
    return steps_of_solve(a, np.eye(len(a)))


PSEUDOINVERSE = ArrayFunction(
    "pinv", lambda a: (np.linalg.pinv(a),), _rule_of_pinv, lambda a: [(*a[:-2], a[-1], a[-2])], _steps_of_pinv
)


def pinv(a: Any, *others: Any, **settings: Any) -> Any:
    """The pseudoinverse, where the rank stays the same; see np.linalg.pinv (Golub and Pereyra 1973).

    Raises:
        TypeError: for another argument, such as ``rcond``, which decides what the rank is.
    """
    a = _matrices(a, "pinv")
    if others or settings:
        name = next(iter(settings), "rcond")
        raise TypeError(f"micrograd has no np.linalg.pinv of Values with {name}=: leave it out")
    return PSEUDOINVERSE(a)[0]


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution, the sums of squares left, the rank and singular values; see np.linalg.lstsq.

    Rank and singular values are plain numbers. A compiled function runs eagerly where there is no full rank, as the
    shape of the sums depends on it; in a file that is exported, there is None in the place of the singular values.
    """
    a, b = np.asarray(a), np.asarray(b)
    columns = b[:, None] if b.ndim == 1 else b
    x = _product(pinv(a), columns)
    left = columns - _product(a, x)
    tracer = tracer_on_top()
    if tracer is not None and any(map(is_unknown, a.flat)):
        squares = (left * left).sum(axis=0) if a.shape[1] < len(a) else np.empty(0)
        rcond = np.finfo(float).eps * max(a.shape) if rcond is None else rcond
        found = tracer.called(_OF_FULL_RANK, [a, np.array([[rcond]])], has_gradient=False)
        singular = None if found is None else _as_numbers(found[0][:, 0])
        return (x[:, 0] if b.ndim == 1 else x), squares, min(a.shape), singular
    of_numbers = np.linalg.lstsq(floats_of(a), np.zeros(len(a)), rcond=rcond)
    rank, singular = of_numbers[2:]
    squares = (left * left).sum(axis=0) if rank == a.shape[1] < len(a) else np.empty(0)
    return (x[:, 0] if b.ndim == 1 else x), squares, rank, singular


def _singular_of_full_rank(a: Any, rcond: Any) -> tuple[Any]:
    _, _, rank, singular = np.linalg.lstsq(a, np.zeros(len(a)), rcond=rcond.item())
    if rank < min(a.shape):
        raise np.linalg.LinAlgError(f"a matrix of rank {rank}")
    return (singular[:, None],)


# Called where the numbers are not known yet; the results are plain numbers, which have no gradient
_OF_FULL_RANK = ArrayFunction(
    "singular values", _singular_of_full_rank, lambda *_: [None, None], lambda a, rcond: [(min(a), 1)]
)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number, by the norm p; see np.linalg.cond.

    Raises:
        numpy.linalg.LinAlgError: if it is no matrix, or has no elements.
    """
    x = _matrices(x, "cond")
    if 0 in x.shape[-2:]:
        raise np.linalg.LinAlgError(f"cond takes matrices with elements, not an array of shape {x.shape}")
    if p in (None, 2, -2):
        s = svd(x, compute_uv=False)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    return norm(x, p, axis=(-2, -1)) * norm(inv(x), p, axis=(-2, -1))


# Powers


def matrix_power(a: Any, n: int) -> Any:
    """The product of n times the same matrix, of its inverse where n is negative; see np.linalg.matrix_power."""
    a = _square(a, "matrix_power")
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"the exponent of matrix_power must be an int, not {type(n).__name__}: {n!r:.80}")
    a, n = (inv(a), -n) if n < 0 else (a, n)
    result = np.broadcast_to(np.eye(a.shape[-1]), a.shape) if not n else None
    while n:
        if n % 2:
            result = a if result is None else _product(result, a)
        n //= 2
        a = _product(a, a) if n else a
    return result


# Coefficients of Padé's approximant of order 13, and up to which norm it has all digits (Higham 2005, table 2.3)
_PADE = [math.factorial(26 - j) * math.factorial(13) / (math.factorial(26) * math.factorial(13 - j) * math.factorial(j))
         for j in range(14)]  # fmt: skip
_PADE_NORM = 5.371920351148152


def exponential(a: Any, solved: Callable[[Any, Any], Any] = np.linalg.solve) -> Any:
    """The exponential of a stack of matrices, by scaling and squaring.

    Args:
        a: the matrices, of floats or of Values.
        solved: what solves equations with them.
    """
    norm = np.abs(floats_of(a)).sum(axis=-2).max(initial=0.0)
    if not np.isfinite(norm):
        raise ValueError("expm takes finite numbers only")
    count = max(0, math.ceil(math.log2(norm / _PADE_NORM))) if norm else 0
    scaled, one = a / 2.0**count, np.eye(a.shape[-1])
    power: Any = np.broadcast_to(one, a.shape)
    even: Any = 0.0
    odd: Any = 0.0
    square = scaled @ scaled
    for j in range(0, 14, 2):
        even, odd = even + _PADE[j] * power, odd + _PADE[j + 1] * power
        power = power @ square
    odd = scaled @ odd
    result = solved(even - odd, even + odd)
    for _ in range(count):
        result = result @ result
    return result


def _rule_of_exponential(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    """The upper right part of the exponential of a matrix of matrices (Van Loan 1978; Higham 2008, 3.16)."""
    (g,), (a,) = gradients, operands
    transposed, n = _t(a), a.shape[-1]
    library = a.__array_namespace__()
    upper = library.concatenate([transposed, g], axis=-1)
    lower = library.concatenate([np.zeros(a.shape), transposed], axis=-1)
    whole = EXPONENTIAL(library.concatenate([upper, lower], axis=-2))[0]
    return [whole[..., :n, n:]]


EXPONENTIAL = ArrayFunction("expm", lambda a: (exponential(a),), _rule_of_exponential, _like_first)


# What SciPy has in its modules, which ask no array for its own function; see arrays.py


def expm(a: Any) -> Any:
    """The exponential of a matrix."""
    return EXPONENTIAL(_square(a, "expm"))[0]


def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution of equations with one triangle of a matrix."""
    a, b = _square(a, "solve_triangular"), np.asarray(b)
    if trans not in (0, 1, "N", "T"):
        raise ValueError(f'trans must be 0 or "N", or 1 or "T" for the transposed triangle, not {trans!r:.80}')
    if unit_diagonal:
        a = np.where(np.eye(a.shape[-1], dtype=bool), 1.0, a)
    if b.shape[-2:][:1] != a.shape[-1:]:
        raise ValueError(f"solve_triangular takes as many rows in b as in a, not shapes {a.shape} and {b.shape}")
    is_transposed = trans in (1, "T")
    return _of_columns(TRIANGULAR[bool(lower) != is_transposed], _t(a) if is_transposed else a, b)


def cho_solve(factor_and_lower: Any, b: Any) -> Any:
    """The solution of equations whose matrix has this factor."""
    factor, lower = factor_and_lower
    half = solve_triangular(factor, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(factor, half, trans=1 if lower else 0, lower=lower)


# Norms


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002  # NumPy's name
    """The norm of a vector or a matrix; see np.linalg.norm. That of nothing but zeros has no derivative."""
    x = np.asarray(x)
    if axis is None and (ord is None or (ord in ("fro", "f") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        found = np.sqrt(_sum_of_squares(x.reshape(-1), 0))
        return found if not keepdims else np.full((1,) * x.ndim, found, dtype=object)
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    if len(axes) == 1:
        found = _vector_norm(np.moveaxis(x, axes[0], 0), 2 if ord is None else ord)
    elif len(axes) == 2:
        found = _matrix_norm(np.moveaxis(x, axes, (-2, -1)), "fro" if ord is None else ord)
    else:
        raise ValueError("np.linalg.norm takes one axis, for vectors, or two, for matrices")
    return np.expand_dims(found, axes) if keepdims else found


def _sum_of_squares(x: Any, axis: Any) -> Any:
    return (x * x).sum(axis=axis)


def _vector_norm(x: Any, order: Any) -> Any:
    if order == 2:
        return np.sqrt(_sum_of_squares(x, 0))
    if not isinstance(order, (int, float)) or isinstance(order, bool):
        raise ValueError(f"a vector has no norm of order {order!r}")
    size = _elementwise(primitives.abs, x)
    if math.isinf(order):
        return _extreme(size, order > 0)
    if order == 0:
        return _elementwise(lambda element: 1 - primitives.is_zero(element), x).sum(axis=0)
    return size.sum(axis=0) if order == 1 else (size**order).sum(axis=0) ** (1.0 / order)


def _matrix_norm(x: Any, order: Any) -> Any:
    if order in ("fro", "f"):
        return np.sqrt(_sum_of_squares(x, (-2, -1)))
    if order in (1, -1, math.inf, -math.inf):
        sums = _elementwise(primitives.abs, x).sum(axis=-2 if abs(order) == 1 else -1)
        return _extreme(np.moveaxis(sums, -1, 0), order > 0)
    if order in (2, -2, "nuc"):
        s = svd(x, compute_uv=False)
        return s.sum(axis=-1) if order == "nuc" else s[..., 0 if order == 2 else -1][()]
    raise ValueError(f"a matrix has no norm of order {order!r}")


def _elementwise(function: Callable[[Any], Any], x: Any) -> Any:
    return np.frompyfunc(function, 1, 1)(x)


def _extreme(x: Any, largest: bool) -> Any:
    """The largest, or the smallest, along the first axis."""
    choose = np.frompyfunc(primitives.maximum if largest else primitives.minimum, 2, 1)
    return choose.reduce(x, axis=0)


def _eigenvalues(a: Any, UPLO: str = "L") -> Any:  # noqa: N803  # NumPy's name
    return eigh(a, UPLO)[0]


OF_NUMPY: dict[Any, Callable[..., Any]] = {
    np.linalg.solve: solve,
    np.linalg.inv: inv,
    np.linalg.det: det,
    np.linalg.slogdet: slogdet,
    np.linalg.cholesky: cholesky,
    np.linalg.qr: qr,
    np.linalg.eigh: eigh,
    np.linalg.eigvalsh: _eigenvalues,
    np.linalg.svd: svd,
    np.linalg.pinv: pinv,
    np.linalg.cond: cond,
    np.linalg.lstsq: lstsq,
    np.linalg.matrix_power: matrix_power,
    np.linalg.norm: norm,
}
