"""Tables: read from CSV, learned by a network, reported on, predicted; beside scikit-learn."""

import csv
import gzip
import io
import json
import math
import random
import signal
import statistics
import subprocess
import sys
import time
import warnings
from collections import Counter
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd.command.main import main
from micrograd.optim import AdamW
from micrograd.tables import metrics, report
from micrograd.tables.encoding import Category, Number, inputs_of, likely_task, target_of
from micrograd.tables.predictor import Settings, load, prepare, split, train
from micrograd.tables.table import MISSING, Table, read_table

DIGITS = Path(__file__).parents[1] / "demos" / "data" / "digits.csv.gz"
PENGUINS = Path(__file__).parent / "data" / "penguins.csv"


def run(capsys, *words):
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def small(rows=20, seed=1):
    """A table that a tiny network learns at once: a class and a quantity that follow from two columns."""
    chance = random.Random(seed)
    lines = []
    for _ in range(rows):
        size, colour = chance.uniform(0, 10), chance.choice(["red", "blue"])
        kind = "large" if size > 5 else "small"
        lines.append([f"{size:.3f}", colour, kind, f"{2 * size + (colour == 'red'):.3f}"])
    return Table(("size", "colour", "kind", "weight"), lines, list(range(2, rows + 2)))


def small_file(folder, rows=20, seed=1):
    table = small(rows, seed)
    text = io.StringIO()
    csv.writer(text).writerows([table.columns, *table.rows])
    return written(folder / "small.csv", text.getvalue())


QUICK = ["--hidden", "2", "--epochs", "1", "--no-pictures"]


# Reading


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
        (gzip.compress(b"a,b\n1,2\n")[:-5], "the compressed file is damaged"),
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


# Columns as numbers


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


# Splitting and measuring


@given(st.lists(st.sampled_from("aaaabbbc"), min_size=12, max_size=80), st.floats(0.1, 0.5), st.integers(0, 9))
def test_a_stratified_split_takes_the_share_of_each_class(cells, share, seed):
    rows = split(cells, share, seed, stratified=True)
    assert rows == split(cells, share, seed, stratified=True)
    counts, taken = Counter(cells), Counter(cells[row] for row in rows)
    for name, count in counts.items():
        assert abs(taken[name] - share * count) <= 1
        assert taken[name] < count  # some of each class are left to learn from


@given(st.integers(10, 100), st.floats(0.1, 0.5), st.integers(0, 9))
def test_a_split_takes_the_share(rows, share, seed):
    assert len(split(["1.5"] * rows, share, seed, stratified=False)) == int(rows * share)


def test_predictions_far_off_have_no_share_of_the_variance():
    assert metrics.regression([0.0, 1.0], [1e200, -1e200], 0.5)["r2"] is None


def test_different_seeds_split_differently():
    assert len({frozenset(split(["x"] * 50, 0.2, seed, stratified=False)) for seed in range(10)}) == 10


@settings(max_examples=30)  # scikit-learn takes its time
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_the_measures_of_classes_are_scikit_learns(pairs):
    reference = pytest.importorskip("sklearn.metrics")
    wanted, guesses = zip(*pairs, strict=True)
    ours = metrics.classification("abc", wanted, guesses, "a")
    assert ours["accuracy"] == pytest.approx(reference.accuracy_score(wanted, guesses))
    assert ours["guessing"] == pytest.approx(reference.accuracy_score(wanted, ["a"] * len(wanted)))
    assert ours["confusion"] == reference.confusion_matrix(wanted, guesses, labels=list("abc")).tolist()
    theirs = reference.precision_recall_fscore_support(wanted, guesses, labels=list("abc"), zero_division=0)
    for name, scores in zip(("precision", "recall", "f1", "rows"), theirs, strict=True):
        assert [entry[name] or 0 for entry in ours["classes"]] == pytest.approx(scores.tolist())


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2))
def test_the_measures_of_quantities_are_scikit_learns(pairs):
    reference = pytest.importorskip("sklearn.metrics")
    wanted, predicted = zip(*pairs, strict=True)
    ours = metrics.regression(wanted, predicted, 5.0)
    assert ours["rmse"] == pytest.approx(reference.mean_squared_error(wanted, predicted) ** 0.5)
    assert ours["mae"] == pytest.approx(reference.mean_absolute_error(wanted, predicted))
    assert ours["guessing"] == pytest.approx(reference.mean_squared_error(wanted, [5.0] * len(wanted)) ** 0.5)
    if statistics.pstdev(wanted) > 1e-6:
        assert ours["r2"] == pytest.approx(reference.r2_score(wanted, predicted), rel=1e-6, abs=1e-6)


