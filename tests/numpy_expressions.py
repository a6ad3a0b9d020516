"""Expressions of NumPy on two arrays, of Values, of numbers and mixed, and what each gives eagerly and compiled."""

import math
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import micrograd as mg
from micrograd import Value

_ONE = """
abs absolute negative positive sign signbit exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan
arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians deg2rad rad2deg floor ceil trunc rint fix
fabs isfinite isnan isinf isposinf isneginf logical_not invert conjugate real imag angle sinc nan_to_num spacing modf
frexp isreal iscomplex isnat i0 unwrap
sum prod max min mean std var median ptp any all argmax argmin cumsum cumprod average nansum nanprod nanmax nanmin
nanmean nanstd nanvar nanmedian nanargmax nanargmin nancumsum nancumprod count_nonzero
sort argsort partition1 unique nonzero flatnonzero argwhere diff gradient ediff1d trapezoid cov corrcoef
copy ravel transpose squeeze flip fliplr flipud rot90 atleast_1d atleast_2d atleast_3d ndim shape size
zeros_like ones_like empty_like triu tril diag diagonal trace diagflat vander
isscalar iterable array asarray asanyarray ascontiguousarray asfortranarray array_str array_repr
linalg.norm linalg.det linalg.inv linalg.pinv linalg.svd linalg.matrix_rank linalg.cond linalg.qr linalg.eig
linalg.slogdet fft.fft fft.rfft packbits bincount histogram round around iscomplexobj isrealobj
"""
_TWO = """
add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power float_power maximum minimum fmax
fmin hypot arctan2 logaddexp logaddexp2 copysign nextafter heaviside ldexp greater greater_equal less less_equal equal
not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm
isclose allclose array_equal array_equiv isin dot vdot inner outer matmul1 kron cross tensordot convolve1
correlate1 interp1 searchsorted1 digitize1 polyval1 append concatenate stack hstack vstack dstack column_stack
block union1d intersect1d setdiff1d broadcast_arrays linalg.solve linalg.lstsq polyfit1 cov2 corrcoef2
"""
_FORMS = """
np.sum(x, axis=0); np.sum(x, axis=1, keepdims=True); np.prod(x, axis=1); np.max(x, axis=0); np.min(x, axis=-1)
np.mean(x, axis=0); np.std(x, axis=0); np.var(x, axis=1, ddof=1); np.median(x, axis=1); np.any(x, axis=0)
np.argmax(x, axis=1); np.sort(x, axis=0); np.argsort(x, axis=1); np.percentile(x, 30); np.quantile(x, 0.5, axis=1)
np.average(x, axis=0, weights=y); np.average(x, weights=[[1, 2, 3], [3, 2, 1]]); np.diff(x, axis=0); np.diff(x, n=2)
np.gradient(x[0]); np.gradient(x, axis=1); np.gradient(x[0], [0.0, 1.0, 3.0]); np.gradient(x, edge_order=1)
np.gradient(x, 0.5, axis=0); np.nanstd(x, axis=0); np.nanvar(x, axis=1); np.cumsum(x, axis=1); np.round(x, 1)
np.round(x, -1); x.round(); x.round(2); round(x[0, 0]); round(x[0, 0], 1); x.sum(); x.mean(); x.std(); x.var(axis=0)
x.max(); x.min(axis=0); x.prod(); x.argmax(); x.argmin(axis=1); x.argsort(); x.any(); x.all(axis=0); x.cumsum()
x.cumprod(axis=0); x.trace(); x.diagonal(); x.clip(0, 1); x.clip(y, 2); x.dot(y.T); x.T; x.flatten(); x.ravel("F")
x.reshape(3, 2); x.repeat(2); x.swapaxes(0, 1); x.squeeze(); x.take([0, 2], axis=1); x.compress([True, False], axis=0)
x.nonzero(); x.tolist(); x.item(0); x.astype(float); x.astype(object); x.astype(int); x.astype(bool); x.copy()
x.conj(); x.real; x.imag; x.fill(1.0); x.dtype; x.shape; x.size; x.ndim; x.nbytes; x.itemsize; x[x > 0]; x[y > 0]
x[0]; x[:, ::-1]; x[[1, 0]]; x[..., None]; x[np.array([True, False])]; x[x > 0].sum(); y[x > 0]; x > y; x >= 0; x < y
x == y; x != y; x == 0.5; (x > 0) & (y > 0); (x > 0) | (y > 0); ~(x > 0); (x > 0) ^ (y > 0); x + y; x - y; x * y
x / y; x // y; x % y; x ** y; x ** 2; 2 ** x; 2.0 ** x; 1 / y; 1 // y; 1.5 % y; -x; +x; abs(x); x @ y.T; divmod(x, y)
divmod(x, 2); x + 1; 1 - x; x * 2.0; x ** 1; x ** -1; y ** 0.5; x + [[1, 2, 3]]; mg.detach(x) * y; mg.detach(y) * x
np.floor(x * y); np.rint(x * y); np.sign(x * y); np.trunc(x * y); np.ceil(x * y); np.floor(x) * y; np.sign(x) * y
np.rint(x) * x; mg.floor(x * y); mg.sign(x) * y; x * 0; x * 0 + y; (x > 0) * 1.0; (x > 0) * y; (x > 0).sum()
(x > 0).mean(); (x > 0).any(); (x > 0).all(axis=1); (x > 0).astype(float); (x > 0).astype(int); np.where(x > 0, x, y)
np.where(x > 0, x, 0); np.where(x > 0, 1, 0); np.where(x > 0, 1.0, y); np.where(x > 0); np.where(y > 1, x, 0.0)
np.where(x > 0, np.log(abs(x) + 1), 0); np.select([x > 1, x < 0], [x, y], 7.0); np.select([x > 1], [x])
np.clip(x, 0, 1); np.clip(x, None, 1); np.clip(x, y, None); np.clip(x, -1, y); np.exp(np.maximum(x, 0))
np.log(np.clip(x, 1e-9, None)); np.exp(np.where(x > 1, x, 0)); np.maximum(x, 0); np.maximum(0, x); np.minimum(x, 1.5)
np.maximum(x, y).sum(); np.maximum.reduce(x); np.maximum.accumulate(x, axis=1); np.add.reduce(x); np.add.accumulate(x)
np.add.outer(x[0], y[0]); np.multiply.outer(x, y[0]); np.add.reduceat(x[0], [0, 1]); np.multiply.reduce(x, axis=1)
np.subtract.reduce(x); np.power.outer(y[0], y[1]); np.hypot.outer(x[0], y[1]); np.logaddexp.reduce(x)
np.logaddexp.reduce(x, axis=1); np.hypot.reduce(x); np.exp(x).sum(); np.log(np.exp(x).sum())
np.sin(np.concatenate([x.ravel(), np.arange(3)])); np.hypot(np.pad(x, 1), 1.0); np.sqrt(np.triu(y)); x.sum().shape
np.zeros(0).var(); np.exp(np.triu(x)); np.exp(np.pad(x, 1)); np.sqrt(np.eye(2, 3) + y); np.pad(x, 1, mode="edge")
np.pad(x, ((0, 1), (1, 0)), constant_values=2.5); np.pad(x, 1, mode="reflect"); np.pad(x, 1, mode="mean")
np.hypot(x, 1.5); np.hypot(1.5, x); np.arctan2(1.5, y); np.arctan2(x, 2); np.power(2, x); np.power(y, 1.5)
np.reciprocal(y); np.reciprocal(np.arange(1, 4)) * x; np.float_power(2, x); np.float_power(y, x); np.heaviside(x, 0.5)
np.copysign(1.0, x); np.copysign(x, y); np.fmod(x, 2); np.ldexp(x, 2); np.nan_to_num(x, nan=1.0)
np.exp2(x) + np.log2(y); np.dot(x, y.T); np.dot(x[0], y[0]); np.matmul(x, y.T); np.vdot(x, y); np.inner(x, y)
np.outer(x[0], y[0]); np.einsum("ij,ij", x, y); np.einsum("ij,kj->ik", x, y); np.einsum("ij->j", x)
np.einsum("ij,j->i", x, y[0]); np.einsum("ij,ij->", x, y, optimize=True); np.tensordot(x, y, axes=2)
np.tensordot(x, y, axes=([1], [1])); np.kron(x[0], y[0]); np.convolve(x[0], y[0])
np.correlate(x[0], y[0], mode="full"); np.cross(x[0], y[0]); np.trace(x); np.linalg.norm(x); np.linalg.norm(x, axis=1)
np.linalg.norm(x, 1); np.linalg.norm(x[0], np.inf); np.linalg.norm(x, "fro"); np.linalg.multi_dot([x, y.T, x])
np.linalg.matrix_power(x[:, :2], 2); np.linalg.det(x[:, :2]); np.linalg.inv(x[:, :2])
np.linalg.solve(x[:, :2], y[:, 2]); np.linalg.cholesky(y[:, :2]); np.linalg.eigvalsh(x[:, :2])
np.linalg.lstsq(x, y[:, 0]); np.cov(x); np.cov(x, y); np.cov(x, rowvar=False); np.cov(x, ddof=0); np.cov(x, bias=True)
np.corrcoef(x); np.corrcoef(x, y); np.cov(x[0]); np.cov(x[0], y[0]); np.corrcoef(x[0], y[0])[0, 1]
np.corrcoef(x, rowvar=False); np.cov(x, fweights=[1, 2, 1]); np.cov(x, aweights=[0.5, 1.0, 2.0])
np.interp(x[0], [0.0, 1.0], [0.0, 2.0]); np.interp([0.5, 1.5], [0.0, 2.0], y[0, :2]); np.polyval(x[0], 2.0)
np.polyval([1, 2], x); np.vander(x[0]); np.roll(x, 1); np.roll(x, 1, axis=1); np.rollaxis(x, 1); np.moveaxis(x, 0, 1)
np.tile(x, 2); np.repeat(x, 2, axis=1); np.take(x, [0, 2]); np.take(x, [1], axis=0)
np.take_along_axis(x, np.array([[0], [1]]), axis=1); np.delete(x, 1, axis=1); np.insert(x, 1, 5.0, axis=1)
np.insert(x, 0, y[0], axis=0); np.append(x, 3.0); np.append(x, y, axis=0); np.resize(x, (3, 3))
np.split(x, 3, axis=1); np.array_split(x[0], 2); np.vsplit(x, 2); np.stack([x, y]); np.stack([x, x * 2], axis=-1)
np.concatenate([x, y], axis=1); np.concatenate([x, np.ones((1, 3))]); np.concatenate([x, [[1, 2, 3]]])
np.block([[x, y], [y, x]]); np.vstack([x, y[0]]); np.hstack([x[0], 1.0]); np.column_stack([x[0], y[0]])
np.expand_dims(x, 0); np.broadcast_to(x[0], (2, 3)); np.full_like(x, 2.0); np.full((2,), x[0, 0])
np.full_like(x, x[0, 0]); np.zeros_like(x) + y; np.ones_like(x) * x; np.empty_like(x).shape; np.array([x[0], y[0]])
np.array([x[0, 0], 2.0]); np.array([x[0, 0], 2.0]) * 3; np.asarray(x) * 2; np.asarray(x) > 0; np.array(x.tolist())
mg.array(x.tolist()); np.fromiter(x[0], object); list(x[0]); [v * 2 for v in x[0]]; sum(x[0]); sorted(x[0]); max(x[0])
min(x[0]); any(x[0] > 0); bool(x[0, 0] > 0); float(x[0, 0]); int(x[0, 0]); len(x); x[0, 0] in x; np.isclose(x, y)
np.isclose(x, 0.5); np.isclose(x, x + 1e-12); np.allclose(x, x); np.allclose(x, y, atol=10); np.array_equal(x, x)
np.array_equal(x, y, equal_nan=True); np.array_equiv(x, y); np.isin(x, [0.5, 2.0]); np.isin(x, y)
np.isfinite(x).all(); np.isnan(x).any(); np.isinf(x / y); np.isfinite(x) & (y > 0); np.logical_and(x > 0, y > 0)
np.logical_not(x > 0); np.logical_or.reduce(x > 0); np.count_nonzero(x > 0); np.count_nonzero(x, axis=0)
np.nonzero(x > 0); np.flatnonzero(x); np.argwhere(x > 0); np.unique(x); np.unique(np.rint(x)); np.sort(x[0])[::-1]
np.partition(x, 1); np.argpartition(x, 1); np.lexsort((x[0], y[0])); np.searchsorted(y[0], 0.5)
np.searchsorted([0.0, 1.0], x[0]); np.digitize(x, [0.0, 1.0]); np.histogram(x, bins=3)
np.bincount([1, 2], weights=x[0, :2]); np.compress([True, False, True], x, axis=1); np.extract(x > 0, x)
np.extract([True, False, True], x[0]); np.choose([0, 1, 0], [x[0], y[0]]); np.choose(x > 0, [x, y])
np.place(x, x > 0, [1.0]); np.putmask(x, x > 0, y); np.copyto(x.copy(), y)
np.piecewise(x, [x < 0, x >= 0], [0.0, 1.0]); np.fill_diagonal(x.copy(), 1.0); np.diag(x[0]); np.diag(x)
np.diagflat(x); np.tril(x); np.triu(x, 1); np.tri(3) @ x[0]; np.fliplr(x); np.rot90(x)
np.apply_along_axis(np.sum, 0, x); np.apply_along_axis(lambda r: r * 2, 1, x); np.vectorize(lambda a: a * 2)(x)
np.frompyfunc(lambda a: a * 2, 1, 1)(x); np.apply_over_axes(np.sum, x, [0, 1]); np.meshgrid(x[0], y[0])
np.ix_([0, 1], [0, 2]); np.ndenumerate(x).__class__.__name__; np.trapezoid(x); np.trapezoid(x, y)
np.trapezoid(x, dx=0.5, axis=0); np.cumulative_sum(x, axis=0); np.permute_dims(x, (1, 0)); np.vecdot(x, y)
np.linalg.vector_norm(x); np.matrix_transpose(x); np.linalg.outer(x[0], y[0]); np.exp(x, out=x.copy())
np.add(x, y, out=x.copy()); np.add(x, 1, dtype=object); np.add(x, 1.0, dtype=float)
np.multiply(x, y, where=[True, False, True]).shape; np.sum(x, where=[True, False, True]); np.sum(x, initial=2.0)
np.max(x, initial=1.0); np.sum(x, dtype=object); np.mean(x, dtype=float); np.sum(x, where=x > 0)
np.max(x[:0], axis=1); np.sum(x[:0]); np.mean(x[:, :0], axis=0); np.prod(x[:0], axis=0); np.max(x[:0])
np.concatenate([x[:0], y]); np.exp(x[:0]); np.any(x[:0]); np.argmax(x[:0]); np.std(x[:0], axis=1); np.cumsum(x[:0])
np.median(x[:0], axis=1); np.where(x[:0] > 0, x[:0], y[:0]); np.dot(x[:0].T, y[:0]); x[:0].min(axis=1); np.sort(x[:0])
x[0, 0:1].reshape(()); np.exp(x[0, 0:1].reshape(())); x[0, 0:1].reshape(()) * y; np.sum(x[0, 0:1].reshape(()))
np.maximum(x[0, 0:1].reshape(()), 0); np.floor(x[0, 0:1].reshape(())); np.exp(x[0, 0]); np.maximum(x[0, 0], 0)
np.hypot(x[0, 0], y[0, 1]); np.sum(x[0, 0]); np.where(x[0, 0] > 0, x, y); np.floor(x[0, 0]); np.sign(x[0, 0])
np.isfinite(x[0, 0]); np.rint(x[0, 0]); np.add(x[0, 0], y); np.float64(2.0) * x[0, 0]; np.float64(2.0) * x
np.int64(2) ** x; np.float32(1.5) * x; np.isnan(x[0, 0]); np.logaddexp(x[0, 0], 1.0); np.arctan2(x[0, 0], 1.0)
np.linspace(0, 1, 3) * x; np.linspace(x[0, 0], y[0, 0], 3); np.arange(3) + x; np.geomspace(1, 2, 3) * y
np.logspace(x[0, 0], y[0, 0], 3); np.ma.masked_array(x).shape; np.shape(x); np.ndim(x); np.size(x); np.iterable(x)
np.may_share_memory(x, y); np.shares_memory(x, x); np.result_type(x); np.min_scalar_type(x)
np.can_cast(x.dtype, float); np.common_type(x); np.iscomplexobj(x); np.isrealobj(x); np.nan_to_num(x / y)
np.ediff1d(x, to_end=[1.0])
np.average(x); np.average(x, weights=y); np.average(x, axis=1, weights=y[0]); np.average(x, weights=y, keepdims=True)
np.average(x, axis=0, weights=y[:, 0], returned=True); np.average([1.0, 2.0, 4.0], weights=x[0])
np.average(x, axis=1, weights=y[:, 0]); np.average(x, axis=(1, 0), weights=y.T); np.average(x, weights=y[0])
np.partition(x[0], 1)[:2]; np.partition(x, 1, axis=0); np.partition(x, (0, 2), axis=None); np.partition(x, 7)
np.take_along_axis(x, np.argsort(x, axis=1), axis=1); np.take_along_axis(x, np.argsort(y, axis=None), axis=None)
np.take_along_axis(x, np.argmax(y, axis=0, keepdims=True), axis=0); np.take_along_axis(x, np.argsort(y[0]), axis=1)
np.take_along_axis(x, np.argsort(y[:1], axis=1), axis=1)
"""


