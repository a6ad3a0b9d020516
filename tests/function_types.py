"""The types of the public primitives, as functions and as methods of Value.

    python -m tests.function_types     writes micrograd/engine/functions.pyi again, from the table

Type checkers and editors read that file; functions.py makes the functions themselves.
"""

import inspect
import re
import textwrap
from pathlib import Path

STUB = Path(__file__).parents[1] / "micrograd" / "engine" / "functions.pyi"
COMMAND = "python -m tests.function_types"

TEXT = '''\
"""The types of functions.py. Do not edit: `{command}` writes this file from the table."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numpy import ndarray

from micrograd.engine.node import Node
from micrograd.engine.value import Value

# fmt: off
__all__ = [
{names}
]
# fmt: on

_Self = TypeVar("_Self")
# What a function of one operand is given is what it gives; a float for an int.
_Scalar = TypeVar("_Scalar", Value, float, Value | float, ndarray[Any, Any])

def publish(make: Callable[..., Any]) -> None: ...

class _OfOne(Protocol):
    """A function of one operand. Not def: Mypy infers less of a call that such a generic function is passed to."""

    def __call__(self, x: _Scalar) -> _Scalar: ...

{functions}

class FunctionMethods(Node):
{methods}
'''


def text() -> str:
    """What functions.pyi ought to be."""
    from micrograd.engine import functions

    made = {name: getattr(functions, name) for name in sorted(functions.__all__, key=_in_order)}
    names = {**{name: name for name in made}, **functions.METHODS_FOR_NUMPY}
    written = TEXT.format(
        command=COMMAND,
        names=textwrap.indent(textwrap.fill(", ".join(f'"{name}"' for name in made), 116), " " * 4),
        functions="\n".join(map(_function, made, made.values())),
        methods="\n".join(_method(name, made[ours]) for name, ours in names.items()),
    )
    return re.sub(r"\n{3,}", "\n\n", written)


def _in_order(name: str) -> list[int | str]:
    """A key that puts log2 before log10, as Ruff does."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _function(name: str, function: object) -> str:
    operands = _operands(function)
    about, *_ = inspect.getdoc(function).splitlines()
    if len(operands) == 1:
        return f'{name}: _OfOne\n"""{about}"""'
    return f'\ndef {name}({operands[0]}: Any, {operands[1]}: Any) -> Any:\n    """{about}"""\n'


def _method(name: str, function: object) -> str:
    _, *others = _operands(function)
    return f"    def {name}(self{f', {others[0]}: Any) -> Any' if others else ': _Self) -> _Self'}: ..."


def _operands(function: object) -> list[str]:
    return list(inspect.signature(function).parameters)


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
