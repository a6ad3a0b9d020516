"""How much memory there is: for the machine, for a container, and for the process."""

import math
import os

import pytest

from micrograd._support import memory


@pytest.fixture(autouse=True)
def _without_limits(monkeypatch, tmp_path):
    """The machine's memory, and no limits but those that a test sets."""
    monkeypatch.setattr(memory, "_LIMITS_OF_CONTAINER", (tmp_path / "memory.max",))
    monkeypatch.setattr(memory, "_PAGES_IN_USE", tmp_path / "statm")


def limited(monkeypatch, bytes_of_process):
    monkeypatch.setattr("resource.getrlimit", lambda _: (bytes_of_process, bytes_of_process))


def test_of_the_machine():
    assert 1e8 < memory.bytes_there() < 1e15


def test_of_a_container(tmp_path):
    (tmp_path / "memory.max").write_text("12345678\n")
    assert memory.bytes_there() == 12345678
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for unlimited in ("max\n", "9223372036854771712\n", "", "no number", "\N{SUPERSCRIPT TWO}"):
        (tmp_path / "memory.max").write_text(unlimited, encoding="utf-8")
        assert memory.bytes_there() == machine


def test_of_a_process(monkeypatch, tmp_path):
    pages = 1000
    (tmp_path / "statm").write_text(f"{pages} 3 2 1 0 7 0")
    limited(monkeypatch, 10**8)
    assert memory.bytes_there() == 10**8 - pages * os.sysconf("SC_PAGE_SIZE")
    limited(monkeypatch, 10**3)
    assert memory.bytes_there() == 0
    (tmp_path / "statm").unlink()
    assert memory.bytes_there() == 10**3


def test_a_system_that_does_not_say(monkeypatch):
    monkeypatch.delattr("os.sysconf")
    assert memory.bytes_there() == math.inf


def test_what_is_refused():
    memory.check_memory(1e9, 1e9, "a program")
    memory.check_memory(1e30, math.inf, "a program")
    with pytest.raises(MemoryError, match=r"^rows take about 0.0020 GB, and there are 0.0010 GB of memory"):
        memory.check_memory(2e6, 1e6, "rows")
