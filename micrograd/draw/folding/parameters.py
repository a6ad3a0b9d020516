"""What parameters are called: by the way that leads to them from the network that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd.draw.folding.runs import Run


@dataclass(frozen=True)
class Place:
    """Where a parameter is.

    Attributes:
        hint: its name among its neighbours: ``w2``, ``query[3][5]``.
        name: in full: ``layer 1, neuron 3, w2``; the same as the hint where there is nothing to add.
        boxes: the boxes to put it in where it stands with all others: ``("Layer 1", "Neuron 3")``, ``("query",)``.
        family: what it has in common with those that are used alike.
        indices: its place in a matrix or vector of parameters.
    """

    hint: str
    name: str
    boxes: tuple[str, ...]
    family: str
    indices: tuple[int, ...] = ()


def places_of_parameters(runs: Iterable[Run], layers: Sequence[Sequence[Sequence[Any]]]) -> dict[Value, Place]:
    """The places of the parameters of all networks that ran.

    Args:
        runs: what ran; the parameters of modules are looked up.
        layers: the networks; each is layers, of neurons in their order.

    Example:
        >>> from micrograd.nn import Neuron
        >>> neuron = Neuron(2)
        >>> [place.hint for place in places_of_parameters([], [[[neuron]]]).values()]
        ['w1', 'w2', 'b']
    """
    places: dict[Value, Place] = {}
    seen: set[int] = set()
    for network in layers:
        for number, layer in enumerate(network, 1):
            for index, neuron in enumerate(layer, 1):
                if id(neuron) in seen:
                    continue
                seen.add(id(neuron))
                alone = len(network) == len(layer) == 1
                boxes = () if alone else (f"Layer {number}", f"Neuron {index}")
                before = "" if alone else f"layer {number}, neuron {index}, "
                family = f"layer {number}"
                for place, weight in enumerate(neuron.w, 1):
                    places[weight] = Place(f"w{place}", f"{before}w{place}", boxes, f"{family} w", (place,))
                places[neuron.b] = Place("b", f"{before}b", boxes, f"{family} b")
    # a module is what names its parameters: this room stands below that of networks, which show themselves by it
    modules = {id(run.of): run for run in runs if run.given is None and hasattr(run.of, "named_parameters")}
    for run in sorted(modules.values(), key=lambda run: run.start):  # the outermost begin first
        for path, parameter in run.of.named_parameters():
            if isinstance(parameter, Value) and parameter not in places:
                places[parameter] = _place(path.split("."))
    return places


def _place(path: list[str]) -> Place:
    """The place of a parameter of a module, from its path: ``query.3.5``."""
    end = len(path)
    while end > 1 and path[end - 1].isdigit():
        end -= 1
    indices = tuple(map(int, path[end:]))
    name = _words(path[:end])
    shown = name + "".join(f"[{index}]" for index in indices)
    family = ".".join("*" if part.isdigit() else part for part in path)
    return Place(shown, shown, (name,), family, indices)


def _words(path: list[str]) -> str:
    """A path as one reads it: ``layers.0.w`` is ``layers[0].w``."""
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path).removeprefix(".")
