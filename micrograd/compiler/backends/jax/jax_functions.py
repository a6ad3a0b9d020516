"""The forward functions of primitives on JAX's arrays, and their derivatives for JAX.

The base operations are written here with jax.numpy. Composites follow from the formulas that they have for everybody,
and any other primitive is called back in Python, number by number:

    softplus(on, x)    ->    on.maximum(x, 0.0) + on.log1p(on.exp(-on.abs(x)))    on arrays

XLA fuses what it is handed, and would round a product and a sum once instead of twice. A product that is compared
with itself keeps its own rounding: the choice between it and NaN stands between the product and the sum, and costs
nothing that can be measured. In the same way a quotient by one number for a whole array stays a quotient.

JAX differentiates each primitive by its own rule in the table, and not by its formula: that of sinc is 1 very close to
0, so JAX would find it to be flat there, and it finds a slope of 1 for abs at 0.
"""

from __future__ import annotations

import math
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from micrograd._support.callers import warn_user
from micrograd._support.checks import Operand
from micrograd.compiler.backends.shared.python_calls import Raised, in_python
from micrograd.compiler.backends.shared.written import Written, functions_of
from micrograd.engine import further_primitives, primitives
from micrograd.engine.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.numbers import Floats
    from micrograd.engine.primitive import Primitive


def rounded(product: Any) -> Any:
    """A product with a rounding of its own, whatever is done with it next."""
    return lax.select(lax.eq(product, product), product, lax.full_like(product, math.nan))


def added_to_zero(x: Any) -> Any:
    """0 + x, which is 0 where x is -0: XLA leaves out a sum with 0."""
    return jnp.where(x == 0, 0.0, x)


def _quotient(x: Any, y: Any) -> Any:
    # With a divisor that depends on x, XLA cannot multiply by its inverse.
    x, y = jnp.broadcast_arrays(x, y)
    return x / lax.select(lax.eq(x, x), y, lax.full_like(y, math.nan))


def _as_number(condition: Any) -> Any:
    return jnp.where(condition, 1.0, 0.0)  # of a bool times -0, XLA would make 0


def _power(x: Any, y: Any) -> Any:
    # C has a power of minus infinity with any exponent
    return jnp.where((x == -jnp.inf) & (y != jnp.rint(y)), jnp.nan, lax.pow(*jnp.broadcast_arrays(x, y)))


def _log1p(x: Any) -> Any:
    return jnp.where(x < -0.25, jnp.log(1 + x), jnp.log1p(x))  # XLA's own is off by 100 units at -0.41


def _atanh(x: Any) -> Any:
    size = jnp.abs(x)
    return jnp.copysign(0.5 * jnp.log1p(_quotient(2 * size, 1 - size)), x)


def _halves(x: Any) -> tuple[Any, Any]:
    """Half of exp(abs(x)), and half of exp(-abs(x)), with no digits lost where x is large."""
    root = jnp.exp(0.5 * jnp.abs(x))
    return rounded(0.5 * root * root), 0.5 / root / root


def _sinh(x: Any) -> Any:
    grown, shrunk = _halves(x)
    return jnp.where(jnp.abs(x) < 1, jnp.sinh(x), jnp.copysign(grown - shrunk, x))


def _cosh(x: Any) -> Any:
    grown, shrunk = _halves(x)
    return grown + shrunk


def _whole_divisor(x: Any, y: Any) -> tuple[Any, Any]:
    """What is left of x, with the sign of y; and the quotient without it, still to be rounded: as Python does it."""
    left = lax.rem(*jnp.broadcast_arrays(x, y))
    moved = ((left < 0) != (y < 0)) & (left != 0)
    quotient = _quotient(x - left, y)
    return jnp.where(moved, left + y, left), jnp.where(moved, quotient - 1, quotient)


def _remainder(x: Any, y: Any) -> Any:
    left, _ = _whole_divisor(x, y)
    return jnp.where(left == 0, jnp.where(y < 0, -0.0, 0.0), left)


def _floor_divide(x: Any, y: Any) -> Any:
    _, quotient = _whole_divisor(x, y)
    whole = jnp.floor(quotient)
    whole = jnp.where(quotient - whole > 0.5, whole + 1, whole)
    return jnp.where(quotient == 0, _quotient(x, y) * 0.0, whole)


# The base operations on arrays. What is made of them follows, and any other primitive is called element by element.
FUNCTIONS: dict[Primitive, Callable[..., Any]] = {
    **functions_of(jnp),
    primitives.detach: lax.stop_gradient,
    primitives.is_zero: lambda x: _as_number(x == 0),
    primitives.equal: lambda x, y: _as_number(x == y),
    primitives.less: lambda x, y: _as_number(x < y),
    primitives.less_equal: lambda x, y: _as_number(x <= y),
    primitives.mul: lambda x, y: rounded(x * y),
    primitives.div: _quotient,
    primitives.pow: _power,
    primitives.log1p: _log1p,
    primitives.sinh: _sinh,
    primitives.cosh: _cosh,
    further_primitives.erf: lax.erf,
    further_primitives.erfc: lax.erfc,
    further_primitives.exp2: lambda x: lax.pow(jnp.full_like(x, 2.0), x),
    further_primitives.atanh: _atanh,
    further_primitives.floor_divide: _floor_divide,
    further_primitives.remainder: _remainder,
}


_OPERATORS = {"+": primitives.add, "-": primitives.sub, "*": primitives.mul, "/": primitives.div}
_COMPARISONS = {"<": primitives.less, "<=": primitives.less_equal, "==": primitives.equal}


