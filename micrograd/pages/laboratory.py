"""What a page needs to go on training by itself: the losses as programs, the examples, and the optimiser's update.

The loss of each example is a graph. Examples whose graphs are of one shape share one program, and are the numbers that
differ: their inputs, and the constants that are not the same for all, such as targets. A program is a list of nodes,
each after its operands:

    ["p", 3]      the parameter 3            ["x", 0]      the first input
    ["c", 1.0]    a constant                 [2, 0, 5]     the primitive 2 of the page, of the nodes 0 and 5

The graph of the page is the first program: the loss of the first example.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import real_number
from micrograd._support.containers import flatten
from micrograd.contexts.calls import neuron_call
from micrograd.contexts.modes import masks_from
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.optim import SGD, Adam, AdamW, Optimizer
from micrograd.pages.formulas import Formula, Quantity
from micrograd.pages.passes import jsonable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.engine.primitive import Primitive
    from micrograd.training.recording import Recording, Run

MOST_NUMBERS = 20_000  # in the examples of a page
MOST_WORK = 500_000  # nodes of all examples together: these take Python some seconds, and a page a third of one a step
MOST_OF_EXAMPLE = 50_000  # nodes of the loss of an example, where some are longer than others
MOST_CLASSES = 7  # as many have a colour

Node = list[Any]
_HIDDEN = ("relu", "tanh", "sigmoid", "softplus", "silu", "gelu")  # activations of one operand


class Untrainable(Exception):  # noqa: N818  # it is no error: it says why a page does not train
    """Why a page does not train."""


def loss_of(run: Run, example: Any, width: int) -> tuple[Value, list[Value]]:
    """The loss of an example, and the Values that stand in it for its inputs: none, where these are not found.

    The inputs are the first argument that holds as many numbers as the network of the recording takes.

    Raises:
        Untrainable: if there is no loss, or none that is a Value.
    """
    arguments = example if isinstance(example, tuple) else (example,)
    placed, inputs = _with_inputs(arguments, width)
    try:
        with masks_from(_refuse_masks):
            try:
                loss = run.loss(*placed)
            except Exception:  # a loss may need plain numbers, and raise anything where it finds others
                inputs = []
                loss = run.loss(*arguments)
    except Exception as error:
        raise Untrainable(f"the loss cannot be computed again: {error}") from error
    if not isinstance(loss, Value):
        raise Untrainable(f"the loss is no Value, but {type(loss).__name__}")
    return loss, inputs


def loss_of_longest(run: Run) -> tuple[Value, list[Value]]:
    """The loss of the longest example whose graph a page shows well, and no inputs; shorter ones have a place in it.

    Raises:
        Untrainable: if there is no loss, or none that is a Value.
    """
    lengths: dict[int, Any] = {}
    for example in run.examples:
        lengths.setdefault(_length(example), example)
    for length in sorted(lengths, reverse=True):
        loss = loss_of(run, lengths[length], 0)
        if len(topological_order(loss[0])) <= MOST_OF_EXAMPLE:
            break
    return loss


def _length(example: Any) -> int:
    """How many numbers there are in an example."""
    try:
        return len(flatten(example, "an example")[0])
    except TypeError:
        return 0


def _refuse_masks(count: int, rate: float) -> list[float]:
    raise Untrainable("dropout draws other numbers at each step")


def _with_inputs(arguments: tuple[Any, ...], width: int) -> tuple[tuple[Any, ...], list[Value]]:
    """The arguments with Values for the inputs."""
    for place, argument in enumerate(arguments):
        if real_number(argument) is not None:
            continue
        try:
            numbers, rebuild = flatten(argument, "an argument")
        except TypeError:
            continue
        if len(numbers) == width and all(real_number(number) is not None for number in numbers):
            inputs = [Value(float(number), label=f"x{index}") for index, number in enumerate(numbers, 1)]
            return (*arguments[:place], rebuild(list(inputs)), *arguments[place + 1 :]), inputs
    return arguments, []


class Programs:
    """Programs over the parameters of a model, and the primitives that they are made of.

    Args:
        parameters: those of the model, by the numbers that they have on the page.
        primitives: by the numbers that they have on the page; more are added.

    Attributes:
        parameters: those of the model, each with its number.
        found: the programs, as the page has them.
    """

    def __init__(self, parameters: Sequence[Value], primitives: dict[Primitive, int]) -> None:
        self.parameters = {parameter: index for index, parameter in enumerate(parameters)}
        self.primitives = primitives
        self.found: list[dict[str, Any]] = []
        self._constants: list[list[list[Any]]] = []  # of each program, those of each example
        self._by_shape: dict[Any, int] = {}

    def nodes(self, order: Sequence[Value], inputs: Sequence[Value]) -> list[Node]:
        """The nodes of a program, in this order."""
        place = {value: index for index, value in enumerate(order)}
        of_inputs = {value: index for index, value in enumerate(inputs)}
        return [self._node(value, place, of_inputs) for value in order]

    def _node(self, value: Value, place: dict[Value, int], inputs: dict[Value, int]) -> Node:
        if value in self.parameters:
            return ["p", self.parameters[value]]
        if value in inputs:
            return ["x", inputs[value]]
        if value.is_leaf:
            return ["c", jsonable(value.data)]
        number = self.primitives.setdefault(value._primitive, len(self.primitives))
        return [number, *(place[operand] for operand in value._operands())]

    def add(self, loss: Value, inputs: Sequence[Value]) -> tuple[int, list[Any]]:
        """The program of a loss, and its constants."""
        order = topological_order(loss)
        nodes = self.nodes(order, inputs)
        constants = [node[1] for node in nodes if node[0] == "c"]
        shape = tuple(("c",) if node[0] == "c" else tuple(node) for node in nodes)
        if (number := self._by_shape.setdefault(shape, len(self.found))) == len(self.found):
            self.found.append({"nodes": nodes, "root": order.index(loss), "activations": activations(order)})
            self._constants.append([])
        self._constants[number].append(constants)
        return number, constants

    def varying(self, number: int) -> list[int]:
        """Which of a program's constants are not the same for all of its examples."""
        rows = self._constants[number]
        return [place for place, column in enumerate(zip(*rows, strict=True)) if len(set(map(repr, column))) > 1]

    def value(self, number: int, inputs: Sequence[float], constants: Sequence[Any]) -> float:
        """What a program gives for other inputs and constants, with the numbers that the parameters have."""
        parameters, primitives, given = list(self.parameters), list(self.primitives), iter(constants)
        numbers: list[float] = []
        for kind, *places in self.found[number]["nodes"]:
            if kind == "p":
                numbers.append(parameters[places[0]].data)
            elif kind == "x":
                numbers.append(inputs[places[0]])
            elif kind == "c":
                numbers.append(float(next(given)))
            else:
                numbers.append(primitives[kind].forward(*(numbers[place] for place in places)))
        return numbers[self.found[number]["root"]]


