"""The devices that a training runs on: their mesh, the precision, and where numbers are put.

    Devices(4, "float64").split(rows)     # a quarter of the rows on each of four devices
    Devices(4, "float64").same(numbers)   # all numbers on each of them

With several processes, each has the same number of these devices, and all call the same functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from micrograd.compiler.backends.jax.jax_backend import compiler_options
from micrograd.compiler.backends.jax.jax_checks import check_float64, check_process, in_float64
from micrograd.compiler.backends.jax.jax_functions import Caught

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.numbers import Floats

AXIS = "batch"  # the name of the mesh's only axis
SAME, SPLIT = PartitionSpec(), PartitionSpec(AXIS)


class Devices:
    """The devices of a training.

    Args:
        wanted: how many, "all", or None for the one on which JAX computes anyway.
        precision: "float64" or "float32".

    Attributes:
        count: how many there are.
        type: of the numbers on them.
        processes: the numbers of the processes that have them.
        firsts: the first device of each of these.
        caught: what primitives have raised that were called back from what is compiled here.

    Raises:
        ValueError: if there are not as many, or processes would have different numbers of them.
        RuntimeError: if JAX has no float64 and that is asked for, or in a forked process.
    """

    def __init__(self, wanted: int | str | None, precision: str) -> None:
        check_process()
        if precision == "float64":
            check_float64()
        chosen = _chosen(wanted)
        self.count = len(chosen)
        self.type = np.dtype(precision)
        self.processes = sorted(set(map(process_of, chosen)))
        self.firsts = [next(device for device in chosen if process_of(device) == process) for process in self.processes]
        self.caught = Caught()
        self._mesh = Mesh(np.array(chosen), (AXIS,))

    def same(self, numbers: Any) -> Any:
        """The numbers as an array on each device."""
        return self._put(numbers, SAME)

    def split(self, rows: Floats) -> Any:
        """The rows shared out to the devices, of whose number there must be a multiple."""
        return self._put(rows, SPLIT)

    def _put(self, numbers: Any, spec: PartitionSpec) -> Any:
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite there
            array = np.asarray(numbers, dtype=self.type)
        sharding = NamedSharding(self._mesh, spec)
        if len(self.processes) == 1:
            return jax.device_put(array, sharding)
        return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])

    def compiled(
        self,
        function: Callable[..., Any],
        arguments: Sequence[tuple[tuple[int, ...], PartitionSpec]],
        results: int,
        taken: tuple[int, ...] = (),
    ) -> Callable[..., Any]:
        """A function that each device runs on its part of the arguments, compiled by XLA.

        Args:
            function: of arrays. It makes its results the same on all devices, by a sum over AXIS.
            arguments: the shape of each argument as a whole, and whether the devices have all of it, or parts.
            results: how many it has.
            taken: the positions of the arguments whose memory the results may take.
        """
        specs = tuple(spec for _, spec in arguments)
        on_each = jax.shard_map(function, mesh=self._mesh, in_specs=specs, out_specs=(SAME,) * results, check_vma=False)
        shapes = [
            jax.ShapeDtypeStruct(shape, self.type, sharding=NamedSharding(self._mesh, spec))
            for shape, spec in arguments
        ]
        with self.caught, np.errstate(over="ignore"), in_float64(self.type == np.float64):
            return jax.jit(on_each, donate_argnums=taken).lower(*shapes).compile(compiler_options=compiler_options())


def _chosen(wanted: int | str | None) -> list[Any]:
    """The devices, those of one process after those of another."""
    if wanted is None:
        return list(jnp.zeros(1).devices())
    there = jax.devices()
    if wanted == "all":
        return there
    assert isinstance(wanted, int)
    if wanted > len(there):
        platform = there[0].platform
        more = f"; XLA_FLAGS=--xla_force_host_platform_device_count={wanted} in the environment makes as many of a CPU"
        raise ValueError(f"devices={wanted}, but JAX finds {len(there)} ({platform}){more * (platform == 'cpu')}")
    processes = jax.process_count()
    each, rest = divmod(wanted, processes)
    of_each = [[device for device in there if process_of(device) == process] for process in range(processes)]
    if rest or min(map(len, of_each)) < each:
        counts = ", ".join(str(len(devices)) for devices in of_each)
        raise ValueError(
            f"devices={wanted} cannot be shared alike by {processes} processes, which have {counts}: give another "
            'number, or "all"'
        )
    return [device for devices in of_each for device in devices[:each]]


def process_of(device: Any) -> int:
    """The number of the process that has a device."""
    return int(device.process_index)
