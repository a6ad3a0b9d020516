"""What test modules share."""

import collections
import contextlib
import gc
import os
import pathlib
import re
import signal
import sys

import pytest
from hypothesis import is_hypothesis_test

from micrograd.engine.primitive import PRIMITIVES
from tests.modules import load_all

os.environ.setdefault("JAX_ENABLE_X64", "1")  # what JAX asks of whoever computes in float64
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")  # for tests about several devices
os.environ["MICROGRAD_PROGRESS"] = "off"  # no test adds to what a developer has learned


# XLA takes a third of a second for the smallest program. What these modules test comes before the backend: of all that
# they run on JAX, one in eight tests runs.
ABOUT_TRACING = (
    "test_arrays_inside",
    "test_attributes_of_values",
    "test_kept",
    "test_structure",
    "test_what_is_closed",
)

# Of each test in these modules, the first case on JAX runs, and then one in so many.
CASES_ON_JAX = {
    "test_against_eager": 3,
    "test_alone": 4,
    "test_boundary": 4,
    "test_changes_between_steps": 6,
    "test_checkpoints": 5,
    "test_closed_over_gradients": 6,
    "test_compiled_derivatives": 4,
    "test_decisions": 4,
    "test_errors": 6,
    "test_fit_settings": 6,
    "test_kernels": 3,
    "test_kinds_of_numbers": 6,
    "test_noise": 4,
    "test_paths": 3,
    "test_same_numbers": 3,
    "test_scans_that_decide": 4,
    "test_trace": 6,
    "test_training": 4,
}


# What these modules test comes before the backend, too. NumPy's cases are slow tests, and those on LLVM fast ones.
BEFORE_THE_BACKEND = {*CASES_ON_JAX, "test_mapped", "test_several_results"} - {"test_kernels"}


# The slow tests whose coverage is measured, by how their names begin: others come to no line of their own, and it takes
# two thirds of their time. If a line is not covered any more, the slow test that comes to it is added there. Tests of a
# module that are slow together only are measured, too.
MEASURED = tuple((pathlib.Path(__file__).parent / "measured.txt").read_text("utf-8").split())


ALL_SLOW = re.compile(r"^pytestmark = .*pytest\.mark\.slow\b", re.MULTILINE)
# Half a second of each process and more: modules of the package that load these have slow examples.
LOADS_MUCH = re.compile(
    r"^(?:import|from) (?:jax|skops|micrograd\.compiler\.backends\.jax|micrograd\.tables\.models)\b", re.MULTILINE
)


def _measures_coverage():
    return type(sys.gettrace()).__module__.split(".")[0] == "coverage"


@contextlib.contextmanager
def _unmeasured():
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


class Ignoring:
    """A plugin, as it is asked about the modules of the package, too: a conftest is asked about its own folder only."""

    @staticmethod
    def pytest_ignore_collect(collection_path, config):
        """Where slow tests are left out, leave out modules that are slow as a whole without importing them."""
        if config.option.markexpr.startswith("not slow") and collection_path.suffix == ".py":
            is_test = collection_path.name.startswith("test_")
            return bool((ALL_SLOW if is_test else LOADS_MUCH).search(collection_path.read_text("utf-8"))) or None
        return None


def pytest_configure(config):
    """Register it."""
    config.pluginmanager.register(Ignoring())


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Import nothing to look for examples in docstrings where there are none, as in the modules of tests."""
    collectors = yield
    if file_path.name.startswith("test_") or (file_path.suffix == ".py" and ">>>" not in file_path.read_text("utf-8")):
        return [collector for collector in collectors if type(collector) is pytest.Module]
    return collectors


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Measure no coverage while tests are looked for, which would take half as long again, but that of all imports.

    What is made meanwhile stays: the garbage collector would look through it in vain.
    """
    looks_itself = not session.config.pluginmanager.hasplugin("dsession")  # of pytest-xdist: its processes look
    gc.disable()
    try:
        if not (looks_itself and _measures_coverage()):
            return (yield)
        load_all()
        with _unmeasured():
            return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Measure no coverage in tests of pages in a browser, nor where their pages are made: others make such, too."""
    if not (item.get_closest_marker("browser") and _measures_coverage()):
        return (yield)
    with _unmeasured():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Measure no coverage in tests that compute much, as those of properties do: it would take most of their time.

    So each line and each branch has a test that comes to it by an example that is written down. pytest-cov has a marker
    for this, no_cover, but it has no effect in the processes of pytest-xdist.
    """
    slow = item.get_closest_marker("slow")
    is_left_out = slow and not slow.kwargs.get("together") and not item.nodeid.startswith(MEASURED)
    computes_much = is_hypothesis_test(getattr(item, "obj", None)) or item.get_closest_marker("unmeasured")
    if not ((is_left_out or computes_much) and _measures_coverage()):
        return (yield)
    with _unmeasured():
        return (yield)


