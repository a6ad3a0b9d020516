"""Sources: what gives another number each time it is asked, and how a trace that asks one is refused.

Random numbers, the clock, files and iterators would be frozen into a program. Generators of random numbers and
iterators have a state, which is compared after the trace. Calls of the clock and the system leave nothing to compare:
where the code mentions a library function that is not known to be pure, a profile function (``sys.setprofile``) looks
for them during the trace. Other traces are not slowed down.
"""

from __future__ import annotations

import gc
import operator
import pickle
import random
import sys
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import compress, count, cycle, repeat
from threading import active_count, get_ident
from types import BuiltinFunctionType, FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from micrograd.compiler.guards.code_names import line_of_made_name, line_that_loads, nested_in
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.compiler.guards.refusals import TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from types import CodeType, FrameType

    Line = tuple[str, int]

AnyFunction = TypeVar("AnyFunction", bound="Callable[..., Any]")

_RANDOM = (
    "a random number is drawn",
    "Draw it outside, and pass it as an argument; fit draws random numbers for each step, with noise=",
)
_ENTROPY = (
    "a random number of the system is drawn",
    "Draw it outside, and pass it as an argument. A generator may be made inside if it has a seed: "
    "np.random.default_rng(seed). np.random.RandomState(seed) asks the system before it is seeded, so make it outside",
)
_CLOCK = ("the clock is read", "Read it outside, and pass it as an argument")
_CONVERSION = (
    "the clock may be read",
    "Where it is given a time, it reads no clock, but that cannot be told: call it outside, and pass what it gives as "
    "an argument",
)
_SYSTEM = ("a file or the system is read", "Read it outside, and pass it as an argument")
_ITERATOR = ("an iterator is read", "Take what it gives outside, and pass it as an argument")

_READS_NOTHING = frozenset(
    [
        *("cpu_count", "get_terminal_size", "uname"),  # they do not change, or change how a text looks
        *("_exit", "abort", "close", "fork", "fspath", "isatty", "kill", "killpg", "mkdir", "pipe", "putenv"),
        *("register_at_fork", "remove", "rename", "replace", "rmdir", "unlink", "unsetenv", "waitpid", "write"),
    ]
)
# What functions written in C read, by their modules; and those functions that read nothing.
_READS: dict[str, tuple[tuple[str, str], frozenset[str]]] = {
    "time": (_CLOCK, frozenset(("sleep", "mktime", "strptime", "get_clock_info"))),
    **dict.fromkeys(("posix", "nt"), (_SYSTEM, _READS_NOTHING)),
    **dict.fromkeys(("_socket", "_posixsubprocess", "_winapi", "select", "resource"), (_SYSTEM, frozenset())),
    "_uuid": (_CLOCK, frozenset()),
}
_STATE = ("the state of Python is read", "Read it outside, and pass it as an argument")
_MADE_NAME = ("a global is read by a name that is made at run time", "Read it outside, and pass it as an argument")
_ADDRESS = ("memory is read by its address", "Read it outside, and pass it as an argument")
# What the user's code asks of these, directly
_TELLS_STATE = {
    "gc": frozenset(("get_count", "get_objects", "get_referents", "get_referrers", "get_stats", "isenabled")),
    "sys": frozenset(("getrefcount", "getallocatedblocks", "_current_frames", "getprofile", "gettrace")),
    "_signal": frozenset(("getitimer", "sigpending")),
    "_thread": frozenset(("stack_size",)),
}
_BY_ADDRESS = frozenset(("string_at", "wstring_at", "cast", "from_address"))
_SUSPICIOUS = frozenset(
    [
        *_BY_ADDRESS,
        *(name for names in _TELLS_STATE.values() for name in names),
        *("eval", "exec", "getattr", "attrgetter", "methodcaller", "__getattribute__", "vars", "__dict__"),
        *("FunctionType", "globals", "__globals__", "f_globals", "modules", "__import__", "import_module"),
    ]
)
_DRAWS_ENTROPY = "urandom"
_CONVERTS = frozenset(("gmtime", "localtime", "strftime", "ctime", "asctime"))
_OPENS = frozenset(("open", "open_code", "input", "fromfile"))
_OPENS_OF_NUMPY = frozenset(("fromfile", "genfromtxt", "load", "loadtxt", "memmap", "fromregex"))
_TELLS_TIME = frozenset(("now", "utcnow", "today"))
# Who calls such functions for other purposes than numbers.
_EXCUSED = frozenset(
    [
        *("importlib", "logging", "warnings", "traceback", "linecache", "threading", "multiprocessing", "concurrent"),
        *("joblib", "threadpoolctl", "tqdm", "_pytest", "coverage"),
    ]
)
# The functions of these modules ask no source, but for those of numpy.random.
_NAMES_OF_PURE = """
abc bisect cmath collections contextlib copy dataclasses decimal enum fractions functools heapq inspect itertools
json logging math micrograd numbers numpy operator pprint re string textwrap types typing warnings
weakref jax jaxlib _operator _functools _collections _weakref _abc _struct struct gc builtins contextvars
_contextvars pytest _pytest threading _thread array _bisect _heapq _json argparse ctypes _ctypes
queue _queue ast base64 binascii _codecs colorsys copyreg csv _csv difflib errno fnmatch graphlib hashlib
_hashlib hmac html ipaddress keyword marshal pickle _pickle reprlib shlex stat _stat symtable token
unicodedata unittest zlib
"""
_PURE = frozenset(_NAMES_OF_PURE.split())
_PURE_OF_PATHS = frozenset(
    [
        *("basename", "commonpath", "commonprefix", "dirname", "fspath", "isabs", "join", "normcase", "normpath"),
        *("split", "splitdrive", "splitext", "splitroot"),
    ]
)
_PATHS = frozenset(("posixpath", "ntpath", "genericpath", "posix", "nt"))
_PURE_PARTS = ("urllib.parse", "scipy.special", "scipy.fft")
_DRAWS = ("micrograd.nn", "micrograd.learn", "micrograd.testing", "micrograd.training")  # weights, data, programs


