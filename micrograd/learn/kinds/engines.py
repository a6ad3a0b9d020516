"""Answers that are parts of an engine: an operation with its ``_backward``, an order, a whole class Value.

They are run as in micrograd's lecture: every gradient 0, that of the root 1, then ``_backward()`` of each result in
backward order. So a `=` that should be `+=` shows, which mg.Value would hide.
"""

from __future__ import annotations

import operator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from micrograd.engine.order import topological_order
from micrograd.engine.primitive import find
from micrograd.engine.value import Value
from micrograd.learn.comparing import alike
from micrograd.learn.contributions import about_sum, as_sum, contributions_under
from micrograd.learn.kinds.functions import name_of, required_function
from micrograd.learn.kinds.kind import Kind
from micrograd.learn.programs import Program, programs, simpler
from micrograd.learn.running import AnswerError, called, finite, items, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_COUNT = 40  # programs
_BEGUN = 10  # of them are run again
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "neg": operator.neg,
}


class OnPrograms(Kind):
    """What is tried on random programs, each beside the same program on mg.Value.

    Args:
        names: the primitives in the programs.
        plain: whether plain numbers stand among the operands.
        most_steps: how long the longest programs are.
    """

    def __init__(self, names: Sequence[str], *, plain: bool = False, most_steps: int = 6) -> None:
        self.names, self.plain, self.most_steps = tuple(names), plain, most_steps

    def probes(self) -> Sequence[Program]:
        """The programs, the smallest first."""
        return programs(self.names, _COUNT, plain=self.plain, most_steps=self.most_steps)

    def smaller(self, probe: Program) -> Iterable[Program]:
        """Programs that are simpler."""
        return simpler(probe)


def reference(program: Program) -> list[Any]:
    """A program on mg.Value: its places, labelled as messages name them, with their gradients; None for a number."""
    places = program.run(Value, lambda name, *operands: find(name)(*operands))
    for place, node in enumerate(places):
        if isinstance(node, Value):
            node.label = program.name(place)
    return [node if isinstance(node, Value) else None for node in places]


def first_wrong_gradient(program: Program, given: Sequence[float | None]) -> str | None:
    """The first gradient in backward order that is wrong, with the contributions that should be in it.

    Args:
        program: what was run.
        given: the gradient at each place; None for a plain number.
    """
    right = reference(program)
    contributions = contributions_under(right[-1])
    order = dict.fromkeys(contribution.operand for contribution in contributions)
    places = {node.label: place for place, node in enumerate(right) if node is not None}
    for name in ["f", *order, *(name for name in places if name not in order and name != "f")]:
        expected, found = right[places[name]].grad, given[places[name]]
        if found is None or alike(found, expected):
            continue
        reaching = [contribution for contribution in contributions if contribution.operand == name]
        if not reaching:
            want = "1, where the backward pass begins" if name == "f" else "0, as nothing uses it"
            return f"For {program}: the gradient of {name} is {shown(found)}; expected {want}."
        edges = dict.fromkeys(f"edge backwards is {contribution.user} -> {name}" for contribution in reaching)
        first = next(iter(edges)) if len(edges) == 1 else f"gradient backwards is that of {name}"
        return (
            f"For {program}: the first wrong {first}. Expected {shown(expected)}, not {shown(found)}. "
            f"It gets: {as_sum(reaching)}. {about_sum(found, reaching)}"
        ).rstrip()
    return None


def walk_by_hand(root: Any, order: Sequence[Any]) -> None:
    """Every gradient 0, the root's 1, then each ``_backward()``, from the last of the order to the first."""
    for node in order:
        node.grad = 0.0
    root.grad = 1.0
    for node in reversed(order):
        node._backward()


