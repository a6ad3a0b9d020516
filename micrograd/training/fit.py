"""fit: epochs of shuffled batches, with a progress bar and a history of the loss."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice, repeat
from operator import mul
from typing import TYPE_CHECKING, Any, Literal

from micrograd._support.checks import check_type, is_bool, required_count, required_number
from micrograd.compiler import compiled_steps
from micrograd.contexts.modes import MaskError
from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing
from micrograd.training.batches import ListBatches, StreamBatches, batches_of
from micrograd.training.eager_steps import EagerSteps
from micrograd.training.history import History, Taken
from micrograd.training.masks import Masks
from micrograd.training.noise import Noise
from micrograd.training.recording import Recording, Run
from micrograd.training.validation import Validation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from micrograd.engine.value import Value
    from micrograd.optim import Optimizer


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
    shuffle: bool = True,
    steps: int | None = None,
    validation: Iterable[Any] | None = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    patience: int | None = None,
    clip_norm: float | None = None,
    resume: History | None = None,
    compile: bool | str = False,
    record: Recording | None = None,
    devices: int | Literal["all"] | None = None,
    precision: Literal["float64", "float32"] = "float64",
    noise: Callable[[int], Sequence[Any]] | None = None,
) -> History:
    """Train: minimise the mean loss over the data.

    Ctrl-C ends the run early and returns the history so far, with ``interrupted`` set. Then, and after an
    error, the model is as the last complete step left it.

    Args:
        loss: the loss of one example, as a Value. An example that is a tuple is passed as several arguments,
            so pairs of input and target call ``loss(input, target)``.
        data: the examples. A generator is first read to its end, unless ``steps`` is given.
        optimizer: what holds the parameters and updates them.
        epochs: how many times to go through the data.
        batch_size: over how many examples to take the mean loss of an update; the last batch of an epoch
            may be smaller.
        seed: of the shuffling before each epoch: the same seed gives the same run. Without one, Python's
            ``random`` shuffles.
        progress: whether to show a bar (this needs tqdm); by default on a terminal, if tqdm is there.
        callback: called after each epoch with the history. The run ends if it returns True or raises an error. If
            several processes train together, each calls its own, and only the first one writes what it saves.
        shuffle: whether each epoch visits the examples in another order; otherwise in that of the data.
        steps: how many steps an epoch has. Then a generator may be endless: its examples are neither shuffled nor
            kept. If it ends earlier, the run ends.
        validation: examples not to train on. Their mean loss after each epoch is in the history and the bar. For
            them, the loss is called without ``noise``.
        metrics: functions of a validation example by name, such as ``{"accuracy": lambda x, y: (model(x) > 0) == y}``,
            that return a number, a Value or a bool. Their means are in the history and the bar.
        patience: ends the run after so many epochs without a smaller validation loss. The parameters are then those
            of the best epoch, also if the run ends by itself; after Ctrl-C they are the last ones.
        clip_norm: scales the gradient of a batch down to this norm, if its norm is larger.
        resume: the history of a run that ended early, to continue it up to ``epochs``, even in the middle of an epoch.
            The numbers are exactly those of an uninterrupted run. Data, batch_size, steps and seed must be the same;
            the optimiser must be the same or have loaded its state.
        compile: whether to run the loss, its gradient and the update as compiled programs, with the same
            results up to rounding; or the name of the backend: "llvm", "numpy" or "jax". Numbers in the
            examples are then dynamic, as in micrograd.compile. Natively, a large batch runs on all cores, or on
            MICROGRAD_THREADS of them, with the same results on any number.
        record: a Recording of each step, for explore.
        devices: with ``compile="jax"``, over how many devices to split each batch; "all" for those that JAX finds,
            also in other processes; by default one. The results are the same up to rounding.
        precision: with ``compile="jax"``, "float32" computes with half of the digits.
        noise: draws the random numbers of a loss, such as the mask of a dropout. It is called once per step with the
            number of examples in the batch, and returns as many items: numbers, lists or arrays, or the rows of one
            array. The loss takes its item as the named argument ``noise``. The numbers are the same with and without
            ``compile``. All items must have the same structure.

    Returns:
        The history of the loss.

    Raises:
        ValueError: if there is no data; if epochs, batch_size, steps, patience or devices is below 1; if there are not
            as many devices; if noise does not return one item per example, of the same structure; if settings exclude
            or need one another; or if resume is of a run with other settings.
        TypeError: if an argument has the wrong type, or loss does not return a Value.
        ArithmeticError: if a loss or an update overflows or is not finite, naming the epoch and the example.
        ImportError: if progress is True and tqdm is not installed, or if a package for compiling is missing.
        TraceError: if the loss cannot be compiled.
        RuntimeError: if the precision is float64 and JAX has it disabled, or if another process of this training has
            failed, is gone, or trains something else.

    Example:
        >>> from micrograd import Value
        >>> from micrograd.optim import SGD
        >>> slope = Value(0.0)
        >>> points = [(1.0, 2.0), (2.0, 4.0)]
        >>> history = fit(lambda x, y: (slope * x - y) ** 2, points, SGD([slope], 0.1), epochs=50, seed=0)
        >>> round(slope.data, 6)
        2.0

        >>> history.loss == history.epochs, len(history.loss)
        (True, 50)

        With random numbers in the loss:

        >>> import random
        >>> rng = random.Random(0)
        >>> def draw(count):
        ...     return [rng.gauss(0, 0.1) for _ in range(count)]
        >>> def loss(x, y, noise):
        ...     return (slope * (x + noise) - y) ** 2
        >>> history = fit(loss, points, SGD([slope], 0.01), epochs=50, seed=0, noise=draw)
        >>> 1.9 < slope.data < 2.1
        True
    """
    _check_functions(loss=loss, callback=callback, noise=noise)
    _check_optimizer(optimizer)
    epochs, batch_size = required_count(epochs, "epochs"), required_count(batch_size, "batch_size")
    steps = None if steps is None else required_count(steps, "steps")
    history = _history(resume)
    taken = history._interrupted_step()
    batches = batches_of(data, batch_size, seed, shuffle, steps, taken)
    _check_devices(devices, precision, compile)
    _check_record(record, noise, batches)
    _check_validation(validation, metrics, patience)
    clip_norm = None if clip_norm is None else _positive(clip_norm)
    backend = None if not compile else "auto" if compile is True else compile
    checked = None if validation is None else Validation(loss, validation, metrics or {}, backend, precision)
    _continue(history, batches)
    first = None if taken is None else taken.noise
    noises = None if noise is None else Noise(noise, batches.size_of(history._epoch, history._done()), first)
    drawing: Noise | Masks | None = noises
    eager = EagerSteps(loss, batches, optimizer, clip_norm)
    run: Any = eager
    if backend is not None:
        compiled = partial(
            compiled_steps,
            examples=batches.examples,
            optimizer=optimizer,
            backend=backend,
            batch_size=batch_size,
            devices=devices,
            precision=precision,
            draw=noise,
            clip_norm=clip_norm,
        )
        try:
            run = compiled(loss, eager=eager, named={} if noises is None else {"noise": noises.example})
        except MaskError:  # it has a dropout
            drawing = masks = Masks(loss, batches, noises)
            eager = EagerSteps(masks.loss, batches, optimizer, clip_norm)
            run = compiled(masks.loss, eager=eager, named={"noise": masks.example})
    if record is not None:
        record.start(Run(loss, batches.examples, optimizer, batch_size, seed))
    Training(history, batches, optimizer, run, epochs, drawing, checked, callback, record, patience).run(progress)
    return history


@dataclass
class Training:
    """What a run of fit goes through, epoch by epoch; the history says how far it is."""

    history: History
    batches: ListBatches | StreamBatches
    optimizer: Any
    steps: Any
    epochs: int
    noises: Noise | Masks | None = None
    validation: Validation | None = None
    callback: Callable[[History], object] | None = None
    record: Recording | None = None
    patience: int | None = None

    def run(self, progress: bool | None) -> None:
        """Take the steps that are left, and give the Values what they have become."""
        history, steps, bar = self.history, self.steps, None
        before = getattr(self.optimizer, "steps", 0) - len(history.steps)
        try:
            with steps.together():
                bar = _progress_bar(progress if steps.leads else False, self._steps_left())
                self._train_epochs(bar)
        except KeyboardInterrupt:
            history.interrupted = True
        finally:
            steps.update_values()
            unnoted = getattr(self.optimizer, "steps", 0) - before - len(history.steps)
            if history.interrupted and unnoted > 0:
                history.steps += steps.last_means(unnoted)  # these steps were done when Ctrl-C came
            if bar is not None:
                bar.close()
        if self.patience is not None and not history.interrupted:
            self._set_best()

    def _train_epochs(self, bar: Any) -> None:
        while len(self.history.epochs) < self.epochs:
            if not self._train(bar) or self._ends():
                return

    def _steps_left(self) -> int:
        return (self.epochs - len(self.history.epochs)) * self.batches.steps - self.history._done()

    def _train(self, bar: Any) -> bool:
        """Take the steps of an epoch, or those that are left of it; whether there were any."""
        history, batches, steps, number = self.history, self.batches, self.steps, len(self.history.epochs)
        if history._epoch is None:
            history._epoch = batches.begin(history)
        begun, done = history._epoch, history._done()
        total, count = 0.0, 0
        for step, mean in enumerate(history.steps[begun.first :]):
            total, count = total + mean * batches.size_of(begun, step), count + batches.size_of(begun, step)
        one_by_one = self.noises is not None or batches.changes or self.record is not None
        following, waiting = batches.batches(begun, done), list[Any]()
        while waiting := waiting or list(islice(following, 1 if one_by_one else steps.at_once)):
            means = [self._step(waiting[0])] if one_by_one else steps.take(waiting, number)
            history.steps += means
            if self.record is not None:
                self._tell(self.record, means[0], waiting[0])
            sizes = [*map(len, waiting[: len(means)])]
            *_, total = accumulate(map(mul, means, sizes), initial=total)  # one after the other, on all Pythons
            count, waiting = count + sum(sizes), waiting[len(means) :]
            if bar is not None:
                _show(bar, number, total / count, {name: numbers[-1] for name, numbers in self._others() if numbers})
                bar.update(len(means))
        if count:
            self._finish(number, total / count)
        return count > 0

    def _step(self, batch: list[int]) -> float:
        """Take the step of a batch, whose examples may be new, and for which noise may be drawn."""
        history, batches, steps, noises = self.history, self.batches, self.steps, self.noises
        noise = None
        if batches.changes:
            steps.read_examples()
        if noises is not None or batches.changes:
            steps.before_noise()
            noise, drawn = (None, None) if noises is None else (noises.draw(batch), noises.drawn)
            history._taken = Taken(len(history.steps), batches.taken(batch), drawn)
        return float(steps.step(batch, len(history.epochs), noise))

    def _tell(self, record: Recording, mean: float, batch: list[int]) -> None:
        """Record a step."""
        self.steps.update_values()
        record.step(mean, batch=batch)

    def _others(self) -> list[tuple[str, list[float]]]:
        return [("validation", self.history.validation), *self.history.metrics.items()]

    def _finish(self, number: int, loss: float) -> None:
        """Note what an epoch has achieved: all of it, or nothing where Ctrl-C comes first."""
        history, best = self.history, self.history._best
        lists, numbers = [history.epochs], [loss]
        if self.validation is not None:
            self.steps.update_values()
            found = self.validation.run(number)
            lists += [history.validation, *(history.metrics.setdefault(name, []) for name in list(found)[1:])]
            numbers += found.values()
            if self.patience is not None and found["validation"] < min(history.validation, default=float("inf")):
                best = [parameter.data for parameter in self.optimizer.parameters]
        following = {"_epoch": None, "_best": best}
        commit(chain(map(list.append, lists, numbers), map(setattr, repeat(history), following, following.values())))

    def _ends(self) -> bool:
        """Whether the run ends after this epoch, before its last one."""
        history, stops = self.history, False
        if self.callback is not None:
            self.steps.update_values()
            answer = self.callback(history)
            stops = is_bool(answer) and bool(answer)
            self.steps.read_examples()
        waited = len(history.validation) - (history.best_epoch or 0)
        return stops or (self.patience is not None and waited >= self.patience)

    def _set_best(self) -> None:
        parameters = self.optimizer.parameters
        with changing(parameters):
            commit(setting(parameters, "_data", self.history._best))


def _history(resume: Any) -> History:
    """A history to write into: a new one, or that of the run which is continued."""
    history = History() if resume is None else resume
    check_type(isinstance(history, History), "resume must be the History that fit returned", resume)
    return history


def _continue(history: History, batches: ListBatches | StreamBatches) -> None:
    """Let the batches be those that follow in the history."""
    if history._settings is not None and history._settings != batches.settings:
        raise ValueError(f"resume needs the same {batches.settings[0]} as before")
    history._settings, history.interrupted = batches.settings, False
    batches.skip(len(history.epochs) + (history._epoch is not None))


def _check_record(record: Any, noise: Any, batches: ListBatches | StreamBatches) -> None:
    """Refuse what is no Recording, and what one cannot show."""
    check_type(record is None or isinstance(record, Recording), "record must be a Recording", record)
    if record is not None and noise is not None:
        raise ValueError("a recording computes losses again, without drawing noise: leave out record or noise")
    if record is not None and batches.changes:
        raise ValueError("a recording computes losses again, and a generator yields examples once: record needs a list")


def _check_validation(validation: Any, metrics: Any, patience: Any) -> None:
    """Refuse what needs validation examples where there are none."""
    check_type(metrics is None or hasattr(metrics, "items"), "metrics must be a dict of functions by name", metrics)
    if metrics and {"loss", "validation"} & set(metrics):
        raise ValueError("a metric may not be named loss or validation: the history has these")
    if patience is not None:
        required_count(patience, "patience")
    if validation is None and (metrics or patience is not None):
        raise ValueError(f"{'metrics' if metrics else 'patience'} needs validation=, examples that are not trained on")


def _positive(clip_norm: Any) -> float:
    number = required_number(clip_norm, "clip_norm")
    if not number > 0:
        raise ValueError(f"clip_norm must be above 0, not {clip_norm!r:.80}")
    return number


def _check_functions(**functions: Any) -> None:
    """Refuse what is no function; only the loss must be there."""
    for name, function in functions.items():
        check_type(callable(function) or (name != "loss" and function is None), f"{name} must be a function", function)


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


def _progress_bar(progress: bool | None, steps: int) -> Any:
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


def _show(bar: Any, epoch: int, loss: float, others: Mapping[str, float]) -> None:
    """Let the bar say the number of the epoch, its loss so far, and what the last epoch gave besides."""
    numbers = "".join(f", {name} {number:.4f}" for name, number in {"loss": loss, **others}.items())
    bar.set_postfix_str(f"epoch {epoch + 1}{numbers}", refresh=False)