# Predictors


@pytest.fixture(scope="module")
def study():
    result = prepare(small(60), "kind", Settings(hidden=(3,), epochs=4, progress=False))
    train(result)
    return result


def test_a_saved_model_predicts_as_before(study, tmp_path):
    study.predictor.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert repr(loaded) == "Predictor('kind' from 'size', 'colour', 'weight')"
    assert loaded.predict(study.test) == study.predictor.predict(study.test)


def test_predictions_in_plain_numbers_are_those_of_the_network(study):
    for inputs, outputs in zip(study.predictor.encoded(study.test), study.predictor.outputs(study.test), strict=True):
        assert outputs == [output.data for output in study.predictor.model(inputs)]


def test_columns_are_found_by_their_names(study):
    order = [3, 1, 2, 0]
    moved = Table(
        (*(study.test.columns[index] for index in order), "another"),
        [[*(row[index] for index in order), "x"] for row in study.test.rows],
        study.test.lines,
    )
    assert study.predictor.predict(moved) == study.predictor.predict(study.test)


def test_training_leaves_pythons_random_numbers_alone():
    state = random.getstate()
    prepare(small(), "kind")
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["tall", "red", "1"], "line 2, column 'size': 'tall' is no finite number"),
        (["inf", "red", "1"], "line 2, column 'size': 'inf' is no finite number"),
    ],
)
def test_cells_that_a_model_cannot_take_are_named(study, cells, message):
    with pytest.raises(ValueError, match="line 2") as caught:
        study.predictor.predict(Table(("size", "colour", "weight"), [cells], [2]))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "cut off or damaged"),
        (lambda text: text.replace('"tanh"', '"relu"'), "its checksum does not fit"),
        (lambda text: text.replace('"mean": ', '"mean": 1'), "its checksum does not fit"),
        (lambda text: "[]", "is no model"),
        (lambda text: text.replace("predictor 1", "predictor 9"), "is no model"),
        (lambda text: "", "cut off or damaged"),
    ],
)
def test_a_damaged_model_is_refused(study, tmp_path, damage, message):
    path = tmp_path / "model.json"
    study.predictor.save(path)
    written(path, damage(path.read_text(encoding="utf-8")))
    with pytest.raises(ValueError, match=r"model\.json") as caught:
        load(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "kid"}, "no column 'kid'; did you mean 'kind'"),
        ({"ignored": ["kind"]}, "'kind' is the target, and cannot be ignored"),
        ({"ignored": ["size", "colour", "weight"]}, "no column is left"),
        ({"rows": 4}, "'kind' has a value in 4 rows only"),
    ],
)
def test_what_cannot_be_learned_is_refused(change, message):
    with pytest.raises(ValueError, match=r"kid|kind") as caught:
        prepare(small(change.get("rows", 20)), change.get("target", "kind"), None, change.get("ignored", ()))
    assert message in str(caught.value)


def test_a_model_that_somebody_wrote_by_hand_is_refused_in_words(study, tmp_path):
    study.predictor.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    content["columns"][0]["kind"] = "Date"
    del content["checksum"]
    content["checksum"] = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    with pytest.raises(ValueError, match="is no model that `micrograd train` saved: 'Date'"):
        load(written(tmp_path / "edited.json", json.dumps(content)))


def test_numbers_too_large_for_the_network_are_named_by_their_line():
    far = prepare(small(60), "weight", Settings(hidden=(), progress=False))
    far.predictor.model.parameters()[0].data = 1e10
    table = Table(("size", "colour", "kind"), [["1e308", "red", "small"]], [7])
    with pytest.raises(ValueError, match="line 7: the numbers are too large"):
        far.predictor.predict(table)


