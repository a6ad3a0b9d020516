"""Writing files so that a reader finds the old one or the new one whole, never a half of either; reading text."""

from __future__ import annotations

import io
import os
import re
import stat
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.interrupts import finish

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    StrPath: TypeAlias = str | os.PathLike[str]


OLD = 24 * 3600.0  # seconds; nobody takes so long to write a file
_NAME = re.compile(r"\.micrograd-[0-9a-f]{32}\.tmp")
_writes = ContextVar("writes", default=True)


@contextmanager
def written_by_another_process() -> Iterator[None]:
    """Inside, write_atomically writes nothing: another process, which does the same, writes the file."""
    token = _writes.set(False)
    try:
        yield
    finally:
        _writes.reset(token)


def write_atomically(path: StrPath, data: bytes) -> None:
    """Write a file whole: until all of it is on disk, the old file of that name stays.

    The data goes to a temporary file in the same folder, which then takes the name in one step. So
    neither an error, nor Ctrl-C, nor a loss of power leaves half a file. A process that is killed may
    leave the temporary one, ``.micrograd-*.tmp``; a write in that folder removes it a day later. A link stays
    a link to the file written. What is no file, such as ``/dev/stdout``, is written to directly.

    The file keeps its permissions and its group, and its owner when root writes. A new file gets the usual
    permissions. Where the group cannot be kept, the new group gets the permissions of others. Access lists and other
    attributes of the old file are not copied.

    Of a file with several names (hard links), only the name that is written gets the data; the others keep the old
    data. To change them all, the file would have to be written in place, and an interruption would leave half of it.
    And other names mostly belong to backups.

    Args:
        path: where to write; its folder must exist.
        data: what the file is to hold.

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
    if not _writes.get():
        return
    if os.path.exists(path) and not os.path.isfile(path):
        Path(path).write_bytes(data)  # a folder raises; a device or a pipe has no old content to keep
        return
    _put(Path(os.path.realpath(path)), data, path, durable=True, private=False)


def write_private(path: StrPath, data: bytes, *, durable: bool = True) -> None:
    """Write a file that only this user may read, whole, in the place of whatever had the name.

    What had the name is replaced and not written to: where a link leads to, the reader of a pipe and the owner of
    the old file never see the data. Otherwise as write_atomically.

    Args:
        path: where to write; its folder must exist.
        data: what the file is to hold.
        durable: whether to wait until it is on disk. If not, a loss of power may leave a file that is cut off.
            That is for files that have a checksum and can be made again.

    Raises:
        OSError: if it cannot be written, naming the path: no such folder, no permission, a folder in its place.
        TypeError: for data that is not bytes.
    """
    _put(Path(path), data, path, durable=durable, private=True)


def read_text(path: StrPath, encoding: str = "utf-8") -> bytes:
    """The bytes of a text in UTF-8, with or without a byte order mark; unpacked, where gzip has packed it.

    Args:
        path: of the file; ``-`` for the standard input.
        encoding: of the file.

    Raises:
        ValueError: if it is in another encoding, naming the line, is a workbook or an archive, or what gzip has packed
            is damaged or too large; see archives.most_unpacked.
        OSError: if it cannot be read.
    """
    import gzip
    import sys
    import zlib

    from micrograd._support.archives import most_unpacked, read_at_most

    data = sys.stdin.buffer.read() if os.fspath(path) == "-" else Path(path).read_bytes()
    try:
        if data.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(data)) as file:
                data = read_at_most(file.read, most_unpacked())
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"the compressed file is damaged: {error}") from error
    _refuse_no_text(data)
    try:
        text = data.decode(encoding)
    except LookupError:
        raise ValueError(f"Python knows no encoding {encoding!r}: utf-8, cp1252 and utf-16 are common ones") from None
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        likely = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"
        what = "UTF-8" if encoding == "utf-8" else encoding
        advice = f"save the file as UTF-8, or give its encoding, which may be {likely}"
        raise ValueError(f"line {line} is not {what} (byte {byte:#x}): {advice}") from None
    return data if encoding == "utf-8" else text.encode()


def _refuse_no_text(data: bytes) -> None:
    """Refuse the binary formats that tables often have, and say how to make text of them."""
    import zipfile

    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        raise ValueError("it is a workbook of an older Excel (.xls): save the sheet as CSV")
    if not data.startswith(b"PK\x03\x04"):
        return
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile:
        raise ValueError("it is a zip archive or a workbook, and damaged") from None
    if any(name.startswith("xl/") for name in names):
        raise ValueError("it is an Excel workbook (.xlsx): save the sheet as CSV")
    if "content.xml" in names:
        raise ValueError("it is a spreadsheet of LibreOffice (.ods): save the sheet as CSV")
    raise ValueError(f"it is a zip archive, of {', '.join(map(repr, names)):.200}: unpack it, and give a CSV file")


def checksum(data: bytes) -> str:
    """The SHA-256 of data in hexadecimal, to find out later whether it was damaged or edited."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def _remove(path: Path) -> None:
    with suppress(OSError):  # the error that came first is the one to report
        path.unlink(missing_ok=True)


