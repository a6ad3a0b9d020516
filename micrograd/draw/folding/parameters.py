"""What parameters are called: by the way that leads to them from the network that they belong to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


def places_of_arrays(arrays: Mapping[str, Any]) -> dict[Value, Place]:
    """The places of Values that are found by name, as elements of arrays: what a compiled function reads.

    Args:
        arrays: object arrays by name: ``scale``, ``weights``, or as modules name theirs, ``layers.0.neurons.2.w``.

    Example:
        >>> import numpy as np
        >>> weights = np.array([Value(1.0), Value(2.0)])
        >>> [place.name for place in places_of_arrays({"layers.0.neurons.2.w": weights}).values()]
        ['layer 1, neuron 3, w1', 'layer 1, neuron 3, w2']
        >>> [place.name for place in places_of_arrays({"model.table": weights}).values()]
        ['model.table[0]', 'model.table[1]']
    """
    places: dict[Value, Place] = {}
    for name, array in arrays.items():
        for index in product(*map(range, array.shape)):
            places.setdefault(
                array[index], _place_of_neuron(name, index) or _place([*name.split("."), *map(str, index)])
            )
    return places


_OF_NEURON = re.compile(r"(.*?)\.?(?:layers\.(\d+)\.)?(?:neurons\.(\d+)\.)(w|b)")


def _place_of_neuron(name: str, indices: tuple[int, ...]) -> Place | None:
    """The place of a weight of a neuron in a layer, as it would be had the network run; None for anything else."""
    if (found := _OF_NEURON.fullmatch(name)) is None:
        return None
    before, layer, neuron, kind = found.groups()
    boxes = [before] * bool(before) + [f"Layer {int(layer or 0) + 1}", f"Neuron {int(neuron) + 1}"]
    hint = kind + "".join(str(index + 1) for index in indices)
    path = ", ".join([before] * bool(before) + [box.lower() for box in boxes[-2:]] + [hint])
    return Place(hint, path, tuple(boxes), ", ".join([*boxes[:-1], kind]), tuple(index + 1 for index in indices))


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
