"""Programs that need more memory than there is: refused before any of it is taken, with what it is for."""

import logging
import subprocess
import sys

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.calling import of_rows

pytestmark = pytest.mark.slow(together=True)

LIMITED = """
import resource, numpy as np, micrograd as mg

def total(w, x):
    found = 0.0
    for row in x:
        found = found + mg.tanh(row * w) ** 2
    return found

def steps(w, x):
    for _ in range(len(x)):
        w = w + 0.001 * mg.sin(w)
    return w

x = np.linspace(0.0, 1.0, 4_000_000)
functions = [lambda w, x: (np.tanh(x * w) ** 2).sum(), lambda w, x: mg.mean(mg.vmap(lambda row: (row * w) ** 2)(x)),
             lambda w, x: mg.scan(lambda s, row: (mg.sin(s * row), None), w, x)[0], total, steps]
print(mg.compile(mg.value_and_grad(functions[0]))(0.5, x[:5000])[0] > 0.0)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 100_000_000,) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for function in functions:
    try:
        mg.compile(mg.value_and_grad(function))(0.5, x)
    except MemoryError as error:
        print(error)
print("grown by less than 60 MB:", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a process has")
def test_in_a_process_with_little_memory(tmp_path):
    path = tmp_path / "limited.py"  # loops are looked into where there is a source
    path.write_text(LIMITED)
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=300)
    first, *refused, last = ran.stdout.splitlines() or [ran.stderr]
    assert (first, last) == ("True", "grown by less than 60 MB: True"), ran.stderr
    assert len(refused) == 5
    for line in refused:
        assert "4,000,000 rows or iterations, take about 0." in line
        assert "numbers of 8 bytes" in line
        assert "of memory: go through fewer in one call" in line


def squares(w, x):
    return (np.tanh(x * w) ** 2).sum()


def long_body(w, x):
    def body(row):
        for _ in range(60):
            row = mg.tanh(row * w)
        return row

    return mg.mean(mg.vmap(body)(x))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (squares, r"[0-9,]+ numbers of 8 bytes in value_and_grad\(squares\), for 1,600 rows or iterations, take about"),
        (long_body, "numbers that mg.vmap reads and gives in"),
    ],
)
def test_few_rows_of_many(function, message, monkeypatch):
    x = np.linspace(0.0, 1.0, 1600)
    fast = mg.compile(mg.value_and_grad(function))
    monkeypatch.setattr(of_rows, "bytes_there", lambda: 1e4)
    for _ in range(2):
        with pytest.raises(MemoryError, match=message):
            fast(0.5, x)
    monkeypatch.undo()
    assert fast(0.5, x)[0] == pytest.approx(function(0.5, x))


def test_in_float32(monkeypatch):
    fast = mg.compile(mg.value_and_grad(squares), precision="float32")
    monkeypatch.setattr(of_rows, "bytes_there", lambda: 1e4)
    with pytest.raises(MemoryError, match="numbers of 4 bytes"):
        fast(0.5, np.linspace(0.0, 1.0, 1600))


def test_arguments_that_are_traced_one_by_one(monkeypatch):
    fast, x = mg.compile(lambda x: x[:1000].sum()), np.ones(1600)
    monkeypatch.setattr(of_rows, "bytes_there", lambda: 1e5)
    with pytest.raises(MemoryError, match="1,600 numbers among the arguments, traced one by one, take about"):
        fast(x)
    monkeypatch.undo()
    assert fast(x) == 1000.0


@pytest.mark.parametrize("uses_vmap", [True, False])
def test_large_programs(uses_vmap, monkeypatch, caplog):
    mapped, plain = lambda w, x: mg.mean(mg.vmap(lambda row: row * w)(x)), lambda w, x: (x * w).mean()
    function = mapped if uses_vmap else plain
    monkeypatch.setattr(of_rows, "_MOST_NUMBERS", 1000)
    fast, x = mg.compile(function), np.ones(1600)
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        assert fast(2.0, x) == pytest.approx(function(2.0, x))
    assert ("is traced for all" in caplog.text) == uses_vmap
