"""Optimisers: from gradients to the next parameters, and learning rates that change with the step.

An update is a formula on scalars: from a parameter, its gradient and the optimiser's state for it, to the next
parameter and the next state. It uses only operators and functions of ``functional``, so it works on floats and on
anything with these operators:

    SGD(...).update(parameter=1.0, gradient=0.5, state=(), rate=0.1)   # (0.95, ())
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from micrograd._support.checks import check_type, is_array, required_count, required_number, required_sequence
from micrograd._support.saved_state import SavedState, check_state
from micrograd.engine import primitives
from micrograd.engine.commit import changing_gradients, commit, setting
from micrograd.engine.storage import Stored, set_gradients_to_zero
from micrograd.engine.stored import changing
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Self

    Schedule: TypeAlias = Callable[[int], float]
    State: TypeAlias = tuple[Any, ...]
    Parameters: TypeAlias = "Iterable[Value] | _HasParameters | Sequence[Mapping[str, Any]]"

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "constant", "cosine", "linear", "warmup"]


def __dir__() -> list[str]:
    return __all__


class _HasParameters(Protocol):
    """A Module, or another object whose method ``parameters`` gives a list of Values."""

    def parameters(self) -> Iterable[Value]:
        """The leaves to train."""
        raise NotImplementedError


# From how many parameters on a step updates them as arrays. One by one, Adam takes 1.5 us for each; as arrays, 15 us
# for all, if there are few.
FEWEST_AT_ONCE = 16


class _Columns(NamedTuple):
    """What an update of arrays keeps: a column for each number, or one number for all, in the order of a Stored."""

    order: Any
    columns: tuple[Any, ...]
    parameters: int  # how many there are


class Optimizer(SavedState):
    """The base class of optimisers: the parameters, the learning rate, and the step.

    Args:
        parameters: the leaves to train: a list of Values and arrays of Values, an array of them, or a Module. Those
            with requires_grad=False do not change. Or a list of groups: dicts with such ``parameters`` and with
            ``weight_decay``, ``learning_rate`` or ``scale``. The learning rate of a group is its scale times that of
            the optimiser, even if that changes.
        learning_rate: a number, or a function from the step's number (from 0) to a number.

    Attributes:
        steps: how many steps have been made.
        rate: the learning rate of the last step, None before the first.
        learning_rate: the learning rate of the next step; set it to a number or to a function of the step's number.

    Raises:
        ValueError: if there is no parameter, if one is given twice or is not a leaf, or if the
            learning rate is negative or not finite.
        TypeError: if parameters are neither a list nor a Module, or one of them is not a Value.
    """

    states = 0  # how many numbers the update keeps for each parameter
    state_names: tuple[str, ...] = ()  # what pages call these numbers

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule) -> None:
        groups = parameters if isinstance(parameters, (list, tuple)) and _are_groups(parameters) else None
        self._parameters = _list_of(parameters) if groups is None else _parameters_of(groups)
        self._is_known = True  # whether nobody else can have changed the list: then no step compares it
        if not self._parameters:
            raise ValueError("there are no parameters to optimise")
        for parameter in self._parameters:
            check_type(isinstance(parameter, Value), "a parameter must be a Value", parameter)
            if not parameter.is_leaf:
                raise ValueError(f"a parameter must be a leaf, and {parameter!r} is the result of {parameter._op!r}")
        if len(set(self._parameters)) != len(self._parameters):
            raise ValueError("a parameter is given twice; it would be updated twice a step")
        self._schedule = _schedule(learning_rate)
        self._grouped = groups is not None
        self.steps = 0
        self.rate: float | None = None
        # What the update keeps: a tuple for each parameter; or after an update of arrays a column for each number.
        self._kept: list[State] | _Columns = [(0.0,) * self.states] * len(self._parameters)
        if groups is not None:
            self._kept = self._kept_of(groups)
        self._stored: Stored | None = None
        self._native: Any = None  # the settings for which there is native code, and this

    def _kept_of(self, groups: Sequence[Mapping[str, Any]]) -> list[State]:
        """What the update keeps before the first step: the settings of groups come last, and stay what they are."""
        if _ON_ARRAYS.get(type(self).update) is None:
            raise TypeError(f"{type(self).__name__} defines its own update: groups are for the optimisers of mg.optim")
        zeros = (0.0,) * self.states
        self.states, self.state_names = self.states + 2, (*self.state_names, "scale", "weight_decay")
        kept = []
        for number, group in enumerate(groups):
            settings = _scale(group, self._schedule, number), _decay(group, vars(self)["weight_decay"], number)
            kept += [(*zeros, *settings)] * len(_list_of(group["parameters"]))
        return kept

    def _settings(self, state: State, rate: Any) -> tuple[State, Any, Any, State]:
        """The state without the settings of a group, the rate and weight decay there, and these settings again."""
        if not self._grouped:
            return state, rate, vars(self)["weight_decay"], ()
        *others, scale, decay = state
        return tuple(others), rate * scale, decay, (scale, decay)

    def __new__(cls, *_: Any, **settings: Any) -> Self:
        """A new optimiser; a TypeError for ``lr``, which is what other libraries call the learning rate."""
        if "lr" in settings and cls.__module__ == __name__:
            raise TypeError(f"{cls.__name__} takes learning_rate, not lr")
        return super().__new__(cls)

    @property
    def parameters(self) -> list[Value]:
        """The leaves to train."""
        self._is_known = False
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: list[Value]) -> None:
        self._parameters, self._is_known = parameters, False

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self.next_rate()

    @learning_rate.setter
    def learning_rate(self, learning_rate: float | Schedule) -> None:
        self._schedule = _schedule(learning_rate)

    @property
    def lr(self) -> Any:
        """Other libraries' name of the learning rate: an AttributeError, unless a custom optimiser has set it."""
        if "lr" in vars(self):
            return vars(self)["lr"]
        raise AttributeError(f"{type(self).__name__} has no lr: its learning rate is learning_rate")

    @lr.setter
    def lr(self, lr: Any) -> None:
        if type(self).__module__ == __name__:
            raise AttributeError(f"{type(self).__name__} has no lr: set learning_rate")
        vars(self)["lr"] = lr

    def update(self, parameter: Any, gradient: Any, state: State, rate: Any) -> tuple[Any, State]:
        """The next parameter and its next state; subclasses define it.

        Args:
            parameter: its number now.
            gradient: the gradient of the loss with respect to it.
            state: what the last update returned for it; zeros at first.
            rate: the learning rate.
        """
        raise TypeError(f"{type(self).__name__} does not say how to update a parameter")

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to 0."""
        if (stored := self._parameters_stored()) is None:
            set_gradients_to_zero(self._parameters)
        else:
            stored.set_gradients_to_zero()

    def step(self) -> None:
        """Update every parameter from its gradient: all of them or, after an error, none.

        Raises:
            ArithmeticError: if an update overflows or is not finite, naming the parameter.
        """
        rate = self.next_rate()
        if not self._step_at_once(rate):
            kept = self._state
            updates = [self._next(index, kept[index], rate) for index in range(len(self._parameters))]
            with changing(self._parameters):
                numbers = setting(self._parameters, "_data", [number for number, _ in updates])
                self._commit(numbers, [state for _, state in updates], rate)

    def _commit(self, numbers: Iterable[None], kept: list[State] | _Columns, rate: float) -> None:
        """Carry out a step: the plan for its numbers, and what the update keeps."""
        me, steps = [self], [self.steps + 1]
        commit(chain(numbers, setting(me, "_kept", [kept]), setting(me, "steps", steps), setting(me, "rate", [rate])))

    def _step_at_once(self, rate: float) -> bool:
        """Update all parameters as arrays, to the same numbers bit for bit; whether that can be done."""
        np = sys.modules.get("numpy")
        known = _ON_ARRAYS.get(getattr(self.update, "__func__", None))  # a user may set another one
        if np is None or known is None or len(self._parameters) < FEWEST_AT_ONCE:
            return False
        with changing_gradients:
            stored = self._parameters_stored() or Stored(list(self._parameters), any_order=True)
            gradients = stored.grad()
            columns = self._columns(known.equal, stored.order)
            if columns is None or gradients is None or not stored.all_require_grad():
                return False
            updated = self._updated(stored.data(), gradients, columns, rate, known.settings(self))
            if updated is None:
                return False  # one by one, which says where
            numbers, columns = updated
            self._stored = stored
            self._commit(stored.replacing(data=numbers), _Columns(stored.order, columns, len(self._parameters)), rate)
            return True

    def kept_columns(self, order: Any = None) -> tuple[Any, ...] | None:
        """What the update keeps, as arrays and numbers, if it is kept so in an order of a Stored, or in their own."""
        kept = self._kept
        if isinstance(kept, _Columns) and kept.order is order and kept.parameters == len(self._parameters):
            return kept.columns
        return None

    def in_columns(self, columns: Sequence[Any]) -> _Columns | None:
        """What is to be kept where these are the columns in the order of the parameters; None where it must be a list.

        Args:
            columns: an array for each number of the state: an element for each parameter, or one for all.
        """
        import numpy as np

        known, count = _ON_ARRAYS.get(getattr(self.update, "__func__", None)), len(self._parameters)
        if known is None or count < FEWEST_AT_ONCE or any(len(columns[number]) > 1 for number in known.equal):
            return None
        kept = [
            float(column[0]) if number in known.equal else np.broadcast_to(column, count).copy()
            for number, column in enumerate(columns)
        ]
        return _Columns(None, tuple(kept), count)

    def _updated(
        self, data: Any, grad: Any, columns: tuple[Any, ...], rate: float, settings: tuple[Any, ...]
    ) -> tuple[Any, State] | None:
        """The next numbers and the next columns, in new arrays; None where one of them is not finite."""
        import numpy as np

        if native.update is not None:
            if self._native is None or self._native[0] != settings:
                self._native = settings, native.update(self.update, [isinstance(column, float) for column in columns])
            return self._native[1](data, grad, columns, rate)
        with np.errstate(all="ignore"):
            numbers, columns = self.update(data, grad, columns, rate)
        return (numbers, columns) if all(np.isfinite(column).all() for column in (numbers, *columns)) else None

    def _parameters_stored(self) -> Stored | None:
        """Where the parameters are stored, if they are: they may have been replaced in the list."""
        stored = self._stored
        return stored if stored is None or self._is_known or stored.leaves == list(self._parameters) else None

    def _columns(self, equal: tuple[int, ...], order: Any) -> tuple[Any, ...] | None:
        """What the update keeps, a column for each number; None where the numbers of an equal column differ.

        None as well where there are more parameters than the optimiser was made for.
        """
        import numpy as np

        if (kept := self.kept_columns(order)) is not None:
            return kept
        count = len(self._parameters)
        state = self._state[:count]
        if len(state) < count:
            return None
        columns: list[Any] = [np.array(column) for column in zip(*state, strict=True)]
        if order is not None:
            positions = np.argsort(order)
            columns = [column[positions] for column in columns]
        for number in equal:
            first = columns[number][0]
            if (columns[number] != first).any():
                return None
            columns[number] = float(first)
        return tuple(columns)

    @property
    def _state(self) -> list[State]:
        """What the update keeps: a tuple for each parameter."""
        if isinstance(self._kept, list):
            return self._kept
        order, columns, count = self._kept
        lists = [
            [column] * count if isinstance(column, float) else (column if order is None else column[order]).tolist()
            for column in columns
        ]
        return list(zip(*lists, strict=True)) if lists else [()] * count

    def next_rate(self, step: int | None = None) -> float:
        """The learning rate of the next step, or of the step with this number.

        Raises:
            ValueError: if it is negative or not finite.
        """
        step = self.steps if step is None else step
        return _in_range(self._schedule(step), f"the learning rate of step {step}", 0, math.inf)

    def has_constant_rate(self) -> bool:
        """Whether the learning rate is one number, and not a function of the step."""
        return _number_of(self._schedule) is not None and type(self).next_rate is Optimizer.next_rate

    def state_dict(self) -> dict[str, float]:
        """All that continues this training, as numbers by name: ``steps``, and the state of each parameter.

        A learning rate that is a number is included. A schedule is a function: pass it to the next optimiser again.

        Example:
            >>> SGD([Value(1.0)], learning_rate=0.1, momentum=0.9).state_dict()
            {'steps': 0.0, 'learning_rate': 0.1, 'parameters.0.velocity': 0.0}
        """
        state = {"steps": float(self.steps)}
        if (rate := _number_of(self._schedule)) is not None:
            state["learning_rate"] = rate
        return state | dict(zip(self._names(), chain.from_iterable(self._state), strict=True))

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Continue from the ``state_dict`` of an optimiser: from all of it, or not at all if anything is wrong.

        The parameters keep their numbers, which a Module saves. Training continues exactly as without the
        interruption.

        Raises:
            ValueError: if a name is missing or unknown, a number is not finite, or steps is no whole number.
            TypeError: if something is not a number.
        """
        held = isinstance(state, Mapping) and "learning_rate" in state
        if held and _number_of(self._schedule) is None:
            raise ValueError(f"the state has a number as learning_rate, and this {type(self).__name__} a schedule")
        numbers = check_state(state, ["steps", *["learning_rate"] * held, *self._names()])
        steps = numbers.pop("steps")
        if steps != int(steps) or steps < 0:
            raise ValueError(f"steps must be a whole number, not {steps}")
        schedule = constant(numbers.pop("learning_rate")) if held else self._schedule
        kept = list(numbers.values())
        states = [tuple(kept[start : start + self.states]) for start in range(0, len(kept), self.states or 1)]

        commit(
            chain(
                setting([self], "_kept", [states or self._state]),
                setting([self], "_schedule", [schedule]),
                setting([self], "steps", [int(steps)]),
            )
        )

    def _names(self) -> list[str]:
        """The names of what the update keeps: those of the first parameter, then those of the second, and so on."""
        kinds = self.state_names if len(self.state_names) == self.states else range(self.states)
        return [f"parameters.{index}.{kind}" for index in range(len(self._parameters)) for kind in kinds]

    def _next(self, index: int, state: State, rate: float) -> tuple[float, State]:
        """The next number and state of a parameter, all of them finite."""
        parameter = self._parameters[index]
        if not parameter.requires_grad:
            return parameter.data, state
        gradient = float(parameter.grad)
        try:
            number, state = self.update(parameter.data, gradient, state, rate)
        except ArithmeticError as error:
            raise type(error)(f"step {self.steps}: the update of parameter {index}, {parameter!r}: {error}") from error
        for result in (number, *state):
            if not math.isfinite(result):
                raise ArithmeticError(f"step {self.steps} would set parameter {index}, {parameter!r}, to {result}")
        return required_number(number, f"the next number of parameter {index}"), state

    def __getstate__(self) -> dict[str, Any]:
        self._is_known = False  # a copy has the same list
        return {**vars(self), "_kept": self._state, "_stored": None, "_native": None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._parameters)} parameters, {self.steps} steps)"


