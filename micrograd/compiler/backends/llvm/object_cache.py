"""Compiled kernels on disk: the next process finds them, and checks them before it uses them.

An entry is the object code of a kernel, named by a hash of the code, the processor and the versions of what compiled
it. Kernels that were compiled together are in one object: the entry of the first of them is that object, and the
others' entries have its name. Who can write an entry can have this process run anything, so:

- The folder is made for this user only. It, and what is read in it, must belong to the user, and others must have no
  right to write to it. Where that is not so, a warning says it once, and kernels are compiled as if there were none.
- An entry is opened without following a link or waiting for a pipe, and what was opened is looked at, not its name.
- An entry begins with an HMAC of its name and content. The key is in a file that only the user may read, and is made
  with the folder. So what is cut off, damaged, made up, or from another position is compiled again and replaced.
- Only what looks like an object for this processor, with the function in it, gets as far as LLVM, which crashes on
  what it cannot read.

The folder has a limit, MICROGRAD_CACHE_MB. A process looks at its size at the first entry that it writes, and again
after a tenth of the limit. Beyond it, the entries that were not read for longest are removed, down to nine tenths. If
another process needs one of them at that moment, it compiles it again.

Files are written under names of their own and renamed, so processes may share the folder. If several of them make a key
at the same moment, the last one's stays, as it does if a key is lost: entries with another one are stale, and are
compiled again when they are asked for.
"""

from __future__ import annotations

import hmac
import logging
import os
import stat
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.callers import warn_user
from micrograd._support.files import checksum, write_private
from micrograd.compiler.backends.shared.limits import limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KEY = "micrograd.key"
_LOG = logging.getLogger("micrograd")
_SIZE = 32  # bytes of the key, and of an HMAC
_NAME = 32  # letters of the name of an entry
_WHOLE, _ELSEWHERE = b"=", b">"  # after the HMAC: a content, or the name of the entry that has it
_FLAGS = os.O_RDONLY  # and, where there are such: follow no link, wait for no pipe, leave the ends of lines as they are
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)
_WRITE, _ALL = stat.S_IWGRP | stat.S_IWOTH, stat.S_IRWXG | stat.S_IRWXO  # what others may do

_PROCESSORS = {  # how ELF, Mach-O and COFF call them
    "x86_64": (b"\x3e\x00", b"\x07\x00\x00\x01", b"\x64\x86"),
    "aarch64": (b"\xb7\x00", b"\x0c\x00\x00\x01", b"\x64\xaa"),
    "arm64": (b"\xb7\x00", b"\x0c\x00\x00\x01", b"\x64\xaa"),
}
_warned: set[str] = set()  # folders
_written: dict[str, int] = {}  # bytes that this process has written to a folder since it looked at the size


