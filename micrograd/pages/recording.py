"""What a page needs to show a training run: the loss and the network as graphs, and their numbers along the way."""

from __future__ import annotations

import math
import sys
from array import array
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_type
from micrograd.contexts.calls import neuron_call
from micrograd.contexts.modes import evaluating
from micrograd.draw.array_steps import with_numbers
from micrograd.draw.folding.parameters import ways_to_parameters
from micrograd.draw.text import enclosed
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.pages.formulas import composites
from micrograd.pages.laboratory import (
    Programs,
    Untrainable,
    activations,
    laboratory,
    loss_of,
    loss_of_longest,
    run_of,
)
from micrograd.pages.passes import NO_INPUTS, entry_of, formulas_of, jsonable, passes
from micrograd.pages.sequences import NO_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from micrograd.engine.primitive import Primitive
    from micrograd.training.recording import Recording, Snapshot

MOST_POINTS = 400
MOST_LOSSES = 2_000
MOST_OF_NETWORK = 20_000  # Values; of a network with more, there is no map
MOST_NUMBERS = 500_000  # of parameters, in all frames: 5 MB; of a large network there are fewer frames
MOST_NUMBERS_OF_TOKENS = 80_000  # the same beside the graph of a program that reads tokens, which is large itself


def of_recording(
    recording: Recording, boxes: Mapping[str, Any] = NO_INPUTS, classes: Sequence[str] = NO_CLASSES
) -> dict[str, Any]:
    """The graph of the loss of the first example, with the recorded parameters, and what it takes to go on training.

    Where the loss is not known, the graph is that of the network at work on the first of the inputs. Meanwhile the
    parameters have the numbers of the first snapshot, with which all of it can be computed, also where the training
    ended with others.

    Args:
        recording: of a training.
        boxes: of inputs by name, as explore takes them.
        classes: the names of classes, as explore takes them.

    Raises:
        TypeError: if the network gives something else than Values.
        ValueError: if the recording has no steps.
    """
    snapshots = recording.snapshots()
    if len(snapshots) < 2:
        raise ValueError("nothing was recorded: give the recording to fit(record=) first")
    parameters = recording.model.parameters()
    most = MOST_NUMBERS if recording.inputs else MOST_NUMBERS_OF_TOKENS
    stride = math.ceil(len(snapshots) * len(parameters) / most) or 1
    snapshots = [*snapshots[:-1:stride], snapshots[-1]]
    return with_numbers(
        parameters, snapshots[0].numbers, lambda: _of_recording(recording, snapshots, parameters, boxes, classes)
    )


def _of_recording(
    recording: Recording,
    snapshots: list[Snapshot],
    parameters: list[Value],
    boxes: Mapping[str, Any],
    classes: Sequence[str],
) -> dict[str, Any]:
    first = recording.inputs[0] if recording.inputs else []
    inputs = [Value(x, label=f"x{place}") for place, x in enumerate(first, 1)]
    outputs: list[Value] = []
    if inputs:
        with evaluating():
            outputs = _outputs(recording.model(inputs))
    try:
        run = run_of(recording)
        root, inputs_of_root = loss_of(run, run.examples[0], len(inputs)) if inputs else loss_of_longest(run)
        hints = {root: "loss"}
        reason = None
    except Untrainable as error:
        if not outputs:
            raise ValueError(f"there is nothing to show: there are no inputs, and {error}") from error
        root, inputs_of_root = outputs[0] if len(outputs) == 1 else sum(outputs[1:], outputs[0]), inputs
        hints = {root: "sum of outputs"} if len(outputs) > 1 else {}
        hints |= {output: _name(place, outputs) for place, output in enumerate(outputs, 1)}
        reason = _words(error)
    data, nodes = passes(root, inputs=boxes, classes=classes)
    position = {node: index for index, node in enumerate(nodes)}
    for node, hint in hints.items():
        data["nodes"][position[node]]["hint"] = hint
    table: dict[Primitive, int] = {}
    for node in nodes:
        if not node.is_leaf:
            table.setdefault(node._primitive, len(table))
    programs = Programs(parameters, table)
    training: dict[str, Any] = {"reason": reason}
    if reason is None:
        try:
            training = laboratory(recording, programs)
        except Untrainable as error:
            training = {"reason": _words(error)}
    data["recording"] = {
        "parameters": [position.get(parameter) for parameter in parameters],
        "names": _names(recording.model, parameters),
        "nodes": [position[node] for node in topological_order(root)],
        **_snapshots(snapshots, len(parameters), bool(inputs)),
        "losses": _losses(recording.losses),
        "inputs": [position.get(x) for x in inputs_of_root],
        "first": first,
        "network": _network(outputs, inputs, programs) if outputs else None,
        "points": recording.inputs[:MOST_POINTS] if len(inputs) == 2 else [],
        "targets": (recording.targets or [])[:MOST_POINTS],
        "training": training,
    }
    return data | _with_primitives(table, training)


