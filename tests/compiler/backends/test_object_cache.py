"""The cache of compiled kernels, attacked: what it finds must be this user's own, and whole, and for this processor."""

import errno
import hashlib
import hmac
import math
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm import llvm_machine, object_cache
from micrograd.compiler.backends.llvm.object_cache import KEY, is_object
from micrograd.compiler.backends.shared import written
from tests.compiler.backends.entries import cached
from tests.support.common import mode

pytestmark = pytest.mark.slow

posix = pytest.mark.skipif(os.name != "posix", reason="owners, permissions, links and pipes as POSIX has them")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
NOBODY = 65534


def entries(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != KEY and path.is_file()}


def entry_in(folder):
    (path,) = (path for path in folder.iterdir() if path.name != KEY)
    return path


def signed(folder, name, content):
    """An entry signed as the cache itself would have done it."""
    code = hmac.digest((folder / KEY).read_bytes(), name.encode() + content, "sha256")
    (folder / name).write_bytes(code + content)


def not_made():
    pytest.fail("it is made again")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache that is yet to be made."""
    path = tmp_path / "cache"
    monkeypatch.setenv("MICROGRAD_CACHE", str(path))
    return path


@pytest.fixture
def filled(folder):
    assert cached("key", lambda: b"content") == b"content"
    assert cached("key", not_made) == b"content"
    return folder


@pytest.fixture
def as_nobody():
    """A folder of a user who is not root, and that user."""
    with tempfile.TemporaryDirectory() as name:
        position = Path(name)
        if os.geteuid() != 0:
            yield position
            return
        os.chown(position, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            yield position
        finally:
            os.seteuid(0)
            os.setegid(0)


@pytest.mark.usefixtures("open_to_all")
@posix
class TestPrivacy:
    def test_the_folder_and_all_in_it_are_for_this_user_only(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / "not" / "there" / "yet"))
        cached("key", lambda: b"content")
        made = [path for path in tmp_path.rglob("*") if path.is_dir()]
        assert len(made) == 3
        assert {mode(path) for path in made} == {0o700}
        files = list((tmp_path / "not" / "there" / "yet").iterdir())
        assert len(files) == 2
        assert {mode(path) for path in files} == {0o600}

    def test_nothing_is_open_to_others_for_a_moment(self, folder, monkeypatch):
        modes = []

        def opened(path, flags, mode=0o777, *, real=os.open):
            descriptor = real(path, flags, mode)
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            return descriptor

        def made(self, *arguments, real=Path.mkdir, **more):
            real(self, *arguments, **more)
            modes.append(mode(self))

        monkeypatch.setattr(os, "open", opened)
        monkeypatch.setattr(Path, "mkdir", made)
        cached("key", lambda: b"content")
        assert {0o600, 0o700} == {*modes}

    def test_an_entry_that_others_may_read_is_as_good(self, filled):
        entry_in(filled).chmod(0o644)
        filled.chmod(0o755)
        assert cached("key", not_made) == b"content"


def other_owner(path):
    os.chown(path, NOBODY, NOBODY)


def permissions(bits):
    return lambda path: path.chmod(bits)


OPEN_TO_OTHERS = [
    pytest.param("folder", other_owner, "belongs to another user", marks=as_root),
    ("folder", permissions(0o770), "other users may write to"),
    ("folder", permissions(0o702), "other users may write to"),
    ("folder", permissions(0o1777), "other users may write to"),
    pytest.param("entry", other_owner, "belongs to another user", marks=as_root),
    ("entry", permissions(0o620), "other users may write to"),
    ("entry", permissions(0o602), "other users may write to"),
    pytest.param("key", other_owner, "belongs to another user", marks=as_root),
    ("key", permissions(0o620), "other users may write to"),
    ("key", permissions(0o602), "other users may write to"),
    ("key", permissions(0o640), "other users may read"),
    ("key", permissions(0o604), "other users may read"),
]


@posix
class TestOthers:
    @pytest.mark.parametrize(("what", "change", "reason"), OPEN_TO_OTHERS)
    def test_what_others_could_have_put_there_is_refused_with_one_warning(self, filled, what, change, reason):
        path = {"folder": filled, "entry": entry_in(filled), "key": filled / KEY}[what]
        change(path)
        before = {path: (path.read_bytes(), path.stat()) for path in filled.iterdir()}
        with pytest.warns(UserWarning, match=f"compiled again and not kept: .*{reason}.*MICROGRAD_CACHE") as caught:
            assert cached("key", lambda: b"again") == b"again"
        assert len(caught) == 1
        assert str(path) in str(caught[0].message)
        for _ in range(2):  # where a second warning is an error
            assert cached("key", lambda: b"again") == b"again"
        if what != "entry":
            assert cached("another key", lambda: b"more") == b"more"
        assert {path: (path.read_bytes(), path.stat()) for path in filled.iterdir()} == before

    @pytest.mark.parametrize(
        ("what", "bits"), [("folder", 0o770), ("folder", 0o1777), ("entry", 0o602), ("key", 0o620), ("key", 0o604)]
    )
    def test_when_others_have_no_rights_any_more_it_is_used_again(self, filled, what, bits):
        path = {"folder": filled, "entry": entry_in(filled), "key": filled / KEY}[what]
        path.chmod(bits)
        with pytest.warns(UserWarning, match="not kept"):
            assert cached("key", lambda: b"again") == b"again"
        subprocess.run(["chmod", "go-rwx", path], check=True)
        assert cached("key", not_made) == b"content"

    def test_a_folder_of_another_user_is_refused_also_where_nobody_is_root(self, filled, monkeypatch):
        user = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
        with pytest.warns(UserWarning, match=f"{filled} belongs to another user"):
            assert cached("key", lambda: b"again") == b"again"

    def test_an_empty_folder_open_to_others_gets_no_key(self, folder):
        folder.mkdir()
        folder.chmod(0o777)
        with pytest.warns(UserWarning, match="may write to"):
            cached("key", lambda: b"content")
        assert list(folder.iterdir()) == []

    def test_each_folder_has_its_warning(self, tmp_path, monkeypatch):
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
            (tmp_path / name).chmod(0o777)
            monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / name))
            with pytest.warns(UserWarning, match=name):
                cached("key", lambda: b"content")

    @as_root
    def test_a_user_runs_no_code_that_root_left(self, as_nobody, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE", str(as_nobody / "cache"))
        os.seteuid(0)
        cached("key", lambda: b"content")
        os.seteuid(NOBODY)
        with pytest.warns(UserWarning, match="belongs to another user"):
            assert cached("key", lambda: b"again") == b"again"

    def test_where_permissions_say_nothing_they_are_not_asked(self, filled, monkeypatch):
        """As on Windows."""
        monkeypatch.delattr(os, "geteuid")
        entry_in(filled).chmod(0o666)
        assert cached("key", not_made) == b"content"

    def test_the_file_that_was_opened_is_looked_at_and_not_its_name(self, filled, tmp_path, monkeypatch):
        entry = entry_in(filled)
        (tmp_path / "good").write_bytes(entry.read_bytes())
        entry.chmod(0o666)

        def swapped(path, flags, mode=0o777, *, real=os.open):
            descriptor = real(path, flags, mode)
            if path == str(entry):
                os.replace(tmp_path / "good", entry)
            return descriptor

        monkeypatch.setattr(object_cache.os, "open", swapped)
        with pytest.warns(UserWarning, match="may write to"):
            assert cached("key", lambda: b"again") == b"again"


def digest(data):
    return hashlib.sha256(data).hexdigest().encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        bytes(31),
        bytes(32),
        random.Random(0).randbytes(500),
        digest(b"content") + b"\ncontent",  # entries of before the key
        hashlib.sha256(b"content").digest() + b"content",
        hmac.digest(bytes(32), b"content", "sha256") + b"content",
        hmac.digest(b"", b"content", "sha256") + b"content",
    ],
)
def test_what_is_not_signed_with_the_key_is_made_again_and_replaced(filled, data):
    whole = entries(filled)
    entry_in(filled).write_bytes(data)
    assert cached("key", lambda: b"content") == b"content"
    assert cached("key", not_made) == b"content"
    assert entries(filled) == whole


def test_an_entry_that_is_changed_anywhere_is_made_again(filled):
    entry = entry_in(filled)
    whole = entry.read_bytes()
    others = [whole[:length] for length in range(len(whole))] + [whole + b"\0", whole * 2]
    others += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for other in others:
        entry.write_bytes(other)
        assert cached("key", lambda: b"content") == b"content"
        assert entry.read_bytes() == whole


def test_an_entry_under_another_name_or_in_another_folder_is_not_taken(filled, tmp_path, monkeypatch):
    first = entry_in(filled)
    cached("other key", lambda: b"other")
    (second,) = (path for path in filled.iterdir() if path.name not in (KEY, first.name))
    second.write_bytes(first.read_bytes())
    assert cached("other key", lambda: b"again") == b"again"
    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / "elsewhere"))
    cached("key", lambda: b"content of elsewhere")
    (tmp_path / "elsewhere" / first.name).write_bytes(first.read_bytes())
    assert cached("key", lambda: b"again") == b"again"


class TestKey:
    def test_each_folder_has_a_key_of_its_own(self, tmp_path, monkeypatch):
        keys = set()
        for name in "abc":
            monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / name))
            cached("key", lambda: b"content")
            keys.add((tmp_path / name / KEY).read_bytes())
        assert len(keys) == 3
        assert {len(key) for key in keys} == {32}

    @pytest.mark.parametrize("damaged", [None, b"", bytes(31), bytes(33)])
    def test_one_that_is_lost_or_damaged_makes_all_entries_stale(self, filled, damaged):
        old = (filled / KEY).read_bytes()
        (filled / KEY).unlink()
        if damaged is not None:
            (filled / KEY).write_bytes(damaged)
            (filled / KEY).chmod(0o600)
        assert cached("key", lambda: b"again") == b"again"
        assert cached("key", not_made) == b"again"
        assert len((filled / KEY).read_bytes()) == 32
        assert (filled / KEY).read_bytes() != old

    @posix
    def test_one_that_is_a_link_is_replaced_and_what_it_leads_to_stays(self, filled, tmp_path):
        (tmp_path / "chosen").write_bytes(bytes(32))
        (tmp_path / "chosen").chmod(0o600)
        (filled / KEY).unlink()
        (filled / KEY).symlink_to(tmp_path / "chosen")
        assert cached("key", lambda: b"again") == b"again"
        assert not (filled / KEY).is_symlink()
        assert (tmp_path / "chosen").read_bytes() == bytes(32)

    def test_without_one_there_is_no_cache(self, filled):
        (filled / KEY).unlink()
        (filled / KEY).mkdir()
        before = entries(filled)
        for _ in range(2):
            assert cached("key", lambda: b"again") == b"again"
        assert entries(filled) == before

    def test_of_two_that_are_made_at_once_the_last_one_counts(self, folder, monkeypatch):
        def later(path, data, *, durable=True, real=object_cache.write_private):
            real(path, data, durable=durable)
            if Path(path).name == KEY:
                real(path, b"k" * 32, durable=durable)

        monkeypatch.setattr(object_cache, "write_private", later)
        cached("key", lambda: b"content")
        monkeypatch.undo()
        monkeypatch.setenv("MICROGRAD_CACHE", str(folder))
        assert cached("key", not_made) == b"content"


class TestLoad:
    def test_what_cannot_be_loaded_is_made_again_and_replaced(self, filled):
        def refuse(content):
            raise RuntimeError(content)

        assert cached("key", lambda: b"again", refuse) == b"again"
        assert cached("key", not_made) == b"again"

    def test_what_is_found_is_loaded_and_what_is_made_is_not(self, folder):
        loaded = []
        cached("key", lambda: b"content", loaded.append)
        assert loaded == []
        cached("key", not_made, loaded.append)
        assert loaded == [b"content"]


class TestTogether:
    """Keys whose content was made at once: the first entry has it, the others lead to it."""

    @staticmethod
    def asked(*keys, content=b"again"):
        """What is made and what is found for some keys: which, and the content."""
        made, found = [], []
        object_cache.cached(keys, lambda missing: made.append(missing) or content, lambda *pair: found.append(pair))
        return made, found

    @staticmethod
    def entry(folder, key):
        return folder / hashlib.sha256(key.encode()).hexdigest()[:32]

    @pytest.fixture
    def three(self, folder):
        assert self.asked("a", "b", "c", content=b"of all") == ([["a", "b", "c"]], [])
        return folder

    def test_is_loaded_once_for_all_that_are_asked_for(self, three):
        assert self.asked("c", "a", "b") == ([], [(["c", "a", "b"], b"of all")])
        assert self.asked("b") == ([], [(["b"], b"of all")])
        assert sum(b"of all" in data for data in entries(three).values()) == 1

    def test_only_what_is_missing_is_made(self, three):
        assert self.asked("d", "b", "e", "a") == ([["d", "e"]], [(["b", "a"], b"of all")])
        assert self.asked("a", "b", "c", "d", "e") == ([], [(["a", "b", "c"], b"of all"), (["d", "e"], b"again")])

    def test_without_the_content_all_of_them_are_made_again(self, three):
        self.entry(three, "a").unlink()
        assert self.asked("b", "c") == ([["b", "c"]], [])
        assert self.asked("b", "c", "a", content=b"a's own") == ([["a"]], [(["b", "c"], b"again")])
        assert self.asked("a", "c") == ([], [(["a"], b"a's own"), (["c"], b"again")])

    def test_a_content_that_is_no_good_for_one_of_them_is_made_again_for_all(self, three):
        def load(keys, content):
            if "b" in keys:
                raise RuntimeError(content)

        made = []
        object_cache.cached(["a", "b", "c", "d"], lambda missing: made.append(missing) or b"again", load)
        assert made == [["a", "b", "c", "d"]]
        assert self.asked("a", "b", "c", "d") == ([], [(["a", "b", "c", "d"], b"again")])

    @pytest.mark.parametrize("leads_to", ["b", "c", "nowhere", ""])
    def test_an_entry_that_leads_to_no_content_is_made_again(self, three, leads_to):
        name = self.entry(three, leads_to).name if leads_to else ""
        signed(three, self.entry(three, "b").name, b">" + bytes.fromhex(name))
        assert self.asked("b", "c") == ([["b"]], [(["c"], b"of all")])
        assert self.asked("b", "c") == ([], [(["b"], b"again"), (["c"], b"of all")])

    @pytest.mark.parametrize("data", [b"", b"of all", b"<of all"])
    def test_an_entry_of_another_kind_is_made_again(self, three, data):
        signed(three, self.entry(three, "a").name, data)
        assert self.asked("a", "b") == ([["a", "b"]], [])
        assert self.asked("a", "b") == ([], [(["a", "b"], b"again")])

    @posix
    def test_where_one_is_open_to_others_all_are_made_and_none_is_kept(self, three):
        before = entries(three)
        self.entry(three, "b").chmod(0o666)
        with pytest.warns(UserWarning, match="other users may write to"):
            assert self.asked("a", "b", "d") == ([["a", "b", "d"]], [])
        assert entries(three) == before


ALARM = """
import signal
signal.alarm(60)
from micrograd.compiler.backends.llvm.object_cache import cached
cached(["key"], lambda keys: print(b"again") or b"again", lambda keys, content: print(content))
"""


def run(program, folder, *arguments):
    """What a process of its own prints, which must neither crash, nor hang, nor warn."""
    environment = os.environ | {"MICROGRAD_CACHE": str(folder), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@posix
class TestPositions:
    """What may stand where an entry or the folder should."""

    def test_a_pipe_is_not_waited_for(self, filled):
        entry = entry_in(filled)
        for pipe in (entry, filled / KEY):
            pipe.unlink()
            os.mkfifo(pipe, 0o600)
            assert run(ALARM, filled) == "b'again'\n"
            assert stat.S_ISREG(pipe.lstat().st_mode)

    def test_a_pipe_is_not_waited_for_by_any_thread(self, filled):
        """The same in this process, where mutants are seen."""
        entry = entry_in(filled)
        entry.unlink()
        os.mkfifo(entry, 0o600)
        found = []
        thread = threading.Thread(target=lambda: found.append(cached("key", lambda: b"again")), daemon=True)
        thread.start()
        thread.join(600)  # whoever waits for a pipe waits for ever
        assert found == [b"again"]

    @pytest.mark.parametrize("there", [True, False])
    def test_a_link_is_not_followed(self, filled, tmp_path, there):
        entry, target = entry_in(filled), tmp_path / "target"
        os.replace(entry, target)
        entry.symlink_to(target)
        before = target.read_bytes()
        if not there:
            target.unlink()
        assert cached("key", lambda: b"again") == b"again"
        assert cached("key", not_made) == b"again"
        assert not entry.is_symlink()
        assert target.exists() == there
        assert not there or target.read_bytes() == before

    def test_a_folder_for_an_entry(self, filled):
        entry = entry_in(filled)
        entry.unlink()
        entry.mkdir()
        for _ in range(2):
            assert cached("key", lambda: b"again") == b"again"
        assert list(entry.iterdir()) == []
        assert sorted(path.name for path in filled.iterdir()) == sorted([KEY, entry.name])

    def test_a_file_for_the_folder(self, folder):
        folder.write_bytes(b"file")
        assert cached("key", lambda: b"content") == b"content"
        assert folder.read_bytes() == b"file"

    def test_a_link_to_a_folder_is_as_good_as_that_folder(self, filled, tmp_path, monkeypatch):
        """Caches are moved to larger disks that way; who can change the link can only lead to what is looked at."""
        (tmp_path / "link").symlink_to(filled)
        monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / "link"))
        assert cached("key", not_made) == b"content"
        filled.chmod(0o777)
        with pytest.warns(UserWarning, match="other users may write to"):
            assert cached("key", lambda: b"again") == b"again"

    def test_a_link_to_nowhere(self, folder, tmp_path):
        folder.symlink_to(tmp_path / "nowhere")
        assert cached("key", lambda: b"content") == b"content"
        assert not (tmp_path / "nowhere").exists()

    def test_a_path_from_here_is_another_position_elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE", "cache")
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            assert cached("key", name.encode) == name.encode()
            assert cached("key", not_made) == name.encode()
            assert len(list((tmp_path / name / "cache").iterdir())) == 2

    @pytest.mark.parametrize("bits", [0o000, 0o200, 0o400])
    def test_a_folder_that_cannot_be_used(self, as_nobody, monkeypatch, bits):
        folder = as_nobody / "cache"
        monkeypatch.setenv("MICROGRAD_CACHE", str(folder))
        cached("key", lambda: b"content")
        folder.chmod(bits)
        assert cached("key", lambda: b"again") == b"again"
        folder.chmod(0o700)
        assert cached("key", not_made) == b"content"

    def test_a_folder_that_must_not_be_written_to_is_read(self, as_nobody, monkeypatch):
        folder = as_nobody / "cache"
        monkeypatch.setenv("MICROGRAD_CACHE", str(folder))
        cached("key", lambda: b"content")
        folder.chmod(0o500)
        assert cached("key", not_made) == b"content"
        assert cached("other key", lambda: b"other") == b"other"
        assert len(list(folder.iterdir())) == 2
        folder.chmod(0o700)

    def test_an_entry_that_must_not_be_read_is_made_again(self, as_nobody, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE", str(as_nobody / "cache"))
        cached("key", lambda: b"content")
        entry_in(as_nobody / "cache").chmod(0)
        assert cached("key", lambda: b"again") == b"again"
        assert cached("key", not_made) == b"again"

    def test_a_folder_that_cannot_be_made(self, as_nobody, monkeypatch):
        as_nobody.chmod(0o500)
        monkeypatch.setenv("MICROGRAD_CACHE", str(as_nobody / "cache" / "inner"))
        assert cached("key", lambda: b"content") == b"content"
        assert list(as_nobody.iterdir()) == []
        as_nobody.chmod(0o700)


def test_without_a_home_there_is_no_cache(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(object_cache, "folder", homeless)
    assert cached("key", lambda: b"content") == b"content"


@pytest.mark.parametrize("first", [KEY, "entry"])
def test_a_full_disk_leaves_nothing_half_written(folder, monkeypatch, first):
    def full(path, data, *, durable=True, real=object_cache.write_private):
        if first == "entry" and Path(path).name == KEY:
            return real(path, data, durable=durable)
        with monkeypatch.context() as patch:
            patch.setattr("os.replace", no_room)
            return real(path, data, durable=durable)

    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(object_cache, "write_private", full)
    assert cached("key", lambda: b"content") == b"content"
    assert [path.name for path in folder.iterdir()] == ([] if first == KEY else [KEY])


# Writes entries of a key's own content again and again, until it is killed.
WRITING = """
import random, sys
from micrograd.compiler.backends.llvm import object_cache
print("ready", flush=True)
def refuse(keys, content):
    assert set(content) == {content[0]}
    raise RuntimeError