def activations(order: Sequence[Value]) -> list[int]:
    """Where the activations of neurons are that may be exchanged for another."""
    exchangeable = {TABLE[name] for name in _HIDDEN}
    return [
        index
        for index, value in enumerate(order)
        if value._primitive in exchangeable and (call := neuron_call(value)) is not None and call.of.nonlin
    ]


def laboratory(recording: Recording, programs: Programs) -> dict[str, Any]:
    """The examples of a training as programs, and how it updates the parameters.

    Raises:
        Untrainable: if a page cannot train; it says why.
    """
    if not recording.inputs:
        raise Untrainable("its examples are no rows of numbers, and each length has a graph of its own")
    run, width = run_of(recording), len(recording.inputs[0])
    optimizer = _checked_optimizer(run, recording.model.parameters())
    count = len(run.examples)
    if count * (width + 1) > MOST_NUMBERS:
        raise Untrainable(f"{count:,} examples of {width} inputs are more than fit into a page")
    examples, targets = [], []
    for example in run.examples:
        loss, inputs = loss_of(run, example, width)
        number, constants = programs.add(loss, inputs)
        if count * len(programs.found[number]["nodes"]) > MOST_WORK:
            raise Untrainable(f"{count:,} examples are too many for a loss this large")
        examples.append((number, [jsonable(x.data) for x in inputs], constants))
        targets.append(_target(example))
    for number, program in enumerate(programs.found):
        constants_at = [place for place, node in enumerate(program["nodes"]) if node[0] == "c"]
        program["varying"] = [constants_at[index] for index in programs.varying(number)]
    packed = [
        [number, *inputs, *(constants[index] for index in programs.varying(number))]
        for number, inputs, constants in examples
    ]
    trained = set(optimizer.parameters)
    return {
        "programs": programs.found,
        "examples": packed,
        "targets": targets if None not in targets else [],
        "classes": _classes(examples, targets, programs),
        "trained": [index for index, p in enumerate(recording.model.parameters()) if p in trained and p.requires_grad],
        "optimizers": [_update(optimizer, f"{type(optimizer).__name__}, recorded"), *_usual_updates()],
        "activations": {
            name: programs.primitives.setdefault(TABLE[name], len(programs.primitives))
            for name in ("identity", *_HIDDEN)
        },
        "batch": run.batch_size,
        "seed": run.seed if type(run.seed) is int and 0 <= run.seed < 2**32 else None,
    }