def _call(name: str, operands: str) -> str:
    if name == "partition1":
        return f"np.partition({operands}, 1)"
    if name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "block"):
        return f"np.{name}([{operands}])"
    if name == "matmul1":
        return "np.matmul(x, y.T)"
    if name[-1:] == "1" and name[:-1] in _OF_ROWS:
        return f"np.{name[:-1]}({_OF_ROWS[name[:-1]]})"
    if name[-1:] == "2" and name[:-1] in ("cov", "corrcoef"):
        return f"np.{name[:-1]}({operands}, rowvar=False)"
    return f"np.{name}({operands})"


_OF_ROWS = {
    "convolve": "x[0], y[1]",
    "correlate": "x[0], y[1]",
    "interp": "x[0], np.sort(y[0]), y[1]",
    "searchsorted": "x[0], y[1]",
    "digitize": "x, y[0]",
    "polyval": "x[0], y",
    "polyfit": "x[0], y[0], 1",
}


def expressions() -> list[str]:
    """All of them, each once."""
    calls = [_call(name, "x") for name in _ONE.split()] + [_call(name, "x, y") for name in _TWO.split()]
    forms = [form.strip() for line in _FORMS.strip().splitlines() for form in line.split("; ")]
    return list(dict.fromkeys([*calls, *forms]))


