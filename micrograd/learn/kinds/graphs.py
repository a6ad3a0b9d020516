"""Answers about a graph: which node comes next, by which paths a gradient comes, which edge is wrong, what is zero."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any

from micrograd.learn.comparing import alike, numbers, same_words, words
from micrograd.learn.contributions import Contribution, contributions_under, labelled
from micrograd.learn.kinds.kind import Kind
from micrograd.learn.kinds.values import by_name, known
from micrograd.learn.running import AnswerError, called, finite, items, mapping, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from micrograd.engine.value import Value


def texts(answer: Any, what: str) -> list[str]:
    """The names in a list, or in a text with anything between them.

    Example:
        >>> texts("f -> a -> x", "")
        ['f', 'a', 'x']
    """
    if isinstance(answer, str):
        return words(answer)
    found = items(answer, "The answer")
    if found is None or not all(isinstance(name, str) for name in found):
        raise AnswerError(f"The answer is {what}, not {shown(answer)}")
    return [word for name in found for word in words(name)]


class BackwardOrder(Kind):
    """The order in which the Values of a graph pass their gradients on. Every order that is valid is right.

    Args:
        build: makes the graph and gives its root; every Value has a label.
    """

    def __init__(self, build: Callable[[], Value]) -> None:
        self.build = build

    def read(self, answer: Any) -> list[str]:
        """Each name once."""
        order = texts(answer, "a list of names in the order of their visits, such as ['f', 'a', 'x']")
        names = labelled(self.build())
        by_name(dict.fromkeys(order), [*names], "a visit", "")
        if twice := next((name for name in order if order.count(name) > 1), None):
            raise AnswerError(f"{twice} is there {order.count(twice)} times: each Value is visited once")
        return order

    def fault(self, answer: list[str], probe: None) -> str | None:
        """The first that is visited before its gradient is complete."""
        users: dict[str, list[str]] = {name: [] for name in answer}
        for contribution in contributions_under(self.build()):
            users[contribution.operand].append(contribution.user)
        for place, name in enumerate(answer):
            if late := next((user for user in users[name] if user in answer[place:]), None):
                return (
                    f"{name} is visited before {late}, whose contribution is still missing: "
                    f"what {name} passes on is not complete yet."
                )
        return None


class Paths(Kind):
    """A gradient, split into what comes by each path: a dict of products by path, such as {"f -> a -> x": 6.0}.

    Args:
        build: makes the graph and gives its root; every Value has a label.
        end: the label of the Value whose gradient it is.
    """

    def __init__(self, build: Callable[[], Value], end: str) -> None:
        self.build, self.end = build, end

    def read(self, answer: Any) -> dict[str, float]:
        """A finite number for each path, whatever is between its names."""
        example = f'{{"f -> ... -> {self.end}": 1.0}}'
        found = {}
        for path, product in mapping(answer, f"a dict with a number for each path, such as {example}").items():
            name = " -> ".join(texts(path, f"a dict whose keys are paths, such as {example}"))
            found[name] = finite(product, f"The number of {name}")
        return dict(sorted(found.items()))

    def paths(self) -> dict[str, list[Contribution]]:
        """Every path from the root to the end, with the edges that it is made of."""
        root = self.build()
        onward: dict[str, list[Contribution]] = {}
        for contribution in contributions_under(root):
            onward.setdefault(contribution.user, []).append(contribution)
        found, open_paths = {}, [(root.label, list[Contribution]())]
        while open_paths:
            name, edges = open_paths.pop()
            if name == self.end:
                found[" -> ".join([root.label, *(edge.operand for edge in edges)])] = edges
            open_paths += [(contribution.operand, [*edges, contribution]) for contribution in onward.get(name, ())]
        return found

    def fault(self, answer: dict[str, float], probe: None) -> str | None:
        """A path that is none, or is missing, or has another product."""
        paths = self.paths()
        for name, given in answer.items():
            if name not in paths:
                return f"{name} is no path from the result to {self.end}: follow the arrows, one by one."
            locals_ = [edge.local for edge in paths[name]]
            expected = 1.0
            for local in locals_:
                expected *= local
            if not alike(given, expected):
                factors = " * ".join(map(shown, locals_))
                summed = " The local derivatives along a path are multiplied, not added." * alike(given, sum(locals_))
                return f"Along {name}: expected {factors} = {shown(expected)}, not {shown(given)}.{summed}"
        if missing := [name for name in paths if name not in answer]:
            return (
                f"There {'is one more path' if len(missing) == 1 else f'are {len(missing)} more paths'} to {self.end}."
            )
        return None


class PlantedMistake(Kind):
    """The edge on which a backward pass went wrong, as "f -> a", found in a record of all its contributions.

    Args:
        build: makes the graph and gives its root; every Value has a label.
        user, operand: where the mistake is.
        wrong: from the right contribution to the one recorded on that edge.
    """

    def __init__(
        self, build: Callable[[], Value], user: str, operand: str, wrong: Callable[[Contribution], float]
    ) -> None:
        self.build, self.user, self.operand, self.wrong = build, user, operand, wrong

    def record(self) -> list[tuple[Contribution, float]]:
        """Each edge in backward order, with its contribution; what follows the mistake is computed from it."""
        gradients: dict[str, float] = {self.build().label: 1.0}
        found = []
        for right in contributions_under(self.build()):
            contribution = right._replace(gradient=gradients.get(right.user, 0.0))
            planted = (contribution.user, contribution.operand) == (self.user, self.operand)
            given = self.wrong(contribution) if planted else contribution.amount
            gradients[contribution.operand] = gradients.get(contribution.operand, 0.0) + given
            found.append((contribution, given))
        return found

    def read(self, answer: Any) -> tuple[str, str]:
        """The result and the operand."""
        edge = texts(answer, 'an edge such as "f -> a"')
        if len(edge) != 2:
            raise AnswerError(f'An edge leads from a result to one of its operands: "f -> a", not {shown(answer)}')
        edges = {(contribution.user, contribution.operand) for contribution, _ in self.record()}
        user, operand = edge
        if (user, operand) not in edges:
            backwards = ": the gradient goes the other way" if (operand, user) in edges else ""
            raise AnswerError(f"{user} contributes nothing to {operand}{backwards}")
        return user, operand

    def fault(self, answer: tuple[str, str], probe: None) -> str | None:
        """Why an edge is right that was taken for the wrong one."""
        if answer == (self.user, self.operand):
            return None
        user, operand = answer
        contribution, given = next(entry for entry in self.record() if (entry[0].user, entry[0].operand) == answer)
        return (
            f"{user} -> {operand} is as it should be: the gradient {shown(contribution.gradient)} that {user} had, "
            f"times the local derivative {shown(contribution.local)}, is {shown(given)}."
        )


class Zeros(Kind):
    """Which gradients are exactly zero, and why: a dict from the name of each to one of several reasons.

    Args:
        build: makes the graph and gives its root, and every Value asked about, by name.
        reasons: what may be said, and what it means.
        because: the reason of each that is zero.
    """

    def __init__(
        self,
        build: Callable[[], tuple[Value, dict[str, Value]]],
        reasons: Mapping[str, str],
        because: Mapping[str, str],
    ) -> None:
        self.build, self.reasons, self.because = build, dict(reasons), dict(because)

    def gradients(self) -> dict[str, float]:
        """The gradient of each that is asked about."""
        root, values = self.build()
        root.backward()
        return {name: value.grad for name, value in values.items()}

    def read(self, answer: Any) -> dict[str, str]:
        """A reason for each name."""
        found = {}
        given = mapping(answer, f'a dict such as {{"x": {next(iter(self.reasons))!r}}}')
        for name, said in known(given, [*self.gradients()]).items():
            reason = same_words(said, self.reasons) if isinstance(said, str) else None
            if reason is None:
                raise AnswerError(f"{shown(said)} is none of the reasons: {', '.join(map(repr, self.reasons))}")
            found[name] = reason
        return dict(sorted(found.items()))

    def fault(self, answer: dict[str, str], probe: None) -> str | None:
        """A gradient that is not zero, then a reason that is another, then what is missing."""
        gradients = self.gradients()
        for name in answer:
            if name not in self.because:
                return f"The gradient of {name} is not zero: it is {shown(gradients[name])}."
        for name, reason in answer.items():
            if reason != self.because[name]:
                return f"The gradient of {name} is zero, but not because of {reason!r}: {self.reasons[reason]}."
        if missing := len(self.because) - len(answer):
            return f"{missing} more {'is' if missing == 1 else 'are'} exactly zero."
        return None


class Reach(Kind):
    """One input, changed so that a gradient inside becomes what is wanted: a dict such as {"x": 2.0}.

    Args:
        build: makes the graph from the inputs by name, and gives its root.
        inputs: the numbers before the change.
        inside: the label of the Value whose gradient it is.
        target: what it should be.
    """

    tolerance = 1e-4  # the answer may be rounded

    def __init__(self, build: Callable[..., Value], inputs: Mapping[str, float], inside: str, target: float) -> None:
        self.build, self.inputs, self.inside, self.target = build, dict(inputs), inside, target

    def read(self, answer: Any) -> dict[str, float]:
        """One of the inputs and its new number."""
        wanted = "a dict with the one input that changes, such as {'x': 2.0}"
        given = mapping(answer, wanted)
        if len(given) != 1:
            raise AnswerError(f"The answer is {wanted}, not {shown(answer)}")
        ((name, number),) = known(given, [*self.inputs]).items()
        return {name: finite(number, f"The new number of {name}")}

    def reached(self, answer: dict[str, float]) -> float:
        """The gradient inside after the change."""
        root = called(lambda: self.build(**{**self.inputs, **answer}), (), f"the forward pass with {answer}")
        return labelled(root)[self.inside].grad

    def outcome(self, answer: dict[str, float], probe: None) -> Any:
        """The input and the gradient."""
        return [*answer], self.reached(answer)

    def fault(self, answer: dict[str, float], probe: None) -> str | None:
        """The gradient that it gives."""
        found, before = self.reached(answer), self.reached({})
        if alike(found, self.target, self.tolerance):
            return None
        moved = "as before" if alike(found, before, 1e-9) else f"before it was {shown(before)}"
        (name,) = answer
        change = f"With {name} = {shown(answer[name])} the gradient of {self.inside} is {shown(found)} ({moved})"
        return f"{change}; wanted is {shown(self.target)}."


class Checkpoints(Kind):
    """What to store and what to compute again: which results of a chain to keep during the forward pass.

    A chain has results 1 to ``length``; the last is the output. The backward pass needs each of them once, from the
    last to the first. What was not kept is computed again from the nearest one kept before it (result 0, the input, is
    always there), and all of that stretch is held while it is walked back.

    Args:
        length: how many results there are.
        memory: how many results may be held at any moment, the kept ones among them.
        again: how many may be computed again.
    """

    def __init__(self, length: int, memory: int, again: int) -> None:
        self.length, self.memory, self.again = length, memory, again

    def read(self, answer: Any) -> list[int]:
        """Places in the chain, in order."""
        given = list(answer) if isinstance(answer, Set) else numbers(answer) if isinstance(answer, str) else answer
        if (places := items(given, "The answer")) is None:
            raise AnswerError(
                f"The answer is the list of the results that are kept, such as [2, 5], not {shown(answer)}"
            )
        found = set()
        for place in places:
            result = finite(place, "What is kept")
            if result not in range(1, self.length + 1):
                raise AnswerError(f"The results are 1 to {self.length}; there is no result {shown(place)}")
            found.add(int(result))
        return sorted(found)

    def costs(self, kept: list[int]) -> tuple[int, int]:
        """How many are held at the worst moment, and how many are computed again."""
        most, again, held = len(kept), 0, set(kept)
        end = self.length
        for start in [*reversed(kept), 0]:
            stretch = set(range(start + 1, end + 1)) - held
            again += len(stretch)
            most = max(most, len(stretch) + sum(place <= end for place in kept))
            end = start
        return most, again

    def outcome(self, answer: list[int], probe: None) -> list[int]:
        """Its costs."""
        return [*self.costs(answer)]

    def fault(self, answer: list[int], probe: None) -> str | None:
        """Which of the two limits is broken."""
        most, again = self.costs(answer)
        if most > self.memory:
            return f"Keeping {shown(answer)}, {most} results are held at the worst moment; room is for {self.memory}."
        if again > self.again:
            return f"Keeping {shown(answer)}, {again} results are computed again; {self.again} are allowed."
        return None