class Operation(OnPrograms):
    """A function that makes a Value by hand, ``Value(data, (a, b), "*")``, and assigns its ``_backward``.

    Args:
        name: the primitive that it does the work of.
        beside: the other primitives in the programs.
    """

    def __init__(self, name: str, beside: Sequence[str]) -> None:
        super().__init__((name, *beside))
        self.name = name
        operands = "(a,)" if len(find(name).derivatives) == 1 else "(a, b)"
        self.example = f'begin with `out = Value(..., {operands}, "{find(name).symbol}")`'

    def read(self, answer: Any) -> Callable[..., Any]:
        """A function."""
        return required_function(answer, f"a function that returns a Value made by hand ({self.example})")

    def probes(self) -> Sequence[Program]:
        """The programs in which the operation is."""
        return [program for program in super().probes() if any(step.name == self.name for step in program.steps)]

    def run(self, answer: Callable[..., Any], program: Program) -> list[Any]:
        """The places of a program, with the gradients of a walk by hand."""

        def apply(name: str, *operands: Any) -> Any:
            if name != self.name:
                return find(name)(*operands)
            made = called(answer, operands, f"{name_of(answer)} in {program}")
            if not isinstance(made, Value):
                raise AnswerError(f"For {program} it gave {shown(made)}: return the Value, `return out`")
            if made._primitive is find(self.name) or made.is_leaf or made._prev != set(operands):
                raise AnswerError(f"For {program} it did not make its Value by hand from its operands: {self.example}")
            return made

        places = program.run(Value, apply)
        called(lambda: walk_by_hand(places[-1], topological_order(places[-1])), (), f"For {program}, `_backward()`")
        return places

    def outcome(self, answer: Callable[..., Any], probe: Program) -> Any:
        """Data and gradients."""
        return [(place.data, place.grad) for place in self.run(answer, probe)]

    def fault(self, answer: Callable[..., Any], probe: Program) -> str | None:
        """The first wrong number forward, then the first wrong edge backward."""
        places, right = self.run(answer, probe), reference(probe)
        for number, (place, node) in enumerate(zip(places, right, strict=True)):
            if not alike(place.data, node.data):
                return f"For {probe}: {probe.name(number)} is {shown(place.data)}; expected {shown(node.data)}."
        return first_wrong_gradient(probe, [place.grad for place in places])


class Order(OnPrograms):
    """A function from a root to all Values under it, each after its operands. Every such order is right."""

    def __init__(self) -> None:
        super().__init__(("add", "mul", "tanh"))

    def read(self, answer: Any) -> Callable[..., Any]:
        """A function."""
        return required_function(answer, "a function from a root to a list of Values")

    def outcome(self, answer: Callable[..., Any], probe: Program) -> list[int]:
        """The places of the program in the order given."""
        nodes = _Place.of(probe)
        given = called(answer, [nodes[-1]], f"{name_of(answer)}(f)")
        if (found := items(given, "What it gave")) is None:
            raise AnswerError(f"It gave {shown(given)}: return the list of Values")
        if odd := [thing for thing in found if not isinstance(thing, _Place)]:
            raise AnswerError(f"It gave {shown(odd[0])} in its list, which is no Value of the graph")
        return [thing.place for thing in found]

    def fault(self, answer: Callable[..., Any], probe: Program) -> str | None:
        """One that is there twice, comes too early, or is missing."""
        given = self.outcome(answer, probe)
        for index, place in enumerate(given):
            name = probe.name(place)
            if place in given[:index]:
                return f"For {probe}: {name} is in the list more than once."
            for operand in _Place.of(probe)[place]._prev:
                if operand.place not in given[:index]:
                    return f"For {probe}: {name} comes before its operand {operand.label}."
        if missing := [node.label for node in _Place.of(probe) if node.place not in given]:
            return f"For {probe}: {', '.join(missing)} is missing."
        return None


class _Place:
    """A Value of a program, with operands in a set that is gone through in the same order each time."""

    def __init__(self, program: Program, place: int, operands: Iterable[_Place]) -> None:
        self.place, self.label = place, program.name(place)
        self._prev = set(operands)

    def __hash__(self) -> int:
        return self.place

    def __repr__(self) -> str:
        return f"the Value {self.label}"

    @classmethod
    def of(cls, program: Program) -> list[_Place]:
        """All of a program."""
        nodes = [cls(program, place, ()) for place in range(len(program.inputs))]
        for place, step in enumerate(program.steps, len(nodes)):
            nodes.append(cls(program, place, [nodes[operand] for operand in step.operands]))
        return nodes


