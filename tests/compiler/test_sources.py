"""Sources of numbers that are others each time: random numbers, the clock, the system, files, iterators."""

import codecs
import configparser
import cProfile
import csv
import ctypes
import gc
import hashlib
import io
import itertools
import logging
import os
import pickle
import platform
import random
import secrets
import shutil
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
import types
import urllib.parse
import uuid
import weakref
import zlib

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.guards import library_state
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.code_names import line_of_made_name
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.compiler.guards.sources import Sources, _LineFinder, _Observer, _position
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.engine.primitive import PRIMITIVES
from micrograd.engine.recorder import NO_RECORDER, recorder_on_top
from tests.compiler.runs import Runs


def compiled(f):
    """The function on the backend that is there everywhere."""
    return mg.compile(f, backend="numpy")


def test_the_line_that_draws_is_named_and_no_other():
    rng = np.random.default_rng(3)

    def helper(x):
        return x * 2.0

    def f(x):
        y = helper(x)
        noise = helper(1.0) + rng.normal()  # this one
        return y + noise + helper(x)

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(TraceError, match=rf"a random number is drawn \({__file__}:{line}\).*noise="):
        compiled(f)(1.0)


def test_the_last_line_of_a_function_and_one_behind_a_call_are_named():
    def drawn():
        return random.random()

    def with_a_draw_last(x):
        y = x * 2.0
        return y * drawn()

    with pytest.raises(TraceError, match=rf"drawn \({__file__}:{drawn.__code__.co_firstlineno + 1}\)"):
        compiled(with_a_draw_last)(1.0)

    def before_a_call(x):
        return random.random() * abs_of(x)

    def abs_of(x):
        return x * 1.0

    line = before_a_call.__code__.co_firstlineno + 1
    with pytest.raises(TraceError, match=rf"drawn \({__file__}:{line}\)"):
        compiled(before_a_call)(1.0)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_generators_have_the_state_that_they_had_when_a_trace_is_refused(backend, monkeypatch):
    own, rng = random.Random(3), np.random.default_rng(3)

    def f(x):
        return x * random.random() * own.random() * np.random.normal() * rng.normal()

    def numbers():
        return random.random(), own.random(), np.random.normal(), rng.normal()

    def seed():
        random.seed(1)
        own.seed(1)
        np.random.seed(1)
        rng.bit_generator.state = np.random.default_rng(1).bit_generator.state

    states = random.getstate(), np.random.get_state()
    try:
        seed()
        expected = numbers()
        seed()
        with pytest.raises(TraceError, match="a random number is drawn"):
            mg.compile(f, backend=backend)(1.0)
        assert numbers() == expected
        # also where no line can be found, as where the interpreter cannot look at lines
        seed()
        monkeypatch.setattr(sys, "settrace", lambda _: None)
        with pytest.raises(TraceError, match="a random number is drawn: a compiled function runs once"):
            mg.compile(f, backend=backend)(1.0)
        assert numbers() == expected
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


@pytest.mark.parametrize("draw", [random.random, np.random.random])  # the calls of NumPy's are not seen
@pytest.mark.parametrize("with_lines", [True, False])
def test_what_another_thread_draws_is_no_reason_to_refuse(with_lines, draw, monkeypatch):
    drawn = []
    if not with_lines:
        monkeypatch.setattr(sys, "settrace", lambda _: None)

    def f(x):
        if not drawn:
            thread = threading.Thread(target=lambda: drawn.append(draw()))
            thread.start()
            thread.join()
        return x * 2.0

    assert compiled(f)(1.0) == 2.0
    assert len(drawn) == 1


