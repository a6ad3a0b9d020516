"""Those that run a program of the suite: this package, and its peers.

A runner lives in a process of its own. It is asked for the first step, which makes all that is made once; then for
steps to be timed.
"""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from array_libraries import Jax, Numpy, Torch, casadi_functions
from programs.program import flat, mapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from programs.program import Numbers, Program

    Step = Callable[[], object]
    Result = tuple[float, list[float]]


class Runner(ABC):
    """One way to compute a program and its gradient.

    Attributes:
        name: what stands in the table.
        needs: the packages without which it is left out.
        loading: what a user's program runs before it can compute anything.
    """

    recursive = False
    name: str
    needs: tuple[str, ...] = ()
    loading = "import numpy"

    @classmethod
    def installed(cls) -> bool:
        return all(importlib.util.find_spec(module) for module in cls.needs)

    @classmethod
    def takes(cls, program: Program) -> bool:
        """Whether there is a version of the program for it."""
        return True

    @abstractmethod
    def load(self, program: Program) -> None:
        """Import what is needed and make the data; this is not timed."""

    @abstractmethod
    def first_step(self) -> None:
        """Make all that is made once, and compute the gradient for the first time."""

    @abstractmethod
    def result(self) -> Result:
        """The value and the gradient, in the order of the parameters; an empty one where it computes none."""

    def steps(self) -> dict[str, Step]:
        """What is timed: "gradient" and "primal", which computes the value alone; and "plain", a call of a user's."""
        found = {"gradient": self.gradient, "primal": self.primal, "plain": self.plain}
        return {name: step for name, make in found.items() if (step := make()) is not None}

    def gradient(self) -> Step | None:
        """A step that computes the value and the gradient."""
        return None

    def primal(self) -> Step | None:
        return None

    def plain(self) -> Step | None:
        """A step from arrays of NumPy to a float and arrays of NumPy."""
        return self.gradient()


class Ours(Runner):
    name = "micrograd, compiled"
    needs = ("numpy", "llvmlite")
    loading = "import micrograd, micrograd.compiler.backends.llvm.llvm_backend"

    def load(self, program: Program) -> None:
        import micrograd as mg
        import micrograd.compiler.backends.llvm.llvm_backend  # LLVM is loaded before the first step

        self.program = program
        self.numbers, self.given = program.data()
        self.weights = {name: mapped(mg.Value, nested) for name, nested in self.numbers.items()}

    def compiled(self, weights: Numbers) -> tuple[Any, tuple[Any, ...]]:
        """The compiled function of these parameters, and its arguments."""
        import micrograd as mg

        scalars, given = self.program.scalars, self.given
        if self.program.arguments:
            return mg.compile(lambda given: scalars(weights, given), backend="llvm"), (given,)
        return mg.compile(lambda: scalars(weights, given), backend="llvm"), ()

    def first_step(self) -> None:
        """Trace, compile, run, and fill the grads."""
        self.fast, self.arguments = self.compiled(self.weights)
        self.fast(*self.arguments).backward()

    def result(self) -> Result:
        """From the Values; from buffer to buffer it must be the same."""
        leaves = flat(self.weights)
        for leaf in leaves:
            leaf.grad = 0.0
        output = self.fast(*self.arguments)
        output.backward()
        executable = self.fast.program(*self.arguments)
        executable.run()
        if float(executable.buffer[executable.program.outputs[0]]) != output.data:
            raise ArithmeticError("the buffer has another value than the Value")
        return output.data, [leaf.grad for leaf in leaves]

    def gradient(self) -> Step:
        """From buffer to buffer."""
        return self.fast.program(*self.arguments).run

    def plain(self) -> Step:
        """A call, and the gradients of its Values."""
        fast, arguments = self.fast, self.arguments

        def step() -> None:
            fast(*arguments).backward()

        return step

    def primal(self) -> Step:
        """From buffer to buffer, of the same function of Values that need no gradient."""
        import micrograd as mg

        frozen = partial(mg.Value, requires_grad=False)
        fast, arguments = self.compiled({name: mapped(frozen, nested) for name, nested in self.numbers.items()})
        return fast.program(*arguments).run


