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

CURRENCIES = "$€£¥"
DELIMITERS = ",;\t|"
MISSING = {"", "NA", "N/A", "NaN", "null", "None", "?"}  # in any case of letters
_SNIFFED = 50_000  # bytes that are looked at to find the delimiter


def read_table(
    path: StrPath,
    *,
    delimiter: str | None = None,
    decimal: str | None = None,
    missing: Collection[str] = (),
    text: Collection[str] = frozenset(),
    numbers: Collection[str] | None = None,
    encoding: str = "utf-8",
) -> pd.DataFrame:
    r"""Read a CSV file with a header line, perhaps compressed by gzip; blank lines are skipped.

    Args:
        path: the file; ``-`` for the standard input.
        delimiter: between the cells; by default the one of ``, ; tab |`` that makes a table of the file.
        decimal: what numbers have before their decimals: "." or ","; the other one parts thousands. By default it is
            ".", and commas part thousands where a column leaves no doubt.
        missing: what a missing value is written as, beside an empty cell, NA, N/A, NaN, null, None and ?.
        text: the columns that stay text, also where all cells are numbers.
        numbers: where it is given, all other columns stay text.
        encoding: of the file.

    Returns:
        The frame; its index says on which line a row begins. What is missing is NaN. Columns under a blank header are
        named by their position, and listed in ``attrs["unnamed"]``. Those whose numbers were written with a currency, a
        percent sign or marks between thousands are in ``attrs["as numbers"]``, each with an example. ``decimal`` is in
        ``attrs``, too.

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
    if decimal not in {".", ",", None}:
        raise ValueError(f"the decimal mark is '.' or ',', not {decimal!r}")
    absent = MISSING.union(map(str.strip, missing))
    absent |= {spelled(cell) for cell in absent for spelled in (str.lower, str.upper)}
    try:
        data, point = read_text(path, encoding), decimal or "."
        delimiter = delimiter or max(DELIMITERS, key=lambda mark: _fit(data[:_SNIFFED], mark))
        header, lines = _header_and_lines(data, delimiter)
        names = [name or f"column {position}" for position, name in enumerate(header, start=1)]
        if (twice := Counter(names).most_common(1)[0])[1] > 1:
            raise ValueError(f"the header names {twice[0]!r} twice: rename one of these columns")
        layout = {"sep": delimiter, "header": 0, "names": names, "index_col": False, "keep_default_na": False}
        read = partial(pd.read_csv, encoding="utf-8-sig", **layout)
        text = text if numbers is None else {*names}.difference(numbers)
        kinds = dict.fromkeys(text, str)
        frame = read(io.BytesIO(data), na_values=absent, decimal=point, dtype=kinds, low_memory=False)
        is_number = frame.dtypes.map(pd.api.types.is_any_real_numeric_dtype)
        if booleans := frame.columns[~is_number & (frame.dtypes != "str")].tolist():  # which are text as written
            frame[booleans] = read(io.BytesIO(data), usecols=booleans, dtype=str)
        whole = frame.select_dtypes("integer").columns
        frame[whole] = frame[whole].astype(float)
        as_numbers: dict[str, str] = {}
        for name in frame.columns[~is_number]:
            frame[name], example = _column(frame[name], name in text, absent, decimal)
            if example is not None:
                as_numbers[name] = example
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    frame.attrs["unnamed"] = [name for name, written in zip(names, header, strict=True) if not written]
    frame.attrs |= {"as numbers": as_numbers, "decimal": decimal}
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


def _column(
    cells: pd.Series, is_text: bool, absent: Collection[str], decimal: str | None
) -> tuple[pd.Series, str | None]:
    """Cells without the spaces around them, as floats where all are numbers after all, else as text; NaN for none.

    Also an example of how numbers were written, if not in Python's notation; if they stay text, they stay as written.
    """
    stripped = cells.str.strip().astype(object)
    stripped = stripped.mask(stripped.str.lower().isin(absent), float("nan"))
    with_points = stripped.str.replace(decimal or ".", ".")
    if (found := plain_numbers(stripped.dropna(), decimal)) is not None:
        first = found.index[found != with_points[found.index]][0]
        example = f"{stripped[first]!r} is {float(found[first]):.12g}"
        return stripped if is_text else found.astype(float).reindex(cells.index), example
    numbers = pd.to_numeric(with_points, errors="coerce").astype(float)
    if is_text or (numbers.isna() & stripped.notna()).any():
        return stripped.where(numbers.isna(), with_points), None
    return numbers, None


def plain_numbers(cells: pd.Series, decimal: str | None) -> pd.Series | None:
    """Numbers such as $1,234.56, 1.234,56 € and 40% in Python's notation.

    Args:
        cells: texts, none of them missing.
        decimal: as read_table takes it.

    Returns:
        The same numbers as text; of a percentage that before the sign. None if some cell is no such number, if cells
        have different signs, if no cell has a sign or marks between thousands, or if a mark may be that of decimals.

    Example:
        >>> plain_numbers(pd.Series(["$1,234.50", "$7"]), None).tolist()
        ['1234.50', '7']
        >>> plain_numbers(pd.Series(["1,234", "5,678"]), None) is None
        True
    """
    point = decimal or "."
    between = {".": ",", ",": "."}[point]
    whole = rf"\d+|[1-9]\d{{0,2}}(?:\{between}\d{{3}})+"
    pattern = rf"([+-]?)([{CURRENCIES}]?)\s?({whole})((?:\{point}\d*)?)\s?([{CURRENCIES}%]?)"
    parts = cells.str.extract(f"^(?:{pattern})$", expand=True).set_axis(
        ["sign", "before", "whole", "rest", "after"], axis=1
    )
    signs = (parts["before"] + parts["after"]).unique()
    if parts.isna().any(axis=None) or len(signs) != 1 or len(signs[0]) > 1:
        return None
    marks = parts["whole"].str.count(rf"\{between}")
    if not (signs[0] or marks.any()):
        return None
    # 1,234 may be 1.234; it is not where a cell has both marks, several of one, or decimals that are not three
    is_sure = (marks > 1) | ((marks > 0) & (parts["rest"] != "")) | ~parts["rest"].str.len().isin([0, 4])
    if decimal is None and marks.any() and not is_sure.any():
        return None
    plain: pd.Series = parts["sign"] + parts["whole"].str.replace(between, "") + parts["rest"].str.replace(point, ".")
    return plain
