"""Answers that are a number, some numbers by name, or a choice."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from micrograd.learn.comparing import alike, same_words
from micrograd.learn.contributions import about_sum, as_sum, contributions_under, labelled
from micrograd.learn.exercise import answer_of
from micrograd.learn.kinds.kind import Kind
from micrograd.learn.running import AnswerError, finite, items, mapping, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from micrograd.engine.value import Value


class Number(Kind):
    """One number.

    Args:
        digits: how many must be right, where it is no whole number; the answer may be rounded to them.
    """

    tolerance = 1e-7  # float32 is as good

    def __init__(self, digits: int = 4) -> None:
        self.digits = digits

    def read(self, answer: Any) -> float:
        """The number, which must be finite."""
        return finite(answer, "The answer")

    def fault(self, answer: float, probe: None) -> str | None:
        """The right number is not told: a guess should not end the exercise."""
        expected = answer_of(self.solution)
        if alike(answer, expected, self.tolerance, self.digits):
            return None
        if alike(answer, -expected, self.tolerance, self.digits):
            return f"{shown(answer)} has the right size and the wrong sign."
        return f"It is not {shown(answer)}; the right number is {'larger' if answer < expected else 'smaller'}."


def by_name(answer: Any, names: Sequence[str], what: str, example: str) -> dict[str, Any]:
    """An answer that is a dict with these keys.

    Args:
        answer: the answer.
        names: the keys, in the order in which a message asks for them.
        what: what each key stands for: "a gradient".
        example: how such a dict is written.

    Raises:
        AnswerError: if it is no dict, or a name is missing or unknown.
    """
    given = known(mapping(answer, f"a dict with {what} for each name, such as {example}"), names)
    if missing := [name for name in names if name not in given]:
        raise AnswerError(f"{what.capitalize()} is missing for {', '.join(missing)}")
    return {name: given[name] for name in names}


def known(answer: Mapping[Any, Any], names: Sequence[str]) -> dict[str, Any]:
    """A dict with its keys written as these names are.

    Raises:
        AnswerError: if one of them is none of the names.
    """
    found = {}
    for key, item in answer.items():
        if (name := same_words(key, names) if isinstance(key, str) else None) is None:
            near = get_close_matches(str(key), names, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"asked for are {', '.join(names)}"
            raise AnswerError(f"Nothing here is called {shown(key)}: {meant}")
        found[name] = item
    return found


class Gradients(Kind):
    """The gradients of labelled Values in a graph, as a dict of numbers by name.

    Args:
        build: makes the graph and gives its root; every Value has a label.
        names: of the Values asked for; all of the graph where it is left out.
    """

    def __init__(self, build: Callable[[], Value], names: Sequence[str] = ()) -> None:
        self.build, self.names = build, names

    def read(self, answer: Any) -> dict[str, float]:
        """A finite number for each name, in backward order."""
        order = [name for name in labelled(self.build()) if not self.names or name in self.names]
        found = by_name(answer, order, "a gradient", f"{{{order[0]!r}: 1.0, ...}}")
        return {name: finite(gradient, f"The gradient of {name}") for name, gradient in found.items()}

    def fault(self, answer: dict[str, float], probe: None) -> str | None:
        """The first wrong one in backward order, with the contributions that it is the sum of."""
        root = self.build()
        contributions, values = contributions_under(root), labelled(root)
        for name, given in answer.items():
            if alike(given, expected := values[name].grad):
                continue
            if values[name] is root:
                return f"{name} is where the backward pass begins: its gradient is 1, not {shown(given)}."
            reaching = [contribution for contribution in contributions if contribution.operand == name]
            said = f"The first wrong one, backwards from {root.label}, is {name}: expected {shown(expected)}, not "
            return f"{said}{shown(given)}. It gets: {as_sum(reaching)}. {about_sum(given, reaching)}".rstrip()
        return None


class Choice(Kind):
    """One of several texts.

    Args:
        *options: all that may be chosen, the solution among them.
    """

    def __init__(self, *options: str) -> None:
        self.options = options

    def read(self, answer: Any) -> str:
        """The option, however it is written: alone, as the only item of a list, or before what it stands for."""
        inside = items(answer, "The answer") or []
        text = inside[0] if len(inside) == 1 else answer
        if not isinstance(text, str):
            raise AnswerError(f"The answer is one of {', '.join(map(repr, self.options))}, not {shown(answer)}")
        if option := same_words(text.partition(" = ")[0], self.options):
            return option
        near = get_close_matches(text, self.options, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(map(repr, self.options))}"
        raise AnswerError(f"{shown(answer)} is not on the list: {meant}")

    def fault(self, answer: str, probe: None) -> str | None:
        """That it is another one."""
        return None if answer == answer_of(self.solution) else f"It is not {answer!r}."
