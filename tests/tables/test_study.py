"""Studies: which columns are used, what is refused, how rows are split, and what does not change what is learned."""

import numpy as np
import pandas as pd
import pytest

from micrograd.estimators import MLPClassifier, MLPRegressor
from micrograd.tables.reading import read_table
from micrograd.tables.study import network_of, prepare
from tests.tables.common import small_file, written

pytestmark = pytest.mark.slow(together=True)


def frame(**columns):
    kinds = {name: float if isinstance(cells[0], float) else object for name, cells in columns.items()}
    return pd.DataFrame({name: pd.Series(cells, dtype=kinds[name]) for name, cells in columns.items()})


@pytest.fixture
def table(tmp_path):
    return read_table(small_file(tmp_path, 60), text=["kind"])


def with_rows(cells, y="ab", share=0.5):
    """A study whose rows to learn from are, in the column x, twice these cells."""
    rows = frame(x=4 * cells, other=[float(row) for row in range(4 * len(cells))], y=list(y) * 2 * len(cells))
    study = prepare(rows, "y", share=share)
    return study._replace(training=rows[: len(cells)], test=rows[len(cells) :])


class TestColumns:
    def test_gaps_count_as_the_mean_and_are_told_to_the_network(self):
        study = with_rows([1.0, 3.0, np.nan])
        _, cells, gaps = study.pipeline(None)[0].fit_transform(study.parts(study.training)[0]).T
        assert cells.tolist() == pytest.approx([-(1.5**0.5), 1.5**0.5, 0.0])
        assert gaps.tolist()[:2] == [gaps.min()] * 2

    def test_text_is_one_input_for_each_category_and_none_for_one_that_is_new(self):
        study = with_rows(["red", "blue", np.nan, "red"])
        pipeline = study.pipeline(None)
        pipeline[0].fit(study.parts(study.training)[0])
        new = frame(x=["red", "green", np.nan], other=[1.0, 2.0, 3.0])
        assert pipeline[0].get_feature_names_out()[1:].tolist() == ["x missing", "x = blue", "x = red"]
        assert pipeline[0].transform(new)[:, 1:].tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]

    @pytest.mark.slow  # it loads much
    def test_what_a_model_guesses_is_counted(self):
        from micrograd.tables.models import Model

        study = with_rows(["red", "blue", np.nan, "red"])
        pipeline = study.pipeline(None)
        pipeline[0].fit(study.parts(study.training)[0])
        new = frame(x=["red", "green", np.nan], other=[1.0, 2.0, 3.0])
        assert Model(pipeline, "y").guessed(new) == {"x": 1}

    @pytest.mark.parametrize(
        ("cells", "reason"),
        [
            ([7.0] * 6, "it is 7.0 in every row"),
            (["a"] * 6, "it is 'a' in every row"),
            ([np.nan] * 6, "it has no value"),
            ([f"{index}x" for index in range(24)], "text with 12 different values in 12 rows"),
            ([f"{index // 2}x" for index in range(220)], "different values in 110 rows"),
            ([f"2024-01-{day}" for day in range(24)], "it has dates, as '2024-01-"),
        ],
    )
    def test_columns_that_tell_nothing_are_left_out_with_a_reason(self, cells, reason):
        rows = frame(x=cells, y=["a", "b"] * (len(cells) // 2))
        with pytest.raises(ValueError, match=f"no column is left to predict 'y' from\n  'x': .*{reason}"):
            prepare(rows, "y", share=0.5)

    @pytest.mark.parametrize(
        ("cells", "message"),
        [
            ([1.0, np.inf], "line 1: inf in 'x' is not finite"),
            ([1.0, -1e200], "line 1: -1e\\+200 in 'x' is too large"),
            (["1,5", "2"], "'x' has numbers with commas, as '1,5'.*--decimal ,"),
            (
                ["$1,234", "$7"],
                "as '\\$1,234': if .* decimal mark, give --decimal , and if .* thousands, --decimal \\.",
            ),
        ],
    )
    def test_numbers_that_cannot_be_learned_from(self, cells, message):
        with pytest.raises(ValueError, match=message):
            with_rows(cells)

    def test_two_inputs_may_have_one_name(self):
        rows = frame(**{"colour": ["red", "blue"] * 10, "colour = red": [1.0, 2.0] * 10, "y": ["a", "b", "b", "a"] * 5})
        study = prepare(rows, "y")
        encoder = study.pipeline(None)[0].fit(study.parts(study.training)[0])
        assert encoder.get_feature_names_out().tolist() == ["colour = red", "colour = blue", "colour = red"]

    @pytest.mark.parametrize("name", ["id", "PassengerId", "customer_id", "ID", "row nr", "Unnamed: 0"])
    def test_whole_numbers_that_tell_rows_apart_by_their_name_are_left_out_unless_they_are_kept(self, name):
        rows = frame(
            **{name: [1000.0 - row for row in range(20)], "x": [float(row) for row in range(20)], "y": ["a", "b"] * 10}
        )
        study = prepare(rows, "y")
        reason = "it looks like an id: each row has another whole number (--keep uses it)"
        assert (study.columns, study.left_out) == (["x"], {name: reason})
        assert prepare(rows, "y", kept=[name]).columns == sorted([name, "x"])
        with pytest.raises(ValueError, match="there is no column 'idd'"):
            prepare(rows, "y", kept=["idd"])

    @pytest.mark.parametrize(
        ("name", "cells"),
        [
            ("id", [row + 0.5 for row in range(20)]),
            ("id", [float(row // 2) for row in range(20)]),
            ("id", [np.nan, *map(float, range(19))]),
            ("paid", [float(row) for row in range(20)]),
            ("day", [float(row) for row in range(20)]),
            ("7", [float(row) for row in range(20)]),
        ],
    )
    def test_what_may_be_a_measure_is_no_id(self, name, cells):
        study = prepare(frame(**{name: cells, "y": ["a", "b"] * 10}), "y")
        assert (study.columns, study.left_out) == ([name], {})

    @pytest.mark.parametrize("odd", ["20", "inf", '"1,5"'])
    def test_row_numbers_under_a_blank_header_are_not_learned_from_whatever_they_are(self, tmp_path, odd):
        lines = "".join(f"{row},{row % 7},{row // 10}\n" for row in range(20)) + f"{odd},1,0\n"
        study = prepare(read_table(written(tmp_path / "table.csv", f",x,y\n{lines}"), text=["y"]), "y")
        assert (study.columns, study.left_out) == (["x"], {"column 1": "its header is blank, as over row numbers"})


class TestTargets:
    @pytest.mark.parametrize(
        ("cells", "task"),
        [
            (["yes", "no"], "classification"),
            (["0.0", "1.0"], "classification"),
            (["0.5", "1"], "regression"),
            ([str(number) for number in range(30)], "regression"),
            (["1", "2", "three"], "classification"),
        ],
    )
    def test_the_task_is_what_the_target_looks_like(self, cells, task):
        rows = frame(y=cells * 4, x=[float(row) for row in range(4 * len(cells))])
        assert prepare(rows, "y").of_classes == (task == "classification")

    @pytest.mark.parametrize(
        ("cells", "task", "message"),
        [
            (["a"] * 6, None, "nothing to learn: 'y' is 'a' in every row"),
            (["1", "1.0"] * 3, "regression", "nothing to learn"),
            (["1", "a"] * 3, "regression", "line 1: 'a' in 'y' is no number"),
            (["1", "inf"] * 3, "regression", "line 1: inf in 'y' is not finite"),
            ([f"c{index}" for index in range(60)], None, "60 different values, and at most 50 can be classes"),
            (["a", "b", np.nan, np.nan, "a"], None, "a value in 3 rows only"),
            (["a", "b", "c", "d", "e"], None, "0.2 of 0 rows cannot be drawn"),
            (["1,5", "2,5", "3,5", "4,5", "5,5"], None, "numbers with commas"),
        ],
    )
    def test_targets_that_cannot_be_learned(self, cells, task, message):
        with pytest.raises(ValueError, match=message):
            prepare(frame(x=[float(row) for row in range(len(cells))], y=cells), "y", task=task)

    @pytest.mark.parametrize(
        ("cells", "decimal", "numbers"),
        [
            ([f"{row}.5%" for row in range(9)], None, [row + 0.5 for row in range(9)]),
            ([f"$1,00{row}.50" for row in range(9)], None, [1000.5 + row for row in range(9)]),
            ([f"1.00{row},50 €" for row in range(9)], ",", [1000.5 + row for row in range(9)]),
            ([f"1,23{row}" for row in range(9)], ",", [1.23 + row / 1000 for row in range(9)]),
        ],
    )
    def test_a_target_may_be_written_with_a_currency_or_a_percent_sign(self, tmp_path, cells, decimal, numbers):
        lines = "".join(f"{row};{cell}\n" for row, cell in enumerate(cells))
        table = read_table(written(tmp_path / "t.csv", f"x;y\n{lines}"), text=["y"], decimal=decimal)
        study = prepare(table, "y", share=0.3)
        assert not study.of_classes
        assert study.rows["y"].tolist() == pytest.approx(numbers)
        assert [*study.as_numbers] == ([] if cells[0] == "1,230" else ["y"])

    def test_few_percentages_are_classes_as_they_are_written(self, tmp_path):
        lines = "".join(f"{row},{row},{(40, 60)[row % 2]}%\n" for row in range(20))
        table = read_table(written(tmp_path / "t.csv", f"x,z,y\n{lines}"), text=["y"])
        study = prepare(table, "y")
        assert (study.of_classes, {*study.rows["y"]}, study.as_numbers) == (True, {"40%", "60%"}, {})

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"target": "knd"}, "there is no column 'knd'; did you mean 'kind'?"),
            ({"target": "x" * 9}, "there are 'size', 'colour'"),
            ({"target": "KIND"}, "did you mean 'kind'?"),
            ({"target": "length"}, "there is no column 'length'; there are 'size', 'colour'"),
            ({"target": "kind", "ignored": ["kinds"]}, "there is no column 'kinds'; there are 'size', 'colour'"),
            ({"target": "kind", "ignored": ["kind"]}, "is the target, and cannot be ignored"),
            ({"target": "kind", "share": 0.9}, "at most 0.5, not 0.9"),
            ({"target": "kind", "ignored": ["size", "colour", "weight"]}, "no column is left to predict 'kind' from"),
        ],
    )
    def test_columns_that_are_not_there_or_not_left(self, table, settings, message):
        with pytest.raises(ValueError, match=message):
            prepare(table, **settings)

    def test_more_columns_than_a_saved_model_may_name_are_refused(self, table, monkeypatch):
        monkeypatch.setattr("micrograd.tables.study.MOST_COLUMNS", 2)
        with pytest.raises(ValueError, match="there are 3 columns to predict from, and 2 are the most"):
            prepare(table, "kind")


@pytest.mark.parametrize("seed", range(8))
def test_a_split_takes_the_share_of_each_class_and_never_its_only_row(seed):
    rows = frame(x=[float(row) for row in range(51)], y=["a"] * 40 + ["b"] * 10 + ["d"])
    study, again = (prepare(rows, "y", share=0.2, seed=seed) for _ in range(2))
    assert study.test["y"].value_counts().to_dict() == {"a": 8, "b": 2}
    assert study.test.index.tolist() == again.test.index.tolist()
    assert sorted([*study.training.index, *study.test.index]) == rows.index.tolist()


@pytest.mark.parametrize(
    "change",
    [lambda table: table[list(table)[::-1]], lambda table: table.assign(zero=0.0, same="x")],
    ids=["the order of columns", "a constant column"],
)
@pytest.mark.parametrize("target", ["kind", "weight"])
def test_what_does_not_matter_changes_nothing_that_is_learned(tmp_path, change, target):
    table, learned = read_table(small_file(tmp_path, 60), text=[target]), []
    for rows in (table, change(table)):
        study = prepare(rows, target)
        kind = MLPClassifier if study.of_classes else MLPRegressor
        pipeline = study.pipeline(kind((3,), max_iter=2, n_iter_no_change=np.inf, random_state=0))
        pipeline.fit(*study.parts(study.training))
        learned.append([part.tolist() for part in network_of(pipeline).coefs_])
    assert learned[0] == learned[1]
