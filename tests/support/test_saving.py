"""Saving a model where everything goes wrong: killed, on a full disk, in a folder that must not be written to."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import micrograd as mg
from tests.support.common import names

posix = pytest.mark.skipif(os.name != "posix", reason="signals, limits and mounts as POSIX has them")
root = hasattr(os, "geteuid") and os.geteuid() == 0

# Saves one of two models over the other again and again, says so each time, and goes on until it is killed.
SAVING = """
import sys
from micrograd.nn import MLP
models = MLP(10, [20, 1]), MLP(10, [20, 1])
for model, number in zip(models, (1.25, -2.5)):
    for parameter in model.parameters():
        parameter.data = number
while True:
    for model in models:
        model.save(sys.argv[1])
        print("saved", flush=True)
"""


def model_of(number):
    model = mg.nn.MLP(10, [20, 1])
    for parameter in model.parameters():
        parameter.data = number
    return model


def numbers_in(path):
    """The different numbers of a model that is loaded from a file: one, unless halves of two were mixed."""
    model = mg.nn.MLP(10, [20, 1])
    model.load(path)
    return {parameter.data for parameter in model.parameters()}


@pytest.mark.slow
@posix
@pytest.mark.unmeasured
def test_a_process_killed_at_any_moment_leaves_one_of_the_two_files_whole(tmp_path):
    path = tmp_path / "model.json"
    chance = random.Random(0)
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", SAVING, path], stdout=subprocess.PIPE) as process:
            for _ in range(chance.randint(1, 20)):
                assert process.stdout.readline() == b"saved\n"
            time.sleep(chance.uniform(0, 0.01))  # any moment will do
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
        assert numbers_in(path) in ({1.25}, {-2.5})
    model_of(7.0).save(path)  # what the killed ones left does not stand in the way
    assert numbers_in(path) == {7.0}


@contextmanager
def small_disk(folder, kilobytes):
    """A disk of that size mounted at the folder, where this user may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only who may mount a small disk can fill it")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(sys.platform != "linux" or not root, reason="mounting a disk in memory needs Linux and root")
class TestDisk:
    def test_a_full_disk_keeps_the_old_file_and_is_named(self, tmp_path):
        disk = tmp_path / "disk"
        with small_disk(disk, 32):
            path = disk / "model.json"
            model_of(1.0).save(path)
            room = os.statvfs(disk)
            (disk / "ballast").write_bytes(b"x" * room.f_bsize * (room.f_bavail - 1))
            with pytest.raises(OSError, match=r"No space left on device.*model\.json") as raised:
                model_of(2.0).save(path)
            assert raised.value.errno == errno.ENOSPC
            assert numbers_in(path) == {1.0}
            assert names(disk) == ["ballast", "model.json"]
            (disk / "ballast").unlink()
            model_of(2.0).save(path)
            assert numbers_in(path) == {2.0}

    def test_a_full_disk_gets_no_new_file(self, tmp_path):
        disk = tmp_path / "disk"
        with small_disk(disk, 4):
            with pytest.raises(OSError, match="No space left on device"):
                model_of(2.0).save(disk / "model.json")
            assert names(disk) == []

    def test_a_disk_that_is_mounted_for_reading(self, tmp_path):
        disk = tmp_path / "disk"
        with small_disk(disk, 64):
            path = disk / "model.json"
            model_of(1.0).save(path)
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            for name in ("model.json", "new.json"):
                with pytest.raises(OSError, match=rf"Read-only file system.*{name}"):
                    model_of(2.0).save(disk / name)
            assert numbers_in(path) == {1.0}
            assert names(disk) == ["model.json"]


# Tries to save where it must not; who is root, and may write anywhere, becomes a user who may not.
FORBIDDEN = """
import os, sys
from micrograd._support.files import write_atomically
if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
for path in sys.argv[1:]:
    try:
        write_atomically(path, b"new")
    except PermissionError as error:
        print(error)
"""


@posix
def test_a_folder_that_must_not_be_written_to_is_named_as_the_reason():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = folder / "model.json"
        old.write_bytes(b"old")
        old.chmod(0o666)  # the file itself may be written to
        folder.chmod(0o555)
        try:
            command = [sys.executable, "-c", FORBIDDEN, old, folder / "new.json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            folder.chmod(0o755)
        messages = done.stdout.splitlines()
        assert len(messages) == 2
        for message, path in zip(messages, (old, folder / "new.json"), strict=True):
            assert message.startswith("[Errno 13] Permission denied, in its folder, where it is written before")
            assert message.endswith(f"'{path}'")
        assert old.read_bytes() == b"old"
        assert names(folder) == ["model.json"]


def test_a_cut_off_file_is_never_loaded(tmp_path):
    path = tmp_path / "model.json"
    model_of(1.0).save(path)
    whole = path.read_bytes()
    model = model_of(3.0)
    for length in [*range(0, len(whole) - 2, 97), len(whole) - 2]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"cannot load .*model\.json"):
            model.load(path)
    assert {parameter.data for parameter in model.parameters()} == {3.0}
    path.write_bytes(whole)
    assert json.loads(whole)["format"] == "micrograd state 1"
    model.load(path)
    assert {parameter.data for parameter in model.parameters()} == {1.0}
