"""detect_anomaly: find the operation that first gives a NaN or an infinity, forward or backward.

While it is on, a recorder does what the operators do and checks each result, and backpropagation checks each gradient
before any ``grad`` is set. A node does not know which line of the program made it. So the recorder gives each node a
separate primitive, and notes the line for that primitive.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from micrograd._support.callers import calling_line
from micrograd._support.checks import shown_call
from micrograd.contexts.no_grad import Everything, quiet
from micrograd.engine.applying import record
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import Recorder, RecorderContext
from micrograd.engine.tracer import Tracer
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType

    from micrograd.engine.recorder import Contributions

_lines: WeakKeyDictionary[Primitive, tuple[CodeType, int]] = WeakKeyDictionary()


class detect_anomaly(RecorderContext):  # noqa: N801  # used as a function is, as in PyTorch
    """Raise an error at the operation that first gives NaN or infinity. Slow: use it to find a fault, not to train.

    Forward, no operation may give NaN, or infinity from finite operands; it may pass on an infinity, such as a
    mask. Backward, every gradient that reaches a Value, or that an operation passes to its operands, must be
    finite; if one is not, no ``grad`` changes. The message names the operation, its numbers, the labels of its
    operands, and the calling line of your program. For the backward pass, that line is known for operations that
    ran inside this context.

    A context manager, and a decorator of functions (not of generators and coroutines, which run later).
    Holds for this thread or asyncio task only, also under no_grad.

    Raises:
        FloatingPointError: inside, at such an operation. One that raises an error by itself, such as the
            logarithm of 0, raises its usual error.

    Example:
        >>> x = Value(1e200, label="x")
        >>> with detect_anomaly():
        ...     y = x * x  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        FloatingPointError: (x = 1e+200) * (x = 1e+200) gives inf
          File "<doctest micrograd.contexts.anomaly.detect_anomaly[...]>", line 2, in <module>
            y = x * x  # doctest: +ELLIPSIS
    """

    def recorder(self, outer: Recorder | None) -> Recorder:
        """A detector around the outer recorder. Inside another detector, it replaces that one."""
        if isinstance(outer, Tracer):
            outer.refused(
                "looking at results", "Write `with mg.detect_anomaly():` around the call, which then runs eagerly."
            )
        return _Detector(outer.inner if isinstance(outer, _Detector) else outer)


class _Detector(Recorder):
    """The recorder that checks what an inner one makes; inner is None where the operators record."""

    watches_gradients = True

    def __init__(self, inner: Recorder | None) -> None:
        self.inner = inner
        self.remembers = inner is None or inner.remembers

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Apply a primitive, and refuse a NaN or a new infinity."""
        own = _of_one_node(primitive) if self._records() else primitive
        result = record(own, operands) if self.inner is None else self.inner.apply(own, *operands)
        if isinstance(result, Value):
            line = calling_line()
            _look_at(result, primitive, operands, line)
            _lines[own] = line
        return result

    def _records(self) -> bool:
        """Whether nodes are made: only these can have a line."""
        return self.inner is None or isinstance(self.inner, Everything)

    def keeps(self, node: Any) -> bool:
        """Check a hand-written operation, which no operator records."""
        line = calling_line()
        _look_at(node, node._primitive, node._operands(), line)
        _lines[node._primitive] = line
        return self.inner is None or self.inner.keeps(node)

    def contributions(self, node: Any, gradient: Any, give: Callable[[], Contributions]) -> Contributions:
        """What a node gives to its operands: finite gradients, for a finite one."""
        return _checked_contributions(node, gradient, give)

    def under_no_grad(self) -> Recorder:
        """Check what is computed under no_grad, too."""
        return _Detector(quiet(self.inner))

    def under_derivative(self) -> Recorder | None:
        """Check what is recorded where a derivative is asked for."""
        loud = self.inner and self.inner.under_derivative()
        return _Detector(loud) if loud else None


def _of_one_node(primitive: Primitive) -> Primitive:
    """A primitive that works as the given one does, and is used once."""
    if type(primitive) is not Primitive:
        return primitive  # it is the primitive of a single node already
    own = Primitive(
        primitive.name, primitive.symbol, primitive.forward, *primitive.derivatives, domain=primitive.domain
    )
    own.settings = primitive.settings
    return own


def _look_at(result: Value, primitive: Primitive, operands: Iterable[Any], line: tuple[CodeType, int]) -> None:
    """Refuse a NaN, and an infinity that was computed from finite numbers."""
    data = result._data
    if math.isfinite(data):
        return
    inputs = [operand._data if isinstance(operand, Value) else float(operand) for operand in operands]
    if math.isnan(data) or not any(map(math.isinf, inputs)):
        raise FloatingPointError(f"{shown_call(primitive, inputs, operands)} gives {data}\n{_shown(line)}")


def _checked_contributions(node: Value, gradient: Any, give: Callable[[], Contributions]) -> Contributions:
    """What a node gives to its operands, all of it finite."""
    line = _lines.get(node._primitive)
    position = f"\n{_shown(line)}" if line else ""
    if not math.isfinite(_number(gradient)):
        name = node.label or (shown_call(node._primitive, node._inputs(), node._operands()) if node._op else repr(node))
        raise FloatingPointError(f"the gradient that reaches {name} is {_number(gradient)}{position}")
    try:
        given = give()
    except (ArithmeticError, ValueError) as error:
        raise type(error)(f"{error}{position}") from error
    for operand, contribution in given:
        if not math.isfinite(_number(contribution)):
            call = shown_call(node._primitive, node._inputs(), node._operands())
            name = operand.label or f"operand {node._operands().index(operand) + 1}"
            shown = _number(contribution)
            raise FloatingPointError(
                f"the derivative of {call} by {name} gives {shown} for the gradient {_number(gradient)}{position}"
            )
    return given


def _number(gradient: Any) -> float:
    return gradient._data if isinstance(gradient, Value) else gradient


def _shown(line: tuple[CodeType, int]) -> str:
    """A line of the program as tracebacks show it."""
    import linecache  # here, because it imports tokenize and re

    code, number = line
    position = f'  File "{code.co_filename}", line {number}, in {code.co_name}'
    text = linecache.getline(code.co_filename, number).strip()
    return f"{position}\n    {text}" if text else position
