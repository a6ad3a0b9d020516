"""Neurons, layers and networks, with micrograd's names, reprs and weights.

A model is a Module: an object whose attributes hold Values, other Modules, and lists, tuples or dicts
of them. Its parameters, their names, and what is saved to a file are all found by walking these
attributes in the order in which they were assigned:

    MLP(2, [3, 1]) -> layers.0.neurons.0.w.0, layers.0.neurons.0.w.1, layers.0.neurons.0.b, ...
"""

from __future__ import annotations

import math
import random
from functools import cache
from inspect import Parameter, signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from micrograd import functional
from micrograd._support.axes import array_of_objects
from micrograd._support.checks import check_numbers, is_array, required_count, required_number, required_sequence
from micrograd._support.containers import flatten
from micrograd._support.saved_state import Parameterised, check_state
from micrograd.contexts import calls
from micrograd.contexts.modes import is_evaluating, mask
from micrograd.engine.commit import commit, setting
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.storage import set_gradients_to_zero
from micrograd.engine.stored import changing
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from numpy import ndarray
    from typing_extensions import Self, TypeVar, Unpack

    Answer = TypeVar("Answer", default=Any)  # for one point: a Value, or a list of Values
    Outputs = TypeVar("Outputs", default=list[Value])
    Same = TypeVar("Same")
    Point: TypeAlias = "Sequence[Value | float] | ndarray[tuple[int], Any]"
    Image: TypeAlias = Sequence[Sequence[Sequence["Value | float"]]]
    Channels: TypeAlias = list[list[list[Value]]]
else:
    from typing import TypeVar

    Answer = Outputs = TypeVar("Answer")  # which has no default before Python 3.13

__all__ = ["MLP", "Convolution2d", "Dropout", "Embedding", "Layer", "LayerNorm", "Module", "Neuron", "Sequential"]


def __dir__() -> list[str]:
    return __all__


_primitive_of = attrgetter("_primitive")

# Activations by name, each with the first part of the repr of a neuron that has it.
ACTIVATIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "relu": ("ReLU", functional.relu),
    "leaky_relu": ("LeakyReLU", functional.leaky_relu),
    "elu": ("ELU", functional.elu),
    "silu": ("SiLU", functional.silu),
    "gelu": ("GELU", functional.gelu),
    "tanh": ("Tanh", functional.tanh),
    "sigmoid": ("Sigmoid", functional.sigmoid),
    "softplus": ("Softplus", functional.softplus),
}

# How far initial weights spread: the standard deviation, from the numbers of inputs and outputs.
# None is micrograd's own choice, uniform in [-1, 1] whatever the size.
INITIAL_WEIGHTS: dict[str, Callable[[int, int], float] | None] = {
    "uniform": None,
    "he": lambda inputs, outputs: (2 / inputs) ** 0.5,  # He et al. 2015, for relu and its kin
    "glorot": lambda inputs, outputs: (2 / (inputs + outputs)) ** 0.5,  # Glorot and Bengio 2010, for tanh
}


MOST_SHOWN = 8  # neurons in the repr of a layer