def _put(target: Path, data: bytes, path: StrPath, *, durable: bool, private: bool) -> None:
    """Write a temporary file and rename it to the target. Errors name the path that was given."""
    temporary = target.with_name(f".micrograd-{os.urandom(16).hex()}.tmp")  # a name that nothing else has
    try:
        _write(temporary, data, durable, private, None if private else _replaced(target))
        os.replace(temporary, target)
    except OSError as error:
        beside = error.filename == os.fspath(temporary) and not isinstance(error, FileNotFoundError)
        where = ", in its folder, where it is written before it takes the name" if beside else ""
        raise OSError(error.errno, f"{error.strerror}{where}", os.fspath(path)) from error
    finally:
        finish(lambda: _remove(temporary))
    if durable:
        _make_name_durable(target.parent)
    _remove_leftovers(target.parent)


def _replaced(target: Path) -> os.stat_result | None:
    """What is known of a file that exists, which must be writable; None for one that does not."""
    try:  # renaming over a read-only file would work: refuse it as writing to it would
        descriptor = os.open(target, os.O_WRONLY)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, data: bytes, durable: bool, private: bool, old: os.stat_result | None) -> None:
    # Permissions come before the data: whoever opens the file in between can go on reading it
    mode = 0o600 if private or old is not None else 0o666
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        if old is not None and hasattr(os, "fchown"):  # on Windows all writable files have the same mode
            _keep(file.fileno(), old)
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _keep(descriptor: int, old: os.stat_result) -> None:
    """Give a file the owner, the group and the permissions of an old one, as far as this user may."""
    for owner in (old.st_uid, -1):  # only root may give a file away; to a group of one's own, anyone may
        with suppress(OSError):
            os.fchown(descriptor, owner, old.st_gid)
            break
    new, permissions = os.fstat(descriptor), stat.S_IMODE(old.st_mode)
    if new.st_uid != old.st_uid:
        permissions &= 0o777  # drops set-user-id and the like, which were given to a file of another owner
    if new.st_gid != old.st_gid:
        permissions &= 0o707 | (permissions & 0o007) << 3  # the new group gets the permissions of others
    os.fchmod(descriptor, permissions)


def _make_name_durable(folder: Path) -> None:
    """Write the folder to disk too, where the system can do that: Windows and some network drives cannot."""
    with suppress(OSError):  # the file is in place and whole by now
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed processes of this user left in a folder, once it is old; errors are passed over."""
    with suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(folder)):
            with suppress(OSError):
                known = os.lstat(folder / name)
                is_own = not hasattr(os, "geteuid") or known.st_uid == os.geteuid()
                if is_own and stat.S_ISREG(known.st_mode) and time.time() - known.st_mtime > OLD:
                    (folder / name).unlink()
