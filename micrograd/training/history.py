"""The history of a training: its losses, as a table and as a curve, and where fit goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS = 12  # of a printed table, at most


class Epoch(NamedTuple):
    """An epoch that has begun.

    Attributes:
        order: the indices of the examples; None where they come from a generator.
        first: how many steps there were before it.
    """

    order: Sequence[int] | None
    first: int


class Taken(NamedTuple):
    """What a step was taken with, which Ctrl-C may end: then a run that continues this one takes it again.

    Attributes:
        step: its number.
        examples: those of a generator, which gives them once; None of a list.
        noise: what was drawn for them.
    """

    step: int
    examples: Sequence[Any] | None
    noise: Any


class History:
    """How a training run went. ``print`` shows it as a table, and ``fit(resume=)`` continues it; it can be pickled.

    Attributes:
        steps: the mean loss of each step's batch, before that step's update.
        epochs: the mean loss over each whole epoch.
        validation: the mean loss of the validation examples after each epoch, if there are any.
        metrics: by name, the mean of each metric after each epoch.
        interrupted: whether Ctrl-C ended the run.

    Example:
        >>> History()
        History(0 epochs, 0 steps)
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.epochs: list[float] = []
        self.validation: list[float] = []
        self.metrics: dict[str, list[float]] = {}
        self.interrupted = False
        self._epoch: Epoch | None = None  # the one that is not finished yet
        self._settings: tuple[Any, ...] | None = None  # what a run that continues this one must have, too
        self._taken: Taken | None = None
        self._best: list[float] = []  # the parameters after the epoch with the least validation loss, for patience

    @property
    def loss(self) -> list[float]:
        """The mean loss over each whole epoch, which is ``epochs``."""
        return self.epochs

    @property
    def best_epoch(self) -> int | None:
        """The number, from 1, of the epoch with the least validation loss; None without one."""
        return self.validation.index(min(self.validation)) + 1 if self.validation else None

    def plot(self, axes: Any = None) -> Any:
        """Draw the losses with matplotlib.

        Args:
            axes: to draw on; new ones by default.

        Returns:
            The axes. A logarithmic scale is ``history.plot().set_yscale("log")``.

        Raises:
            ImportError: if matplotlib is not installed.
        """
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise ImportError("a plot needs matplotlib: pip install matplotlib") from None
            _, axes = pyplot.subplots()
        for name, losses in self._columns().items():
            axes.plot(range(1, len(losses) + 1), losses, label=name)
        axes.set_xlabel("epoch")
        axes.legend()
        return axes

    def _done(self) -> int:
        """How many steps of the epoch that has begun are done."""
        return 0 if self._epoch is None else len(self.steps) - self._epoch.first

    def _interrupted_step(self) -> Taken | None:
        """What the step was taken with that did not end."""
        taken = self._taken
        return taken if taken is not None and taken.step == len(self.steps) else None

    def _columns(self) -> dict[str, list[float]]:
        validation = {"validation": self.validation} if self.validation else {}
        return {"loss": self.epochs, **validation, **self.metrics}

    def __str__(self) -> str:
        """A table with a row for each epoch, those in the middle left out where there are many."""
        columns, count = self._columns(), len(self.epochs)
        if not count:
            return repr(self)
        left_out = range(ROWS // 2, count - ROWS // 2 + 1) if count > ROWS else range(0)
        rows = [["epoch", *columns]]
        for epoch in range(count):
            if epoch not in left_out:
                rows.append([str(epoch + 1), *(f"{numbers[epoch]:.4g}" for numbers in columns.values())])
            elif epoch == left_out.start:
                rows.append(["..."] * len(rows[0]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.rjust, row, widths)) for row in rows)

    def __repr__(self) -> str:
        loss = f", loss {self.steps[0]:.4g} -> {(self.epochs or self.steps)[-1]:.4g}" if self.steps else ""
        return f"History({len(self.epochs)} epochs, {len(self.steps)} steps{loss}{', interrupted' * self.interrupted})"

    def _repr_html_(self) -> str:
        """The curve of the loss that a notebook shows."""
        from micrograd.draw.notebook import loss_chart  # here, so that it is loaded only when a curve is shown

        several = len(self.epochs) > 1
        return loss_chart(repr(self), self.epochs if several else self.steps, "epoch" if several else "step")
