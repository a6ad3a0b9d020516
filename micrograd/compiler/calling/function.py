"""Compiled functions: they look like the function that they are made from, and run its program instead.

    fast = micrograd.compile(f)
    loss = fast(x, y)         # the same Value as f(x, y), computed by kernels
    loss.backward()           # fills the grad of the same Values as the result of f would

The result is one node. Its operands are the Values that f read and those among the arguments. Numbers are
read at each call: those in the arguments, and those of the Values that f closes over. Strings, bools, None
and the lengths of containers are static, as they decide which operations there are: for others the function
is traced again, and each program is kept.
"""

from __future__ import annotations

import logging
import sys
from functools import partial, update_wrapper
from inspect import signature
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

import numpy as np

from micrograd._support.callers import warn_user
from micrograd._support.checks import required_count
from micrograd._support.interrupts import is_of_handler
from micrograd._support.locks import new_lock
from micrograd._support.saved_state import Parameterised
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.calling.call import Call, CallOfSeveral, OneOfSeveral, node_of_call
from micrograd.compiler.calling.kept import ROOM, CacheInfo, Kept, forget_native_code
from micrograd.compiler.calling.last_call import MOST_INPUTS, last_call_of
from micrograd.compiler.calling.masks import Masks, as_floats, places_of
from micrograd.compiler.calling.native import NativeFunction, native_function
from micrograd.compiler.calling.of_rows import ManyRows
from micrograd.compiler.calling.paths import PATHS, Paths, holding
from micrograd.compiler.calling.picture import draw_program
from micrograd.compiler.calling.profile import profile, seconds_of
from micrograd.compiler.calling.quick import EAGER, Quick, QuickOfArrays
from micrograd.compiler.calling.specialise import TOO_OFTEN, Compiled, Specialised
from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import all_finite
from micrograd.compiler.passes.every_path import results_of_paths
from micrograd.compiler.passes.listing import listing_of
from micrograd.compiler.passes.lists import disabled_passes
from micrograd.compiler.tracing.body import UnlikeError
from micrograd.compiler.tracing.questions import ROUNDING, UndecidedError
from micrograd.compiler.tracing.source import Source
from micrograd.contexts.no_grad import differentiating
from micrograd.contexts.scope import block_on_top
from micrograd.draw.graph import save_picture
from micrograd.engine.differentiation import differentiation_in_use, is_differentiated, needs_graphs
from micrograd.engine.higher_order import partial_gradients
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.stored import LATER, SPECIAL
from micrograd.engine.value import Value

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    import graphviz
    from typing_extensions import Self

    from micrograd.compiler.backends.shared.executable import Executable
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats

_LOG = logging.getLogger("micrograd")
_MANY_QUESTIONS = 8  # of fewer there are 128 paths at most
_MOST_GUESSED = 16  # paths that a call tries; those of many rows are guessed from a few
P = ParamSpec("P")
R = TypeVar("R")


