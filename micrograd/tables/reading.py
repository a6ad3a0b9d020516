"""A CSV file as a frame of pandas: columns of numbers as floats, others as text, each row named by its line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from micrograd._support.files import read_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from micrograd._support.files import StrPath

DELIMITERS = ",;\t|"
MISSING = {"", "NA", "N/A", "NaN", "null", "None", "?"}  # in any case of letters
_SNIFFED = 50_000  # bytes that are looked at to find the delimiter


def read_table(
    path: StrPath,
    *,
    delimiter: str | None = None,
    decimal: str = ".",
    missing: Collection[str] = (),
    text: Collection[str] = frozenset(),
) -> pd.DataFrame:
    r"""Read a CSV file with a header line, in UTF-8, perhaps compressed by gzip; blank lines are skipped.

    Args:
        path: the file; ``-`` for the standard input.
        delimiter: between the cells; by default the one of ``, ; tab |`` that makes a table of the file.
        decimal: what numbers have before their decimals: "." or ",".
        missing: what a missing value is written as, beside an empty cell, NA, N/A, NaN, null, None and ?.
        text: the columns that stay text, also where all cells are numbers.

    Returns:
        The frame; its index says on which line a row begins. What is missing is NaN. Columns under a blank header are
        named by their place, and listed in ``attrs["unnamed"]``.

    Raises:
        ValueError: if the file is no such table, naming the line.
        OSError: if it cannot be read.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pathlib.Path(folder, "cats.csv").write_text("name;weight\nTom;NA\n'Kit'; 3.5\n")
        ...     read_table(f"{folder}/cats.csv")
            name  weight
        2    Tom     NaN
        3  'Kit'     3.5
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"a delimiter is one character, not a quote or a line end: {delimiter!r}")
    if decimal not in {".", ","}:
        raise ValueError(f"the decimal mark is '.' or ',', not {decimal!r}")
    absent = MISSING.union(map(str.strip, missing))
    absent |= {spelled(cell) for cell in absent for spelled in (str.lower, str.upper)}
    try:
        data = read_text(path)
        delimiter = delimiter or max(DELIMITERS, key=lambda mark: _fit(data[:_SNIFFED], mark))
        header, lines = _header_and_lines(data, delimiter)
        names = [name or f"column {place}" for place, name in enumerate(header, start=1)]
        if (twice := Counter(names).most_common(1)[0])[1] > 1:
            raise ValueError(f"the header names {twice[0]!r} twice: rename one of these columns")
        layout = {"sep": delimiter, "header": 0, "names": names, "index_col": False, "keep_default_na": False}
        read = partial(pd.read_csv, encoding="utf-8-sig", **layout)
        kinds = dict.fromkeys(text, str)
        frame = read(io.BytesIO(data), na_values=absent, decimal=decimal, dtype=kinds, low_memory=False)
        is_number = frame.dtypes.map(pd.api.types.is_any_real_numeric_dtype)
        if booleans := frame.columns[~is_number & (frame.dtypes != "str")].tolist():  # which are text as written
            frame[booleans] = read(io.BytesIO(data), usecols=booleans, dtype=str)
        whole = frame.select_dtypes("integer").columns
        frame[whole] = frame[whole].astype(float)
        if others := frame.columns[~is_number].tolist():
            frame[others] = frame[others].apply(lambda cells: _column(cells, cells.name in text, absent, decimal))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    frame.attrs["unnamed"] = [name for name, written in zip(names, header, strict=True) if not written]
    frame = frame.set_axis(lines)
    return frame.copy()  # with its columns together in memory: what follows is several times as fast


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
    """Cells without the spaces around them, as floats where all are numbers after all, else as text; NaN for none."""
    stripped = cells.str.strip().astype(object)
    stripped = stripped.mask(stripped.str.lower().isin(absent), float("nan"))
    with_points = stripped.str.replace(decimal, ".")
    numbers = pd.to_numeric(with_points, errors="coerce").astype(float)
    if is_text or (numbers.isna() & stripped.notna()).any():
        return stripped.where(numbers.isna(), with_points)
    return numbers
