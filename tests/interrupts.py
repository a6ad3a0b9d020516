"""Ctrl-C at a place that a test chooses."""

import dis
import sys

from micrograd import Value


def interrupted_at(count, action):
    """Run an action with Ctrl-C at the count-th place inside micrograd where Python looks for one.

    CPython looks when a function begins, before it jumps back in a loop, and after a call of what is
    not written in Python.
    """
    places = 0
    after_call = {}

    def trace(frame, event, argument):
        nonlocal places
        if event == "call":
            after_call[frame.f_back] = False
        if not frame.f_globals.get("__name__", "").startswith("micrograd"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")) or after_call.get(frame):
                places += 1
            after_call[frame] = name.startswith("CALL")
            if places == count:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return action()
    finally:
        sys.settrace(before)
        after_call.clear()


def interrupted_and_recording(count, action):
    """Whether Ctrl-C at the count-th place came through, and whether results are recorded afterwards."""
    interrupted = False
    try:
        interrupted_at(count, action)
    except KeyboardInterrupt:
        interrupted = True
    return interrupted, (Value(3.0) * 2).requires_grad
