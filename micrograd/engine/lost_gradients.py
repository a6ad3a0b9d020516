"""GradientWarning: a number is computed from a Value's float where the derivative of the Value was probably meant.

``math.exp(v)`` asks ``v`` for its float, and so does the assignment of ``v`` to an element of an array of floats. Both
give a plain number, through which no gradient flows. ``float(v)`` asks for the same but says so. ``__float__`` cannot
see what calls it; the instruction that the calling frame is at shows it. The answer is kept for each instruction.
"""

from __future__ import annotations

import os
import sys
import warnings
from dis import get_instructions, stack_effect
from typing import TYPE_CHECKING, Any

from micrograd._support.callers import is_of_package
from micrograd._support.checks import is_array, is_number
from micrograd.engine.recorder import recorder_on_top

if TYPE_CHECKING:
    from collections.abc import Iterable
    from dis import Instruction
    from types import CodeType, FrameType


class GradientWarning(UserWarning):
    """A gradient is lost unintentionally, or ``==`` compares a Value with a number.

    Example:
        >>> import math, warnings
        >>> from micrograd import GradientWarning, Value
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     print(math.sqrt(Value(4.0)))
        2.0
        >>> caught[0].category is GradientWarning
        True
    """


# Names that say in a call that a plain number is meant, or whose results have no derivative but 0.
_PLAIN = frozenset({"float", "int"})
_EXPLICIT = _PLAIN | {"complex", "bool", "float64", "float32", "astype", "Decimal", "Fraction", "print", "format"}
_EXPLICIT |= {"floor", "ceil", "trunc", "isclose", "isfinite", "isinf", "isnan"}
_OF_ARRAYS = {"numpy", "scipy"}  # they convert whatever they are given: what they write says nothing of the user
_SHOWING = {"IPython", "PIL", "_pytest", "bokeh", "logging", "matplotlib", "plotly", "seaborn", "tqdm", "unittest"}
_LIBRARIES = (os.path.join(os.path.dirname(os.__file__), ""), "site-packages", "dist-packages")
_INSTEAD = {
    "fabs": "abs(v)",
    "pow": "v ** n",
    "fsum": "sum(values)",
    "sumprod": "mg.dot",
    "gamma": "mg.exp(mg.lgamma(v))",
    "interp1d": "np.interp",
}
_OF_NUMPY = {"cholesky", "det", "eigh", "eigvalsh", "inv", "lstsq", "pinv", "qr", "svd"}  # so SciPy calls them, too
_EQUALITY = (
    "`==` compares Values by identity, so a Value never equals a number: write mg.numbers(p) == y for an array p of "
    "Values, and v.data == 1.0 for a single one"
)
_IN_LIBRARY = "(see below)"  # in the place of advice that depends on which function of a library was called
_MOST_KEPT = 4096
_ATTRIBUTES = {"LOAD_METHOD", "LOAD_ATTR"}  # a method leaves its object on the stack, too
_kept: dict[tuple[int, int], tuple[CodeType, str]] = {}  # the code is kept so that no other gets its id


def float_taken() -> None:
    """Warn if the float of a Value is taken by code that does not say so; called by ``__float__`` alone."""
    frame = sys._getframe(2)
    kept = _kept.get((id(frame.f_code), frame.f_lasti))
    what = _examined(frame) if kept is None else kept[1]
    if what and not (is_of_package(frame) or _is_shown(frame)):
        _warn_of_loss(frame, what.replace(_IN_LIBRARY, _instead_of_library(frame)))


def rounded() -> None:
    """Warn that a Value that is rounded is a plain number; called by ``__round__`` alone."""
    _warn_of_loss(sys._getframe(2), "round() gives a plain number")


def compared_with_number(number: Any) -> None:
    """Warn if a Value is compared by == with a number; called by ``__eq__`` alone."""
    if is_number(number) and not is_of_package(frame := sys._getframe(2)):
        _warn(_users_frame(frame), _EQUALITY)


def array_compared_with_numbers(arrays: Iterable[Any]) -> None:
    """Warn if one of the arrays that are compared by == is of numbers, or a number."""
    if any(is_number(x.flat[0] if is_array(x) and x.size else x) for x in arrays):
        _warn(_users_frame(sys._getframe(1)), _EQUALITY)


def _warn_of_loss(frame: FrameType, what: str) -> None:
    recorder = recorder_on_top()
    if recorder is None or recorder.remembers:
        _warn(
            _users_frame(frame),
            f"the gradient of a Value is lost: {what}. If only the number is meant, write float(v), mg.detach(v), or "
            "mg.numbers(array)",
        )


def _warn(frame: FrameType, message: str) -> None:
    """Warn; the filters of Python show a message once per line, so it is the same for all Values."""
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "")
    warnings.warn_explicit(message, GradientWarning, frame.f_code.co_filename, frame.f_lineno, module, registry)


