"""The compiler: it finds the matrices in scalar programs, and runs them at the speed of the machine.

    trace       run the function once on symbols, which write down what is done to them
    normalise   flatten sums, and see the products in them: everything is a dot product or a primitive
    adjoint     add the reverse program, from the primitives' own derivative rules
    reroll      group what is alike into kernels over arrays, what repeats into loops, and lay all out in one buffer
    compile     make something that runs the kernels: with NumPy, native code through LLVM, or JAX

Take ``y[o] = w[o][0] * x[0] + w[o][1] * x[1]``, written for o in range(3). The trace holds nine
operations on numbers. Normalised, they are three dot products; rerolled, one kernel: the product of a
3 by 2 matrix and a vector. Its adjoint becomes the product with the transpose in the same way.

The packages, from the bottom up:

    guards/     what a program takes for granted of its arguments and of what it closes over
    ir/         the representations of a program
    tracing/    a function runs once on symbols
    passes/     each from one representation to the next; stages.py lists and runs them
    backends/   what runs programs: NumPy, native code through LLVM, JAX
    calling/    what users hold, and what it does at each call
    training/   the steps of fit as compiled programs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from micrograd._support.checks import check_type
from micrograd.compiler.guards.refusals import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import ParamSpec, TypeVar

    from micrograd.compiler.calling.function import CompiledFunction
    from micrograd.compiler.training.steps import CompiledSteps
    from micrograd.optim import Optimizer

    P = ParamSpec("P")
    R = TypeVar("R")

__all__ = ["TraceError", "compile", "compiled_steps", "from_jax", "to_jax"]


@overload
def compile(
    function: Callable[P, R],
    *,
    backend: str = ...,
    disable: Sequence[str] = ...,
    verify: bool = ...,
    precision: str = ...,
    paths: int = ...,
) -> CompiledFunction[P, R]: ...


@overload
def compile(
    *, backend: str = ..., disable: Sequence[str] = ..., verify: bool = ..., precision: str = ..., paths: int = ...
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...


def compile(
    function: Callable[..., Any] | None = None,
    *,
    backend: str = "auto",
    disable: Sequence[str] = (),
    verify: bool = False,
    precision: str = "float64",
    paths: int = 64,
) -> Any:
    """Make a function of Values run as array kernels; a decorator too.

    The function is traced at its first call, with symbols in the place of numbers, and again for each
    new structure of its arguments. Numbers and Values in the arguments may change from call to call, and
    so may the Values that it closes over. Everything else that it closes over is part of the program; if it
    is replaced, the function is traced again at the next call.

    Args:
        function: returns a Value, or containers of Values, computed with the operators and functions of
            micrograd from its arguments and from Values that it closes over.
        backend: "llvm" for native code, "numpy", "jax" for what JAX finds, or "auto" for llvm where it is installed,
            and numpy elsewhere.
        disable: names of passes that shall not run, to find out what each is good for: "cse", "batch", "transpose",
            "fuse" or "allocate". The numbers stay the same, up to the rounding of sums.
        verify: whether to check after each pass that the program computes what it did, to find a bug of the compiler;
            the function is compiled several times more slowly. MICROGRAD_VERIFY=1 in the environment does the same.
        precision: "float32" keeps and computes numbers in half of the memory, with seven digits. Arguments and Values
            are rounded to it at each call; results and gradients are floats, and arrays of float64, as before. A call
            in which a number exceeds its range, 3.4e38, runs eagerly.
        paths: for a function that decides on numbers, as by ``if x > 0``: how many ways through it are kept as
            programs. Each is traced when it is first taken; the one that was not taken for longest is given up.

    Returns:
        A function of the same arguments with the same result, whose ``backward()`` fills the same ``grad``.

    Raises:
        TraceError: when called, where the function reads a number that is not known yet.
        ImportError: if NumPy is not installed, or llvmlite for "llvm", or jax for "jax".
        RuntimeError: when called, if JAX has float64 switched off and that is the precision.
        TypeError: if function is not callable, or disable is no list of names, or verify no bool.
        ValueError: for an unknown backend, pass or precision.

    Example:
        >>> from micrograd import Value
        >>> w = Value(2.0)
        >>> @compile
        ... def loss(xs):
        ...     return sum((w * x - 1.0) ** 2 for x in xs)
        >>> result = loss([1.0, 2.0, 3.0])
        >>> result.backward()
        >>> result.data, w.grad
        (35.0, 44.0)
    """
    _need_numpy()
    from micrograd.compiler.calling.function import CompiledFunction

    def compiled(function: Callable[P, R]) -> CompiledFunction[P, R]:
        check_type(callable(function), "compile takes a function", function)
        return CompiledFunction(function, backend, disable, verify, precision, paths)

    return compiled if function is None else compiled(function)


def to_jax(function: Callable[..., Any], *arguments: Any) -> tuple[Callable[..., Any], Any]:
    """A pure function of JAX that computes what a function of Values computes, and its parameters.

    The function is traced once. ``jax.jit``, ``jax.grad`` of any order, ``jax.vmap``, ``jax.hessian`` and
    ``jax.checkpoint`` take the result, and optimisers such as Optax's take the parameters.

    Args:
        function: as ``compile`` takes it. The Values that it reads and that require a gradient are the parameters;
            frozen ones are constants, as they are now.
        *arguments: examples of its arguments, for their structure: which numbers they hold is of no consequence.

    Returns:
        A function of (parameters, *arguments), and the parameters as they are now: a dict of arrays by name. A list of
        Values, or of equally long lists of them, is one array. Those of a Module have the names of its ``state_dict``,
        others begin with the name of a variable. In the arguments, an array may stand for a list of numbers.
        The function returns what the given one returns, with arrays of JAX in place of Values and numbers. Where
        the given function raises an error of arithmetic, it returns NaN.

    Raises:
        TraceError: where the function reads a number that is not known yet.
        ImportError: if jax is not installed.
        RuntimeError: if JAX has float64 switched off.
        ValueError: if the function reads a Value that is computed outside of it.
        TypeError: if function is not callable.

    Example:
        >>> import jax
        >>> from micrograd import Value
        >>> slope = Value(3.0)
        >>> jax.config.update("jax_enable_x64", True)
        >>> line, parameters = to_jax(lambda x: slope * x, 1.0)
        >>> print(line(parameters, 2.0), jax.grad(line)(parameters, 2.0)["slope"])
        6.0 2.0
    """
    _need_numpy()
    check_type(callable(function), "to_jax takes a function", function)
    _need_jax("to_jax")
    from micrograd.compiler.calling.pure_function import pure_function

    return pure_function(function, arguments)


def from_jax(parameters: Any) -> None:
    """Write parameters that were trained with JAX back into the Values that ``to_jax`` found: all, or none.

    Args:
        parameters: those that ``to_jax`` gave, or what JAX or Optax made of them.

    Raises:
        TypeError: if they are something else; a plain dict does not know which Values it stands for.
        ValueError: if an array has another shape, or a number that is not finite.

    Example:
        >>> import jax
        >>> from micrograd import Value
        >>> slope = Value(3.0)
        >>> jax.config.update("jax_enable_x64", True)
        >>> line, parameters = to_jax(lambda x: slope * x, 1.0)
        >>> from_jax(jax.tree.map(lambda number: number - 0.5, parameters))
        >>> slope.data
        2.5
    """
    _need_jax("from_jax")
    from micrograd.compiler.calling.pure_function import write_back

    write_back(parameters)


def compiled_steps(
    loss: Callable[..., Any],
    examples: Sequence[Any],
    optimizer: Optimizer,
    eager: Any,
    backend: str,
    batch_size: int = 1,
    devices: int | str | None = None,
    precision: str = "float64",
    named: Mapping[str, Any] | None = None,
    draw: Callable[..., Any] | None = None,
    clip_norm: float | None = None,
) -> CompiledSteps:
    """The steps of micrograd.fit as compiled programs.

    Args:
        loss: of one example.
        examples: all of them.
        optimizer: whose update is compiled too.
        eager: takes the steps that the programs cannot.
        backend: the name of the backend, or "auto".
        batch_size: how many examples a step has.
        devices: for the JAX backend, how many.
        precision: for the JAX backend, "float64" or "float32".
        named: the named arguments of the loss, which have other numbers in each step.
        draw: the function that gives these numbers, if there are any.
        clip_norm: the largest norm of the gradient; None for any.
    """
    _need_numpy()
    from micrograd.compiler.training.steps import Task

    task = Task(loss, examples, optimizer, eager, batch_size, named or {}, draw, clip_norm)
    if backend == "jax":
        _need_jax("the jax backend")
        from micrograd.compiler.training.mesh_steps import MeshSteps

        return MeshSteps(task, devices, precision)
    from micrograd.compiler.training.buffer_steps import BufferSteps

    return BufferSteps(task, backend)


def _need_jax(what: str) -> None:
    try:
        import jax  # noqa: F401  # only to see that it is there
    except ImportError:
        raise ImportError(f"{what} needs JAX: pip install jax") from None


def _need_numpy() -> None:
    try:
        import numpy
    except ImportError:
        raise ImportError("compiling needs NumPy: pip install numpy llvmlite") from None
    if numpy.intp(0).itemsize < 8:  # as in a browser: the compiler's positions and keys have 64 bits
        raise ImportError("compiling needs a Python of 64 bits, and this one has 32: leave mg.compile and compile= out")
