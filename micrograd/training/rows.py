"""Networks that learn from the rows of a matrix: compiled once for each shape of network, and kept for the next."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from inspect import signature
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.backends.numpy.numpy_backend import on_arrays
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.passes.packs import size_of_pack
from micrograd.compiler.training.buffer_steps import BufferSteps
from micrograd.compiler.training.steps import Task
from micrograd.engine import primitives
from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing
from micrograd.losses import binary_cross_entropy, cross_entropy
from micrograd.nn import ACTIVATIONS, MLP
from micrograd.optim import SGD, Adam
from micrograd.training.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.numbers import Floats
    from micrograd.engine.value import Value
    from micrograd.training.recording import Recording


def _identity(x: Any) -> Any:
    return x


# Activations of hidden neurons: the names that scikit-learn has, and those of micrograd.nn.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "identity": _identity,
    "logistic": ACTIVATIONS["sigmoid"][1],
    **{name: function for name, (_, function) in ACTIVATIONS.items()},
}
KEPT = 8  # networks whose programs are kept, those used last


class Plan(NamedTuple):
    """What a compiled network is made for; of equal plans, one program serves both.

    Attributes:
        sizes: the number of inputs, of the neurons in each hidden layer, and of outputs.
        activation: of the hidden neurons, one of FUNCTIONS.
        output: what the outputs are: "softmax" of classes, "logistic" each, or "identity", numbers.
        weighted: whether the last number of each row is its weight.
        solver: "adam" or "sgd".
        settings: those of the solver: both betas and epsilon, or momentum and whether it is Nesterov's.
    """

    sizes: tuple[int, ...]
    activation: str
    output: str
    weighted: bool
    solver: str
    settings: tuple[float, ...]


@dataclass
class State:
    """Where a training is: all that the next step depends on.

    Attributes:
        parameters: neuron after neuron its weights and its bias, as MLP has them.
        solver: what the solver keeps, a row for each parameter; None before the first step.
        steps: how many there were.
    """

    parameters: Floats
    solver: Floats | None = None
    steps: int = 0


@dataclass
class Course:
    """How a training is to run.

    Attributes:
        epochs: how often to go through the rows, at most.
        batch_size: the rows of a step.
        order: gives the order of the rows for the next epoch.
        rate: the learning rate of a step, from its number.
        decay: how much of each parameter is added to its gradient, a number for each.
        after_epoch: called after each epoch with the losses so far, and with what reads the parameters; it says
            whether to stop.
        progress: whether to show a bar; None for on a terminal, if tqdm is there.
        recording: is told of every step.
        losses: of the epochs so far.
        interrupted: whether Ctrl-C ended the run.
    """

    epochs: int
    batch_size: int
    order: Callable[[], list[int]]
    rate: Callable[[int], float]
    decay: Floats
    after_epoch: Callable[[list[float], Callable[[], Floats]], bool]
    progress: bool | None = False
    recording: Recording | None = None
    losses: list[float] = field(default_factory=list)
    interrupted: bool = False


def train(plan: Plan, state: State, rows: Floats, course: Course) -> State:
    """Train a network, and give the state after the last step.

    Args:
        plan: what the network is.
        state: where to start from; it stays as it is.
        rows: of inputs, targets and perhaps a weight; the targets are a class number for "softmax", else a number for
            each output.
        course: how to train; it is told the losses.

    Raises:
        ArithmeticError: if a loss or a parameter is not finite, naming the epoch.
        ImportError: if there is no NumPy to compile with, or no tqdm for the bar that is asked for.
    """
    largest = backend_of("auto").executable("fit").batches.packing.largest
    pack = size_of_pack(min(course.batch_size, len(rows)), largest)  # small batches have programs of their own
    key = (plan, bool(course.decay.any()), pack)
    network = _take(key) or _Network(plan, pack)
    after = network.train(state, np.ascontiguousarray(rows, dtype=float), course)
    _keep(key, network)  # one that an error left half-way is not kept
    return after


_networks: OrderedDict[Any, list[_Network]] = OrderedDict()
_lock = Lock()


def _take(key: Any) -> _Network | None:
    """A network that is kept and that nobody else uses meanwhile."""
    with _lock:
        idle = _networks.get(key)
        return idle.pop() if idle else None


def _keep(key: Any, network: _Network) -> None:
    with _lock:
        _networks.setdefault(key, []).append(network)
        _networks.move_to_end(key)
        while len(_networks) > KEPT:
            _networks.popitem(last=False)


def activated(activation: str, sums: Floats) -> Floats:
    """What hidden neurons give for an array of their sums, computed as the compiler's programs do on NumPy."""
    if activation == "identity":
        return sums
    function = FUNCTIONS[activation]
    _, *settings = signature(function).parameters.values()  # elu has one
    with np.errstate(all="ignore"):  # a formula computes what it then does not choose
        forward = on_arrays(getattr(primitives, function.__name__))
        result: Floats = forward(sums, *(setting.default for setting in settings))
    return result