class OnArrays(Runner):
    """A peer that runs the program in arrays."""

    library: type[Any]

    def load(self, program: Program) -> None:
        self.xp = self.library()
        self.program = program
        numbers, given = program.data()
        self.weights = {name: self.xp.array(nested) for name, nested in numbers.items()}
        self.given = {name: self.xp.array(nested) for name, nested in given.items()}

    def loss(self, weights: Numbers) -> Any:
        return self.program.arrays(self.xp, weights, self.given)


class JaxRunner(OnArrays):
    name = "JAX, jit"
    needs = ("jax",)
    loading = "import jax; jax.config.update('jax_enable_x64', True); jax.numpy.zeros(1)"
    library = Jax

    def first_step(self) -> None:
        jax, program, xp, given = self.xp.jax, self.program, self.xp, self.given
        if program.arguments:
            self.arguments = self.weights, given
            self.function = partial(program.arrays, xp)
        else:
            self.arguments = (self.weights,)
            self.function = self.loss
        self.with_gradient = jax.jit(jax.value_and_grad(self.function))
        jax.block_until_ready(self.with_gradient(*self.arguments))

    def result(self) -> Result:
        value, gradients = self.with_gradient(*self.arguments)
        return float(value), flat([gradients[name].tolist() for name in self.weights])

    def stepped(self, function: Any) -> Step:
        """A call that waits for its result."""
        wait, arguments = self.xp.jax.block_until_ready, self.arguments
        return lambda: wait(function(*arguments))

    def gradient(self) -> Step:
        return self.stepped(self.with_gradient)

    def primal(self) -> Step:
        return self.stepped(self.xp.jax.jit(self.function))

    def plain(self) -> Step:
        """What is given and what is wanted are arrays of NumPy."""
        import numpy as np

        arguments = [{name: np.asarray(array) for name, array in each.items()} for each in self.arguments]

        def step() -> tuple[float, list[Any]]:
            value, gradients = self.with_gradient(*arguments)
            return float(value), [*map(np.asarray, gradients.values())]

        return step


class TorchRunner(OnArrays):
    name = "PyTorch, eager"
    needs = ("torch",)
    loading = "import torch"
    library = Torch

    def first_step(self) -> None:
        for weight in self.weights.values():
            weight.requires_grad_(True)
        self.step()

    def step(self) -> Any:
        for weight in self.weights.values():
            weight.grad = None
        value = self.loss(self.weights)
        value.backward()
        return value

    def result(self) -> Result:
        value = self.step()
        none = [weight.new_zeros(weight.shape) for weight in self.weights.values()]
        found = [weight.grad for weight in self.weights.values()]
        return value.item(), flat([(none[i] if grad is None else grad).tolist() for i, grad in enumerate(found)])

    def gradient(self) -> Step:
        return self.step

    def primal(self) -> Step:
        def step() -> None:
            with self.xp.no_grad():
                self.loss(self.weights)

        return step

    def plain(self) -> Step:
        """What is given and what is wanted are arrays of NumPy."""
        arrays = {name: weight.detach().numpy() for name, weight in self.weights.items()}

        def step() -> tuple[float, list[Any]]:
            weights = {name: self.xp.array(array, requires_grad=True) for name, array in arrays.items()}
            value = self.loss(weights)
            value.backward()
            return value.item(), [weight.grad.numpy() for weight in weights.values() if weight.grad is not None]

        return step


class NumpyRunner(OnArrays):
    """NumPy, with a gradient where one was derived by hand."""

    name = "NumPy"
    needs = ("numpy",)
    library = Numpy

    def first_step(self) -> None:
        self.result()

    def result(self) -> Result:
        if self.program.numpy_gradient is None:
            return float(self.loss(self.weights)), []
        value, gradients = self.program.numpy_gradient(self.weights, self.given)
        return value, flat([gradients[name].tolist() for name in self.weights])

    def gradient(self) -> Step | None:
        by_hand = self.program.numpy_gradient
        return None if by_hand is None else partial(by_hand, self.weights, self.given)

    def primal(self) -> Step:
        return partial(self.loss, self.weights)


