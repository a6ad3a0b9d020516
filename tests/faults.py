"""Faults, one at a time, at every place where something can fail: what is all or nothing must be so under each.

    for fault in every_fault(action): ...

Three kinds of places are counted while an action runs: calls of functions, places where Python looks for signals, and
allocations. The action is run again and again: the first place fails, then the second, and so on, until it runs to
its end without reaching the place. SQLite is tested in this way.
"""

import dis
import gc
import sys
from contextlib import contextmanager

import pytest

try:
    import _testcapi
except ImportError:  # not every Python has it
    _testcapi = None

KINDS = ("call", "signal", "memory")
# After these instructions Python looks whether a signal has come: CALL, the jump back of a loop, the start of a function
_LOOKS = {code for name, code in dis.opmap.items() if name.startswith(("CALL", "JUMP_BACKWARD", "RESUME", "FOR_ITER"))}


class Handler(Exception):
    """What the handler of a signal raises, such as that of SIGALRM."""


RAISED = {
    "call": (RecursionError, MemoryError),
    "signal": (KeyboardInterrupt, SystemExit, Handler),
    "memory": (MemoryError,),
}


class Reached(Exception):  # noqa: N818  # it is no error
    """Not raised: marks that the place was reached."""


@contextmanager
def failing(kind, place, error):
    """Let one place fail, the first is 0; yields a list that holds something once it was reached."""
    reached = []
    if kind == "memory":
        _testcapi.set_nomemory(place + 1, place + 2)
        try:
            yield reached
        finally:
            _testcapi.remove_mem_hooks()
        return
    left = place

    def count():
        nonlocal left
        left -= 1
        if left == -1:
            reached.append(place)
            raise error

    def at_call(frame, event, _):
        if event in ("call", "c_call") and _is_ours(frame):
            count()

    looks = {}

    def at_instruction(frame, event, _):
        if not _is_ours(frame):
            return None
        frame.f_trace_opcodes = True
        if event == "call":
            looks[frame] = True
        elif event == "opcode":
            if looks.pop(frame, False):
                count()
            if frame.f_code.co_code[frame.f_lasti] in _LOOKS:
                looks[frame] = True
        elif event == "return":
            looks.pop(frame, None)
        return at_instruction

    before = sys.getprofile() if kind == "call" else sys.gettrace()
    setting = sys.setprofile if kind == "call" else sys.settrace
    setting(at_call if kind == "call" else at_instruction)
    try:
        yield reached
    finally:
        setting(before)


def _is_ours(frame):
    """Faults are planted in the library, not in the test and not in what is above it."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("micrograd"):
            return True
        if name == __name__:
            return False
        frame = frame.f_back
    return False
