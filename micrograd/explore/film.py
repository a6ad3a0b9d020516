"""What a page needs to show a training run: the graph of the network, and its numbers along the way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from micrograd.engine.value import Value
from micrograd.explore.passes import passes

if TYPE_CHECKING:
    from micrograd.training.recording import Recording

MOST_POINTS = 400
MOST_LOSSES = 2_000


def film(recording: Recording) -> dict[str, Any]:
    """The graph of the network at work on the first of the inputs, with the film of its parameters.

    Raises:
        TypeError: if the network gives something else than Values.
        ValueError: if the recording has no steps, or the numbers of a frame are not finite.
    """
    frames = recording.frames()
    if len(frames) < 2:
        raise ValueError("nothing was recorded: give the recording to fit(record=) first")
    for step, numbers in frames:
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"the parameters are not finite after step {step}")
    inputs = [Value(x, label=f"x{place}") for place, x in enumerate(recording.inputs[0], 1)]
    network: Any = recording.model  # Module has no __call__, its subclasses have
    outputs = _outputs(network(inputs))
    root = outputs[0] if len(outputs) == 1 else sum(outputs[1:], outputs[0])
    data, nodes = passes(root)
    position = {node: index for index, node in enumerate(nodes)}
    _name(data["nodes"], position, outputs, root)
    parameters = [position.get(parameter) for parameter in recording.model.parameters()]
    used = [place for place, node in enumerate(parameters) if node is not None]
    stride = math.ceil(len(recording.losses) / MOST_LOSSES)
    return data | {
        "film": {
            "parameters": [parameters[place] for place in used],
            "frames": [{"step": step, "numbers": [numbers[place] for place in used]} for step, numbers in frames],
            "losses": [[step, recording.losses[step - 1]] for step in range(1, len(recording.losses) + 1, stride)],
            "inputs": [position.get(x) for x in inputs],
            "outputs": [position[output] for output in outputs],
            "points": recording.inputs[:MOST_POINTS] if len(inputs) == 2 else [],
            "targets": (recording.targets or [])[:MOST_POINTS],
        }
    }


def _outputs(output: Any) -> list[Value]:
    outputs = list(output) if isinstance(output, (list, tuple)) else [output]
    for value in outputs:
        if not isinstance(value, Value):
            raise TypeError(f"the network must give Values, not {type(value).__name__}: {value!r:.80}")
    return outputs


def _name(nodes: list[dict[str, Any]], position: dict[Value, int], outputs: list[Value], root: Value) -> None:
    """Name the outputs, where they have no label of their own."""
    for place, output in enumerate(outputs, 1):
        nodes[position[output]]["hint"] = f"output {place}" if len(outputs) > 1 else "output"
    if len(outputs) > 1:
        nodes[position[root]]["hint"] = "sum of outputs"
