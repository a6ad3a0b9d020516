"""Neurons, layers and networks, with micrograd's names, reprs and weights.

A model is a Module: an object whose attributes hold Values, other Modules, and lists, tuples or dicts
of them. Its parameters, their names, and what is saved to a file are all found by walking these
attributes in the order in which they were assigned:

    MLP(2, [3, 1]) -> layers.0.neurons.0.w.0, layers.0.neurons.0.w.1, layers.0.neurons.0.b, ...
"""

from __future__ import annotations

import math
import random
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from micrograd import functional
from micrograd._support.axes import array_of_objects
from micrograd._support.checks import check_numbers, is_array, required_count, required_number, required_sequence
from micrograd._support.saved_state import check_state, read_state, write_state
from micrograd.engine import calls
from micrograd.engine.commit import commit, setting
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.stored import changing
from micrograd.engine.value import Value
from micrograd.storage import set_gradients_to_zero

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["MLP", "Layer", "Module", "Neuron"]


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


class Module:
    """Something with parameters: subclass it, and assign Values and other Modules to attributes.

    Example:
        >>> class Line(Module):
        ...     def __init__(self):
        ...         self.slope, self.intercept = Value(1.0), Value(0.0)
        >>> [name for name, parameter in Line().named_parameters()]
        ['slope', 'intercept']
    """

    def __init_subclass__(cls, remembered: bool = True, **options: Any) -> None:
        """Let what a module returns remember the call, which pages show as a box."""
        super().__init_subclass__(**options)
        if remembered and "__call__" in vars(cls):
            cls.__call__ = calls.remembered(cls.__call__, is_method=True)  # type: ignore[method-assign]  # in place

    def parameters(self) -> list[Value]:
        """The Values that training changes, each once: leaves that require a gradient, frozen ones too."""
        if type(self).named_parameters is not Module.named_parameters:  # a custom module chooses
            return [parameter for _, parameter in self.named_parameters()]
        return _leaves_in(self)

    def named_parameters(self) -> Iterator[tuple[str, Value]]:
        """The parameters with their names: the path of attributes, keys and indices that leads to each."""
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
        """Set the parameters from numbers by name: all of them, or none where anything is wrong.

        Raises:
            ValueError: if a name is missing or unknown, or a number is not finite.
            TypeError: if something is not a number.
        """
        parameters = dict(self.named_parameters())
        numbers = check_state(state, parameters)

        with changing(parameters.values()):
            commit(setting(parameters.values(), "_data", [numbers[name] for name in parameters]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the parameters to a JSON file: the old file or the new one is there, never a part.

        Raises:
            ValueError: if a parameter is infinite or NaN; nothing is written then.
            OSError: if the file cannot be written.
        """
        write_state(path, self.state_dict())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Set the parameters from a file that save wrote; the model is untouched if anything is wrong.

        Raises:
            ValueError: if the file is cut off or damaged, or is of another model.
            OSError: if the file cannot be read.
        """
        try:
            self.load_state_dict(read_state(path))
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"cannot load {path}: {error}") from error

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the parameters, group by group."""
        from micrograd.draw.notebook import parameter_table  # here, so that it is loaded only when a table is shown

        return parameter_table(type(self).__name__, ((name, p.data) for name, p in self.named_parameters()))


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


class Neuron(Module, remembered=False):  # what a neuron gives says so itself, and layers are found from it
    """A weighted sum of its inputs plus a bias, then an activation.

    Args:
        nin: the number of inputs.
        nonlin: False for a linear neuron, without an activation.
        activation: a name ("relu", "tanh", "sigmoid", "gelu", ...) or a function of one Value.
        initial: how the weights are drawn from Python's ``random``, so that ``random.seed`` fixes
            them: "uniform" in [-1, 1] as micrograd does, "he" or "glorot" normal with a spread that
            suits the size; or the standard deviation itself. The bias starts at 0.

    Raises:
        ValueError: for an unknown activation or initial, or nin below 1.

    Example:
        >>> Neuron(2)
        ReLUNeuron(2)
        >>> Neuron(3, activation="tanh")
        TanhNeuron(3)
    """

    nonlin = True  # for most neurons from here: a compiled network looks at each attribute of theirs at each call

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

    def __call__(self, x: Sequence[Any]) -> Any:
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
        if type(output) is Value and not output.is_leaf:
            # explore shows what lies between the inputs and the output as a group, in the order of the calls
            output._call = self, x, calls.tick()
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


class Layer(Module, remembered=False):
    """Neurons side by side, over the same inputs.

    Args:
        nin: the number of inputs.
        nout: the number of neurons.
        **kwargs: what each Neuron takes besides: nonlin, activation, initial.

    Example:
        >>> Layer(2, 3, activation="tanh")
        Layer of [TanhNeuron(2), TanhNeuron(2), TanhNeuron(2)]
    """

    def __init__(self, nin: int, nout: int, **kwargs: Any) -> None:
        if isinstance(initial := kwargs.get("initial"), str) and (spread := INITIAL_WEIGHTS.get(initial)):
            kwargs["initial"] = spread(required_count(nin, "nin"), required_count(nout, "nout"))
        self.neurons = [Neuron(nin, **kwargs) for _ in range(required_count(nout, "nout"))]

    def outputs(self, x: Sequence[Any]) -> list[Any]:
        """The neurons' outputs: a list, also of a single one."""
        return [neuron(x) for neuron in self.neurons]

    def __call__(self, x: Sequence[Any]) -> Any:
        """The neurons' outputs; the bare output of a single one, as in micrograd. For a batch of points, of each."""
        if _is_batch(x):
            return _answers(self, x)
        outputs = self.outputs(x)
        return outputs[0] if len(outputs) == 1 else outputs

    def __repr__(self) -> str:
        return f"Layer of [{', '.join(map(str, self.neurons))}]"


class MLP(Module, remembered=False):
    """A multi-layer perceptron: layers in a row, the last one linear.

    Args:
        nin: the number of inputs.
        nouts: the number of neurons in each layer; the last is the number of outputs.
        activation: of the layers but the last; see Neuron.
        initial: how weights are drawn; see Neuron.

    Example:
        >>> model = MLP(2, [2, 1])
        >>> model
        MLP of [Layer of [ReLUNeuron(2), ReLUNeuron(2)], Layer of [LinearNeuron(2)]]
        >>> len(model.parameters())
        9
    """

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

    def __call__(self, x: Sequence[Any]) -> Any:
        """The network's outputs for nin numbers or Values: a list, or the bare Value of a single one.

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
        for layer in self.layers:
            x = layer.outputs(x)
        return x[0] if len(x) == 1 else x

    def __repr__(self) -> str:
        return f"MLP of [{', '.join(map(str, self.layers))}]"


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