class SGD(Optimizer):
    """Stochastic gradient descent.

    Args:
        parameters: the leaves to train, or a Module that has them.
        learning_rate: a number, or a function of the step.
        momentum: how much of the last velocity to keep; 0 for none.
        nesterov: look ahead along the velocity (Sutskever et al. 2013); needs momentum.
        weight_decay: adds weight_decay * parameter to the gradient.

    Raises:
        ValueError: for numbers out of range; see Optimizer for the rest.

    Example:
        >>> x = Value(1.0)
        >>> optimizer = SGD([x], learning_rate=0.25)
        >>> (x * x).backward()
        >>> optimizer.step()
        >>> x.data
        0.5

        Two groups, of which the second has a tenth of the learning rate and a weight decay:

        >>> first, second = Value(1.0), Value(2.0)
        >>> groups = [{"parameters": [first]}, {"parameters": [second], "learning_rate": 0.01, "weight_decay": 0.1}]
        >>> optimizer = SGD(groups, learning_rate=0.1)
    """

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float | Schedule = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        weight_decay: float = 0.0,
    ) -> None:
        self.momentum = _in_range(momentum, "momentum", 0, 1)
        self.weight_decay = _in_range(weight_decay, "weight_decay", 0, math.inf)
        self.nesterov = nesterov
        if nesterov and not momentum:
            raise ValueError("nesterov looks ahead along the velocity: give a momentum above 0")
        self.states = int(bool(momentum))
        self.state_names = ("velocity",) * self.states
        super().__init__(parameters, learning_rate)

    def update(self, parameter: Any, gradient: Any, state: State, rate: Any) -> tuple[Any, State]:
        """Move along a velocity: momentum times the last one, plus the gradient."""
        state, rate, decay, of_group = self._settings(state, rate)
        if of_group or decay:
            gradient = gradient + decay * parameter
        if not self.momentum:
            return parameter - rate * gradient, of_group
        (velocity,) = state
        velocity = self.momentum * velocity + gradient
        direction = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameter - rate * direction, (velocity, *of_group)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015): steps scaled by running means of the gradient and of its square.

    Args:
        parameters: the leaves to train, or a Module that has them.
        learning_rate: a number, or a function of the step.
        betas: how much of the two running means to keep each step.
        epsilon: added to the root of the mean square, to avoid a division by 0.
        weight_decay: adds weight_decay * parameter to the gradient; prefer AdamW for that.

    Raises:
        ValueError: for numbers out of range; see Optimizer for the rest.

    Example:
        >>> x = Value(1.0)
        >>> optimizer = Adam([x], learning_rate=0.1)
        >>> (x * x).backward()
        >>> optimizer.step()
        >>> round(x.data, 6)
        0.9
    """

    states = 3  # the two running means, and how many gradients are in them
    state_names = ("m", "v", "t")

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float | Schedule = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        self.beta1, self.beta2 = _pair(betas)
        self.epsilon = _in_range(epsilon, "epsilon", 0, math.inf)
        self.weight_decay = _in_range(weight_decay, "weight_decay", 0, math.inf)
        super().__init__(parameters, learning_rate)

    def update(self, parameter: Any, gradient: Any, state: State, rate: Any) -> tuple[Any, State]:
        """Adam's step along the gradient plus weight_decay * parameter."""
        state, rate, decay, of_group = self._settings(state, rate)
        if of_group or decay:
            gradient = gradient + decay * parameter
        return self._adapted(parameter, gradient, state, rate, of_group)

    def _adapted(self, parameter: Any, gradient: Any, state: State, rate: Any, of_group: State) -> tuple[Any, State]:
        mean = self.beta1 * state[0] + (1 - self.beta1) * gradient
        square = self.beta2 * state[1] + (1 - self.beta2) * (gradient * gradient)
        # Both means start at 0. These make up for it; they are the same for all parameters.
        count = state[2] + 1
        rate = rate / (1 - self.beta1**count)
        scale = 1 / _root(1 - self.beta2**count)
        stepped = parameter - rate * mean / (scale * _root(square) + self.epsilon)
        return stepped, (mean, square, count, *of_group)


