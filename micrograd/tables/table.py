"""Tables: a CSV file read as rows of text cells, whatever its delimiter, with missing values found.

Of a single cell it only says whether it is missing. Whether a column holds numbers or categories depends on all of
its cells (encoding.py).
"""

from __future__ import annotations

import csv
import difflib
import gzip
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd._support.files import StrPath

DELIMITERS = ",;\t|"
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # in any case of letters
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_SNIFFED = 100  # rows that are looked at to find the delimiter


class Table(NamedTuple):
    """Rows of cells under named columns.

    Attributes:
        columns: the names, all different.
        rows: for each row a cell for each column, without the spaces around it; "" where it is missing.
        lines: the line of the file that each row is on, for messages.
        unnamed: those columns whose header is blank, and which are named by their place.

    Example:
        >>> table = Table(("size", "colour"), [["1", "red"], ["", "blue"]], [2, 3])
        >>> table.column("colour")
        ['red', 'blue']
    """

    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    unnamed: frozenset[str] = frozenset()

    def column(self, name: str) -> list[str]:
        """The cells of a column.

        Raises:
            ValueError: if there is no such column.
        """
        index = self.position(name)
        return [row[index] for row in self.rows]

    def position(self, name: str) -> int:
        """Where a column stands.

        Raises:
            ValueError: if there is no such column.
        """
        if name in self.columns:
            return self.columns.index(name)
        near = difflib.get_close_matches(name, self.columns, 1, 0.5)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, self.columns)):.300}"
        raise ValueError(f"there is no column {name!r}; {meant}")

    def without(self, rows: Iterable[int]) -> Table:
        """The table without some of its rows."""
        gone = set(rows)
        kept = [row for row in range(len(self.rows)) if row not in gone]
        return self._replace(rows=[self.rows[row] for row in kept], lines=[self.lines[row] for row in kept])


def read_table(
    path: StrPath, *, delimiter: str | None = None, decimal: str = ".", missing: Iterable[str] = ()
) -> Table:
    r"""Read a CSV file with a header line.

    The text is UTF-8, with a byte order mark or without; a file compressed by gzip is unpacked. Cells
    may be quoted, and then hold delimiters and line ends. Blank lines are skipped.

    Args:
        path: the file; ``-`` for the standard input.
        delimiter: between the cells; by default the one of ``, ; tab |`` that makes a table of the file.
        decimal: what numbers have before their decimals: "." or ",".
        missing: what a missing value is written as, beside an empty cell, NA, N/A, NaN, null, None and ?.

    Raises:
        ValueError: if the file is no such table, naming the line.
        OSError: if it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "cats.csv").write_text("name;weight\nTom;NA\n'Kit'; 3.5\n")
        ...     read_table(f"{folder}/cats.csv")
        Table(columns=('name', 'weight'), rows=[['Tom', ''], ["'Kit'", '3.5']], lines=[2, 3], unnamed=frozenset())
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"a delimiter is one character, not a quote or a line end: {delimiter!r}")
    if decimal not in {".", ","}:
        raise ValueError(f"the decimal mark is '.' or ',', not {decimal!r}")
    try:
        lines = _lines(_text(path))
        records = _records(lines, delimiter or _sniffed(lines))
        absent = MISSING | {text.strip().lower() for text in missing}
        return _table(records, absent, decimal)
    except (csv.Error, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def number(cell: str) -> float | None:
    """The number that a cell is, infinite ones too; None for what is no number.

    Example:
        >>> number("-1e3"), number("12 kg"), number("1_000")
        (-1000.0, None, None)
    """
    try:
        value = float(cell)
    except ValueError:
        return None
    return None if math.isnan(value) or "_" in cell else value


def _text(path: StrPath) -> str:
    """The text of a file."""
    data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError) as error:
            raise ValueError(f"the compressed file is damaged: {error}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8 (byte {data[error.start]:#x}): save the file as UTF-8") from None


def _lines(text: str) -> list[str]:
    """The lines with their ends, as csv.reader wants them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _records(lines: Sequence[str], delimiter: str, *, strict: bool = True) -> list[tuple[int, list[str]]]:
    """The rows that are not blank, the header first, each with the line it begins on."""
    reader = csv.reader(lines, delimiter=delimiter, strict=strict)
    records = []
    begin = 1
    try:
        for record in reader:
            if len(record) > 1 or "".join(record).strip():
                records.append((begin, [cell.strip() for cell in record]))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {begin}: {error}") from None
    return records


def _sniffed(lines: Sequence[str]) -> str:
    """The delimiter that gives most of the first rows one width; of several the one of the widest; else a comma."""

    def score(delimiter: str) -> tuple[int, int]:
        records = _records(lines[:_SNIFFED], delimiter, strict=False)  # the last cell may be cut off
        widths = Counter(len(cells) for _, cells in records if len(cells) > 1)
        return max(((rows, width) for width, rows in widths.items()), default=(0, 0))

    return max(DELIMITERS, key=score)


def _table(records: list[tuple[int, list[str]]], missing: frozenset[str], decimal: str) -> Table:
    """The table of a header and rows, all of one width."""
    if not records:
        raise ValueError("the file is empty; it needs a header line with the columns' names, and rows below")
    (_, header), *rows = records
    if all(cell and number(cell) is not None for cell in header):
        raise ValueError(
            "the first line has numbers only; the file needs a header line with the columns' names, and rows below"
        )
    columns = tuple(name or f"column {index}" for index, name in enumerate(header, start=1))
    if (twice := Counter(columns).most_common(1)[0])[1] > 1:
        raise ValueError(f"the header names {twice[0]!r} twice")
    if not rows:
        raise ValueError("the file has a header line and no rows below it")
    for line, cells in rows:
        if len(cells) != len(columns):
            raise ValueError(f"line {line} has {len(cells)} cells, and the header {len(columns)}")

    def cleaned(cell: str) -> str:
        if cell.lower() in missing:
            return ""
        return cell.replace(",", ".") if decimal == "," and DECIMAL_COMMA.fullmatch(cell) else cell

    unnamed = frozenset(column for column, name in zip(columns, header, strict=True) if not name)
    cleaned_rows = [[cleaned(cell) for cell in cells] for _, cells in rows]
    return Table(columns, cleaned_rows, [line for line, _ in rows], unnamed)
