"""Numbers in nested lists, tuples, dicts and arrays: taken out in order, and put back in the same shape."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from copy import copy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from micrograd._support.checks import Operand, are_all, is_array, real_number

if TYPE_CHECKING:
    from collections.abc import Callable

    Rebuild = Callable[[list[Any]], Any]


def flatten(nested: Any, what: str) -> tuple[list[Any], Rebuild]:
    """Take the scalars out of a nested container.

    Args:
        nested: a number or Value, or a list, tuple, dict or NumPy array of such, nested to any depth.
        what: what to call it in the error message.

    Returns:
        The scalars in order, and a function that puts others in their places.

    Raises:
        TypeError: if something in it is neither a number nor a container.

    Example:
        >>> scalars, rebuild = flatten({"w": [1.0, 2.0], "b": 3.0}, "the parameters")
        >>> scalars, rebuild([10, 20, 30])
        ([1.0, 2.0, 3.0], {'w': [10, 20], 'b': 30})
    """
    if isinstance(nested, Operand) or real_number(nested) is not None:
        return [nested], lambda scalars: scalars[0]
    if isinstance(nested, dict):
        return _joined([flatten(item, what) for item in base_of(nested).values(nested)], partial(remade, nested))
    if isinstance(nested, (list, tuple)):
        return _joined([flatten(item, what) for item in nested], partial(remade, nested))
    if is_array(nested):
        elements = nested.ravel().tolist()
        if not are_all(float, elements) and not are_all(Operand, elements):
            elements = [scalar for item in elements for scalar in flatten(item, what)[0]]
        return elements, array_of(nested.shape)
    raise TypeError(
        f"{what} must hold numbers in lists, tuples, dicts or arrays, not {type(nested).__name__}: {nested!r:.80}"
    )


def remade(container: Any, items: list[Any]) -> Any:
    """A list, tuple or dict like this one, of its class and with its attributes, with other items in its places.

    Example:
        >>> remade((1.0, 2.0), ["a", "b"]), remade({"w": 1.0}, ["a"])
        (('a', 'b'), {'w': 'a'})
    """
    kind: Any = type(container)
    if kind is list or kind is tuple:
        return kind(items)
    if kind is dict:
        return dict(zip(container, items, strict=True))
    if isinstance(container, tuple):
        return _with_attributes(_tuple_of(kind, items), container)
    try:
        result = kind.__new__(kind)
    except TypeError:  # it cannot be made without arguments
        result = copy(container)
    if isinstance(container, list):
        list.__setitem__(result, slice(None), items)
        return _with_attributes(result, container)
    if isinstance(container, defaultdict):
        result.default_factory = container.default_factory
    base = base_of(container)
    for key, item in zip(base.keys(container), items, strict=True):
        base.__setitem__(result, key, item)
    return _with_attributes(result, container)


def shape_of(nested: Any) -> tuple[int, ...] | None:
    """The shape of an array, or of lists and tuples of equal lengths; () of a number, and None of anything else.

    Example:
        >>> shape_of([[1.0, 2], [3, 4.0], (5, 6)]), shape_of(7.0), shape_of([]), shape_of([[1.0], [2.0, 3.0]])
        ((3, 2), (), (0,), None)
    """
    if is_array(nested):
        return tuple(nested.shape)
    shape: tuple[int, ...] = ()
    parts = [nested]
    while parts and all(isinstance(part, (list, tuple)) or (is_array(part) and part.ndim) for part in parts):
        lengths = set(map(len, parts))
        if len(lengths) > 1:
            return None
        shape += (*lengths,)
        parts = list(chain.from_iterable(parts))
    return None if any(issubclass(kind, (list, tuple, dict)) for kind in set(map(type, parts))) else shape


def base_of(container: Any) -> Any:
    """Whose methods read a dict as it is, whatever those of its class do."""
    return OrderedDict if isinstance(container, OrderedDict) else dict


def own_attributes(container: Any) -> dict[str, Any]:
    """The attributes of a list, tuple or dict of a class of the user's, other than its items."""
    attributes = getattr(container, "__dict__", None) if type(container) not in (list, tuple, dict) else None
    return attributes if type(attributes) is dict else {}


