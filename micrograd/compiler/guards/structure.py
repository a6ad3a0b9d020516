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

import sys
from collections import defaultdict
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, islice, repeat, zip_longest
from numbers import Integral
from operator import attrgetter, countOf, is_
from struct import pack
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd._support.checks import check_class, is_array, is_bool, is_unknown, own_names, real_number
from micrograd._support.containers import Assembled, base_of, own_attributes, remade
from micrograd.compiler.guards.refusals import TraceError
from micrograd.engine.copying import user_attributes
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
        runs: the numbers and Values in order, as arrays and sequences, each with what it holds: ARRAY of numbers,
            float, int, Value for those that require gradients, CONSTANT for those that require none, or MIXED.
        objects: the static objects that are compared by identity, or have code of the user's.
        returned: whether it is what a function returned, and not its arguments.
        largest: the largest absolute value among the integers in the arguments, of 32 bits and more.
        has_values: whether there are Values.
        of_objects: whether an array of objects is among them, whose bytes are mere addresses.
    """

    has_values = has_integers = of_objects = returned = False
    largest = 0
    objects: tuple[Any, ...] = ()

    def __init__(self, nested: Any, returned: bool = False) -> None:
        self.runs: list[tuple[Any, Any]] = []
        self.nested, self.returned = nested, returned
        try:
            self.key = self._key(nested)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None
        if returned:
            return
        if self.has_integers and (largest := max(map(_largest_of, self.runs))) >= 2**31:
            self.largest = largest
            self.key += (largest >= 2**53,)
        if self.has_values:
            self.key += self._repeated()

    def _repeated(self) -> Key:
        """Which Values are given more than once: one symbol stands for each of them."""
        values = [leaf for holds, run in self.runs if holds in _OF_VALUES for leaf in run if isinstance(leaf, Value)]
        if len(set(map(id, values))) == len(values):
            return ()
        first = {id(value): position for position, value in reversed([*enumerate(values)])}
        return tuple([first[id(value)] for value in values])

    @classmethod
    def of_call(cls, arguments: tuple[Any, ...], named: dict[str, Any]) -> Structure:
        """The structure of a call's arguments, as a pair; in a third of the time where all are floats."""
        if named or set(map(type, arguments)) != _ONLY_FLOATS:
            return cls((arguments, named))
        made = cls.__new__(cls)
        made.nested, made.runs = (arguments, named), [(float, arguments)]
        made.key = tuple, (tuple, float, float, len(arguments)), (dict,)
        return made

    def _key(self, item: Any) -> Key:
        kind = type(item)
        if kind is list or kind is tuple:
            items = tuple(item)  # a list may change meanwhile
            if items and type(items[0]) in _CONTAINERS and (key := self._of_rows(kind, items)) is not None:
                return key
            is_kind = bool(items) and (type(items[0]) in _OF_ONE_KIND or (self.returned and _is_symbol(items[0])))
            if is_kind and (key := self._of_one_kind(kind, items)) is not None:
                return key
            if items and _is_float_of_numpy(type(items[0])) and (of := self._run_of_floats(items)) is not None:
                return kind, of, len(items)
            return (kind, *map(self._key, items))
        if kind is float or kind is int:
            self._add(item)
            self.has_integers = self.has_integers or kind is int
            return (kind,)
        if kind is dict and not item:
            return (kind,)
        if is_array(item) and item.dtype.char == "d" and kind is sys.modules["numpy"].ndarray:  # the checks are below
            self.runs.append((ARRAY, item))
            return (kind, item.dtype, item.shape, _order_of(item))
        if isinstance(item, Value):
            self._add(item)
            self.has_values = True
            if kind is not Value:
                check_class(item, _RETURNED if self.returned else _GIVEN)
            if item.__dict__:  # which of them are there is static: a function may ask for one
                return (Value, item.requires_grad, *user_attributes(item))
            return (Value, item.requires_grad)
        if kind is str or kind is bool or item is None:
            return (kind, item)
        if isinstance(item, (list, tuple)):
            return (kind, *[self._key(part) for part in item], *self._attributes(item))
        if isinstance(item, dict):
            items = base_of(item).items(item)
            parts = [(name if type(name) is str else _name(name), self._key(part)) for name, part in items]
            factory = self._static(item.default_factory) if isinstance(item, defaultdict) else None
            return (kind, factory, *parts, *self._attributes(item))
        if _is_array_of_numbers(item):
            return (kind, item.dtype, item.shape, _order_of(item), *self._elements_of(item))
        if _is_number(item):
            _check_number(item)
            self._add(item)
            self.has_integers = True
            return (kind,)
        if kind is Assembled:
            return (kind, *map(self._key, item.parts))
        return (kind, self._static(item))

    def _add(self, leaf: Any) -> None:
        """Add a leaf to the run of those that stand alone."""
        if self.runs and self.runs[-1][0] is MIXED:
            self.runs[-1][1].append(leaf)
        else:
            self.runs.append((MIXED, [leaf]))

    def _elements_of(self, array: Any) -> Key:
        """The key of what is in an array: nothing more, where these are numbers of its dtype."""
        if array.dtype == object:
            self.of_objects = True
            elements = _elements(array)
            return (self._key(elements),)
        self.has_integers = self.has_integers or array.dtype.kind in "iu"
        self.runs.append((ARRAY, array))
        return ()

    def _of_rows(self, container: type, items: tuple[Any, ...]) -> Key | None:
        """The key of lists, of tuples, or of dicts with the same names, of floats: all are one run.

        This takes a fifth of the time.
        """
        kind, names = type(items[0]), None
        if countOf(map(type, items), kind) < len(items):
            return None
        if kind is dict:
            names = tuple(items[0])
            if not all(type(name) is str for name in names) or countOf(map(tuple, items), names) < len(items):
                return None
            rows = tuple(map(tuple, map(dict.values, items)))
        else:
            rows = tuple(map(tuple, items))  # a list may change meanwhile
        floats = tuple(chain.from_iterable(rows))
        if not all(rows) or (of := self._run_of_floats(floats)) is None:
            return None
        lengths = tuple(map(len, rows))
        is_even = countOf(lengths, lengths[0]) == len(lengths)
        return container, kind, _ROWS, names, of, len(rows), lengths[0] if is_even else lengths

    def _run_of_floats(self, floats: tuple[Any, ...]) -> type | None:
        """Add a run of Python's floats, or of NumPy's, and give their class; None if there are others."""
        kind = type(floats[0])
        if not (kind is float or _is_float_of_numpy(kind)) or countOf(map(type, floats), kind) < len(floats):
            return None
        numpy: Any = sys.modules.get("numpy")
        self.runs.append((float, floats) if kind is float else (ARRAY, numpy.fromiter(floats, kind, len(floats))))
        return kind

    def _of_one_kind(self, container: type, items: tuple[Any, ...]) -> Key | None:
        """The key of floats, of ints, of Values that all require gradients or all do not, or of symbols of a class."""
        kind = type(items[0])
        if countOf(map(type, items), kind) < len(items):  # a set of them takes twice as long
            return None
        if _is_symbol(items[0]):
            if any(map(_attributes_of, items)):
                return None
            self.has_values = True
            self.runs.append((MIXED, list(items)))
            return container, kind, len(items)
        holds: Any = kind
        if kind is Value:
            constants = countOf(map(_primitive_of, items), CONSTANT)
            holds = Value if constants == 0 else CONSTANT
            if 0 < constants < len(items) or (any(map(_attributes_of, items)) and any(map(user_attributes, items))):
                return None
            self.has_values = True
        self.has_integers = self.has_integers or kind is int
        self.runs.append((holds, items))
        return container, kind, holds, len(items)

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
            self.objects += (item,)
            if type(exact) is Same and not hasattr(type(item), "__dataclass_fields__"):  # hashable or not
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

    def check_integers(self) -> None:
        """Refuse integers that are no floats.

        Raises:
            TypeError: if there is one.
        """
        if self.largest >= 2**53:
            raise TraceError(
                "an integer of 2**53 or more is among the arguments of a compiled function, which computes in floats, "
                "and not all of these integers are floats: give float(n), or n.astype(float) of an array"
            )

    @property
    def leaves(self) -> list[Any]:
        """The numbers and Values, one by one."""
        return [leaf for holds, run in self.runs for leaf in (_elements(run) if holds is ARRAY else run)]

    def count(self) -> int:
        """How many there are."""
        return sum(run.size if holds is ARRAY else len(run) for holds, run in self.runs)

    def operands(self) -> list[Value]:
        """The Values that gradients flow to."""
        found: list[Value] = []
        for holds, run in self.runs:
            if holds is Value:
                found += run
            elif holds is MIXED:
                found += [leaf for leaf in run if isinstance(leaf, Value) and leaf._primitive is not CONSTANT]
        return found

    def rebuilt(self, leaves: Iterable[Any], make_array: Callable[[Any, list[Any]], Any] | None = None) -> Any:
        """The same containers with other leaves.

        Args:
            leaves: the other leaves, in their order.
            make_array: makes an array like another one of its elements, if ``array_of`` is not to do that.
        """
        try:
            return _rebuilt(self.nested, iter(leaves), make_array or array_of)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None