_ARGUMENTS = ("x", "x, y", "x[0]", "x[0, 0]", "x[:0]", "x, axis=0", "x[0, 0], y[0, 0]", "y[:, :2]")
_LEFT_OUT = """
array2string array_repr array_str asmatrix base_repr binary_repr bmat broadcast busdaycalendar can_cast common_type
copyto disp einsum_path empty empty_like format_float_positional format_float_scientific from_dlpack frombuffer fromfile
frompyfunc fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall info isdtype
issubdtype iterable load loadtxt mask_indices may_share_memory mintypecode nested_iters printoptions require save
savetxt savez savez_compressed set_printoptions setbufsize seterr seterrcall shares_memory show_config show_runtime
test typename
"""


def of_namespace() -> list[str]:
    """Calls of every public function of NumPy, its linear algebra and its Fourier transforms."""
    left_out, calls = set(_LEFT_OUT.split()), []
    for module, prefix in ((np, "np"), (np.linalg, "np.linalg"), (np.fft, "np.fft")):
        for name in sorted(set(dir(module)) - left_out):
            function = getattr(module, name)
            if not name.startswith("_") and callable(function) and not isinstance(function, type):
                calls += [f"{prefix}.{name}({arguments})" for arguments in _ARGUMENTS]
    return calls


# What differs, and why
DIFFERENT = {
    "np.empty_like(x)": "which numbers it has is not said",
    "mg.array(x.tolist())": "of plain numbers: leaves that no caller has; compiled, they require no gradient",
    "np.asarray_chkfinite(x[0, 0], y[0, 0])": "NumPy asks no array which dtype a number is: another TypeError",
}


