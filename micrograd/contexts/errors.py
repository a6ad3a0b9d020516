"""errors: infinities and NaN in place of errors of arithmetic, as NumPy gives them.

Python's functions raise where no float is the answer: math.exp(1000), 1 / 0, math.log(-1). A sampler or a solver that
tries a step too long wants an infinity instead, and takes a shorter one. Inside, a recorder gives each node a primitive
that computes what its own does, and where that raises what NumPy gives, forward and in its rules.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from micrograd._support.axes import required_numpy
from micrograd.contexts.no_grad import quiet
from micrograd.engine.applying import record
from micrograd.engine.operations import Operations
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import Recorder, RecorderContext, using
from micrograd.engine.tracer import Tracer
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.recorder import Contributions

# What NumPy calls the primitives that can raise.
_OF_NUMPY = {name: name for name in ("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos")}
_OF_NUMPY |= {name: name for name in ("tan", "sinh", "cosh", "hypot")}
_OF_NUMPY |= {"asin": "arcsin", "acos": "arccos", "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2"}
_OF_NUMPY |= {"pow": "power", "div": "divide"}


class errors(RecorderContext):  # noqa: N801  # used as a function is, as np.errstate
    """Let operations give infinity or NaN, as NumPy does, instead of arithmetic errors.

    By default, operations raise errors. Only ``+ - * / **`` give infinity for a result that is too large;
    ``mg.detect_anomaly`` finds them, and ``fit`` and the optimisers refuse infinite numbers. Derivatives follow the
    setting if the graph was made inside; that of a compiled function, if its ``backward()`` is also inside. At calls
    with a number that is not finite, a compiled function runs uncompiled. In ``fit``, the final loss of an example
    must still be finite.

    A context manager, and a decorator of functions (not of generators and coroutines, which run later). Holds for this
    thread or asyncio task only. An inner block replaces the outer one.

    Args:
        overflow: "inf" if the result of a function is too large for a float, as that of exp(1000); or "raise".
        divide: "inf" if finite numbers give infinity exactly, as 1 / 0 and log(0) do; or "raise".
        invalid: "nan" if there is no result, as for log(-1) and 0 / 0; or "raise".

    Raises:
        ValueError: for another setting.
        ImportError: if NumPy is not installed.

    Example:
        >>> import micrograd as mg
        >>> with errors(overflow="inf", invalid="nan"):
        ...     mg.exp(Value(1000.0)).data, mg.log(Value(-1.0)).data
        (inf, nan)
    """

    def __init__(
        self,
        *arguments: object,
        overflow: Literal["raise", "inf"] = "raise",
        divide: Literal["raise", "inf"] = "raise",
        invalid: Literal["raise", "nan"] = "raise",
    ) -> None:
        super().__init__(*arguments)
        given = {"overflow": (overflow, "inf"), "divide": (divide, "inf"), "invalid": (invalid, "nan")}
        for name, (setting, instead) in given.items():
            if setting not in ("raise", instead):
                raise ValueError(f'{name} must be "raise" or "{instead}", not {setting!r:.80}')
        required_numpy()
        self._settings = {"overflow": overflow, "divide": divide, "invalid": invalid}
        self._allowed = frozenset(name for name, (setting, _) in given.items() if setting != "raise")

    def recorder(self, outer: Recorder | None) -> Recorder:
        """A recorder around the outer one. A traced program computes as outside."""
        if isinstance(outer, Tracer):
            return outer
        return _Forgiving(outer.inner if isinstance(outer, _Forgiving) else outer, self._allowed)

    def _recreate_cm(self) -> errors:
        return type(self)(**self._settings)  # type: ignore[arg-type]  # they were checked


class _Forgiving(Recorder):
    """The recorder that lets an inner one make nodes of forgiving primitives; inner is None where the operators do."""

    lets_programs_run = True

    def __init__(self, inner: Recorder | None, allowed: frozenset[str]) -> None:
        self.inner, self._allowed = inner, allowed
        outer = inner or Recorder()
        self.remembers, self.watches_gradients = outer.remembers, outer.watches_gradients
        self.remembers_calls = inner is None or inner.remembers_calls
        self.lets_programs_run = inner is None or inner.lets_programs_run

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Apply a primitive, which raises only what is not allowed."""
        own = _forgiving(primitive, self._allowed)
        return record(own, operands) if self.inner is None else self.inner.apply(own, *operands)

    def keeps(self, node: Any) -> bool:
        """What the inner recorder says."""
        return self.inner is None or self.inner.keeps(node)

    def contributions(self, node: Any, gradient: Any, give: Callable[[], Contributions]) -> Contributions:
        """What a node gives to its operands, which the inner recorder may look at."""
        return give() if self.inner is None else self.inner.contributions(node, gradient, give)

    def under_no_grad(self) -> Recorder:
        """The same under no_grad."""
        return _Forgiving(quiet(self.inner), self._allowed)

    def under_derivative(self) -> Recorder | None:
        """The same where a derivative is asked for under no_grad."""
        loud = self.inner and self.inner.under_derivative()
        return _Forgiving(loud, self._allowed) if loud else None