class AdamW(Adam):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019).

    Args:
        parameters: the leaves to train, or a Module that has them.
        learning_rate: a number, or a function of the step.
        betas: how much of the two running means to keep each step.
        epsilon: added to the root of the mean square, to avoid a division by 0.
        weight_decay: each step subtracts rate * weight_decay of the parameter.

    Example:
        >>> x = Value(1.0)
        >>> optimizer = AdamW([x], learning_rate=0.1, weight_decay=0.5)
        >>> optimizer.step()  # no gradient yet: only the decay
        >>> x.data
        0.95
    """

    def __init__(
        self,
        parameters: Parameters,
        learning_rate: float | Schedule = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(parameters, learning_rate, betas, epsilon, weight_decay)

    def update(self, parameter: Any, gradient: Any, state: State, rate: Any) -> tuple[Any, State]:
        """Adam's step along the gradient alone, from the decayed parameter."""
        state, rate, decay, of_group = self._settings(state, rate)
        return self._adapted(parameter - rate * decay * parameter, gradient, state, rate, of_group)


class _OnArrays(NamedTuple):
    """What is known of an update that takes arrays, too.

    Attributes:
        settings: gives the attributes of an optimiser that it reads.
        equal: the columns of its state that must then be one number: NumPy may round a power of an array otherwise than
            Python does.
    """

    settings: Callable[[Any], tuple[Any, ...]]
    equal: tuple[int, ...]