class _State(NamedTuple):
    """A generator of random numbers: how to read its state, and how to set it.

    Attributes:
        watched: one of Python's, whose calls a profile function sees; None for others.
    """

    get: Callable[[], Any]
    set: Callable[[Any], Any]
    watched: random.Random | None = None


class Sources:
    """The sources that a function reaches.

    Attributes:
        generators: of random numbers, beside those of Python and NumPy that all functions share.
        iterators: each with how it is written.
        unwatched: objects whose state cannot be read, each with how it is written.
        is_suspicious: whether the code mentions library functions that may ask a source.
        strange: code of the user that the trace ran and that was not reached before, with its globals.
    """

    def __init__(self) -> None:
        self.generators: list[_State] = []
        self.iterators: list[tuple[str, Any]] = []
        self.unwatched: list[tuple[str, Any]] = []
        self.is_suspicious = False
        self.strange: dict[CodeType, dict[str, Any]] = {}

    def take(self, path: str, item: Any) -> bool:
        """Whether an object is a source; it is kept then."""
        kind = type(item)
        if (state := _state_of(item)) is not None:
            self.generators.append(state)
        elif hasattr(kind, "__next__") and is_foreign(kind.__module__) and not hasattr(kind, "getvalue"):
            self.iterators.append((path, item))
            self.is_suspicious = True
        else:
            return False
        return True

    def take_unwatched(self, path: str, item: Any) -> None:
        """Take note of an object whose state cannot be read: a trace that calls its methods is refused."""
        self.unwatched.append((path, item))
        self.is_suspicious = True

    def suspect(self, item: Any) -> None:
        """Take note of a function or class that the code mentions."""
        owner = getattr(item, "__self__", None)  # of a method written in C, which has no module
        home = owner if isinstance(owner, type) else type(owner)
        module = str(getattr(item, "__module__", None) or ("" if owner is None else home.__module__))
        if not module or (not is_foreign(module) and not isinstance(item, BuiltinFunctionType)):
            return
        name = getattr(item, "__name__", "")
        is_pure = module.partition(".")[0] in _PURE or module.startswith(_PURE_PARTS)
        is_pure = is_pure or (module in _PATHS and name in _PURE_OF_PATHS)
        draws = not is_pure or "random" in module or module.startswith(_DRAWS)
        reads = item is input or name in _OPENS_OF_NUMPY
        self.is_suspicious = self.is_suspicious or draws or reads

    def suspect_module(self, name: str) -> None:
        """Take note of a library from which code may take any function, by a name that is made at run time."""
        self.is_suspicious = self.is_suspicious or name.partition(".")[0] not in _PURE

    def suspect_names(self, names: frozenset[str]) -> None:
        """Take note of the names in code, by some of which it may run code that is not reached, or ask a source."""
        self.is_suspicious = self.is_suspicious or not _SUSPICIOUS.isdisjoint(names)

    @contextmanager
    def refusing_more(self) -> Generator[None, None, None]:
        """Refuse sources that are only reached inside: their state before the trace is not known."""
        before = len(self.generators), len(self.iterators)
        yield
        if len(self.generators) > before[0]:
            _refuse(_RANDOM, None)
        if len(self.iterators) > before[1]:
            _refuse(_ITERATOR, None, self.iterators[-1][0])

    def refusing(self, codes: Iterable[CodeType], run: Callable[[], Any]) -> Any:
        """What a trace gives; it is refused if it asks a source.

        Args:
            codes: the code that the trace runs, for lines.
            run: the trace. If random numbers are drawn it runs once more, to find the line.

        Raises:
            TraceError: if a source is asked; random generators have the state then that they had before.
        """
        if self.is_suspicious:
            self.generators += _shared()
        states = self._states()
        before = [pickle.dumps(state) for state in states]
        positions = [_position(iterator) for _, iterator in self.iterators]
        observer = _Observer(self, codes)
        if self.is_suspicious:
            with observer.profiling():
                result = run()
        else:
            result = run()
        if observer.found is not None:
            _refuse(*observer.found)
        self.strange = observer.strange
        for (path, iterator), position in zip(self.iterators, positions, strict=True):
            if _position(iterator) != position:
                name = path.partition("[")[0].rpartition(".")[2]
                _refuse(_ITERATOR, line_that_loads(codes, name), path)
        after = [pickle.dumps(state) for state in self._states()]
        if after != before and self._has_drawn(compress(self.generators, map(operator.ne, before, after)), run):
            finder = _LineFinder(lambda: [pickle.dumps(state) for state in self._states()])
            with suppress(Exception), finder.tracing():
                run()
            if finder.has_changed():
                for generator, state in zip(self.generators, states, strict=True):
                    generator.set(state)
                _refuse(_RANDOM, finder.line)
        return result

    def _has_drawn(self, changed: Iterable[_State], run: Callable[[], Any]) -> bool:
        """Whether the trace has drawn random numbers, and not only other threads meanwhile."""
        drawn_from = Sources()
        for generator in changed:
            if active_count() == 1 or generator.watched is None:
                return True
            drawn_from.take_unwatched("", generator.watched)
        observer = _Observer(drawn_from)
        with observer.profiling(), suppress(Exception):
            run()
        return observer.found is not None

    @contextmanager
    def restored(self) -> Generator[None, None, None]:
        """Let random generators have the states afterwards that they have now."""
        generators = [*self.generators, *(_shared() if self.is_suspicious else ())]
        states = [generator.get() for generator in generators]
        try:
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.set(state)

    def _states(self) -> list[Any]:
        return [generator.get() for generator in self.generators]