class _Forgiven(Primitive):
    """A primitive that raises only what is not allowed."""

    __slots__ = ("original",)

    original: Primitive

    def __reduce__(self) -> tuple[Any, ...]:
        return self.original.__reduce__()  # a pickle has the plain one


_known: dict[tuple[Primitive, frozenset[str]], Primitive] = {}


def _forgiving(primitive: Primitive, allowed: frozenset[str]) -> Primitive:
    """The primitive that computes what this one does, and infinity or NaN where it raises."""
    if type(primitive) is not Primitive:
        return primitive  # that of a single node: it has the forward pass behind it
    key = primitive, allowed
    if (found := _known.get(key)) is None:
        rules = [rule and partial(_forgiving_rule, rule, allowed) for rule in primitive.derivatives]
        forward = partial(_forward, primitive, allowed)
        found = own = _Forgiven(primitive.name, primitive.symbol, forward, *rules, domain=primitive.domain)
        own.settings, own.original = primitive.settings, primitive
        if not primitive.settings:  # those with settings live as long as they are in use
            _known[key] = found
    return found


def _forward(primitive: Primitive, allowed: frozenset[str], *inputs: float) -> float:
    try:
        return primitive.forward(*inputs)
    except (ArithmeticError, ValueError) as error:
        result = _ieee(primitive, inputs)
        kind = "invalid" if math.isnan(result) else "overflow" if isinstance(error, OverflowError) else "divide"
        if kind not in allowed:
            raise
        return result


def _ieee(primitive: Primitive, inputs: tuple[float, ...]) -> float:
    """What a primitive gives for numbers of NumPy; where it raises for these, too, infinity or NaN."""
    np = required_numpy()
    try:
        with np.errstate(all="ignore"):
            return float(_on_numpy(primitive)(*map(np.float64, inputs)))
    except OverflowError:
        return math.inf
    except (ArithmeticError, ValueError):
        return math.nan
    finally:
        np.add(0.0, 0.0)  # takes back the flags of the processor, of which a function of NumPy around this would warn


def _on_numpy(primitive: Primitive) -> Callable[..., Any]:
    if primitive.name in _OF_NUMPY:
        found: Callable[..., Any] = getattr(required_numpy(), _OF_NUMPY[primitive.name])
        return found
    if primitive.composite:
        return partial(primitive.composite, Operations(_on_numpy))
    return primitive.forward


def _forgiving_rule(rule: Callable[..., Any], allowed: frozenset[str], *operands: Any) -> Any:
    """The gradient that a rule gives; where it raises, what it gives when its operations do not."""
    try:
        return rule(*operands)
    except (ArithmeticError, ValueError, TypeError):
        with using(_Forgiving(None, allowed)):
            given = [x if isinstance(x, Value) else Value(x, requires_grad=False) for x in operands]
            result = rule(*given)
        return result if any(isinstance(x, Value) for x in operands) else result.data