X = np.array([[0.5, -1.25, 2.0], [0.0, 3.5, -0.5]])
Y = np.array([[2.0, 0.5, 3.0], [0.25, 2.0, 1.0]])
POSITIVE = np.array([[0.5, 0.25, 0.75], [0.125, 0.9375, 0.375]])
TIES = np.array([[1.0, 1.0, 0.0], [-0.0, 2.0, 2.0]])


def _mixed(numbers: Any) -> Any:
    """Values and plain numbers in turns."""
    result = mg.array(numbers)
    result[0, 1::2], result[1, ::2] = numbers[0, 1::2].tolist(), numbers[1, ::2].tolist()
    return result


def _constants(numbers: Any) -> Any:
    return mg.array(lambda i, j: Value(float(numbers[i, j]), requires_grad=False), shape=numbers.shape)


# How the two arrays are made of numbers
KINDS = {
    "Values": (mg.array, mg.array),
    "numbers": (np.array, np.array),
    "Values and numbers": (mg.array, np.array),
    "numbers and Values": (np.array, mg.array),
    "among Values": (_mixed, _mixed),
    "constants": (_constants, mg.array),
}
NUMBERS = {"signs": (X, Y), "unit": (POSITIVE, POSITIVE[::-1]), "ties": (TIES, TIES[:, ::-1])}