class CasadiRunner(Runner):
    """CasADi: the same scalars, as an SX function that its virtual machine runs."""

    name = "CasADi, SX"
    needs = ("casadi", "numpy")
    loading = "import casadi, numpy"

    def load(self, program: Program) -> None:
        """Make the data; the program's functions are CasADi's from here on."""
        import casadi
        import numpy as np

        self.casadi = casadi
        numbers, self.given = program.data()
        self.program, self.numbers = program, numbers
        self.inputs = np.array(flat(numbers))
        function = getattr(program.scalars, "func", program.scalars)
        if "mg" in function.__globals__:
            function.__globals__["mg"] = casadi_functions()

    def first_step(self) -> None:
        """Build the graph of symbols and that of the gradient, and run them."""
        casadi = self.casadi
        symbols: list[Any] = []

        def symbol(_: float) -> Any:
            symbols.append(casadi.SX.sym("p"))
            return symbols[-1]

        weights = {name: mapped(symbol, nested) for name, nested in self.numbers.items()}
        self.loss = self.program.scalars(weights, self.given)
        self.vector = casadi.vertcat(*symbols)
        self.run, self.outputs = self.evaluator([self.loss, casadi.gradient(self.loss, self.vector)])
        self.called = self.function
        self.run()

    def evaluator(self, outputs: list[Any]) -> tuple[Step, list[Any]]:
        """What computes outputs, from array to array, and its arrays."""
        import numpy as np

        self.function = function = self.casadi.Function("f", [self.vector], outputs)
        arrays = [np.zeros(output.numel()) for output in outputs]
        buffer, evaluate = function.buffer()
        buffer.set_arg(0, memoryview(self.inputs))
        for position, array in enumerate(arrays):
            buffer.set_res(position, memoryview(array))
        kept = function, buffer  # CasADi has their addresses only

        def step(_: Any = kept) -> None:
            evaluate()

        return step, arrays

    def result(self) -> Result:
        self.run()
        value, gradient = self.outputs
        return float(value[0]), gradient.tolist()

    def gradient(self) -> Step:
        return self.run

    def primal(self) -> Step:
        self.run_primal, _ = self.evaluator([self.loss])
        return self.run_primal

    def plain(self) -> Step:
        """A call of the function: an array of NumPy is given, and what it gives becomes a float and another one."""
        called, inputs = self.called, self.inputs

        def step() -> tuple[float, Any]:
            value, gradient = called(inputs)
            return float(value), gradient.full()

        return step


class CRunner(Runner):
    """C, derived by hand, compiled by the system's compiler with -O3 -march=native."""

    name = "C, by hand"
    needs = ("numpy",)

    @classmethod
    def installed(cls) -> bool:
        return super().installed() and shutil.which("cc") is not None

    @classmethod
    def takes(cls, program: Program) -> bool:
        return program.c is not None

    def load(self, program: Program) -> None:
        import numpy as np

        numbers, given = program.data()
        (rows,) = given.values()
        self.source = Path(__file__).parent / "programs" / str(program.c)
        self.weights, self.rows, self.count = np.array(flat(numbers)), np.array(flat(rows)), len(rows)
        self.found = np.zeros(len(self.weights))

    def first_step(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = str(Path(folder) / "program.so")
            subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, self.source], check=True)
            loaded = ctypes.CDLL(library)
        pointer = ctypes.POINTER(ctypes.c_double)
        weights, rows, found = (array.ctypes.data_as(pointer) for array in (self.weights, self.rows, self.found))
        loaded.value.restype = loaded.value_and_gradient.restype = ctypes.c_double
        self.run = partial(loaded.value_and_gradient, weights, rows, self.count, found)
        self.run_primal = partial(loaded.value, weights, rows, self.count)
        self.run()

    def result(self) -> Result:
        return self.run(), self.found.tolist()

    def gradient(self) -> Step:
        return self.run

    def primal(self) -> Step:
        return self.run_primal


RUNNERS: tuple[type[Runner], ...] = (Ours, JaxRunner, CasadiRunner, TorchRunner, NumpyRunner, CRunner)