class Module(Parameterised):
    """Something with parameters: subclass it, and assign Values and other Modules to attributes.

    A subclass defines ``forward``, or ``__call__``.

    Attributes:
        training: whether it is in training mode, as at first. ``mg.fit`` computes validation losses in evaluation mode.

    Example:
        >>> class Line(Module):
        ...     def __init__(self):
        ...         self.slope, self.intercept = Value(1.0), Value(0.0)
        ...     def forward(self, x):
        ...         return self.slope * x + self.intercept
        >>> line = Line()
        >>> [name for name, parameter in line.named_parameters()]
        ['slope', 'intercept']
        >>> line(3.0)
        Value(data=3.0, grad=0.0)
    """

    def __init_subclass__(cls, observed: bool = True, **options: Any) -> None:
        """Let what a module returns remember the call, which pages show as a group."""
        super().__init_subclass__(**options)
        for name in ("__call__", "forward"):
            if observed and name in vars(cls):
                setattr(cls, name, calls.observed_method(vars(cls)[name]))
        if cls.__call__ is Module.__call__ or hasattr(cls.__call__, "calls_forward"):
            cls.__call__ = _call_of(cls.forward)  # type: ignore[method-assign]  # it calls forward, as Module's does

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What ``forward`` gives."""
        if type(self).forward is Module.forward:
            raise TypeError(
                f"{type(self).__name__} cannot be called: define forward(self, ...) or __call__ in the class"
            )
        return self.forward(*arguments, **named)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """The same as calling the module."""
        return self(*arguments, **named)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return self._training and not is_evaluating()

    @training.setter
    def training(self, training: bool) -> None:
        self._training = training

    _training = True

    def train(self, mode: bool = True) -> Self:
        """Put this module and all modules in it into training mode, where dropout drops; returns the module.

        Args:
            mode: False for evaluation mode.
        """
        if not isinstance(mode, bool):
            raise TypeError(f"mode must be True or False, not {mode!r:.80}")
        modules = _modules_in(self)
        commit(setting(modules, "_training", [mode] * len(modules)))
        return self

    def eval(self) -> Self:
        """Put this module and all modules in it into evaluation mode, where dropout does nothing; returns it.

        Example:
            >>> model = Sequential(Layer(2, 3), Dropout(0.5))
            >>> model.eval().training, model.train().training
            (False, True)
        """
        return self.train(False)

    def parameters(self) -> list[Value]:
        """The Values that training changes, each once: leaves that require a gradient, frozen ones too."""
        if type(self).named_parameters is not Module.named_parameters:  # a custom module chooses
            return [parameter for _, parameter in self.named_parameters()]
        return _leaves_in(self)

    def named_parameters(self) -> Iterator[tuple[str, Value]]:
        """The parameters with their names: the path of attributes, keys and indices to each."""
        names: set[str] = set()
        for name, parameter in _named_values("", vars(self), {}):
            if name in names:
                raise ValueError(f"two parameters are named {name!r}: rename a key or an attribute")
            names.add(name)
            yield name, parameter

    def zero_grad(self) -> None:
        """Set the gradient of every parameter to 0."""
        set_gradients_to_zero(self.parameters())

    def state_dict(self) -> dict[str, float]:
        """The parameters' numbers by name."""
        return {name: parameter.data for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Set the parameters from numbers by name: all of them, or none if anything is wrong.

        Raises:
            ValueError: if a name is missing or unknown, or a number is not finite.
            TypeError: if something is not a number.
        """
        parameters = dict(self.named_parameters())
        numbers = check_state(state, parameters)

        with changing(parameters.values()):
            commit(setting(parameters.values(), "_data", [numbers[name] for name in parameters]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_counted(self)})"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the parameters, group by group."""
        from micrograd.draw.notebook import parameter_table  # here, so that it is loaded only when a table is shown

        return parameter_table(type(self).__name__, ((name, p.data) for name, p in self.named_parameters()))


def _call_of(forward: Any) -> Any:
    """The ``__call__`` of a module with this ``forward``: without packing and unpacking one argument or two."""

    def of_one(self: Any, x: Any) -> Any:
        return self.forward(x)

    def of_two(self: Any, x: Any, y: Any) -> Any:
        return self.forward(x, y)

    if (made := calls.with_parameters_of(forward, of_one, of_two)) is None:
        return Module.__call__
    made.calls_forward = True
    return made


def _has_length(x: Any) -> bool:
    try:
        len(x)
    except TypeError:
        return False
    return True


def _is_batch(x: Any) -> bool:
    """Whether inputs are several points: an array of two dimensions or more, or a list of lists or arrays."""
    if type(x) is list or type(x) is tuple:
        return len(x) > 0 and (type(x[0]) in (list, tuple) or getattr(x[0], "ndim", 0) > 0)
    return getattr(x, "ndim", 1) > 1


def _answers(module: Callable[[Any], Any], points: Any) -> Any:
    """What a module gives for each point: a list, or an array where the points are one."""
    if type(points) is list or type(points) is tuple:
        return [module(point) for point in points]
    rows = points.to_numpy() if hasattr(points, "to_numpy") else points  # a table of pandas has columns
    return Value._array(array_of_objects([module(row) for row in rows]))


class Neuron(Module, observed=False):  # what a neuron gives says so itself, and layers are found from it
    """A weighted sum of its inputs plus a bias, then an activation.

    Args:
        nin: the number of inputs.
        nonlin: False for a linear neuron, without an activation.
        activation: a name ("relu", "tanh", "sigmoid", "gelu", ...) or a function of one Value.
        initial: how the weights are drawn from Python's ``random``, so that ``random.seed`` fixes
            them: "uniform" in [-1, 1] as in micrograd, "he" or "glorot" normal with a standard deviation
            for this size; or the standard deviation itself. The bias starts at 0.

    Raises:
        ValueError: for an unknown activation or initial, or nin below 1.

    Example:
        >>> Neuron(2)
        ReLUNeuron(2)
        >>> Neuron(3, activation="tanh")
        TanhNeuron(3)
    """

    nonlin = True  # for most neurons from here: a compiled network looks at each attribute of theirs at each call
    _place: int | None = None  # in its layer, for the names of its weights in pictures

    def __init__(
        self,
        nin: int,
        nonlin: bool = True,
        activation: str | Callable[[Any], Any] = "relu",
        initial: str | float = "uniform",
    ) -> None:
        self.w = _initial_weights(required_count(nin, "nin"), initial, 1)
        self.b = Value(0.0)
        if not nonlin:
            self.nonlin = False
        self._activation = _activation(activation)

    @overload
    def __call__(self, x: ndarray[tuple[int, int], Any]) -> ndarray[tuple[int], Any]: ...

    @overload
    def __call__(self, x: Point) -> Value: ...

    @overload
    def __call__(self, x: Sequence[Point]) -> list[Value]: ...

    @overload
    def __call__(self, x: Any) -> Any: ...

    def __call__(self, x: Any) -> Any:
        """The neuron's output for nin numbers or Values; for a batch of points, one along the first axis, of each.

        Raises:
            ValueError: for another number of them.
            TypeError: for something else than a list of numbers and Values.
        """
        if _is_batch(x):
            return _answers(self, x)
        try:
            if len(x) != len(self.w):
                if isinstance(x, str):
                    raise TypeError
                raise ValueError(f"{self!r} takes {len(self.w)} inputs, not {len(x)}")
            total = functional.sum_of_products(self.w, x, self.b)
            if total is None:
                total = sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b)
        except TypeError as error:  # to check each input beforehand would slow down every call
            raise self._explained(error, x) from None
        output = self._activation(total) if self.nonlin else total
        calls.neuron_called(output, self, x)  # explore shows what lies between the inputs and the output as a group
        return output

    def _explained(self, error: TypeError, x: Any) -> TypeError:
        """An error that says what is wrong with the inputs, where they are no list of numbers and Values."""
        if isinstance(x, str) or not _has_length(x):
            inputs = "1 input, a number or Value" if len(self.w) == 1 else f"{len(self.w)} inputs, numbers or Values"
            return TypeError(f"{self!r} takes a list of {inputs}, not {type(x).__name__}: {x!r:.80}")
        try:
            check_numbers(x, f"an input of {self!r}")
        except TypeError as explained:
            return explained
        return error

    def __repr__(self) -> str:
        return f"{_name_of(self._activation) if self.nonlin else 'Linear'}Neuron({len(self.w)})"