_OF_ADAM = _OnArrays(attrgetter("update.__func__", "beta1", "beta2", "epsilon", "weight_decay"), (2,))
_ON_ARRAYS: dict[Any, _OnArrays] = {
    SGD.update: _OnArrays(attrgetter("momentum", "nesterov", "weight_decay"), ()),
    Adam.update: _OF_ADAM,
    AdamW.update: _OF_ADAM,
}


def _root(x: Any) -> Any:
    if not is_array(x):
        return primitives.sqrt(x)
    import numpy as np

    return np.sqrt(x)


class _Native:
    """What makes native code of an update of arrays, once a program has been compiled to some: the compiler sets it."""

    update: Callable[[Any, list[bool]], Callable[..., tuple[Any, State] | None]] | None = None


native = _Native()


def constant(rate: float) -> Schedule:
    """The same learning rate at every step.

    Example:
        >>> constant(0.1)(7)
        0.1
    """
    return partial(_constant, _in_range(rate, "the learning rate", 0, math.inf))


def linear(start: float, end: float, steps: int) -> Schedule:
    """A learning rate that goes linearly from start to end over steps, and stays there.

    Example:
        >>> [linear(1.0, 0.0, 4)(step) for step in (0, 1, 4, 9)]
        [1.0, 0.75, 0.0, 0.0]
    """
    return partial(_linear, *_ends(start, end, steps))