def pytest_itemcollected(item):
    """Mark the tests of pages and of the site, which stand in folders of their own."""
    if "browser" in item.path.parts:
        item.add_marker("browser")


def _is_on(backend, item):
    """Whether a test runs on this backend, which is one of its parameters."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(isinstance(parameter, str) and parameter == backend for parameter in parameters)


def _loads_much(item):
    """Whether an example of a docstring is in such a module, or loads JAX itself, or has Hypothesis search."""
    text = item.path.read_text("utf-8")
    sources = [example.source for example in item.dtest.examples]
    return bool(LOADS_MUCH.search(text)) or any("jax" in source or "hypothesis" in source for source in sources)


def pytest_collection_modifyitems(config, items):
    """Mark what runs on JAX, and leave out most of it where that would test the same again.

    With MICROGRAD_JAX_TESTS=all in the environment, all tests run.
    """
    left_out, counts = [], collections.Counter()
    for item in items:
        module = item.path.stem
        if _is_on("numpy", item) and (module in BEFORE_THE_BACKEND or module.startswith(ABOUT_TRACING)):
            item.add_marker(pytest.mark.slow)
        if isinstance(item, pytest.DoctestItem) and _loads_much(item):
            item.add_marker(pytest.mark.slow)
        if not _is_on("jax", item):
            continue
        item.add_marker(pytest.mark.slow)
        # a user-defined primitive is called back in Python with a warning
        item.add_marker(pytest.mark.filterwarnings("ignore:JAX calls primitive:RuntimeWarning"))
        test = item.nodeid.partition("[")[0]
        if module.startswith(ABOUT_TRACING):
            counted, one_in = ABOUT_TRACING, 8
        else:
            counted, one_in = test, CASES_ON_JAX.get(module, 1)
        if counts[counted] % one_in and os.environ.get("MICROGRAD_JAX_TESTS") != "all":
            left_out.append(item)
        counts[counted] += 1
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]


def pytest_collection_finish():
    """Let the collector leave out all that is loaded by now: a test that has it collect is many times as fast."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_interrupts():
    """Ctrl-C interrupts, also where the tests were started as a background job, which makes processes ignore it.

    The processes that tests start inherit this.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True, scope="session")
def _no_waits_for_the_disk():
    """No test is about a loss of power, and thousands of small files are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """Compiled functions are kept in a folder of the module's own: its first test compiles, the others find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def small_report(tmp_path_factory):
    """The report of a training on a small table, beside that table, small.csv."""
    from micrograd.command.main import main
    from tests.tables.common import small_file

    folder = tmp_path_factory.mktemp("small")
    words = ["--target", "kind", "--epochs", "20", "--folds", "3", "--seed", "3", "--quiet"]
    assert main(["train", str(small_file(folder, 60)), *words, "-o", str(folder / "report")]) == 0
    return folder / "report"


@pytest.fixture
def without_collector():
    """Run a test without the cycle collector, which otherwise would hide what only it frees."""
    gc.collect()
    gc.freeze()  # so that the next collection goes through what the test makes, and not through all modules
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def own_registry():
    """Primitives that a test registers are gone after it, and their names are free again."""
    before = dict(PRIMITIVES)
    yield
    PRIMITIVES.clear()
    PRIMITIVES.update(before)


@pytest.fixture
def open_to_all():
    """New files may be read and written by anyone, if nobody sees to it."""
    before = os.umask(0)
    yield
    os.umask(before)
