"""Faults, one at a time, at every position where something can fail. What is all or nothing must be so under each.

    raised, reached = run(action, "call", 0, MemoryError())      # the first call of a function fails

Three kinds of positions are counted while an action runs: calls of functions, positions where Python looks for
signals, and allocations. The action is run again and again: the first place fails, then the second, and so on, until
the action ends without reaching the position. SQLite is tested in this way.
"""

import dis
import gc
import importlib
import subprocess
import sys
import threading
import traceback

from micrograd._support import locks
from micrograd.engine import commit, recorder
from micrograd.engine.differentiation import running

try:
    import _testcapi
except ImportError:  # not every Python has it
    _testcapi = None


class HandlerError(Exception):
    """What the handler of a signal raises, such as that of SIGALRM."""


ERRORS = {
    "call": (RecursionError, MemoryError),
    "signal": (KeyboardInterrupt, SystemExit, HandlerError),
    "memory": (MemoryError,),
}
IN_A_ROW = 40  # after so many failed allocations that changed nothing, an action is taken to need no more

# What leaves a lock, and what carries a plan out: both were entered, or rehearsed, from the same position before.
_SAFE = ("__exit__", "extend")
# Loops that may be long begin with these: each jump back goes to one, and to another line.
_HEADS = {dis.opmap["FOR_ITER"]}
# After these instructions Python looks for signals: calls, the jumps back of loops, and the start of a function.
_LOOKS = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD", "RESUME"))}


def run(action, kind, position, error):
    """Run an action while one position fails, of which the first is 0; what it raised, and whether it got there."""
    gc.disable()  # what others have left is not collected here, where its finalizers would fail
    try:
        return _run(action, kind, position, error)
    finally:
        gc.enable()


def _run(action, kind, position, error):
    if kind == "memory":
        return _without_memory(action, position)
    count = _Count(position, error)
    tracing = kind == "signal"
    before = sys.gettrace() if tracing else sys.getprofile()
    sys._getframe().f_trace_opcodes = tracing  # Python 3.12 traces no instructions if this comes after the next line
    (sys.settrace if tracing else sys.setprofile)(count.at_instruction if tracing else count.at_call)
    try:
        action()
    except BaseException as raised:
        return raised, count.reached
    finally:
        (sys.settrace if tracing else sys.setprofile)(before)
    return None, count.reached


def _without_memory(action, position):
    raised, tracing = None, sys.gettrace()
    sys.settrace(None)  # what measures the coverage is not to run short
    _testcapi.set_nomemory(position, position + 1)
    try:
        action()
    except BaseException as error:
        raised = error
    finally:
        _testcapi.remove_mem_hooks()
        sys.settrace(tracing)
    return raised, raised is not None


class _Count:
    """Counts positions down, and lets the one at 0 fail."""

    def __init__(self, position, error):
        self.left, self.error, self.reached = position, error, False

    def one(self):
        self.left -= 1
        if self.left == -1:
            self.reached = True
            raise self.error

    def at_call(self, frame, event, function):
        counts = not _is_resumed(frame) if event == "call" else event == "c_call" and function.__name__ not in _SAFE
        if counts and is_library(frame):
            self.one()

    def at_instruction(self, frame, event, _):
        if event != "call" or not is_library(frame):
            return None
        frame.f_trace_opcodes = True
        return _Called(self.one, frame.f_code.co_code)


class _Called:
    """Traces the instructions of a function that is called: all that can be known of it at once was asked once."""

    __slots__ = ("after_a_look", "code", "one")

    def __init__(self, one, code):
        self.one, self.code, self.after_a_look = one, code, True

    def __call__(self, frame, event, _):
        if event == "opcode":
            if self.after_a_look:
                self.after_a_look = False
                self.one()
            self.after_a_look = self.code[frame.f_lasti] in _LOOKS
        elif event != "line" or self.code[frame.f_lasti] not in _HEADS:
            # It returns, or a call in it has raised: then Python does not look. On a new line, what it has looked at
            # stands in another block, maybe; but a loop has jumped back to its head.
            self.after_a_look = False
        return self