class _Begun(Program):
    """A program in which Values have gradients before the backward pass."""

    __slots__ = ()


class Engine(OnPrograms):
    """A class Value of the learner's own, as far as it has come.

    Args:
        names: what it can do: "add", "mul", ..., and functions such as "tanh", which are methods.
        remembers: whether results know their operands, ``_prev``, and the symbol of the operation, ``_op``.
        backward: "" for not yet; "by hand" where each result has a ``_backward``; "itself" for ``f.backward()``.
        plain: whether plain numbers may stand on either side.
    """

    def __init__(
        self, names: Sequence[str], *, remembers: bool = False, backward: str = "", plain: bool = False
    ) -> None:
        super().__init__(names, plain=plain)
        self.remembers, self.backward = remembers, backward

    def read(self, answer: Any) -> type:
        """A class that makes an object of a number."""
        if not isinstance(answer, type) or answer.__module__ == "builtins":
            raise AnswerError(f"The answer is your class, Value, not {shown(answer)}")
        if issubclass(answer, Value):
            raise AnswerError("This is mg.Value: hand over the class that you wrote yourself")
        return answer

    def probes(self) -> Sequence[Program]:
        """The programs; where there are no operations yet, numbers alone."""
        alone = [Program(numbers, frozenset(), ()) for numbers in ((2.0,), (-3.5,), (0.0, 1.25))]
        return super().probes() if self.names else alone

    def drawn(self) -> Iterable[Program]:
        """Some of the programs again, with gradients that are not 0 before the backward pass."""
        return [_Begun(*program) for program in self.probes()[:_BEGUN]] if self.backward == "itself" else []

    def smaller(self, probe: Program) -> Iterable[Program]:
        """Programs that are simpler."""
        return [type(probe)(*program) for program in super().smaller(probe)]

    def run(self, answer: type, program: Program, before: Mapping[int, float]) -> list[Any]:
        """The places of a program on the learner's class, with gradients as far as it has come.

        Args:
            answer: the class.
            program: what is run.
            before: the gradients that places have before the backward pass, where these are not 0.
        """

        def made(number: float) -> Any:
            found = called(answer, [number], f"Value({shown(number)})")
            self._data(found, f"Value({shown(number)})")
            return found

        def apply(name: str, *operands: Any) -> Any:
            function = _OPERATORS.get(name) or (lambda operand: getattr(operand, name)())
            result = called(function, operands, f"{_call(name, operands)}")
            if not isinstance(result, answer):
                raise AnswerError(f"{_call(name, operands)} gave {shown(result)}, which is no Value of yours")
            return result

        with _in_order(answer):
            places = program.run(made, apply)
            for place, gradient in before.items():
                places[place].grad = gradient
            if self.backward == "by hand":
                order = list(filter(lambda place: isinstance(place, answer), places))
                called(lambda: walk_by_hand(places[-1], order), (), f"For {program}, `_backward()`")
            elif self.backward == "itself":
                called(lambda: places[-1].backward(), (), f"For {program}, f.backward()")
        return places

    def _data(self, thing: Any, what: str) -> float:
        return finite(_attribute(thing, "data", what), f"The data of {what}")

    def outcome(self, answer: type, probe: Program) -> Any:
        """All that it has come to: data, memory, gradients."""
        found: list[Any] = []
        for place, thing in enumerate(self.run(answer, probe, {})):
            if place in probe.plain:
                continue
            what = probe.name(place)
            found.append(self._data(thing, what))
            found.append(finite(_attribute(thing, "grad", what), f"The grad of {what}"))
            if self.remembers:
                found.append(len(_operands(thing, what)))
                found.append(str(_attribute(thing, "_op", what)))
        return found

    def fault(self, answer: type, probe: Program) -> str | None:
        """The first wrong number forward, what a result forgot, then the first wrong edge backward."""
        if isinstance(probe, _Begun):
            return self._overwritten(answer, probe)
        places, right = self.run(answer, probe, {}), reference(probe)
        for place, (thing, node) in enumerate(zip(places, right, strict=True)):
            if node is None:
                continue
            name = probe.name(place)
            if not alike(given := self._data(thing, name), node.data):
                return f"For {probe}: {name} is {shown(given)}; expected {shown(node.data)}."
            if self.remembers and (forgotten := self._forgotten(probe, places, place)):
                return f"For {probe}: {forgotten}"
            gradient = finite(_attribute(thing, "grad", name), f"The grad of {name}")
            if not self.backward and gradient != 0:
                return f"For {probe}: the grad of {name} is {shown(gradient)} before any backward pass; expected 0."
        if not self.backward:
            return None
        return first_wrong_gradient(probe, [getattr(place, "grad", None) for place in places])

    def _overwritten(self, answer: type, program: Program) -> str | None:
        """A gradient that was not 0 before the backward pass, and is wrong after it."""
        right = reference(program)
        right[-1].backward()
        last = len(right) - 1
        values = [place for place in range(len(program.inputs)) if place not in program.plain]
        before = {last: 5.0, **dict.fromkeys(values, 10.0)}
        places = self.run(answer, program, before)
        for place, earlier in before.items():
            expected = 1.0 if place == last else earlier + right[place].grad
            if not alike(given := finite(places[place].grad, f"The grad of {program.name(place)}"), expected):
                why = "the backward pass begins at f" if place == last else "each use of a Value adds to its gradient"
                return (
                    f"For {program}: {program.name(place)} had a gradient of {shown(earlier)} before f.backward(), and "
                    f"has {shown(given)} after it; expected {shown(expected)}, as {why}."
                )
        return None

    def _forgotten(self, program: Program, places: list[Any], place: int) -> str:
        """What a Value does not remember of how it was made; "" for nothing."""
        name, index = program.name(place), place - len(program.inputs)
        given, symbol = _operands(places[place], name), _attribute(places[place], "_op", name)
        step = program.steps[index] if index >= 0 else None
        operands = {id(places[operand]) for operand in step.operands} if step else set()
        if {id(thing) for thing in given} != operands:
            texts = ", ".join(dict.fromkeys(program.name(operand) for operand in step.operands)) if step else "empty"
            return f"{name}._prev is not right: expected {texts}; it has {len(given)} in it."
        expected = find(step.name).symbol if step else ""
        return "" if symbol == expected else f"{name}._op is {shown(symbol)}; expected {expected!r}."


