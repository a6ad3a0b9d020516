"""What a program of the suite consists of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Numbers = dict[str, Any]  # by name: a number, or lists of them, nested as deeply as one likes


@dataclass(frozen=True)
class Program:
    """A function of many numbers to one, written for each of those that compute its gradient.

    Attributes:
        title: what stands in the table.
        data: makes the parameters, by which the gradient is taken, and what else is given; the same at each call.
        scalars: the function in scalars, as a user of micrograd writes it, of parameters and what is given.
        arrays: the function in arrays, of an array library (array_libraries.py), parameters and what is given.
        numpy_gradient: its value and gradients in NumPy, derived by hand, where that is natural.
        c: a file beside this one, with value and gradients in C, derived by hand.
        arguments: whether what is given comes again with each call, as a batch does; else it is closed over.
    """

    title: str
    data: Callable[[], tuple[Numbers, Numbers]]
    scalars: Callable[[Numbers, Numbers], Any]
    arrays: Callable[[Any, Numbers, Numbers], Any]
    numpy_gradient: Callable[[Numbers, Numbers], tuple[float, Numbers]] | None = None
    c: str | None = None
    arguments: bool = False


def mapped(function: Callable[[Any], Any], nested: Any) -> Any:
    """Nested lists with the function's results in the places of the numbers."""
    return [mapped(function, item) for item in nested] if isinstance(nested, list) else function(nested)


def flat(nested: Any) -> list[Any]:
    """The numbers of dicts and lists, in order."""
    if isinstance(nested, dict):
        nested = list(nested.values())
    return [number for item in nested for number in flat(item)] if isinstance(nested, list) else [nested]
