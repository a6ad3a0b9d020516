"""Words of the user's own program: which expression is refused, and what to write in its place.

It is imported where something is refused, and not before.
"""

from __future__ import annotations

import ast
import linecache
from dis import opname
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

# Functions that make as many elements as an int says, or arrange them so
_COUNTING = frozenset(
    [
        *("arange", "broadcast_to", "combinations", "empty", "eye", "full", "geomspace", "identity", "indices"),
        *("islice", "linspace", "logspace", "ones", "permutations", "range", "repeat", "reshape", "resize", "tile"),
        *("tri", "zeros"),
    ]
)
_LONGEST = 60  # characters of an expression


def in_words_of(frame: FrameType, what: str, instead: str, asks_for_an_int: bool) -> tuple[str, str]:
    """What is refused and what to write instead, in words of the expression that is running, where that says more.

    Args:
        frame: where the user's program is.
        what: which use of a number is refused, in general words.
        instead: what to write, in general words.
        asks_for_an_int: whether it is used as an index or a count.
    """
    text = running_expression(frame)
    try:
        expression = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:  # a statement
        return what, instead
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    function = getattr(expression, "func", None)
    if isinstance(expression, ast.Call) and getattr(function, "attr", getattr(function, "id", None)) in _COUNTING:
        return shown, _of_a_count([*expression.args, *(keyword.value for keyword in expression.keywords)])
    if not asks_for_an_int:
        return what, instead
    if isinstance(expression, ast.Call):
        return f"the int of a number, in {shown},", f"{instead} {_if_static(expression.args)}"
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Mult):
        count = _of_a_count([expression.left, expression.right])
        return shown, f"{count} A list times a number repeats the list; mg.array(list) can be multiplied."
    if isinstance(expression, ast.Subscript):
        if shown is not text:
            return shown, instead
        return shown, _of_an_index(expression, instead, _running_operation(frame))
    return what, instead


def running_expression(frame: FrameType) -> str:
    """The expression that a frame is at, as it is written: ``W[i]``. Empty where Python or its source cannot tell."""
    code = frame.f_code
    if not hasattr(code, "co_positions"):  # before Python 3.11
        return ""
    first, last, start, end = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return ""
    numbers = range(first, last + 1)
    lines = [linecache.getline(code.co_filename, number, frame.f_globals).encode() for number in numbers]
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    return " ".join(line.decode(errors="replace").strip() for line in lines)


def reads_an_element(frame: FrameType) -> bool:
    """Whether a frame is at what reads an element: ``W[i]``."""
    return _running_operation(frame).startswith("BINARY")


def _running_operation(frame: FrameType) -> str:
    """The name of the instruction that a frame is at. Since Python 3.12 it may be in the cache behind it."""
    codes = frame.f_code.co_code[frame.f_lasti :: -2]
    return next(name for name in map(opname.__getitem__, codes) if name != "CACHE")


def _of_a_count(operands: list[ast.expr]) -> str:
    return f"How many elements there are is static. {_if_static(operands)}"


def _if_static(operands: list[ast.expr]) -> str:
    names = {node.id for operand in operands for node in ast.walk(operand) if isinstance(node, ast.Name)}
    n = names.pop() if len(names) == 1 else "n"
    return (
        f"A number in the arguments is read at each call: where {n} is to be static, give range({n}) in its place, and "
        f"write len({n}); or let the function close over {n}."
    )


def _of_an_index(expression: ast.Subscript, instead: str, operation: str) -> str:
    sequence, index = ast.unparse(expression.value), expression.slice
    if operation in ("STORE_SUBSCR", "DELETE_SUBSCR"):
        shown = ast.unparse(index)
        return (
            f"Make another {sequence}, of mg.where({shown} == position, new, old) for each position and what is there."
        )
    indices = index.elts if isinstance(index, ast.Tuple) else [index]
    if any(isinstance(part, ast.Slice) for part in indices):
        return f"{instead} The length of a slice is static: write mg.where(position < number, x, 0) for what it takes."
    for part in indices:
        sequence = f"mg.take({sequence}, {ast.unparse(part)})"
    return f"Write {sequence}."
