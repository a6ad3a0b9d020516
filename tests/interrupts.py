"""Ctrl-C at a position that a test chooses."""

import dis
import os
import re
import signal
import struct
import subprocess
import sys
import threading

from micrograd import Value


def interrupted_at(count, action):
    """Run an action with Ctrl-C at the count-th position inside micrograd where Python looks for one.

    CPython looks when a function begins, before it jumps back in a loop, and after a call of what is
    not written in Python.
    """
    positions = 0
    after_call = {}

    def trace(frame, event, argument):
        nonlocal positions
        if event == "call":
            after_call[frame.f_back] = False
        if not frame.f_globals.get("__name__", "").startswith("micrograd"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")) or after_call.get(frame):
                positions += 1
            after_call[frame] = name.startswith("CALL")
            if positions == count:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 traces no instructions if this comes after the next line
    sys.settrace(trace)
    try:
        return action()
    finally:
        sys.settrace(before)
        after_call.clear()


def interrupted_and_recording(count, action):
    """Whether Ctrl-C at the count-th position came through, and whether results are recorded afterwards."""
    interrupted = False
    try:
        interrupted_at(count, action)
    except KeyboardInterrupt:
        interrupted = True
    return interrupted, (Value(3.0) * 2).requires_grad


def interrupted_while_training(command, steps):
    """Run a command that trains, and send it Ctrl-C as soon as its progress bar has counted so many steps.

    The bar is drawn on a terminal only, so its standard error is one. What it prints to its standard output must be
    short: it is read in the end.

    Returns:
        The exit code, the standard output and the standard error.
    """
    import fcntl  # Windows has neither
    import termios

    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 25, 80, 0, 0))  # a bar needs room
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        hung = threading.Timer(600, process.kill)
        hung.start()
        errors, sent = "", False
        while piece := read(ours):
            errors += piece
            if not sent and any(int(done) >= steps for done in re.findall(r"\b(\d+)/\d+ \[", errors)):
                process.send_signal(signal.SIGINT)
                sent = True
        output = process.stdout.read()
    hung.cancel()
    os.close(ours)
    assert sent, errors
    return process.returncode, output, errors


def read(terminal):
    """What comes next from a terminal; nothing where the other side has closed it."""
    try:
        return os.read(terminal, 4096).decode(errors="replace")
    except OSError:  # so Linux says it
        return ""
