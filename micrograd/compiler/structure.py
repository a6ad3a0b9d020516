"""Structure: what in a function's arguments is fixed in a program, and what may change from call to call.

Numbers and Values may change: they are the leaves. Everything else is static: it makes the key. For

    loss([1.0, 2.0], mode="fast")        leaves: 1.0, 2.0
    loss([3.0, 4.0], mode="fast")        other leaves, an equal key: the same program
    loss([3.0, 4.0], mode="slow")        another key: another program

the key of the first call says that there is a list of two floats, and the string "fast".
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import is_array, real_number
from micrograd._support.containers import remade
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Key = tuple[Any, ...]


class Structure:
    """The static part of nested arguments, and their numbers and Values in order.

    Attributes:
        nested: the arguments.
        key: hashable; equal for arguments that differ in their numbers only.
        leaves: the numbers and Values.
        objects: the static objects that are told apart by identity.
    """

    def __init__(self, nested: Any) -> None:
        self.leaves: list[Any] = []
        self.objects: list[Any] = []
        self.key = self._key(nested)
        self.nested = nested

    def _key(self, item: Any) -> Key:
        kind = type(item)
        if kind is float or kind is int:
            self.leaves.append(item)
            return (kind,)
        if isinstance(item, Value):
            self.leaves.append(item)
            return (Value, item.requires_grad)
        if isinstance(item, (list, tuple)):
            return (kind, *[self._key(part) for part in item])
        if isinstance(item, dict):
            return (kind, *[(name, self._key(part)) for name, part in item.items()])
        if _is_array_of_numbers(item):
            return ("array", item.shape, *[self._key(part) for part in item.ravel().tolist()])
        if _is_number(item):
            self.leaves.append(item)
            return (float,)
        static = _hashable(item)
        if type(static) is _Same:
            self.objects.append(item)
        return (kind, static)

    def numbers(self) -> list[float]:
        """The leaves as floats."""
        return [leaf._data if isinstance(leaf, Value) else float(leaf) for leaf in self.leaves]

    def rebuilt(self, leaves: Iterable[Any]) -> Any:
        """The same containers with other leaves."""
        return _rebuilt(self.nested, iter(leaves))


def _hashable(item: Any) -> Any:
    if is_array(item):
        return item.shape, item.tobytes()
    if isinstance(item, _BY_VALUE):
        return item
    try:
        hash(item)
    except TypeError:
        raise TypeError(
            f"a compiled function takes numbers, Values, arrays and containers of them, and static arguments that are "
            f"hashable; not {type(item).__name__}: {item!r:.80}"
        ) from None
    return _Same(item)


_BY_VALUE = (str, bytes, bool, type(None), frozenset, Enum)


class _Same:
    """A static object as a key: equal to itself only, whatever its own equality says."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.item is other.item


def _rebuilt(item: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(item, dict):
        return remade(item, [_rebuilt(part, leaves) for part in item.values()])
    if isinstance(item, (list, tuple)):
        return remade(item, [_rebuilt(part, leaves) for part in item])
    if _is_array_of_numbers(item):
        import numpy as np

        result = np.empty(item.shape, dtype=object)
        for place in np.ndindex(item.shape):
            result[place] = _rebuilt(item[place], leaves)
        return result
    return next(leaves) if isinstance(item, Value) or _is_number(item) else item


def _is_array_of_numbers(item: Any) -> bool:
    return is_array(item) and item.dtype != bool


def _is_number(item: Any) -> bool:
    """Whether it is a leaf. A bool is not: functions choose by bools what to do."""
    return item is not None and type(item) is not bool and real_number(item) is not None