def _shared() -> list[_State]:
    """The generators that are used by functions such as random.random."""
    torch: Any = sys.modules.get("torch")
    return [
        _State(random.getstate, random.setstate, random.random.__self__),  # type: ignore[attr-defined]  # a method
        _State(lambda: np.random.get_state(legacy=False), np.random.set_state),
        *([_state_of_torch(torch.get_rng_state, torch.set_rng_state)] if hasattr(torch, "get_rng_state") else []),
    ]


def _state_of(item: Any) -> _State | None:
    """The state of a generator of random numbers; None for anything else."""
    kind = type(item)
    if issubclass(kind, random.Random):
        return None if issubclass(kind, random.SystemRandom) else _State(item.getstate, item.setstate, item)
    if issubclass(kind, np.random.RandomState):
        return _State(lambda: item.get_state(legacy=False), item.set_state)
    if issubclass(kind, (np.random.Generator, np.random.BitGenerator)):
        bits = getattr(item, "bit_generator", item)
        return _State(lambda: bits.state, lambda state: setattr(bits, "state", state))
    if kind.__module__ == "torch._C" and hasattr(kind, "get_state"):
        return _state_of_torch(item.get_state, item.set_state)
    return None


def _state_of_torch(get: Callable[[], Any], put: Callable[[Any], Any]) -> _State:
    """The state of a generator of PyTorch as an array, as the pickle of a tensor may be another one each time."""
    return _State(lambda: np.asarray(get()), lambda state: put(sys.modules["torch"].as_tensor(state)))


def _position(iterator: Any) -> Any:
    """A position that changes when the iterator is read."""
    kind = type(iterator)
    if kind in (GeneratorType, repeat):  # the observer sees the one run, and the other has nothing but one number
        return None
    if kind is count:
        return repr(iterator)
    if hasattr(kind, "line_num"):  # of the module csv
        return iterator.line_num
    if kind is np.flatiter:
        return iterator.index
    if kind is np.nditer:  # its index is the same before and after the first step
        return object()
    if hasattr(kind, "tell"):
        return _position_in(iterator)
    if (hint := operator.length_hint(iterator, -1)) >= 0:
        return hint
    parts = [part for item in gc.get_referents(iterator) for part in (item if type(item) is tuple else [item])]
    inner = [part for part in parts if hasattr(type(part), "__next__")] if kind is not cycle else []
    return [_position(part) for part in inner] or object()


