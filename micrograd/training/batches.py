"""The batches of an epoch: of a list in a shuffled order, or of a generator as its examples come."""

from __future__ import annotations

import math
import random
from itertools import islice
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import required_sequence
from micrograd.training.history import Epoch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.training.history import History, Taken


class ListBatches:
    """Batches of a list of examples, in a new order for each epoch.

    Args:
        examples: all of them.
        size: of a batch.
        seed: of the orders; None for Python's ``random``.
        shuffle: whether to shuffle at all.
        steps: how many batches an epoch has; None for one pass through the examples.

    Raises:
        ValueError: if there are no examples.
    """

    changes = False  # whether the examples are replaced between steps
    first = 0  # the number of the first example in ``examples``

    def __init__(self, examples: Any, size: int, seed: int | None, shuffle: bool, steps: int | None) -> None:
        self.examples = required_sequence(examples, "data must be a list of examples")
        if not self.examples:
            raise ValueError("there is no data to fit")
        self._size, self._shuffle = size, shuffle
        self._random: Any = random if seed is None else random.Random(seed)
        self._count = len(self.examples) if steps is None else steps * size
        self.steps = math.ceil(self._count / size)
        self.settings = "data of this length, batch_size, steps and seed", len(self.examples), size, steps, seed

    def begin(self, history: History) -> Epoch:
        """The next epoch."""
        return Epoch(self._order(), len(history.steps))

    def _order(self) -> list[int]:
        order: list[int] = []
        while len(order) < self._count:
            order += self._indices()
        return order[: self._count]

    def _indices(self) -> list[int]:
        indices = range(len(self.examples))
        return self._random.sample(indices, len(indices)) if self._shuffle else list(indices)

    def skip(self, epochs: int) -> None:
        """Let the following orders be those of a run that is continued after so many epochs, if there is a seed."""
        if self._random is not random:
            for _ in range(epochs):
                self._order()

    def batches(self, epoch: Epoch, done: int) -> Iterator[list[int]]:
        """The indices of the examples in each batch but the first ones, which are done."""
        order: Any = epoch.order
        for start in range(done * self._size, len(order), self._size):
            yield order[start : start + self._size]

    def size_of(self, epoch: Epoch | None, step: int) -> int:
        """How many examples a step of the epoch has; or the first step of the next one, where it has no such step."""
        left = self._count - step * self._size if epoch is not None else 0
        return min(self._size, left if left > 0 else self._count, len(self.examples))

    def taken(self, batch: list[int]) -> None:
        """None: the list has the examples of a batch again, whenever they are needed."""


class StreamBatches:
    """Batches of a generator, which may be endless; a shorter one ends the run.

    Args:
        examples: the generator. It is read when a batch needs its examples, the first ones at once.
        size: of a batch.
        steps: how many batches an epoch has.
        taken: the examples of the first batch, if they have been taken already.

    Attributes:
        examples: those of the batch.
        first: the number of the first one among all that came.

    Raises:
        ValueError: if no example comes.
    """

    changes = True

    def __init__(self, examples: Iterator[Any], size: int, steps: int, taken: Sequence[Any] | None) -> None:
        self._source, self._size, self.steps, self.first = examples, size, steps, 0
        self.examples = list(islice(examples, size) if taken is None else taken)
        if not self.examples:
            raise ValueError("there is no data to fit")
        self._count = len(self.examples)  # in the batch that is read and not yet taken
        self._last = self._count
        self.settings = "a generator, batch_size and steps", size, steps

    def begin(self, history: History) -> Epoch:
        """The next epoch."""
        return Epoch(None, len(history.steps))

    def skip(self, epochs: int) -> None:
        """Do nothing: the examples come as they come."""

    def batches(self, epoch: Epoch, done: int) -> Iterator[list[int]]:
        """The indices of the examples in each batch but the first ones, which are done."""
        for _ in range(done, self.steps):
            if not self._count and not self._read():
                return
            self._last, self._count = self._count, 0
            yield list(range(self._last))

    def _read(self) -> bool:
        batch = list(islice(self._source, self._size))
        self.first += self._last
        self._count = len(batch)
        self.examples[: len(batch)] = batch
        return bool(batch)

    def size_of(self, epoch: Epoch | None, step: int) -> int:
        """How many examples a step of the epoch has: only the last one of all may have fewer."""
        return min(self._size, len(self.examples))

    def taken(self, batch: list[int]) -> list[Any]:
        """The examples of a batch, which do not come again."""
        return self.examples[: len(batch)]


def batches_of(
    data: Any, size: int, seed: int | None, shuffle: bool, steps: int | None, taken: Taken | None
) -> ListBatches | StreamBatches:
    """The batches of what a user gives as data: of a generator as it comes, if the number of steps is given.

    Args:
        data: what the user gives.
        size: of a batch.
        seed: of the orders; None for Python's ``random``.
        shuffle: whether to shuffle a list.
        steps: how many batches an epoch has; None for one pass through the data.
        taken: what the step was taken with that did not end, where a run is continued.
    """
    if steps is not None and hasattr(data, "__next__"):
        return StreamBatches(data, size, steps, None if taken is None else taken.examples)
    return ListBatches(data, size, seed, shuffle, steps)
