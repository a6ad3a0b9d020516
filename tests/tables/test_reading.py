"""Tables read from CSV: delimiters, quotes, gaps, and what is refused."""

import csv
import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.tables.reading import MISSING, read_table
from tests.tables.common import PENGUINS, written

NAN = np.nan


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


def test_what_is_in_the_cells_does_not_mislead_the_search_for_the_delimiter(tmp_path):
    decimal_commas = read_table(written(tmp_path / "a.csv", "a;b\n1,5;2,5\n-3,5;x\n"), decimal=",")
    assert content(decimal_commas) == [[1.5, "2.5"], [-3.5, "x"]]
    assert list(read_table(written(tmp_path / "b.csv", "a,b\nx;y,1\nz;w,2\n"))) == ["a", "b"]
    one_column = read_table(written(tmp_path / "c.csv", "\nname\nTom\n  \nKit\n"))
    assert (list(one_column), one_column.index.tolist()) == (["name"], [3, 5])


def test_a_delimiter_that_is_given_is_taken(tmp_path):
    assert list(read_table(written(tmp_path / "table.csv", "a b,c\n1 2,3\n"), delimiter=" ")) == ["a", "b,c"]


def test_a_column_stays_text_where_that_is_asked_for_and_truths_are_text(tmp_path):
    path = written(tmp_path / "table.csv", "a,b,c\n01,01,TRUE\n2.0, 2.50 ,false\n")
    assert content(read_table(path, text=["b"])) == [[1.0, "01", "TRUE"], [2.0, "2.50", "false"]]


def test_quoted_cells_hold_delimiters_quotes_and_lines(tmp_path):
    table = read_table(written(tmp_path / "table.csv", 'a,b\n"x, ""y""\nz",1\nw,2\n'))
    assert (content(table), table.index.tolist()) == ([['x, "y"\nz', 1.0], ["w", 2.0]], [2, 4])


def test_a_compressed_file_is_unpacked_and_the_standard_input_is_read(tmp_path, monkeypatch):
    packed = gzip.compress(b"a,b\n1,2\n")
    assert content(read_table(written(tmp_path / "table.csv.gz", packed))) == [[1.0, 2.0]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert content(read_table("-")) == [[1.0, 2.0]]


def test_missing_values_are_found_as_they_are_commonly_written(tmp_path):
    cells = ["NA", "n/a", " NaN", "null", "None", "?", "-", "unknown", "x"]
    path = written(tmp_path / "table.csv", "a,b\n" + "".join(f"{cell},1\n" for cell in cells))
    assert [row[0] for row in content(read_table(path))] == [None] * 6 + ["-", "unknown", "x"]
    assert [row[0] for row in content(read_table(path, missing=["-", "Unknown"]))] == [None] * 8 + ["x"]


@pytest.mark.parametrize("other", ["2", "x", " 2"])
def test_a_number_can_stand_for_a_missing_value(tmp_path, other):
    table = read_table(written(tmp_path / "table.csv", f"a,b\n-999,1\n{other},2\n"), missing=["-999"])
    assert table["a"].isna().tolist() == [True, False]


def test_columns_under_a_blank_header_are_named_by_their_place(tmp_path):
    table = read_table(written(tmp_path / "table.csv", ",x, \n1,2,3\n"))
    assert (list(table), table.attrs["unnamed"]) == (["column 1", "x", "column 3"], ["column 1", "column 3"])


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
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-5], "the compressed file is damaged"),
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


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).map(
    lambda text: f"x{text}"
)


@given(
    st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[CELLS] * width), min_size=1)), st.sampled_from(";,\t|")
)
@pytest.mark.slow
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, delimiter):
    text = io.StringIO()
    header = [f"column-{index}" for index in range(len(rows[0]))]
    csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    table = read_table(written(tmp_path_factory.mktemp("tables") / "table.csv", text.getvalue()))
    assert content(table) == [
        [None if cell.strip().lower() in MISSING else cell.strip() for cell in row] for row in rows
    ]