def kinds_of(holds: Any, run: Any) -> Iterable[Any]:
    """Of each leaf in a run its class, or its dtype."""
    return repeat(run.dtype, run.size) if holds is ARRAY else [getattr(leaf, "dtype", type(leaf)) for leaf in run]


def _is_float_of_numpy(kind: type) -> bool:
    """Whether this is np.float64, as what is taken from an array of floats."""
    return kind.__name__ == "float64" and kind is sys.modules["numpy"].float64


def _is_symbol(leaf: Any) -> bool:
    return isinstance(leaf, Value) and is_unknown(leaf)


def _largest_of(run: tuple[Any, Any]) -> int:
    """The largest absolute value among the integers in a run that may have 32 bits or more."""
    holds, items = run
    if holds is ARRAY:
        if items.dtype.kind not in "iu" or items.dtype.itemsize < 4 or not items.size:
            return 0
        return max(-int(items.min()), int(items.max()))
    if holds is MIXED:
        items = [int(item) for item in items if isinstance(item, Integral)]
    return max(-min(items), max(items)) if items and (holds is int or holds is MIXED) else 0


def _order_of(array: Any) -> tuple[int, ...] | None:
    """In which order the axes of an array lie in memory, -1 for one with gaps; None for the usual one."""
    if array.ndim < 2 or array.flags.c_contiguous:
        return None
    axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    return (*axes, -1) if axes == sorted(axes, reverse=True) and not array.flags.f_contiguous else tuple(axes)


