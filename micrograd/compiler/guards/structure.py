"""Structure: what in a function's arguments is fixed in a program, and what may change from call to call.

Numbers and Values may change: they are the leaves. Everything else is static: it makes the key. For

    loss([1.0, 2.0], mode="fast")        leaves: 1.0, 2.0
    loss([3.0, 4.0], mode="fast")        other leaves, an equal key: the same program
    loss([3.0, 4.0], mode="slow")        another key: another program

the key of the first call says that there is a list of two floats, and the string "fast".

Of what is static, plain data is told apart by what it holds: texts, bools, ranges, frozensets, frozen dataclasses. It
is held to be equal only where no program could tell: 1 is neither True nor 1.0 there, and 0.0 is not -0.0. Functions
and other objects are told apart by identity: two functions made alike may be looked up in a table, or change later.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from operator import attrgetter
from struct import pack
from types import MethodType
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_class, is_array, is_unknown, real_number
from micrograd._support.containers import base_of, own_attributes, remade
from micrograd.engine.node import user_attributes
from micrograd.engine.primitive import CONSTANT
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Key = tuple[Any, ...]


class Structure:
    """The static part of nested arguments, and their numbers and Values in order.

    Attributes:
        nested: the arguments.
        key: hashable; equal for arguments that differ in their numbers only.
        leaves: the numbers and Values.
        objects: the static objects that are told apart by identity, or have code of their own.
        returned: whether it is what a function returned, and not its arguments.
        of_objects: whether an array of objects is among them, whose bytes are only where these are.
    """

    of_objects = False

    def __init__(self, nested: Any, returned: bool = False) -> None:
        self.leaves: list[Any] = []
        self.objects: list[Any] = []
        self.nested, self.returned = nested, returned
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
            if kind is not Value:
                check_class(item, _RETURNED if self.returned else _GIVEN)
            if item.__dict__:  # which of them are there is static: a function may ask for one
                return (Value, item.requires_grad, *user_attributes(item))
            return (Value, item.requires_grad)
        if kind is str or kind is bool or item is None:
            return (kind, item)
        if kind is list or kind is tuple:
            return self._of_one_kind(item) or (kind, *[self._key(part) for part in item])
        if isinstance(item, (list, tuple)):
            return (kind, *[self._key(part) for part in item], *self._attributes(item))
        if isinstance(item, dict):
            items = base_of(item).items(item)
            parts = [(name if type(name) is str else _name(name), self._key(part)) for name, part in items]
            return (kind, *parts, *self._attributes(item))
        if _is_array_of_numbers(item):
            self.of_objects = self.of_objects or item.dtype == object
            return (kind, item.shape, *[self._key(part) for part in _elements(item)])
        if _is_number(item):
            self.leaves.append(item)
            return (kind,)
        return (kind, self._static(item))

    def _of_one_kind(self, item: Any) -> Key | None:
        """The key of many floats, ints, or Values that require gradients: what they are, and how many."""
        kinds: set[type] = set(map(type, item)) if len(item) >= _MANY else set()
        if len(kinds) != 1 or (kind := kinds.pop()) not in _OF_ONE_KIND:
            return None
        if kind is Value and (
            CONSTANT in set(map(_primitive_of, item))
            or (any(map(_attributes_of, item)) and any(map(user_attributes, item)))
        ):
            return None
        self.leaves += item
        return type(item), kind, len(item)

    def _attributes(self, item: Any) -> list[Any]:
        """What stands for the attributes of a container of a class of the user's."""
        return [("attribute", name, self._key(part)) for name, part in own_attributes(item).items()]

    def _static(self, item: Any) -> Any:
        """What stands for something static: hashable, and equal where one program serves both."""
        if is_array(item):
            return item.shape, item.dtype.str, item.tobytes()
        if hasattr(type(item), "__next__"):
            raise TypeError(
                f"a compiled function takes and returns no iterators, as they are used up: give a list, not a "
                f"{type(item).__name__}"
            )
        if isinstance(item, _BY_VALUE):
            return item
        exact, is_plain_data = _exact(item)
        if not is_plain_data:
            self.objects.append(item)
            if type(exact) is _Same and not hasattr(type(item), "__dataclass_fields__"):  # hashable or not
                self._check_hashable(item)
        return exact

    def _check_hashable(self, item: Any) -> None:
        try:
            hash(item)
        except TypeError:
            kind = type(item).__name__
            raise TypeError(
                f"a compiled function returns numbers, Values and arrays, and lists, tuples and dicts of them; not "
                f"a {kind}: return one of these, and make the {kind} of it outside"
                if self.returned
                else f"a compiled function takes numbers, Values, arrays and containers of them, and static arguments "
                f"that are hashable; not {kind}: {item!r:.80}"
            ) from None

    def numbers(self) -> list[float]:
        """The leaves as floats."""
        return [
            leaf if type(leaf) is float else leaf._data if isinstance(leaf, Value) else float(leaf)
            for leaf in self.leaves
        ]

    def operands(self) -> list[Value]:
        """The Values that gradients flow to."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Value) and leaf._primitive is not CONSTANT]

    def rebuilt(self, leaves: Iterable[Any], arranged: Callable[[Any], Any] | None = None) -> Any:
        """The same containers with other leaves.

        Args:
            leaves: the other leaves, in their order.
            arranged: makes an array of symbols of an object array that has some.
        """
        try:
            return _rebuilt(self.nested, iter(leaves), arranged or _as_it_is)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None


def _as_it_is(array: Any) -> Any:
    return array


_MANY = 8  # elements; the keys of fewer are made one by one
_OF_ONE_KIND = frozenset((float, int, Value))
_primitive_of, _attributes_of = attrgetter("_primitive"), attrgetter("__dict__")

_GIVEN = "a compiled function is traced on symbols in place of the Values in its arguments"
_RETURNED = "a compiled function returns Values of its own in place of those of the function"
_TOO_DEEP = "what a compiled function takes and returns must not be nested this deep, or contain itself"


_BY_VALUE = (str, bytes, bool, type(None), Enum)
_PLAIN_DATA = (*_BY_VALUE, int)


def _exact(item: Any) -> tuple[Any, bool]:
    """What stands for a static object, and whether it is plain data, without code of the user's own."""
    kind: Any = type(item)
    if issubclass(kind, float):
        return (kind, pack("d", item)), True
    if issubclass(kind, _PLAIN_DATA):  # which a symbol is not, whatever isinstance says
        return (kind, item), True
    if kind is tuple or kind is frozenset:  # equal sets may have their elements in different orders
        return _joined(kind, item)
    if kind is range or kind is slice:
        bounds = item.start, item.stop, item.step
        if all(type(bound) in (int, type(None)) for bound in bounds):
            return (kind, bounds), True
    if kind is MethodType:  # another object whenever it is read from its owner
        return (_Same(item.__self__), _Same(item.__func__)), False
    if (names := _fields(kind)) is not None:
        attributes = getattr(item, "__dict__", {})
        slots = [name for name in names if name not in attributes]
        if len(attributes) + len(slots) == len(names) and all(hasattr(item, name) for name in slots):
            return _joined(kind, [attributes[n] if n in attributes else getattr(item, n) for n in names])[0], False
    return _Same(item), False


