"""Answers that are functions of numbers: a derivative, or a program that is to do what another one does."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.learn.kinds.kind import Kind
from micrograd.learn.running import DEEPEST, AnswerError, alike, called, finite, shown
from micrograd.testing.gradcheck import GradientError, gradcheck
from micrograd.transforms import gradient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Point = tuple[Any, ...]


def required_function(answer: Any, what: str) -> Callable[..., Any]:
    """The answer, if it is a function."""
    if not callable(answer):
        raise AnswerError(f"The answer is {what}, not {type(answer).__name__}: {shown(answer)}")
    return answer


def call_of(function: Any, arguments: Sequence[Any]) -> str:
    """A call as messages show it."""
    return f"{name_of(function)}({', '.join(shown(argument, digits=10) for argument in arguments)})"


def name_of(function: Any) -> str:
    """What a message calls a function."""
    name = getattr(function, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else "your function"


def beside(expected: Any, given: Any) -> str:
    """What was expected and what was given, with as many digits as it takes to tell them apart."""
    short = shown(expected), shown(given)
    return "{}, not {}".format(*(short if short[0] != short[1] else (expected, given)))


class Derivative(Kind):
    """A function that gives the derivative of another at a number; of several numbers, as many derivatives.

    Args:
        function: of floats and Values, whose derivative is asked for.
        points: where it is checked, by gradcheck.
        formula: the function as text.
    """

    def __init__(self, function: Callable[..., Any], points: Sequence[Point], formula: str) -> None:
        self.function, self.points, self.formula = function, points, formula

    def read(self, answer: Any) -> Callable[..., Any]:
        """A function."""
        return required_function(answer, f"a function that gives the derivative of {self.formula}")

    def probes(self) -> Sequence[Point]:
        """The points."""
        return self.points

    def outcome(self, answer: Callable[..., Any], probe: Point) -> list[float]:
        """The derivatives that it gives at a point."""
        call = call_of(answer, probe)
        given = called(answer, probe, call)
        each = given if isinstance(given, (list, tuple)) else [given]
        numbers = [finite(one, f"What {call} gave") for one in each]
        if len(numbers) != len(probe):
            raise AnswerError(
                f"{call} gave {len(each)} numbers; a derivative for each of {len(probe)} inputs is wanted"
            )
        return numbers

    def fault(self, answer: Callable[..., Any], probe: Point) -> str | None:
        """What gradcheck says, with the numbers side by side."""
        given = self.outcome(answer, probe)
        try:
            gradcheck(self.function, probe, gradient=lambda *_: given, tolerance=self.tolerance)
        except GradientError as error:
            index, row = next((i, row) for i, row in enumerate(error.report.rows) if row.verdict == "WRONG")
            by = f" with respect to input {index + 1}" if len(probe) > 1 else ""
            return (
                f"{call_of(answer, probe)}: expected {shown(row.numeric)}{by}, by differences of {self.formula}, "
                f"not {shown(row.analytic)}."
            )
        return None


class Same(Kind):
    """A function that gives what another one gives, on each list of arguments.

    Args:
        reference: the right one. It gives a number, or a list of numbers.
        arguments: what both are called with; what fails is shrunk by leaving items of lists out.
        what: what the function does, for messages.
        gradients: whether it is to be called with Values too, and have the same gradients.
        most_nodes: how many results its graph may have; None for any number.
        tolerance: the relative difference allowed.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        arguments: Sequence[Point],
        what: str,
        *,
        gradients: bool = False,
        most_nodes: int | None = None,
        tolerance: float = 1e-6,
    ) -> None:
        self.reference, self.arguments, self.what = reference, arguments, what
        self.gradients, self.most_nodes, self.tolerance = gradients, most_nodes, tolerance

    def read(self, answer: Any) -> Callable[..., Any]:
        """A function."""
        return required_function(answer, f"a function that {self.what}")

    def probes(self) -> Sequence[Point]:
        """The arguments."""
        return self.arguments

    def outcome(self, answer: Callable[..., Any], probe: Point) -> Any:
        """What it gives, its gradients, and how many results its graph has, as far as these are asked for."""
        call = call_of(answer, probe)
        given = _numbers(called(answer, _copied(probe), call), call)
        if not self.gradients:
            return given
        values, leaves = _values(probe)
        root = called(answer, values, f"{call}, with Values,")
        if not isinstance(root, Value):
            raise AnswerError(f"{call} gave {shown(root)} where its arguments were Values; it must give a Value")
        try:
            slopes = gradient(root, leaves) if root.requires_grad else [0.0] * len(leaves)
        except (ArithmeticError, ValueError) as error:
            raise AnswerError(f"{call} has no gradient: {error}") from error
        nodes = sum(not node.is_leaf for node in topological_order(root))
        return given, [finite(slope, f"A gradient of {call}") for slope in slopes], nodes

    def fault(self, answer: Callable[..., Any], probe: Point) -> str | None:
        """The first difference: in the value, in the gradients, in the number of nodes."""
        call = call_of(answer, probe)
        given, right = self.outcome(answer, probe), self.outcome(self.reference, probe)
        value, wanted = (given[0], right[0]) if self.gradients else (given, right)
        if not alike(value, wanted, self.tolerance):
            return f"{call}: expected {beside(wanted, value)}."
        if self.gradients and not alike(given[1], right[1], self.tolerance):
            return f"The gradients of {call}: expected {beside(right[1], given[1])}. Its value is right."
        if self.most_nodes is not None and given[2] > self.most_nodes:
            return f"{call} is right, but it makes {given[2]} results; {self.most_nodes} are enough."
        return None

    def smaller(self, probe: Point) -> Iterable[Point]:
        """Arguments with a place left out of all lists that are as long as each other."""
        for length in sorted({len(argument) for argument in probe if isinstance(argument, list)} - {1}):
            for place in range(length):
                changed = tuple(_without(argument, place, length) for argument in probe)
                with suppress(AnswerError):  # there, the reference gives no number
                    self.outcome(self.reference, changed)
                    yield changed


def _without(argument: Any, place: int, length: int) -> Any:
    if isinstance(argument, list) and len(argument) == length:
        return argument[:place] + argument[place + 1 :]
    return argument


def _copied(argument: Any) -> Any:
    """Lists of its own, so that a function that changes its arguments changes nothing here."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(map(_copied, argument))
    return argument


def _values(arguments: Any) -> tuple[Any, list[Value]]:
    """The arguments with a Value in place of each float, and these Values."""
    leaves: list[Value] = []

    def made(argument: Any) -> Any:
        if isinstance(argument, (list, tuple)):
            return type(argument)(map(made, argument))
        if not isinstance(argument, float):
            return argument
        leaves.append(Value(argument))
        return leaves[-1]

    return made(arguments), leaves


def _numbers(thing: Any, call: str, depth: int = 0) -> Any:
    if isinstance(thing, (list, tuple)) and depth < DEEPEST:
        return [_numbers(item, call, depth + 1) for item in thing]
    return finite(float(thing) if isinstance(thing, bool) else thing, f"What {call} gave")  # True is as good as 1