while True:
    key = random.choice("abc")
    object_cache.cached([key], lambda keys: key.encode() * random.randrange(1, 100_000), refuse)
"""


@posix
def test_processes_that_are_killed_while_they_write_leave_no_half_entry(filled):
    random.seed(0)
    (filled / KEY).unlink()
    for _ in range(5):
        processes = [subprocess.Popen([sys.executable, "-c", WRITING], stdout=subprocess.PIPE) for _ in range(2)]
        for process in processes:
            with process:
                assert process.stdout.readline() == b"ready\n"
                time.sleep(random.uniform(0.005, 0.05))
                assert process.poll() is None
                process.send_signal(signal.SIGKILL)
        for key in "abc":
            content = cached(key, key.encode)
            assert set(content) == set(key.encode())
            assert cached(key, not_made) == content


RUN = """
import micrograd as mg
w = mg.Value(3.0)
fast = mg.compile(lambda x: mg.exp(w * x) + sum(w * i for i in range(9)), backend="llvm")
fast(2.0).backward()
print(w.grad)
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_processes_that_begin_at_once_share_the_cache_in_the_end(folder, damaged):
    if damaged:
        folder.mkdir(mode=0o700)
        (folder / KEY).write_bytes(b"damaged")
        (folder / KEY).chmod(0o600)
    processes = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", RUN], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    (printed,) = {process.communicate()[0] for process in processes}
    assert run(RUN, folder) == printed != ""
    before = {path: path.stat().st_ino for path in folder.iterdir()}  # a file that is written again is another one
    assert run(RUN, folder) == printed
    assert {path: path.stat().st_ino for path in folder.iterdir()} == before