def _position_in(file: Any) -> Any:
    try:
        return None if file.closed or file.writable() else file.tell()
    except OSError:  # while it is read line by line
        return object()


class _Observer:
    """A profile function that finds the first call of a source.

    Attributes:
        is_paused: whether it rests until the end of a function that is called resuming.
        found: what is asked, the line, and how the object is written; None if nothing is asked.
        strange: code of the user that is run and not known, with its globals.
    """

    def __init__(self, sources: Sources, codes: Iterable[CodeType] = ()) -> None:
        codes = list(codes) if sources.is_suspicious else []
        self._known = {id(nested) for code in codes for nested in nested_in(code)}
        self.strange: dict[CodeType, dict[str, Any]] = {}
        lines = ((code, line_of_made_name(code)) for top in codes for code in nested_in(top))
        self._made_names = {id(code): (code.co_filename, line) for code, line in lines if line is not None}
        self._unwatched = {id(item): path for path, item in sources.unwatched}
        self._generators = [(path, item) for path, item in sources.iterators if isinstance(item, GeneratorType)]
        self._outer: Any = None
        self._thread = get_ident()
        self._is_resting = self.is_paused = False
        self.found: tuple[tuple[str, str], Line | None, str] | None = None

    @contextmanager
    def profiling(self) -> Generator[None, None, None]:
        """Observe this thread inside; the profiler that there is goes on."""
        outer = sys.getprofile()
        stops = hasattr(outer, "disable")  # one written in C, as that of cProfile: it must rest meanwhile
        self._outer = None if stops else outer
        if stops:
            outer.disable()  # type: ignore[union-attr]  # it has it
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(self._outer)
            if stops:
                outer.enable()  # type: ignore[union-attr]  # as above

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """A call, of Python or C, begins or ends."""
        if self._outer is not None:
            self._outer(frame, event, argument)
        elif event == "call" and frame.f_code in _RESUMING:
            self.is_paused = self.rest()
            return
        if self.found is not None:
            return
        if event == "c_call":
            what, path = self._asked_by(argument, frame)
        elif event == "call":
            if id(frame.f_code) not in self._known:
                self._take(frame)
            what, path = self._resumed(frame)
        else:
            return
        if what is not None and _is_of_user(frame) and not _is_of_collector(frame):
            line = self._made_names[id(frame.f_code)] if what is _MADE_NAME else _line_of_user(frame)
            self.found = what, line, path

    def rest(self) -> bool:
        """Observe nothing until resume is called; whether it has observed this thread until now."""
        if self._is_resting or self._outer is not None or sys.getprofile() is not self:
            return False
        sys.setprofile(None)
        self._is_resting = True
        return True

    def resume(self) -> bool:
        """Observe again; whether it has rested in this thread."""
        if not self._is_resting or get_ident() != self._thread:
            return False
        self._is_resting = self.is_paused = False
        sys.setprofile(self)
        return True

    def _take(self, frame: FrameType) -> None:
        """Take note of code of the user that was not reached before the trace, and that such code calls."""
        code, caller = frame.f_code, frame.f_back
        if caller is None or id(caller.f_code) not in self._known or is_foreign(_module_of(frame)):
            return
        if not _is_of_collector(frame):
            self.strange[code] = frame.f_globals
            self._known.update(map(id, nested_in(code)))

    def _asked_by(self, function: Any, frame: FrameType) -> tuple[tuple[str, str] | None, str]:
        name, owner, module = function.__name__, getattr(function, "__self__", None), function.__module__
        if name in _TELLS_STATE.get(module, ()) and (module == "_signal" or not is_foreign(_module_of(frame))):
            return _STATE, ""
        if name == "from_address" and isinstance(owner, type):
            return _ADDRESS, ""
        if name == _DRAWS_ENTROPY and module in _READS:
            return _ENTROPY, ""
        if module in _READS and name not in _READS[module][1]:
            return (_CONVERSION if module == "time" and name in _CONVERTS else _READS[module][0]), ""
        if name in _OPENS and isinstance(function, BuiltinFunctionType) and module is not None:
            return _SYSTEM, ""
        if name in _TELLS_TIME and isinstance(owner, type) and owner.__module__ == "datetime":
            return _CLOCK, ""
        if name.startswith("read") and type(owner).__module__ == "_io" and hasattr(owner, "fileno"):
            return (None if hasattr(owner, "getvalue") else _SYSTEM), ""
        if id(owner) in self._unwatched:
            return (f"a {type(owner).__name__} is asked", _SYSTEM[1]), self._unwatched[id(owner)]
        return None, ""

    def _resumed(self, frame: FrameType) -> tuple[tuple[str, str] | None, str]:
        if id(frame.f_code) in self._made_names:
            return _MADE_NAME, ""
        if frame.f_code.co_name in _BY_ADDRESS and _module_of(frame) == "ctypes":
            return _ADDRESS, ""
        if frame.f_code is random.Random.seed.__code__ and frame.f_locals.get("a") is None:
            return _ENTROPY, ""
        if _module_of(frame) == random.__name__ and id(frame.f_locals.get("self")) in self._unwatched:
            return _RANDOM, ""  # gauss keeps a number for its next call, and then asks nothing written in C
        for path, generator in self._generators:
            if generator.gi_code is frame.f_code and generator.gi_frame is frame:
                return _ITERATOR, path
        return None, ""


