"""Parameters: arrays by name that JAX differentiates and trains, and that know which Values they are the numbers of.

    function, parameters = mg.to_jax(model)
    parameters["layers.0.neurons.0.w"]                 # an array
    parameters = jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    mg.from_jax(parameters)                            # the Values have these numbers now

To JAX they are a pytree: what jax.tree.map, jax.grad and Optax make of them are Parameters of the same Values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from micrograd.compiler.numbers import Floats


class Origin:
    """Where parameters come from: the Values by name, as object arrays."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def numbers(self) -> dict[str, Floats]:
        """The numbers of the Values as they are now."""
        arrays = self.values.items()
        return {name: np.array([value.data for value in each.flat]).reshape(each.shape) for name, each in arrays}


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
    values, numbers = [], []
    for name, array in expected.items():
        found = np.asarray(parameters[name], dtype=float)
        if found.shape != array.shape:
            raise ValueError(f"parameter {name!r} must have the shape {array.shape}, not {found.shape}")
        if not np.isfinite(found).all():
            raise ValueError(f"parameter {name!r} has a number that is not finite")
        values += array.ravel().tolist()
        numbers += found.ravel().tolist()
    with changing(values):
        commit(setting(values, "_data", numbers))