@pytest.fixture
def new_machine(monkeypatch):
    """What makes the compiler of this process forget what it has compiled."""
    return lambda: monkeypatch.setattr(llvm_machine, "_machine", None)


def gradient():
    w = Value(3.0)
    mg.compile(lambda x: mg.exp(w * x) + sum(w * i for i in range(9)), backend="llvm")(2.0).backward()
    assert w.grad == pytest.approx(2 * math.exp(6) + 36)


OTHER_PROCESSOR = {b"\x3e\x00": b"\xb7\x00", b"\xb7\x00": b"\x3e\x00"}

SIGNED = [  # what stands in for an object, and for its function
    ("text", lambda content, name: b"text" * 100),
    ("nothing", lambda content, name: b""),
    ("its name", lambda content, name: name + b"\0"),
    ("only the beginning", lambda content, name: content[:64]),
    ("the beginning and its name", lambda content, name: content[:20] + name + b"\0"),
    ("all but the end", lambda content, name: content[:-1]),
    ("of another processor", lambda content, name: content[:18] + OTHER_PROCESSOR[content[18:20]] + content[20:]),
    ("of another function", lambda content, name: content.replace(name + b"\0", b"x" * len(name) + b"\0")),
    (
        "of another function, and its name",
        lambda content, name: content.replace(name + b"\0", b"x" * len(name) + b"\0") + name + b"\0",
    ),
]


