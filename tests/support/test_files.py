"""Writing files: the old one or the new one, whole."""

import errno
import os
import stat
import subprocess
import sys
import threading

import pytest

from micrograd._support import files
from micrograd._support.files import write_atomically, write_private
from tests.support.common import mode, names

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and devices as POSIX has them")


@pytest.mark.parametrize("data", [b"", b"text\n", bytes(range(256)) * 10_000], ids=len)
def test_writes_a_new_file(tmp_path, data):
    write_atomically(tmp_path / "new", data)
    assert (tmp_path / "new").read_bytes() == data
    assert names(tmp_path) == ["new"]


def test_replaces_an_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a long old content")
    write_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_takes_relative_paths_and_names_as_long_as_they_come(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_atomically("x" * 255, b"new")
    assert names(tmp_path) == ["x" * 255]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("old", [None, b"old"])
def test_what_goes_wrong_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error, function, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)

    def fail(*_):
        raise error

    monkeypatch.setattr(files.os, function, fail)
    with pytest.raises(type(error)) as caught:
        write_atomically(path, b"new")
    if isinstance(error, OSError):
        assert caught.value.errno == errno.ENOSPC
        assert caught.value.filename == str(path)
    assert names(tmp_path) == ([] if old is None else ["file"])
    assert old is None or path.read_bytes() == old


def test_ctrl_c_during_the_tidying_leaves_nothing(tmp_path, monkeypatch):
    calls = []
    unlink = files.Path.unlink

    def interrupted(self, missing_ok=False):
        calls.append(self)
        if len(calls) == 1:
            raise KeyboardInterrupt
        unlink(self, missing_ok)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.Path, "unlink", interrupted)
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_synced_is_no_failure(tmp_path, monkeypatch):
    fsync = os.fsync

    def files_only(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", files_only)
    write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_data_is_on_disk_before_it_takes_the_name(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(files.os, "fsync", lambda descriptor: order.append("sync"))
    replace = os.replace
    monkeypatch.setattr(files.os, "replace", lambda *paths: (order.append("rename"), replace(*paths)))
    write_atomically(tmp_path / "file", b"new")
    assert order == ["sync", "rename", *(["sync"] if os.name == "posix" else [])]


def test_one_that_is_written_while_it_is_written_is_whole(tmp_path, monkeypatch):
    others = [b"second"]

    def meanwhile(descriptor):
        if others:
            write_atomically(tmp_path / "file", others.pop())

    monkeypatch.setattr(files.os, "fsync", meanwhile)
    write_atomically(tmp_path / "file", b"first")
    assert not others
    assert (tmp_path / "file").read_bytes() == b"first"
    assert names(tmp_path) == ["file"]


def test_what_can_be_made_again_need_not_wait_for_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "fsync", lambda descriptor: pytest.fail("it waits"))
    write_private(tmp_path / "file", b"new", durable=False)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "missing" / "file", b"new")
    assert caught.value.filename == str(tmp_path / "missing" / "file")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(OSError, match=str(tmp_path.name)):
        write_atomically(tmp_path, b"new")
    assert names(tmp_path) == []


def test_only_bytes_are_written(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(TypeError, match="bytes"):
        write_atomically(tmp_path / "file", "text")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@posix
def test_permissions_stay(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert mode(path) == 0o640


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert mode(tmp_path / "file") == 0o666 & ~mask


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write to any file")
def test_a_file_that_must_not_be_written_is_not_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="file"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    link.symlink_to(target)
    for data in (b"first", b"second"):
        write_atomically(link, data)
        assert link.is_symlink()
        assert target.read_bytes() == data
    assert names(tmp_path / "folder") == ["target"]


@posix
def test_standard_output_is_written_to():
    code = "from micrograd._support.files import write_atomically; write_atomically('/dev/stdout', b'whole')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"whole"


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a file that is being read cannot be replaced")
def test_a_reader_finds_one_of_the_two_whole(tmp_path):
    path = tmp_path / "file"
    versions = {letter * 300_000 for letter in (b"a", b"b")}
    write_atomically(path, b"a" * 300_000)
    writer = threading.Thread(target=lambda: [write_atomically(path, data) for _ in range(10) for data in versions])
    writer.start()
    while writer.is_alive():
        assert path.read_bytes() in versions
    writer.join()
    assert names(tmp_path) == ["file"]


@posix
def test_a_device_is_written_to_directly():
    write_atomically(os.devnull, b"gone")
    assert not os.path.isfile(os.devnull)
