"""Names for the Values that a function reads, so that others can take them as arrays by name.

A list of Values, or of equally long lists of them, is one array. A module's have the names of its ``state_dict``
without their last indices, and others begin with the name of the variable that leads to them:

    model(x)                          layers.0.neurons.0.w  (2 numbers),  layers.0.neurons.0.b
    lambda x: scale * model(x)        model.layers.0.neurons.0.w,  ...,  scale

Values that no variable leads to, such as those that an iterator keeps, are together in the array ``others``.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from itertools import chain
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd._support.containers import base_of, shape_of
from micrograd._support.saved_state import Parameterised
from micrograd.compiler.guards.code_names import nested_in
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def values_by_name(function: Any, values: Sequence[Value]) -> dict[str, Any]:
    """Object arrays of the Values that a function reads, by name; a single Value is an array without axes.

    Those of a Module, and of a list that has some of them, are there whether they are read or not, unless frozen.

    Args:
        function: that reads them.
        values: which they are.

    Example:
        >>> weights = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]
        >>> bias = Value(0.5)
        >>> found = values_by_name(lambda: weights[0][1] + bias, [*sum(weights, []), bias])
        >>> {name: array.shape for name, array in found.items()}
        {'weights': (2, 2), 'bias': ()}
    """
    traversal = _Traversal(values)
    traversal.visit("", function)
    found, modules = traversal.found, traversal.modules
    if others := [value for value in values if value not in traversal.taken]:
        found["others"] = _array(others)
    if len(modules) == 1 and all(name.startswith(f"{modules[0]}.") for name in found):
        return {name[len(modules[0]) + 1 :]: array for name, array in found.items()}
    return found


class _Traversal:
    """A traversal over what a function leads to.

    Attributes:
        found: object arrays by name.
        taken: the Values in them.
        modules: the names of the variables that are Modules.
    """

    def __init__(self, values: Sequence[Value]) -> None:
        self._read = set(values)
        self.found: dict[str, Any] = {}
        self.taken: set[Value] = set()
        self.modules: list[str] = []
        self._seen: dict[int, Any] = {}
        self._is_inside = False  # of a Module

    def visit(self, name: str, item: Any) -> None:
        """Look at an object and at what is in it."""
        if isinstance(item, Value):
            if self._is_parameter(item) and (self._is_inside or item in self._read):
                self._add(name, _array([item]).reshape(()))
            return
        if id(item) in self._seen:
            return
        self._seen[id(item)] = item
        if (array := self._rectangle(item)) is not None:
            self._add(name, array)
            return
        is_outermost = isinstance(item, Parameterised) and not self._is_inside
        if is_outermost:
            self.modules += [name] if name else []
            self._is_inside = True
        for key, part in _contents(item):
            self.visit(".".join(filter(None, (name, str(key)))), part)
        if is_outermost:
            self._is_inside = False

    def _add(self, name: str, array: Any) -> None:
        name = name or "value"
        unique, count = name, 1
        while unique in self.found:  # two variables of one name, in two functions
            count += 1
            unique = f"{name}_{count}"
        self.found[unique] = array
        self.taken.update(array.flat)

    def _is_parameter(self, item: Any) -> bool:
        return isinstance(item, Value) and item.requires_grad and item.is_leaf and item not in self.taken

    def _rectangle(self, item: Any) -> Any:
        """The array of nested lists of parameters, each there once; None if it is anything else."""
        if not (shape := shape_of(item)):
            return None
        parts = [item]
        for _ in shape:
            parts = list(chain.from_iterable(parts))
        if not parts or not all(map(self._is_parameter, parts)) or len(set(parts)) < len(parts):
            return None
        return _array(parts).reshape(shape) if self._is_inside or not self._read.isdisjoint(parts) else None


def _array(values: list[Value]) -> Any:
    """An object array; np.array would ask each Value whether it is a container."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _contents(item: Any) -> Iterator[tuple[Any, Any]]:
    """What is in an object, with the names that lead to it."""
    if isinstance(item, Parameterised):
        yield from vars(item).items()
    elif isinstance(item, dict):
        yield from base_of(item).items(item)
    elif isinstance(item, (list, tuple)) or (is_array(item) and item.ndim):
        yield from enumerate(item)
    elif isinstance(item, FunctionType):
        yield from _variables(item)
    elif isinstance(item, MethodType):
        yield "" if isinstance(item.__self__, Parameterised) else "self", item.__self__
        yield "", item.__func__
    elif isinstance(item, partial):
        yield from [("", item.func), *enumerate(item.args), *item.keywords.items()]
    elif not isinstance(item, type) and not is_foreign(type(item).__module__):
        yield from getattr(item, "__dict__", {}).items()


def _variables(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables of a function, those of its defaults and of the functions in it among them."""
    module = function.__module__ or ""
    own = getattr(sys.modules.get(module), "__dict__", None)
    if is_foreign(module) and function.__globals__ is own:  # and it is not of an example in a docstring
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it has none yet
            yield name, cell.cell_contents
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(reversed(names), reversed(function.__defaults__ or ()), strict=False)
    yield from (function.__kwdefaults__ or {}).items()
    for name in (name for code in nested_in(function.__code__) for name in code.co_names):
        if name in function.__globals__:
            yield name, function.__globals__[name]