@pytest.mark.skipif(sys.platform != "linux", reason="objects as ELF has them")
@pytest.mark.parametrize("change", [change for _, change in SIGNED], ids=[name for name, _ in SIGNED])
def test_what_is_signed_and_yet_no_kernel_is_compiled_again_and_replaced(folder, new_machine, monkeypatch, change):
    names = {}

    def remembered(keys, make, load):
        names.update((object_cache.checksum(key.encode())[:32], key.partition("\n")[0].encode()) for key in keys)
        object_cache.cached(keys, make, load)

    monkeypatch.setattr(llvm_machine, "cached", remembered)
    new_machine()
    gradient()
    whole = entries(folder)
    objects = {name: data[33:] for name, data in whole.items() if data[32:33] == b"="}
    assert len(objects) < len(whole) > 2
    for name, content in objects.items():
        signed(folder, name, b"=" + change(content, names[name]))
    changed = entries(folder)
    assert all(changed[name] != whole[name] for name in objects)
    found = run(RUN, folder)  # in a process of its own, which must not crash
    assert float(found) == pytest.approx(2 * math.exp(6) + 36)
    assert entries(folder) == whole
    for name, data in changed.items():
        (folder / name).write_bytes(data)
    new_machine()
    gradient()
    assert entries(folder) == whole


