"""The steps of fit without the compiler: the graph of one example after the other, and then the update."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.optim import Optimizer
    from micrograd.training.batches import ListBatches, StreamBatches

ADVICE = (
    "check the data for NaN and infinity; a smaller learning rate, clip_norm=, or inputs scaled to about 1 may help"
)
# Errors of arithmetic that are raised again with epoch and example: of other classes, only their author knows how.
ARITHMETIC = (ArithmeticError, OverflowError, ZeroDivisionError, FloatingPointError)


class EagerSteps:
    """Steps that build the graph of each example again.

    Args:
        loss: of one example.
        batches: where the examples come from.
        optimizer: what holds the parameters and updates them.
        clip_norm: the largest norm of the gradient; None for any.

    Attributes:
        leads: whether this process is the one that shows how far the training is.
        at_once: how many batches to give at once to ``take``.
        mean: the mean loss of the batch, known before the update.
    """

    leads = True
    at_once = 1
    mean = 0.0

    def __init__(
        self,
        loss: Callable[..., Value],
        batches: ListBatches | StreamBatches,
        optimizer: Optimizer,
        clip_norm: float | None,
    ) -> None:
        self._loss, self._batches, self._optimizer, self._clip_norm = loss, batches, optimizer, clip_norm

    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""
        self._optimizer.zero_grad()
        total = 0.0
        for position, index in enumerate(batch):
            example = self._batches.examples[index]
            named = {} if noise is None else {"noise": noise[position]}
            number = self._batches.first + index
            try:
                value = self._loss(*arguments_of(example), **named)
                if not isinstance(value, Value):
                    raise TypeError(f"loss must return a Value, not {type(value).__name__}: {value!r:.80}")
                if math.isfinite(value.data):
                    # One example at a time: its graph is freed before the next is built.
                    value.backward(1 / len(batch))
            except ARITHMETIC as error:
                raise _explained(error, f"example {number} in epoch {epoch + 1}") from error
            if not math.isfinite(value.data):
                raise ArithmeticError(f"the loss of example {number} is {value.data} in epoch {epoch + 1}; {ADVICE}")
            total += value.data
        if self._clip_norm is not None:
            _clip([parameter for parameter in self._optimizer.parameters if parameter.requires_grad], self._clip_norm)
        self.mean = total / len(batch)
        try:
            self._optimizer.step()
        except ARITHMETIC as error:
            raise _explained(error, f"epoch {epoch + 1}") from error
        return self.mean

    def take(self, batches: Sequence[list[int]], epoch: int) -> list[float]:
        """A step for the first of some batches; its mean loss."""
        return [self.step(batches[0], epoch)]

    def last_means(self, count: int) -> list[float]:
        """The mean loss of the last step."""
        return [self.mean]

    def together(self) -> AbstractContextManager[None]:
        """Nothing is to be done before the first step and after the last."""
        return nullcontext()

    def before_noise(self) -> None:
        """Do nothing: the Values are up to date."""

    def read_examples(self) -> None:
        """Do nothing: each step reads its own."""

    def update_values(self) -> None:
        """Do nothing: the Values are what is trained."""


def arguments_of(example: Any) -> tuple[Any, ...]:
    """What a loss is called with for an example."""
    return example if isinstance(example, tuple) else (example,)


def _explained(error: Exception, where: str) -> Exception:
    """The error of a computation, with where in the training it was and what may help."""
    return type(error)(f"{where}: {error}; {ADVICE}") if type(error) in ARITHMETIC else error


def _clip(parameters: list[Any], norm: float) -> None:
    """Scale the gradients down to this norm, if theirs is larger; not if it is not finite, which the update refuses."""
    gradients = [float(parameter.grad) for parameter in parameters]
    largest = max(map(abs, gradients))
    if not 0 < largest < math.inf:
        return
    root = math.sqrt(math.fsum((gradient / largest) ** 2 for gradient in gradients))
    if root > norm / largest:
        scale = norm / root
        with changing(parameters):
            commit(setting(parameters, "_grad", [gradient / largest * scale for gradient in gradients]))