_ONLY_FLOATS = {float}
ARRAY, MIXED = "array", "mixed"  # what a run of leaves may hold, beside float, int, Value and CONSTANT
_OF_VALUES = (Value, CONSTANT, MIXED)
_OF_ONE_KIND = frozenset((float, int, Value))
_CONTAINERS, _ROWS = frozenset((list, tuple, dict)), "rows"
_primitive_of, _attributes_of = attrgetter("_primitive"), attrgetter("__dict__")

_GIVEN = "a compiled function is traced on symbols in place of the Values in its arguments"
_RETURNED = "a compiled function returns Values of its own in place of those of the function"
TOO_DEEP = "what a compiled function takes and returns must not be nested this deep, or contain itself"


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
        return (Same(item.__self__), Same(item.__func__)), False
    if (names := _fields(kind)) is not None:
        attributes = getattr(item, "__dict__", {})
        slots = [name for name in names if name not in attributes]
        if len(attributes) + len(slots) == len(names) and all(hasattr(item, name) for name in slots):
            return _joined(kind, [attributes[n] if n in attributes else getattr(item, n) for n in names])[0], False
    return Same(item), False


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
    listed = [vars(base).get("__slots__", ()) for base in kind.__mro__]
    slots = {name for names in listed for name in ([names] if isinstance(names, str) else names)}
    return names if slots <= {*names, "__dict__", "__weakref__"} else None


class Same:
    """A static object as a key: equal to itself only, whatever its own equality says."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.item is other.item


def parts_of(item: Any) -> list[Any] | None:
    """What is in a container or an array, the attributes of its class's own last; None of anything else."""
    if isinstance(item, (dict, list, tuple)):
        parts = list(base_of(item).values(item) if isinstance(item, dict) else item)
        return parts if type(item) in (dict, list, tuple) else parts + list(own_attributes(item).values())
    if type(item) is Assembled:
        return item.parts
    return _elements(item) if _is_array_of_numbers(item) else None


def assembler_of(item: Any) -> Callable[[list[Any]], Any]:
    """What makes a container or an array like this one of other parts, which are in the order of ``parts_of``."""
    if type(item) in (list, tuple):
        return type(item)
    if is_named_tuple(type(item)):
        return type(item)._make
    if type(item) is Assembled:
        return item.assemble
    if not isinstance(item, (dict, list, tuple)):
        if (is_made := is_result(item)) and item.flags.c_contiguous:
            shaped: Any = _Shaped(item.shape)
            return shaped
        return partial(_array_of, item, is_made)
    attributes = own_attributes(item)

    def assembled(parts: list[Any]) -> Any:
        count = len(parts) - len(attributes)
        result = remade(item, parts[:count])
        if attributes:
            result.__dict__.update(zip(attributes, parts[count:], strict=True))
        return result

    return assembled


class _Shaped(NamedTuple):
    """Makes an array of results."""

    shape: tuple[int, ...]

    def __call__(self, parts: list[Any]) -> Any:
        import numpy as np

        return _array_of(np.empty(self.shape, dtype=object), True, parts)


def is_named_tuple(kind: Any) -> bool:
    """Whether it is a class of named tuples, which have nothing but their items."""
    return hasattr(kind, "_fields") and kind.__bases__ == (tuple,)