def outputs_of(model: MLP, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a network as a list, also where there is one."""
    outputs: Any = model(inputs)
    return outputs if isinstance(outputs, list) else [outputs]


def network_of(sizes: Sequence[int], activation: str, parameters: Floats | None = None) -> MLP:
    """A network of Values.

    Args:
        sizes: the number of inputs, of the neurons in each hidden layer, and of outputs.
        activation: one of FUNCTIONS.
        parameters: their numbers, as in State; all 0 by default.
    """
    model = MLP(sizes[0], list(sizes[1:]), FUNCTIONS[activation], initial=0.0)
    if parameters is not None:
        _set(model.parameters(), parameters)
    return model


def _set(values: list[Value], numbers: Floats) -> None:
    with changing(values):
        commit(setting(values, "_data", numbers.tolist()))


class _Network:
    """A network, its solver and their programs, for whatever rows and state there are."""

    def __init__(self, plan: Plan, pack: int) -> None:
        self._plan, self._pack = plan, pack
        self._model = network_of(plan.sizes, plan.activation)
        self._parameters = self._model.parameters()
        kind = _DecayingAdam if plan.solver == "adam" else _DecayingSGD
        self._solver = kind(self._parameters, plan.settings)
        self._steps: BufferSteps | None = None

    def train(self, state: State, rows: Floats, course: Course) -> State:
        """Take the steps of a course."""
        solver, count = self._solver, len(self._parameters)
        kept = np.zeros((count, solver.states)) if state.solver is None else state.solver.copy()
        kept[:, -1] = course.decay
        _set(self._parameters, state.parameters)
        solver._kept = [tuple(row) for row in kept.tolist()]
        solver.steps, solver.learning_rate = state.steps, course.rate
        if self._steps is None:
            loss = _loss_of(self._plan, self._model)
            self._steps = BufferSteps(Task(loss, rows, solver, _Diverged(), self._pack), "auto")
        else:
            self._steps.give_rows(rows)
        self._run(self._steps, len(rows), course)
        numbers = np.array([parameter.data for parameter in self._parameters])
        return State(numbers, np.array(solver._state), solver.steps)

    def _run(self, steps: BufferSteps, count: int, course: Course) -> None:
        batches = math.ceil(count / course.batch_size)
        bar = progress_bar(course.progress, course.epochs * batches)
        try:
            for epoch in range(course.epochs):
                order, total = course.order(), 0.0
                for start in range(0, count, course.batch_size):
                    batch = order[start : start + course.batch_size]
                    mean = steps.step(batch, epoch)
                    total += mean * len(batch)
                    if course.recording is not None:
                        course.recording.step(mean, steps.numbers() if course.recording.keeps_next() else [])
                    if bar is not None:
                        mean_so_far = total / (start + len(batch))
                        bar.set_postfix_str(f"epoch {epoch + 1}, loss {mean_so_far:.4f}", refresh=False)
                        bar.update()
                course.losses.append(total / count)
                if course.after_epoch(course.losses, lambda: np.array(steps.numbers())):
                    break
        except KeyboardInterrupt:
            course.interrupted = True
        finally:
            steps.update_values()
            if course.recording is not None:
                course.recording.end(steps.numbers())
            if bar is not None:
                bar.close()


def _loss_of(plan: Plan, model: MLP) -> Callable[[list[Any]], Any]:
    """The loss of a row."""
    inputs = plan.sizes[0]

    def loss(row: list[Any]) -> Any:
        outputs, targets = outputs_of(model, row[:inputs]), row[inputs:]
        if plan.output == "softmax":
            result = cross_entropy(outputs, targets[0])
        elif plan.output == "logistic":
            result = sum(map(binary_cross_entropy, outputs, targets))
        else:
            result = sum(0.5 * (output - target) ** 2 for output, target in zip(outputs, targets, strict=False))
        return targets[-1] * result if plan.weighted else result

    return loss


class _Diverged:
    """Takes the steps that the programs cannot: none, as only those that are not finite are left to it."""

    def step(self, batch: Sequence[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        raise ArithmeticError(
            f"the loss or a parameter is not finite in epoch {epoch + 1}: scale the columns, as StandardScaler does, "
            "or take a smaller learning_rate_init"
        )


class _DecayingAdam(Adam):
    """Adam with a weight decay of its own for each parameter, the last number of its state.

    Epsilon stands where scikit-learn has it: beside the root of the square that is not made unbiased yet.
    """

    states = 4

    def __init__(self, parameters: Any, settings: Sequence[float]) -> None:
        beta1, beta2, epsilon = settings
        super().__init__(parameters, 0.0, (beta1, beta2), epsilon)

    def update(self, parameter: Any, gradient: Any, state: tuple[Any, ...], rate: Any) -> tuple[Any, tuple[Any, ...]]:
        """Adam's step along the gradient plus the decay."""
        mean, square, count, decay = state
        gradient, count = gradient + decay * parameter, count + 1
        mean = self.beta1 * mean + (1 - self.beta1) * gradient
        square = self.beta2 * square + (1 - self.beta2) * (gradient * gradient)
        rate = rate * primitives.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)
        return parameter - rate * mean / (primitives.sqrt(square) + self.epsilon), (mean, square, count, decay)


class _DecayingSGD(SGD):
    """SGD with a weight decay of its own for each parameter, the last number of its state."""

    def __init__(self, parameters: Any, settings: Sequence[float]) -> None:
        momentum, nesterov = settings
        super().__init__(parameters, 0.0, momentum, bool(nesterov and momentum))
        self.states += 1
        self._kept = [(0.0,) * self.states] * len(self.parameters)

    def update(self, parameter: Any, gradient: Any, state: tuple[Any, ...], rate: Any) -> tuple[Any, tuple[Any, ...]]:
        """SGD's step along the gradient plus the decay."""
        *velocity, decay = state
        following, velocity_after = super().update(parameter, gradient + decay * parameter, tuple(velocity), rate)
        return following, (*velocity_after, decay)
