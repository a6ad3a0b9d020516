"""Zip files of arrays, which say how large they are before anything is unpacked."""

from __future__ import annotations

import io
import zipfile
from math import prod

MOST_UNPACKED = 256 * 1024 * 1024  # bytes


def check_archive(data: bytes, apart: str) -> None:
    """Refuse a zip file of arrays of NumPy that would unpack to more than 256 MB, or to more than it holds.

    Args:
        data: the file.
        apart: the name of the part that is no array. Whatever the names of the others are, they are arrays.

    Raises:
        ValueError: saying what is too large.
        zipfile.BadZipFile: if it is no zip file.
    """
    from numpy.lib import format as arrays

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        if (total := sum(part.file_size for part in parts)) > MOST_UNPACKED:
            raise ValueError(f"it unpacks to {total:,} bytes, and {MOST_UNPACKED:,} are the most")
        for part in parts:
            if part.filename != apart:
                with archive.open(part) as file:
                    arrays.read_magic(file)
                    shape, _, kind = arrays.read_array_header_1_0(file)
                if prod(shape) * kind.itemsize > part.file_size:
                    raise ValueError(f"an array of shape {shape} is more than there is in {part.filename}")
