"""Recording a training run: the loss of each step, and the parameters' numbers along the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import required_number
from micrograd.nn import Module

if TYPE_CHECKING:
    from collections.abc import Iterable

Frame = tuple[int, list[float]]


class Recording:
    """A training run as a film: give it to ``fit(record=)``, then to ``explore``.

    It keeps the loss of every step. Of the parameters' numbers it keeps some hundred frames, evenly
    spread: where there are too many, every other one is dropped.

    Args:
        model: the network that is trained, as it is before the first step.
        inputs: the inputs of the examples. The film shows the network at work on the first of them; of
            networks with two inputs it shows the decision boundary, and these as points.
        targets: what the points stand for: a class number, or a number whose sign says the side.
        frames: how many frames to keep at most.

    Attributes:
        losses: the mean loss of each step's batch, before that step's update.

    Raises:
        TypeError: if model is no Module, or there is something else than numbers in inputs or targets.
        ValueError: if there are no inputs, not as many targets, or fewer than 2 frames are asked for.

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
        inputs: Iterable[Iterable[Any]],
        targets: Iterable[Any] | None = None,
        *,
        frames: int = 200,
    ) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"a recording is of a Module, not of {type(model).__name__}: {model!r:.80}")
        if frames < 2:
            raise ValueError(f"a film needs at least 2 frames, not {frames}")
        self.model = model
        self.inputs = [[required_number(x, "an input") for x in example] for example in inputs]
        self.targets = None if targets is None else [required_number(target, "a target") for target in targets]
        if not self.inputs:
            raise ValueError("there are no inputs to show the network at work on")
        if self.targets is not None and len(self.targets) != len(self.inputs):
            raise ValueError(f"there are {len(self.inputs)} inputs, but {len(self.targets)} targets")
        self.losses: list[float] = []
        self._most = frames
        self._every = 1
        self._parameters = model.parameters()
        self._frames: list[Frame] = [(0, self._numbers())]
        self._last = self._frames[0]

    def step(self, loss: float, numbers: list[float] | None = None) -> None:
        """Record a step that has just been made; fit calls this.

        Args:
            loss: the mean loss of its batch.
            numbers: those of the parameters after it; by default what the Values of the model have.
        """
        self.losses.append(loss)
        self._last = (len(self.losses), self._numbers() if numbers is None else numbers)
        if len(self.losses) % self._every == 0:
            self._frames.append(self._last)
        if len(self._frames) > self._most:
            self._frames = self._frames[::2]
            self._every *= 2

    def frames(self) -> list[Frame]:
        """The frames kept, each the number of steps made and the parameters' numbers; the last step is one."""
        last = [] if self._frames[-1] is self._last else [self._last]
        return self._frames + last

    def _numbers(self) -> list[float]:
        return [parameter.data for parameter in self._parameters]

    def __repr__(self) -> str:
        return f"Recording({len(self.losses)} steps, {len(self.frames())} frames)"