def test_a_compiler_that_makes_no_objects_is_an_error_and_no_crash(folder, new_machine, monkeypatch):
    new_machine()
    monkeypatch.setattr(llvm_machine.Machine, "_compiled", lambda *_: b"text")
    with pytest.raises(RuntimeError, match="no object: b'text'"):
        gradient()


def test_functions_that_two_objects_have_are_found(folder, new_machine, monkeypatch):
    """As where two processes compile at once: one object has the first and the second, the other one the last two."""

    def function(x, y):
        return mg.tanh(x) * 3 + mg.exp(y)

    new_machine()
    mg.compile(lambda x: mg.tanh(x) * 3, backend="llvm")(0.5)
    first = entries(folder)
    for path in folder.iterdir():
        if path.name != KEY:
            path.unlink()
    new_machine()
    mg.compile(function, backend="llvm")(0.5, 0.25)
    second = entries(folder)
    for name, data in (second | first).items():
        (folder / name).write_bytes(data)
    new_machine()
    assert mg.compile(function, backend="llvm")(0.5, 0.25) == pytest.approx(function(0.5, 0.25), rel=1e-15)


def test_what_is_kept_is_found_again(folder, new_machine, monkeypatch):
    new_machine()
    gradient()
    new_machine()
    monkeypatch.setattr(llvm_machine.Machine, "_compiled", not_made)
    gradient()


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        ("llvmlite.binding", "get_host_cpu_name", lambda: "generic"),
        ("llvmlite.binding", "get_host_cpu_features", lambda: NoFeatures()),
        ("llvmlite", "__version__", "0.0"),
        ("micrograd.compiler.backends.llvm.llvm_machine", "_version", lambda: "another"),
    ],
)
def test_kernels_for_another_processor_or_of_another_version_are_kept_apart(
    folder, new_machine, monkeypatch, of, name, value
):
    new_machine()
    gradient()
    before = entries(folder)
    monkeypatch.setattr(f"{of}.{name}", value)
    new_machine()
    gradient()
    after = entries(folder)
    assert len(after) == 2 * len(before)
    assert after.items() > before.items()