class _OfPoints(Module, Generic[Answer], observed=False):
    """A module with several outputs, of which a single one is given bare, as in micrograd."""

    if TYPE_CHECKING:

        def outputs(self, x: Sequence[Any] | ndarray[Any, Any]) -> list[Value]:
            """The outputs for a point: a list, also of a single one."""
            raise NotImplementedError

    @overload
    def __call__(self, x: ndarray[tuple[int, int], Any]) -> ndarray[Any, Any]: ...

    @overload
    def __call__(self, x: Point) -> Answer: ...

    @overload
    def __call__(self, x: Sequence[Point]) -> list[Answer]: ...

    @overload
    def __call__(self, x: Any) -> Any: ...

    def __call__(self, x: Any) -> Any:
        """The outputs for some numbers or Values: a list, or the bare Value of a single one.

        Args:
            x: one point; or a batch of points along the first axis, as a list of lists or an array.

        Returns:
            The outputs; for a batch those of each point, in a list, or in an array where x is an array.

        Example:
            >>> model = MLP(2, [1], initial=0)
            >>> model([[1.0, 2.0], [3.0, 4.0]])
            [Value(data=0.0, grad=0.0), Value(data=0.0, grad=0.0)]
        """
        if _is_batch(x):
            return _answers(self, x)
        outputs = self.outputs(x)
        return outputs[0] if len(outputs) == 1 else outputs


