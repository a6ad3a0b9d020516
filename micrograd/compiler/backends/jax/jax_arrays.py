"""Functions of whole arrays on JAX: its own linear algebra, with our derivatives.

A rule is written with operators and further functions of this kind, so it takes JAX's arrays, too, while ``on_jax`` is
what such a function calls. JAX differentiates each by its rule, and what the rule calls likewise: so there are
derivatives of any order. What NumPy refuses, such as a singular matrix, gives NaN here, and eager code says what is
wrong.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import linalg

from micrograd.compiler.backends.jax.jax_checks import check_process, in_float64
from micrograd.engine.array_calls import calling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.numbers import Floats
    from micrograd.engine.array_calls import ArrayFunction


def _determinant(a: Any) -> Any:
    return jnp.linalg.det(a)[..., None, None]


def _triangular(lower: bool) -> Callable[[Any, Any], Any]:
    def solved(a: Any, b: Any) -> Any:
        stack = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = (jnp.broadcast_to(each, (*stack, *each.shape[-2:])) for each in (a, b))
        return (linalg.solve_triangular(a, b, lower=lower),)

    return solved


def _eigen(uplo: str) -> Callable[[Any], Any]:
    def forward(a: Any) -> Any:
        w, v = jnp.linalg.eigh(a, UPLO=uplo, symmetrize_input=False)
        return w[..., None], v

    return forward


def _singular(a: Any) -> Any:
    u, s, vt = jnp.linalg.svd(a, full_matrices=False)
    return u, s[..., None], vt


def _gaps(values: Any) -> Any:
    one = jnp.eye(values.shape[-2])
    gaps = values.swapaxes(-1, -2) - values
    largest = jnp.abs(values).max(axis=(-2, -1), initial=0.0, keepdims=True)
    is_same = (jnp.abs(gaps) <= 4e-16 * largest * values.shape[-2]) & (one == 0)
    return (jnp.where(is_same, jnp.nan, (1.0 - one) / (gaps + one)),)


def _fourier(real: Any, imag: Any) -> Any:
    found = jnp.fft.fft(real + 1j * imag)
    return found.real, found.imag


def _singular_of_full_rank(a: Any, rcond: Any) -> Any:
    s = jnp.linalg.svd(a, compute_uv=False)
    return (jnp.where(s[-1] > rcond[0, 0] * s[0], s, jnp.nan)[:, None],)


def _first(find: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda a: (find(a, axis=-2, keepdims=True).astype(float),)


def _order(a: Any) -> Any:
    return (jnp.argsort(a, axis=-2).astype(float),)  # equal numbers as they come


def _without_nan(find: Callable[..., Any]) -> Callable[..., Any]:
    """What finds something: NaN, where one of the numbers is NaN."""

    def found(*given: Any) -> Any:
        has_nan = sum(jnp.isnan(each).any() for each in given)
        return tuple(jnp.where(has_nan, jnp.nan, each) for each in find(*given))

    return found


def _gather(x: Any, index: Any) -> Any:
    found = jnp.take_along_axis(x, index.astype(int), axis=-2)
    return (jnp.where((index < -x.shape[-2]) | (index >= x.shape[-2]), jnp.nan, found),)


def _scatter(g: Any, index: Any, like: Any) -> Any:
    rows = jnp.zeros((*g.shape[:-2], like.shape[-2], g.shape[-1])).reshape(-1, like.shape[-2], g.shape[-1])
    at = index.astype(int).reshape(-1, index.shape[-2])
    added = rows.at[jnp.arange(len(rows))[:, None], at].add(g.reshape(-1, *g.shape[-2:]))
    return (added.reshape(*g.shape[:-2], *rows.shape[1:]),)


_FINDING: dict[str, Callable[..., Any]] = {
    "argsort": _order,
    "stable argsort": _order,
    "argmax": _first(jnp.argmax),
    "argmin": _first(jnp.argmin),
}

_FORWARD: dict[str, Callable[..., tuple[Any, ...]]] = {
    "matmul": lambda a, b: (jnp.matmul(a, b),),
    "solve": lambda a, b: (jnp.linalg.solve(a, b),),
    "solve with the lower triangle": _triangular(lower=True),
    "solve with the upper triangle": _triangular(lower=False),
    "inv": lambda a: (jnp.linalg.inv(a),),
    "det": lambda a: (_determinant(a),),
    "cofactors": lambda a: (_determinant(a) * jnp.linalg.inv(a).swapaxes(-1, -2),),
    "logdet": lambda a: tuple(part[..., None, None] for part in jnp.linalg.slogdet(a)),
    "cholesky": lambda a: (jax.lax.linalg.cholesky(a, symmetrize_input=False),),
    "qr": lambda a: tuple(jnp.linalg.qr(a)),
    "eigh": _eigen("L"),
    "eigh of the upper triangle": _eigen("U"),
    "gaps of eigenvalues": _gaps,
    "svd": _singular,
    "gaps of singular values": _gaps,
    "pinv": lambda a: (jnp.linalg.pinv(a, rtol=1e-15),),  # NumPy's
    "singular values": _singular_of_full_rank,
    "expm": lambda a: (linalg.expm(a),),
    "fft": _fourier,
    "gather": _gather,
    "scatter": _scatter,
    **_FINDING,
    **{f"{name} of Values": _without_nan(find) for name, find in _FINDING.items()},
}


@cache
def on_jax(function: ArrayFunction) -> Callable[..., Any]:
    """A function of arrays as a function of JAX's arrays, which JAX can differentiate."""
    if function.is_gradient:  # which consists of others

        def gradient(*given: Any) -> tuple[Any, ...]:
            with calling(on_jax):
                return function.forward(*given)

        return gradient
    forward = _FORWARD[function.name]

    call = jax.custom_vjp(lambda *operands: forward(*map(jnp.asarray, operands)))

    def going(*operands: Any) -> Any:
        results = call(*operands)
        return results, (results, operands)

    def coming(kept: Any, seeds: Any) -> tuple[Any, ...]:
        results, operands = kept
        with calling(on_jax):
            return tuple(function.rule(seeds, results, operands, [True] * len(operands)))

    call.defvjp(going, coming)
    differentiable: Callable[..., Any] = call
    return differentiable


