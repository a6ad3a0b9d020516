"""What goes into a program, in boxes by name: an image is one box with the shape of the image, not 64 boxes.

inputs={"image": (8, 8)}            # the inputs of the first layer, in their order
inputs={"image": [[p, q], [r, s]]}  # these Values, in rows
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from micrograd.contexts.calls import neuron_call
from micrograd.draw.folding.parameters import Place
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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