@dataclass
class Outcome:
    """What an expression gives: the error, or the parts of the result and the gradients."""

    error: Exception | None
    parts: list[Any]
    gradients: list[float]


def parts_of(result: Any) -> list[Any]:
    """The kinds, shapes, numbers and Values in a result, in order."""
    if isinstance(result, (list, tuple)):
        return [type(result).__name__, *(part for item in result for part in parts_of(item))]
    if isinstance(result, np.ndarray):
        return [result.shape, *result.ravel().tolist()]
    return [result]


def differences(expression: str, numbers: str, kinds: Iterable[str] = tuple(KINDS)) -> list[str]:
    """How the compiled expression differs from the eager one, for each of some kinds of arrays."""
    function = eval(f"lambda x, y: {expression}", {"np": np, "mg": mg})
    fast = mg.compile(function, backend="numpy")
    outcomes = {kind: (outcome(function, kind, numbers), outcome(fast, kind, numbers)) for kind in kinds}
    found = {kind: difference(*pair) for kind, pair in outcomes.items()}
    return [f"{expression}, {kind}: {what}" for kind, what in found.items() if what]


def outcome(function: Any, kind: str, numbers: str) -> Outcome:
    """What a function of two arrays gives, and the gradients of a weighted sum of its Values."""
    x, y = (make(array) for make, array in zip(KINDS[kind], NUMBERS[numbers], strict=True))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            parts = parts_of(function(x, y))
            roots = [k * part for k, part in enumerate(parts, 1) if isinstance(part, Value) and part.requires_grad]
            if roots:
                sum(roots[1:], roots[0]).backward()
        except Exception as error:  # which is compared
            return Outcome(error, [], [])
    leaves = [v for array in (x, y) if array.dtype == object for v in array.flat if isinstance(v, Value)]
    return Outcome(None, parts, [leaf.grad for leaf in leaves])


