"""Tracer: a recorder of operations on unknown numbers, such as the compiler's tape.

Operators, comparisons and derivatives ask a Tracer for the symbol of a result that they cannot compute, if a Tracer
is in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from micrograd.engine.recorder import Recorder, recorder_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


class Tracer(Recorder):
    """What only a recorder of unknown numbers is asked, beside what each recorder is."""

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """The element at an index that is a Value; a TypeError where that is no unknown int."""
        raise TypeError(f"an index must be an int, not {type(index).__name__}: {index!r:.80}")

    def compared(self, compare: Callable[..., bool], x: Any, y: Any) -> Any:
        """What comparing a Value with something gives."""
        raise NotImplementedError

    def symbol(self, value: Any) -> Any:
        """The symbol of a Value whose truth or int is asked for."""
        raise NotImplementedError

    def array(self, array: Any) -> Any:
        """The symbol of an array that has Values in it."""
        raise NotImplementedError

    def of_elements(self, ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """What a function of NumPy that works element by element gives; see value_arrays.py."""
        raise NotImplementedError

    def of_arrays(self, function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """What another function of NumPy gives."""
        raise NotImplementedError

    def called(self, function: Any, arrays: Sequence[Any], has_gradient: bool = True) -> Any:
        """What a function of whole arrays gives when the program runs; None if it is to be written in steps.

        Args:
            function: an ArrayFunction.
            arrays: its operands.
            has_gradient: whether gradients flow through it.
        """
        raise NotImplementedError

    def calls_again(self, function: Any, size: Any) -> bool:
        """Take note of another call of a function of matrices of a size; whether it is one of many."""
        raise NotImplementedError

    def refused(self, what: str, instead: str) -> NoReturn:
        """Raise, because this use of numbers cannot be written down; instead is a sentence that says what to write."""
        raise NotImplementedError

    def transformed(self, name: str, f: Any, arguments: tuple[Any, ...], settings: dict[str, Any], by: Any) -> Any:
        """What a transform of a function gives for arguments; None if it is to run as on any numbers.

        Args:
            name: "grad", which gives the value, too; "jacobian", "jvp" or "vjp".
            f: the function.
            arguments: those by position.
            settings: those by name.
            by: which arguments are differentiated by, as positions; of jvp, the tangents.
        """
        return None

    def copies(self, scalars: Sequence[Any], source: Any) -> list[Any] | None:
        """Copies of numbers and Values for a transform, the source, to differentiate by; None for ordinary ones."""
        raise NotImplementedError

    def reaches(self, results: Sequence[Any], sources: Sequence[Any]) -> bool:
        """Whether gradients flow to results from sources, as in differentiation.py."""
        raise NotImplementedError

    def numbers_taken(self, output: Any) -> None:
        """Someone takes plain numbers for the gradients of an output."""
        raise NotImplementedError

    def number_of(self, value: Any) -> Any:
        """The symbol of the plain number of a Value."""
        raise NotImplementedError

    def derivatives_of(self, results: Collection[Any], sources: Collection[Any]) -> Any:
        """What differentiates results by sources: it has the functions of higher_order.py as methods."""
        raise NotImplementedError

    def write_iterations(self) -> None:
        """Take note that many derivatives will be asked for of what is run many times."""


def tracer_on_top() -> Tracer | None:
    """The recorder in use, if it is a tracer."""
    recorder = recorder_on_top()
    return recorder if isinstance(recorder, Tracer) else None
