"""Several processes that train together: what they tell each other before each step, and how they begin and end alike.

After ``jax.distributed.initialize``, each process calls fit on the same examples, and its own devices compute what they
are handed. In every step, XLA waits for all of them. So before each, the processes exchange a few numbers: whether they
go on, and what with. Where one was interrupted or has failed, all end at the same step, and say so. One that does
something else is found before it can spoil a number, or make the others wait for ever.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from micrograd._support.files import written_by_another_process
from micrograd.compiler.backends.jax.jax_mesh import process_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.numbers import Booleans, Integers

_AXIS = "process"
_LOOK = 1e-4  # seconds between two looks whether the others have answered
_WHAT = (
    "its loss, examples, optimiser or devices",
    "its parameters, or what a callback changed",
    "its learning rate, batches or seed",
)


class Word(IntEnum):
    """How a process goes on."""

    STEP = 0
    END = 1
    INTERRUPTED = 2
    FAILED = 3


class Processes:
    """The processes that have the devices of a mesh.

    Args:
        devices: one of each process.

    Attributes:
        leads: whether this process is the first of them.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self._numbers = list(map(process_of, devices))
        self.leads = self._numbers[0] == jax.process_index()
        mesh = Mesh(np.array(devices), (_AXIS,))
        own, shared = PartitionSpec(_AXIS), PartitionSpec()
        self._own = NamedSharding(mesh, own)
        rows = partial(_in_a_table, len(devices))
        self._table = jax.jit(jax.shard_map(rows, mesh=mesh, in_specs=own, out_specs=shared, check_vma=False))
        self._is_over = False  # whether the others know that this process has ended, or are gone
        self._interrupted = False  # whether Ctrl-C has come, and the others do not know

    @contextmanager
    def together(self) -> Iterator[None]:
        """All steps are taken inside of this: the processes begin and end alike. Ctrl-C waits for the next step.

        What callbacks save, the first process alone writes.
        """
        with self._noting_interrupts(), nullcontext() if self.leads else written_by_another_process():
            try:
                yield
                self._judge(self._exchanged(Word.END))
            except BaseException as error:
                if not self._is_over:
                    self._is_over = True
                    with suppress(RuntimeError):
                        self._exchanged(Word.INTERRUPTED if isinstance(error, KeyboardInterrupt) else Word.FAILED)
                raise

    def agree(self, *digests: int) -> None:
        """Go on with a step, if all processes do, with the same numbers.

        Args:
            digests: of all that does not change, of the parameters and of the batch.

        Raises:
            KeyboardInterrupt: if one of them was interrupted.
            RuntimeError: if one of them has failed, is gone, or goes on with something else.
        """
        self._judge(self._exchanged(Word.STEP, *digests))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, an error of XLA means that another process is gone.

        Raises:
            RuntimeError: says so.
        """
        try:
            yield
        except (ValueError, RuntimeError) as error:  # which of them depends on what XLA was doing
            self._is_over = True
            raise RuntimeError(
                "a process that trains together with this one is gone, or cannot be reached any more; the model is "
                f"as the last finished step left it. XLA says: {error!s:.200}"
            ) from error

    def _exchanged(self, word: Word, *digests: int) -> Integers:
        """What all processes say, a row for each."""
        own = np.zeros((1, 1 + len(_WHAT)), dtype=np.uint32)
        own[0, : 1 + len(digests)] = Word.INTERRUPTED if self._interrupted else word, *digests
        shape = len(self._numbers), own.shape[1]
        with self.waiting():
            found = self._table(jax.make_array_from_callback(shape, self._own, lambda part: own))
            while not found.is_ready():
                time.sleep(_LOOK)  # so that Ctrl-C comes through, a second time
            return np.asarray(found, dtype=np.int64)

    def _judge(self, table: Integers) -> None:
        """Raise, unless all processes say the same."""
        words, digests = table[:, 0], table[:, 1:]
        self._is_over = True
        if Word.FAILED in words:
            raise RuntimeError(
                f"process {self._number(words == Word.FAILED)} has stopped with an error, which it shows itself; "
                "the model is as the last finished step left it"
            )
        if Word.INTERRUPTED in words:
            self._interrupted = False
            raise KeyboardInterrupt
        if (words != words[0]).any():
            raise RuntimeError(
                f"process {self._number(words == Word.END)} has taken its last step, and others go on: every process "
                "must call fit with the same examples, batch_size and epochs"
            )
        for what, column in zip(_WHAT, digests.T, strict=True):
            if (column != column[0]).any():
                raise RuntimeError(
                    f"process {self._number(column != column[0])} differs from process {self._numbers[0]} in {what}: "
                    "every process must call fit alike, with the same examples, parameters and seed"
                )
        self._is_over = words[0] == Word.END

    def _number(self, rows: Booleans) -> int:
        """The number of the first process among these."""
        return self._numbers[int(np.flatnonzero(rows)[0])]

    @contextmanager
    def _noting_interrupts(self) -> Iterator[None]:
        """Inside, Ctrl-C is noted, for all processes to end at the same step; a second one interrupts at once."""
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
            yield
            return

        def note(number: int, frame: Any) -> None:
            if self._interrupted:
                self._is_over, self._interrupted = True, False
                raise KeyboardInterrupt
            self._interrupted = True

        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
        if self._interrupted:  # after the last step
            self._interrupted = False
            raise KeyboardInterrupt


def _in_a_table(count: int, own: Any) -> Any:
    """The rows of so many processes, one below the other."""
    is_own = jnp.arange(count) == lax.axis_index(_AXIS)
    return lax.psum(jnp.where(is_own[:, None], own, 0), _AXIS)