class ArraysOnJax:
    """Runs a function of arrays, and its rule, on JAX; XLA compiles both at the first call.

    They compute in float64, also between programs that compute in float32.

    Args:
        function: what it is.
    """

    def __init__(self, function: ArrayFunction) -> None:
        self._function = function
        self._rules: dict[tuple[bool, ...], Callable[..., Any]] = {}
        self._forward = jax.jit(on_jax(function))

    def forward(self, *operands: Floats) -> Sequence[Any]:
        """The results."""
        found: Sequence[Any] = self._run(self._forward, *operands)
        return found

    def rule(
        self, seeds: Sequence[Floats], results: Sequence[Floats], operands: Sequence[Floats], wanted: Sequence[bool]
    ) -> Sequence[Any]:
        """The gradients of the operands that are wanted."""
        if (key := tuple(wanted)) not in self._rules:
            self._rules[key] = jax.jit(self._contributions(key))
        found = iter(self._run(self._rules[key], list(seeds), list(results), list(operands)))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def _contributions(self, wanted: tuple[bool, ...]) -> Callable[..., Any]:
        def of_gradient(seeds: Any, results: Any, operands: Any) -> list[Any]:
            _, back = jax.vjp(on_jax(self._function), *operands)
            return [each for each, is_wanted in zip(back(tuple(seeds)), wanted, strict=True) if is_wanted]

        def by_rule(seeds: Any, results: Any, operands: Any) -> list[Any]:
            with calling(on_jax):
                found = self._function.rule(seeds, results, operands, wanted)
            return [each for each, is_wanted in zip(found, wanted, strict=True) if is_wanted]

        return of_gradient if self._function.is_gradient else by_rule

    def _run(self, function: Callable[..., Any], *given: Any) -> Any:
        check_process()
        with in_float64(True):
            return jax.tree.map(np.asarray, function(*given))