@pytest.mark.slow
def test_what_another_thread_draws_all_the_time_is_no_reason_to_refuse_either():
    is_noisy, ended = False, threading.Event()

    def f(x):
        y = x + random.random() if is_noisy else x
        for _ in range(1000):
            y = y * 0.5 + x
        return y

    def draw():
        while not ended.wait(1e-4):
            random.random()

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        assert compiled(f)(1.0) == f(1.0)
        is_noisy = True
        with pytest.raises(mg.TraceError, match="a random number is drawn"):
            compiled(f)(1.0)
        with pytest.raises(mg.TraceError, match="a random number is drawn"):
            compiled(lambda x: x * random.gauss(0.0, 1.0))(1.0)
    finally:
        ended.set()
        thread.join()


def test_generators_that_are_made_inside_with_a_seed_are_as_eagerly():
    def f(x):
        return x * random.Random(3).random() * np.random.default_rng(3).normal()

    fast = compiled(f)
    assert [fast(2.0), fast(3.0)] == [f(2.0), f(3.0)]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: np.random.default_rng().random(),
        lambda: np.random.RandomState(3).random(),  # it draws from the system before it is seeded
        lambda: uuid.uuid4().int,
        lambda: secrets.randbelow(7),
        lambda: random.SystemRandom().random(),
        lambda: random.Random().random(),
        lambda: random.Random(None).gauss(0.0, 1.0),
    ],
)
def test_random_numbers_of_the_system_are_refused_as_such(draw):
    line = draw.__code__.co_firstlineno
    with pytest.raises(TraceError, match=rf"a random number of the system is drawn \({__file__}:{line}\).*default_rng"):
        compiled(lambda x: x * draw())(1.0)


def test_what_the_machine_is_may_be_asked(monkeypatch):
    def f(x):
        return x * len(platform.system()) * (os.cpu_count() or 1) * min(shutil.get_terminal_size()[0], 1)

    monkeypatch.setattr(platform, "_uname_cache", None)
    assert compiled(f)(2.0) == f(2.0)


def test_weights_that_are_drawn_inside_are_refused():
    def f(x):
        return mg.nn.MLP(1, [1])([x])

    with pytest.raises(TraceError, match=rf"drawn \({__file__}:{f.__code__.co_firstlineno + 1}\)"):
        compiled(f)(1.0)


def test_a_forest_that_asks_for_the_number_of_cores_is_let_pass():
    forest = pytest.importorskip("sklearn.ensemble").RandomForestRegressor(2, random_state=0)
    forest.fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])

    def f(x):
        return x * float(forest.predict([[2.0]])[0])

    fast = compiled(f)
    assert fast(2.0) == f(2.0)
    forest.fit([[1.0], [2.0], [3.0]], [7.0, 8.0, 9.0])
    assert fast(2.0) == f(2.0)


def test_what_the_engine_is_made_of_is_not_looked_into():
    tape = recorder_on_top()
    primitive, layer = PRIMITIVES["tanh"], NO_RECORDER

    fast = compiled(lambda x: x * len(primitive.name) if layer is not tape else x)
    assert fast(2.0) == 8.0


def test_what_the_object_of_a_library_draws_is_refused():
    mixture = pytest.importorskip("sklearn.mixture").GaussianMixture(1, random_state=0).fit([[1.0], [2.0], [3.0]])
    mixture.set_params(random_state=None)
    with pytest.raises(TraceError, match="a random number is drawn"):
        compiled(lambda x: x * float(mixture.sample(1)[0][0, 0]))(1.0)
    normal = statistics.NormalDist(0.0, 1.0)
    with pytest.raises(TraceError, match="a random number is drawn"):
        compiled(lambda x: x * normal.samples(1)[0])(1.0)


