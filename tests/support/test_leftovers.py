"""Temporary files of killed processes: removed by the next write in their folder, if nobody else can need them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from micrograd._support import leftovers
from micrograd._support.files import write_atomically, write_private
from tests.support.common import names

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells machines apart")

KILLED = """
import os, sys
from micrograd._support import files
files.os.replace = lambda *_: os.kill(os.getpid(), 9)
files.write_atomically(sys.argv[1], b"never whole")
"""
LIVES = "import time; print(flush=True); time.sleep(600)"


def gone():
    """The number of a process that is gone."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def name_of(process, machine=None, end="0123456789abcdef"):
    return f".micrograd-{machine or leftovers._machine()}-{process}-{end}.tmp"


def aged(path, seconds):
    moment = time.time() - seconds
    os.utime(path, (moment, moment), follow_symlinks=False)


@pytest.fixture
def alive():
    with subprocess.Popen([sys.executable, "-c", LIVES], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process.pid
        process.kill()


@pytest.mark.parametrize("write", [write_atomically, write_private])
def test_what_a_killed_process_left_is_removed(tmp_path, write):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "file"], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(".micrograd-")
    write(tmp_path / "other", b"new")
    assert names(tmp_path) == ["other"]


def test_files_of_whoever_may_live_stay(tmp_path, alive):
    elsewhere = f"{32 * 'f'}.1"
    kept = [name_of(alive), name_of(os.getpid()), name_of(1), name_of(gone(), elsewhere)]
    for name in kept:
        (tmp_path / name).touch()
    aged(tmp_path / kept[0], 2 * leftovers.OLD)
    aged(tmp_path / kept[3], 0.9 * leftovers.OLD)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == sorted([*kept, "file"])


def test_those_of_another_machine_are_removed_when_they_are_old(tmp_path, alive):
    for number, process in enumerate((alive, gone())):
        path = tmp_path / name_of(process, f"{number}" * 32 + ".1")
        path.touch()
        aged(path, 1.1 * leftovers.OLD)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


def test_what_is_not_certainly_ours_stays(tmp_path):
    process = gone()
    ours = name_of(process)
    strangers = [
        ".0123456789abcdef.tmp",
        "micrograd.tmp",
        f".micrograd-{process}.tmp",
        ours[1:],
        ours + "~",
        ours.upper(),
        name_of(0),
        name_of(f"0{process}"),
        name_of("9" * 40),
        name_of(process, end="not a number....."),
    ]
    for name in strangers:
        (tmp_path / name).write_bytes(b"of somebody else")
        aged(tmp_path / name, 2 * leftovers.OLD)
    folder, link = name_of(process, end="f" * 16), name_of(process, end="e" * 16)
    (tmp_path / folder).mkdir()
    (tmp_path / link).symlink_to(tmp_path / "micrograd.tmp")
    for name in (folder, link):
        aged(tmp_path / name, 2 * leftovers.OLD)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == sorted([*strangers, folder, link, "file"])
    assert (tmp_path / "micrograd.tmp").read_bytes() == b"of somebody else"


def test_those_of_another_user_stay(tmp_path, monkeypatch):
    (tmp_path / name_of(gone())).touch()
    monkeypatch.setattr(leftovers.os, "geteuid", lambda: os.getuid() + 1)
    write_atomically(tmp_path / "file", b"new")
    assert len(names(tmp_path)) == 2


def test_a_process_of_another_user_lives(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    (tmp_path / name_of(gone())).touch()
    monkeypatch.setattr(leftovers.os, "kill", refused)
    write_atomically(tmp_path / "file", b"new")
    assert len(names(tmp_path)) == 2


def test_where_machines_cannot_be_told_apart_only_age_counts(tmp_path, monkeypatch):
    monkeypatch.setattr("builtins.open", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError()))
    leftovers._machine.cache_clear()
    assert leftovers._machine() == leftovers._UNKNOWN
    monkeypatch.undo()
    try:
        young, old = name_of(gone()), name_of(gone(), end="f" * 16)
        assert leftovers._UNKNOWN in young
        for name in (young, old):
            (tmp_path / name).touch()
        aged(tmp_path / old, 1.1 * leftovers.OLD)
        write_atomically(tmp_path / "file", b"new")
        assert names(tmp_path) == [young, "file"]
    finally:
        leftovers._machine.cache_clear()


def test_where_processes_cannot_be_asked_nothing_is_removed(tmp_path, monkeypatch):
    (tmp_path / name_of(gone())).touch()
    monkeypatch.delattr(leftovers.os, "geteuid")
    write_atomically(tmp_path / "file", b"new")
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("function", ["listdir", "lstat"])
def test_what_cannot_be_looked_at_is_no_failure(tmp_path, monkeypatch, function):
    def fails(*_, **__):
        raise PermissionError

    (tmp_path / name_of(gone())).touch()
    with monkeypatch.context() as patch:
        patch.setattr(leftovers.os, function, fails)
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert len(names(tmp_path)) == 2