class Layer(_OfPoints[Outputs], observed=False):
    """Neurons side by side, over the same inputs.

    For type checkers, ``Layer(2, 1)`` returns a Value for a point, and ``Layer(2, 3)`` a list of Values. If the number
    of neurons is a variable with value 1, write ``Layer[Value](2, count)``. An array is a batch, unless its type has
    one axis.

    Args:
        nin: the number of inputs.
        nout: the number of neurons.
        **kwargs: further arguments of each Neuron: nonlin, activation, initial.

    Example:
        >>> Layer(2, 3, activation="tanh")
        Layer of [TanhNeuron(2), TanhNeuron(2), TanhNeuron(2)]
    """

    @overload
    def __init__(self: Layer[Value], nin: int, nout: Literal[1], **kwargs: Any) -> None: ...

    @overload
    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None: ...

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        if isinstance(initial := kwargs.get("initial"), str) and (spread := INITIAL_WEIGHTS.get(initial)):
            kwargs["initial"] = spread(required_count(nin, "nin"), required_count(nout, "nout"))
        self.neurons = [Neuron(nin, **kwargs) for _ in range(required_count(nout, "nout"))]
        for place, neuron in enumerate(self.neurons):
            neuron._place = place

    def outputs(self, x: Sequence[Any] | ndarray[Any, Any]) -> list[Value]:
        """The neurons' outputs: a list, even for a single one."""
        return [neuron(x) for neuron in self.neurons]

    def __repr__(self) -> str:
        kinds = [repr(neuron) for neuron in self.neurons]
        if len(kinds) > MOST_SHOWN and len(set(kinds)) == 1:
            return f"Layer of {len(kinds)} {kinds[0]}"
        return f"Layer of [{', '.join(kinds)}]"


class MLP(_OfPoints[Answer], observed=False):
    """A multi-layer perceptron: layers in sequence, the last one linear.

    For type checkers, ``MLP(2, (4, 1))`` returns a Value for a point, and ``MLP(2, (4, 3))`` a list of Values. They do
    not know the last size in a list: write ``MLP[Value](2, [4, 1])`` or ``MLP[list[Value]](2, [4, 3])``, or the call
    has the type Any. An array is a batch, unless its type has one axis.

    Args:
        nin: the number of inputs.
        nouts: the number of neurons in each layer; the last is the number of outputs.
        activation: of all layers except the last; see Neuron.
        initial: how weights are drawn; see Neuron.

    Example:
        >>> model = MLP(2, [2, 1])
        >>> model
        MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(2)]]
        >>> len(model.parameters())
        9
    """

    @overload
    def __init__(
        self: MLP[Value],
        nin: int,
        nouts: tuple[Unpack[tuple[int, ...]], Literal[1]],
        activation: str | Callable[[Any], Any] = "relu",
        initial: str | float = "uniform",
    ) -> None: ...

    @overload
    def __init__(
        self: MLP[list[Value]],
        nin: int,
        nouts: tuple[int, ...],
        activation: str | Callable[[Any], Any] = "relu",
        initial: str | float = "uniform",
    ) -> None: ...

    @overload
    def __init__(
        self,
        nin: int,
        nouts: Sequence[int],
        activation: str | Callable[[Any], Any] = "relu",
        initial: str | float = "uniform",
    ) -> None: ...

    def __init__(
        self,
        nin: int,
        nouts: Sequence[int],
        activation: str | Callable[[Any], Any] = "relu",
        initial: str | float = "uniform",
    ) -> None:
        sizes = [nin, *required_sequence(nouts, "nouts must be a list of the sizes of the layers, as [2, 1]")]
        if not (count := len(sizes) - 1):
            raise ValueError("nouts is empty: an MLP needs at least one layer")
        self.layers = [
            Layer(sizes[i], sizes[i + 1], nonlin=i != count - 1, activation=activation, initial=initial)
            for i in range(count)
        ]

    def outputs(self, x: Sequence[Any] | ndarray[Any, Any]) -> list[Value]:
        """The outputs of the last layer: a list, even for a single one."""
        for layer in self.layers:
            x = layer.outputs(x)
        return list(x)

    def __repr__(self) -> str:
        shown = f"MLP of [{', '.join(map(str, self.layers))}]"
        is_long = any(len(layer.neurons) > MOST_SHOWN for layer in self.layers)
        return f"{shown}, {_counted(self)}" if is_long else shown  # that of a short one is micrograd's