def test_what_a_library_loads_when_it_is_first_named_is_refused_too():
    program = """
import numpy as np, micrograd as mg
assert "random" not in vars(np)  # otherwise this test says nothing
for f in (lambda x: x * np.random.rand(), lambda x: x * np.random.default_rng().random()):
    try:
        mg.compile(f)(1.0)
    except mg.TraceError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("a random number is drawn")
    assert second.startswith("a random number of the system is drawn")


def test_what_a_library_gives_by_name_and_does_not_keep_is_refused_too():
    library = types.ModuleType("numpy.of_this_test")
    library.__dir__, library.__getattr__ = lambda: ["chance"], {"chance": random}.__getitem__
    with pytest.raises(TraceError, match="a random number is drawn"):
        compiled(lambda x: x * library.chance.random())(1.0)


def test_sources_that_are_mentioned_and_not_asked_are_let_pass():
    rng, numbers = np.random.default_rng(3), itertools.count()

    def f(x, training=False):
        if training:
            return x * rng.normal() * random.random() * next(numbers) * time.time()
        time.sleep(0)
        logging.getLogger("micrograd.test").info("it takes the time of a record")
        logging.getLogger("micrograd.test").warning("it takes the time of a record")
        return x * 2.0

    logging.getLogger("micrograd.test").propagate = False
    assert compiled(f)(1.0) == 2.0
    with pytest.raises(TraceError):
        compiled(f)(1.0, True)


def test_a_file_that_is_written_to_is_no_source(tmp_path):
    with (tmp_path / "log").open("w+", encoding="utf-8") as file:
        fast = compiled(lambda x: (file.write("a"), x * 2.0)[1])
        assert fast(1.0) == 2.0
        assert [file.seek(0), file.read()] == [0, "a"]


def test_a_program_that_is_refused_says_so_at_each_call_and_in_fit():
    fast = compiled(lambda x: x * random.random())
    for _ in range(2):
        with pytest.raises(TraceError, match="a random number is drawn"):
            fast(1.0)
    w = Value(1.0)
    with pytest.raises(TraceError, match="fit draws random numbers for each step, with noise="):
        mg.fit(lambda x: w * x * random.random(), [1.0], mg.optim.SGD([w], 0.1), compile="numpy")


def test_the_clock_is_named_where_a_library_reads_it():
    def f(x):
        y = x * 2.0
        return y + float(time.strftime("%Y"))

    line = f.__code__.co_firstlineno + 2
    with pytest.raises(TraceError, match=rf"the clock may be read \({__file__}:{line}\)"):
        compiled(f)(1.0)


@pytest.mark.parametrize("name", ["gmtime", "localtime", "ctime"])
def test_what_reads_the_clock_without_an_argument_is_refused_with_one_too(name):
    with pytest.raises(
        TraceError, match="Where it is given a time, it reads no clock, but that cannot be told: call it"
    ):
        compiled(lambda x: x * len(getattr(time, name)(0)))(1.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * len(os.path.join("a", "b")),
        lambda x: x * len(os.path.splitext("a.b")),
        lambda x: x * len(hashlib.sha256(b"a").digest()),
        lambda x: x * len(urllib.parse.quote("a b")),
        lambda x: x * len(zlib.compress(b"a")),
        lambda x: x * len(pickle.dumps(1)),
    ],
)
def test_pure_functions_of_the_standard_library_are_not_observed(f):
    assert not ClosedOver([("", f)]).sources.is_suspicious
    assert compiled(f)(2.0) == f(2.0)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * os.path.exists(__file__),
        lambda x: x * len(os.path.abspath("a")),
        lambda x: x * len(os.path.relpath("a")),
        lambda x: x * len(configparser.ConfigParser().read(os.devnull)),
        lambda x: x * len(codecs.open(__file__, encoding="utf-8").read()),  # noqa: SIM115
        lambda x: x * os.sysconf("SC_AVPHYS_PAGES"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_functions_that_read_the_system_are_refused_though_their_neighbours_are_pure(f):
    with pytest.raises(TraceError, match="a file or the system is read"):
        compiled(f)(2.0)


def test_an_object_that_cannot_be_read_is_refused_where_it_is_asked():
    connection = sqlite3.connect(":memory:")
    cursor = connection.execute("select 2.0")

    def asked(x):
        return x * connection.execute("select 2.0").fetchone()[0]

    def read(x):
        return x * cursor.fetchone()[0]

    assert compiled(lambda x: x * (2.0 if connection else 1.0))(1.0) == 2.0
    line = asked.__code__.co_firstlineno + 1
    with pytest.raises(TraceError, match=rf"a Connection is asked \(connection, {__file__}:{line}\)"):
        compiled(asked)(1.0)
    with pytest.raises(TraceError, match=r"an iterator is read|a Cursor is asked"):
        compiled(read)(1.0)
    cursor.close()
    connection.close()


def test_the_clock_is_found_after_operators_and_derivatives_and_in_rules_of_users():
    def of_clock(gradient, output, x):
        return gradient * (2.0 * x + 0.0 * time.perf_counter())

    timed = mg.primitive("timed_rule", "timed", lambda x: x * x, of_clock)

    def slopes(x):
        return getattr(mg, "gr" + "ad")(lambda x: x * x + 1.0)(x)

    functions = [
        lambda x: x * x + time.time(),
        lambda x: slopes(x) + time.time(),
        lambda x: getattr(mg, "grad")(timed)(x),  # noqa: B009  # by a name, so that the function is observed
        lambda x: mg.jvp(timed, (x,), (1.0 + slopes(x),))[1],
        lambda x: getattr(mg, "ja" + "cobian")(lambda x: [timed(x), x])(x)[0],
        lambda x: slopes(mg.vmap(lambda x: getattr(mg, "grad")(timed)(x))([x, x])[0]),  # noqa: B009
    ]
    for f in functions:
        with pytest.raises(TraceError, match="the clock is read"):
            compiled(f)(1.0)
    assert compiled(slopes)(3.0) == 6.0


def test_an_operator_of_another_thread_is_not_observed():
    def f(x):
        others = threading.Thread(target=lambda: results.append(mg.Value(2.0) * 3.0))
        others.start()
        others.join()
        return getattr(x, "__mul__")(x) + 1.0  # noqa: B009

    results = []
    assert compiled(f)(Value(3.0)).data == 10.0
    assert results[0].data == 6.0


def test_profilers_go_on():
    seen = []

    def profile(frame, event, argument):
        seen.append(event)

    sys.setprofile(profile)
    try:
        with pytest.raises(TraceError, match="the clock is read"):
            compiled(lambda x: x * time.time())(1.0)
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)
    assert {"call", "return", "c_call"} <= set(seen)
    profiler = cProfile.Profile()
    with profiler, pytest.raises(TraceError, match="the clock is read"):
        compiled(lambda x: x * time.time())(1.0)
    assert profiler.getstats()


def test_a_debugger_goes_on():
    lines = []

    def trace(frame, event, argument):
        lines.append(frame.f_code.co_name)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(TraceError, match="a random number is drawn"):
            compiled(lambda x: x * random.random())(1.0)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert "<lambda>" in lines


def in_a_module(name, text="def call(f, *given):\n    f(*given)\n"):
    """A function that calls another one, in a module of this name."""
    variables = {"__name__": name}
    exec(compile(text, name, "exec"), variables)
    return variables["call"]


class TestObserver:
    def test_what_a_callback_of_the_garbage_collector_asks_is_none_of_the_function(self):
        asked = []

        def callback(phase, info):
            asked.append(time.perf_counter())

        def f(x):
            gc.collect()
            return x * x if os.path.join("a", "b") else x

        gc.callbacks.append(callback)
        try:
            assert mg.compile(f, backend="numpy")(3.0) == 9.0
            assert asked
        finally:
            gc.callbacks.remove(callback)

    """What the profile function does for each event; it is called here as the interpreter calls it."""

    def found(self, event, argument, sources=None, home="user"):
        observer = _Observer(sources or Sources())
        frames = []

        def look():
            frames.append(sys._getframe(2))
            observer(sys._getframe(1), event, argument)
            observer(sys._getframe(1), event, argument)  # the first one stays

        in_a_module("micrograd.compiler.guards.sources")(in_a_module(home), look) if home else look()
        return observer.found

    @pytest.mark.parametrize(
        ("function", "what"),
        [
            (time.time, "the clock"),
            (sys.modules["datetime"].datetime.now, "the clock"),
            (open, "a file"),
            (os.urandom, "a random number of the system"),
            (sys.modules["os"].stat, "a file"),
            (time.sleep, None),
            (len, None),
            ([].append, None),
        ],
    )
    def test_calls_of_c(self, function, what):
        found = self.found("c_call", function)
        assert (found and found[0][0].startswith(what or "")) if what else found is None
        assert self.found("c_return", function) is None

    def test_calls_of_files_and_of_objects_that_cannot_be_read(self, tmp_path):
        with (tmp_path / "a").open("w+") as file:
            assert self.found("c_call", file.read)[0][0] == "a file or the system is read"
            assert self.found("c_call", file.write) is None
        text = sys.modules["io"].StringIO("a")
        assert self.found("c_call", text.read) is None
        sources, item = Sources(), [1.0]
        sources.unwatched.append(("item", item))
        assert self.found("c_call", item.pop, sources)[0::2] == (
            ("a list is asked", "Read it outside, and pass it as an argument"),
            "item",
        )

    def test_calls_of_generators(self):
        def numbers():
            yield 1.0

        sources, generator, other = Sources(), numbers(), numbers()
        sources.iterators += [("numbers", generator), ("none", iter([]))]
        observer = _Observer(sources)

        def resumed(one):
            observer(one.gi_frame, "call", None)
            return observer.found

        assert resumed(other) is None
        observer(sys._getframe(), "call", None)
        assert observer.found is None
        stands_in = in_a_module("micrograd.compiler.guards.sources", "def call(f, *given):\n    return f(*given)\n")
        assert stands_in(resumed, generator)[0][0] == "an iterator is read"

    def test_calls_of_generators_of_random_numbers(self):
        generator, sources = random.Random(3), Sources()
        sources.take_unwatched("", generator)

        def called(function, **variables):
            module = {"__name__": "random"}
            frame = types.SimpleNamespace(
                f_code=function.__code__, f_locals=variables, f_globals=module, f_back=sys._getframe()
            )
            observer = _Observer(sources)
            observer(frame, "call", None)
            return observer.found and observer.found[0][0]

        stands_in = in_a_module(
            "micrograd.compiler.guards.sources", "def call(f, *given, **named):\n    return f(*given, **named)\n"
        )
        seed, gauss = random.Random.seed, random.Random.gauss
        assert stands_in(called, seed, self=generator, a=None) == "a random number of the system is drawn"
        assert stands_in(called, seed, self=random.Random(4), a=3) is None
        assert stands_in(called, gauss, self=generator) == "a random number is drawn"
        assert stands_in(called, gauss, self=random.Random(4)) is None

    @pytest.mark.parametrize("home", ["logging", "numpy.lib"])
    def test_who_calls_for_other_purposes(self, home):
        def call(f):
            f()

        observer = _Observer(Sources())
        inner = in_a_module(home)
        outer = in_a_module("micrograd.compiler.guards.sources")

        def user():
            inner(lambda: observer(sys._getframe(1), "c_call", time.time))

        outer(user)
        assert (observer.found is None) == (home == "logging")

    def test_it_is_paused_by_operators_of_symbols_until_they_end(self):
        observer = _Observer(Sources())
        frame = types.SimpleNamespace(f_code=Symbol.__add__.__code__)
        observer(frame, "call", None)
        assert not observer.is_paused  # it does not observe this thread
        with observer.profiling():
            observer(frame, "call", None)
            was_paused = observer.is_paused
            observer.resume()
        assert (was_paused, observer.is_paused) == (True, False)

    def test_it_rests_and_goes_on_in_its_own_thread(self):
        observer, others = _Observer(Sources()), []
        assert not observer.rest()
        with observer.profiling():
            assert observer.rest()
            rests = sys.getprofile()
            other = threading.Thread(target=lambda: others.append(observer.resume()))
            other.start()
            other.join()
            assert observer.resume()
            observes = sys.getprofile()
        assert (rests, observes, others) == (None, observer, [False])

    def test_another_profile_function_is_called_first(self):
        seen = []
        observer = _Observer(Sources())
        observer._outer = lambda *given: seen.append(given)
        observer("frame", "c_return", len)
        assert seen == [("frame", "c_return", len)]


class TestLineFinder:
    """What the trace function does for each event; it is called here as the interpreter calls it."""

    def test_the_line_before_a_change_is_found(self):
        state = [0]
        finder = _LineFinder(lambda: state[0])
        frame = sys._getframe()
        assert finder(frame, "line", None) is finder
        line = frame.f_lineno
        state[0] = 1
        assert finder(frame, "line", None) is finder
        assert finder.line == (__file__, line - 1)
        assert finder(frame, "line", None) is None
        assert finder.has_changed()


class TestPositions:
    def test_of_files(self, tmp_path):
        path = tmp_path / "a"
        path.write_text("1\n2\n", "utf-8")
        with path.open(encoding="utf-8") as file:
            before = _position(file)
            assert _position(file) == before
            file.readline()
            assert _position(file) != before
            next(file)
            assert _position(file) != _position(file)
        assert _position(file) is None


def test_rows_of_a_table_in_a_text_and_elements_of_an_array_are_iterators_too():
    rows, elements = csv.reader(io.StringIO("1\n2\n3\n")), np.arange(9.0).flat
    for read in (lambda: float(next(rows)[0]), lambda: next(elements)):
        with pytest.raises(TraceError, match="an iterator is read"):
            compiled(lambda x, read=read: x * read())(1.0)


def test_objects_of_libraries_that_are_no_source_are_let_pass():
    lock, item = threading.Lock(), types.SimpleNamespace(number=2.0)
    dead = weakref.proxy(Runs())
    things = [lock, object(), NotImplemented, logging.getLogger("a"), dead, np.float64(2.0), np.dtype(float), slice(3)]

    def f(x):
        with things[0]:
            return x * item.number * len(things)

    fast = compiled(f)
    assert fast(1.0) == 16.0
    special = fast._last
    assert fast(2.0) == 32.0
    assert fast._last is special
    item.number = 3.0
    assert fast(1.0) == 24.0


def test_what_is_reached_by_weak_references_is_kept_by_the_program():
    holder = [Runs()]
    proxy, reference = weakref.proxy(holder[0]), weakref.ref(holder[0])

    def f(x):
        return x * (2.0 + proxy.times + reference().times)

    fast = compiled(f)
    assert fast(1.0) == 2.0
    holder.clear()
    assert fast(1.0) == f(1.0) == 2.0


def test_which_modules_are_libraries():
    known = ["os", "os.path", "numpy.random", "micrograd.nn", "_cython_3_2_4", "pandas", object.__doc__.__len__]
    assert all(map(is_foreign, known))
    assert not any(map(is_foreign, ["__main__", "", "tests.compiler", "a_package", "mynumpy"]))


def test_a_member_of_a_library_s_enum_is_a_constant():
    from http import HTTPStatus

    assert compiled(lambda x: x * HTTPStatus.OK.value)(1.0) == 200.0


class TestWhatIsRun:
    """What the profile function does for code that the trace runs."""

    found = TestObserver.found

    def test_code_that_is_run_and_was_not_reached(self):
        """Only what code that is known calls is taken; code of libraries is not."""

        def known():
            pass

        def called():
            pass

        sources = Sources()
        sources.is_suspicious = True
        observer = _Observer(sources, [known.__code__])

        def frame(code, caller, module="user"):
            back = caller and types.SimpleNamespace(f_code=caller, f_globals={"__name__": "user"}, f_back=None)
            return types.SimpleNamespace(f_code=code, f_globals={"__name__": module}, f_back=back)

        for caller, module in ((None, "user"), (called.__code__, "user"), (known.__code__, "numpy")):
            observer(frame(called.__code__, caller, module), "call", None)
            assert observer.strange == {}
        observer(frame(called.__code__, known.__code__), "call", None)
        observer(frame(known.__code__, known.__code__), "call", None)
        assert list(observer.strange) == [called.__code__]

    def test_code_of_a_callback_of_the_collector_is_not_taken(self):
        def callback(phase, info):
            pass

        sources = Sources()
        sources.is_suspicious = True
        observer = _Observer(sources, [TestObserver.found.__code__])
        caller = types.SimpleNamespace(f_code=TestObserver.found.__code__, f_globals={"__name__": "user"}, f_back=None)
        gc.callbacks.append(callback)
        try:
            at = types.SimpleNamespace(f_code=callback.__code__, f_globals={"__name__": "user"}, f_back=caller)
            observer(at, "call", None)
        finally:
            gc.callbacks.remove(callback)
        assert observer.strange == {}

    @pytest.mark.parametrize("function", [gc.get_objects, sys.getrefcount, ctypes.c_double.from_address])
    def test_what_tells_the_state_of_python(self, function):
        found = self.found("c_call", function)
        assert found[0][0] in ("the state of Python is read", "memory is read by its address")

    def test_what_reads_memory_by_its_address(self):
        observer = _Observer(Sources())
        stands_in = in_a_module("micrograd.compiler.guards.sources", "def call(f, *given):\n    return f(*given)\n")
        cast = in_a_module("ctypes", "def cast(observe):\n    return observe()\n\ncall = cast\n")
        stands_in(lambda: cast(lambda: observer(sys._getframe(1), "call", None)))
        assert observer.found[0][0] == "memory is read by its address"

    def test_globals_of_a_made_name(self):
        def reads(name):
            return globals()[name]

        sources = Sources()
        sources.is_suspicious = True
        observer = _Observer(sources, [reads.__code__])
        top = types.SimpleNamespace(
            f_globals={"__name__": "micrograd.compiler.guards.sources"}, f_back=None, f_code=None
        )
        caller = types.SimpleNamespace(f_code=reads.__code__, f_globals={"__name__": "user"}, f_back=top)
        observer(caller, "call", None)
        assert observer.found[0][0] == "a global is read by a name that is made at run time"
        assert observer.found[1] == (__file__, reads.__code__.co_firstlineno + 1)


@pytest.mark.parametrize("made", [lambda: iter([2.0, 3.0]), lambda: random.Random(3)])
def test_what_gives_another_number_and_is_reached_by_a_made_name_only(made):
    source = made()

    class Model:
        def by_name(self, x):
            return x * (2.0 if source else 3.0)

    model = Model()
    with pytest.raises(TraceError, match="pass it as an argument"):
        mg.compile(lambda x: getattr(model, "".join(["by_", "name"]))(x))(2.0)


def test_lines_where_the_name_of_a_global_is_made():
    texts = {
        "globals()['a']": None,
        "globals().get('a', 1)": None,
        "eval(text, globals())": None,
        "f.__globals__['a']": None,
        "globals()[name]": 1,
        "globals().get(name)": 1,
        "globals().get(''.join(name))": 1,
        "f.__globals__[name]": 1,
        "dict(globals())": 1,
        "1.0": None,
    }
    for text, line in texts.items():
        assert line_of_made_name(compile(text, "text", "eval")) == line


def test_a_member_that_cannot_be_read():
    class Raises:
        @property
        def level(self):
            raise RuntimeError

    assert library_state._attributes("level")(Raises()) == [library_state.MISSING]