class NoFeatures:
    """A processor that can do nothing special."""

    def flatten(self):
        return ""


class ManyRegisters:
    """A processor with 32 registers of eight numbers."""

    def flatten(self):
        return "+avx2,+avx512f"


@pytest.mark.parametrize(("features", "rows"), [(NoFeatures, 2), (ManyRegisters, 8)])
def test_blocks_have_as_many_rows_as_there_are_registers_for(features, rows, monkeypatch):
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", features)
    assert llvm_machine.Machine().block == rows


def test_the_version_is_that_of_all_that_writes_the_code(monkeypatch, tmp_path):
    """A kernel of before a change to the compiler must not be taken after it."""
    before, here = llvm_machine._version(), Path(llvm_machine.__file__).parent
    for path in here.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    operators = tmp_path / "operators"  # those of C and LLVM
    operators.write_bytes(Path(written.__file__).read_bytes())
    monkeypatch.setattr(llvm_machine, "__file__", str(tmp_path / "llvm_machine.py"))
    monkeypatch.setattr(written, "__file__", str(operators))
    assert llvm_machine._version() == before
    for path in (operators, *tmp_path.glob("*.py")):
        content = path.read_bytes()
        path.write_bytes(content + b"#")
        assert llvm_machine._version() != before
        path.write_bytes(content)