class Assembled:
    """A result of a traced function that is made of numbers which are symbols during the trace.

    A compiled function returns what ``assemble`` makes of the numbers. During the trace nothing can be done with it.

    Args:
        parts: the arrays that hold the symbols.
        assemble: makes the result of arrays of numbers in their places.
        what: what it is, for the error message.
    """

    def __init__(self, parts: list[Any], assemble: Rebuild, what: str) -> None:
        self.parts, self.assemble, self._what = parts, assemble, what

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(f"{self._what} can only be returned from a compiled function: use it outside of that")

    __matmul__ = __rmatmul__ = __mul__ = __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = __neg__ = _refuse
    __getitem__ = __iter__ = __len__ = _refuse
    __array_ufunc__ = None  # so that an array on the left asks it


def _tuple_of(kind: Any, items: list[Any]) -> Any:
    try:
        return tuple.__new__(kind, items)
    except TypeError:  # a tuple that is made in C, such as a time
        return kind(items)


def _with_attributes(result: Any, container: Any) -> Any:
    if getattr(container, "__dict__", None) is container:  # its items are its attributes
        result.__dict__ = result
    elif attributes := own_attributes(container):
        result.__dict__.update(attributes)
    return result


def _joined(parts: list[tuple[list[Any], Rebuild]], make: Callable[[list[Any]], Any]) -> tuple[list[Any], Rebuild]:
    """One container out of the parts of its items."""

    def rebuild(scalars: list[Any]) -> Any:
        items, start = [], 0
        for old, rebuild_item in parts:
            items.append(rebuild_item(scalars[start : start + len(old)]))
            start += len(old)
        return make(items)

    return [scalar for old, _ in parts for scalar in old], rebuild


def array_of(shape: tuple[int, ...]) -> Rebuild:
    """What puts scalars into an array of this shape."""

    def rebuild(scalars: list[Any]) -> Any:
        import numpy as np

        return _stacked(scalars, shape) if scalars else np.zeros(shape)

    return rebuild


def _stacked(items: list[Any], shape: tuple[int, ...]) -> Any:
    """An array of numbers; or, of containers of one shape, a container of arrays with the axes of shape first."""
    import numpy as np

    first = items[0]
    if isinstance(first, dict):
        return remade(first, [_stacked([item[key] for item in items], shape) for key in first])
    if isinstance(first, (list, tuple)):
        return remade(first, [_stacked(list(column), shape) for column in zip(*items, strict=True)])
    operands = [kind for kind in set(map(type, items)) if issubclass(kind, Operand)]
    if operands and all(kind.is_number for kind in operands):  # an array of numbers is one of floats
        items = [item._as_float() if isinstance(item, Operand) else float(item) for item in items]
    if are_all(Operand, items):  # NumPy would ask each what it has
        return first._array(np.fromiter(items, object, len(items)).reshape(shape))
    recorded = any(isinstance(item, Operand) or getattr(item, "dtype", None) == "O" for item in items)
    array = np.array(items, dtype=object if recorded else float).reshape(shape + np.shape(first))
    operand = next((item for item in array.flat if isinstance(item, Operand)), None) if recorded else None
    return array if operand is None else operand._array(array)


def matching(nested: Any, model: Any, what: str, like: str = "the argument") -> list[Any]:
    """The scalars of a nested container in the order of those of another, which has the same shape.

    Raises:
        ValueError: if the shapes differ.
    """
    if isinstance(model, dict) and isinstance(nested, dict) and nested.keys() == model.keys():
        return [scalar for key in model for scalar in matching(nested[key], model[key], what, like)]
    lists = (list, tuple)
    if isinstance(model, lists) and isinstance(nested, lists) and len(nested) == len(model):
        return [s for item, other in zip(nested, model, strict=True) for s in matching(item, other, what, like)]
    if is_array(model) and is_array(nested) and nested.shape == model.shape:
        return flatten(nested, what)[0]
    if isinstance(model, Operand) or real_number(model) is not None:
        scalars, _ = flatten(nested, what)
        if scalars and scalars[0] is nested:
            return scalars
    raise ValueError(f"{what} must have the shape of {like}, {model!r:.60}, not {nested!r:.60}")