class Explanation(str):
    """A text that a prompt shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class CompiledFunction(Generic[P, R]):
    """A function that runs as array kernels; micrograd.compile makes one.

    Attributes:
        function: the function as it was written.
    """

    def __init__(
        self,
        function: Callable[P, R],
        backend: str = "auto",
        disable: Sequence[str] = (),
        verify: bool = False,
        precision: str = "float64",
        paths: int = PATHS,
    ) -> None:
        self.function = function
        self._settings = backend, disable, verify, precision, paths
        disabled_passes(disable)  # of a name that is wrong it is said here
        if not isinstance(verify, bool):
            raise TypeError(f"verify is True or False, not {verify!r:.80}")
        self._disable, self._is_rounded = tuple(disable), precision != "float64"
        self._backend = backend_of(backend).in_precision(precision)
        self._verify = verify
        self._source = partial(
            Source,
            function,
            rounding=ROUNDING[precision],
            takes_maps=self._backend.name != "jax",
            takes_calls=True,
            takes_decisions=self._backend.decide is not None,
        )
        self._paths = required_count(paths, "paths")
        self._kept = Kept()
        self._rows: dict[bool, ManyRows] = {}  # by whether operations are recorded
        self._last: Specialised | None = None
        self._ran: tuple[Specialised, Compiled, Sequence[float] | Floats] | None = None  # the last call, and its inputs
        self._quick: Quick | QuickOfArrays | None = None  # for the next calls, if they are alike
        self._lock = new_lock()
        self._parts: list[OneOfSeveral] = []  # the primitives of several results, which all calls share
        self._masks, self._for_masks = Masks(self._of_masks), None
        update_wrapper(self, function, updated=())

    def __reduce__(self) -> Any:
        """A pickle has the function and the settings; a function that is found by its name is that name."""
        name = getattr(self.function, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self.function, "__module__", None) or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (CompiledFunction, (self.function, *self._settings))

    def __copy__(self) -> Self:
        """The same one, as copies of functions are."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __getattr__(self, name: str) -> Any:
        """What a compiled Module has besides, such as its parameters."""
        function = vars(self).get("function")
        if isinstance(function, Parameterised) and not name.startswith("_"):
            return getattr(function, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """A method, where a class has this as an attribute."""
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """What the function gives for these arguments."""
        quick = self._quick
        # No recorder is in use, Values are up to date where they are read, and no transform runs this
        if (
            quick is not None
            and (not SPECIAL or (quick.takes_stored and len(SPECIAL) == len(LATER)))
            and not named
            and differentiation_in_use() is None
        ):
            result: Any = None
            if quick.lock is None:
                if self._last is quick.owner:
                    result = quick.call(arguments)
            else:
                with quick.lock:
                    if self._last is quick.owner:
                        result = quick.call(arguments)
            if result is EAGER:
                self._ran = quick.last_call = None
                return quick.end(self.function(*arguments, **named))
            if result is not None:
                return result
        recorder = recorder_on_top()
        if recorder is not None and not recorder.lets_programs_run:
            return self.function(*arguments, **named)  # inside of another compiled function, or watched step by step
        if needs_graphs():
            return self.function(*arguments, **named)  # a program's gradients are numbers
        self._for_masks = None
        if (places := places_of(arguments, named)) is not None:
            with self._lock:
                for_masks = self._masks.of(self.function, places, arguments, named)
                if for_masks is not None:
                    self._for_masks, self._last = for_masks, None  # so the next call is no quick one
            if for_masks is not None:
                changed, settings = places.changed(arguments, named, as_floats)
                return for_masks(*changed, **settings)
        given, undecided = Structure.of_call(arguments, named), None
        try:
            with self._lock:
                special, found = self._found(given, recorder is None or recorder.remembers)
        except UndecidedError as error:
            undecided = error
        if undecided is not None:
            result = self.function(*arguments, **named)  # mostly it raises, too
            if undecided.raised is not None and not undecided.may_return:
                raise undecided.raised from None
            return result
        if found is None:  # eager, it gives the infinity, or raises what says more than a NaN
            result = self.function(*arguments, **named)
        else:
            if recorder is not None and recorder.remembers_calls:
                block = block_on_top()
                for node in found[1]:
                    if node is not None:
                        node._scope = block
            result = special.results.of(*found)
        if special.paths is not None:
            special.paths.end(result if found is None else None)
        return result

    def explain(self, *arguments: Any, passes: bool = False, **named: Any) -> str:
        """What the compiler found: kernels by kind and shape, flops, bytes, and how long a call looks for changes.

        Args:
            *arguments: for which arguments; without any, those of the last call.
            passes: whether to list the passes instead: how long each took, and how large the program was then: its
                operations, arrays (of a program, its kernels), numbers, and bytes.
            **named: the same as the arguments.

        Example:
            >>> import micrograd as mg
            >>> fast = mg.compile(lambda x: x * x + x * x, backend="numpy")
            >>> [line.split()[0] for line in fast.explain(2.0, passes=True).splitlines()[:4]]
            ['pass', 'trace', 'cse', 'normalise']
        """
        with self._lock:
            special, _ = self._asked_for(arguments, named)
            if passes:
                return Explanation(special.compiled(True).passes)
            taken = f"{1e6 * seconds_of(special.is_outdated):.1f} us"
            guard = f"Each call first compares what the function closes over with what it was, in {taken}"
            parts = [special.explain(), guard, *special.remarks]
            if special.paths is not None:
                parts.append(special.paths.explained())
            return Explanation("\n".join(parts))

    def show(self, *arguments: Any, after: str = "transpose", **named: Any) -> None:
        """Print the program, gradients included, as it is after a pass.

        Args:
            *arguments: for which arguments; without any, those of the last call.
            after: the name of the pass, as explain(passes=True) lists it, from "normalise" on; by default the last that
                all backends have.
            **named: the same as the arguments.

        Raises:
            ValueError: for another name.

        Example:
            >>> import micrograd as mg
            >>> mg.compile(lambda x: 2.0 * x + mg.tanh(x), backend="numpy").show(1.0, after="normalise")
            inputs n0
            n3 = tanh(n0)
            n4 = 2 * n0 + n3
            outputs n4
        """
        with self._lock:
            print(listing_of(self._asked_for(arguments, named)[0].after(after)))  # noqa: T201  # it is what show does

    def profile(self, *arguments: Any, **named: Any) -> str:
        """Measure the kernels one by one: which take the time, and what keeps them from being fast.

        Args:
            *arguments: for which arguments; without any, those of the last call.
            **named: the same.

        Returns:
            A table of the kernels that take most of the time, gradients included, and what may be written instead.

        Raises:
            ValueError: as program() does.
        """
        with self._lock:  # calls would run in the same buffer
            return Explanation(profile(self.program(*arguments, **named)))

    def cache_info(self) -> CacheInfo:
        """What is kept for this function, and what the process and the disk have of native code.

        Example:
            >>> import micrograd as mg
            >>> fast = mg.compile(lambda x: x * x, backend="numpy")
            >>> fast(2.0), fast(3.0)
            (4.0, 9.0)
            >>> info = fast.cache_info()
            >>> info.programs, info.traces
            (1, 1)
        """
        with self._lock:
            return CacheInfo.of(self._kept, *(each._kept for each in self._masks.compiled()))

    def cache_clear(self) -> None:
        """Forget the programs of this function, and leave native code in memory to those that use it.

        The next call traces the function again. What is on disk stays there.
        """
        with self._lock:
            self._kept, self._last, self._ran, self._quick = Kept(), None, None, None
            self._masks, self._for_masks = Masks(self._of_masks), None
            forget_native_code()

    def has_paths(self) -> bool:
        """Whether the function decided on numbers at the last call, so that other operations may be done at another.

        Example:
            >>> import micrograd as mg
            >>> fast = mg.compile(lambda x: x if x > 0 else -x, backend="numpy")
            >>> fast(2.0), fast.has_paths()
            (2.0, True)
        """
        with self._lock:
            return self._asked_for((), {})[0].paths is not None

    def results_of_paths(self, *arguments: Any, **named: Any) -> list[Any]:
        """What the function returns on each of the paths that it may take, as its traces have it, without numbers.

        Args:
            *arguments: of a call, whose structure counts, and not its numbers.
            **named: the same.

        Returns:
            A result for each path, with symbols in the place of numbers.

        Raises:
            TraceError: if there are more than 64.

        Example:
            >>> import micrograd as mg
            >>> fast = mg.compile(lambda x: [x, x] if x > 0 else [x], backend="numpy")
            >>> sorted(map(len, fast.results_of_paths(2.0)))
            [1, 2]
        """
        return results_of_paths(self.function, Structure.of_call(arguments, named), ROUNDING["float64"])

    def values(self) -> list[Value]:
        """The Values that the function read from outside at the last call, in the order of the program's inputs."""
        return list(self._asked_for((), {})[0].values)

    def last_call(self) -> tuple[Value, dict[str, Any]]:
        """The last call as a Value on all that it read, as pages open it.

        Returns:
            The result, or the sum of the results; and by name, arrays of the Values of the arguments with a shape.

        Raises:
            ValueError: if there was no call that ran the program, or it had more than 100,000 numbers.

        Example:
            >>> import micrograd as mg
            >>> fast = mg.compile(lambda x, y: x * y + y, backend="numpy")
            >>> fast(2.0, 3.0)
            9.0
            >>> fast.last_call()
            (Value(data=9.0, grad=0.0), {})
        """
        if self._for_masks is not None:
            return self._for_masks.last_call()
        with self._lock:
            ran = self._ran if self._quick is None else self._quick.last_call or self._ran
            if ran is None:
                raise ValueError(
                    f"{self} has no call to show: it has not been called, its last call had more than {MOST_INPUTS:,} "
                    "numbers, or it ran without the compiler, as it does where a result is not finite"
                )
            return last_call_of(*ran)

    def draw_dot(self, format: str = "svg") -> graphviz.Digraph:  # noqa: A002  # as in micrograd.draw_dot
        """Draw the kernels of the last call, and which of them read what others wrote.

        Raises:
            ValueError: if there are too many to draw.
            ImportError: if graphviz or pygraphviz is not installed.
        """
        return draw_program(self._compiled_for((), {}), format)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write that picture to a file, whose suffix says the format, as micrograd.save does."""
        save_picture(lambda format, kind: draw_program(self._compiled_for((), {}), format, kind), path)  # noqa: A006

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
            ValueError: without arguments, if the function needs some and has not been called; or if the backend
                keeps no buffer.
        """
        self._backend.executable("program()")
        with self._lock:
            special, given = self._asked_for(arguments, named)
            if special.maps is not None and not (arguments or named) and _needs_arguments(self.function):
                raise ValueError(
                    f"give program() the arguments of {self}: the iterations of mg.vmap in it were compiled once for "
                    "all, and have to be written out"
                )
            special = special.written_out(given)
            executable: Any = special.compiled(True).run
            numbers = special.numbers(given)
            executable.buffer[executable.program.inputs[: len(numbers)]] = numbers
        return executable

    def export(
        self,
        path: str | os.PathLike[str],
        *arguments: Any,
        name: str | None = None,
        parameters: str = "table",
        precision: str = "float64",
        work: str = "auto",
        gradients: bool = True,
        overwrite: bool = False,
        **named: Any,
    ) -> list[str]:
        """Write the program as one file of C99, which depends on ``math.h`` only, and its header beside it.

        The file has ``name_value(inputs, outputs)`` and, where there are gradients, ``name(inputs, outputs,
        gradients)``, each also as ``..._checked``, which returns 1 where a number is not finite. A comment in it says
        which number is what. Gradients are those of the one result by all numbers in the arguments, and then by the
        Values that the function reads. Where it returns several Values, ``seeds`` is an argument: their gradients.

        Args:
            path: of the file, which ends in ``.c``. The header is beside it, and ends in ``.h``.
            *arguments: examples, for their structure: which numbers they hold is of no consequence.
            name: of the function in C; by default the name of the file.
            parameters: "table" for the numbers that the Values which the function reads have now, in the file;
                "argument" to have them be an argument, after the inputs.
            precision: "float32" for a file on ``float``.
            work: "argument" to have the caller supply all work arrays, of ``NAME_WORK`` numbers; "auto" only
                those that are too large for the stack: of more than 192.
            gradients: False for a file without gradients.
            overwrite: whether files are replaced that ``export`` has not written.
            **named: the same as the arguments.

        Returns:
            The paths of both files.

        Raises:
            ValueError: if the name cannot be that of a function of C, a file would be lost, or a primitive is Python
                code only and has no C code of its own.
            OSError: if a file cannot be written. Then neither is.
            TraceError: as calls do.

        Example:
            >>> import micrograd as mg, pathlib, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     files = mg.compile(lambda x: mg.tanh(x) * x).export(f"{folder}/bell.c", 1.0)
            ...     text = pathlib.Path(files[0]).read_text()
            >>> print(text[text.index("void bell_value") : text.index("int bell_value")].strip())
            void bell_value(const double *inputs, double *outputs)
            {
                const double x = inputs[0];
                double tanh_1 = tanh(x);
                double product_1 = x * tanh_1;
                outputs[0] = product_1;
            }
        """
        from micrograd.compiler.calling.export import export  # what writes C takes as long to load as to trace a loop

        with self._lock:
            return export(
                self.function,
                path,
                arguments,
                named,
                name=name,
                overwrite=overwrite,
                parameters=parameters,
                precision=precision,
                work=work,
                gradients=gradients,
                disable=self._disable,
            )

    def address(self, *arguments: Any, signature: str | None = None, **named: Any) -> NativeFunction:
        """The native function, for inner loops that call it without Python: SciPy's, Numba's, or in C.

        It computes what the function gives, but raises nothing: there are infinities and NaNs then. Threads may call it
        at the same time. The Values that the function reads have the numbers that they have now.

        Args:
            *arguments: examples, for their structure: which numbers they hold is of no consequence.
            signature: one of those below; by default the first that fits.

                - ``double (double)``: one number, and one result
                - ``double (int, double *)``: how many numbers there are (which is not looked at), and these
                - ``void (double *, double *, double *)``: inputs, outputs, and for one result its gradients by the
                  inputs, and then by the Values that the function reads
                - ``int (double *, intptr_t, double *, void *)``: as ``scipy.ndimage.generic_filter`` takes it

            **named: the same as the arguments.

        Returns:
            An object with the ``address``, the ``signature`` and a ``pointer`` of ctypes, which
            ``scipy.LowLevelCallable`` takes. The address is valid for as long as this object or its pointer lives.

        Raises:
            ValueError: if there is no such signature, it does not fit, or a primitive is Python code.
            ImportError: if llvmlite is not installed.
            TraceError: as calls do.

        Example:
            >>> import micrograd as mg
            >>> from scipy import LowLevelCallable
            >>> from scipy.integrate import quad
            >>> bell = mg.compile(lambda x: mg.exp(-x * x)).address(0.5)
            >>> bell.signature
            'double (double)'
            >>> round(quad(LowLevelCallable(bell.pointer), -10.0, 10.0)[0], 10)
            1.7724538509
        """
        with self._lock:
            return native_function(self.function, Structure.of_call(arguments, named), signature, self._disable)

    def _compiled_for(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Program:
        """The program for these arguments; without any, that of the last call."""
        with self._lock:
            special, _ = self._asked_for(arguments, named)
            return special.compiled(True).program

    def _asked_for(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Specialised, Structure]:
        """The programs for these arguments, and their structure; without any, the programs of the last call."""
        with self._lock:
            if (places := places_of(arguments, named)) is not None:
                for_masks = self._masks.of(self.function, places, arguments, named)
                if for_masks is not None:
                    changed, settings = places.changed(arguments, named, as_floats)
                    return for_masks._asked_for(tuple(changed), settings)
            elif not arguments and not named and self._for_masks is not None:
                return self._for_masks._asked_for((), {})
            given = Structure.of_call(arguments, named)
            if not arguments and not named and self._last is not None:
                last = self._last.merged or (self._last.paths.last if self._last.paths else self._last)
                return last, given
            if not (arguments or named) and _needs_arguments(self.function):
                raise ValueError(f"{self} has not been called: call it, or give program() or explain() its arguments")
            try:
                special = self._specialise(given)
                return self._on_its_path(special, given, False)[0] if special.questions else special, given
            except UndecidedError as error:
                undecided = error
            if undecided.raised is not None:
                self.function(*arguments, **named)  # mostly it raises, too
            raise undecided.raised or undecided from None

    def _of_masks(self, function: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> Any:
        """The compiled function of masks that are data; None where it asks more than it did for a mask that is not."""
        made: CompiledFunction[..., Any] = CompiledFunction(function, *self._settings)
        try:
            special = made._specialise(Structure.of_call(tuple(arguments), named))
        except Exception as error:
            if is_of_handler(error):
                raise
            return None
        asked = () if self._last is None else self._last.questions
        return made if len(special.questions) <= len(asked) else None

    def _specialised(self, given: Structure, **told: Any) -> Specialised:
        return Specialised(self._source(given, **told), self._backend, self._disable, self._verify)

    def _traced(self, given: Structure, is_recorded: bool = True, answers: Sequence[float] = ()) -> Specialised:
        rows = self._rows.get(is_recorded)
        if rows is None:
            make = partial(self._specialised, is_recorded=is_recorded)
            rows = self._rows[is_recorded] = ManyRows(self.function, make)
        return rows.of(given, self._count_trace, answers)

    def _count_trace(self) -> None:
        self._kept.traces += 1
        _LOG.debug("%r: trace number %d", self, self._kept.traces)

    def _specialise(self, given: Structure) -> Specialised:
        """The programs for these arguments, traced again where there are none, or gradients are wanted elsewhere."""
        special = self._kept.programs.get(given.key)
        if special is None:
            special = self._traced(given)
            if self._kept.add(given, special):
                _warn_of_objects(self, given.objects)
        elif special.is_outdated():
            retraced = max(special.retraced, 0) + 1
            _LOG.debug("%r: something that it reads was replaced", self)
            if retraced == TOO_OFTEN:
                _warn_of_retraces(self, special.closed_over.change())
            special = self._kept.programs[given.key] = self._traced(given)
            special.retraced = retraced
        else:
            special.retraced = 0
            if special is not self._last:
                _LOG.debug("%r: one of %d kept programs is for these arguments", self, len(self._kept.programs))
        if special is not self._last:
            self._kept.use(given)
            self._last = special
        return special

    def _found(self, given: Structure, remembers: bool) -> tuple[Specialised, Any]:
        """The programs that have run, and what _run gives."""
        special = self._specialise(given)
        if not remembers:
            special = special.under_no_grad(given)
        if special.questions:
            return self._on_its_path(special, given, remembers)
        return special, self._run(special, given, remembers and special.is_differentiable)

    def _on_its_path(self, special: Specialised, given: Structure, remembers: bool) -> tuple[Specialised, Any]:
        """The same where the function decides on numbers: the path that it takes for these is traced if it is new."""
        if special.merged is not None:
            return special.merged, self._run(special.merged, given, remembers and special.merged.is_differentiable)
        is_new = special.paths is None  # one that was traced in this call is not outdated by what it did itself
        if special.paths is None:
            special.paths = Paths(special, self._paths)
        paths = special.paths
        path = paths.last
        if not paths.are_worth_a_run():
            return path, None
        # Each has an answer more that holds, but for rounding
        for _ in range(len(paths) + _MOST_GUESSED):  # pragma: no branch  # it ends before where guesses are good
            following: Specialised | bool = True
            answers: list[float] = []
            if not is_new and path is not self._last and path.is_outdated():  # that one has been looked at
                paths.forget(path)
            else:
                found = self._run(path, given, remembers and path.is_differentiable)
                if not isinstance(found, bytes):
                    paths.use(path)
                    return path, found
                following = paths.after(path, found)
                if following is False or (following is True and not paths.may_trace(path, found, self)):
                    break
                answers = holding(path, found)
            is_new = following is True
            if is_new:
                if self._merge(special, len(path.questions), given):
                    return self._on_its_path(special, given, remembers)
                paths.count()
                following = self._traced(given, special.is_recorded, answers)
                paths.add(following)
            path = following
        return path, None

    def _merge(self, special: Specialised, asked: int, given: Structure) -> bool:
        """Let all that a function asks many times be data, if that can be, when a second path is needed."""
        is_worth_it = asked >= _MANY_QUESTIONS and len(special.paths) == 1 and not special.is_of_rows
        if not is_worth_it or self._backend.decide is None or special.is_outdated():
            return False
        try:
            special.merged = self._specialised(given, is_recorded=special.is_recorded, asked=asked)
        except (UnlikeError, TraceError, ValueError, ArithmeticError) as error:
            _LOG.debug("%r: its %d questions cannot be data: %r", self, asked, error)
            return False
        self._kept.traces += 1
        return True

    def _run(
        self, special: Specialised, given: Structure, differentiable: bool
    ) -> tuple[Floats, list[Any]] | bytes | None:
        """The outputs, and a Value for each that is one; or the answers to questions, if they are not the program's.

        None if the function must run eagerly: a number is not finite, or a gradient has no program.
        """
        kinds = special.results.kinds
        if not kinds or (special.only_eager and differentiable) or special.confuses(given):
            return None
        if special.takes_numbers and is_differentiated():
            return None  # eager, it raises where that would lose a gradient
        try:
            compiled = special.compiled(differentiable and len(kinds) == 1)
        except (ValueError, ArithmeticError):  # the rule of a primitive raises: eager, only backward() would
            special.only_eager = True
            return None
        inputs = special.numbers(given)
        numbers, gradients = compiled.run(inputs)
        self._ran = (special, compiled, inputs) if len(inputs) <= MOST_INPUTS else None
        if self._quick is not None:
            self._quick.last_call = None
        if special.questions:  # what the others hold is not looked at before it is known that these are the results
            numbers, answers = numbers[: len(kinds)], numbers[len(kinds) :].tobytes()
            if answers != special.answers:
                self._ran = None
                return answers
        if not (all_finite(numbers) and all_finite(gradients)):
            return None
        if not special.results.has_values:
            self._quicken(special, compiled, given)
            return numbers, []
        if not differentiable:
            pairs = zip(numbers.tolist(), kinds, strict=True)
            return numbers, [None if kind else Value(number, requires_grad=False) for number, kind in pairs]
        operands = special.trained  # which are not copied: there may be millions
        if given.has_values:
            operands = (*operands, *given.operands())
        written = self._as_written, special, given, numbers
        if len(kinds) == 1:
            self._quicken(special, compiled, given)
            return numbers, [node_of_call(Call, compiled.origin, inputs, gradients, written, numbers.item(), operands)]
        of_seeds = partial(self._gradients, special, given, inputs, operands)
        call = node_of_call(CallOfSeveral, compiled.origin, inputs, of_seeds, written, 0.0, operands)
        while len(self._parts) < len(kinds):
            self._parts.append(OneOfSeveral(special.name, len(self._parts)))
        made = zip(numbers.tolist(), self._parts, kinds, special.requires_grad, strict=False)
        return numbers, [
            None if kind else part.node(number, call) if reached else Value(number, requires_grad=False)
            for number, part, kind, reached in made
        ]

    def _quicken(self, special: Specialised, compiled: Compiled, given: Structure) -> None:
        """Do the next calls in a quicker way, if they are alike and that can be done."""
        owner = self._last
        if owner is None or not (special.gives_one_number or special.gives_numbers):
            return
        if special in (owner, owner.merged) or (special.paths is not None and special.paths is owner.paths):
            if special.quick is None:
                common = owner, special, compiled, self._as_written, self._lock
                special.quick = Quick.of(given, *common)
                if special.quick is None and special is not owner.merged:
                    special.quick = QuickOfArrays.of(given, *common)
            self._quick = special.quick

    def _gradients(
        self, special: Specialised, given: Structure, inputs: Floats, operands: tuple[Value, ...], seeds: Floats
    ) -> Floats:
        """The gradients for those of several outputs. If one is not finite, or there is no program, eager ones."""
        try:
            with self._lock:
                outputs, found = special.compiled(True).run(np.append(inputs, seeds))
            if all_finite(outputs) and all_finite(found):
                return found
        except (ValueError, ArithmeticError):  # the rule of a primitive raises
            special.only_eager = True
        if not np.array_equal(special.numbers(Structure(given.nested)), inputs):
            raise ValueError(f"numbers that {self} read have changed since the call; call it again")
        results = self._as_written(special, given)
        weighted = [(result, seed) for result, seed in zip(results, seeds.tolist(), strict=True) if seed]
        with differentiating():
            terms = [result * seed for result, seed in weighted]
            total = sum(terms, Value(0.0, requires_grad=False))
            slopes = partial_gradients(total, 1.0, operands, operands, create_graph=False)
        return np.array([slopes.get(operand, 0.0) for operand in operands])

    def _as_written(self, special: Specialised, given: Structure, outputs: Floats | None = None) -> list[Any]:
        """The results that the function gives as it is written, if they are still those of the program."""
        positional, named = given.nested
        with differentiating():
            leaves = Structure(self.function(*positional, **named)).leaves
        found = zip(leaves, special.results.outputs, strict=True)
        results = [leaf for leaf, output in found if output is not None]  # also one that is there twice
        numbers = [result.data if isinstance(result, Value) else float(result) for result in results]
        if outputs is not None and not self._is_rounded and not np.allclose(numbers, outputs, 1e-6, 1e-9):
            raise ValueError(f"{self} gives other numbers now than at the call, as something it read was replaced")
        return results

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__name__', self.function)!s}>"


def _warn_of_retraces(compiled: CompiledFunction[..., Any], what: str) -> None:
    warn_user(
        f"{compiled} was traced again at each of {TOO_OFTEN} calls, as {what} was replaced before each: that takes "
        f"longer than it runs. Make a number that changes an argument, and change the data of a Value"
    )


def _warn_of_objects(compiled: CompiledFunction[..., Any], objects: tuple[Any, ...]) -> None:
    functions = FunctionType, MethodType
    kinds = [f"function {item.__name__}" if isinstance(item, functions) else type(item).__name__ for item in objects]
    names = " and ".join(dict.fromkeys(kinds))
    warn_user(
        f"{compiled} was traced for {ROOM + 1} objects in its arguments, the last a {names}, and the first was not "
        f"given again: that takes longer than it runs. Make such an object once, before the calls, and give the same "
        f"one; make what changes in it a number of its own among the arguments. The last {ROOM} programs are kept"
    )


def _needs_arguments(function: Callable[..., Any]) -> bool:
    try:
        signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a function written in C may not say what it takes
        return False
    return False
