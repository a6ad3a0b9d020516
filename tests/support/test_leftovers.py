"""Temporary files of killed processes: removed by the next write in their folder, if nobody else can need them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from micrograd._support import files
from micrograd._support.files import write_atomically, write_private
from tests.support.common import names

KILLED = """
import os, sys
from micrograd._support import files
files.os.replace = lambda *_: os.kill(os.getpid(), 9)
files.write_atomically(sys.argv[1], b"never whole")
"""
OWN = f".micrograd-{'0123456789abcdef' * 2}.tmp"


def aged(path, seconds):
    moment = time.time() - seconds
    os.utime(path, (moment, moment), follow_symlinks=False)


def left(folder, name=OWN):
    """A file of this name that is old."""
    (folder / name).write_bytes(b"never whole")
    aged(folder / name, 1.1 * files.OLD)
    return folder / name


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot kill itself there")
@pytest.mark.parametrize("write", [write_atomically, write_private])
def test_what_a_killed_process_left_is_removed_when_it_is_old(tmp_path, write):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "file"], check=False)
    assert killed.returncode == -signal.SIGKILL
    (name,) = names(tmp_path)
    aged(tmp_path / name, 0.9 * files.OLD)
    write(tmp_path / "other", b"new")
    assert names(tmp_path) == [name, "other"]
    aged(tmp_path / name, 1.1 * files.OLD)
    write(tmp_path / "other", b"new")
    assert names(tmp_path) == ["other"]


def test_what_is_not_certainly_ours_stays(tmp_path):
    strangers = [".0123456789abcdef.tmp", "micrograd.tmp", OWN[1:], OWN + "~", OWN.upper(), OWN.replace("0", "g")]
    for name in strangers:
        left(tmp_path, name)
    folder, link = OWN.replace("0", "e"), OWN.replace("0", "f")
    (tmp_path / folder).mkdir()
    (tmp_path / link).symlink_to(tmp_path / "micrograd.tmp")
    for name in (folder, link):
        aged(tmp_path / name, 2 * files.OLD)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == sorted([*strangers, folder, link, "file"])
    assert (tmp_path / "micrograd.tmp").read_bytes() == b"never whole"


@pytest.mark.skipif(sys.platform == "win32", reason="files have no owners there")
def test_those_of_another_user_stay(tmp_path, monkeypatch):
    left(tmp_path)
    monkeypatch.setattr(files.os, "geteuid", lambda: os.getuid() + 1)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == [OWN, "file"]


def test_where_files_have_no_owners_old_ones_are_removed(tmp_path, monkeypatch):
    left(tmp_path)
    monkeypatch.delattr(files.os, "geteuid", raising=False)
    write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("function", ["listdir", "lstat"])
def test_what_cannot_be_looked_at_is_no_failure(tmp_path, monkeypatch, function):
    def fails(*_, **__):
        raise PermissionError

    left(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(files.os, function, fails)
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == [OWN, "file"]
