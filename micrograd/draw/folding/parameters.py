"""What parameters are called, by the way that leads to them from their network; and inputs, by names that are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import is_array
from micrograd.contexts.calls import neuron_call
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from micrograd.draw.folding.runs import Run


@dataclass(frozen=True)
class Place:
    """Where a parameter is.

    Attributes:
        hint: its name among its neighbours: ``w[1]``, ``query[3][5]``.
        name: in full, as a program writes it: ``layers[0].neurons[2].w[1]``; the same as the hint where there is
            nothing to add.
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
        ['w[0]', 'w[1]', 'b']
    """
    # a module is what names its parameters: this room stands below that of networks, which show themselves by it
    by_start = sorted(runs, key=lambda run: (run.start, -run.end))  # what a call does first starts with it
    parts = {id(run.of): run.of for run in by_start if run.given is None}
    modules = [part for part in parts.values() if _is_module(part)]  # the outermost begin first
    names = [_names_around(part) for part in parts.values() if isinstance(part, FunctionType)]
    steps: dict[Value, list[str]] = {}
    for root in (*modules, *names):
        for way, parameter in ways_to_parameters(root):
            if len(way) > 1 or not isinstance(root, _Names):  # a variable of its own stays where it is used
                steps.setdefault(parameter, way)
    places: dict[Value, Place] = {}
    for network in layers:
        for number, layer in enumerate(network):
            is_alone = len(network) == len(layer) == 1
            for index, neuron in enumerate(layer):
                index = place_in_layer(neuron, index)
                before = [".layers", f"[{number}]"] * (len(network) > 1)
                before += [".neurons", f"[{index}]"] * (len(network) > 1 or len(layer) > 1 or neuron._place is not None)
                own = [(weight, [".w", f"[{place}]"]) for place, weight in enumerate(neuron.w)]
                for parameter, last in [*own, (neuron.b, [".b"])]:
                    if parameter not in places:
                        way = steps.get(parameter, before + last)
                        boxes = () if is_alone else (f"Layer {number + 1}", f"Neuron {index + 1}")
                        places[parameter] = _place_in_neuron(way, len(last), boxes, f"layer {number + 1}")
    for parameter, way in steps.items():
        places.setdefault(parameter, _place(way))
    return places


class _Names(dict[str, Any]):
    """What a function finds by name."""


def _names_around(function: FunctionType) -> _Names:
    """What a function uses from around it, such as a table that is in no module; nothing for one of the library."""
    if str(function.__module__).startswith("micrograd."):
        return _Names()
    codes, names = [function.__code__], function.__globals__
    for code in codes:  # and those of comprehensions and functions in it
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    found = _Names({name: names[name] for code in codes for name in code.co_names if name in names})
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a variable that is assigned later
            found[name] = cell.cell_contents
    return found


def place_in_layer(neuron: Any, otherwise: int) -> int:
    """Which neuron of its layer this is: others may not have gone into the graph.

    Args:
        neuron: one of a layer, or one that a program has in a list of its own.
        otherwise: which it is among those that ran.
    """
    place: int | None = neuron._place
    return otherwise if place is None else place


def places_of_arrays(arrays: Mapping[str, Any]) -> dict[Value, Place]:
    """The places of Values that are found by name, as elements of arrays: what a compiled function reads.

    Args:
        arrays: object arrays by name: ``scale``, ``weights``, or as modules name theirs, ``layers.0.neurons.2.w``.

    Example:
        >>> import numpy as np
        >>> weights = np.array([Value(1.0), Value(2.0)])
        >>> [place.name for place in places_of_arrays({"layers.0.neurons.2.w": weights}).values()]
        ['layers[0].neurons[2].w[0]', 'layers[0].neurons[2].w[1]']
        >>> [place.name for place in places_of_arrays({"model.table": weights}).values()]
        ['model.table[0]', 'model.table[1]']
    """
    places: dict[Value, Place] = {}
    for name, array in arrays.items():
        path = [f"[{part}]" if part.isdigit() else f".{part}" for part in name.split(".")]
        for index in product(*map(range, array.shape)):
            way = [*path, *(f"[{number}]" for number in index)]
            places.setdefault(array[index], _place_of_neuron(way) or _place(way))
    return places


def _place_of_neuron(way: list[str]) -> Place | None:
    """The place of a weight of a neuron in a layer, as it would be had the network run; None for anything else."""
    own = 1 if way[-1] == ".b" else 2
    if ".neurons" not in way[:-own] or way[-own] not in (".w", ".b"):
        return None
    neuron = len(way) - 1 - way[::-1].index(".neurons")
    is_in_layers = way[neuron - 2 : neuron - 1] == [".layers"]
    before = "".join(way[: neuron - 2 if is_in_layers else neuron]).removeprefix(".")
    layer = int(way[neuron - 1][1:-1]) + 1 if is_in_layers else 1
    boxes = (*[before] * bool(before), f"Layer {layer}", f"Neuron {int(way[neuron + 1][1:-1]) + 1}")
    return _place_in_neuron(way, own, boxes, f"{before} layer {layer}")


def _place_in_neuron(way: list[str], own: int, boxes: tuple[str, ...], family: str) -> Place:
    """The place of a weight or a bias, from the steps to it, of which so many are inside of the neuron."""
    hint = _written(way[-own:])
    return Place(hint, _written(way), boxes, f"{family} {way[-own]}", _indices(way[-own:]))


def _place(way: list[str]) -> Place:
    """The place of a parameter of a module, from the steps to it."""
    indices = _indices(way)
    shown, name = _written(way), _written(way[: len(way) - len(indices)])
    return Place(shown, shown, (name,), "".join("[*]" if _is_index(step) else step for step in way), indices)


def _is_module(value: Any) -> bool:
    return hasattr(type(value), "named_parameters")  # its class is known further up


_PLAIN = frozenset([float, int, str, bool, type(None)])


def _may_hold_parameters(value: Any) -> bool:
    """Whether this is a list or a tuple of something else than data."""
    return isinstance(value, (list, tuple)) and not _PLAIN.issuperset(map(type, value))


def ways_to_parameters(root: Any) -> Iterator[tuple[list[str], Value]]:
    """The parameters of a module, each with the steps that lead to it, as a program writes them.

    Args:
        root: the module; or names, each with what it stands for.

    Example:
        >>> from micrograd.nn import MLP, Module
        >>> class Model(Module):
        ...     def __init__(self):
        ...         self.parts = {"body": MLP(2, [1])}
        >>> ["".join(steps) for steps, _ in ways_to_parameters(Model())][-1]
        ".parts['body'].layers[0].neurons[0].b"
    """
    seen: set[int] = set()
    stack: list[tuple[list[str], Any]] = [([], root)]
    while stack:
        way, value = stack.pop()
        if id(value) in seen:
            continue  # a model may refer to itself
        seen.add(id(value))
        if isinstance(value, Value):
            if value.is_leaf:
                yield way, value
        elif isinstance(value, _Names) or _is_module(value):
            attributes = value if isinstance(value, _Names) else vars(value)
            stack += [([*way, f".{name}"], item) for name, item in reversed(attributes.items())]
        elif isinstance(value, dict) and _may_hold_parameters(list(value.values())):
            stack += [([*way, f"[{key!r}]"], item) for key, item in reversed(value.items())]
        elif value.dtype == object if is_array(value) else _may_hold_parameters(value):
            stack += [([*way, f"[{index}]"], item) for index, item in reversed([*enumerate(value)])]


def _written(way: Sequence[str]) -> str:
    return "".join(way).removeprefix(".")


def _is_index(step: str) -> bool:
    return step[1:-1].isdigit()


def _indices(way: Sequence[str]) -> tuple[int, ...]:
    """The numbers that the way ends in."""
    end = len(way)
    while end > 1 and _is_index(way[end - 1]):
        end -= 1
    return tuple(int(step[1:-1]) for step in way[end:])


# An image that goes in is one box with the shape of the image, not 64 boxes:
# inputs={"image": (8, 8)}            the inputs of the first layer, in their order
# inputs={"image": [[p, q], [r, s]]}  these Values, in rows


def places_of_inputs(nodes: list[Value], inputs: Mapping[str, Any]) -> dict[Value, Place]:
    """The places of inputs, each in the box of its name.

    Args:
        nodes: the Values of a graph, each after its operands.
        inputs: by name a shape, or Values in nested lists or an array. What is no Value of the graph is left out.

    Raises:
        TypeError: if inputs is no mapping of names.
        ValueError: for a shape where there is no layer, or where the layer takes another number of inputs or no Values.

    Example:
        >>> x = [Value(1.0), Value(2.0)]
        >>> [place.name for place in places_of_inputs(x, {"point": x}).values()]
        ['point[0]', 'point[1]']
    """
    if not isinstance(inputs, Mapping) or not all(isinstance(name, str) and name for name in inputs):
        raise TypeError(f'inputs must be a dict like {{"image": (8, 8)}}, not {inputs!r:.80}')
    shapes = {name: shape for name, shape in inputs.items() if _is_shape(shape)}
    elements = [(name, index, value) for name in inputs.keys() - shapes for index, value in _elements(inputs[name])]
    if shapes:
        given = iter(_given(nodes, shapes))
        elements += [
            (name, index, next(given)) for name, shape in shapes.items() for index in product(*map(range, shape))
        ]
    known = set(nodes)
    return {
        value: Place(shown, shown, (name,), name, index)
        for name, index, value in elements
        if isinstance(value, Value) and value in known
        for shown in [name + "".join(f"[{number}]" for number in index)]
    }


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, tuple) and bool(shape) and all(type(size) is int and size > 0 for size in shape)


def _given(nodes: list[Value], shapes: dict[str, tuple[int, ...]]) -> list[Any]:
    """What the first layer was called with: as many inputs as the shapes have places."""
    calls = [call for node in nodes if (call := neuron_call(node)) is not None]
    if not calls:
        raise ValueError(f"inputs of the shape {_words(shapes)}: no layer is in this graph; give the Values themselves")
    given: list[Any] = min(calls, key=lambda call: call.end).given
    if len(given) != sum(map(math.prod, shapes.values())):
        raise ValueError(f"the first layer takes {len(given)} inputs, which have not the shape {_words(shapes)}")
    if not any(isinstance(x, Value) for x in given):
        raise ValueError("the first layer takes plain numbers, which are no inputs of the graph: give it Values")
    return given


def _words(shapes: dict[str, tuple[int, ...]]) -> str:
    return ", ".join(f"{' x '.join(map(str, shape))} of {name!r}" for name, shape in shapes.items())


def _elements(nested: Any, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """What is in nested lists, tuples and arrays, each with its indices."""
    if isinstance(nested, (list, tuple)) or hasattr(nested, "shape"):
        items: Iterable[Any] = nested
        for number, item in enumerate(items):
            yield from _elements(item, (*index, number))
    else:
        yield index, nested