_RESUMING: set[CodeType] = set()


def resuming(function: AnyFunction) -> AnyFunction:
    """Declare that a function asks no source, and calls resume() of an observer that was paused at its call."""
    _RESUMING.add(function.__code__)
    return function


def observing() -> _Observer | None:
    """What observes this thread."""
    found = sys.getprofile()
    return found if isinstance(found, _Observer) else None


@contextmanager
def resting(observer: _Observer | None, rests: bool = True) -> Generator[None, None, None]:
    """Pause an observer while the library's own code runs, whose calls would cost several times as much."""
    begin, end = (_Observer.rest, _Observer.resume) if rests else (_Observer.resume, _Observer.rest)
    is_changed = observer is not None and begin(observer)
    try:
        yield
    finally:
        if observer is not None and is_changed:
            end(observer)


def observing_again(observer: _Observer | None) -> AbstractContextManager[None]:
    """Resume an observer while code of the user runs."""
    return resting(observer, rests=False)


def _is_of_collector(frame: FrameType | None) -> bool:
    """Whether a callback of the garbage collector runs, which may come at any moment."""
    codes = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None


class _LineFinder:
    """A trace function that finds the first line of the user's after which a state is another one.

    Args:
        read: gives the state.

    Attributes:
        line: the line; None before it is found.
    """

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read, self._before = read, read()
        self._last: Line | None = None
        self.line: Line | None = None

    @contextmanager
    def tracing(self) -> Generator[None, None, None]:
        """Look at each line of this thread inside; a debugger rests meanwhile."""
        outer = sys.gettrace()
        sys.settrace(self)
        try:
            yield
        finally:
            sys.settrace(outer)

    def has_changed(self) -> bool:
        """Whether the state is another one now."""
        is_changed: bool = self._read() != self._before
        if is_changed and self.line is None:
            self.line = self._last
        return is_changed

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        """A line begins, or a function begins or ends."""
        if self.line is not None or is_foreign(_module_of(frame)):
            return None
        if not self.has_changed():
            self._last = _line_of_user(frame.f_back if event == "return" else frame)
        return self


def _is_of_user(frame: FrameType | None) -> bool:
    """Whether the traced function calls it, directly or through libraries, but for those that are excused."""
    found = False
    while frame is not None:
        module = _module_of(frame)
        if module == __name__:
            break
        if module.partition(".")[0] in _EXCUSED:
            return False
        found = found or not is_foreign(module)
        frame = frame.f_back
    return found


def _module_of(frame: FrameType) -> Any:
    return frame.f_globals.get("__name__", "")


def _line_of_user(frame: FrameType | None) -> Line | None:
    while frame is not None and is_foreign(_module_of(frame)):
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _refuse(what: tuple[str, str], line: Line | None, path: str = "") -> None:
    event, instead = what
    where = ", ".join(filter(None, (path, f"{line[0]}:{line[1]}" if line else "")))
    raise TraceError(
        f"{event}{f' ({where})' if where else ''}: a compiled function runs once, on symbols, so the program would "
        f"have what was read there at every later call. {instead}"
    )


def mentions(item: Any) -> bool:
    """Whether an object that code mentions is a function or class, which may ask a source."""
    return isinstance(item, (BuiltinFunctionType, FunctionType, type)) or (
        callable(item) and type(getattr(item, "__name__", None)) is str and is_foreign(type(item).__module__)
    )