def test_the_key_names_the_function_and_all_that_the_code_depends_on(folder, new_machine, monkeypatch):
    keys = []
    monkeypatch.setattr(llvm_machine, "cached", lambda found, make, load: keys.extend(found) or make(found))
    new_machine()
    gradient()
    machine = llvm_machine.machine()
    assert len(keys) == len({*keys}) > 2
    for key in keys:
        name, triple, *rest = key.split("\n")
        assert name in machine.names()
        assert triple == machine._triple
        assert len(rest) == 4


def test_the_warning_is_about_the_users_own_line(folder, new_machine):
    folder.mkdir()
    folder.chmod(0o777)
    new_machine()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gradient()
    if os.name == "posix":
        assert [(warning.filename, warning.category) for warning in caught] == [(__file__, UserWarning)]
    assert list(folder.iterdir()) == []


ELF, MACH_O = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\x00", b"\xcf\xfa\xed\xfe"
OBJECTS = {  # by processor: ELF, Mach-O, COFF
    "x86_64": [ELF + b"\x3e\x00", MACH_O + b"\x07\x00\x00\x01", b"\x64\x86"],
    "aarch64": [ELF + b"\xb7\x00", MACH_O + b"\x0c\x00\x00\x01", b"\x64\xaa"],
    "arm64": [ELF + b"\xb7\x00", MACH_O + b"\x0c\x00\x00\x01", b"\x64\xaa"],
    "riscv64": [ELF + b"\xf3\x00"],
    "i686": [ELF + b"\x03\x00", b"\xce\xfa\xed\xfe" + b"\x07\x00\x00\x00", b"\x4c\x01"],
}


@pytest.mark.parametrize("processor", OBJECTS)
def test_objects_are_told_by_how_they_begin(processor):
    rest = bytes(50) + b"\0micrograd_name\0"
    for beginning in OBJECTS[processor]:
        assert is_object(beginning + rest, "micrograd_name", processor)
        assert not is_object(beginning + rest, "micrograd_other", processor)
        assert not is_object(beginning + rest, "micrograd_nam", processor)
        assert not is_object(b" " + beginning + rest, "micrograd_name", processor)
    assert not is_object(b"text" + rest, "micrograd_name", processor)
    if processor in ("x86_64", "aarch64"):
        for other in {*OBJECTS} - {processor, "arm64"}:
            for beginning in OBJECTS[other]:
                assert not is_object(beginning + rest, "micrograd_name", processor)
