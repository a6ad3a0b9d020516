"""Answers that are functions of numbers, and are to do what another function does."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cached_property, partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.learn.comparing import alike
from micrograd.learn.exercise import answer_of
from micrograd.learn.kinds.kind import Kind
from micrograd.learn.running import DEEPEST, AnswerError, called, finite, items, shown
from micrograd.transforms import gradient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Point = tuple[Any, ...]

DRAWN = 20  # arguments by chance


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


class Same(Kind):
    """A function that gives what another one gives, on each list of arguments.

    Args:
        arguments: what both are called with; what fails is shrunk by leaving places out of lists.
        reference: the right one, which gives a number, or a list of numbers; left out, the solution of the exercise.
        draw: makes further arguments by chance; left out, they are those above with other numbers of the same sign
            and about the same size.
        gradients: whether it is to be called with Values too, and have the same gradients.
        most_nodes: how many results its graph may have; None for any number.
        tolerance: the relative difference allowed.
    """

    def __init__(
        self,
        arguments: Sequence[Point],
        *,
        reference: Callable[..., Any] | None = None,
        draw: Callable[[random.Random], Point] | None = None,
        gradients: bool = False,
        most_nodes: int | None = None,
        tolerance: float = 1e-6,
    ) -> None:
        self.arguments, self.draw, self._reference = arguments, draw, reference
        self.gradients, self.most_nodes, self.tolerance = gradients, most_nodes, tolerance

    @cached_property
    def reference(self) -> Callable[..., Any]:
        """The right function."""
        return self._reference or answer_of(self.solution)

    def read(self, answer: Any) -> Callable[..., Any]:
        """A function."""
        return required_function(answer, f"your function {name_of(self.reference)}{signature(self.reference)}")

    def probes(self) -> Sequence[Point]:
        """The arguments."""
        return self.arguments

    def drawn(self) -> Iterable[Point]:
        """Arguments by chance, where the reference gives a number."""
        source = random.Random()
        draws = [self.draw] * DRAWN if self.draw else [partial(_varied, arguments) for arguments in self.arguments]
        for draw in draws:
            yield from self._usable([draw(source)])

    def _usable(self, points: Iterable[Point]) -> Iterator[Point]:
        for point in points:
            with suppress(AnswerError):  # there, the reference gives no number
                self.outcome(self.reference, point)
                yield point

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
        right = self.outcome(self.reference, probe)
        wanted = right[0] if self.gradients else right
        try:
            given = self.outcome(answer, probe)
        except AnswerError as error:
            if error.__cause__ is None:  # the message says what is wanted
                raise
            raise AnswerError(f"{str(error).rstrip('.')}; expected {shown(wanted)}.") from error.__cause__
        value = given[0] if self.gradients else given
        if not alike(value, wanted, self.tolerance):
            return f"{call}: expected {beside(wanted, value)}."
        if self.gradients and not alike(given[1], right[1], self.tolerance):
            return f"The gradients of {call}: expected {beside(right[1], given[1])}. Its value is right."
        if self.most_nodes is not None and given[2] > self.most_nodes:
            return f"{call} is right, but it makes {given[2]} results; {self.most_nodes} are enough."
        return None

    def passed(self, answer: Callable[..., Any], probe: Point) -> str:
        """The call, so that the learner can compare the two."""
        return f"\n{call_of(answer, probe)} is right; it must be right for all numbers."

    def smaller(self, probe: Point) -> Iterable[Point]:
        """Arguments with a place left out of all lists that are as long as each other, also of those inside."""
        for length in sorted(_lengths(probe) - {1}):
            for place in range(length):
                yield from self._usable([_without(probe, place, length)])


def _lengths(argument: Any) -> set[int]:
    """How long the lists in the arguments are."""
    if not isinstance(argument, (list, tuple)):
        return set()
    own = {len(argument)} if isinstance(argument, list) else set[int]()
    return own.union(*map(_lengths, argument))


def _without(argument: Any, place: int, length: int) -> Any:
    if not isinstance(argument, (list, tuple)):
        return argument
    if isinstance(argument, list) and len(argument) == length:
        argument = argument[:place] + argument[place + 1 :]
    return type(argument)(_without(item, place, length) for item in argument)


def _varied(argument: Any, source: random.Random) -> Any:
    """Another number for each float, of the same sign and about the same size; all else stays as it is."""
    if isinstance(argument, (list, tuple)):
        return type(argument)([_varied(item, source) for item in argument])
    return float(f"{argument * source.uniform(0.5, 1.5):.4g}") if isinstance(argument, float) else argument


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
    if depth < DEEPEST:
        found = items(thing, f"What {call} gave", lambda item: _numbers(item, call, depth + 1))
        if found is not None:
            return found
    return finite(float(thing) if isinstance(thing, bool) else thing, f"What {call} gave")  # True is as good as 1
