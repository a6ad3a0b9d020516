"""The line that says what a long compile does.

No test waits for a compile that takes long: the delay is set to nothing, and what is compiled goes on when the line is
there.
"""

import io
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.passes import progress, stages
from tests.interrupts import interrupted_and_recording

PATIENCE = 60.0  # seconds after which a test fails
DELAY, PERIOD = progress.DELAY, progress.PERIOD  # as users have them


class Terminal(io.StringIO):
    """A terminal of one line, which remembers all that it ever showed."""

    def __init__(self):
        super().__init__()
        self.cells, self.cursor, self.shown = "", 0, [""]
        self.changed = threading.Condition()

    def isatty(self):
        return True

    def write(self, text):
        with self.changed:
            for character in text:
                if character == "\r":
                    self.cursor = 0
                else:
                    self.cells = self.cells[: self.cursor] + character + self.cells[self.cursor + 1 :]
                    self.cursor += 1
            self.shown.append(self.cells.rstrip())
            self.changed.notify_all()

    def wait_for(self, text):
        with self.changed:
            assert self.changed.wait_for(lambda: text in self.shown[-1], PATIENCE), self.shown

    def wait_until_clean(self):
        with self.changed:
            assert self.changed.wait_for(lambda: self.shown[-1] == "", PATIENCE), self.shown


def see(stream, monkeypatch):
    """Let the line be written to a stream. pytest sets sys.stderr itself between a fixture and its test."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream, _current_frames=sys._current_frames))


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as stderr, whose line is there at once; and no thread is left behind."""
    terminal = Terminal()
    see(terminal, monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "PERIOD", 0.001)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    threads = threading.active_count()
    yield terminal
    assert threading.active_count() == threads
    assert not terminal.cells.strip()
    assert terminal.cursor == 0
    assert not any("\n" in shown for shown in terminal.shown)


def waiting(terminal, name="loss", words="micrograd: compiling loss: trace, "):
    """A function to compile that goes on when its line is there."""

    def loss(x):
        terminal.wait_for(words)
        return x * x

    loss.__name__ = name
    return loss


def test_a_long_compile_says_what_it_does_and_takes_the_line_away(terminal, backend):
    assert mg.compile(waiting(terminal), backend=backend)(Value(3.0)).data == 9.0
    assert terminal.shown[-1] == ""
    fast = mg.compile(lambda x: x * x, backend=backend)
    fast(Value(3.0))
    shown = len(terminal.shown)
    assert fast(Value(4.0)).data == 16.0  # nothing is compiled
    assert len(terminal.shown) == shown


def test_each_stage_is_shown_and_the_seconds_are_those_of_the_whole_compile(terminal, monkeypatch):
    def slowly(stage):
        def make(thing, request):
            terminal.wait_for(f"micrograd: compiling loss: {stage.name}, ")
            return stage.make(thing, request)

        return stages.Stage(stage.name, make)

    monkeypatch.setattr(stages, "STAGES", tuple(map(slowly, stages.STAGES)))
    ticks = itertools.count()
    monkeypatch.setattr(progress, "clock", lambda: float(next(ticks)))

    def loss(x):
        return x * x

    assert mg.compile(loss, backend="numpy")(Value(3.0)).data == 9.0
    shown = [line for line in terminal.shown if line]
    names = [line.partition("loss: ")[2].partition(",")[0] for line in shown]
    assert [name for name, _ in itertools.groupby(names)] == ["trace", "normalise", "adjoint", "reroll", "compile"]
    seconds = [float(line.split()[-2]) for line in shown]
    assert seconds[0] >= 1.0
    assert all(line.endswith(" s") for line in shown)


def test_fit_shows_what_it_compiles(terminal, monkeypatch):
    find = Backend.executable

    def executable(self, what):
        def make(*arguments):
            terminal.wait_for("micrograd: compiling loss: compile, ")
            return found(*arguments)

        found = find(self, what)
        make.batches = found.batches
        return make

    def loss(x):
        return (w * x - 3.0) ** 2

    w = Value(1.0)
    monkeypatch.setattr(Backend, "executable", executable)
    mg.fit(loss, [1.0, 2.0], mg.optim.SGD([w], 0.1), epochs=1, compile="numpy", progress=False)
    assert w.data != 1.0
    assert any("loss: compile" in shown for shown in terminal.shown)