@contextmanager
def _in_order(kind: Any) -> Iterator[None]:
    """Let sets of a learner's Values be gone through in the same order each time, so that a mistake repeats itself."""
    if kind.__hash__ is not object.__hash__:  # one of the learner's own, or none beside an __eq__
        yield
        return
    numbers: dict[int, int] = {}
    kind.__hash__ = lambda self: numbers.setdefault(id(self), len(numbers))
    try:
        yield
    finally:
        del kind.__hash__


def _attribute(thing: Any, name: str, what: str) -> Any:
    try:
        return getattr(thing, name)
    except AttributeError:
        raise AnswerError(f"{what} has no {name}: set self.{name} in __init__") from None
    except Exception as error:  # a property of the learner's
        raise AnswerError(f"{what}.{name} raised {type(error).__name__}: {error}") from error


def _operands(thing: Any, what: str) -> Any:
    given = _attribute(thing, "_prev", what)
    if not isinstance(given, (set, frozenset)):
        raise AnswerError(f"{what}._prev is {shown(given)}; expected the set of its operands")
    return given


def _call(name: str, operands: Sequence[Any]) -> str:
    """A call as the learner would write it, with the data of operands."""
    texts = [
        shown(operand) if isinstance(operand, (int, float)) else f"Value({shown(getattr(operand, 'data', None))})"
        for operand in operands
    ]
    if name == "neg":
        return f"-{texts[0]}"
    return f" {find(name).symbol} ".join(texts) if name in _OPERATORS else f"{texts[0]}.{name}()"
