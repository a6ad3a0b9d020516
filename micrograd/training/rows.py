"""Networks that learn from the rows of a matrix: compiled once for each shape of network, and kept for the next."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
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
from micrograd.engine.primitive import find
from micrograd.engine.stored import changing
from micrograd.losses import binary_cross_entropy, cross_entropy
from micrograd.nn import ACTIVATIONS, MLP
from micrograd.optim import SGD, Adam
from micrograd.training.batches import ListBatches
from micrograd.training.fit import Training
from micrograd.training.history import History

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
class TrainingConfiguration:
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
    """

    epochs: int
    batch_size: int
    order: Callable[[], list[int]]
    rate: Callable[[int], float]
    decay: Floats
    after_epoch: Callable[[list[float], Callable[[], Floats]], bool]
    progress: bool | None = False
    recording: Recording | None = None


def train(plan: Plan, state: State, rows: Floats, configuration: TrainingConfiguration) -> tuple[State, History]:
    """Train a network: the state after the last step, and the history of the loss.

    Args:
        plan: what the network is.
        state: where to start from; it stays as it is.
        rows: of inputs, targets and perhaps a weight; the targets are a class number for "softmax", else a number for
            each output.
        configuration: how to train.

    Raises:
        ArithmeticError: if a loss or a parameter is not finite, naming the epoch.
        ImportError: if there is no NumPy to compile with, or no tqdm for the bar that is asked for.
    """
    largest = backend_of("auto").executable("fit").batches.packing.largest
    pack = size_of_pack(min(configuration.batch_size, len(rows)), largest)  # small batches have programs of their own
    key = (plan, bool(configuration.decay.any()), pack)
    network = _take(key) or _Network(plan, pack)
    result = network.train(state, np.ascontiguousarray(rows, dtype=float), configuration)
    _keep(key, network)  # one that an error left half-way is not kept
    return result


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
        if len(_networks) > KEPT:
            _networks.popitem(last=False)


def activated(activation: str, sums: Floats) -> Floats:
    """What hidden neurons give for an array of their sums, computed as the compiler's programs do on NumPy."""
    if activation == "identity":
        return sums
    function = FUNCTIONS[activation]
    _, *settings = signature(function).parameters.values()  # elu has one
    with np.errstate(all="ignore"):  # a formula computes what it then does not choose
        forward = on_arrays(find(function.__name__))
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
        groups = [{"parameters": self._model}]  # so that a weight decay is part of the state, one for each parameter
        if plan.solver == "adam":
            beta1, beta2, epsilon = plan.settings
            self._solver: Any = _Adam(groups, betas=(beta1, beta2), epsilon=epsilon)
        else:
            momentum, nesterov = plan.settings
            self._solver = SGD(groups, momentum=momentum, nesterov=bool(nesterov and momentum))
        self._fresh = np.array(self._solver._state)
        self._steps: BufferSteps | None = None

    def train(self, state: State, rows: Floats, configuration: TrainingConfiguration) -> tuple[State, History]:
        """Take the steps of a configuration, with the loop of fit."""
        solver, parameters = self._solver, self._solver.parameters
        kept = (self._fresh if state.solver is None else state.solver).copy()
        kept[:, -1] = configuration.decay
        _set(parameters, state.parameters)
        solver._kept = [tuple(row) for row in kept.tolist()]
        solver.steps, solver.learning_rate = state.steps, configuration.rate
        if self._steps is None:
            loss = _loss_of(self._plan, self._model)
            self._steps = BufferSteps(Task(loss, rows, solver, _Diverged(), self._pack), "auto")
        else:
            self._steps.give_rows(rows)
        history = History()
        batches = _Batches(len(rows), configuration)
        _Training(history, batches, solver, self._steps, configuration).run(configuration.progress)
        if configuration.recording is not None:
            configuration.recording.end(self._steps.numbers())
        numbers = np.array([parameter.data for parameter in parameters])
        return State(numbers, np.array(solver._state), solver.steps), history


class _Batches(ListBatches):
    """The batches of so many rows, in the orders of a configuration."""

    def __init__(self, count: int, configuration: TrainingConfiguration) -> None:
        super().__init__(range(count), configuration.batch_size, seed=None, shuffle=True, steps=None)
        self._indices = configuration.order  # type: ignore[method-assign]  # the only difference


class _Training(Training):
    """The loop of fit, which reads the numbers of the network only where the configuration asks for them."""

    def __init__(
        self, history: History, batches: _Batches, solver: Any, steps: BufferSteps, configuration: TrainingConfiguration
    ) -> None:
        super().__init__(history, batches, solver, steps, configuration.epochs, record=configuration.recording)
        self._after_epoch = configuration.after_epoch

    def _tell(self, record: Recording, mean: float, batch: list[int]) -> None:
        record.step(mean, self.steps.numbers() if record.keeps_next() else [])

    def _ends(self) -> bool:
        return self._after_epoch(self.history.epochs, lambda: np.array(self.steps.numbers()))


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


class _Adam(Adam):
    """Adam as scikit-learn has it: epsilon is added to the root of the mean square before its bias is corrected."""

    def _adapted(self, parameter: Any, gradient: Any, state: Any, rate: Any, of_group: Any) -> tuple[Any, Any]:
        mean, square, count = state
        mean = self.beta1 * mean + (1 - self.beta1) * gradient
        square = self.beta2 * square + (1 - self.beta2) * (gradient * gradient)
        count = count + 1
        rate = rate * primitives.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)
        stepped = parameter - rate * mean / (primitives.sqrt(square) + self.epsilon)
        return stepped, (mean, square, count, *of_group)