def folder() -> Path:
    """The folder of the entries: MICROGRAD_CACHE if it is set, or else a folder among the user's caches."""
    if chosen := os.environ.get("MICROGRAD_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "micrograd" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "micrograd"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "micrograd"


def cached(keys: Sequence[str], make: Callable[[list[str]], bytes], load: Callable[[list[str], bytes], object]) -> None:
    """Load what is kept of some keys. For those that are not there, or no good, one content is made, and kept.

    Args:
        keys: each all that its content depends on.
        make: makes and loads the content of some keys together.
        load: tries a content that was found for some keys, and raises a RuntimeError if it is no good.

    Warns:
        UserWarning: once for a folder, if it or something in it is open to others. Then nothing is read or written.
    """
    position, entries, missing = "", None, [*keys]
    try:
        position = os.fspath(folder())
        entries = _Entries(position)
        missing = entries.load(keys, load)
        _LOG.debug("native code: %d of %d functions found in %s", len(keys) - len(missing), len(keys), position)
    except _UnsafeError as error:
        entries = None
        _warn(position, str(error))
    except (OSError, RuntimeError):  # no home, or no folder
        pass
    if not missing:
        return
    content = make(missing)
    if entries is not None:
        with suppress(OSError):  # a cache that cannot be written is no cache
            entries.write(missing, content)


def is_object(content: bytes, name: str, processor: str) -> bool:
    """Whether this looks like an object for a processor that a function is in.

    Args:
        content: the object.
        name: the function.
        processor: as in LLVM's triples; of those that are not known any object will do.
    """
    if name.encode() + b"\0" not in content:
        return False
    if processor not in _PROCESSORS:
        return content.startswith((b"\x7fELF", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\x4c\x01"))
    elf, mach_o, coff = _PROCESSORS[processor]
    is_elf = content.startswith(b"\x7fELF") and content[18:20] == elf
    return is_elf or content.startswith((b"\xcf\xfa\xed\xfe" + mach_o, coff))


class _UnsafeError(Exception):
    """What others could have put there."""


class _Entries:
    """The entries in a folder, which is made if need be."""

    def __init__(self, position: str) -> None:
        self._position = position
        try:
            status = os.stat(position)  # a link to a folder elsewhere is as good as that folder
        except FileNotFoundError:
            _make_folder(Path(position))
            status = os.stat(position)
        _check(position, status, _WRITE)
        self._secret = _secret(os.path.join(position, KEY))

    def load(self, keys: Sequence[str], load: Callable[[list[str], bytes], object]) -> list[str]:
        """Load the contents of keys, each once for all keys that have it; give the keys whose content is no good."""
        bad: set[str] = set()
        having: dict[str, list[str]] = {}
        contents: dict[str, bytes] = {}
        for key in keys:
            with _listed([key], bad):
                found = self._read(name := _name_of(key))
                if found.startswith(_ELSEWHERE):
                    name = found.removeprefix(_ELSEWHERE).hex()
                else:
                    contents[name] = found
                having.setdefault(name, []).append(key)
        for name, together in having.items():
            with _listed(together, bad):
                found = contents.get(name) or self._read(name)
                if not found.startswith(_WHOLE):
                    raise RuntimeError("no content")
                load(together, found.removeprefix(_WHOLE))
                with suppress(OSError):  # in a folder that may only be read
                    os.utime(os.path.join(self._position, name))
        return [key for key in keys if key in bad]

    def write(self, keys: Sequence[str], content: bytes) -> None:
        """Put the content of some keys in the place of what is there."""
        first, *others = map(_name_of, keys)
        self._write(first, _WHOLE + content)
        for name in others:
            self._write(name, _ELSEWHERE + bytes.fromhex(first))
        most, written = limit("MICROGRAD_CACHE_MB"), _written.get(self._position)
        if written is None or written > most / 10:
            _shrink(self._position, most)
            written = 0
        _written[self._position] = written + len(content)

    def _read(self, name: str) -> bytes:
        """What is in an entry.

        Raises:
            OSError: if there is no such file.
            RuntimeError: if it is not what was written.
        """
        data = _read(os.path.join(self._position, name), _WRITE)
        if not hmac.compare_digest(data[:_SIZE], self._code(name, content := data[_SIZE:])):
            raise RuntimeError("damaged")
        return content

    def _write(self, name: str, content: bytes) -> None:
        # Waiting for the disk takes half a millisecond a kernel or more, and a damaged entry is made again
        path = os.path.join(self._position, name)
        write_private(path, self._code(name, content) + content, durable=False)

    def _code(self, name: str, content: bytes) -> bytes:
        return hmac.digest(self._secret, name.encode() + content, "sha256")


def bytes_on_disk() -> int:
    """Bytes of the entries in the folder; 0 where there is none."""
    return sum(size for _, size, _ in _files(os.fspath(folder())))


def _shrink(position: str, most: float) -> None:
    """Remove the entries that were not read for longest, if all together have more bytes than they may."""
    files = sorted(_files(position))
    size = sum(size for _, size, _ in files)
    if size <= most:
        return
    _LOG.debug("native code: %s has %d bytes, and the entries that were not read for longest go", position, size)
    for _, of_one, path in files:
        if size <= 0.9 * most:
            break
        with suppress(OSError):
            os.unlink(path)
        size -= of_one


def _files(position: str) -> list[tuple[float, int, str]]:
    """The entries in a folder: when each was last read or written, its bytes, and its path."""
    found = []
    with suppress(OSError), os.scandir(position) as entries:
        for entry in entries:
            if len(entry.name) == _NAME and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.path))
    return found


def _name_of(key: str) -> str:
    return checksum(key.encode())[:_NAME]


@contextmanager
def _listed(keys: Sequence[str], bad: set[str]) -> Iterator[None]:
    """List keys as bad where their entry is not there, cannot be read, or is no good."""
    try:
        yield
    except (OSError, RuntimeError):
        bad.update(keys)


def _make_folder(path: Path) -> None:
    """Make a folder, and those that it is in, for this user only."""
    for missing in reversed([step for step in (path, *path.parents) if not step.exists()]):
        missing.mkdir(0o700, exist_ok=True)


def _secret(path: str) -> bytes:
    """The key of a folder, made again if it is missing or damaged."""
    with suppress(OSError):
        if len(secret := _read(path, _ALL)) == _SIZE:
            return secret
    write_private(path, os.urandom(_SIZE))
    return _read(path, _ALL)  # which is another's if that one was later


def _read(path: str, forbidden: int) -> bytes:
    """What is in a file of this user."""
    descriptor = os.open(path, _FLAGS)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("no file")
        _check(path, status, forbidden)
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _check(path: str, status: os.stat_result, forbidden: int) -> None:
    """Refuse what belongs to another user, or what others may do too much with."""
    if not hasattr(os, "geteuid"):  # Windows says nothing here of who may do what; the user's own folders are private
        return
    if status.st_uid != os.geteuid():
        raise _UnsafeError(f"{path} belongs to another user")
    if others := status.st_mode & forbidden:
        raise _UnsafeError(f"other users may {'write to' if others & _WRITE else 'read'} {path}")


def _warn(position: str, reason: str) -> None:
    if position in _warned:
        return
    _warned.add(position)
    message = (
        f"kernels are compiled again and not kept: {reason}, and what is kept is code that will be run. Take the rights"
        " of others away, remove it, or set MICROGRAD_CACHE to a folder of your own"
    )
    warn_user(message, UserWarning)