def is_leaf(item: Any) -> bool:
    """Whether something that is no container is a number or a Value."""
    return isinstance(item, Value) or _is_number(item)


def _rebuilt(item: Any, leaves: Iterator[Any], make_array: Callable[[Any, list[Any]], Any]) -> Any:
    parts = parts_of(item)
    if parts is None:
        return next(leaves) if is_leaf(item) else item
    if _OF_ONE_KIND.issuperset(map(type, parts)):  # an array of numbers has a million of them
        new = list(islice(leaves, len(parts)))
    else:
        new = [_rebuilt(part, leaves, make_array) for part in parts]
    return make_array(item, new) if is_array(item) else assembler_of(item)(new)


def is_result(array: Any) -> bool:
    """Whether an array was made on symbols: then it is one of plain numbers, where its elements are."""
    import numpy as np

    kind = type(array)
    return hasattr(kind, "of_symbols") or (
        kind is np.ndarray and array.dtype == object and any(map(is_unknown, _elements(array)))
    )


def array_of(like: Any, parts: list[Any]) -> Any:
    """An array of the shape of another one, of these elements."""
    return _array_of(like, is_result(like), parts)


def _array_of(like: Any, is_result: bool, parts: list[Any]) -> Any:
    import numpy as np

    from micrograd.engine.value_arrays import ValueArray

    is_plain = is_result and _ELEMENTS.issuperset(map(type, parts))
    if is_plain and (numbers := np.array(parts)).dtype.kind in "bif":  # or an int is too long for an array of ints
        return numbers.reshape(like.shape)
    result = np.empty_like(like.view(ValueArray) if is_result else like, dtype=object)
    if result.flags.f_contiguous and not (like.flags.f_contiguous or result.flags.c_contiguous):
        gaps = np.empty((like.shape[0] + 1, *like.shape[1:]), dtype=object, order="F")  # order="A" asks for them
        result = gaps[:-1].view(type(result))
    result[...] = np.fromiter(parts, object, len(parts)).reshape(like.shape)
    return result


def is_unchanged(item: Any, before: Any) -> bool:
    """Whether containers hold the same objects as before; a missing key that a defaultdict added is no change."""
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
        if all(map(is_, _elements(item), _elements(before))):
            return True
        parts = list(zip_longest(_elements(item), _elements(before), fillvalue=_MISSING))
    else:
        return item is before
    was = own_attributes(before)
    return own_attributes(item).keys() == was.keys() and all(
        now is part or is_unchanged(now, part)
        for now, part in [*parts, *[(own_attributes(item)[name], was[name]) for name in was]]
    )


_MISSING = object()


_ELEMENTS = frozenset((bool, int, float))


def _elements(array: Any) -> list[Any]:
    import numpy as np

    return np.asarray(array).ravel().tolist()


def _is_array_of_numbers(item: Any) -> bool:
    if not is_array(item):
        return False
    kind = type(item)
    is_masked = kind is not sys.modules["numpy"].ndarray and hasattr(item, "mask")
    if is_masked or item.dtype.names:
        raise TypeError(
            f"a compiled function takes and returns arrays of numbers and Values, not a {kind.__name__} "
            f"{'with a mask: fill it first' if is_masked else 'with named fields: give them one by one'}"
        )
    _check_dtype(item.dtype)
    return item.dtype.kind in "iufO"


def _is_number(item: Any) -> bool:
    """Whether it is a leaf. A bool is not, nor is a member of an Enum: functions choose by these what to do."""
    if item is None or isinstance(item, Enum) or is_bool(item):
        return False
    return (isinstance(item, Integral) and not hasattr(item, "known")) or real_number(item) is not None


def _check_number(item: Any) -> None:
    """Refuse a number of a class of the user's with methods or attributes of its own, which a symbol has not."""
    kind: Any = type(item)
    base = int if issubclass(kind, int) else float
    if issubclass(kind, (int, float)) and not hasattr(kind, "dtype"):
        names = [*own_names(kind, kind.__mro__[: kind.__mro__.index(base)]), *getattr(item, "__dict__", ())]
        if names:
            raise TypeError(
                f"a compiled function is traced on symbols in place of the numbers in its arguments, which would lose "
                f"the `{min(names)}` of {kind.__name__}: give {base.__name__}(x)"
            )
    _check_dtype(getattr(item, "dtype", None))


def _check_dtype(dtype: Any) -> None:
    if dtype is not None and dtype.kind == "f" and dtype.itemsize > 8:
        raise TypeError(f"a compiled function computes in float64, and takes no {dtype.name}: give x.astype(float)")
