"""Estimators for scikit-learn: networks whose every prediction can be opened as a graph.

    from micrograd.estimators import MLPClassifier

    model = MLPClassifier(hidden_layer_sizes=(16,), max_iter=50, random_state=0).fit(X, y)
    model.score(X, y)
    model.explore(X[0], "why.html")    # the graph behind this answer

They have scikit-learn's names for parameters and attributes, pass its check_estimator, and learn what its own networks
of these names learn from the same seed. Training is compiled. (One difference: hidden_layer_sizes is the first
argument of both, and not loss, which is always the squared error for numbers.)
"""

from __future__ import annotations

import itertools
import math
import warnings
from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

try:
    from scipy.special import expit, softmax
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import accuracy_score, r2_score
    from sklearn.model_selection import train_test_split
    from sklearn.utils import check_array, check_consistent_length, check_random_state, shuffle
    from sklearn.utils._param_validation import Interval, Options, StrOptions
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise ImportError("micrograd.estimators needs scikit-learn: pip install scikit-learn pandas skops") from None

import numpy as np

from micrograd import functional
from micrograd._support.checks import required_count
from micrograd.engine.value import Value
from micrograd.optim import constant, cosine
from micrograd.pages import explore
from micrograd.training.recording import Recording
from micrograd.training.rows import (
    FUNCTIONS,
    Plan,
    State,
    TrainingConfiguration,
    activated,
    network_of,
    outputs_of,
    train,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from micrograd._support.files import StrPath
    from micrograd.compiler.numbers import Floats
    from micrograd.nn import MLP

MOST_PARAMETERS = 2_000_000  # some 2 GB while they are compiled
MOST_POINTS = 400  # rows that a recording shows of networks with two inputs, in the plane; of others, the first
MOST_SHOWN = 20_000  # parameters of a network that a page shows whole: it is some 15 MB then
PART = 40  # inputs that it shows of a larger one
MOST_KEPT = 2_000_000  # numbers in all frames of a recording: 65 MB of memory


class _Network(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What both estimators share: all but what the targets are, and what the outputs mean."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(FUNCTIONS))],
        "solver": [StrOptions({"adam", "sgd"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"constant", "cosine"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["boolean", None],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {math.inf})],
        "record": ["boolean"],
    }
    classes_: Any

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: int | str = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool | None = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: float = 10,
        record: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.record = record

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # noqa: N803  # scikit-learn names it X
        """Learn from rows; see the class.

        Args:
            X: the rows, each of the same inputs: an array or a table of shape (rows, inputs).
            y: the target of each row.
            sample_weight: how much each row counts; 1 for each where left out.

        Returns:
            The estimator itself.

        Raises:
            ValueError: for parameters, rows or targets that do not fit, saying which; TypeError for sparse rows.
            ArithmeticError: if the training diverges. After an error, the former weights remain.
        """
        self._learn(X, y, sample_weight, going_on=False)
        return self

    def explore(self, row: Any, path: StrPath, title: str = "", inputs: Mapping[str, Any] | None = None) -> None:
        """Write a page that opens the graph of one prediction: why this answer.

        The page steps through the network at work on the row, and back through the gradients of the answer: of the
        probability of the likeliest class, or of the first predicted number. For a network with more than 20,000
        parameters, it shows the 40 inputs that weigh most in this row. The others are counted in with the biases of
        the first layer: the answer, and all gradients shown, are those of the whole network.

        Args:
            row: the inputs of one row: a list, an array, or a table of one row.
            path: where to write; ends in ``.html``.
            title: of the page; the answer where left out.
            inputs: what to draw as one group, by name: names of columns in nested lists, as of the pixels of an image.

        Raises:
            NotFittedError: before fit.
            ValueError: for another number of inputs, or a network too large for a page behind its first layer.
            ImportError: if graphviz or pygraphviz is not installed.
            OSError: if the file cannot be written.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = getattr(row, "columns", [f"x{position}" for position in range(self.n_features_in_)])
            row = np.asarray(row) if hasattr(row, "columns") else row
        numbers = self._rows(row if getattr(row, "ndim", 1) == 2 else [row])
        if len(numbers) != 1:
            raise ValueError(f"a page is about one row, not {len(numbers)}")
        shown = self._weightiest(numbers[0])
        values = {
            str(names[position]): Value(numbers[0, position].item(), label=str(names[position])) for position in shown
        }
        answer = self._answer(outputs_of(self._model(shown, numbers[0]), list(values.values())))
        boxes = {name: _replaced(columns, values) for name, columns in (inputs or {}).items()}
        explore(answer, path, f"{title or f'Why {answer.label}'}{_not_shown(len(names) - len(shown))}", boxes)

    def _answer(self, outputs: list[Value]) -> Value:
        """The Value that a page is about, with a label."""
        raise NotImplementedError

    def _targets(self, y: Any, known: bool, classes: Any) -> Floats:
        """The targets as a matrix; where the estimator does not know them yet, it learns what they are."""
        raise NotImplementedError

    def _score(self, rows: Floats, targets: Floats) -> float:
        """How good the predictions for rows that are held back are."""
        raise NotImplementedError

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, going_on: bool, classes: Any = None) -> None:  # noqa: N803  # see fit
        """Fit, or go on for an epoch from where the last training ended: all is learned, or nothing is changed."""
        learner = copy(self)
        converged = learner._taught(X, y, sample_weight, going_on=going_on, classes=classes)
        self.__dict__.update(learner.__dict__)  # at once: rows of other classes never meet the weights of before
        self._warn(converged=converged)

    def _taught(
        self,
        X: Any,  # noqa: N803  # see fit
        y: Any,
        sample_weight: Any,
        *,
        going_on: bool,
        classes: Any,
    ) -> bool:
        """Train; whether it need not go on. An error may leave this estimator half changed."""
        self._validate_params()
        known = hasattr(self, "coefs_") and (going_on or self.warm_start)
        rows, y = validate_data(self, X, y, dtype=float, multi_output=True, reset=not known)
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        targets = self._targets(y, known, classes)
        weights = None if sample_weight is None else _weights(sample_weight, rows)
        chance = check_random_state(self.random_state)
        if not known:
            self._begin(chance, rows.shape[1], targets.shape[1])
        if not (known and going_on):
            self._solver_state, self._steps = None, 0

        parts = [rows, targets] if weights is None else [rows, targets, weights[:, None]]
        watch = _Watch(self)
        if self.early_stopping and not going_on:
            parts = watch.hold_back(parts, chance)
        configuration = self._configuration(parts, watch, chance, epochs=1 if going_on else self.max_iter)
        self._train(parts, configuration)
        if watch.best is not None:
            self._set_parameters(watch.best)
        self.validation_scores_ = watch.scores if watch.scores else None
        self.best_validation_score_ = max(watch.scores, default=None)
        return watch.stopped or going_on or self.n_iter_no_change == math.inf

    def _begin(self, chance: Any, inputs: int, outputs: int) -> None:
        """Draw the first weights, as Glorot and Bengio (2010) do, and scikit-learn in this order."""
        self.n_outputs_ = len(self.classes_) if self.out_activation_ == "softmax" else outputs
        hidden = self.hidden_layer_sizes
        hidden = hidden if hasattr(hidden, "__iter__") else [hidden]
        sizes = [inputs, *(required_count(size, "each of hidden_layer_sizes") for size in hidden), self.n_outputs_]
        if (count := _count(sizes)) > MOST_PARAMETERS:
            raise ValueError(
                f"a network of the sizes {sizes} has {count:,} parameters, and {MOST_PARAMETERS:,} are the most: take "
                "smaller hidden_layer_sizes"
            )
        factor = 2.0 if self.activation == "logistic" else 6.0
        self.coefs_, self.intercepts_ = [], []
        for inputs, neurons in itertools.pairwise(sizes):
            bound = math.sqrt(factor / (inputs + neurons))
            self.coefs_.append(chance.uniform(-bound, bound, (inputs, neurons)))
            self.intercepts_.append(chance.uniform(-bound, bound, neurons))
        self.n_layers_ = len(sizes)
        self.loss_curve_: list[float] = []
        self.t_ = 0

    def _configuration(self, parts: list[Floats], watch: _Watch, chance: Any, epochs: int) -> TrainingConfiguration:
        """How to train on the rows, the targets and perhaps the weights."""
        rows, weight = len(parts[0]), float(parts[2].mean()) if len(parts) == 3 else 1.0
        batch_size = min(200 if isinstance(self.batch_size, str) else self.batch_size, rows)
        rate: Callable[[int], float] = constant(self.learning_rate_init)
        if self.learning_rate == "cosine":
            steps = self.max_iter * math.ceil(rows / batch_size)
            rate = cosine(self.learning_rate_init, self.learning_rate_init / 100, steps)
        is_weight = _flat([np.ones_like(coef) for coef in self.coefs_], [np.zeros_like(b) for b in self.intercepts_])
        return TrainingConfiguration(
            epochs=epochs,
            batch_size=batch_size,
            order=self._order(rows, chance),
            rate=rate,
            decay=self.alpha / (batch_size * weight) * is_weight,
            after_epoch=watch.should_stop,
            progress=self.verbose,
            recording=self._recording(parts) if self.record else None,
        )

    def _order(self, rows: int, chance: Any) -> Callable[[], list[int]]:
        """What gives the order of the rows for the next epoch: shuffled once more each time, as scikit-learn does."""
        order = np.arange(rows)

        def following() -> list[int]:
            nonlocal order
            if self.shuffle:
                order = shuffle(order, random_state=chance)
            numbers: list[int] = order.tolist()
            return numbers

        return following

    def _train(self, parts: list[Floats], configuration: TrainingConfiguration) -> None:
        """Train along a configuration, and keep what was learned."""
        settings: tuple[float, ...] = (self.beta_1, self.beta_2, self.epsilon)
        if self.solver == "sgd":
            settings = (self.momentum, float(self.nesterovs_momentum))
        weights = [part / part.mean() for part in parts[2:]]
        plan = Plan(self._sizes(), self.activation, self.out_activation_, bool(weights), self.solver, settings)
        start = State(_flat(self.coefs_, self.intercepts_), self._solver_state, self._steps)
        end, history = train(plan, start, np.column_stack([*parts[:2], *weights]), configuration)
        self._solver_state, self._steps = end.solver, end.steps
        self._set_parameters(end.parameters)
        self.loss_curve_ = [*self.loss_curve_, *history.epochs]
        self.n_iter_ = len(history.epochs)
        self.loss_ = self.loss_curve_[-1] if self.loss_curve_ else math.inf
        self.best_loss_ = None if self.early_stopping else min(self.loss_curve_, default=math.inf)
        self.t_ += len(history.epochs) * len(parts[0])
        self.interrupted_, self._recorded = history.interrupted, configuration.recording
        self.record_ = None if self._recorded is None else self._shown_part(self._recorded)

    def _warn(self, *, converged: bool) -> None:
        if self.interrupted_:
            warnings.warn("Training interrupted by user.", stacklevel=4)
        elif not converged:
            message = f"the loss still fell after max_iter={self.max_iter} epochs: more may be better"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _recording(self, parts: list[Floats]) -> Recording:
        """What is told of every step."""
        most = MOST_POINTS if parts[0].shape[1] == 2 else 1
        inputs, targets = parts[0][:most].tolist(), parts[1][:most]
        model = network_of(self._sizes(), self.activation, _flat(self.coefs_, self.intercepts_))
        sides = None
        if targets.shape[1] == 1:
            sides = (2 * targets[:, 0] - 1 if self.out_activation_ == "logistic" else targets[:, 0]).tolist()
        frames = min(max(MOST_KEPT // _count(self._sizes()), 10), 200)
        return Recording(model, inputs, sides, frames=frames)

    def _shown_part(self, recording: Recording) -> Recording:
        """The recording of a training as a page can show it: of a large network, at work on the first row."""
        row = np.array(recording.inputs[0])
        shown = self._weightiest(row)
        if len(shown) == len(row):
            return recording
        stage = copy(self)

        def part(numbers: list[float]) -> list[float]:
            stage._set_parameters(np.array(numbers))
            found: list[float] = stage._part(shown, row).tolist()
            return found

        return recording.of_part(self._model(shown, row), row[shown].tolist(), part)

    def _sizes(self) -> tuple[int, ...]:
        return (len(self.coefs_[0]), *map(len, self.intercepts_))

    def _set_parameters(self, numbers: Floats) -> None:
        coefs, intercepts, start, inputs = [], [], 0, self._sizes()[0]
        for neurons in self._sizes()[1:]:
            layer = numbers[start : start + neurons * (inputs + 1)].reshape(neurons, inputs + 1)
            coefs.append(np.ascontiguousarray(layer[:, :-1].T))
            intercepts.append(layer[:, -1].copy())
            start, inputs = start + layer.size, neurons
        self.coefs_, self.intercepts_ = coefs, intercepts

    def _weightiest(self, row: Floats) -> Any:
        """The positions of the inputs that a page shows: all, or those that weigh most in a row."""
        weights = np.abs(row) * np.abs(self.coefs_[0]).sum(axis=1)
        most = len(row) if _count(self._sizes()) <= MOST_SHOWN else PART
        return np.sort(np.argsort(-weights, kind="stable")[:most])

    def _part(self, shown: Any, row: Floats) -> Floats:
        """The parameters of the network of some inputs, where the others are as in a row."""
        first, *coefs = self.coefs_
        others = np.delete(np.arange(len(row)), shown)
        biases = self.intercepts_[0] + row[others] @ first[others]
        return _flat([first[shown], *coefs], [biases, *self.intercepts_[1:]])

    def _model(self, shown: Any, row: Floats) -> MLP:
        """The network of some inputs as Values."""
        return network_of((len(shown), *self._sizes()[1:]), self.activation, self._part(shown, row))

    def _rows(self, X: Any) -> Floats:  # noqa: N803  # see fit
        """The rows to predict for."""
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, dtype=float, reset=False)
        return rows

    def _outputs(self, rows: Floats) -> Floats:
        """What the last layer gives for each row."""
        for coef, intercept in zip(self.coefs_[:-1], self.intercepts_[:-1], strict=True):
            rows = activated(self.activation, rows @ coef + intercept)
        outputs: Floats = rows @ self.coefs_[-1] + self.intercepts_[-1]
        return outputs

    def _stages(self, X: Any) -> Iterator[Floats]:  # noqa: N803  # see fit
        """The outputs with the parameters of each frame of the recording."""
        rows, recording = self._rows(X), self._recorded
        if recording is None:
            raise ValueError("no stages were recorded: set record=True before fit")
        stage = copy(self)
        for _, numbers in recording.frames():
            stage._set_parameters(np.array(numbers))
            yield stage._outputs(rows)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: None if name in {"record_", "_recorded"} else value for name, value in state.items()}


class MLPClassifier(ClassifierMixin, _Network):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier, with scikit-learn's interface.

    It minimises the cross-entropy by stochastic gradient descent, compiled. Names and defaults are those of
    ``sklearn.neural_network.MLPClassifier``; from the same seed both learn the same, up to rounding.

    Args:
        hidden_layer_sizes: the number of neurons of each hidden layer; () for a linear model.
        activation: of the hidden neurons: "identity", "logistic", or a name that ``micrograd.nn`` knows: "relu", ...
        solver: "adam" or "sgd".
        alpha: the L2 penalty, on the weights alone.
        batch_size: the rows of each step; "auto" for min(200, rows).
        learning_rate: "constant", or "cosine", which falls to a hundredth at the end of max_iter.
        learning_rate_init: the learning rate at the start.
        max_iter: the maximum number of epochs.
        shuffle: whether to shuffle the rows before each epoch.
        random_state: a seed of the initial weights, the batches and the validation rows; or a generator.
        tol: by how much the loss, or the score of early stopping, must improve.
        verbose: whether to show a progress bar, which needs tqdm; None shows one on a terminal.
        warm_start: whether fit continues from the weights of the last fit.
        momentum: for "sgd".
        nesterovs_momentum: whether it is Nesterov's.
        early_stopping: whether to hold out validation rows, and to keep the weights with the best score on them.
        validation_fraction: the fraction of rows to hold out for it.
        beta_1: for "adam", as are ``beta_2`` and ``epsilon``.
        beta_2: see beta_1.
        epsilon: see beta_1.
        n_iter_no_change: stop after more than so many epochs without improvement; math.inf for never.
        record: whether to record the training.

    Attributes:
        classes_: the sorted classes; for several labels per row, the number of each.
        coefs_: the weights of each layer, of shape (inputs, neurons); ``intercepts_`` the biases.
        loss_curve_: the mean loss of each epoch, without the penalty; ``loss_`` is the last, ``best_loss_`` the least.
        validation_scores_: the accuracy on the validation rows after each epoch; None without early stopping.
        n_iter_: how many epochs there were; ``interrupted_`` says whether Ctrl-C ended them.
        n_features_in_: how many inputs there are; ``feature_names_in_`` their names, if the rows had names.
        record_: a Recording of the training for ``micrograd.explore``; None without record. It is not pickled.

    Example:
        >>> model = MLPClassifier((4,), learning_rate_init=0.1, n_iter_no_change=math.inf, random_state=1)
        >>> model.fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]).predict([[0.5], [9.0]])
        array(['low', 'high'], dtype='<U4')
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> MLPClassifier:  # noqa: N803  # see fit
        """Train for one epoch, from where the last call ended.

        Args:
            X: the rows.
            y: the class of each.
            classes: all classes, including later ones; needed at the first call.
            sample_weight: how much each row counts.

        Raises:
            ValueError: as fit does, and for a class that is not among classes.
        """
        if self.early_stopping:
            raise ValueError("partial_fit goes through the rows once: it takes no early_stopping=True")
        if classes is None and not hasattr(self, "coefs_"):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        self._learn(X, y, sample_weight, going_on=True, classes=classes)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803  # see fit
        """The probability of each class, a column for each, in the order of ``classes_``."""
        return self._probabilities(self._outputs(self._rows(X)))

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803  # see fit
        """The logarithms of the probabilities."""
        with np.errstate(divide="ignore"):  # of a probability that is 0 to the last digit
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> Any:  # noqa: N803  # see fit
        """The likeliest class of each row; for several labels per row, 0 or 1 for each."""
        return self._likeliest(self._rows(X))

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:  # noqa: N803  # see fit
        """The probabilities at each recorded snapshot of the training, from before the first step to after the last.

        Raises:
            ValueError: if the training was not recorded.
        """
        return map(self._probabilities, self._stages(X))

    def _probabilities(self, outputs: Floats) -> Floats:
        if self.out_activation_ == "softmax":
            of_classes: Floats = softmax(outputs, axis=1)
            return of_classes
        positive: Floats = expit(outputs)
        return positive if self._several else np.column_stack([1 - positive, positive])

    def _likeliest(self, rows: Floats) -> Any:
        probabilities = self._probabilities(self._outputs(rows))
        if self._several:
            return (probabilities > 0.5).astype(int)
        return self.classes_[probabilities.argmax(axis=1)]

    def _targets(self, y: Any, known: bool, classes: Any) -> Floats:
        check_classification_targets(y)
        several = type_of_target(y).startswith("multilabel")
        found = np.arange(y.shape[1]) if several else np.unique(y)
        if not known:
            self.classes_, self._several = found if classes is None else np.unique(classes), several
            if len(self.classes_) < 2 and not several:
                raise ValueError(f"there is one class only, {self.classes_.tolist()[0]!r}: there is nothing to learn")
            self.out_activation_ = "softmax" if len(self.classes_) > 2 and not several else "logistic"
        if several != self._several or not np.isin(found, self.classes_).all():
            raise ValueError(f"y has classes that the first call did not know: {found} beside {self.classes_}")
        targets: Floats = y if several else np.searchsorted(self.classes_, y)[:, None]
        return targets.astype(float)

    def _score(self, rows: Floats, targets: Floats) -> float:
        wanted = targets if self._several else self.classes_[targets[:, 0].astype(int)]
        return float(accuracy_score(wanted, self._likeliest(rows)))

    def _answer(self, outputs: list[Value]) -> Value:
        numbers = [output.data for output in outputs]
        position = numbers.index(max(numbers))
        for output, name in zip(outputs, self.classes_[-len(outputs) :], strict=True):
            output.label = f"score of {name}"
        if self.out_activation_ == "softmax":
            answer = functional.softmax(outputs)[position]
        elif self._several or numbers[0] > 0:
            answer = functional.sigmoid(outputs[position])
        else:
            answer = functional.sigmoid(-outputs[0])
        likeliest = position if len(outputs) > 1 else int(numbers[0] > 0)
        answer.label = f"probability of {self.classes_[0 if self._several and len(outputs) == 1 else likeliest]}"
        return answer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class MLPRegressor(RegressorMixin, _Network):  # type: ignore[misc]  # scikit-learn has no types
    """A regressor, with scikit-learn's interface.

    It minimises half the squared error, summed over the outputs, by stochastic gradient descent, compiled. Names and
    defaults are those of ``sklearn.neural_network.MLPRegressor``; from the same seed both learn the same, up to
    rounding. The arguments and the other attributes are those of MLPClassifier.

    Attributes:
        n_outputs_: how many numbers are predicted for each row.
        validation_scores_: R² on the validation rows after each epoch; None without early stopping.

    Example:
        >>> model = MLPRegressor((), solver="sgd", learning_rate_init=0.1, n_iter_no_change=math.inf, random_state=1)
        >>> model.fit([[-1.0], [0.0], [1.0]], [-1.0, 1.0, 3.0]).predict([[2.0]]).round(2)
        array([5.])
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:  # noqa: N803  # see fit
        """Train for one epoch, from where the last call ended.

        Args:
            X: the rows.
            y: the target of each.
            sample_weight: how much each row counts.

        Raises:
            ValueError: as fit does.
        """
        if self.early_stopping:
            raise ValueError("partial_fit goes through the rows once: it takes no early_stopping=True")
        self._learn(X, y, sample_weight, going_on=True)
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803  # see fit
        """The predictions: an array of shape (rows,), or (rows, outputs) for several outputs."""
        return self._numbers(self._outputs(self._rows(X)))

    def staged_predict(self, X: Any) -> Iterator[Floats]:  # noqa: N803  # see fit
        """The predictions at each recorded snapshot of the training, from before the first step to after the last.

        Raises:
            ValueError: if the training was not recorded.
        """
        return map(self._numbers, self._stages(X))

    def _numbers(self, outputs: Floats) -> Floats:
        return outputs if self._several else outputs[:, 0]

    def _targets(self, y: Any, known: bool, classes: Any) -> Floats:
        targets = y.reshape(len(y), -1).astype(float)
        if not known:
            self._several, self.out_activation_ = y.ndim == 2, "identity"
        elif targets.shape[1] != self.n_outputs_:
            raise ValueError(f"y has {targets.shape[1]} columns, and had {self.n_outputs_} at the first call")
        return targets

    def _score(self, rows: Floats, targets: Floats) -> float:
        return float(r2_score(targets, self._outputs(rows)))

    def _answer(self, outputs: list[Value]) -> Value:
        outputs[0].label = "prediction"
        return outputs[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class _Watch:
    """Says when to stop: where neither the loss nor the score of held back rows gets better."""

    def __init__(self, network: _Network) -> None:
        self._network = network
        self._held_back: tuple[Floats, Floats] | None = None
        self._best_loss, self._best_score = math.inf, -math.inf
        self._in_vain = 0
        self.best: Floats | None = None
        self.scores: list[float] = []
        self.stopped = False

    def hold_back(self, parts: list[Floats], chance: Any) -> list[Floats]:
        """Take rows away to score on; the others are returned."""
        network = self._network
        stratify = parts[1] if len(getattr(network, "classes_", ())) and parts[1].shape[1] == 1 else None
        split = train_test_split(*parts, random_state=chance, test_size=network.validation_fraction, stratify=stratify)
        self._held_back = split[1], split[3]
        if len(split[1]) < 2:
            raise ValueError("fewer than 2 rows are held back for early stopping: take a larger validation_fraction")
        return split[::2]

    def should_stop(self, losses: list[float], parameters: Callable[[], Floats]) -> bool:
        """Whether to stop after an epoch."""
        network = self._network
        if self._held_back is None:
            better = losses[-1] <= self._best_loss - network.tol
            self._best_loss = min(losses[-1], self._best_loss)
        else:
            numbers = parameters()
            network._set_parameters(numbers)
            score = network._score(*self._held_back)
            self.scores.append(score)
            better = score >= self._best_score + network.tol
            if score > self._best_score:
                self._best_score, self.best = score, numbers
        self._in_vain = 0 if better else self._in_vain + 1
        self.stopped = self._in_vain > network.n_iter_no_change
        return self.stopped


def _weights(sample_weight: Any, rows: Floats) -> Floats:
    weights: Floats = column_or_1d(check_array(sample_weight, ensure_2d=False, dtype=float))
    check_consistent_length(rows, weights)
    if not weights.min() >= 0 < weights.max():
        raise ValueError("Negative values in data passed to `sample_weight`, or nothing but zeros")
    return weights


def _count(sizes: Sequence[int]) -> int:
    """The parameters of a network of these sizes."""
    return sum((inputs + 1) * neurons for inputs, neurons in itertools.pairwise(sizes))


def _replaced(columns: Any, values: Mapping[str, Value]) -> Any:
    """Nested names of columns, each replaced by its Value, or by None where there is none."""
    if isinstance(columns, (list, tuple)):
        return [_replaced(column, values) for column in columns]
    return values.get(columns)


def _not_shown(count: int) -> str:
    return f" ({count:,} inputs that weigh less are not shown)" if count else ""


def _flat(coefs: Sequence[Floats], intercepts: Sequence[Floats]) -> Floats:
    """The parameters neuron by neuron, its weights and its bias, as a network of Values has them."""
    layers = zip(coefs, intercepts, strict=True)
    return np.concatenate([np.column_stack([coef.T, intercept]).ravel() for coef, intercept in layers])
