"""Compiled functions: they look like the function they are made from, and run its program instead.

    fast = micrograd.compile(f)
    loss = fast(x, y)         # the same Value as f(x, y), computed by kernels
    loss.backward()           # fills the grad of the same Values as f's own result would

The result is one node, whose operands are the Values that f read and those that it was given. The numbers
in the arguments are read at each call, and so are those of the Values that f closes over. What decides
which operations there are (strings, bools, None, the lengths of containers) is static: for other static
parts the function is traced again, and each program is kept.
"""

from __future__ import annotations

import math
import time
import warnings
from enum import Enum
from functools import cache, partial, update_wrapper
from inspect import signature
from struct import error as StructError  # noqa: N812  # it is a class
from struct import pack
from threading import RLock
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.callers import calling_line
from micrograd._support.checks import is_array, real_number
from micrograd.compiler.adjoint import adjoint
from micrograd.compiler.normalise import normalise
from micrograd.compiler.picture import draw_program
from micrograd.compiler.reroll import reroll
from micrograd.compiler.trace import INPUT, Symbol, Tape, tracing, without_collecting
from micrograd.draw.graph import save_picture
from micrograd.engine.commit import commit, setting
from micrograd.engine.node import requires_grad_version
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import recorder_on_top, refusing_floats
from micrograd.engine.value import Value
from micrograd.transforms import gradient

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Container, Iterable, Sequence

    import graphviz

    from micrograd.compiler.backends.executable import Executable
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.program import Program

    Key = tuple[Any, ...]


class Explanation(str):
    """A text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class Structure:
    """The static part of nested arguments, and their numbers and Values in order.

    Attributes:
        key: hashable; equal for arguments that differ in their numbers only.
        leaves: the numbers and Values.
    """

    def __init__(self, nested: Any) -> None:
        self.leaves: list[Any] = []
        self.key = self._key(nested)
        self.nested = nested

    def _key(self, item: Any) -> Key:
        kind = type(item)
        if kind is float or kind is int:
            self.leaves.append(item)
            return (kind,)
        if isinstance(item, Value):
            self.leaves.append(item)
            return (Value, item.requires_grad)
        if isinstance(item, (list, tuple)):
            return (kind, *[self._key(part) for part in item])
        if isinstance(item, dict):
            return (kind, *[(name, self._key(part)) for name, part in item.items()])
        if is_array(item) and item.dtype != bool:
            return (np.ndarray, item.shape, *[self._key(part) for part in item.ravel().tolist()])
        if _is_number(item):
            self.leaves.append(item)
            return (float,)
        return (kind, _hashable(item))

    def rebuilt(self, leaves: Iterable[Any]) -> Any:
        """The same containers with other leaves."""
        return _rebuilt(self.nested, iter(leaves))


def _hashable(item: Any) -> Any:
    if is_array(item):
        return item.shape, item.tobytes()
    if isinstance(item, _BY_VALUE):
        return item
    try:
        hash(item)
    except TypeError:
        raise TypeError(
            f"a compiled function takes numbers, Values, arrays and containers of them, and static arguments that are "
            f"hashable; not {type(item).__name__}: {item!r:.80}"
        ) from None
    return _Same(item)


_BY_VALUE = (str, bytes, bool, type(None), frozenset, Enum)


class _Same:
    """A static object as a key: equal to itself only, whatever its own equality says."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __hash__(self) -> int:
        return id(self.item)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.item is other.item


def _rebuilt(item: Any, leaves: Any) -> Any:
    if isinstance(item, (list, tuple)):
        kind: Any = type(item)
        return getattr(kind, "_make", kind)([_rebuilt(part, leaves) for part in item])
    if isinstance(item, dict):
        return {name: _rebuilt(part, leaves) for name, part in item.items()}
    if is_array(item) and item.dtype != bool:
        result = np.empty(item.shape, dtype=object)
        for place in np.ndindex(item.shape):
            result[place] = _rebuilt(item[place], leaves)
        return result
    return next(leaves) if isinstance(item, Value) or _is_number(item) else item


def _is_number(item: Any) -> bool:
    """Whether a program has a place for it: not so for bools, by which functions choose what to do."""
    return item is not None and type(item) is not bool and real_number(item) is not None


