"""Tables read from CSV: delimiters, quotes, gaps, and what is refused."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.tables.reading import MISSING, read_table
from tests.tables.common import PENGUINS, written

PACKED = gzip.compress(b"a,b\n1,2\n", mtime=0)


def content(frame):
    """The cells of each row, None where one is missing."""
    return [[None if cell != cell else cell for cell in row] for row in frame.astype(object).to_numpy().tolist()]


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_delimiter_is_found(tmp_path, delimiter, end, encoding):
    lines = [["naïve", "b, c"], ["1", "x"], ["2.5", " y "], ["", "NA"]]
    if delimiter == ",":
        lines[0][1] = '"b, c"'
    table = read_table(written(tmp_path / "table.csv", end.join(map(delimiter.join, lines)) + end, encoding))
    assert list(table) == ["naïve", "b, c"]
    assert content(table) == [[1.0, "x"], [2.5, "y"], [None, None]]
    assert table.index.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("text", "options", "cells"),
    [
        ("a;b\n1,5;2,5\n-3,5;x\n", {"decimal": ","}, {"a": [1.5, -3.5], "b": ["2.5", "x"]}),
        ("a,b\nx;y,1\nz;w,2\n", {}, {"a": ["x;y", "z;w"], "b": [1.0, 2.0]}),
        ("a b,c\n1 2,3\n", {"delimiter": " "}, {"a": [1.0], "b,c": ["2,3"]}),
        (
            "a,b,c\n01,01,TRUE\n2.0, 2.50 ,false\n",
            {"text": ["b"]},
            {"a": [1, 2], "b": ["01", "2.50"], "c": ["TRUE", "false"]},
        ),
        ("a,b\n-999,1\n2,2\n", {"missing": ["-999"]}, {"a": [None, 2.0], "b": [1.0, 2.0]}),
        ("a,b\n-999,1\n 2,2\n", {"missing": ["-999"]}, {"a": [None, 2.0], "b": [1.0, 2.0]}),
        ("a,b\n NA ,1\n2,2\n", {}, {"a": [None, 2.0], "b": [1.0, 2.0]}),
        ("a,b\n-999,1\nx,2\n", {"missing": ["-999"]}, {"a": [None, "x"], "b": [1.0, 2.0]}),
        (",x, \n1,2,3\n", {}, {"column 1": [1.0], "x": [2.0], "column 3": [3.0]}),
        (PACKED, {}, {"a": [1.0], "b": [2.0]}),
    ],
)
def test_what_is_read(tmp_path, monkeypatch, text, options, cells):
    path = written(tmp_path / "table.csv", text)
    table = read_table(path, **options)
    assert dict(zip(table, map(list, zip(*content(table), strict=True)), strict=True)) == cells
    assert table.attrs["unnamed"] == [name for name in table if name.startswith("column ")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert read_table("-", **options).equals(table)


@pytest.mark.parametrize(
    ("text", "cells", "lines"),
    [
        ('a,b\n"x, ""y""\nz",1\nw,2\n', [['x, "y"\nz', 1.0], ["w", 2.0]], [2, 4]),
        ("\nname\nTom\n  \nKit\n", [["Tom"], ["Kit"]], [3, 5]),
    ],
)
def test_rows_know_the_line_they_begin_on(tmp_path, text, cells, lines):
    table = read_table(written(tmp_path / "table.csv", text))
    assert (content(table), table.index.tolist()) == (cells, lines)


def test_missing_values_are_found_as_they_are_commonly_written(tmp_path):
    cells = ["NA", "n/a", " NaN", "null", "None", "?", "-", "unknown", "x"]
    path = written(tmp_path / "table.csv", "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    assert [row[0] for row in content(read_table(path))] == [None] * 6 + ["-", "unknown", "x"]
    assert [row[0] for row in content(read_table(path, missing=["-", "Unknown"]))] == [None] * 8 + ["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "no rows below"),
        ("1,2\n3,4\n", "a header line"),
        ("a,b,a\n1,2,3\n", "the header names 'a' twice"),
        ("a,,column 2\n1,2,3\n", "the header names 'column 2' twice"),
        ("a,b\n1,2\n\n1,2,3\n", "line 4 has 3 cells, and the header 2"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cells, and the header 2"),
        ('a,b\n1,2\n"x,3\n', "line 3: unexpected end of data"),
        (b"a,b\n1,2\n\xe9,3\n", "line 3 is not UTF-8 (byte 0xe9)"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1 is not UTF-8"),
        (PACKED[:-5], "the compressed file is damaged"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read_table(written(tmp_path / "table.csv", text))
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong", [{"delimiter": ""}, {"delimiter": ",,"}, {"delimiter": '"'}, {"decimal": "x"}])
def test_delimiters_and_decimal_marks_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=r"delimiter|decimal"):
        read_table(PENGUINS, **wrong)


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
CELLS = st.text(LETTERS, max_size=8).map(lambda text: f"x{text}")
ROWS = st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1))


@given(ROWS, st.sampled_from(";,\t|"))
@pytest.mark.slow
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, delimiter):
    text = io.StringIO()
    header = [f"column-{index}" for index in range(len(rows[0]))]
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    table = read_table(written(tmp_path_factory.mktemp("tables") / "table.csv", text.getvalue()))
    assert not MISSING.intersection(cell.strip() for row in rows for cell in row)
    assert content(table) == [[cell.strip() for cell in row] for row in rows]
