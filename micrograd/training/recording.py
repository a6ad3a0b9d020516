"""Recording a training run: the loss of each step, and the parameters' numbers along the way."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import required_number
from micrograd.nn import Module
from micrograd.optim import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from micrograd.optim import State

Frame = tuple[int, list[float]]


@dataclass(frozen=True)
class Run:
    """What fit was called with, so that a page can show the loss, and go on training.

    Attributes:
        loss: that of one example.
        examples: all of them.
        optimizer: that updates the parameters.
        batch_size: how many examples a step takes.
        seed: of the shuffling, or None.
    """

    loss: Callable[..., Any]
    examples: Sequence[Any]
    optimizer: Optimizer
    batch_size: int
    seed: Any

    def is_continued_by(self, other: Run) -> bool:
        """Whether another run has the same examples and the same optimiser, and so goes on with this one."""
        same = len(self.examples) == len(other.examples) and all(map(operator.is_, self.examples, other.examples))
        return same and self.optimizer is other.optimizer


@dataclass(frozen=True)
class Snapshot:
    """A training between two steps.

    Attributes:
        step: how many steps are made.
        numbers: those of the parameters.
        state: what the optimiser keeps for each parameter, None for those that it does not train; None where
            nothing is known of the optimiser.
        batch: which examples the next step takes; None where it is not known, or no step follows.
        rate: the learning rate of the next step, known where the batch is.
    """

    step: int
    numbers: list[float]
    state: list[State | None] | None = None
    batch: list[int] | None = None
    rate: float | None = None


class Recording:
    """A recorded training: pass it to ``fit(record=)``, then to ``explore``.

    It keeps the loss of every step, and some hundred snapshots of the parameters, evenly spread: if there are
    too many, every other one is dropped.

    Args:
        model: the network to train, as it is before the first step.
        inputs: the inputs of the examples. For networks with two inputs, the page shows the decision boundary, and
            these as points. If the loss is not known, it shows the network on the first of them. None for a network
            that takes other things than numbers, such as tokens: the page shows the loss of an example.
        targets: of the points: a class number, or a number whose sign is the side.
        frames: the maximum number of snapshots.

    Attributes:
        losses: the mean loss of each step's batch, before that step's update.
        run: the arguments of the last fit; None before one. Not pickled, because a loss often cannot be.

    Raises:
        TypeError: if model is no Module, or inputs or targets hold other things than numbers.
        ValueError: if there are no inputs, not as many targets, or fewer than 2 frames.

    Example:
        >>> from micrograd import fit, losses, nn, optim
        >>> model, points = nn.MLP(2, [1]), [([0.0, 1.0], 1.0), ([1.0, 0.0], -1.0)]
        >>> recording = Recording(model, [inputs for inputs, _ in points])
        >>> def loss(inputs, target):
        ...     return losses.hinge(model(inputs), target)
        >>> history = fit(loss, points, optim.SGD(model.parameters(), 0.1), epochs=3, record=recording)
        >>> recording
        Recording(6 steps, 7 frames)
    """

    def __init__(
        self,
        model: Module,
        inputs: Iterable[Iterable[Any]] | None = None,
        targets: Iterable[Any] | None = None,
        *,
        frames: int = 200,
    ) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"a recording is of a Module, not of {type(model).__name__}: {model!r:.80}")
        if frames < 2:
            raise ValueError(f"a recording needs at least 2 frames, not {frames}")
        self.model = model
        self.inputs = [[required_number(x, "an input") for x in example] for example in inputs or ()]
        self.targets = None if targets is None else [required_number(target, "a target") for target in targets]
        if inputs is not None and not self.inputs:
            raise ValueError("there are no inputs to show the network at work on")
        if self.targets is not None and len(self.targets) != len(self.inputs):
            raise ValueError(f"there are {len(self.inputs)} inputs, but {len(self.targets)} targets")
        self.losses: list[float] = []
        self.run: Run | None = None
        self._most = frames
        self._every = 1
        self._parameters = model.parameters()
        self._snapshots = [Snapshot(0, self._numbers())]
        self._last = self._snapshots[0]

    def start(self, run: Run) -> None:
        """Note the training whose steps follow; fit calls this.

        If it is another training than before, the batches and states of the earlier steps are dropped.
        """
        if self.run is not None and not self.run.is_continued_by(run):
            self._snapshots = [replace(snapshot, state=None, batch=None, rate=None) for snapshot in self._snapshots]
        self.run = run
        self._set_last(replace(self._last, state=self._state(), batch=None, rate=None))

    def step(self, loss: float, numbers: list[float] | None = None, batch: list[int] | None = None) -> None:
        """Record the step just made; fit calls this.

        Args:
            loss: the mean loss of its batch.
            numbers: those of the parameters after it; by default what the Values of the model have.
            batch: which examples the batch was of.
        """
        if batch is not None and self.run is not None:
            self._set_last(replace(self._last, batch=batch, rate=getattr(self.run.optimizer, "rate", None)))
        self.losses.append(loss)
        self._last = Snapshot(len(self.losses), self._numbers() if numbers is None else numbers, self._state())
        if len(self.losses) % self._every == 0:
            self._snapshots.append(self._last)
        if len(self._snapshots) > self._most:
            self._snapshots = self._snapshots[::2]
            self._every *= 2

    def keeps_next(self) -> bool:
        """Whether the numbers after the next step are kept; those of a step that is not may be empty, but the last's.

        So that a training need not read the numbers of a large network after each step: it reads them once more when
        it ends, and gives them to ``end``.
        """
        return (len(self.losses) + 1) % self._every == 0

    def end(self, numbers: list[float]) -> None:
        """Take the numbers that the parameters have after the last step."""
        self._set_last(replace(self._last, numbers=numbers))

    def of_part(self, model: Module, row: list[float], part: Callable[[list[float]], list[float]]) -> Recording:
        """The same training, seen in a smaller network.

        Args:
            model: the smaller network.
            row: the inputs that it is shown at work on.
            part: gives its parameters' numbers from those of the whole.
        """
        recording = Recording(model, [row])
        recording.losses = self.losses
        recording._snapshots = [Snapshot(step, part(numbers)) for step, numbers in self.frames()]
        recording._last = recording._snapshots[-1]
        return recording

    def frames(self) -> list[Frame]:
        """The snapshots: for each, the number of steps made and the parameters' numbers; the last step is one."""
        return [(snapshot.step, snapshot.numbers) for snapshot in self.snapshots()]

    def snapshots(self) -> list[Snapshot]:
        """The snapshots, with what is known of the optimiser and of the next step."""
        if self._snapshots[-1].step == self._last.step:
            return self._snapshots
        return [*self._snapshots, self._last]

    def _set_last(self, snapshot: Snapshot) -> None:
        if self._snapshots[-1].step == self._last.step:
            self._snapshots[-1] = snapshot
        self._last = snapshot

    def _numbers(self) -> list[float]:
        return [parameter.data for parameter in self._parameters]

    def _state(self) -> list[State | None] | None:
        """What the optimiser keeps for each parameter of the model."""
        optimizer = self.run.optimizer if self.run is not None else None
        if not isinstance(optimizer, Optimizer):
            return None
        of = dict(zip(optimizer.parameters, optimizer._state, strict=True))
        return [of.get(parameter) for parameter in self._parameters]

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"run": None}

    def __repr__(self) -> str:
        return f"Recording({len(self.losses)} steps, {len(self.frames())} frames)"