class Sequential(Module, Generic[Answer]):
    """Modules and functions in sequence, each applied to the result of the one before.

    For type checkers, it has the result of its last part if both ends are layers or networks. Otherwise write
    ``Sequential[Value]`` or ``Sequential[list[Value]]``.

    Args:
        *parts: modules; names of activations; functions of one Value, such as ``mg.tanh``, applied to each element; and
            other functions, applied to the whole result of the part before.

    Raises:
        TypeError: if there is no part, or if one is no function.

    Example:
        >>> import micrograd as mg
        >>> model = Sequential(Embedding(27, 2), Layer(2, 3), mg.tanh, Layer(3, 1))
        >>> model
        Sequential of [Embedding(27, 2), Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)], tanh, \
Layer of [ReLUNeuron(3)]], 67 parameters
        >>> type(model(5)).__name__
        'Value'
    """

    @overload
    def __init__(self: Sequential[Answer], only: _OfPoints[Answer], /) -> None: ...

    @overload
    def __init__(
        self: Sequential[Answer],
        *parts: Unpack[tuple[_OfPoints[Any], Unpack[tuple[str | Callable[..., Any], ...]], _OfPoints[Answer]]],
    ) -> None: ...

    @overload
    def __init__(self, *parts: str | Callable[..., Any]) -> None: ...

    def __init__(self, *parts: Any) -> None:  # type: ignore[misc]  # for mypy, it takes no unpacked tuple
        if not parts:
            raise TypeError("Sequential takes at least one module or function: Sequential(first, second)")
        for part in parts:
            if isinstance(part, type):
                raise TypeError(f"a part must be a module, not the class {part.__name__}: make one")
            if not callable(part) and not isinstance(part, str):
                also = "; write Sequential(*parts) for a list of parts" if isinstance(part, (list, tuple)) else ""
                raise TypeError(f"a part must be a module or a function, not {type(part).__name__}: {part!r:.80}{also}")
        self.parts = [_activation(part) for part in parts]

    @overload
    def __call__(self, x: ndarray[tuple[int, int], Any]) -> ndarray[Any, Any]: ...

    @overload
    def __call__(self, x: Point) -> Answer: ...

    @overload
    def __call__(self, x: Sequence[Point]) -> list[Answer]: ...

    @overload
    def __call__(self, x: Any) -> Any: ...

    def __call__(self, x: Any) -> Any:
        """What the last part gives."""
        for part in self.parts:
            if _is_of_one(part):
                x = _mapped(part, x)
            else:
                # a layer of one neuron gives a bare Value, and the next layer takes a list
                x = part([x] if isinstance(part, (Neuron, Layer, MLP, LayerNorm)) and isinstance(x, Value) else x)
        return x

    def __repr__(self) -> str:
        names = [repr(part) if isinstance(part, Module) else _shown(part) for part in self.parts]
        return f"Sequential of [{', '.join(names)}], {_counted(self)}"


class Dropout(Module):
    """Sets random numbers to 0 in training, and scales the others up; in evaluation it does nothing.

    See Srivastava et al. (2014). Masks are drawn from Python's ``random``, also for each step of
    ``mg.fit(..., compile=True)``. A function of ``mg.compile`` would keep its first mask, so call ``eval()`` first.

    Args:
        rate: the probability of a 0, from 0 to below 1.

    Raises:
        ValueError: for another rate.

    Example:
        >>> random.seed(0)
        >>> Dropout(0.5)([1.0, 2.0, 3.0, 4.0])
        [2.0, 4.0, 0.0, 0.0]
    """

    def __init__(self, rate: float = 0.5) -> None:
        self.rate = required_number(rate, "rate")
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate, the probability of a 0, must be from 0 to below 1, not {rate!r:.80}")

    def __call__(self, x: Same) -> Same:
        """The numbers of a nested list or an array, each kept or dropped.

        Raises:
            MaskError: a TypeError, in training mode while a function is compiled.
        """
        if not self.training or not self.rate:
            return x
        numbers, rebuild = flatten(x, "what dropout takes")
        return rebuild([kept * number for kept, number in zip(mask(len(numbers), self.rate), numbers, strict=True)])

    def __repr__(self) -> str:
        return f"Dropout({self.rate:g})"


