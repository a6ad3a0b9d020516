"""Masks: what dropout in a compiled loss drops, drawn before each step and given to the loss with its noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.compiler.guards.structure import Structure
from micrograd.contexts.modes import drawn_mask, masks_from
from micrograd.contexts.no_grad import no_grad
from micrograd.training.eager_steps import arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.training.batches import ListBatches, StreamBatches
    from micrograd.training.noise import Noise

    Plan = list[tuple[int, float]]


class Masks:
    """Draws the masks of each example, in the order in which the loss asks for them without the compiler.

    Args:
        loss: of one example.
        batches: where the examples come from.
        noises: what else the loss takes that is drawn.

    Attributes:
        loss: the same loss, which takes its masks from the argument ``noise``.
        example: what it takes there for the first example.
        drawn: the noise of the last batch, without masks.
    """

    def __init__(self, loss: Callable[..., Any], batches: ListBatches | StreamBatches, noises: Noise | None) -> None:
        self._loss, self._batches, self._noises = loss, batches, noises
        self._plans: dict[Any, Plan] = {}
        self._width = 0
        for index in range(len(batches.examples)):
            self._width = max(self._width, _length(self._plan(index)))
        self.loss = _masked(loss)
        self.example = self._item([], None if noises is None else noises.example)

    @property
    def drawn(self) -> Any:
        """The noise of the last batch."""
        return None if self._noises is None else self._noises.drawn

    def draw(self, batch: Sequence[int]) -> list[Any]:
        """What the loss takes for each example of a batch."""
        noise = [None] * len(batch) if self._noises is None else self._noises.draw(batch)
        items = []
        for index, own in zip(batch, noise, strict=True):
            plan = self._plan(index)
            if _length(plan) > self._width:
                raise ValueError(
                    f"dropout takes {_length(plan)} random numbers for an example, and took at most {self._width} for "
                    "the first ones: compiled, longer examples must come first"
                )
            items.append(self._item([number for draw in plan for number in drawn_mask(*draw)], own))
        return items

    def _item(self, numbers: list[float], noise: Any) -> dict[str, Any]:
        item = {"masks": numbers + [0.0] * (self._width - len(numbers))}
        return item if self._noises is None else item | {"noise": noise}

    def _plan(self, index: int) -> Plan:
        """How many numbers dropout takes for an example, and at which rates: the same for all of one structure."""
        arguments = arguments_of(self._batches.examples[index])
        key = Structure((arguments, {})).key
        if key not in self._plans:
            plan: Plan = []

            def note(count: int, rate: float) -> list[float]:
                plan.append((count, rate))
                return [1.0] * count

            named = {} if self._noises is None else {"noise": self._noises.example}
            with no_grad(), masks_from(note):
                self._loss(*arguments, **named)
            self._plans[key] = plan
        return self._plans[key]


def _length(plan: Plan) -> int:
    return sum(count for count, _ in plan)


def _masked(loss: Callable[..., Any]) -> Callable[..., Any]:
    """The loss, which takes its masks from its noise."""

    def masked(*example: Any, noise: dict[str, Any]) -> Any:
        masks, named = noise["masks"], {name: item for name, item in noise.items() if name == "noise"}
        first = 0

        def following(count: int, rate: float) -> Any:
            nonlocal first
            first += count
            return masks[first - count : first]

        with masks_from(following):
            return loss(*example, **named)

    masked.__name__ = getattr(loss, "__name__", "loss")
    return masked