def cosine(start: float, end: float, steps: int) -> Schedule:
    """A learning rate that goes from start to end along half a cosine over steps, and stays there.

    Example:
        >>> [round(cosine(1.0, 0.0, 4)(step), 3) for step in (0, 1, 2, 4, 9)]
        [1.0, 0.854, 0.5, 0.0, 0.0]
    """
    return partial(_cosine, *_ends(start, end, steps))


def warmup(schedule: float | Schedule, steps: int) -> Schedule:
    """A learning rate that rises linearly over steps before the schedule begins.

    Example:
        >>> [warmup(1.0, 4)(step) for step in (0, 1, 3, 4)]
        [0.25, 0.5, 1.0, 1.0]
    """
    return partial(_warmup, _schedule(schedule), required_count(steps, "steps"))


# The schedules are partial functions, not closures, so that an optimiser can be pickled.


def _constant(rate: float, step: int) -> float:
    return rate


def _linear(start: float, end: float, steps: int, step: int) -> float:
    done = min(_step(step) / steps, 1.0)
    return (1 - done) * start + done * end


def _cosine(start: float, end: float, steps: int, step: int) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(_step(step) / steps, 1.0))) / 2


def _warmup(after: Schedule, steps: int, step: int) -> float:
    return after(0) * (step + 1) / steps if _step(step) < steps else after(step - steps)