def difference(eager: Outcome, compiled: Outcome) -> str | None:
    """How two outcomes differ; None where they do not.

    A compiled function may refuse what depends on numbers, and what no function of micrograd computes. Where it chooses
    between a number and a Value, the number is a Value, through which no gradient flows.
    """
    if eager.error is not None or compiled.error is not None:
        return _difference_of_errors(eager.error, compiled.error)
    if len(eager.parts) != len(compiled.parts):
        return f"shapes: {eager.parts[:3]} {compiled.parts[:3]}"
    for x, y in zip(map(_plain, eager.parts), map(_plain, compiled.parts), strict=True):
        if not _same(getattr(x, "data", x), getattr(y, "data", y)):
            return f"numbers: {x} {y}"
        if isinstance(x, Value) > isinstance(y, Value):
            return f"kinds: {x} {y}"
        if isinstance(x, Value) and x.requires_grad > y.requires_grad:
            return f"requires_grad: {x} {y}"
        if not isinstance(x, Value) and not isinstance(y, Value) and isinstance(x, bool) != isinstance(y, bool):
            return f"bools: {x} {y}"
    if not all(map(_same, eager.gradients, compiled.gradients)):
        return f"gradients: {eager.gradients} {compiled.gradients}"
    return None


def _plain(part: Any) -> Any:
    return part.item() if isinstance(part, np.generic) else part


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, (int, float)) and isinstance(y, (int, float)):
        return math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12) or (math.isnan(x) and math.isnan(y))
    return type(x) is type(y) and (x == y or repr(x) == repr(y))


def _difference_of_errors(eager: Exception | None, compiled: Exception | None) -> str | None:
    if isinstance(compiled, mg.TraceError) or str(compiled).startswith("micrograd has no np."):
        return None
    if eager is None or compiled is None:
        return f"raises only {'compiled' if eager is None else 'eagerly'}: {compiled or eager!r:.120}"
    is_same = isinstance(eager, type(compiled)) or isinstance(
        compiled, type(eager)
    )  # of one, NumPy has a class of its own
    return None if is_same else f"errors: {eager!r:.120} {compiled!r:.120}"


if __name__ == "__main__":
    for expression in [*expressions(), *of_namespace()]:
        for numbers in NUMBERS:
            for different in differences(expression, numbers):
                sys.stdout.write(f"with {numbers}, {different}\n")
