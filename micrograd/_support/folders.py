"""Writing folders so that a reader finds the old one or the new one whole, never a half of either."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.interrupts import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from micrograd._support.files import StrPath


def check_folder(path: StrPath, names: Collection[str], *, overwrite: bool = False) -> None:
    """Find out whether a folder of files with these names can be written.

    Args:
        path: of the folder, which need not be there.
        names: of all files that it may have.
        overwrite: whether an older one may be there, to be replaced.

    Raises:
        ValueError: if there is something else than an empty folder or, with overwrite, an older one.
        OSError: if nothing can be written there.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        found = {entry.name for entry in target.iterdir()}
        if others := found.difference(names):
            raise ValueError(f"{path} has other files in it, such as {min(others)!r}: choose another folder")
        if found and not overwrite:
            raise ValueError(f"{path} has a report in it: choose another folder, or --overwrite it")
    elif target.exists():
        raise ValueError(f"{path} is a file: choose another name for the folder")
    parent = next(folder for folder in target.parents if folder.exists())
    try:
        Path(tempfile.mkdtemp(dir=parent, prefix=".")).rmdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def write_folder(path: StrPath, fill: Callable[[Path], None]) -> None:
    """Write a folder whole, in the place of an older one.

    Args:
        path: of the folder; check_folder says whether it may be written.
        fill: writes the files into a new folder.

    Raises:
        OSError: if it cannot be written; the older one is there then.
    """
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        new = temporary / "new"
        new.mkdir()
        fill(new)
        finish(lambda: _put_in_place(new, target, temporary / "old"))
    finally:
        finish(lambda: shutil.rmtree(temporary, ignore_errors=True))


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Move the old folder aside, and give its name to the new one. This may run again after a part of it was done."""
    if not new.exists():
        return
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