def _users_frame(frame: FrameType) -> FrameType:
    """The innermost frame that is not of a library; the given one if there is none."""
    outer: FrameType | None = frame
    while outer is not None and (is_of_package(outer) or any(map(outer.f_code.co_filename.__contains__, _LIBRARIES))):
        outer = outer.f_back
    return frame if outer is None else outer


def _is_shown(frame: FrameType) -> bool:
    """Whether the number is only shown, or compared with an expected one: by a library for plots or for tests."""
    user, inner = _users_frame(frame), frame
    while inner is not user and inner.f_back is not None:
        name = inner.f_globals.get("__name__", "")
        if name.partition(".")[0] in _SHOWING or name.startswith("numpy.testing"):
            return True
        inner = inner.f_back
    return False


def _examined(frame: FrameType) -> str:
    """What loses the gradient at the instruction that a frame is at; empty where the program says that it may."""
    code, offset = frame.f_code, frame.f_lasti
    instructions = list(get_instructions(code))
    number = next(n for n, instruction in enumerate(instructions) if instruction.offset == offset)
    current = instructions[number]
    library = frame.f_globals.get("__name__", "").partition(".")[0]
    if "CALL" in current.opname:
        function, names = _names_in_call(instructions, number)
        words = _PLAIN if library in _OF_ARRAYS else _EXPLICIT
        what = "" if words.intersection(names) else _lost_in_call(function)
    elif "COMPARE" in current.opname or current.opname == "BINARY_MODULO" or current.argrepr == "%":
        what = ""  # neither a comparison nor a text has a derivative
    elif current.opname.startswith("STORE"):
        what = "an array of floats keeps its number only: write a = mg.array(a) before, or collect Values in a list"
    else:
        what = "its float is taken here: write the computation with operators and functions of mg"
    if what and library in _OF_ARRAYS:
        what = f"{library} converts it to a float: {_IN_LIBRARY}"
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[id(code), offset] = code, what
    return what


def _instead_of_library(frame: FrameType) -> str:
    """What to write in the place of the function of a library that the user called."""
    user, inner, advice = _users_frame(frame), frame, ""
    while inner.f_back is not None and inner is not user:  # a decorator may be between the user and the function
        name = inner.f_code.co_name
        if name == "__init__":
            name = type(inner.f_locals["self"]).__name__
        if name in _OF_NUMPY and inner.f_globals.get("__name__", "").startswith("scipy.linalg"):
            advice = f"write np.linalg.{name}"
        elif name in _INSTEAD or name in sys.modules["micrograd"].__all__:
            advice = f"write {_INSTEAD.get(name, f'mg.{name}')}"
        inner = inner.f_back
    return advice or "write the computation with operators and functions of mg"


def _lost_in_call(name: str) -> str:
    function = name.rpartition(".")[2]
    if function in _INSTEAD:
        advice = f"write {_INSTEAD[function]}"
    elif function in sys.modules["micrograd"].__all__:
        advice = f"write mg.{function}"
    else:
        advice = "write it with operators and functions of mg"
    return f"{name or 'the function'} computes with its float. To keep the gradient, {advice}"


def _names_in_call(instructions: list[Instruction], call: int) -> tuple[str, set[str]]:
    """The name of the function that is called, and all names in the call but those of functions called inside of it."""
    at = getattr(instructions[call], "positions", None)
    span = _expression if at is None or at.col_offset is None else _columns
    begin, end = span(instructions, call)
    others = {span(instructions, n)[0] for n, other in enumerate(instructions) if "CALL" in other.opname} - {begin}
    function, names = [], set()
    for number, instruction in enumerate(instructions):
        if not instruction.opname.startswith("LOAD_"):
            continue
        first, last = span(instructions, number)
        if begin <= first and last <= end and first not in others:
            name = str(instruction.argval)
            names.add(name)
            if first == begin and name.isidentifier():
                function.append(name)
    return ".".join(function), names


def _columns(instructions: list[Instruction], number: int) -> tuple[Any, Any]:
    """Where the source of an instruction begins and ends."""
    at: Any = getattr(instructions[number], "positions", None)  # which Python 3.10 does not have
    return (at.lineno or 0, at.col_offset or 0), (at.end_lineno or 0, at.end_col_offset or 0)


def _expression(instructions: list[Instruction], number: int) -> tuple[Any, Any]:
    """The first and the last instruction of an expression, by what each does to the stack; for Python 3.10."""
    last, instruction = number, instructions[number]
    missing = 1 if instruction.opname not in _ATTRIBUTES else 1 + stack_effect(instruction.opcode, instruction.arg)
    while True:
        instruction = instructions[number]
        if instruction.opname == "JUMP_FORWARD":  # the end of one of two branches: only the other one is counted
            other = instructions[number + 1].offset
            number = next(n for n, each in enumerate(instructions) if "JUMP" in each.opname and each.argval == other)
            instruction = instructions[number]
        missing -= stack_effect(instruction.opcode, instruction.arg, jump=False)
        if missing <= 0 or number == 0:
            return number + (instruction.opname == "PUSH_NULL"), last
        number -= 1
