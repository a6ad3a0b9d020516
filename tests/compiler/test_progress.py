"""The line that says what takes long to compile.

No test waits for a compile that takes long: the delay is set to nothing, and what is compiled goes on when the line is
there.
"""

import io
import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.passes import progress

PATIENCE = 60.0  # seconds after which a test fails


class Terminal(io.StringIO):
    """A terminal, which says when something is written to it."""

    def __init__(self):
        super().__init__()
        self.written = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        super().write(text)
        self.written.set()
        return len(text)


class Pipe(Terminal):
    def isatty(self):
        return False


class Closed(Terminal):
    def isatty(self):
        raise ValueError("I/O operation on closed file")


def see(stream, monkeypatch):
    """Let the line be written to a stream. pytest sets sys.stderr itself between a fixture and its test."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, exc_info=sys.exc_info))
    return stream


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as stderr, whose line is there at once; and no thread is left behind."""
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    threads = threading.active_count()
    yield see(Terminal(), monkeypatch)
    assert threading.active_count() == threads


def waiting(terminal, name="loss"):
    """A function to compile that goes on when its line is there."""

    def loss(x):
        assert terminal.written.wait(PATIENCE)
        return x * x

    loss.__name__ = name
    return loss


def whole(name):
    """All that is written of a compile: the line, and what takes it away."""
    text = f"micrograd: compiling {name} ..."
    return f"{text}\r{' ' * len(text)}\r"


def test_a_long_compile_says_so_and_takes_the_line_away(terminal, backend):
    assert mg.compile(waiting(terminal), backend=backend)(Value(3.0)).data == 9.0
    assert terminal.getvalue().startswith(whole("loss"))
    fast = mg.compile(lambda x: x * x, backend=backend)
    fast(Value(3.0))
    before = terminal.getvalue()
    assert fast(Value(4.0)).data == 16.0  # nothing is compiled
    assert terminal.getvalue() == before


def test_fit_says_what_it_compiles(terminal):
    w = Value(1.0)

    def loss(x):
        assert terminal.written.wait(PATIENCE)
        return (w * x - 3.0) ** 2

    mg.fit(loss, [1.0, 2.0], mg.optim.SGD([w], 0.1), epochs=1, compile="numpy", progress=False)
    assert w.data != 1.0
    assert terminal.getvalue().startswith(whole("loss"))


def test_nothing_is_shown_of_a_short_compile(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0
    assert terminal.getvalue() == ""


def test_a_long_name_is_cut(terminal):
    mg.compile(waiting(terminal, "a" * 100))(Value(3.0))
    assert terminal.getvalue().startswith(whole("a" * 50))


@pytest.mark.parametrize("stream", [Pipe(), Closed(), None, io.StringIO()], ids=["pipe", "closed", "none", "text"])
def test_there_is_no_line_and_no_thread_where_nobody_looks(stream, monkeypatch):
    see(stream, monkeypatch)
    monkeypatch.setattr(progress, "Timer", None)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0


def test_there_is_no_line_on_a_terminal_that_cannot_go_back(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "Timer", None)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0


def test_there_is_a_line_in_notebooks(terminal, monkeypatch):
    """Their stderr is no terminal, and goes back all the same."""
    OutStream = type("OutStream", (Pipe,), {"__module__": "ipykernel.iostream"})  # noqa: N806  # it is a class
    stream = see(OutStream(), monkeypatch)
    assert mg.compile(waiting(stream))(Value(3.0)).data == 9.0
    assert stream.getvalue().startswith(whole("loss"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, RuntimeError])
def test_an_error_and_ctrl_c_find_a_clean_line(terminal, error):
    def loss(x):
        assert x.is_leaf or terminal.written.wait(PATIENCE)  # eagerly, where it runs once more, nothing is compiled
        raise error("mine")

    with pytest.raises(error, match="mine"):
        mg.compile(loss)(Value(3.0))
    assert terminal.getvalue() == whole("loss")


def test_a_terminal_that_goes_away_stops_no_compile(terminal, monkeypatch):
    class Gone(Terminal):
        def write(self, text):
            super().write(text)
            raise OSError("the terminal is gone")

    gone = see(Gone(), monkeypatch)
    assert mg.compile(waiting(gone))(Value(3.0)).data == 9.0


def test_where_no_thread_can_be_started_there_is_no_line(terminal, monkeypatch):
    class Unstarted(threading.Timer):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(progress, "Timer", Unstarted)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0
    assert terminal.getvalue() == ""


def test_an_interrupt_while_the_thread_starts_is_not_lost(terminal, monkeypatch):
    class Interrupted(threading.Timer):
        def start(self):
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("cannot release un-acquired lock")  # as threading does, whose lock is open by then

    monkeypatch.setattr(progress, "Timer", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        mg.compile(lambda x: x * x)(Value(3.0))


PROGRAM = """
import time
import micrograd as mg
from micrograd.compiler.passes import progress

progress.DELAY = 0.0


def loss(x):
    time.sleep({seconds})
    return x * x


print(mg.compile(loss, backend="numpy")(mg.Value(3.0)).data)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no terminals of this kind")
@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.slow
def test_on_a_real_terminal(interrupted):
    import pty

    ours, theirs = pty.openpty()
    program = PROGRAM.format(seconds=3600.0 if interrupted else 0.1)
    settings = {**os.environ, "TERM": "xterm"}
    run = subprocess.Popen([sys.executable, "-c", program], stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    said = b""
    while True:
        try:
            said += os.read(ours, 1000)
        except OSError:  # the program has ended
            break
        if interrupted and b"compiling loss" in said and run.poll() is None:
            run.send_signal(signal.SIGINT)
            interrupted = False
    run.wait(PATIENCE)
    os.close(ours)
    assert whole("loss").encode() in said
    *_, last = said.partition(b"9.0") if b"9.0" in said else said.partition(b"Traceback")
    before = said[: len(said) - len(last)]
    assert before.rpartition(b"\r")[2] in (b"9.0", b"Traceback")
