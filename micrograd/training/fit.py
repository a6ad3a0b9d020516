"""fit: epochs of shuffled batches, with a progress bar and a history of the loss."""

from __future__ import annotations

import math
import random
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

from micrograd._support.checks import required_count, required_sequence
from micrograd.compiler import compiled_steps
from micrograd.engine.value import Value
from micrograd.training.noise import Noise
from micrograd.training.recording import Recording, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from micrograd.optim import Optimizer


class History:
    """How a training run went.

    Attributes:
        steps: the mean loss of each step's batch, before that step's update.
        epochs: the mean loss over each whole epoch.
        interrupted: whether Ctrl-C ended the run.

    Example:
        >>> History()
        History(0 epochs, 0 steps)
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.epochs: list[float] = []
        self.interrupted = False

    def __repr__(self) -> str:
        loss = f", loss {self.steps[0]:.4g} -> {(self.epochs or self.steps)[-1]:.4g}" if self.steps else ""
        return f"History({len(self.epochs)} epochs, {len(self.steps)} steps{loss}{', interrupted' * self.interrupted})"

    def _repr_html_(self) -> str:
        """The curve of the loss that a notebook shows."""
        from micrograd.draw.notebook import loss_chart  # here, so that it is loaded only when a curve is shown

        several = len(self.epochs) > 1
        return loss_chart(repr(self), self.epochs if several else self.steps, "epoch" if several else "step")


def fit(
    loss: Callable[..., Value],
    data: Iterable[Any],
    optimizer: Optimizer,
    *,
    epochs: int = 1,
    batch_size: int = 1,
    seed: int | None = None,
    progress: bool | None = None,
    callback: Callable[[History], object] | None = None,
    compile: bool | str = False,
    record: Recording | None = None,
    devices: int | Literal["all"] | None = None,
    precision: Literal["float64", "float32"] = "float64",
    noise: Callable[[int], Sequence[Any]] | None = None,
) -> History:
    """Train: minimise the mean loss over the data.

    Ctrl-C ends the run early: the model is then as the last finished step left it, and the history
    so far is returned, with ``interrupted`` set. On an error, too, the model is as the last finished
    step left it.

    Args:
        loss: the loss of one example, as a Value. An example that is a tuple is given as several
            arguments, so that pairs of input and target go with ``loss(input, target)``.
        data: the examples.
        optimizer: what holds the parameters and updates them.
        epochs: how many times to go through the data.
        batch_size: how many examples an update takes the mean loss over; the last batch of an epoch
            may be smaller.
        seed: of the shuffling before each epoch, so that the same seed gives the same run; without one,
            Python's ``random`` shuffles.
        progress: whether to show a bar (this needs tqdm); by default on a terminal, if tqdm is there.
        callback: called after each epoch with the history; what it raises ends the run. Where several processes
            train together, each calls its own, and what it saves, the first one alone writes.
        compile: whether to run the loss, its gradient and the update as compiled programs, with the same
            results up to rounding; or the name of the backend: "llvm", "numpy" or "jax". Numbers in the
            examples are dynamic then, as in micrograd.compile. Natively a large batch runs on all cores, with the
            same results on any number of them; MICROGRAD_THREADS in the environment says on how many.
        record: a Recording, which is told of each step; explore makes a film of it.
        devices: with ``compile="jax"``, how many devices share each batch, or "all" of those that JAX finds, those of
            other processes too; without it, one. The results are the same up to rounding.
        precision: with ``compile="jax"``, "float32" computes in that, with half of the digits.
        noise: draws the random numbers of a loss, such as the mask of a dropout. It is called once for each step,
            with the number of examples in the batch, and returns as many items: numbers, lists or arrays, or the rows
            of one array. The loss takes the item of its example as the named argument ``noise``. The numbers are the
            same with and without ``compile``. The items must be alike in all steps.

    Returns:
        The history of the loss.

    Raises:
        ValueError: if there is no data, if epochs, batch_size or devices is below 1, if there are not as many
            devices, if noise does not return an item for each example or these are not alike, or if noise and record
            are both given.
        TypeError: if an argument is not what it must be, or loss does not return a Value.
        ArithmeticError: if a loss is not finite, naming the epoch and the example.
        ImportError: if progress is True and tqdm is not installed, or if what compiling needs is not.
        TraceError: if the loss cannot be compiled.
        RuntimeError: if JAX has float64 switched off and that is the precision, or if another process that trains
            together with this one has failed, is gone, or trains something else.

    Example:
        >>> from micrograd.optim import SGD
        >>> slope = Value(0.0)
        >>> points = [(1.0, 2.0), (2.0, 4.0)]
        >>> history = fit(lambda x, y: (slope * x - y) ** 2, points, SGD([slope], 0.1), epochs=50, seed=0)
        >>> round(slope.data, 6)
        2.0

        With random numbers in the loss:

        >>> rng = random.Random(0)
        >>> def draw(count):
        ...     return [rng.gauss(0, 0.1) for _ in range(count)]
        >>> def loss(x, y, noise):
        ...     return (slope * (x + noise) - y) ** 2
        >>> history = fit(loss, points, SGD([slope], 0.01), epochs=50, seed=0, noise=draw)
        >>> 1.9 < slope.data < 2.1
        True
    """
    examples = required_sequence(data, "data must be a list of examples")
    if not examples:
        raise ValueError("there is no data to fit")
    _check_functions(loss=loss, callback=callback, noise=noise)
    _check_optimizer(optimizer)
    epochs, batch_size = required_count(epochs, "epochs"), required_count(batch_size, "batch_size")
    if record is not None and not isinstance(record, Recording):
        raise TypeError(f"record must be a Recording, not {type(record).__name__}: {record!r:.80}")
    if record is not None and noise is not None:
        raise ValueError("a film computes losses again, for which noise is not drawn: leave out record or noise")
    _check_devices(devices, precision, compile)
    noises = None if noise is None else Noise(noise, min(batch_size, len(examples)))
    shuffler: Any = random if seed is None else random.Random(seed)
    history = History()
    steps: Any = _Eager(loss, examples, optimizer)
    if compile:
        backend = "auto" if compile is True else compile
        named = {} if noises is None else {"noise": noises.example}
        settings = batch_size, devices, precision
        steps = compiled_steps(loss, examples, optimizer, steps, backend, *settings, named, noise)
    if record is not None:
        record.start(Run(loss, examples, optimizer, batch_size, seed))
    bar = None
    try:
        with steps.together():
            bar = progress_bar(progress if steps.leads else False, epochs * math.ceil(len(examples) / batch_size))
            for epoch in range(epochs):
                order = shuffler.sample(range(len(examples)), len(examples))
                total = 0.0
                for start in range(0, len(order), batch_size):
                    batch = order[start : start + batch_size]
                    steps.before_noise()
                    mean = steps.step(batch, epoch, None if noises is None else noises.draw(len(batch)))
                    history.steps.append(mean)
                    if record is not None:
                        steps.update_values()
                        record.step(mean, batch=batch)
                    total += mean * len(batch)
                    if bar is not None:
                        so_far = total / (start + len(batch))
                        bar.set_postfix_str(f"epoch {epoch + 1}, loss {so_far:.4f}", refresh=False)
                        bar.update()
                history.epochs.append(total / len(examples))
                if callback is not None:
                    steps.update_values()
                    callback(history)
                    steps.read_examples()
    except KeyboardInterrupt:
        history.interrupted = True
    finally:
        steps.update_values()
        if bar is not None:
            bar.close()
    return history


class _Eager:
    """Steps that build the graph of each example anew."""

    leads = True

    def __init__(self, loss: Callable[..., Value], examples: Sequence[Any], optimizer: Optimizer) -> None:
        self._loss, self._examples, self._optimizer = loss, examples, optimizer

    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""
        self._optimizer.zero_grad()
        total = 0.0
        for place, index in enumerate(batch):
            example = self._examples[index]
            named = {} if noise is None else {"noise": noise[place]}
            value = self._loss(*(example if isinstance(example, tuple) else (example,)), **named)
            if not isinstance(value, Value):
                raise TypeError(f"loss must return a Value, not {type(value).__name__}: {value!r:.80}")
            if not math.isfinite(value.data):
                raise ArithmeticError(
                    f"the loss of example {index} is {value.data} in epoch {epoch + 1}; "
                    "a smaller learning rate may help"
                )
            # One example at a time: its graph is freed before the next is built.
            value.backward(1 / len(batch))
            total += value.data
        self._optimizer.step()
        return total / len(batch)

    def together(self) -> AbstractContextManager[None]:
        """Nothing is to be done before the first step and after the last."""
        return nullcontext()

    def before_noise(self) -> None:
        """Do nothing: the Values are up to date."""

    def read_examples(self) -> None:
        """Do nothing: each step reads its own."""

    def update_values(self) -> None:
        """Do nothing: the Values are what is trained."""


def _check_functions(**functions: Any) -> None:
    """Refuse what is no function; only the loss must be there."""
    for name, function in functions.items():
        if not callable(function) and (name == "loss" or function is not None):
            raise TypeError(f"{name} must be a function, not {type(function).__name__}: {function!r:.80}")


def _check_optimizer(optimizer: Any) -> None:
    """Refuse what is no optimiser of micrograd."""
    if isinstance(optimizer, type):
        name = optimizer.__name__
        made = f"make one, {name}(model.parameters())"
        raise TypeError(f"optimizer must be an optimiser, as mg.optim has, not the class {name}: {made}")
    if not hasattr(optimizer, "zero_grad") or not hasattr(optimizer, "step"):
        raise TypeError(f"optimizer must be an optimiser, as mg.optim has, not {optimizer!r:.80}")


def _check_devices(devices: Any, precision: Any, compile: bool | str) -> None:
    """Refuse what is no number of devices, and no precision; and others than the usual ones where JAX does not run."""
    if precision not in ("float64", "float32"):
        raise ValueError(f'precision must be "float64" or "float32", not {precision!r:.80}')
    if devices is not None and devices != "all":
        if isinstance(devices, str):
            raise ValueError(f'devices must be an int or "all", not {devices!r:.80}')
        required_count(devices, "devices")
    if compile != "jax" and (devices is not None or precision != "float64"):
        given = f"devices={devices!r}" if devices is not None else f"precision={precision!r}"
        raise ValueError(f'{given} needs compile="jax", not compile={compile!r:.80}')


def progress_bar(progress: bool | None, steps: int) -> Any:
    """A tqdm bar for so many steps, or None for none.

    Args:
        progress: whether to show one; None for on a terminal, if tqdm is there.
        steps: how many there will be.

    Raises:
        ImportError: if there must be one, and tqdm is not installed.
    """
    if progress is False or (progress is None and not (sys.stderr and sys.stderr.isatty())):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        if progress is None:
            return None
        raise ImportError("a progress bar needs tqdm: pip install tqdm") from None
    return tqdm(total=steps, unit="step")
