"""Writing files so that a reader finds the old one or the new one whole, never a half of either."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.interrupts import finish

if TYPE_CHECKING:
    from typing import TypeAlias

    StrPath: TypeAlias = str | os.PathLike[str]


def write_atomically(path: StrPath, data: bytes, *, durable: bool = True) -> None:
    """Write a file whole: until it is all on disk, what was under that name stays as it was.

    The data goes to a temporary file in the same folder, which then takes the name in one step. So
    neither an error, nor Ctrl-C, nor a loss of power leaves half a file; a process that is killed may
    leave the temporary one, ``.*.tmp``. The file keeps the permissions it had; a new one gets those that
    any new file gets. A link stays a link to the file written. What is no file, such as ``/dev/stdout``,
    is written to directly.

    Args:
        path: where to write; its folder must exist.
        data: what the file is to hold.
        durable: whether to wait until it is on disk. If not, a loss of power may leave a file that is cut off:
            for what has a checksum in it, and can be made anew.

    Raises:
        OSError: if it cannot be written, naming the path: no such folder, no permission, no space.
        TypeError: for data that is not bytes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomically(f"{folder}/notes.txt", b"whole")
        ...     (Path(folder) / "notes.txt").read_bytes()
        b'whole'
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{os.urandom(8).hex()}.tmp")
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            Path(path).write_bytes(data)  # a folder refuses; a device or a pipe has no old content to keep
            return
        _write(temporary, data, _permissions(target), durable)
        os.replace(temporary, target)
    except OSError as error:
        beside = error.filename == os.fspath(temporary) and not isinstance(error, FileNotFoundError)
        where = ", in its folder, where it is written before it takes the name" if beside else ""
        raise OSError(error.errno, f"{error.strerror}{where}", os.fspath(path)) from error
    finally:
        finish(lambda: _remove(temporary))
    if durable:
        _make_name_durable(target.parent)


def checksum(data: bytes) -> str:
    """What tells data that was damaged or edited from what was written: its SHA-256, in hexadecimal."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def _remove(path: Path) -> None:
    with suppress(OSError):  # where it cannot even be removed, what went wrong before is what there is to say
        path.unlink(missing_ok=True)


def _permissions(target: Path) -> int | None:
    """The permissions of a file that exists, which must be writable; None for one that does not."""
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return None
    with target.open("ab"):  # renaming over a read-only file would work: refuse it as writing to it would
        return mode


def _write(path: Path, data: bytes, permissions: int | None, durable: bool) -> None:
    with path.open("xb") as file:
        if permissions is not None:
            path.chmod(permissions)
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _make_name_durable(folder: Path) -> None:
    """Have the folder on disk too, where the system can: Windows and some network drives cannot."""
    with suppress(OSError):  # the file is in place and whole by now
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
