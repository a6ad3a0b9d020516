"""Indexing: ``table[i]`` of a list, with an index that is an argument, becomes what ``mg.take(table, i)`` writes.

A list asks its index for an int, and gives the element that is there. A symbol has no int, and Python has no hook that
could give another element. So where a trace is refused at such a place, the function runs once more, and has other code
meanwhile: that of its own source, in which each ``table[i]`` is a call. The call gives what ``table[i]`` gives, unless
the index is a symbol, and the table a list or a tuple of numbers of one kind, or of such rows, which are equally long.

The other code has the names, lines and columns of the first. Where there is no source, or it is not that of the code
any more, the index is refused.
"""

from __future__ import annotations

import ast
import linecache
from contextvars import ContextVar
from functools import lru_cache
from operator import attrgetter, is_not
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from micrograd._support.locks import new_lock
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.refusals import TraceError, refuse, refused_indices
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.symbols import BoolSymbol, IntSymbol, Picked
from micrograd.engine.commit import commit, setting
from micrograd.engine.copying import user_attributes
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FunctionType


Traced = TypeVar("Traced")

_CONTAINERS = (list, tuple)
_LOCK = new_lock()  # one trace at a time lets functions have other code
_MARK = "table[i], as micrograd traces it"  # the constant that becomes what is called
# The rows that were taken, each with its elements
_rows: ContextVar[list[tuple[list[Any], list[Any]]]] = ContextVar("rows")


def with_indices(run: Callable[[], Traced], reached: ClosedOver) -> Traced:
    """What a trace gives, which runs again where an index was refused and the function can have other code.

    Args:
        run: the trace.
        reached: what it can reach, as it was before.

    Raises:
        TraceError: if a row that was taken from a table is changed in place.
    """
    rows: list[tuple[list[Any], list[Any]]] = []
    token = _rows.set(rows)
    try:
        traced, error, refused = _attempt(run)
        if refused:
            with _LOCK:
                others = _OtherCode(reached)
                while refused and others.are_there_for(*refused[0]):
                    rows.clear()
                    traced, error, refused = others.attempt(run)
    finally:
        _rows.reset(token)
    if error is not None:
        raise error
    if any(len(row) != len(before) or any(map(is_not, row, before)) for row, before in rows):
        raise TraceError(
            "a row that was taken from a table is changed in place: a compiled function takes a copy of it, so nothing "
            "would be changed in the table. Change a copy, and return what is needed of it"
        )
    return traced


def _attempt(run: Callable[[], Traced]) -> tuple[Any, Exception | None, list[Any]]:
    """What a trace gives, or what it raises; and where it refused indices."""
    with refused_indices() as refused:
        try:
            return run(), None, refused
        except Exception as error:  # it is raised again, unless the trace runs again
            return None, error, refused


def watched(roots: list[tuple[str, Any]]) -> ClosedOver:
    """What can be reached, while no function has other code."""
    with _LOCK:
        return ClosedOver(roots)


class _Taken(Picked):
    """A symbol in the place of one of the Values in a table: it is not known which."""

    __slots__ = ()

    def __hash__(self) -> int:
        refuse("a Value of a table as a key, or in a set,", "Use its position as an index of another list.")


def _taken(table: Any, index: Any) -> Any:
    """What ``table[index]`` gives."""
    if type(table) not in _CONTAINERS or not issubclass(type(index), (IntSymbol, BoolSymbol)):
        return table[index]
    return table[index] if not table or _kind(table) is None else _element(table, index)


def _kind(item: Any) -> Any:
    """What an element of a table is: the kind of a number, or class and length of a row; None for anything else."""
    if type(item) in _CONTAINERS:
        kinds = set(map(_kind, item))
        return (type(item), len(item), *kinds) if len(kinds) == 1 and None not in kinds else None
    if isinstance(item, Value) and not user_attributes(item):
        return promotion.kind_of_number(item)
    return type(item) if type(item) in (float, int) else None


