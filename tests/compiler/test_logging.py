"""What the logger "micrograd" is told of compiling and caching."""

import logging
import subprocess
import sys

import pytest

import micrograd as mg
from micrograd.compiler.backends.llvm import llvm_machine


@pytest.fixture
def told(caplog):
    """The messages since it was last called."""
    caplog.set_level(logging.DEBUG, logger="micrograd")

    def told():
        assert {(record.name, record.levelname) for record in caplog.records} <= {("micrograd", "DEBUG")}
        found = caplog.messages[:]
        caplog.clear()
        return found

    return told


def squares(xs):
    return mg.dot(xs, xs)


def test_traces_programs_and_known_arguments(told):
    fast = mg.compile(squares, backend="numpy")
    fast([1.0, 2.0])
    traced, compiled = told()
    assert traced == "<compiled squares>: trace number 1"
    assert compiled.startswith("squares: compiled without gradients in ")
    fast([3.0, 4.0])
    assert told() == []
    fast([1.0, 2.0, 3.0])
    assert told()[0] == "<compiled squares>: trace number 2"
    fast([1.0, 2.0])
    assert told() == ["<compiled squares>: one of 2 kept programs is for these arguments"]
    fast([mg.Value(1.0), mg.Value(2.0)])
    assert "squares: compiled with gradients in " in told()[1]


def test_what_was_replaced_is_traced_again(told):
    scale = 2.0
    fast = mg.compile(lambda x: x * scale, backend="numpy")
    assert fast(3.0) == 6.0
    told()
    scale = 5.0
    assert fast(3.0) == 15.0
    assert told()[:2] == [
        "<compiled <lambda>>: something that it reads was replaced",
        "<compiled <lambda>>: trace number 2",
    ]


def test_programs_that_are_given_up(told, monkeypatch):
    monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", "0")
    fast = mg.compile(squares, backend="numpy")
    for count in (1, 2):
        fast([1.0] * count)
    assert "squares: a program was given up, as all have more than MICROGRAD_PROGRAMS_MB" in told()


def test_programs_for_other_objects_that_are_given_up(told):
    fast = mg.compile(lambda f, x: f(x), backend="numpy")
    for number in range(32):
        fast(lambda x, number=number: x * number, 2.0)
    with pytest.warns(RuntimeWarning, match="was traced for 33 objects"):
        fast(lambda x: x - 1.0, 2.0)
    assert "<lambda>: a program was given up, as there are 32 for other objects" in told()


def test_paths_that_are_given_up(told):
    fast = mg.compile(lambda x: x if x > 0 else -x, backend="numpy", paths=1)
    fast(1.0)
    for _ in range(1000):  # on known paths, before another one may be traced
        fast(2.0)
    assert fast(-1.0) == 1.0
    assert "<lambda>: a path was given up, as 1 are kept" in told()


def test_native_code_is_compiled_found_and_left(told, monkeypatch, tmp_path):
    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(llvm_machine, "_machine", None)
    fast = mg.compile(lambda x: mg.sin(mg.exp(x * 1.375)), backend="llvm")
    fast(1.0)
    first = [text for text in told() if text.startswith("native code: ")]
    count = first[1].split()[2]
    assert first == [
        f"native code: 0 of {count} functions found in {tmp_path}",
        f"native code: {count} functions are compiled",
    ]
    fast.cache_clear()
    fast(1.0)
    again = [text for text in told() if text.startswith("native code: ")]
    assert again == [f"native code: {count} of {count} functions found in {tmp_path}"]
    monkeypatch.setenv("MICROGRAD_CODE_MB", "0")
    monkeypatch.setenv("MICROGRAD_CACHE_MB", "0")
    monkeypatch.setattr("micrograd.compiler.backends.llvm.object_cache._written", {})
    mg.compile(lambda x: mg.tanh(mg.sin(x)) / mg.cos(x), backend="llvm")(1.0)
    last = told()
    assert "native code: the oldest is no longer found, as there is more than MICROGRAD_CODE_MB" in last
    assert any(text.startswith(f"native code: {tmp_path} has ") for text in last)


@pytest.mark.slow
def test_nothing_is_printed_unless_a_program_asks():
    code = "import sys, micrograd as mg; {}mg.compile(lambda x: x * x, backend='numpy')(2.0)"
    for asked in ("", "import logging; logging.basicConfig(level=logging.DEBUG); "):
        run = subprocess.run([sys.executable, "-c", code.format(asked)], capture_output=True, text=True, check=True)
        assert run.stdout == ""
        assert ("DEBUG:micrograd:<compiled <lambda>>: trace number 1" in run.stderr) == bool(asked)
        assert bool(run.stderr) == bool(asked)


def test_import_loads_no_logging():
    code = "import sys; sys.modules.pop('logging', None); import micrograd; print('logging' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
