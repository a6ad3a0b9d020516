"""Tables read from CSV: delimiters, quotes, gaps, and what is refused."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.tables.table import MISSING, Table, read_table
from tests.tables.common import PENGUINS, small, written


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_delimiter_is_found(tmp_path, delimiter, end, encoding):
    lines = [["naïve", "b, c"], ["1", "x"], ["2.5", " y "], ["", "NA"]]
    if delimiter == ",":
        lines[0][1] = '"b, c"'
    text = end.join(map(delimiter.join, lines)) + end
    table = read_table(written(tmp_path / "table.csv", text, encoding))
    assert table == Table(("naïve", "b, c"), [["1", "x"], ["2.5", "y"], ["", ""]], [2, 3, 4])


def test_what_is_in_the_cells_does_not_mislead_the_search_for_the_delimiter(tmp_path):
    decimal_commas = read_table(written(tmp_path / "a.csv", "a;b\n1,5;2,5\n-3,5;4\n"), decimal=",")
    assert decimal_commas.rows == [["1.5", "2.5"], ["-3.5", "4"]]
    semicolons = read_table(written(tmp_path / "b.csv", "a,b\nx;y,1\nz;w,2\n"))
    assert semicolons.columns == ("a", "b")
    one_column = read_table(written(tmp_path / "c.csv", "name\nTom\n\nKit\n"))
    assert (one_column.columns, one_column.lines) == (("name",), [2, 4])


def test_a_delimiter_that_is_given_is_taken(tmp_path):
    path = written(tmp_path / "table.csv", "a b,c\n1 2,3\n")
    assert read_table(path, delimiter=" ").columns == ("a", "b,c")


def test_quoted_cells_hold_delimiters_quotes_and_lines(tmp_path):
    path = written(tmp_path / "table.csv", 'a,b\n"x, ""y""\nz",1\nw,2\n')
    assert read_table(path) == Table(("a", "b"), [['x, "y"\nz', "1"], ["w", "2"]], [2, 4])


def test_a_compressed_file_is_unpacked(tmp_path):
    (tmp_path / "table.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_table(tmp_path / "table.csv.gz").rows == [["1", "2"]]


def test_missing_values_are_found_as_they_are_commonly_written(tmp_path):
    cells = ["NA", "n/a", "NaN", "null", "None", "?", "-", "unknown", "x"]
    path = written(tmp_path / "table.csv", "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    assert read_table(path).column("a") == [""] * 6 + ["-", "unknown", "x"]
    assert read_table(path, missing=["-", "Unknown"]).column("a") == [""] * 8 + ["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "no rows below"),
        ("1,2\n3,4\n", "a header line"),
        ("a,b,a\n1,2,3\n", "the header names 'a' twice"),
        ("a,b\n1,2\n\n1,2,3\n", "line 4 has 3 cells, and the header 2"),
        ('a,b\n1,2\n"x,3\n', "line 3: unexpected end of data"),
        (b"a,b\n1,2\n\xe9,3\n", "line 3 is not UTF-8 (byte 0xe9)"),
        ("a,b\n1,2\n".encode("utf-16"), "line 1 is not UTF-8"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-5], "the compressed file is damaged"),
        ("a,b\n" + "x" * 200_000 + ",1\n", "field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"table\.csv") as caught:
        read_table(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("wrong", [{"delimiter": ""}, {"delimiter": ",,"}, {"delimiter": '"'}, {"decimal": "x"}])
def test_delimiters_and_decimal_marks_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=r"delimiter|decimal"):
        read_table(PENGUINS, **wrong)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(
    st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1)), st.sampled_from(";,\t|")
)
@pytest.mark.slow
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, delimiter):
    header = [f"column-{index}" for index in range(len(rows[0]))]
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    table = read_table(written(tmp_path_factory.mktemp("tables") / "table.csv", text.getvalue()))
    assert table.columns == tuple(header)
    assert table.rows == [["" if (c := cell.strip()).lower() in MISSING else c for cell in row] for row in rows]


def test_a_column_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="no column 'colr'; did you mean 'colour'"):
        small().column("colr")
