"""Variables: what is in those of a function while it is traced, to find whether it does the same again.

Python is deterministic: what a function does next follows from where it stands, from what is in its variables, and from
what these lead to. Numbers of the trace are not looked at: the function cannot do so either.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd.compiler.guards.structure import Same, is_named_tuple
from micrograd.compiler.tracing.body import UnlikeError
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape

if TYPE_CHECKING:
    from types import FrameType

_DEEPEST = 50  # containers in one another
ITERATORS = tuple(map(type, (iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), reversed([]))))


class Look:
    """Looks at variables.

    Args:
        tape: whose numbers are told apart from all else.

    Attributes:
        state: the positions of these numbers.
        kinds: which symbols stand for them.
        count: how many objects were looked at.
    """

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self.state: list[int] = []
        self.kinds: list[type[Symbol]] = []
        self.count = 0
        self._numbers: dict[int, int] = {}  # of what is in variables, so that it lives until all are looked at

    def frame(self, frame: FrameType) -> Any:
        """Where a function stands, and its variables."""
        variables = frame.f_locals
        return frame.f_code, frame.f_lasti, tuple((name, self.at(item)) for name, item in variables.items())

    def at(self, item: Any, depth: int = 0) -> Any:
        """What is known of an object; numbers of the tape are taken note of.

        Raises:
            UnlikeError: if it may have changed unseen.
        """
        kind = type(item)
        self.count += 1
        if depth > _DEEPEST or (issubclass(kind, Symbol) and item._tape is not self._tape):
            raise UnlikeError
        inside = partial(self.at, depth=depth + 1)
        if isinstance(item, Tape):
            return "tape"
        if issubclass(kind, Symbol):
            self.state.append(item._position)
            self.kinds.append(kind)
            return kind, item._position in self._tape.attributes
        if kind is float:
            return kind, item.hex()
        if kind in _PLAIN:
            return kind, item
        if issubclass(kind, (np.number, np.bool_)):
            return kind, item.tobytes()
        if kind is tuple or is_named_tuple(kind):
            return kind, tuple(map(inside, item))
        if kind is list:
            return kind, self._number(item), tuple(map(inside, item))
        if kind is dict:
            return kind, self._number(item), tuple((inside(name), inside(part)) for name, part in item.items())
        if kind in (enumerate, zip, *ITERATORS):
            return kind, inside(item.__reduce__()[1:])
        if kind is FunctionType:
            reads = item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__
            return kind, item.__code__, *map(inside, reads)
        if kind is CellType:
            return kind, inside(content(item))
        if kind is MethodType:
            return kind, inside(item.__func__), inside(item.__self__)
        if kind is partial:
            return (
                kind,
                self._number(item),
                inside(item.func),
                inside(item.args),
                inside(item.keywords),
                inside(vars(item)),
            )
        if is_array(item) and item.dtype == object:
            return kind, self._number(item), item.shape, tuple(map(inside, item.ravel().tolist()))
        if is_array(item):
            return kind, self._number(item), item.dtype, item.shape, item.tobytes()
        return self.other(item, depth)

    def other(self, item: Any, depth: int) -> Any:
        """What is known of an object of any other class: which one it is, so one that was made meanwhile is unlike."""
        return type(item), Same(item)

    def _number(self, container: Any) -> int:
        """Which of the containers it is, as two variables may have one and the same."""
        return self._numbers.setdefault(id(container), len(self._numbers))


_PLAIN = frozenset((int, bool, str, bytes, complex, type(None), range, slice, CodeType))


def content(cell: CellType) -> Any:
    """What is in a cell; of an empty one, something that is in no other."""
    try:
        return cell.cell_contents
    except ValueError:
        return content


def in_slots(item: Any) -> list[tuple[type, str, Any]]:
    """What is in the slots of an object: the class that has each, its name, and what it holds."""
    found = []
    for base in type(item).__mro__:
        for slot in [each for each in vars(base).values() if type(each) is MemberDescriptorType]:
            with suppress(AttributeError):  # it is empty
                found.append((base, slot.__name__, slot.__get__(item)))
    return found