def _element(table: Sequence[Any], index: Any) -> Any:
    """The element of a table."""
    first = table[0]
    if type(first) in _CONTAINERS:
        row = [_element(column, index) for column in zip(*table, strict=True)]
        if type(first) is tuple:
            return tuple(row)
        _rows.get().append((row, [*row]))
        return row
    tracer: Any = tracer_on_top()
    found = tracer.take(table, index)
    return found if _kind(first) is not Value else found._tape._symbol(found._position, _Taken)


# The other code


class _Calls(ast.NodeTransformer):
    """Makes a call of each ``table[i]`` that is read, but in annotations."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The call, where it is no part of a sequence that is read."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
            return node
        marked = ast.Attribute(ast.Constant(_MARK), "taken", ast.Load())
        for part in (marked, marked.value):  # on the first line: else Python says that the call is on the last one
            part.lineno = part.end_lineno = node.lineno
            part.col_offset = part.end_col_offset = node.col_offset
        return ast.fix_missing_locations(ast.copy_location(ast.Call(marked, [node.value, node.slice], []), node))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter as it is."""
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """What is assigned, without the annotation."""
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        """A function, without the annotation of its result."""
        returns, node.returns = node.returns, None
        self.generic_visit(node)
        node.returns = returns
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # ast calls it so


class _Mark:
    """What is called."""

    taken = staticmethod(_taken)


class _OtherCode:
    """Functions that have other code while a trace runs, in all threads: it does the same.

    Args:
        reached: what the trace can reach, as it was before.
    """

    def __init__(self, reached: ClosedOver) -> None:
        self._reached = reached
        self._others: list[tuple[FunctionType, CodeType, CodeType]] = []
        self._known: list[CodeType] = []

    def are_there_for(self, codes: tuple[CodeType, ...], variables: dict[str, Any]) -> bool:
        """Whether the trace may run again, and functions with this code have other code then for the first time.

        Args:
            codes: the one that refused an index, and those that it is nested in.
            variables: its globals.
        """
        self._reached.put_back()
        if any(codes[0] is each for each in self._known) or not self._reached.is_current():
            return False
        self._known.append(codes[0])
        source = "".join(linecache.getlines(codes[0].co_filename, variables))
        others = {id(code): (code, other) for code in codes if (other := _other_code(code, source)) is not None}
        found = [each for each in self._reached.functions if id(each.__code__) in others]
        self._others += [(each, *others[id(each.__code__)]) for each in found]
        return bool(found)

    def attempt(self, run: Callable[[], Any]) -> tuple[Any, Exception | None, list[Any]]:
        """What _attempt gives while the functions have other code. Whatever is raised, they have their own again."""
        functions, codes, others = zip(*self._others, strict=True)
        undo = setting(functions, "__code__", codes)
        try:
            commit(setting(functions, "__code__", others))
            return _attempt(run)
        finally:
            commit(undo)


@lru_cache(64)
def _other_code(code: CodeType, source: str) -> CodeType | None:
    """What some code becomes; None where the source is not that of the code."""
    try:
        before = compile(source, code.co_filename, "exec", dont_inherit=True)
        after = compile(_Calls().visit(ast.parse(source)), code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):  # of another language, say
        return None
    pairs: list[tuple[CodeType, CodeType]] = [(before, after)]
    text = _text(code)
    for one, other in pairs:
        if _text(one) == text:
            return _marked(other)
        pairs += zip(_nested(one), _nested(other), strict=True)
    return None


def _nested(code: CodeType) -> list[CodeType]:
    return [each for each in code.co_consts if isinstance(each, CodeType)]


_names = attrgetter("co_code", "co_name", "co_firstlineno", "co_names", "co_varnames", "co_freevars", "co_cellvars")


def _text(code: CodeType) -> tuple[Any, ...]:
    """What code does, without what Python has noted in it."""
    constants = (_text(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return (*_names(code), *constants)


def _marked(code: CodeType) -> CodeType:
    """The code with what is called in the place of the mark."""
    constants = (
        _Mark if each == _MARK else _marked(each) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_consts=tuple(constants))