@pytest.mark.parametrize("wrong", [{"test": 0.0}, {"test": 0.6}, {"test": math.nan}, {"task": "clustering"}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must be above 0|the task is"):
        Settings(**wrong)


# Reports


@pytest.fixture(scope="module")
def small_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    path = small_file(folder, 60)
    assert (
        main(["train", str(path), "--target", "kind", "--epochs", "30", "-o", str(folder / "report"), "--quiet"]) == 0
    )
    return folder / "report"


def test_the_report_has_its_files(small_report):
    names = {"report.html", "metrics.json", "model.json", "loss.svg", "confusion.svg", "neuron.svg"}
    assert {path.name for path in small_report.iterdir()} == names
    for name in names:
        if name.endswith(".svg"):
            assert ElementTree.parse(small_report / name).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    page = (small_report / "report.html").read_text(encoding="utf-8")
    for name in ("loss.svg", "confusion.svg", "neuron.svg"):
        assert f'src="{name}"' in page


def test_the_numbers_of_the_report_are_those_of_the_saved_model(small_report):
    numbers = json.loads((small_report / "metrics.json").read_text(encoding="utf-8"))
    table = read_table(small_report.parent / "small.csv")
    rows = split(table.column("kind"), 0.2, 1, stratified=True)
    test = table.without(set(range(60)) - rows)
    predictor = load(small_report / "model.json")
    right = [
        predictor.target.likeliest(p) == kind
        for p, kind in zip(predictor.predict(test), test.column("kind"), strict=True)
    ]
    assert numbers["on_test_rows"]["accuracy"] == statistics.fmean(right) > 0.8
    assert numbers["on_test_rows"]["rows"] == 12
    assert sum(map(sum, numbers["on_training_rows"]["confusion"])) == 48


def test_the_drawn_neuron_shows_its_inputs_and_gradients(small_report):
    text = " ".join(ElementTree.parse(small_report / "neuron.svg").getroot().itertext())
    for name in ("bias", "weight of size", "size", "weighted sum", "grad"):
        assert name in text


def test_the_same_seed_gives_the_same_report(small_report, tmp_path):
    words = ["train", str(small_report.parent / "small.csv"), "--target", "kind", "--epochs", "30", "--quiet"]
    assert main([*words, "-o", str(tmp_path / "again")]) == 0
    for path in small_report.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_the_drawn_neuron_sums_up_the_inputs_that_weigh_least(small_report, tmp_path, capsys):
    def drawn(folder):
        return " ".join(ElementTree.parse(folder / "neuron.svg").getroot().itertext())

    assert "other inputs" in drawn(small_report)  # it has four
    path = written(
        tmp_path / "table.csv", "x,y\n" + "".join(f"{row},{'no' if row < 9 else 'yes'}\n" for row in range(20))
    )
    words = ["train", path, "--target", "y", "--hidden", 2, "--epochs", 1, "-o", tmp_path / "report"]
    assert run(capsys, *words)[0] == 0
    assert "weight of x" in drawn(tmp_path / "report")
    assert "other inputs" not in drawn(tmp_path / "report")


def test_a_regression_has_a_scatter_plot(tmp_path, capsys):
    words = [
        "train",
        small_file(tmp_path),
        "--target",
        "weight",
        "--hidden",
        2,
        "--epochs",
        2,
        "-o",
        tmp_path / "report",
    ]
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    numbers = json.loads(out)
    assert numbers.pop("report") == str(tmp_path / "report")
    assert numbers == json.loads((tmp_path / "report" / "metrics.json").read_text(encoding="utf-8"))
    assert numbers["task"] == "regression"
    assert (tmp_path / "report" / "scatter.svg").exists()
    _, lines, _ = run(capsys, "predict", tmp_path / "report" / "model.json", tmp_path / "small.csv")
    _, records, _ = run(capsys, "predict", tmp_path / "report" / "model.json", tmp_path / "small.csv", "--json")
    header, *predictions = lines.split()
    assert header == "weight"
    assert [record["prediction"] for record in json.loads(records)] == pytest.approx([float(p) for p in predictions])


def test_what_is_left_out_is_on_the_page(tmp_path, capsys):
    path = written(
        tmp_path / "t.csv", "x,same,y\n" + "".join(f"{row},7,{row % 2 or ''}\n{row},7,no\n" for row in range(20))
    )
    words = ["train", path, "--target", "y", "-o", tmp_path / "report", *QUICK]
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "Left out: same, because it is 7 in every row" in out
    assert "10 without a target are left out" in out
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "it is 7 in every row" in page
    assert "10, left out" in page


def test_names_are_shown_as_typed(tmp_path, capsys):
    names = ["<script>alert(1)</script>", "{a|b}", '"quoted"', "$x^2$ 🎉", "שלום", "a\nb", "&amp;", "%s \\ { }"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(
        [index, -index, index % 3, index % 2, index / 7, index % 5, index % 4, f"<b>{index % 2}"] for index in range(20)
    )
    path = written(tmp_path / "names.csv", text.getvalue())
    words = ["train", path, "--target", names[-1], "--hidden", 2, "--epochs", 1, "-o", tmp_path / "report"]
    code, _, err = run(capsys, *words)
    assert (code, err) == (0, "")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&amp;amp;" in page
    confusion = ElementTree.parse(tmp_path / "report" / "confusion.svg")
    assert "<b>0" in " ".join(confusion.getroot().itertext())
    assert run(capsys, "predict", tmp_path / "report" / "model.json", path)[0] == 0


def test_a_report_is_replaced_only_when_asked(tmp_path, capsys):
    path, folder = small_file(tmp_path), tmp_path / "report"
    assert run(capsys, "train", path, "--target", "kind", "-o", folder, *QUICK)[0] == 0
    before = (folder / "model.json").read_bytes()
    code, _, err = run(capsys, "train", path, "--target", "kind", "-o", folder, *QUICK, "--seed", 2)
    assert code == 2
    assert "--overwrite" in err
    assert (folder / "model.json").read_bytes() == before
    assert run(capsys, "train", path, "--target", "kind", "-o", folder, *QUICK, "--seed", 2, "--overwrite")[0] == 0
    assert (folder / "model.json").read_bytes() != before
    assert {entry.name for entry in tmp_path.iterdir()} == {"small.csv", "report"}


def test_a_folder_with_other_files_is_never_replaced(tmp_path, capsys):
    path, folder = small_file(tmp_path), tmp_path / "precious"
    folder.mkdir()
    written(folder / "thesis.txt", "years of work")
    code, out, err = run(capsys, "train", path, "--target", "kind", "-o", folder, *QUICK, "--overwrite")
    assert (code, out) == (2, "")
    assert "thesis.txt" in err
    assert [entry.name for entry in folder.iterdir()] == ["thesis.txt"]
    assert "is a file" in run(capsys, "train", path, "--target", "kind", "-o", path, *QUICK)[2]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("older", [False, True])
def test_a_report_appears_whole_or_not_at_all(tmp_path, capsys, monkeypatch, error, older):
    path, folder = small_file(tmp_path), tmp_path / "report"
    words = ["train", path, "--target", "kind", "-o", folder, *QUICK, "--overwrite"]
    if older:
        assert run(capsys, *words)[0] == 0
    before = {file.name: file.read_bytes() for file in folder.iterdir()} if older else None

    def write(path, data):
        if path.name == "report.html":
            raise error
        path.write_bytes(data)

    monkeypatch.setattr(report, "write_atomically", write)
    assert run(capsys, *words, "--seed", 2)[0] == (130 if isinstance(error, KeyboardInterrupt) else 2)
    assert {entry.name for entry in tmp_path.iterdir()} == ({"small.csv", "report"} if older else {"small.csv"})
    assert ({file.name: file.read_bytes() for file in folder.iterdir()} if older else None) == before


@pytest.mark.parametrize("older", [False, True])
def test_where_the_new_report_cannot_take_its_name_the_old_one_keeps_it(tmp_path, capsys, monkeypatch, older):
    path, folder = small_file(tmp_path), tmp_path / "report"
    words = ["train", path, "--target", "kind", "-o", folder, *QUICK, "--overwrite"]
    if older:
        assert run(capsys, *words)[0] == 0
    before = (folder / "model.json").read_bytes() if older else None
    rename = Path.rename

    def refuse(self, target):
        if self.name == "new":
            raise PermissionError(13, "Permission denied", str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    code, _, err = run(capsys, *words, "--seed", 2)
    assert code == 2
    assert "report: Permission denied" in err
    assert ((folder / "model.json").read_bytes() if older else None) == before
    assert {entry.name for entry in tmp_path.iterdir()} == ({"small.csv", "report"} if older else {"small.csv"})


@pytest.mark.parametrize("name", ["report", "new"])  # the old folder going aside, and the new one taking its name
def test_ctrl_c_while_the_new_report_takes_its_name_leaves_it_whole(tmp_path, capsys, monkeypatch, name):
    path, folder = small_file(tmp_path), tmp_path / "report"
    words = ["train", path, "--target", "kind", "-o", folder, *QUICK, "--overwrite"]
    assert run(capsys, *words)[0] == 0
    rename, renamed = Path.rename, []

    def interrupted(self, target):
        rename(self, target)
        renamed.append(self.name)
        if self.name == name:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupted)
    assert run(capsys, *words, "--seed", 2)[0] == 130
    assert renamed == ["report", "new"]
    assert json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["training"]["seed"] == 2
    assert {entry.name for entry in tmp_path.iterdir()} == {"small.csv", "report"}


def test_ctrl_c_ends_the_training_and_the_report_is_about_what_was_learned(tmp_path):
    folder = tmp_path / "report"
    words = ["train", small_file(tmp_path, 200), "--target", "kind", "--epochs", 100_000, "-o", folder, "--no-pictures"]
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "micrograd", *map(str, words)], stdout=subprocess.PIPE, text=True
    )
    with process:
        for line in process.stdout:
            if line.startswith("Network"):
                break
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "Interrupted" in rest
    assert json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["training"]["interrupted"] is True
    assert load(folder / "model.json").target.name == "kind"


@pytest.mark.parametrize(("steps", "code"), [(0, 130), (3, 0)])
def test_ctrl_c_before_the_first_step_writes_nothing_and_after_some_the_report(
    tmp_path, capsys, monkeypatch, steps, code
):
    path, step, done = small_file(tmp_path), AdamW.step, []

    def interrupted(self):
        if len(done) == steps:
            raise KeyboardInterrupt
        done.append(step(self))

    monkeypatch.setattr(AdamW, "step", interrupted)
    words = ["train", path, "--target", "kind", "-o", tmp_path / "report", *QUICK, "--epochs", 9, "--no-compile"]
    found, out, err = run(capsys, *words)
    assert found == code
    assert ("Interrupted: the report is about the network as it is now" in out) == (steps > 0)
    assert ("Training: 3 steps" in out) == (steps > 0)
    assert (err == "") == (steps > 0)
    assert {entry.name for entry in tmp_path.iterdir()} == ({"small.csv", "report"} if steps else {"small.csv"})


# The words of train and predict


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.csv", "--target", "kind"], "No such file or directory"),
        (["train", "small.csv", "--target", "kid"], "did you mean 'kind'"),
        (["train", "small.csv", "--target", "kind", "--test", "0.9"], "at most 0.5"),
        (["train", "small.csv", "--target", "kind", "--task", "regression"], "is no number"),
        (
            ["train", "small.csv", "--target", "weight", "--task", "classification", "--test", "0.001"],
            "no row to test on",
        ),
        (
            ["train", "small.csv", "--target", "weight", "--learning-rate", "1e300", "--batch-size", "2"],
            "a smaller learning rate may help",
        ),
        (["train", ".", "--target", "kind"], "Is a directory"),
        (["train", "small.csv", "--target", "size", "--task", "classification"], "each row has a class of its own"),
        (["train", "small.csv", "--target", "kind", "-o", "/dev/null/report"], "/dev/null/report: "),
        (["train", "none.csv", "--target", "kind", "-o", "deep/in/folders"], "none.csv: No such file or directory"),
        (["predict", "small.csv", "small.csv"], "no saved model"),
        (["predict", "none.json", "small.csv"], "No such file or directory"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, message):
    small_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *words, *(QUICK if words[0] == "train" else []))
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.csv"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--hidden", "0"], "'0' is not a whole number of at least 1"),
        (["--hidden", "x"], "'x' is not a whole number"),
        (["--learning-rate", "0"], "must be above 0"),
        (["--learning-rate", "fast"], "'fast' is not a number"),
        (["--weight-decay", "nan"], "not a number from 0 up"),
        (["--activation", "step"], "invalid choice"),
    ],
)
def test_options_out_of_range_are_refused(capsys, option, message):
    with pytest.raises(SystemExit) as caught:
        main(["train", "small.csv", "--target", "kind", *option])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_train_says_what_it_does_with_the_columns(tmp_path, capsys):
    code, out, err = run(
        capsys, "train", PENGUINS, "--target", "sex", "--ignore", "year", "-o", tmp_path / "report", *QUICK
    )
    assert (code, err) == (0, "")
    assert "Target: sex, one of 2 classes" in out
    assert "267 to train on, 66 to test on; 11 without a target are left out" in out
    assert "island" in out
    assert "year" not in out
    assert "Test accuracy: " in out
    assert (tmp_path / "report" / "report.html").exists()