class Specialised:
    """A function traced for one structure of its arguments: its programs, and where their numbers come from.

    Attributes:
        values: the Values that the function read from outside.
        result: what the function returned: symbols, where it computed numbers.
        outputs: the structure of the result; what in it is a plain number is the same each time.
        computed: for each number or Value in it, whether the program computes it.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Structure, backend: type[Executable], order: Sequence[Value] = ()
    ) -> None:
        marks = [time.perf_counter()]
        self._backend = backend
        tape = Tape()
        with tracing(tape):
            for value in order:
                tape.place(value, INPUT)  # a group of their own, the first
            inputs = [tape.input(number) for number in range(len(arguments.leaves))]
            positional, named = arguments.rebuilt(inputs)
            self.result = function(*positional, **named)
            self.outputs = Structure(self.result)
            self.computed = [isinstance(leaf, Value) for leaf in self.outputs.leaves]
            places = [tape.place(leaf) for leaf in self.outputs.leaves if isinstance(leaf, Value)]
            marks.append(time.perf_counter())
            self._graph = normalise(tape, places)
            marks.append(time.perf_counter())
        # Those that are used alike lie side by side, in the order of their first use
        groups = [values for values in tape.roles.values() if values]
        self.values = [value for values in groups for value in values]
        self._kinds = [value._primitive for value in self.values]
        self._version = requires_grad_version()
        self._given = [value.requires_grad for value in self.values]
        self._given += [isinstance(leaf, Value) and leaf.requires_grad for leaf in arguments.leaves]
        self._inputs = [np.array([tape.values[value] for value in values]) for values in groups]
        self._inputs.append(_places(inputs))
        self.of_floats = not self.values and not any(isinstance(leaf, Value) for leaf in arguments.leaves)
        self.wanted = np.flatnonzero(self._given)
        self.trained = tuple(value for value in self.values if value.requires_grad)
        self.leaves_only = all(value.is_leaf for value in self.values)
        self._nodes = len(tape.operations) - sum(map(len, self._inputs))
        self._seconds = _durations(("trace", "normalise"), marks)
        tape.finish()
        self._executables: dict[tuple[bool, int | None], Executable] = {}
        self.only_eager = False  # whether its gradient cannot be compiled, and may be none either way

    def is_outdated(self) -> bool:
        """Whether gradients are wanted elsewhere since it was traced."""
        if self._version is not requires_grad_version():
            if self._kinds != [value._primitive for value in self.values]:
                return True
            self._version = requires_grad_version()
        return False

    def want(self, inputs: Iterable[int]) -> None:
        """Ask for the gradients of these inputs only."""
        self.wanted = np.array(list(inputs), dtype=np.int64)

    def program(self, gradients: bool, start: int = 0, output: int | None = None) -> Program:
        """The program, with or without what computes gradients; of all outputs, or of one. See reroll for the start."""
        with without_collecting():
            return self._program(gradients, start, output)

    def _program(self, gradients: bool, start: int, output: int | None) -> Program:
        marks = [time.perf_counter()]
        outputs = self._graph.outputs
        graph = self._graph.of(outputs if output is None else outputs[output : output + 1])
        wanted = np.concatenate(self._inputs)[self.wanted]
        seeds = copies = wanted[:0]
        if gradients:
            graph, seeds, copies = adjoint(graph, wanted)
        marks.append(time.perf_counter())
        program = reroll(graph, self._inputs, seeds, copies, start)
        marks.append(time.perf_counter())
        return program.described(self._nodes, self._seconds | _durations(("adjoint", "reroll"), marks))

    def executable(self, gradients: bool, output: int | None = None) -> Executable:
        """The program in a buffer of its own, ready to run."""
        key = gradients, output
        if key not in self._executables:
            program = self.program(gradients, output=output)
            start = time.perf_counter()
            executable = self._backend(program)
            program.seconds["compile"] = time.perf_counter() - start
            executable.buffer[program.seeds] = 1.0
            self._executables[key] = executable
        return self._executables[key]


def _durations(names: tuple[str, ...], marks: list[float]) -> dict[str, float]:
    """How long each stage took, from when it began and ended."""
    return {name: end - begin for name, begin, end in zip(names, marks, marks[1:], strict=False)}


def _places(symbols: list[Symbol]) -> Integers:
    return np.array([symbol._uses for symbol in symbols], dtype=np.int64)


class CompiledFunction:
    """A function that runs as array kernels; micrograd.compile makes one.

    Attributes:
        function: the function as it was written.
    """

    def __init__(self, function: Callable[..., Any], backend: str = "auto") -> None:
        self.function = function
        self._backend = backend_of(backend)
        self._specialised: dict[Any, Specialised] = {}
        self._last: Specialised | None = None
        self._lock = RLock()
        update_wrapper(self, function, updated=())

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method, where a class has this as an attribute."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function gives for these arguments."""
        recorder = recorder_on_top()
        if recorder is not None and not recorder.lets_programs_run:
            return self.function(*arguments, **named)  # inside of another compiled function, or watched step by step
        given = Structure((arguments, named))
        with self._lock:
            special = self._specialise(given)
            numbers = [value._data for value in special.values]
            numbers += [leaf._data if isinstance(leaf, Value) else float(leaf) for leaf in given.leaves]
            recording = (recorder is None or recorder.remembers) and len(special.wanted) > 0
            result = self._run(special, given, numbers, recording)
        if result is None:  # what eager raises, or gives, says more than a NaN does
            return self.function(*arguments, **named)
        computed = iter(result)
        pairs = zip(special.outputs.leaves, special.computed, strict=True)
        return special.outputs.rebuilt([next(computed) if is_computed else leaf for leaf, is_computed in pairs])

    def explain(self, *arguments: Any, **named: Any) -> str:
        """What the compiler found: kernels by kind and shape, flops, bytes, and how long each stage took.

        Args:
            *arguments: for which arguments; without any, those of the last call.
            **named: the same.
        """
        return Explanation(self.program(*arguments, **named).program.explain())

    def values(self) -> list[Value]:
        """The Values that the function read from outside at the last call, in the order of the program's inputs."""
        self.program()
        return list(self._last.values) if self._last else []

    def draw_dot(self, format: str = "svg") -> graphviz.Digraph:  # noqa: A002  # as in micrograd.draw_dot
        """Draw the kernels of the last call, and which of them read what others wrote.

        Raises:
            ValueError: if there are too many to draw.
            ImportError: if graphviz or pygraphviz is not installed.
        """
        return draw_program(self.program().program, format)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write that picture to a file, whose suffix says the format, as micrograd.save does."""
        save_picture(self.draw_dot, path)

    def program(self, *arguments: Any, **named: Any) -> Executable:
        """The program itself, to be run from buffer to buffer.

        Args:
            *arguments: for which arguments; without any, those of the last call.
            **named: the same.

        Returns:
            An executable with ``buffer``, ``run()`` and the ``program``, which says where inputs, outputs
            and gradients are in the buffer. The inputs are the Values that the function reads, then
            the numbers and Values in the arguments.

        Raises:
            ValueError: without arguments, if the function needs some and has not been called.
        """
        with self._lock:
            given = Structure((arguments, named))
            last = self._last if not arguments and not named else None
            if not (last or arguments or named) and _needs_arguments(self.function):
                raise ValueError(f"{self} has not been called: call it, or give program() or explain() its arguments")
            special = last or self._specialise(given)
            executable = special.executable(len(special.wanted) > 0)
            numbers = [value._data for value in special.values]
            numbers += [leaf._data if isinstance(leaf, Value) else float(leaf) for leaf in given.leaves]
            executable.buffer[executable.program.inputs[: len(numbers)]] = numbers
        return executable

    def _specialise(self, given: Structure) -> Specialised:
        """The programs for these arguments, traced anew where there are none, or gradients are wanted elsewhere."""
        special = self._specialised.get(given.key)
        if special is None or special.is_outdated():
            special = Specialised(self.function, given, self._backend)
            self._specialised[given.key] = special
        self._last = special
        return special

    def _run(self, special: Specialised, given: Structure, numbers: list[float], recording: bool) -> list[Any] | None:
        """The outputs, or None where the program cannot say what they are."""
        several = sum(special.computed) > 1
        if special.only_eager and recording:
            return None
        try:
            executable = special.executable(recording and not several)
        except (ValueError, ArithmeticError):  # eager, it is backward() that raises, if it is called
            special.only_eager = True
            return None
        program, buffer = executable.program, executable.buffer
        inputs = np.frombuffer(pack(f"{len(numbers)}d", *numbers))
        buffer[program.inputs] = inputs
        executable.run()
        outputs: list[Any] = buffer[program.outputs].tolist()
        gradients = buffer[program.gradients].copy()
        if not all(map(math.isfinite, outputs)) or not np.isfinite(gradients).all():
            return None
        if special.of_floats:
            return outputs
        if not recording:
            return [Value(output, requires_grad=False) for output in outputs]
        operands, leaves_only = special.trained, special.leaves_only
        if values := [leaf for leaf in given.leaves if isinstance(leaf, Value) and leaf.requires_grad]:
            operands = (*operands, *values)
            leaves_only = leaves_only and all(value.is_leaf for value in values) and len(set(operands)) == len(operands)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        results = []
        for number, output in enumerate(outputs):
            found: Any = partial(self._gradients, special, given, inputs, operands, number) if several else gradients
            call = Call(name, found, leaves_only)
            results.append(node := Value(output))
            node._primitive, node._x, node._y = call, operands, inputs[special.wanted]
        return results

    def _gradients(
        self, special: Specialised, given: Structure, inputs: Floats, operands: tuple[Value, ...], output: int
    ) -> Floats:
        """The gradients of one of several outputs; eager ones, or what these raise, where they are not finite."""
        with self._lock:
            executable = special.executable(True, output)
            program, buffer = executable.program, executable.buffer
            buffer[program.inputs] = inputs
            executable.run()
            found = buffer[program.gradients].copy()
        if not np.isfinite(found).all():
            positional, named = given.nested
            leaves = Structure(self.function(*positional, **named)).leaves
            outputs = [leaf for leaf, computed in zip(leaves, special.computed, strict=True) if computed]
            found = np.array(gradient(outputs[output], list(operands)), dtype=float)
        return found

    def __reduce__(self) -> str:
        """As functions do: a copy is the same one, and pickle writes its name."""
        if not hasattr(self, "__qualname__"):
            raise TypeError(f"{self} has no name to be pickled or copied by: compile {self.function!r:.80} there")
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__name__', self.function)!s}>"


def _needs_arguments(function: Callable[..., Any]) -> bool:
    try:
        signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # what is written in C may not say
        return False
    return False


class Call(Primitive):
    """The primitive of a compiled function's result: it has the gradients already.

    Args:
        name: the function's.
        found: the derivatives with respect to the operands, or what finds them.
        leaves_only: whether the operands are leaves, each of them another one.
    """

    __slots__ = ("_found", "_version", "leaves_only")

    def __init__(self, name: str, found: Floats | Callable[[], Floats], leaves_only: bool) -> None:
        super().__init__(name, f"compiled {name}", float)
        self._found: Any = found
        self.leaves_only = leaves_only
        self._version = requires_grad_version()

    def check_differentiable_again(self) -> None:
        """Refuse: gradients that are there are no graphs."""
        raise ValueError("the gradient of a compiled function is no graph: differentiate the function itself")

    @property
    def gradients(self) -> Floats:
        """The derivative of the output with respect to each operand."""
        if callable(self._found):
            self._found = self._found()
        return self._found

    def receivers(self, node: Any) -> list[Any]:
        """The operands, all of which gradients flow to."""
        return [operand for operand in node._x if operand._primitive is not CONSTANT]

    def shares(self, node: Any, gradient: float, useful: Container[Any] | None = None) -> list[tuple[Any, float]]:
        """The gradients times that of the output."""
        pairs = zip(node._x, (gradient * self.gradients).tolist(), strict=True)
        return [(o, share) for o, share in pairs if o._primitive is not CONSTANT and (useful is None or o in useful)]

    def backpropagates_at_once(self, node: Any, gradient: float) -> bool:
        """Add to the gradients of the leaves directly, where there is nothing else between."""
        if not self.leaves_only or self._version is not requires_grad_version():
            return False
        before = [leaf._grad for leaf in node._x]
        shares = gradient * self.gradients
        try:
            with refusing_floats("a gradient that is a graph is not to be made a float"):
                after = (np.frombuffer(pack(f"{len(before)}d", *before)) + shares).tolist()
        except StructError:  # a graph among them
            after = [gradient + share for gradient, share in zip(before, shares.tolist(), strict=True)]
        commit(setting([*node._x, node], "_grad", [*after, gradient]))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the result of the compiled {self.name} cannot be copied or pickled; call {self.name} itself")


def backend_of(name: str) -> type[Executable]:
    """The executable of a backend."""
    if name not in ("auto", "numpy", "llvm"):
        raise ValueError(f"backend must be 'auto', 'numpy' or 'llvm', not {name!r}")
    if name != "numpy":
        try:
            from micrograd.compiler.backends.llvm_backend import NativeExecutable
        except ImportError as error:
            if name == "llvm":
                raise ImportError("the llvm backend needs llvmlite: pip install llvmlite") from error
            _warn_without_llvmlite()
        else:
            return NativeExecutable
    from micrograd.compiler.backends.numpy_backend import NumpyExecutable

    return NumpyExecutable


@cache  # once is enough
def _warn_without_llvmlite() -> None:
    code, line = calling_line()
    warnings.warn_explicit(
        "llvmlite is not installed, so compiled functions run on NumPy, some 50 times slower: pip install llvmlite",
        UserWarning,
        code.co_filename,
        line,
    )