def _schedule(learning_rate: float | Schedule) -> Schedule:
    return learning_rate if callable(learning_rate) else constant(learning_rate)


def _number_of(schedule: Schedule) -> float | None:
    """The learning rate if it is one number, None if it changes with the step."""
    return schedule.args[0] if isinstance(schedule, partial) and schedule.func is _constant else None


def _list_of(parameters: Any) -> list[Value]:
    """The parameters as a list; of a Module, its own."""
    what = "parameters must be a list of Values or a Module"
    if isinstance(parameters, type):
        raise TypeError(f"{what}, not the class {parameters.__name__}: make one")
    find = getattr(parameters, "parameters", None)
    given = find() if callable(find) else parameters
    items = [given] if is_array(given) else required_sequence(given, what)
    if not any(map(is_array, items)):
        return items
    return [value for item in items for value in (item.ravel().tolist() if is_array(item) else [item])]


_OF_GROUPS = ("parameters", "learning_rate", "scale", "weight_decay")


def _are_groups(parameters: Sequence[Any]) -> bool:
    """Whether parameters are given in groups; a TypeError where only some are."""
    are = [isinstance(item, Mapping) for item in parameters]
    if any(are) and not all(are):
        raise TypeError("parameters must all be in groups, or none: write {'parameters': [...]} around the others")
    return any(are)