def run_of(recording: Recording) -> Run:
    """What fit was called with.

    Raises:
        Untrainable: if it was not.
    """
    if recording.run is None:
        raise Untrainable("the loss function was not recorded, as mg.fit does")
    return recording.run


def _checked_optimizer(run: Run, parameters: list[Value]) -> Optimizer:
    if not isinstance(run.optimizer, Optimizer):
        raise Untrainable(f"{type(run.optimizer).__name__} is not an Optimizer of mg.optim")
    if not set(run.optimizer.parameters) <= set(parameters):
        raise Untrainable("its optimiser also trains Values that are not the model's")
    return run.optimizer


def _target(example: Any) -> float | None:
    """What an example is to be, where one number beside its inputs says it."""
    if not isinstance(example, tuple) or len(example) != 2:
        return None
    number = real_number(example[1])
    return None if number is None else float(number)


def _classes(
    examples: list[tuple[int, list[Any], list[Any]]], targets: list[float | None], programs: Programs
) -> list[dict[str, Any]]:
    """For each target a program and constants that go with any inputs; [] if there are none.

    The constants of the first example with a target must give the losses of all. They may be others: a logsumexp
    has the largest number that it met as a constant, and gives the same with another.
    """
    classes: dict[float, tuple[int, list[Any]]] = {}
    for (number, inputs, constants), target in zip(examples, targets, strict=True):
        if target is None or not inputs:
            return []
        own = classes.setdefault(target, (number, constants))
        if own != (number, constants) and not _is_same(programs, number, inputs, constants, own):
            return []
    if not 2 <= len(classes) <= MOST_CLASSES:
        return []
    return [
        {"target": target, "example": [number, *(constants[index] for index in programs.varying(number))]}
        for target, (number, constants) in sorted(classes.items())
    ]


def _is_same(programs: Programs, number: int, inputs: list[Any], constants: list[Any], other: tuple[int, Any]) -> bool:
    """Whether the constants of another example give the same loss."""
    if number != other[0]:
        return False
    try:
        losses = [programs.value(number, inputs, each) for each in (constants, other[1])]
    except (ArithmeticError, ValueError):
        return False
    return math.isclose(*losses, rel_tol=1e-9, abs_tol=1e-12)


def _usual_updates() -> list[dict[str, Any]]:
    """The updates of the optimisers that a page offers."""
    parameters = [Value(0.0)]
    return [
        _update(SGD(parameters), "SGD"),
        _update(SGD(parameters, momentum=0.9), "SGD, momentum 0.9"),
        _update(SGD(parameters, momentum=0.9, nesterov=True), "SGD, Nesterov 0.9"),
        _update(Adam(parameters), "Adam"),
        _update(AdamW(parameters), "AdamW"),
    ]


def _update(optimizer: Optimizer, name: str) -> dict[str, Any]:
    """An optimiser's update as formulas of the parameter ("0"), its gradient ("1"), the rate ("2") and the state."""
    parameter, gradient, rate, *state = (Quantity(str(place)) for place in range(3 + optimizer.states))
    try:
        number, state_after = optimizer.update(parameter, gradient, tuple(state), rate)
        return {"name": name, "parameter": _formula(number), "state": list(map(_formula, state_after))} | {
            "names": [
                optimizer.state_names[place] if place < len(optimizer.state_names) else f"state {place + 1}"
                for place in range(optimizer.states)
            ]
        }
    except Exception as error:  # a user's optimiser may do anything with what it is handed
        raise Untrainable(f"the update of {type(optimizer).__name__} is no formula: {error}") from error


def _formula(result: Any) -> Formula:
    return result.formula if isinstance(result, Quantity) else float(result)