class Embedding(Module):
    """A table with a row of Values for each item, such as each letter of an alphabet.

    Args:
        count: how many rows.
        size: how many Values a row has.
        initial: their standard deviation; they are drawn from Python's ``random``.

    Raises:
        ValueError: if count or size is below 1.

    Example:
        >>> letters = Embedding(27, 3)
        >>> letters, len(letters(5)), len(letters([1, 2]))
        (Embedding(27, 3), 3, 2)
    """

    def __init__(self, count: int, size: int, initial: str | float = 1.0) -> None:
        size = required_count(size, "size")
        self.rows = [_initial_weights(size, initial, 1) for _ in range(required_count(count, "count"))]

    @overload
    def __call__(self, index: int | Value) -> list[Value]: ...

    @overload
    def __call__(self, index: Any) -> list[Any]: ...

    def __call__(self, index: Any) -> Any:
        """The row with an index, as a list; for a list or an array of indices, the row of each.

        Raises:
            IndexError: if there is no such row.
            TypeError: if an index is not an int.
        """
        if type(index) in (list, tuple) or getattr(index, "ndim", 0) > 0:
            return [self(one) for one in index]
        return list(functional.take(self.rows, index))

    def __repr__(self) -> str:
        return f"Embedding({len(self.rows)}, {len(self.rows[0])})"


class LayerNorm(Module):
    """Normalises its inputs to mean 0 and variance 1, then scales and shifts by trained weights (Ba et al. 2016).

    Args:
        size: the number of inputs.
        epsilon: added to the variance, so that equal inputs are not divided by 0.

    Raises:
        ValueError: if size is below 1, or epsilon is not above 0.

    Example:
        >>> [round(x.data, 3) for x in LayerNorm(2)([1.0, 3.0])]
        [-1.0, 1.0]
    """

    def __init__(self, size: int, epsilon: float = 1e-5) -> None:
        self.gain = [Value(1.0) for _ in range(required_count(size, "size"))]
        self.bias = [Value(0.0) for _ in self.gain]
        self.epsilon = required_number(epsilon, "epsilon")
        if not 0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon must be above 0 and finite, not {epsilon!r:.80}")

    @overload
    def __call__(self, x: ndarray[tuple[int, int], Any]) -> ndarray[tuple[int, int], Any]: ...

    @overload
    def __call__(self, x: Point) -> list[Value]: ...

    @overload
    def __call__(self, x: Sequence[Point]) -> list[list[Value]]: ...

    @overload
    def __call__(self, x: Any) -> Any: ...

    def __call__(self, x: Any) -> Any:
        """As many numbers as there are inputs, in a list; for a batch of points, of each."""
        if _is_batch(x):
            return _answers(self, x)
        numbers = required_sequence(x, f"{self!r} takes a list of {len(self.gain)} numbers")
        if len(numbers) != len(self.gain):
            raise ValueError(f"{self!r} takes {len(self.gain)} inputs, not {len(numbers)}")
        centre = functional.mean(numbers)
        away = [number - centre for number in numbers]
        scale = (functional.mean([distance * distance for distance in away]) + self.epsilon) ** -0.5
        return [
            gain * (distance * scale) + bias for gain, distance, bias in zip(self.gain, away, self.bias, strict=True)
        ]

    def __repr__(self) -> str:
        return f"LayerNorm({len(self.gain)})"


