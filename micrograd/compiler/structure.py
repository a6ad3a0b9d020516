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

from micrograd._support.checks import is_array, is_unknown, real_number
from micrograd._support.containers import base_of, own_attributes, remade
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
        self.nested = nested
        try:
            self.key = self._key(nested)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None

    def _key(self, item: Any) -> Key:
        kind = type(item)
        if kind is float or kind is int:
            self.leaves.append(item)
            return (kind,)
        if isinstance(item, Value):
            self.leaves.append(item)
            return (Value, item.requires_grad)
        if kind is list or kind is tuple:
            return (kind, *[self._key(part) for part in item])
        if isinstance(item, (list, tuple)):
            return (kind, *[self._key(part) for part in item], *self._attributes(item))
        if isinstance(item, dict):
            parts = [(name, self._key(part)) for name, part in base_of(item).items(item)]
            return (kind, *parts, *self._attributes(item))
        if _is_array_of_numbers(item):
            return (kind, item.shape, *[self._key(part) for part in _elements(item)])
        if _is_number(item):
            self.leaves.append(item)
            return (kind,)
        static = _hashable(item)
        if type(static) is _Same:
            self.objects.append(item)
        return (kind, static)

    def _attributes(self, item: Any) -> list[Any]:
        """What stands for the attributes of a container of a class of the user's."""
        return [("attribute", name, self._key(part)) for name, part in own_attributes(item).items()]

    def numbers(self) -> list[float]:
        """The leaves as floats."""
        return [leaf._data if isinstance(leaf, Value) else float(leaf) for leaf in self.leaves]

    def rebuilt(self, leaves: Iterable[Any]) -> Any:
        """The same containers with other leaves."""
        try:
            return _rebuilt(self.nested, iter(leaves))
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None


def _hashable(item: Any) -> Any:
    if is_array(item):
        return item.shape, item.dtype.str, item.tobytes()
    if hasattr(type(item), "__next__"):
        raise TypeError(
            f"a compiled function takes and returns no iterators, as they are used up: give a list, not a "
            f"{type(item).__name__}"
        )
    if isinstance(item, _BY_VALUE):
        return item
    if hasattr(type(item), "__dataclass_fields__"):  # by identity too, hashable or not
        return _Same(item)
    try:
        hash(item)
    except TypeError:
        raise TypeError(
            f"a compiled function takes numbers, Values, arrays and containers of them, and static arguments that are "
            f"hashable; not {type(item).__name__}: {item!r:.80}"
        ) from None
    return _Same(item)


_BY_VALUE = (str, bytes, bool, type(None), frozenset, Enum)


_TOO_DEEP = "what a compiled function takes and returns must not be nested this deep, or contain itself"


class _Same:
    """A static object as a key: equal to itself only, whatever its own equality says."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.item is other.item


def _rebuilt(item: Any, leaves: Iterator[Any]) -> Any:
    kind = type(item)
    if kind is list or kind is tuple:
        return kind([_rebuilt(part, leaves) for part in item])
    if isinstance(item, (dict, list, tuple)):
        result = remade(item, [_rebuilt(part, leaves) for part in _values(item)])
        for name, part in own_attributes(item).items():
            result.__dict__[name] = _rebuilt(part, leaves)
        return result
    if _is_array_of_numbers(item):
        import numpy as np

        from micrograd.compiler.symbol_arrays import SymbolArray, arranged

        is_result = type(item) is SymbolArray
        result = np.empty_like(np.asarray(item) if is_result else item, dtype=object)
        flat = np.empty(item.size, dtype=object)
        for place, part in enumerate(_elements(item)):
            flat[place] = _rebuilt(part, leaves)
        result[...] = flat.reshape(item.shape)
        if is_result:  # comparisons give bools
            return result.astype(bool) if item.size and all(type(part) is bool for part in flat) else result
        return arranged(result) if any(map(is_unknown, flat)) else result
    return next(leaves) if isinstance(item, Value) or _is_number(item) else item


def _values(container: Any) -> Any:
    return base_of(container).values(container) if isinstance(container, dict) else container


def _elements(array: Any) -> list[Any]:
    import numpy as np

    return np.asarray(array).ravel().tolist()


def _is_array_of_numbers(item: Any) -> bool:
    if not is_array(item):
        return False
    if hasattr(item, "mask") or item.dtype.names:
        raise TypeError(
            f"a compiled function takes and returns arrays of numbers and Values, not a {type(item).__name__} "
            f"{'with a mask: fill it first' if hasattr(item, 'mask') else 'with named fields: give them one by one'}"
        )
    return item.dtype.kind in "iufO"


def _is_number(item: Any) -> bool:
    """Whether it is a leaf. A bool is not: functions choose by bools what to do."""
    return item is not None and type(item) is not bool and real_number(item) is not None
