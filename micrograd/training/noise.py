"""Noise: the random numbers of a loss, drawn before each step of fit and passed to the loss.

A loss that draws random numbers itself has others at each call without the compiler, and would have the same ones at
each call with it. So fit draws them, once before each step, and hands each example its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import is_array
from micrograd.compiler.guards.structure import Structure
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Noise:
    """What a function draws for the examples of a batch, checked.

    Args:
        draw: takes the number of examples, and returns as many items.
        count: the number of examples in the first batch. It is drawn for at once, since a compiler needs an example.
        first: what was drawn for it already, if anything was.

    Attributes:
        example: the item of the first example.
        drawn: what was drawn for the last batch.

    Raises:
        TypeError: if draw returns no list or array, or an item holds anything else than numbers.
        ValueError: if draw returns another number of items, or they are not all alike.
    """

    def __init__(self, draw: Callable[[int], Any], count: int, first: Any = None) -> None:
        self._draw = draw
        items = self._drawn(count) if first is None else first
        self.example: Any = items[0]
        self._key = Structure(self.example).key
        self._check_alike(items)
        self._first: Any = items
        self.drawn: Any = items

    def draw(self, batch: Sequence[int]) -> Sequence[Any]:
        """An item for each example of a batch."""
        if self._first is not None:
            self._first = None
        else:
            items = self._drawn(len(batch))
            self._check_alike(items)
            self.drawn = items
        return self.drawn

    def _drawn(self, count: int) -> Sequence[Any]:
        items: Any = self._draw(count)
        if not isinstance(items, (list, tuple)) and not (is_array(items) and items.ndim):
            raise TypeError(
                f"noise must return a list or an array with an item for each example, not {type(items).__name__}: "
                f"{items!r:.80}"
            )
        if len(items) != count:
            raise ValueError(f"noise must return an item for each of {count} examples, not {len(items)} items")
        return items

    def _check_alike(self, items: Sequence[Any]) -> None:
        for item in items[:1] if is_array(items) else items:  # the rows of an array are alike
            if _holds_others(item):
                raise TypeError(
                    f"noise must be numbers, or lists, dicts and arrays of them, not {item!r:.80}; write "
                    ".astype(float) for an array of bools"
                )
            if Structure(item).key != self._key:
                raise ValueError(
                    f"noise must be alike for all examples and steps: the first was like {self.example!r:.80}, and "
                    f"now there is {item!r:.80}"
                )


def _holds_others(item: Any) -> bool:
    """Whether there is anything else than numbers in nested containers."""
    if isinstance(item, dict):
        return any(map(_holds_others, item.values()))
    if isinstance(item, (list, tuple)):
        return any(map(_holds_others, item))
    if is_array(item):
        return item.dtype.kind not in "iuf"
    return isinstance(item, (Value, bool)) or not Structure(item).leaves