def test_without_matplotlib_what_to_install_is_said_before_the_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = ["train", small_file(tmp_path), "--target", "kind", "-o", tmp_path / "report", "--hidden", 2, "--epochs", 1]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert "pip install matplotlib" in err
    assert "--no-pictures" in err
    assert run(capsys, *words, "--no-pictures")[0] == 0


def test_a_compiler_that_is_not_there_is_missed_before_the_training(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("micrograd.tables.predictor.find_spec", lambda name: None)
    code, out, err = run(capsys, "train", small_file(tmp_path), "--target", "kind", "--compile", *QUICK)
    assert (code, out) == (2, "")
    assert "compiling needs NumPy" in err


def test_compiled_training_learns_the_same(tmp_path, capsys):
    results = []
    for option in ("--compile", "--no-compile"):
        folder = tmp_path / option
        words = ["train", small_file(tmp_path, 60), "--target", "kind", "-o", folder, "--no-pictures", "--epochs", 3]
        assert run(capsys, *words, option)[0] == 0
        results.append(load(folder / "model.json").model.state_dict())
    assert results[0] == pytest.approx(results[1], rel=1e-6)


def test_predict_writes_a_line_for_each_row(small_report, tmp_path, capsys):
    model, data = small_report / "model.json", small_report.parent / "small.csv"
    code, out, err = run(capsys, "predict", model, data)
    assert (code, err) == (0, "")
    header, *rows = csv.reader(io.StringIO(out))
    assert header == ["kind", "probability"]
    assert len(rows) == 60
    assert (
        statistics.fmean(kind == right for (kind, _), right in zip(rows, small(60).column("kind"), strict=True)) > 0.9
    )
    assert all(0.5 <= float(probability) <= 1 for _, probability in rows)
    assert run(capsys, "predict", model, data, "-o", tmp_path / "predictions.csv")[:2] == (0, "")
    assert (tmp_path / "predictions.csv").read_text(encoding="utf-8") == out


@pytest.mark.parametrize("word", ["tab", "\\t", "\t"])
def test_a_delimiter_is_given_as_a_word_too(small_report, tmp_path, capsys, word):
    data = written(tmp_path / "new.txt", "size\tcolour\tweight\n1,0\tred\t2,0\n9,0\tblue\t18,0\n")
    words = ["predict", small_report / "model.json", data, "--decimal", ",", "--delimiter", word]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert [line.split(",")[0] for line in out.split()] == ["kind", "small", "large"]


def test_predict_in_json(small_report, capsys):
    _, out, _ = run(capsys, "predict", small_report / "model.json", small_report.parent / "small.csv", "--json")
    first = json.loads(out)[0]
    assert first["prediction"] == max(first["probabilities"], key=first["probabilities"].get)
    assert sum(first["probabilities"].values()) == pytest.approx(1)


def test_predict_says_where_it_guesses(small_report, tmp_path, capsys):
    data = written(tmp_path / "new.csv", "weight,size,colour\n1,2,green\n3,,red\n,NA,\n")
    code, out, err = run(capsys, "predict", small_report / "model.json", data)
    assert code == 0
    assert len(out.splitlines()) == 4
    assert "2 cells of 'size' are missing or unknown" in err
    assert "2 cells of 'colour' are missing or unknown" in err


def test_predict_reads_the_standard_input(small_report):
    command = [sys.executable, "-m", "micrograd", "predict", str(small_report / "model.json"), "-"]
    result = subprocess.run(command, input=b"size;colour;weight\n9;red;18\n1;blue;2\n", capture_output=True, check=True)
    assert [line.split(",")[0] for line in result.stdout.decode().split()] == ["kind", "large", "small"]


# Three real tables, beside scikit-learn


def reference(path, target, task, hidden, epochs, share=0.2, seed=1):
    """How well scikit-learn's network, with its own preprocessing, predicts the same test rows."""
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("sklearn")
    from sklearn.compose import TransformedTargetRegressor, make_column_transformer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    place = header.index(target)
    rows = [row for row in rows if row[place] != "NA"]
    wanted = [row.pop(place) for row in rows]
    text = [
        i for i in range(len(rows[0])) if any(not row[i].replace(".", "").isdigit() and row[i] != "NA" for row in rows)
    ]
    numbers = [i for i in range(len(rows[0])) if i not in text]
    table = numpy.array(
        [[row[i] if i in text else float(row[i].replace("NA", "nan")) for i in range(len(row))] for row in rows], object
    )
    targets = numpy.array(wanted if task == "classification" else [float(cell) for cell in wanted])

    estimator = (MLPClassifier if task == "classification" else MLPRegressor)(
        hidden_layer_sizes=hidden,
        activation="tanh",
        batch_size=16,
        learning_rate_init=0.01,
        max_iter=epochs,
        random_state=0,
    )
    if task == "regression":
        estimator = TransformedTargetRegressor(estimator, transformer=StandardScaler())
    preprocessing = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), text),
    )
    test = numpy.isin(numpy.arange(len(rows)), list(split(wanted, share, seed, stratified=task == "classification")))
    pipeline = make_pipeline(preprocessing, estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline.fit(table[~test], targets[~test])
    return pipeline.score(table[test], targets[test])


def iris(folder):
    """Fisher's iris flowers, which scikit-learn carries, as a file."""
    flowers = pytest.importorskip("sklearn.datasets").load_iris()
    lines = [[*numbers, flowers.target_names[kind]] for numbers, kind in zip(flowers.data, flowers.target, strict=True)]
    text = io.StringIO()
    csv.writer(text).writerows([[*flowers.feature_names, "kind"], *lines])
    return written(folder / "iris.csv", text.getvalue())


@pytest.mark.parametrize(
    ("table", "target", "task", "hidden", "epochs", "least"),
    [
        ("iris", "kind", "classification", 8, 40, 0.9),
        ("penguins", "species", "classification", 8, 20, 0.95),
        ("penguins", "body_mass_g", "regression", 8, 20, 0.8),
        ("digits", "digit", "classification", 8, 2, 0.85),
    ],
)
def test_real_tables_are_predicted_as_well_as_by_scikit_learn(
    tmp_path, capsys, table, target, task, hidden, epochs, least
):
    path = {"iris": iris, "penguins": lambda _: PENGUINS, "digits": lambda _: DIGITS}[table](tmp_path)
    words = ["train", path, "--target", target, "--hidden", hidden, "--epochs", epochs, "--no-pictures", "--json"]
    code, out, err = run(capsys, *words, "-o", tmp_path / "report")
    assert (code, err) == (0, "")
    numbers = json.loads(out)
    assert numbers["task"] == task
    ours = numbers["on_test_rows"]["accuracy" if task == "classification" else "r2"]
    theirs = reference(path, target, task, (hidden,), epochs)
    assert ours > least
    assert ours > theirs - 0.04
