"""The names that code objects mention: globals, attributes, modules that are imported, and the lines where."""

from __future__ import annotations

import dis
import re
from functools import lru_cache, partial
from importlib.util import resolve_name
from itertools import pairwise
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_LOADS_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
_STORES = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_ADDERS = frozenset(("add", "append", "appendleft", "extend", "insert", "setdefault", "update"))
_EVALUATORS = frozenset(("eval", "exec", "globals", "__globals__", "f_globals"))
_WORD = re.compile(r"[^\W\d]\w*")


class Names(NamedTuple):
    """The names in a code object and in those nested in it.

    Attributes:
        of_globals: names of global variables.
        of_attributes: names of attributes, and texts that may be such names.
        of_modules: modules that are imported, each with its level: how many folders up, 0 for an absolute name.
        texts: all constants that are texts.
    """

    of_globals: frozenset[str]
    of_attributes: frozenset[str]
    of_modules: frozenset[tuple[str, int]]
    texts: frozenset[str]


@lru_cache(1024)
def names_in(code: CodeType) -> Names:
    """All names that a code object mentions."""
    of_globals: set[str] = set()
    of_attributes: set[str] = set()
    of_modules: set[tuple[str, int]] = set()
    texts: set[str] = set()
    for nested in nested_in(code):
        constants: list[Any] = [0, 0]
        for _, operation, argument in instructions(nested):
            if operation in _LOADS_GLOBAL:
                of_globals.add(argument)
            elif _is_of_attribute(operation) or operation == "IMPORT_FROM":
                of_attributes.add(argument)
            elif operation == "IMPORT_NAME":
                of_modules.add((argument, constants[-2]))
            elif operation in ("LOAD_CONST", "LOAD_SMALL_INT"):
                constants.append(argument)
        for constant in nested.co_consts:
            parts = constant if isinstance(constant, tuple) else (constant,)
            texts.update(text for text in parts if isinstance(text, str))
    of_attributes.update(text for text in texts if text.isidentifier())
    if not (of_globals | of_attributes).isdisjoint(_EVALUATORS):  # what is evaluated may name any global
        words = {word for text in texts for word in _WORD.findall(text)}
        of_globals |= words
        of_attributes |= words
    return Names(frozenset(of_globals), frozenset(of_attributes), frozenset(of_modules), frozenset(texts))


def line_of_made_name(code: CodeType) -> int | None:
    """The line where code takes something from a dict of all globals, and not by a constant name; None if none does."""
    if _OF_ALL_GLOBALS.isdisjoint(code.co_names):
        return None
    found = [*(part for part in instructions(code) if part[1] not in _EMPTY), *[(0, "", "")] * 5]
    is_run = not _RUN.isdisjoint(code.co_names)  # what these run is looked at when it runs
    for position, (line, operation, argument) in enumerate(found):
        is_call = argument == "globals" and operation in _LOADS_GLOBAL
        if not (is_call or (argument in _OF_ALL_GLOBALS and _is_of_attribute(operation))):
            continue
        is_get = found[position + 1 + is_call][2] == "get"
        (_, taken, name), (_, following, _) = found[position + 1 + is_call + is_get :][:2]
        is_constant = taken == "LOAD_CONST" and isinstance(name, str) and not _is_of_attribute(following)
        if not is_constant and not (is_run and is_call):
            return line
    return None