def test_nothing_is_shown_of_a_short_compile(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0
    assert terminal.shown == [""]


def test_a_quick_trace_is_followed_by_no_thread(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    started = []
    monkeypatch.setattr(progress, "Thread", lambda **named: started.append(named) or threading.Thread(**named))
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0
    assert len(started) == 1


@pytest.mark.parametrize(
    ("before", "threads"),
    [(0.0, 1), (DELAY / 4, 1), (DELAY * progress.QUICK, 1), (0.99 * DELAY * progress.QUICK, 0), (1e-9, 0)],
)
def test_after_quick_first_stages_there_is_no_thread(terminal, monkeypatch, before, threads):
    monkeypatch.setattr(progress, "DELAY", DELAY)
    started = []
    monkeypatch.setattr(progress, "Thread", lambda **named: started.append(named) or threading.Thread(**named))
    with progress.line_of("loss", before):
        pass
    assert len(started) == threads


def test_the_seconds_count_from_the_first_stage_on(terminal, monkeypatch):
    monkeypatch.setattr(progress, "clock", lambda: 5.0)
    for settings, shown in (((), "trace, 0.0 s"), ((3.0,), "trace, 3.0 s")):
        with progress.line_of("loss", *settings) as line:
            line.stage = "trace"
            terminal.wait_for(shown)


def test_what_was_spent_before_is_a_part_of_the_delay(terminal, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 3600.0)
    with progress.line_of("loss", 3600.0) as line:
        line.stage = "trace"
        terminal.wait_for("loss: trace, ")


def test_the_line_is_taken_away_between_two_looks_too(terminal, monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", PERIOD)
    mg.compile(waiting(terminal))(Value(3.0))
    assert terminal.shown[-1] == ""


class Pipe(Terminal):
    def isatty(self):
        return False


class Closed(Terminal):
    def isatty(self):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [Pipe(), Closed(), None, io.StringIO()], ids=["pipe", "closed", "none", "text"])
def test_there_is_no_line_and_no_thread_where_nobody_looks(stream, monkeypatch):
    see(stream, monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "Thread", None)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0


def test_there_is_no_line_on_a_terminal_that_cannot_go_back(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "Thread", None)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0


def test_there_is_a_line_in_notebooks(terminal, monkeypatch):
    """Their stderr is no terminal, and goes back all the same."""
    OutStream = type("OutStream", (Pipe,), {"__module__": "ipykernel.iostream"})  # noqa: N806  # it is a class
    stream = OutStream()
    see(stream, monkeypatch)
    assert mg.compile(waiting(stream))(Value(3.0)).data == 9.0
    assert stream.shown[-1] == ""


def test_a_long_name_is_cut_to_the_width_of_the_terminal(terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    mg.compile(waiting(terminal, "a" * 100, "micrograd: compiling aaaaaaaa"))(Value(3.0))
    assert max(map(len, terminal.shown)) == 29


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, RuntimeError])
def test_an_error_and_ctrl_c_find_a_clean_line(terminal, error):
    def loss(x):
        terminal.wait_for("compiling loss: trace")
        raise error("mine")

    with pytest.raises(error, match="mine"):
        mg.compile(loss)(Value(3.0))
    assert terminal.shown[-1] == ""
    assert not any(thread.name == "micrograd progress" for thread in threading.enumerate())


def test_ctrl_c_anywhere_leaves_no_thread(terminal):

    def work():
        with progress.line_of("loss") as line:
            line.stage = "trace"

    interrupted, count = True, 0
    while interrupted:
        count += 1
        interrupted, _ = interrupted_and_recording(count, work)
        for thread in threading.enumerate():
            if thread.name == "micrograd progress":
                thread.join(PATIENCE)
                assert not thread.is_alive()
    assert count > 3


@pytest.mark.parametrize("where", ["before the start", "after the start", "before the end"])
def test_ctrl_c_while_the_thread_starts_and_ends_leaves_none(terminal, monkeypatch, where):
    class Interrupted(threading.Thread):
        def start(self):
            threads.append(self)
            if where == "before the start":
                raise KeyboardInterrupt
            super().start()
            if where == "after the start":
                raise KeyboardInterrupt

        def join(self, timeout=None):
            if where == "before the end" and timeout is None:
                raise KeyboardInterrupt
            super().join(timeout)

    threads = []
    monkeypatch.setattr(progress, "Thread", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        mg.compile(lambda x: x * x)(Value(3.0))
    assert threads
    for thread in threads:
        if thread.ident is not None:
            thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_debugger_has_the_terminal_for_itself(terminal):
    """Where its prompt is waiting, nothing is written over it."""
    debugger = {"__name__": "bdb", "wait": lambda: (terminal.wait_until_clean(), time.sleep(0.05))}
    exec("def ask():\n    wait()\n", debugger)
    shown = []

    def loss(x):
        terminal.wait_for("compiling loss: trace")
        debugger["ask"]()
        shown.append(terminal.shown[-1])
        terminal.wait_for("compiling loss: trace")
        return x * x

    assert mg.compile(loss)(Value(3.0)).data == 9.0
    assert shown[0] == ""


def test_one_compile_at_a_time_has_the_line(terminal):
    first_may_end = threading.Event()

    def first(x):
        terminal.wait_for("compiling first: trace")
        assert first_may_end.wait(PATIENCE)
        return x * x

    def second(x):
        time.sleep(0.02)
        return x * 2.0

    def third(x):
        first_may_end.set()
        terminal.wait_for("compiling third: trace")
        return x * 3.0

    found = []
    thread = threading.Thread(target=lambda: found.append(mg.compile(first)(Value(3.0)).data))
    thread.start()
    terminal.wait_for("compiling first")
    assert mg.compile(second)(Value(3.0)).data == 6.0
    assert not any("second" in shown for shown in terminal.shown)
    assert mg.compile(third)(Value(3.0)).data == 9.0
    thread.join()
    assert found == [9.0]


def test_a_terminal_that_goes_away_stops_no_compile(terminal, monkeypatch):
    class Gone(Terminal):
        def write(self, text):
            super().write(text)
            raise OSError("the terminal is gone")

    gone = Gone()
    see(gone, monkeypatch)
    assert mg.compile(waiting(gone))(Value(3.0)).data == 9.0
    assert gone.shown[1].startswith("micrograd: compiling loss: trace, ")
    assert "" not in gone.shown[1:]  # it is not written to again by that thread


def test_where_no_thread_can_be_started_there_is_no_line(terminal, monkeypatch):
    class Unstarted(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(progress, "Thread", Unstarted)
    assert mg.compile(lambda x: x * x)(Value(3.0)).data == 9.0
    assert terminal.shown == [""]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_that_is_forked_during_a_compile_goes_on(terminal):
    codes = []

    def loss(x):
        terminal.wait_for("compiling loss: trace")
        if not (child := os.fork()):
            return x * x
        for _ in range(int(PATIENCE / 0.001)):  # it may not ask the clock
            if (done := os.waitpid(child, os.WNOHANG)) != (0, 0):
                break
            time.sleep(0.001)
        if done == (0, 0):
            os.kill(child, signal.SIGKILL)
        codes.append(done[1])
        return x * x

    parent = os.getpid()
    try:
        found = mg.compile(loss, backend="numpy")(Value(3.0)).data
        if os.getpid() != parent:  # it can compile with a line of its own
            terminal.changed = threading.Condition()
            again = mg.compile(waiting(terminal), backend="numpy")(Value(4.0)).data
            os._exit(0 if (found, again) == (9.0, 16.0) and terminal.shown[-1] == "" else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)
    assert found == 9.0
    assert codes == [0]


PROGRAM = """
import time
import micrograd as mg
from micrograd.compiler.passes import progress

progress.DELAY, progress.PERIOD = 0.0, 0.01


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
        if interrupted and b"compiling loss: trace" in said and run.poll() is None:
            run.send_signal(signal.SIGINT)
            interrupted = False
    run.wait(PATIENCE)
    os.close(ours)
    assert b"\rmicrograd: compiling loss: trace, 0." in said
    *_, last = said.partition(b"9.0") if b"9.0" in said else said.partition(b"Traceback")
    before = said[: len(said) - len(last)]
    cleaned = before.rpartition(b"\r")[2]
    assert cleaned in (b"9.0", b"Traceback")