def _is_resumed(frame):
    """Whether a generator goes on: with as much of the stack as it was started with."""
    return bool(frame.f_code.co_flags & 0x20) and frame.f_lasti > 10


def is_library(frame):
    """Whether the library runs, or what it has called: faults are planted there, and not in a test."""
    while frame is not None and frame.f_globals.get("__name__") != __name__:
        if frame.f_globals.get("__name__", "").startswith("micrograd."):
            return True
        frame = frame.f_back
    return False


def check_every_position(make, kind, allowed=None, in_turn=False):
    """Let every position of a kind fail in turn; return how often that was.

    Args:
        make: gives an action, and a function that gives what can be seen of what it changes; fresh ones at each call.
        kind: of the positions.
        allowed: what may be seen afterwards, beside what was there before and what is there in the end.
        in_turn: one of the errors of that kind at a position, another at the next; by default each at every position.
    """
    action, seen = make()
    nothing = seen()
    action()
    everything = seen()
    allowed = [nothing, everything, *(allowed or [])]
    faults = position = quiet = 0
    while True:
        reached_any = False
        errors = ERRORS[kind]
        for error in [errors[position % len(errors)]] if in_turn else errors:
            action, seen = make()
            gc.collect() if kind == "memory" and position % 50 == 0 else None
            raised, reached = run(action, kind, position, error())
            what = f"{make.__name__}, {kind} {position}, {error.__name__}: {raised!r} {_where(raised)}"
            if raised is not None:
                raised.__traceback__ = None  # as it is when whoever caught it goes on
            if kind == "memory":
                _release_all()
            after = seen()
            assert after in allowed, f"{what}: torn: {after}"
            assert_nothing_is_left(what)
            if raised is None:
                assert reached or after == everything, what
            else:
                faults += 1
            reached_any = reached_any or reached
            if after == nothing:
                action()
                assert seen() == everything, f"{what}: the same again gives something else: {seen()}"
        quiet = 0 if reached_any else quiet + 1
        if quiet > (IN_A_ROW if kind == "memory" else 0):
            return faults
        position += 1


def check(module, kind):
    """Let every position of a kind fail in each of a module's CASES, whose ALLOWED says what else may be seen.

    At each position one error is raised, another than at the one before: python -m tests.campaigns.faults raises all.
    Signals and allocations fail in a process of their own: there, nothing can fail inside another library that earlier
    tests have loaded, and that cannot bear it. Calls fail here, where coverage is measured.
    """
    if kind == "call":
        check_here(module, kind)
        return
    code = f"import sys; sys.unraisablehook = print; from tests import faults; faults.check_here({module!r}, {kind!r})"
    child = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr


def check_here(module, kind):
    """Let every position fail in each of a module's CASES, in this process."""
    cases = importlib.import_module(module)
    counts = {
        name: check_every_position(make, kind, cases.ALLOWED.get(name), in_turn=True)
        for name, make in cases.CASES.items()
    }
    assert all(counts.values()), counts


def _where(raised):
    """The positions that an error came by last, without the text of their lines: it is asked for at each fault."""
    frames = list(traceback.walk_tb(raised.__traceback__))[-3:-1] if raised else []
    return [f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}" for frame, line in frames]


def _release_all():
    """Release the locks that this thread holds: Python cannot leave a with block where it has no room for a tuple."""
    for lock in [*locks._locks, *locks._held_while_forking]:
        while lock._is_owned():
            lock.release()


def assert_nothing_is_left(what):
    """No recorder, no refusal, no walk and no lock is left behind."""
    assert recorder.recorder_on_top() is None, what
    assert recorder.on_top(recorder._refusal) is None, what
    assert not running(), what
    assert commit.traversal.undo is None, what
    held = []

    def try_all():
        for lock in [*locks._locks, *locks._held_while_forking]:
            if lock.acquire(blocking=False):
                lock.release()
            else:
                held.append(lock)

    thread = threading.Thread(target=try_all)
    thread.start()
    thread.join()
    assert not held, what
