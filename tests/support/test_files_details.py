"""What a file keeps when it is written again: its owner, its group, its permissions; and who may read it meanwhile."""

import errno
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from micrograd._support import files
from micrograd._support.files import write_atomically, write_private
from tests.support.common import mode, names

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners, permissions and links as POSIX has them")
as_root = pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root may give files away")


def owner(path):
    return path.stat().st_uid, path.stat().st_gid


@pytest.fixture
def old(tmp_path):
    """A file with something in it."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


@as_root
@pytest.mark.parametrize("permissions", [0o644, 0o660, 0o600, 0o4755])
def test_root_leaves_a_file_to_its_owner_and_group(old, permissions):
    os.chown(old, 12345, 12346)
    old.chmod(permissions)
    write_atomically(old, b"new")
    assert old.read_bytes() == b"new"
    assert owner(old) == (12345, 12346)
    assert mode(old) == permissions


# Becomes a user who is in one more group, and writes.
AS_A_USER = """
import os, sys
from micrograd._support.files import write_atomically
os.setgroups([12346])
os.setegid(12347)
os.seteuid(12345)
write_atomically(sys.argv[1], b"new")
"""


@as_root
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((12345, 12346, 0o660), (12345, 12346, 0o660)),  # one of the user's groups is kept
        ((12345, 54321, 0o664), (12345, 12347, 0o644)),  # another cannot be, and the new one gets what anyone gets
        ((12345, 54321, 0o660), (12345, 12347, 0o600)),
        ((12345, 54321, 0o606), (12345, 12347, 0o606)),
        ((54321, 12346, 0o4660), (12345, 12346, 0o660)),  # nor can the owner; the group still is
        ((54321, 54321, 0o666), (12345, 12347, 0o666)),
    ],
)
@pytest.mark.slow
def test_a_user_keeps_the_group_where_that_is_allowed(before, after):
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "file"
        folder.chmod(0o777)
        path.write_bytes(b"old")
        os.chown(path, *before[:2])
        path.chmod(before[2])
        done = subprocess.run([sys.executable, "-c", AS_A_USER, path], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert path.read_bytes() == b"new"
        assert (*owner(path), mode(path)) == after


@pytest.mark.parametrize(
    ("others", "group", "before", "after"),
    [(0, 0, 0o4664, 0o4664), (1, 0, 0o6664, 0o664), (0, 1, 0o2664, 0o644), (0, 1, 0o677, 0o677), (1, 1, 0o4670, 0o600)],
)
def test_where_nobody_gives_files_away_nobody_gets_more_than_before(old, monkeypatch, others, group, before, after):
    def forbidden(*_):
        raise PermissionError

    status = list(old.stat())
    status[stat.ST_MODE] = stat.S_IFREG | before
    status[stat.ST_UID] += others
    status[stat.ST_GID] += group
    monkeypatch.setattr(files, "_replaced", lambda target: os.stat_result(status))
    monkeypatch.setattr(files.os, "fchown", forbidden)
    asked = []
    monkeypatch.setattr(files.os, "fchmod", lambda descriptor, mode: asked.append(mode))
    write_atomically(old, b"new")
    assert asked == [after]
    assert old.read_bytes() == b"new"


def test_without_owners_files_are_written_all_the_same(old, monkeypatch):
    monkeypatch.delattr(files.os, "fchown")
    write_atomically(old, b"new")
    assert old.read_bytes() == b"new"


@pytest.mark.usefixtures("open_to_all")
class TestMeanwhile:
    """What is written is never open to more people than it will be: one who opens it for a moment reads it for good."""

    @pytest.fixture
    def modes(self, monkeypatch):
        """The permissions of each file just after it was made, and when the data is in it."""
        found = []

        def look(descriptor):
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                found.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

        def opened(path, flags, mode=0o777, *, real=os.open):
            descriptor = real(path, flags, mode)
            if flags & os.O_CREAT:
                look(descriptor)
            return descriptor

        monkeypatch.setattr(files.os, "open", opened)
        monkeypatch.setattr(files.os, "fsync", look)
        return found

    @pytest.mark.parametrize("permissions", [0o600, 0o640, 0o644, 0o666])
    def test_a_file_that_is_replaced(self, old, permissions, modes):
        old.chmod(permissions)
        write_atomically(old, b"new")
        assert modes == [0o600, permissions]
        assert mode(old) == permissions

    def test_a_private_file(self, old, modes):
        old.chmod(0o666)
        write_private(old, b"new")
        assert modes == [0o600, 0o600]
        assert mode(old) == 0o600

    def test_a_new_file_is_like_any(self, tmp_path, modes):
        write_atomically(tmp_path / "new", b"new")
        assert modes == [0o666, 0o666]


def test_the_other_names_of_a_file_keep_what_they_had(old, tmp_path):
    os.link(old, tmp_path / "backup")
    write_atomically(old, b"new")
    assert old.read_bytes() == b"new"
    assert (tmp_path / "backup").read_bytes() == b"old"
    assert old.stat().st_nlink == (tmp_path / "backup").stat().st_nlink == 1


def test_a_file_with_several_names_is_never_half_written(old, tmp_path, monkeypatch):
    os.link(old, tmp_path / "backup")

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(old, b"new")
    assert old.read_bytes() == (tmp_path / "backup").read_bytes() == b"old"
    assert old.samefile(tmp_path / "backup")


class TestPrivate:
    def test_a_new_file_is_read_by_its_owner_only(self, tmp_path):
        write_private(tmp_path / "new", b"new")
        assert (tmp_path / "new").read_bytes() == b"new"
        assert mode(tmp_path / "new") == 0o600
        assert names(tmp_path) == ["new"]

    @as_root
    def test_an_old_file_is_not_left_to_its_owner(self, old):
        os.chown(old, 12345, 12345)
        write_private(old, b"new")
        assert owner(old) == (os.geteuid(), os.getegid())
        assert mode(old) == 0o600

    def test_a_link_is_replaced_and_what_it_leads_to_stays(self, old, tmp_path):
        (tmp_path / "link").symlink_to(old)
        write_private(tmp_path / "link", b"new")
        assert old.read_bytes() == b"old"
        assert not (tmp_path / "link").is_symlink()
        assert (tmp_path / "link").read_bytes() == b"new"

    def test_a_pipe_is_replaced_and_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        write_private(tmp_path / "pipe", b"new")
        assert (tmp_path / "pipe").read_bytes() == b"new"

    def test_a_folder_stays_and_is_named(self, tmp_path):
        (tmp_path / "folder").mkdir()
        with pytest.raises(OSError, match="folder"):
            write_private(tmp_path / "folder", b"new")
        assert names(tmp_path) == ["folder"]