def _parameters_of(groups: Sequence[Mapping[str, Any]]) -> list[Value]:
    """The parameters of all groups, one group after the other."""
    found: list[Value] = []
    for number, group in enumerate(groups):
        for name in group:
            if name not in _OF_GROUPS:
                known = {"params": "parameters", "lr": "learning_rate"}.get(name)
                instead = f"; write {known}" if known else ", only " + ", ".join(_OF_GROUPS)
                raise ValueError(f"group {number} may not have {name!r}{instead}")
        if "parameters" not in group:
            raise ValueError(f"group {number} has no parameters")
        found += _list_of(group["parameters"])
    return found


def _scale(group: Mapping[str, Any], schedule: Schedule, number: int) -> float:
    """By which number the learning rate of the optimiser is multiplied for a group."""
    if "learning_rate" not in group:
        return _in_range(group.get("scale", 1.0), f"the scale of group {number}", 0, math.inf)
    if "scale" in group:
        raise ValueError(f"group {number} has a learning_rate and a scale: leave one of them out")
    rate = _in_range(group["learning_rate"], f"the learning_rate of group {number}", 0, math.inf)
    if not (usual := _number_of(schedule)):
        what = "0" if usual == 0 else "a schedule"
        raise ValueError(
            f"the learning_rate of the optimiser is {what}: write scale in group {number}, by which it is multiplied"
        )
    return rate / usual


def _decay(group: Mapping[str, Any], usual: float, number: int) -> float:
    return _in_range(group.get("weight_decay", usual), f"the weight_decay of group {number}", 0, math.inf)


def _ends(start: float, end: float, steps: int) -> tuple[float, float, int]:
    steps = required_count(steps, "steps")
    return _in_range(start, "start", 0, math.inf), _in_range(end, "end", 0, math.inf), steps


def _pair(betas: Any) -> list[float]:
    numbers = required_sequence(betas, "betas must be two numbers")
    if len(numbers) != 2:
        raise ValueError(f"betas must be two numbers, not {len(numbers)}: {betas!r:.80}")
    return [_in_range(beta, "each of the betas", 0, 1) for beta in numbers]


def _step(step: Any) -> float:
    return required_number(step, "the step of a learning rate")


def _in_range(value: Any, name: str, low: float, high: float) -> float:
    """A number of [low, high)."""
    number = required_number(value, name)
    if not low <= number < high:
        raise ValueError(f"{name} must be at least {low} and below {high}, not {value}")
    return number
