"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that the old one or the new one is there, whole, whatever happens in between.

    The data goes to a temporary file in the same folder, to the disk, and only then takes the name.

    Args:
        path: where to; what is there is replaced, its permissions kept.
        data: the whole content.

    Raises:
        OSError: if the file cannot be written; the old one, if any, is as it was.
    """
    target = Path(path).resolve() if Path(path).is_symlink() else Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _permissions(target))
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, or what the process gives to a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder: Path) -> None:
    """Make the new name durable; where folders cannot be opened (Windows) it is so already."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
