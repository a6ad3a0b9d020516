"""A CSV file as a frame of pandas: columns of numbers as floats, others as text, each row named by its line."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from micrograd._support.files import StrPath

DELIMITERS = ",;\t|"
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # in any case of letters
_SNIFFED = 50_000  # bytes that are looked at to find the delimiter


def read_table(
    path: StrPath, *, delimiter: str | None = None, decimal: str = ".", missing: Collection[str] = (), text: str = ""
) -> pd.DataFrame:
    r"""Read a CSV file with a header line, in UTF-8, perhaps compressed by gzip; blank lines are skipped.

    Args:
        path: the file; ``-`` for the standard input.
        delimiter: between the cells; by default the one of ``, ; tab |`` that makes a table of the file.
        decimal: what numbers have before their decimals: "." or ",".
        missing: what a missing value is written as, beside an empty cell, NA, N/A, NaN, null, None and ?.
        text: a column that stays text, also where all cells are numbers.

    Returns:
        The frame; its index says on which line a row begins. What is missing is NaN. Columns under a blank header are
        named by their place, and listed in ``attrs["unnamed"]``.

    Raises:
        ValueError: if the file is no such table, naming the line.
        OSError: if it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "cats.csv").write_text("name;weight\nTom;NA\n'Kit'; 3.5\n")
        ...     read_table(f"{folder}/cats.csv")
            name  weight
        2    Tom     NaN
        3  'Kit'     3.5
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"a delimiter is one character, not a quote or a line end: {delimiter!r}")
    if decimal not in {".", ","}:
        raise ValueError(f"the decimal mark is '.' or ',', not {decimal!r}")
    absent = MISSING.union(cell.strip().lower() for cell in missing)
    try:
        data = _bytes(path)
        delimiter = delimiter or max(DELIMITERS, key=lambda mark: _fit(data[:_SNIFFED], mark))
        header, lines = _header_and_lines(data, delimiter)
        names = [name or f"column {place}" for place, name in enumerate(header, start=1)]
        if (twice := Counter(names).most_common(1)[0])[1] > 1:
            raise ValueError(f"the header names {twice[0]!r} twice: rename one of these columns")
        layout = {"sep": delimiter, "header": 0, "names": range(len(names)), "index_col": False}
        cells = pd.read_csv(io.BytesIO(data), **layout, encoding="utf-8-sig", dtype=str, keep_default_na=False)
        columns = {name: _column(cells[place], name == text, absent, decimal) for place, name in enumerate(names)}
        frame = pd.DataFrame(columns, copy=False).set_axis(lines)
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    frame.attrs["unnamed"] = [name for name, written in zip(names, header, strict=True) if not written]
    return frame


def _bytes(path: StrPath) -> bytes:
    """The bytes of a file, unpacked, which are UTF-8."""
    data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError) as error:
            raise ValueError(f"the compressed file is damaged: {error}") from error
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8 (byte {data[error.start]:#x}): save the file as UTF-8") from None
    return data


def _records(data: bytes, delimiter: str, *, strict: bool = True) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, the header first, each with the line it begins on."""
    lines = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace", newline="")  # its end may be cut off
    reader, begin = csv.reader(lines, delimiter=delimiter, strict=strict), 1
    try:
        for record in reader:
            if len(record) > 1 or (record and not record[0].isspace()):
                yield begin, record
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {begin}: {error}") from None


def _fit(first: bytes, delimiter: str) -> tuple[int, int]:
    """How many of the first rows have one width with this delimiter, and which; a table has more than one column."""
    widths = Counter(len(cells) for _, cells in _records(first, delimiter, strict=False) if len(cells) > 1)
    return max(((rows, width) for width, rows in widths.items()), default=(0, 0))


def _header_and_lines(data: bytes, delimiter: str) -> tuple[list[str], list[int]]:
    """The names of the columns as written, and the line of each row; all rows are of one width."""
    records = _records(data, delimiter)
    header = [name.strip() for name in next(records, (0, []))[1]]
    if not header:
        raise ValueError("the file is empty; it needs a header line with the columns' names, and rows below")
    if pd.to_numeric(pd.Series(header), errors="coerce").notna().all():
        raise ValueError("the first line has numbers only; the file needs a header line with the columns' names")
    lines = []
    for line, cells in records:
        if len(cells) != len(header):
            raise ValueError(f"line {line} has {len(cells)} cells, and the header {len(header)}")
        lines.append(line)
    if not lines:
        raise ValueError("the file has a header line and no rows below it")
    return header, lines


def _column(cells: pd.Series, is_text: bool, absent: Collection[str], decimal: str) -> pd.Series:
    """A column as floats, or as text without the spaces around it; NaN where a cell is missing."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    if numbers.notna().all() and not is_text:
        return numbers
    stripped = cells.str.strip().astype(object)
    stripped = stripped.mask(stripped.str.lower().isin(absent), float("nan"))
    if decimal == ",":
        points = stripped.str.replace(",", ".")
        stripped = stripped.where(pd.to_numeric(points, errors="coerce").isna(), points)
    numbers = pd.to_numeric(stripped, errors="coerce").astype(float)
    return stripped if is_text or (numbers.isna() & stripped.notna()).any() else numbers