def _words(reason: Untrainable) -> str:
    return enclosed(str(reason))


def _outputs(output: Any) -> list[Value]:
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    for value in outputs:
        check_type(isinstance(value, Value), "the network must give Values", value)
    return outputs


def _names(model: Any, parameters: list[Value]) -> list[str]:
    """What the parameters are called: by the way that leads to them from the model."""
    names = {value: enclosed("".join(way).removeprefix(".")) for way, value in ways_to_parameters(model)}
    return [names[parameter] for parameter in parameters]


def _name(place: int, outputs: list[Value]) -> str:
    return f"output {place}" if len(outputs) > 1 else "output"


def _losses(losses: list[float]) -> list[list[Any]]:
    """The loss of every step, or of every so many, and that of the last."""
    stride = math.ceil(len(losses) / MOST_LOSSES)
    return [[step, jsonable(losses[step - 1])] for step in range(1, len(losses) + 1, stride)]


def _snapshots(snapshots: list[Snapshot], count: int, has_states: bool) -> dict[str, Any]:
    """The numbers of the parameters at each snapshot, and those of the optimiser: matrices with a row for each.

    Where the page cannot train on, it needs none of the optimiser.
    """
    states = (len(state) for snapshot in snapshots if has_states for state in snapshot.state or [] if state)
    width = max(states, default=0)
    columns = [_column(snapshots, count, place) for place in range(width)]
    return {
        "frames": [
            {
                "step": snapshot.step,
                "batch": snapshot.batch,
                "rate": None if snapshot.rate is None else jsonable(snapshot.rate),
                "known": snapshot.state is not None and has_states,
            }
            for snapshot in snapshots
        ],
        "numbers": _packed(number for snapshot in snapshots for number in snapshot.numbers),
        "states": columns,
    }


def _column(snapshots: list[Snapshot], count: int, place: int) -> str:
    """One number of the state at each snapshot: of each parameter, or one for all, as Adam's count of steps is."""
    rows = [
        [state[place] if state else 0.0 for state in snapshot.state] if snapshot.state is not None else [0.0] * count
        for snapshot in snapshots
    ]
    if all(number == row[0] for row in rows for number in row):
        return _packed(row[0] for row in rows)
    return _packed(number for row in rows for number in row)


def _packed(numbers: Iterable[float]) -> str:
    """Floats of 64 bits, the lowest byte first, in base64: all their digits in half the characters."""
    packed = array("d", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return b64encode(packed.tobytes()).decode()


def _network(outputs: list[Value], inputs: list[Value], programs: Programs) -> dict[str, Any] | None:
    """The network as a program, with its layers of neurons, as far as it is made of these."""
    order: list[Value] = list(dict.fromkeys(node for output in outputs for node in topological_order(output)))
    if len(order) > MOST_OF_NETWORK:
        return None
    place = {node: index for index, node in enumerate(order)}
    layers: dict[int, list[dict[str, Any]]] = {}
    called = [(call, node) for node in order if (call := neuron_call(node)) is not None]
    for call, node in sorted(called, key=lambda pair: pair[0].end):  # in the order of the calls, which is the layer's
        neuron, called_with = call.of, call.given
        weights = [
            [place[x], programs.parameters[weight]]
            for x, weight in zip(called_with, neuron.w, strict=True)
            if x in place and weight in programs.parameters
        ]
        cell = {"node": place[node], "weights": weights, "bias": programs.parameters.get(neuron.b)}
        layers.setdefault(id(called_with), []).append(cell)
    return {
        "nodes": programs.nodes(order, inputs),
        "activations": activations(order),
        "outputs": [place[output] for output in outputs],
        "layers": list(layers.values()),
    }


def _with_primitives(table: dict[Primitive, int], training: dict[str, Any]) -> dict[str, Any]:
    """The primitives of the page with those that only the training has, and the composites among them."""
    entries = [entry_of(primitive) for primitive in table]
    updates = [[optimizer["parameter"], *optimizer["state"]] for optimizer in training.get("optimizers", [])]
    return {
        "primitives": entries,
        "composites": composites(formulas_of(entries) + [formula for update in updates for formula in update]),
    }