class Convolution2d(Module):
    """Filters that move over an image: each output is the activation of a weighted sum of a square of pixels.

    Args:
        inputs: how many channels the image has.
        outputs: how many filters there are, which are the channels of the result.
        size: the height and width of a filter.
        stride: by how many pixels a filter moves.
        padding: how many zeros to add on each side of the image.
        activation: a name or a function of one Value, as for Neuron; None for none.
        initial: how the weights are drawn; see Neuron.

    Raises:
        ValueError: if a number is out of range, or for an unknown activation or initial.

    Example:
        >>> edges = Convolution2d(1, 4, size=3)
        >>> edges
        Convolution2d(1, 4, size=3)
        >>> result = edges([[0.0] * 8] * 8)
        >>> len(result), len(result[0]), len(result[0][0])
        (4, 6, 6)
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int = 1,
        padding: int = 0,
        activation: str | Callable[[Any], Any] | None = "relu",
        initial: str | float = "he",
    ) -> None:
        self.inputs, self.size = required_count(inputs, "inputs"), required_count(size, "size")
        self.stride, self.padding = required_count(stride, "stride"), padding
        if padding != 0:
            required_count(padding, "padding")
        count, outputs = self.inputs * self.size**2, required_count(outputs, "outputs")
        self.w = [_initial_weights(count, initial, outputs * self.size**2) for _ in range(outputs)]
        self.b = [Value(0.0) for _ in self.w]
        self._activation = None if activation is None else _activation(activation)

    @overload
    def __call__(self, image: Sequence[Sequence[Value | float]]) -> Channels: ...

    @overload
    def __call__(self, image: Image) -> Channels: ...

    @overload
    def __call__(self, image: Sequence[Image]) -> list[Channels]: ...

    @overload
    def __call__(self, image: ndarray[Any, Any]) -> ndarray[Any, Any]: ...

    @overload
    def __call__(self, image: Any) -> Any: ...

    def __call__(self, image: Any) -> Any:
        """The channels of the result, each a list of rows; an array where the image is one.

        Args:
            image: channels, each with rows of equally many numbers; of one channel, also its rows alone. A batch of
                images has one more axis.

        Raises:
            ValueError: for another number of channels, rows that differ in length, or an image that is too small.
        """
        given, depth = image, _depth(image)
        if depth == 4:
            return _answers(self, image)
        if depth == 2 and self.inputs == 1:
            image = [image]
        elif depth != 3:
            raise ValueError(f"{self!r} takes rows of numbers for each of {self.inputs} channels, not {depth} axes")
        channels = [[list(row) for row in channel] for channel in image]
        shapes = {(len(channel), len(row)) for channel in channels for row in channel}
        if len(channels) != self.inputs or len(shapes) != 1:
            raise ValueError(f"{self!r} takes {self.inputs} channels of one shape, not {len(channels)} of {shapes}")
        patches = self._patches(channels, *shapes.pop())
        result = [
            [[self._filtered(weights, patch, bias) for patch in row] for row in patches]
            for weights, bias in zip(self.w, self.b, strict=True)
        ]
        return Value._array(array_of_objects(result)) if hasattr(given, "ndim") else result

    def _patches(self, channels: list[list[list[Any]]], height: int, width: int) -> list[list[list[Any]]]:
        """The pixels that a filter sees, for each of its positions."""
        margin, size = self.padding, self.size
        if min(height, width) + 2 * margin < size:
            raise ValueError(f"{self!r} takes images of at least {size - 2 * margin} pixels, not {height} by {width}")
        sides = [0.0] * margin
        rows = [0.0] * (width + 2 * margin)
        padded = [[rows] * margin + [sides + row + sides for row in channel] + [rows] * margin for channel in channels]
        return [
            [
                [pixel for channel in padded for row in channel[top : top + size] for pixel in row[left : left + size]]
                for left in range(0, width + 2 * margin - size + 1, self.stride)
            ]
            for top in range(0, height + 2 * margin - size + 1, self.stride)
        ]

    def _filtered(self, weights: list[Value], pixels: list[Any], bias: Value) -> Any:
        total = functional.sum_of_products(weights, pixels, bias)
        if total is None:
            total = sum((weight * pixel for weight, pixel in zip(weights, pixels, strict=True)), bias)
        return total if self._activation is None else self._activation(total)

    def __repr__(self) -> str:
        others = {"stride": (self.stride, 1), "padding": (self.padding, 0)}
        shown = "".join(f", {name}={number}" for name, (number, usual) in others.items() if number != usual)
        return f"Convolution2d({self.inputs}, {len(self.w)}, size={self.size}{shown})"


def _leaves_in(root: Any) -> list[Value]:
    """The leaves that ``_named_values`` finds, in the same order, without their names: ten times as fast."""
    found: dict[int, Value] = {}
    seen: dict[int, Any] = {}
    stack = [root]
    while stack:
        value = stack.pop()
        if isinstance(value, Value):
            items = [value]
        else:
            value = vars(value) if isinstance(value, Module) else value
            if id(value) in seen or not (isinstance(value, (dict, list, tuple)) or is_array(value)):
                continue
            seen[id(value)] = value
            items = [item for _, item in value.items()] if isinstance(value, dict) else list(value)
        if not all(isinstance(item, Value) for item in items):
            stack += reversed(items)
        elif set(map(_primitive_of, items)) <= {LEAF, CONSTANT}:
            found.update(zip(map(id, items), items, strict=True))
        else:
            found.update((id(item), item) for item in items if item.is_leaf)
    return list(found.values())


def _named_values(path: str, value: Any, seen: dict[int, Any]) -> Iterator[tuple[str, Value]]:
    """The leaves in nested attributes, lists, tuples and dicts, by path; each object once."""
    if isinstance(value, Value):
        if value.is_leaf and id(value) not in seen:
            seen[id(value)] = value
            yield path, value
        return
    if isinstance(value, Module):
        value = vars(value)
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)) or is_array(value):
        items = [(str(index), item) for index, item in enumerate(value)]
    else:
        return
    if id(value) not in seen:  # a model may refer to itself
        seen[id(value)] = value
        for name, item in items:
            yield from _named_values(f"{path}.{name}" if path else name, item, seen)


def _modules_in(root: Module) -> list[Module]:
    """A module, and all modules in its attributes, each once."""
    found: list[Module] = []
    seen: dict[int, Any] = {}
    stack: list[Any] = [root]
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, Module):
            found.append(value)
            stack += vars(value).values()
        elif isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, (list, tuple)):
            stack += [item for item in value if not isinstance(item, Value)]
    return found


def _counted(module: Module) -> str:
    count = len(module.parameters())
    return f"{count:,} parameter{'s' * (count != 1)}"


def _shown(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _is_of_one(function: Any) -> bool:
    """Whether this is a function of micrograd that takes one Value, and no list."""
    return getattr(function, "__module__", None) == functional.__name__ and _takes_one(function)


@cache  # of the functions of micrograd, and so of few: to look at a signature takes as long as ten operations
def _takes_one(function: Any) -> bool:
    first, *others = signature(function).parameters.values()
    return first.name == "x" and all(other.default is not Parameter.empty for other in others)


def _mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of one Value, of each in nested lists or in an array."""
    if type(x) in (list, tuple):
        return [_mapped(function, item) for item in x]
    return function(x)


