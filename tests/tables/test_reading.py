"""Tables read from CSV: delimiters, quotes, gaps, and what is refused."""

import csv
import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.tables.reading import MISSING, read_table
from tests.tables.common import PENGUINS, written

pytestmark = pytest.mark.slow(together=True)

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
        ("a,b\n01,1\nx,2\n", {"numbers": ["b"]}, {"a": ["01", "x"], "b": [1.0, 2.0]}),
        ("a,b\n01,1\n2,2\n", {"numbers": ["b"]}, {"a": ["01", "2"], "b": [1.0, 2.0]}),
        ("naïve,b\n1,é€\n".encode("cp1252"), {"encoding": "cp1252"}, {"naïve": [1.0], "b": ["é€"]}),
        ("a;b\n1;ß\n".encode("utf-16"), {"encoding": "utf-16"}, {"a": [1.0], "b": ["ß"]}),
        (gzip.compress("a,b\n1,é\n".encode("cp1252"), mtime=0), {"encoding": "latin-1"}, {"a": [1.0], "b": ["é"]}),
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
    ("cells", "decimal", "numbers", "example"),
    [
        (["$1,234.56", "-$7", "$ 12"], None, [1234.56, -7, 12], "'$1,234.56' is 1234.56"),
        (["40%", "5 %", "-0.5%"], None, [40, 5, -0.5], "'40%' is 40"),
        (["40%", "NA", "7%"], None, [40, None, 7], "'40%' is 40"),
        (["7", "1,234,567"], None, [7, 1234567], "'1,234,567' is 1234567"),
        (["1,234", "2.5"], None, [1234, 2.5], "'1,234' is 1234"),
        (["1,234", "2,345"], ".", [1234, 2345], "'1,234' is 1234"),
        (["1.234,56 €", "7 €"], ",", [1234.56, 7], "'1.234,56 €' is 1234.56"),
        (["1.234", "2.345"], ",", [1234, 2345], "'1.234' is 1234"),
        (["1,5%", "2%"], ",", [1.5, 2], "'1,5%' is 1.5"),
        (["€1.5", "€2"], None, [1.5, 2], "'€1.5' is 1.5"),
    ],
)
def test_numbers_with_signs_and_marks_between_thousands_are_read_with_a_note(
    tmp_path, cells, decimal, numbers, example
):
    path = written(tmp_path / "table.csv", "a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    table = read_table(path, decimal=decimal)
    assert [row[0] for row in content(table)] == numbers
    assert table.attrs["as numbers"] == {"a": example}
    text = read_table(path, decimal=decimal, text=["a"])  # as written, for whoever wants the target of a training
    assert text["a"].dropna().tolist() == [cell for cell in cells if cell != "NA"]
    assert text.attrs["as numbers"] == {"a": example}


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [
        (["1,234", "5,678"], None),  # or 1.234?
        (["$1,234", "$5,678"], None),
        (["1,234", "5.678"], None),
        (["0,123", "1,234,567"], None),
        (["1,5", "2.5"], None),
        (["$5", "€5"], None),
        (["40%", "0.4"], None),
        (["$5%", "$6%"], None),
        (["$", "$5"], None),
        (["$-5", "$5"], None),
        (["12,34.5", "1,234.5"], None),
        (["1,234.5", "many"], None),
        (["1,23", "1,234.5"], "."),
    ],
)
def test_what_may_be_other_numbers_stays_text(tmp_path, cells, decimal):
    path = written(tmp_path / "table.csv", "a;b\n" + "".join(f"{cell};x\n" for cell in cells))
    table = read_table(path, decimal=decimal)
    assert [row[0] for row in content(table)] == cells
    assert table.attrs["as numbers"] == {}


def zipped(*names):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), "a,b\n1,2\n")  # no date: test ids are the same in each process
    return packed.getvalue()


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
        (b"a,b\n1,2\n\xe9,3\n", "line 3 is not UTF-8 (byte 0xe9): save the file as UTF-8, or give its encoding, which"),
        (b"a,b\n1,2\n\xe9,3\n", "which may be cp1252"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1 is not UTF-8 (byte 0xff)"),
        ("a,b\n1,2\n".encode("utf-16"), "which may be utf-16"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), "it is an Excel workbook (.xlsx): save the sheet as CSV"),
        (zipped("mimetype", "content.xml"), "it is a spreadsheet of LibreOffice (.ods): save the sheet as CSV"),
        (
            zipped("data.csv", "more.csv"),
            "it is a zip archive, of 'data.csv', 'more.csv': unpack it, and give a CSV file",
        ),
        (zipped("data.csv")[:40], "it is a zip archive or a workbook, and damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504), "it is a workbook of an older Excel (.xls)"),
        (PACKED[:-5], "the compressed file is damaged"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read_table(written(tmp_path / "table.csv", text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "encoding", "message"),
    [
        (b"a,b\n1,2\n", "klingon", "Python knows no encoding 'klingon': utf-8, cp1252 and utf-16 are common ones"),
        (b"a,b\n1,2\n", "base64", "Python knows no encoding 'base64'"),
        (b"a,b\n1,\x81\n", "cp1252", "line 2 is not cp1252 (byte 0x81)"),
        (b"a,b\n1,2\n\n", "utf-16", "line 3 is not utf-16 (byte 0xa)"),
        (b"a,b\n\xe9,2\n", "ascii", "line 2 is not ascii (byte 0xe9)"),
    ],
)
def test_an_encoding_that_does_not_fit_is_refused(tmp_path, data, encoding, message):
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read_table(written(tmp_path / "table.csv", data), encoding=encoding)
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