class Number(Written, Operand):
    """An array of JAX that formulas and rules compute with; the operators are those of the table."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @staticmethod
    def _apply(primitive: Primitive, *operands: Any) -> Number:
        """Apply a primitive, so that JAX can differentiate what it gives."""
        return Number(differentiable(primitive)(*map(array_of, operands)))

    def operation(self, sign: str, x: Any, y: Any) -> Number:
        """The array of an operator; a power can be differentiated by its own rules."""
        if sign == "**":
            return Number._apply(primitives.pow, x, y)
        return Number(FUNCTIONS[_OPERATORS[sign]](array_of(x), array_of(y)))

    def comparison(self, sign: str, other: Any) -> Number:
        """The array of a comparison."""
        x, y = (other, self) if sign[0] == ">" else (self, other)
        return Number(FUNCTIONS[_COMPARISONS[sign.replace(">", "<")]](array_of(x), array_of(y)))

    def __neg__(self) -> Number:
        return Number(-self.array)

    def __abs__(self) -> Number:
        return Number._apply(primitives.abs, self)


def array_of(number: Any) -> Any:
    """The array of a Number, or of a plain number."""
    return number.array if isinstance(number, Number) else jnp.asarray(number, dtype=float)


def forward(primitive: Primitive) -> Callable[..., Any]:
    """A primitive's forward function on arrays.

    Example:
        >>> jax.config.update("jax_enable_x64", True)
        >>> forward(further_primitives.silu)(jnp.array([0.0, 100.0])).tolist()
        [0.0, 100.0]
    """
    if primitive in FUNCTIONS:
        return FUNCTIONS[primitive]
    if primitive.composite:
        formula = partial(primitive.composite, Operations(_on_numbers))
        return lambda *operands: array_of(formula(*map(Number, operands)))
    return _called_back(primitive)


def _on_numbers(primitive: Primitive) -> Callable[..., Number]:
    function = forward(primitive)
    return lambda *operands: Number(function(*map(array_of, operands)))


def differentiable(primitive: Primitive) -> Callable[..., Any]:
    """The same, with the derivatives that its rules give, of any order."""
    function = jax.custom_jvp(forward(primitive))

    def derivative(inputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        output = function(*inputs)
        given = [Number(one) for one in (jnp.ones(()), output, *inputs)]
        parts = [
            array_of(rule(*given)) * tangent
            for rule, tangent in zip(primitive.derivatives, tangents, strict=True)
            if rule is not None and not isinstance(tangent, SymbolicZero)
        ]
        if not parts:
            return output, SymbolicZero(jax.typeof(output).to_tangent_aval())
        return output, jnp.broadcast_to(sum(parts[1:], parts[0]), jnp.shape(output))  # the others may have more rows

    function.defjvp(derivative, symbolic_zeros=True)
    return function


class Functions(NamedTuple):
    """What kernels are made of.

    Attributes:
        of: gives the function of a primitive.
        with_slope_of: a function with the derivatives of another, which differs from it in its rounding alone.
    """

    of: Callable[[Primitive], Callable[..., Any]]
    with_slope_of: Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]


def _with_slope_of(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the derivatives of another.

    Of the rounded one JAX would choose again in the derivative, or find a slope of 0 at 0.
    """
    made = jax.custom_jvp(function)

    def derivative(inputs: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        moving = [position for position, tangent in enumerate(tangents) if not isinstance(tangent, SymbolicZero)]

        def of_moving(*found: Any) -> Any:
            given = dict(zip(moving, found, strict=True))
            return other(*(given.get(position, number) for position, number in enumerate(inputs)))

        _, tangent = jax.jvp(
            of_moving, [inputs[position] for position in moving], [tangents[position] for position in moving]
        )
        return made(*inputs), tangent

    made.defjvp(derivative, symbolic_zeros=True)
    return made


PLAIN = Functions(forward, lambda function, _: function)  # quicker to trace, where JAX does not differentiate
DIFFERENTIABLE = Functions(differentiable, _with_slope_of)


class Caught(Raised):
    """What primitives have raised while they were called back, in a run of what was traced inside of it.

    XLA would make an error of its own of it. So the run goes on with NaN, and whoever runs it raises the first.
    """

    def __enter__(self) -> None:
        self._token = _caught.set(self)

    def __exit__(self, *_: object) -> None:
        _caught.reset(self._token)


_caught: ContextVar[Caught | None] = ContextVar("caught", default=None)


def _called_back(primitive: Primitive) -> Callable[..., Any]:
    """A primitive's forward function, called number by number in Python; NaN where it raises."""
    if primitive not in _warned:
        _warned.add(primitive)
        warn_user(
            f"JAX calls primitive {primitive.name} back in Python, number by number: write its forward as a formula "
            "over other primitives (see micrograd.engine.primitive.composite), and XLA compiles it"
        )

    def function(*operands: Any) -> Any:
        operands = tuple(jnp.broadcast_arrays(*operands))
        result = jax.ShapeDtypeStruct(operands[0].shape, operands[0].dtype)
        call = _on_arrays_in_python(primitive, _caught.get())
        found = jax.pure_callback(call, result, *operands, vmap_method="broadcast_all")
        return jnp.where(operands[0] == 0, found, found)  # so that JAX 0.6 sees that it differs from device to device

    return function


def _on_arrays_in_python(primitive: Primitive, caught: Caught | None) -> Callable[..., Floats]:
    of_numbers = in_python(primitive, caught)

    def of_arrays(*operands: Any) -> Floats:
        arrays = [np.asarray(operand) for operand in operands]
        with np.errstate(all="ignore"):  # what fails is NaN; NumPy would warn of the processor's flags besides
            return np.asarray(np.frompyfunc(of_numbers, len(arrays), 1)(*arrays), dtype=arrays[0].dtype)

    return of_arrays


_warned: WeakSet[Primitive] = WeakSet()
