"""From a scalar program to a pure function of JAX: its program, with the Values that it reads as parameters.

    function, parameters = to_jax(loss, 0.5)
    jax.grad(function)(parameters, 0.5)

The function is traced once, and its program is lowered as the JAX backend does it. What the program reads is handed
over as arrays: each of the parameters, and one of each argument. So whoever maps over an argument, as jax.vmap does,
computes with it alone side by side, and the gradient of a parameter is an array of its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from micrograd._support.containers import base_of, own_attributes, shape_of
from micrograd.compiler.backends.jax.jax_backend import BACKEND, Lowered
from micrograd.compiler.backends.jax.jax_checks import check_jax
from micrograd.compiler.backends.jax.jax_reads import NO_POSITION
from micrograd.compiler.calling.jax_parameters import Origin, Parameters
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.guards.parameter_names import values_by_name
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.tracing.questions import ROUNDING
from micrograd.compiler.tracing.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def pure_function(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], Parameters]:
    """A function of parameters and arguments, and the parameters as they are now; see micrograd.to_jax."""
    check_jax()
    arguments = _as_example(arguments)
    structure = Structure((arguments, {}))
    source = Source(function, structure, rounding=ROUNDING["float64"], takes_calls=True, every_path=0)
    special = Specialised(source._replace(as_floats=False), BACKEND)  # JAX differentiates derivatives again
    trained = [value for value in special.values if value.requires_grad]
    if any(not value.is_leaf for value in trained):
        raise ValueError(
            f"{special.name} reads a Value that is computed outside of it, so no gradient would reach what it is made "
            "of: compute it inside, or detach it"
        )
    origin = Origin(values_by_name(function, trained))

    taken, frozen = len(arguments), [value for value in special.values if not value.requires_grad]
    counts = [len(special.values), *(Structure(argument).count() for argument in arguments)]
    _, *of_arguments = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    number = {value: position for position, value in enumerate(special.values)}
    named = [[number.get(value, NO_POSITION) for value in array.flat] for array in origin.values.values()]
    given = [np.array(positions, dtype=np.int64) for positions in ([number[value] for value in frozen], *named)]
    compute = _computing(special, [*given, *of_arguments])
    numbers_of_frozen = np.array([value.data for value in frozen])

    def pure(parameters: Mapping[str, Any], *arguments: Any) -> Any:
        check_jax()
        if len(arguments) != taken:
            raise TypeError(f"{special.name} takes {taken} arguments beside the parameters, not {len(arguments)}")
        vectors = [numbers_of_frozen, *_checked(parameters, origin)]
        for number, (example, argument) in enumerate(zip(structure.nested[0], arguments, strict=True)):
            parts = _numbers(example, argument, f"argument {number}")
            vectors.append(jnp.concatenate(parts) if parts else jnp.zeros(0))
        computed = list(compute(*vectors))
        pairs = zip(special.result.leaves, special.results.outputs, strict=True)
        return special.result.rebuilt([leaf if o is None else computed[o] for leaf, o in pairs], _array)

    pure.__name__ = pure.__qualname__ = special.name
    return pure, Parameters({name: jnp.asarray(numbers) for name, numbers in origin.numbers().items()}, origin)


def _computing(special: Specialised, given: list[Any]) -> Callable[..., Any]:
    """A function of arrays that gives the outputs.

    Args:
        special: the function, traced.
        given: for each array, which of the inputs its numbers are.
    """
    program, calls = (special.program(False), []) if special.maps is None else special.maps.program()
    positions = [np.where(numbers == NO_POSITION, NO_POSITION, program.inputs[numbers]) for numbers in given]
    lowered = Lowered(program, *positions, calls=calls)
    return partial(lowered.function(program.outputs[: len(special.results.kinds)]), jnp.asarray(lowered.constants))


def _as_example(item: Any) -> Any:
    """An argument with the arrays of JAX in it as arrays of NumPy or numbers, on which the function can be traced."""
    if isinstance(item, jax.Array):
        return np.asarray(item) if item.ndim else item.item()
    if type(item) is dict:
        return {key: _as_example(part) for key, part in item.items()}
    return type(item)(map(_as_example, item)) if type(item) in (list, tuple) else item


def _checked(parameters: Mapping[str, Any], origin: Origin) -> list[Any]:
    """The arrays of parameters, flat, in the order in which the Values are named."""
    if not hasattr(parameters, "keys") or parameters.keys() != origin.values.keys():
        names = ", ".join(map(repr, origin.values)) or "none"
        raise ValueError(f"the parameters must be arrays by name, as to_jax gave them: {names}; not {parameters!r:.80}")
    arrays = []
    for name, values in origin.values.items():
        array = jnp.asarray(parameters[name], dtype=float)
        if array.shape != values.shape:
            raise ValueError(f"parameter {name!r} must have the shape {values.shape}, not {array.shape}")
        arrays.append(array.ravel())
    return arrays


def _numbers(example: Any, given: Any, what: str) -> list[Any]:
    """The numbers of an argument as flat arrays, in the order in which the example has its numbers."""
    found, shape = Structure(example), shape_of(example)
    if not found.count():
        if 0 in (shape or ()) and getattr(given, "shape", None) == shape:
            return []  # there are no numbers in that array
        if Structure(given).key != found.key:
            raise ValueError(f"{what} is part of the program, which was made for {example!r:.60}, not {given!r:.60}")
        return []
    if hasattr(given, "shape") or shape == ():
        array = jnp.asarray(given, dtype=float)
        if array.shape != shape:
            raise ValueError(f"{what} must have the shape {shape}, as the example has, not {array.shape}")
        return [array.ravel()]
    if own_attributes(example):
        raise TypeError(f"{what} has attributes, which JAX does not look at: give plain lists, tuples and dicts")
    if isinstance(example, dict) and isinstance(given, dict) and example.keys() == given.keys():
        items = base_of(example).items(example)
        return [part for key, item in items for part in _numbers(item, given[key], f"{what}[{key!r}]")]
    if isinstance(given, (list, tuple)) and not isinstance(example, dict) and len(given) == len(example):
        pairs = enumerate(zip(example, given, strict=True))
        return [part for position, (item, other) in pairs for part in _numbers(item, other, f"{what}[{position}]")]
    raise ValueError(f"{what} must look like the example, {example!r:.60}, not {given!r:.60}")


def _array(like: Any, parts: list[Any]) -> Any:
    """An array of JAX in place of one in the result."""
    return jnp.array([jnp.asarray(part, dtype=float) for part in parts], dtype=float).reshape(like.shape)