def _name(name: Any) -> Any:
    """What stands for the name of an item: 1 and True are one key in a dict, and not one name."""
    exact, is_plain_data = _exact(name)
    return exact if is_plain_data else name


def _joined(kind: type, parts: Iterable[Any]) -> tuple[Any, bool]:
    pairs = [_exact(part) for part in parts]
    return (kind, *[exact for exact, _ in pairs]), all(is_plain_data for _, is_plain_data in pairs)


@lru_cache(256)
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a frozen dataclass whose instances are equal by them, and hold nothing else."""
    settings = vars(kind).get("__dataclass_params__")
    if settings is None or not (settings.frozen and settings.eq):
        return None
    from dataclasses import fields

    names = tuple(field.name for field in fields(kind))
    slots = {name for base in kind.__mro__ for name in _listed(vars(base).get("__slots__", ()))}
    return names if slots <= {*names, "__dict__", "__weakref__"} else None


def _listed(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


class _Same:
    """A static object as a key: equal to itself only, whatever its own equality says."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.item is other.item


def _rebuilt(item: Any, leaves: Iterator[Any], arranged: Callable[[Any], Any]) -> Any:
    kind = type(item)
    if kind is list or kind is tuple:
        return kind([_rebuilt(part, leaves, arranged) for part in item])
    if isinstance(item, (dict, list, tuple)):
        result = remade(item, [_rebuilt(part, leaves, arranged) for part in _values(item)])
        for name, part in own_attributes(item).items():
            result.__dict__[name] = _rebuilt(part, leaves, arranged)
        return result
    if _is_array_of_numbers(item):
        import numpy as np

        from micrograd.engine.value_arrays import ValueArray

        elements = _elements(item)
        is_result = hasattr(type(item), "of_symbols") or (type(item) is np.ndarray and any(map(is_unknown, elements)))
        parts = [_rebuilt(part, leaves, arranged) for part in elements]
        if is_result and (numbers := _of_plain_numbers(parts)) is not None:
            return numbers.reshape(item.shape)
        result = np.empty_like(item.view(ValueArray) if is_result else item, dtype=object)
        flat = np.empty(item.size, dtype=object)
        for place, part in enumerate(parts):
            flat[place] = part
        result[...] = flat.reshape(item.shape)
        return arranged(result) if any(map(is_unknown, parts)) else result
    return next(leaves) if isinstance(item, Value) or _is_number(item) else item


def is_unchanged(item: Any, before: Any) -> bool:
    """Whether containers hold the same objects as before; to ask a defaultdict for what it has not is no change."""
    if type(item) is not type(before):
        return False
    if isinstance(before, dict):
        new = [part for name, part in dict.items(item) if not dict.__contains__(before, name)]
        if new and not (isinstance(item, defaultdict) and not any(map(is_unknown, Structure(new).leaves))):
            return False
        parts = [(dict.get(item, name, _MISSING), part) for name, part in dict.items(before)]
    elif isinstance(before, (list, tuple)):
        parts = list(zip_longest(item, before, fillvalue=_MISSING))
    elif _is_array_of_numbers(before):
        if item.shape != before.shape:
            return False
        parts = list(zip_longest(_elements(item), _elements(before), fillvalue=_MISSING))
    else:
        return item is before
    was = own_attributes(before)
    return own_attributes(item).keys() == was.keys() and all(
        is_unchanged(now, part) for now, part in [*parts, *[(own_attributes(item)[name], was[name]) for name in was]]
    )


_MISSING = object()


def _of_plain_numbers(parts: list[Any]) -> Any:
    """Bools, ints or floats as an array of such; None of others, and of ints that are too long for one."""
    import numpy as np

    if not _ELEMENTS.issuperset(map(type, parts)):
        return None
    numbers = np.array(parts)
    return numbers if numbers.dtype.kind in "bif" else None


_ELEMENTS = frozenset((bool, int, float))


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