def _depth(nested: Any) -> int:
    """How many axes nested lists or an array have."""
    if hasattr(nested, "ndim"):
        return int(nested.ndim)
    return 1 + _depth(nested[0]) if isinstance(nested, (list, tuple)) and nested else 0


def _name_of(activation: Callable[[Any], Any]) -> str:
    """How a neuron with this activation calls itself."""
    name = getattr(activation, "__name__", type(activation).__name__)
    return next((ours for ours, function in ACTIVATIONS.values() if function is activation), name.capitalize())


def _activation(activation: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of an activation that may be given by name."""
    if callable(activation):
        return activation
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"no activation {activation!r}; choose from {', '.join(ACTIVATIONS)}, or give a function")
    return ACTIVATIONS[activation][1]


def _initial_weights(nin: int, initial: str | float, nout: int) -> list[Value]:
    """Weights drawn from Python's random, in micrograd's order."""
    if isinstance(initial, str) and initial not in INITIAL_WEIGHTS:
        raise ValueError(f"no initial weights {initial!r}; choose from {', '.join(INITIAL_WEIGHTS)}, or give a number")
    spread = INITIAL_WEIGHTS[initial] if isinstance(initial, str) else None
    if initial == "uniform":
        return [Value(random.uniform(-1, 1)) for _ in range(nin)]
    deviation = spread(nin, nout) if spread else required_number(initial, "initial")
    if not 0 <= deviation < math.inf:
        raise ValueError(f"initial, as a standard deviation, must be finite and not negative, not {initial}")
    return [Value(random.gauss(0, deviation)) for _ in range(nin)]
