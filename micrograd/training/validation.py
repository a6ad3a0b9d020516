"""Validation: the mean loss and metrics of examples that are not trained on, after each epoch."""

from __future__ import annotations

import math
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from micrograd import compiler
from micrograd._support.checks import is_bool, required_number, required_sequence
from micrograd.contexts.modes import evaluating
from micrograd.contexts.no_grad import no_grad
from micrograd.training.eager_steps import ARITHMETIC, arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Validation:
    """What a model achieves on other examples.

    Args:
        loss: of one example, without noise.
        examples: all of them; a generator is read once.
        metrics: functions of an example, by name, that return a number.
        backend: of compiled functions; None for none.
        precision: of compiled functions.

    Raises:
        ValueError: if there are no examples.
        TypeError: if a metric is no function, or loss has an argument ``noise`` without a default.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        examples: Any,
        metrics: Mapping[str, Callable[..., Any]],
        backend: str | None,
        precision: str,
    ) -> None:
        self._examples = required_sequence(examples, "validation must be a list of examples, like data")
        if not self._examples:
            raise ValueError("validation is empty: leave it out, or give examples")
        for name, metric in metrics.items():
            if not callable(metric):
                raise TypeError(f"the metric {name!r} must be a function of an example, not {metric!r:.80}")
        _check_noise(loss)
        self._functions = {"validation": loss, **metrics}
        self._compiled = {}
        if backend is not None:
            self._compiled = {
                name: compiler.compile(function, backend=backend, precision=precision)
                for name, function in self._functions.items()
            }

    def run(self, epoch: int) -> dict[str, float]:
        """The means for the model in evaluation mode: "validation" for the loss, and each metric by its name.

        Raises:
            ArithmeticError: if one of the numbers is not finite, naming the epoch and the example.
        """
        with no_grad(), evaluating():
            return {name: self._mean(name, epoch) for name in self._functions}

    def _mean(self, name: str, epoch: int) -> float:
        numbers = []
        for index, example in enumerate(self._examples):
            where = f"the {'loss' if name == 'validation' else name} of validation example {index}"
            try:
                number = float(required_number(self._result(name, example), where))
            except ARITHMETIC as error:
                raise ArithmeticError(f"{where} in epoch {epoch + 1}: {error}") from error
            if not math.isfinite(number):
                raise ArithmeticError(f"{where} is {number} in epoch {epoch + 1}")
            numbers.append(number)
        return math.fsum(numbers) / len(numbers)

    def _result(self, name: str, example: Any) -> Any:
        if (fast := self._compiled.get(name)) is not None:
            try:
                return _plain(fast(*arguments_of(example)))
            except compiler.TraceError:
                del self._compiled[name]  # such as an argmax, which a metric may be and a loss is not
        return _plain(self._functions[name](*arguments_of(example)))


def _plain(result: Any) -> Any:
    """The number of a Value or of a bool, of NumPy too; other objects as they are."""
    if is_bool(result):
        return float(result)
    return getattr(result, "data", result) if not hasattr(result, "dtype") else result


def _check_noise(loss: Callable[..., Any]) -> None:
    """Refuse a loss that cannot do without noise, which is for training only."""
    try:
        noise = signature(loss).parameters.get("noise")
    except (TypeError, ValueError):  # a function that does not say what it takes
        return
    if noise is not None and noise.default is Parameter.empty and noise.kind is not Parameter.VAR_KEYWORD:
        raise TypeError("validation calls the loss without noise: give that argument a default, as noise=None")
