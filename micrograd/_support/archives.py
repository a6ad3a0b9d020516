"""Packed files, which are unpacked while their bytes are counted: what their headers say of sizes is not believed."""

from __future__ import annotations

import io
import os
import zipfile
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_MEGABYTES = 256  # that a file unpacks to, where the environment does not say
MOST_PARTS = 10_000  # of a zip file
NODE = 64  # bytes that a list or dict of JSON takes at least, once it is read
_PIECE = 1 << 20  # bytes
_PACKED_BY = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # the others give gigabytes at a time


def most_unpacked() -> int:
    """How many bytes a file may unpack to: MICROGRAD_UNPACKED_MB in the environment says how many millions.

    Raises:
        ValueError: if that is no positive integer.
    """
    said = os.environ.get("MICROGRAD_UNPACKED_MB")
    if said is None:
        return MOST_MEGABYTES * 1_000_000
    if not (said.isascii() and said.isdigit() and int(said[:12])):
        raise ValueError(f"MICROGRAD_UNPACKED_MB must be a positive integer, not {said!r}")
    return int(said[:12]) * 1_000_000


def read_at_most(read: Callable[[int], bytes], most: int, before: int = 0) -> bytes:
    """All that is in a file, which is read piece by piece.

    Args:
        read: gives up to so many of the next bytes; it may unpack them.
        most: how many bytes there may be.
        before: how many of them other files had already.

    Raises:
        ValueError: once there are more, saying how to allow them.
    """
    pieces = []
    while piece := read(_PIECE):
        before += len(piece)
        if before > most:
            raise ValueError(f"it unpacks to {_too_much(most, 'bytes')}")
        pieces.append(piece)
    return b"".join(pieces)


def unpacked(data: bytes) -> dict[str, bytes]:
    """The parts of a zip file by their names, stored or deflated, which all together are no larger than they may be.

    Raises:
        ValueError: saying what is wrong with which part.
        zipfile.BadZipFile: if it is no zip file, or damaged.
    """
    if data.count(b"PK\x01\x02") > MOST_PARTS:
        raise ValueError(f"it has more than {MOST_PARTS:,} parts")
    most, total = most_unpacked(), 0
    parts: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for part in archive.infolist():
            name = part.filename
            if part.compress_type not in _PACKED_BY:
                raise ValueError(f"{name} is neither stored nor deflated")
            if name in parts:
                raise ValueError(f"it has two parts named {name}")
            with archive.open(part) as file:
                parts[name] = read_at_most(file.read, most, total)
            total += len(parts[name])
    return parts


def check_nodes(text: bytes) -> None:
    """Refuse JSON of so many lists, dicts and elements that they would take more memory than a file may.

    Raises:
        ValueError: saying how to allow them.
    """
    most = most_unpacked() // NODE
    if sum(map(text.count, (b"[", b"{", b","))) > most:
        raise ValueError(f"it holds {_too_much(most, 'lists, dicts and elements')}")


def check_array(name: str, data: bytes) -> None:
    """Refuse a file of NumPy whose header promises an array that is more than there is in the file.

    Raises:
        ValueError: if it does, or is no such file.
    """
    from numpy.lib import format as arrays

    file = io.BytesIO(data)
    if (version := arrays.read_magic(file)) != (1, 0):
        raise ValueError(f"{name} is an array in version {version} of NumPy's format, not in the first")
    shape, _, kind = arrays.read_array_header_1_0(file)
    claimed = prod(max(side, 1) for side in shape) * max(kind.itemsize, 1)  # an empty side hides how long others are
    if shape != (0,) and claimed > len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} is more than there is in {name}")


def packed(parts: dict[str, bytes]) -> bytes:
    """A zip file of these parts, stored."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def _too_much(most: int, what: str) -> str:
    megabytes = most_unpacked() // 1_000_000
    return f"more than {most:,} {what}: if you trust it, set MICROGRAD_UNPACKED_MB to more than {megabytes}"
