"""Judging an answer in a child process, which can be killed whatever the answer does.

A loop that never ends may catch every exception, so that nothing in the same process can end it. The child is a copy of
this process, made by fork: the answer finds everything that it reads, and what it changes is gone with the child. Where
there is no fork, as on Windows, the answer runs here without a limit. A page in a browser has no processes; it ends the
worker that Python runs in, and says so by set_timer.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from micrograd.learn.exercise import Verdict
from micrograd.learn.running import LONGEST, quiet, told

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micrograd.learn.exercise import Exercise

LONGEST_WAIT = 1e6  # seconds; timers of the system take no more than a few years
LONGEST_SLEEP = 0.05  # seconds; a Ctrl-C that comes between Python's last look and the sleep is noticed after it only

_timer: Callable[[float], object] | None = None


def set_timer(timer: Callable[[float], object] | None) -> None:
    """Choose what ends an answer that runs for too long, where there are no child processes.

    Args:
        timer: is called with the seconds that an answer may run, and with 0.0 when it has ended; None for nothing.
    """
    global _timer
    _timer = timer


def judge(exercise: Exercise, answer: Any, seconds: float | None) -> Verdict:
    """The verdict on an answer, which may run for so many seconds.

    Args:
        exercise: what the answer is for.
        answer: whatever the learner handed over.
        seconds: the limit; None for none, in this process.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C, after the child was killed.
    """
    if seconds is None:
        return _judged(exercise, answer)
    if _timer is not None:
        _timer(seconds)
        try:
            return _judged(exercise, answer)
        finally:
            _timer(0.0)
    return _judged_in_a_child(exercise, answer, seconds)


def _judged(exercise: Exercise, answer: Any) -> Verdict:
    try:
        with quiet():
            return exercise.judge(answer)
    except KeyboardInterrupt:  # it may be the learner's own Ctrl-C
        raise
    except BaseException as error:  # what is in the answer may raise anything, whatever is done with it
        return _raised(exercise, error)


def _raised(exercise: Exercise, error: BaseException) -> Verdict:
    return Verdict(exercise.number, False, f"Something in the answer raised {told(error)}"[: 2 * LONGEST])


def _judged_in_a_child(exercise: Exercise, answer: Any, seconds: float) -> Verdict:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0), open(writing, "wb", buffering=0) as pipe:
        child = _fork()
        if child is None:
            return _judged(exercise, answer)
        if child == 0:
            _answer_and_exit(exercise, answer, seconds, writing)
        try:
            pipe.close()  # so that the end of the child is the end of the file
            said = _message(reading, time.monotonic() + min(seconds, LONGEST_WAIT))
        finally:
            status = _killed(child)
    if said is None:
        text = f"It was stopped after {seconds} s: is there a loop that never ends? `seconds=60` gives it more time."
        return Verdict(exercise.number, False, text)
    if not said.endswith(b"\n"):
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        return Verdict(exercise.number, False, f"It ended the process that it ran in ({how}).")
    return Verdict(*json.loads(said))


def _fork() -> int | None:
    """What os.fork gives; None where there is none, or no further process is allowed."""
    if sys.platform == "win32" or not hasattr(os, "fork"):
        return None
    with warnings.catch_warnings():
        # Python and JAX warn of forks beside threads: a lock that one of them holds may stay locked in the child. Then
        # the deadline ends it, and nothing here waits longer.
        warnings.simplefilter("ignore")
        try:
            return os.fork()
        except OSError:
            return None


def _answer_and_exit(exercise: Exercise, answer: Any, seconds: float, writing: int) -> NoReturn:
    """What the child does: it writes the verdict as a line, and ends without what the parent does at its end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which kills this process
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends this process if the parent is no longer there to do it
        signal.setitimer(signal.ITIMER_REAL, min(seconds, LONGEST_WAIT) + 1.0)
        try:
            verdict = _judged(exercise, answer)
        except KeyboardInterrupt as error:
            verdict = _raised(exercise, error)
        fields = verdict.number, verdict.right, verdict.message, verdict.mistake
        with open(writing, "wb", closefd=False) as pipe:
            pipe.write(json.dumps(fields).encode() + b"\n")
        sys.stderr.flush()
    finally:
        os._exit(0)


def _message(reading: int, deadline: float) -> bytes | None:
    """What the child wrote, up to the end of its line, or of its life; None if the time is over before that."""
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while not said.endswith(b"\n"):
            if not selector.select(min(max(deadline - time.monotonic(), 0.0), LONGEST_SLEEP)):
                if time.monotonic() >= deadline:
                    return None
            elif part := os.read(reading, 1 << 16):
                said += part
            else:
                break
    return said


def _killed(child: int) -> int:
    """End the child, if it has not ended; gives its exit code, or minus the signal that ended it."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
