"""From a scalar program to a pure function of JAX: its program, with the Values that it reads as parameters.

    function, parameters = mg.to_jax(loss, 0.5)        # loss(x) reads the parameters of a model
    parameters["model.layers.0.neurons.0.w"]           # an array
    gradients = jax.grad(function)(parameters, 0.5)
    parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    mg.from_jax(parameters)                            # the Values have these numbers now

The function is traced once, and its program is lowered as the JAX backend does it. What the program reads is handed
over as arrays: each of the parameters, and one of each argument. So whoever maps over an argument, as jax.vmap does,
computes with it alone side by side, and the gradient of a parameter is an array of its own. To JAX, parameters are a
pytree: what jax.tree.map, jax.grad and Optax make of them are Parameters of the same Values.
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
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.guards.parameter_names import values_by_name
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.tracing.questions import ROUNDING
from micrograd.compiler.tracing.source import Source
from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from micrograd.compiler.numbers import Floats


class Origin:
    """Where parameters come from: the Values by name, as object arrays."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def numbers(self) -> dict[str, Floats]:
        """The numbers of the Values as they are now."""
        arrays = self.values.items()
        return {name: np.array([value.data for value in each.flat]).reshape(each.shape) for name, each in arrays}

    def checked(self, parameters: Mapping[str, Any], as_array: Callable[..., Any]) -> dict[str, Any]:
        """Parameters as arrays, which have the shapes of the Values."""
        arrays = {name: as_array(parameters[name], dtype=float) for name in self.values}
        for name, values in self.values.items():
            if arrays[name].shape != values.shape:
                raise ValueError(f"parameter {name!r} must have the shape {values.shape}, not {arrays[name].shape}")
        return arrays


class Parameters(dict[str, Any]):
    """Arrays by name, which know whose numbers they are. A copy and a pickle of them are plain dicts.

    Args:
        arrays: by name.
        origin: the Values.
    """

    def __init__(self, arrays: Mapping[str, Any], origin: Origin) -> None:
        super().__init__(arrays)
        self.origin = origin

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _flattened(parameters: Parameters) -> tuple[Iterable[Any], Any]:
    return parameters.values(), (parameters.origin, tuple(parameters))


def _flattened_with_keys(parameters: Parameters) -> tuple[Iterable[tuple[Any, Any]], Any]:
    return [(jax.tree_util.DictKey(key), array) for key, array in parameters.items()], _flattened(parameters)[1]


def _unflattened(about: Any, arrays: Iterable[Any]) -> Parameters:
    origin, keys = about
    return Parameters(dict(zip(keys, arrays, strict=True)), origin)


jax.tree_util.register_pytree_with_keys(Parameters, _flattened_with_keys, _unflattened, _flattened)


def write_back(parameters: Any) -> None:
    """Give the Values the numbers of parameters: all of them, or none where anything is wrong.

    Raises:
        TypeError: if they do not come from to_jax.
        ValueError: if an array is missing, or has another shape or a number that is not finite.
    """
    if not isinstance(parameters, Parameters):
        raise TypeError(
            f"from_jax takes the parameters that to_jax gave, or what JAX made of them, not "
            f"{type(parameters).__name__}: a plain dict does not know which Values it stands for"
        )
    expected = parameters.origin.values
    if parameters.keys() != expected.keys():
        names = ", ".join(sorted(map(repr, parameters.keys() ^ expected.keys())))
        raise ValueError(f"the parameters do not fit: {names} missing or unknown")
    values, numbers = list[Any](), list[float]()
    for name, array in parameters.origin.checked(parameters, np.asarray).items():
        if not np.isfinite(array).all():
            raise ValueError(f"parameter {name!r} has a number that is not finite")
        values += expected[name].ravel().tolist()
        numbers += array.ravel().tolist()
    with changing(values):
        commit(setting(values, "_data", numbers))


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
    return [array.ravel() for array in origin.checked(parameters, jnp.asarray).values()]


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