_OF_ALL_GLOBALS = frozenset(("globals", "__globals__", "f_globals"))
_RUN = frozenset(("eval", "exec", "FunctionType"))
_EMPTY = frozenset(("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "PUSH_NULL", "RESUME"))


def full_name(module: str, level: int, package: str | None) -> str:
    """The full name of a module that code in a package imports."""
    return resolve_name("." * level + module, package or "") if level and package else module


def line_that_stores(codes: Iterable[CodeType], name: str) -> tuple[str, int] | None:
    """The only line that sets a variable or attribute of this name; "" for an element of any container."""
    return _only_line(codes, partial(_sets, name))


def line_that_loads(codes: Iterable[CodeType], name: str) -> tuple[str, int] | None:
    """The only line that reads a variable or attribute of this name."""
    return _only_line(codes, lambda operation, argument: operation.startswith("LOAD_") and argument == name)


def variables_set(codes: Iterable[CodeType]) -> set[str]:
    """The names of the variables of a module, or of a function around it, that code sets."""
    return {
        argument
        for code in codes
        for nested in nested_in(code)
        for _, operation, argument in instructions(nested)
        if operation == "STORE_GLOBAL" or (operation == "STORE_DEREF" and argument in nested.co_freevars)
    }


def variables_read(codes: Iterable[CodeType]) -> set[str]:
    """The names of those that code may read."""
    return {name for code in codes for nested in nested_in(code) for name in (*nested.co_names, *nested.co_freevars)}


def _in_any(test: Callable[[CodeType], bool]) -> Callable[[Iterable[CodeType]], bool]:
    """The same test of several code objects: whether one of them passes it. The answer for each is kept."""
    kept = lru_cache(1024)(test)
    return lambda codes: any(map(kept, codes))


@_in_any
def tests_bools(code: CodeType) -> bool:
    """Whether code asks whether a comparison is True or False itself: by ``is``, or by ``case True``.

    Of a parameter, an attribute or a global it is asked where this is a flag.
    """
    for nested in nested_in(code):
        parameters = nested.co_varnames[: nested.co_argcount + nested.co_kwonlyargcount]
        found = [("", ""), *((operation, argument) for _, operation, argument in instructions(nested))]
        for (before, name), (constant, argument), (operation, _) in zip(found, found[1:], found[2:], strict=False):
            if operation != "IS_OP" or before in _OF_FLAGS or (before.startswith("LOAD_FAST") and name in parameters):
                continue
            if constant == "COMPARE_OP" or (constant == "LOAD_CONST" and isinstance(argument, bool)):
                return True
    return False


_OF_FLAGS = ("BINARY_SUBSCR", "LOAD_ATTR", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME")


@_in_any
def catches_errors(code: CodeType) -> bool:
    """Whether code may go on after an exception."""
    for nested in nested_in(code):
        found = [operation for _, operation, _ in instructions(nested)]
        handlers = found.count("PUSH_EXC_INFO") - found.count("WITH_EXCEPT_START")  # of a with-block it has both
        if handlers > 0 or "SETUP_FINALLY" in found or "suppress" in nested.co_names:
            return True
    return False


@_in_any
def has_loops(code: CodeType) -> bool:
    """Whether code goes through something in Python, or names ``sum``, which does."""
    has_for = any(operation == "FOR_ITER" for nested in nested_in(code) for _, operation, _ in instructions(nested))
    return has_for or "sum" in names_in(code).of_globals


@_in_any
def matches_classes(code: CodeType) -> bool:
    """Whether a pattern of a match statement has a class, or a method is taken from list itself: of no class below."""
    for nested in nested_in(code):
        found = instructions(nested)
        if any(operation == "MATCH_CLASS" for _, operation, _ in found):
            return True
        if any(name == "list" and _is_of_attribute(operation) for (*_, name), (_, operation, _) in pairwise(found)):
            return True
    return False


@_in_any
def asks_for_classes(code: CodeType) -> bool:
    """Whether code names a function that says of what class an object is, or who it is."""
    return not NAMES_OF_ASKS.isdisjoint(names_in(code).of_globals)


ASKS = (type, isinstance, hasattr, repr, id)  # functions that say of what class an object is, or who it is
NAMES_OF_ASKS = frozenset(each.__name__ for each in ASKS)


def _only_line(codes: Iterable[CodeType], is_sought: Any) -> tuple[str, int] | None:
    found = {
        (nested.co_filename, line)
        for code in codes
        for nested in nested_in(code)
        for line, operation, argument in instructions(nested)
        if is_sought(operation, argument)
    }
    return found.pop() if len(found) == 1 else None


def _sets(name: str, operation: str, argument: Any) -> bool:
    if name:
        return operation in _STORES and argument == name
    return operation == "STORE_SUBSCR" or (_is_of_attribute(operation) and argument in _ADDERS)


def _is_of_attribute(operation: str) -> bool:
    return "ATTR" in operation or "METHOD" in operation


def nested_in(code: CodeType) -> list[CodeType]:
    """A code object and all those that are made by it."""
    found = [code]
    for outer in found:
        found += [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return found


def instructions(code: CodeType) -> list[tuple[int, str, Any]]:
    """The line, the operation and the argument of each instruction."""
    line, found = code.co_firstlineno, []
    for instruction in dis.get_instructions(code):
        starts: Any = getattr(instruction, "line_number", instruction.starts_line)
        line = starts or line
        found.append((line, instruction.opname, instruction.argval))
    return found
