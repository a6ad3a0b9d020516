"""Masks: arrays of bools among the arguments that are others at each call are numbers of the program.

A bool is static: a function chooses by it what to do, so for another one it is traced again. But an array of bools
mostly is data, such as where a batch is padded:

    fast(x, mask)     the first mask is static, as it may be the only one, and an index:  x[mask]
    fast(x, other)    the second one is given as floats, to a function that compares them with 0

So is the first one, if it is long. Where that cannot be traced, as it is an index or decides, masks stay static.
"""

from __future__ import annotations

from functools import update_wrapper
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.guards.refusals import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MANY = 1024  # elements: a trace for a mask of so many takes long, and one for any of them does not


class Places(NamedTuple):
    """Where masks are among the arguments: by number, and by name."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def changed(
        self, arguments: tuple[Any, ...], named: dict[str, Any], change: Callable[[Any], Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """The arguments, and in the place of masks something else."""
        changed = [change(each) if number in self.numbers else each for number, each in enumerate(arguments)]
        return changed, {name: change(each) if name in self.names else each for name, each in named.items()}

    def masks(self, arguments: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """What is at these places."""
        return [*map(arguments.__getitem__, self.numbers), *map(named.__getitem__, self.names)]


def places_of(arguments: tuple[Any, ...], named: dict[str, Any]) -> Places | None:
    """Where masks are; None if there is none."""
    numbers = tuple([number for number, each in enumerate(arguments) if _is_mask(each)])
    names = tuple(sorted(name for name, each in named.items() if _is_mask(each))) if named else ()
    return Places(numbers, names) if numbers or names else None


def as_floats(mask: Any) -> Any:
    """What is given in the place of a mask."""
    return mask.astype(float)


class Masks:
    """Which function runs for masks at which places.

    Args:
        make: compiles a function that is given floats in their place; None where it cannot be traced.
    """

    def __init__(self, make: Callable[[Callable[..., Any], list[Any], dict[str, Any]], Any]) -> None:
        self._make = make
        self._first: dict[Places, Any] = {}
        self._compiled: dict[Places, Any] = {}

    def of(self, function: Callable[..., Any], places: Places, arguments: Any, named: dict[str, Any]) -> Any:
        """The compiled function for these masks; None where they are static."""
        if places in self._compiled:
            return self._compiled[places]
        masks = places.masks(arguments, named)
        found = [(mask.shape, mask.tobytes()) for mask in masks]
        is_first = self._first.setdefault(places, found) == found
        if is_first and all(mask.size < _MANY for mask in masks):
            return None
        compiled = self._make(_of_floats(function, places), *places.changed(arguments, named, as_floats))
        if compiled is not None or not is_first:
            self._compiled[places] = compiled
        return compiled

    def compiled(self) -> list[Any]:
        """All of them."""
        return [each for each in self._compiled.values() if each is not None]


def _of_floats(function: Callable[..., Any], places: Places) -> Callable[..., Any]:
    """The function, which makes bools of the floats that it is given."""

    def of_floats(*arguments: Any, **named: Any) -> Any:
        given, settings = places.changed(arguments, named, lambda floats: floats.astype(bool))
        masks = places.masks(given, settings)
        before = [list(mask.flat) for mask in masks]
        result = function(*given, **settings)
        if any(any(map(is_not, mask.flat, was)) for mask, was in zip(masks, before, strict=True)):
            raise TraceError("a mask among the arguments is changed in place: change a copy")
        return result

    made: Any = update_wrapper(of_floats, function, updated=())
    if hasattr(function, "differentiated"):  # a transform, whose function takes the same arguments
        made.differentiated = _of_floats(function.differentiated, places)
    return made


def _is_mask(item: Any) -> bool:
    return type(item) is np.ndarray and item.dtype.char == "?"
