"""Columns as numbers: what a network is told of a cell, and which columns and targets are left out or refused."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from micrograd.tables.encoding import Category, Number, inputs_of, likely_task, target_of
from micrograd.tables.predictor import prepare
from micrograd.tables.table import Table, read_table
from tests.tables.common import written


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30))
def test_numbers_are_standardised(values):
    table = Table(("x",), [[repr(value)] for value in values], list(range(len(values))))
    columns, left_out = inputs_of(table, table, ["x"])
    if not columns:
        assert math.isclose(min(values), max(values), rel_tol=1e-9) or max(map(abs, values)) < 1e-300
        assert "in every row" in left_out["x"]
        return
    scaled = [value / max(map(abs, values)) for value in values]
    deviation = statistics.pstdev(scaled)
    for cell, value in zip(table.column("x"), scaled, strict=True):
        if deviation > 1e-6:  # closer together, and rounding is what differs
            expected = (value - statistics.fmean(scaled)) / deviation
            assert columns[0].encode(cell) == [pytest.approx(expected, rel=1e-6, abs=1e-6)]


def test_a_gap_counts_as_the_mean_and_is_told_to_the_network():
    table = Table(("x",), [["1"], ["3"], [""]], [2, 3, 4])
    (column,), _ = inputs_of(table, table, ["x"])
    assert column == Number("x", mean=2.0, scale=1.0, gaps=True)
    assert [column.encode(cell) for cell in ("1", "", "3")] == [[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert column.inputs == ["x", "x missing"]


def test_text_is_one_input_for_each_category():
    table = Table(("x",), [["red"], ["blue"], [""], ["red"]], [2, 3, 4, 5])
    (column,), _ = inputs_of(table, table, ["x"])
    assert column == Category("x", ("", "blue", "red"))
    assert column.encode("red") == [0.0, 0.0, 1.0]
    assert column.encode("") == [1.0, 0.0, 0.0]
    assert column.encode("green") == [0.0, 0.0, 0.0]
    assert column.inputs == ["x missing", "x = blue", "x = red"]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["7", "7", "7"], "it is 7 in every row"),
        (["a", "a", "a"], "it is 'a' in every row"),
        (["", "", ""], "it is missing in every row"),
        (["a", "b", "c"], "text with 3 different values in 3 rows"),
        ([str(index // 2) + "x" for index in range(200)], "text with 100 different values in 200 rows"),
    ],
)
def test_columns_that_tell_nothing_are_left_out_with_a_reason(cells, reason):
    table = Table(("x",), [[cell] for cell in cells], list(range(len(cells))))
    columns, left_out = inputs_of(table, table, ["x"])
    assert columns == []
    assert reason in left_out["x"]


def test_a_column_of_numbers_that_are_all_in_the_test_rows_is_left_out():
    table = Table(("x",), [["7"], [""], [""]], [2, 3, 4])
    assert inputs_of(table, table.without({0}), ["x"]) == ([], {"x": "it has no value in the training rows"})


def test_row_numbers_under_a_blank_header_are_not_learned_from(tmp_path):
    path = written(tmp_path / "table.csv", ",x,y\n" + "".join(f"{row},{row % 7},{row // 10}\n" for row in range(20)))
    found = prepare(read_table(path), "y")
    assert [column.name for column in found.predictor.columns] == ["x"]
    assert found.left_out == {"column 1": "its header is blank, as over row numbers"}


@pytest.mark.parametrize("target", ["x", "y"])
def test_decimal_commas_do_not_pass_for_text(tmp_path, target):
    path = written(tmp_path / "table.csv", "x;y\n" + "".join(f"{row},{row % 3};{row % 2}\n" for row in range(20)))
    with pytest.raises(ValueError, match=r"'x' has numbers with commas, as '0,0'.*--decimal ,"):
        prepare(read_table(path), target)
    assert prepare(read_table(path, decimal=","), target).left_out == {}


def test_an_infinite_number_is_named_by_its_line():
    table = Table(("x",), [["1"], ["inf"], ["3"]], [2, 3, 4])
    with pytest.raises(ValueError, match="line 3: 'inf' in 'x' is not finite"):
        inputs_of(table, table, ["x"])


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["yes", "no"], "classification"),
        (["0", "1", "2"], "classification"),
        (["0.0", "1.0"], "classification"),
        (["0.5", "1"], "regression"),
        ([str(number) for number in range(30)], "regression"),
        (["1", "2", "three"], "classification"),
    ],
)
def test_the_task_is_what_the_target_looks_like(cells, task):
    assert likely_task(cells) == task


@pytest.mark.parametrize(
    ("cells", "task", "message"),
    [
        (["a", "a"], "classification", "nothing to learn"),
        (["1", "1.0"], "regression", "nothing to learn"),
        (["1", "a"], "regression", "line 3: 'a' in 'x' is no number"),
        (["1", "inf"], "regression", "line 3: 'inf' in 'x' is not finite"),
        ([f"c{index}" for index in range(60)], "classification", "60 different values"),
    ],
)
def test_targets_that_do_not_suit_the_task_are_refused(cells, task, message):
    table = Table(("x",), [[cell] for cell in cells], list(range(2, len(cells) + 2)))
    with pytest.raises(ValueError, match="x") as caught:
        target_of(table, table, "x", task)
    assert message in str(caught.value)


def test_a_class_that_was_not_in_the_training_rows_has_no_index():
    table = Table(("x",), [["a"], ["b"]], [2, 3])
    target = target_of(table, table, "x", "classification")
    assert [target.encode(cell) for cell in ("a", "b")] == [0, 1]
    with pytest.raises(ValueError, match="'c' is none of the classes 'a', 'b'"):
        target.encode("c")
