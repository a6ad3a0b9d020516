"""The commands train and predict: their words, what they print, and what they refuse."""

import csv
import gc
import io
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

import pytest

from micrograd.command.main import main
from micrograd.command.tables import _defused
from micrograd.compiler.training.buffer_steps import BufferSteps
from micrograd.tables.models import load
from micrograd.tables.reading import read_table
from micrograd.tables.study import network_of, prepare
from tests.tables.common import PENGUINS, QUICK, run, small_file, written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(small_report):
    """A table, and the model that learned it."""
    return small_report.parent / "small.csv", small_report / "model.skops"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train none.csv --target kind", "No such file or directory"),
        ("train small.csv --target kid", "did you mean 'kind'"),
        ("train small.csv --target kind --test 0.9", "at most 0.5"),
        ("train small.csv --target kind --task regression", "is no number"),
        (
            "train small.csv --target weight --learning-rate 1e300 --batch-size 2",
            "in epoch 1: take a smaller --learning-rate\n",
        ),
        ("train small.csv --target kind --hidden 99999999", "and 2,000,000 are the most"),
        ("train . --target kind", "Is a directory"),
        ("train small.csv --target kind -o /dev/null/report", "/dev/null/report: "),
        ("predict small.csv small.csv", "no saved model"),
        ("predict none.skops small.csv", "No such file or directory"),
        ("train small.csv --target weight --balance", "--balance is for classes, and 'weight' is learned as a number"),
        ("train small.csv --target kind --encoding klingon", "small.csv: Python knows no encoding 'klingon'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, message):
    small_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    command, data, *others = words.split()
    collecting = gc.get_threshold()
    code, _, err = run(capsys, command, data, *(QUICK if command == "train" else []), *others)
    assert gc.get_threshold() == collecting  # training lets the collector rest
    assert (code, "Traceback" in err) == (2, False)
    assert message in err
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.csv"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--hidden", "0"], "'0' is not a whole number of at least 1"),
        (["--folds", "x"], "'x' is not a whole number"),
        (["--seed", "-1"], "'-1' is not a whole number from 0 to 4294967295"),
        (["--seed", "4294967296"], "'4294967296' is not a whole number from 0 to 4294967295"),
        (["--learning-rate", "0"], "must be above 0"),
        (["--learning-rate", "fast"], "'fast' is not a number"),
        (["--alpha", "nan"], "not a number from 0 up"),
        (["--activation", "step"], "invalid choice"),
    ],
)
def test_options_out_of_range_are_refused(capsys, option, message):
    with pytest.raises(SystemExit) as caught:
        main(["train", "small.csv", "--target", "kind", *option])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_train_says_what_it_does_with_the_columns(tmp_path, capsys):
    words = ["train", PENGUINS, "--target", "sex", "--ignore", "year", "-o", tmp_path / "report", *QUICK]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "Target: sex, one of 2 classes" in out
    assert "Rows: 266 to learn from, 67 to test on; 11 without a target are left out" in out
    assert "island" in out
    assert "year" not in out
    assert "2 tanh neurons, 1 output" in out
    assert "Training: 1 epoch in " in out
    assert "Test accuracy: " in out
    assert run(capsys, *words, "--overwrite", "--quiet") == (0, "", "")
    numbers = json.loads(run(capsys, *words, "--overwrite", "--json", "--epochs", 2)[1])
    assert (numbers["report"], numbers["training"]["epochs"]) == (str(tmp_path / "report"), 2)
    assert numbers["columns"]["island"].items() >= {"kind": "category", "missing": 0}.items()


def test_a_linear_model_has_no_hidden_neurons_and_columns_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "t.a.csv", "x,name,y\n" + "".join(f"{row},person {row},{row * 0.5}\n" for row in range(40)))
    code, out, _ = run(capsys, "train", "t.a.csv", "--target", "y", *QUICK, "--hidden", "--task", "regression")
    assert code == 0
    assert "Network: 1 input, 1 output, 2 parameters" in out
    assert "Left out: name, because it is text with 32 different values in 32 rows" in out
    assert f"Report: {os.path.join('t-report', 'report.html')}" in out


def test_escapes_in_a_header_do_not_reach_the_terminal(tmp_path, capsys):
    lines = "".join(f"{row},{'ab'[row % 2]}\n" for row in range(20))
    path = written(tmp_path / "table.csv", f"\x1b[31mred\x07,kind\x1b[2J\n{lines}")
    code, out, err = run(capsys, "train", path, "--target", "kind\x1b[2J", "-o", tmp_path / "report", *QUICK)
    assert code == 0
    assert r"\x1b[31mred\x07" in out
    assert "\x1b" not in out + err + run(capsys, "train", path, "--target", "\x1b[0m")[2]


def test_cells_that_a_spreadsheet_would_run_are_defused(tmp_path, capsys):
    kinds = ["=1+1", "-cmd", "+5", "ok"]
    path = written(tmp_path / "t.csv", "x,@kind\n" + "".join(f"{row % 4},{kinds[row % 4]}\n" for row in range(80)))
    assert run(capsys, "train", path, "--target", "@kind", "-o", tmp_path / "report", *QUICK, "--epochs", 40)[0] == 0
    header, *rows = csv.reader(io.StringIO(run(capsys, "predict", tmp_path / "report" / "model.skops", path)[1]))
    names = ["+5", "-cmd", "=1+1", "ok"]
    assert header == ["'@kind", "probability", *(f"probability of {name}" for name in names)]
    assert {kind for kind, *_ in rows} <= {"'=1+1", "'-cmd", "+5", "ok"}
    assert len({kind for kind, *_ in rows}) > 1


def test_numbers_are_no_formulas():
    assert [_defused(cell) for cell in ("+5", "-1e3", "=1", "@x", "x=1")] == ["+5", "-1e3", "'=1", "'@x", "x=1"]


@pytest.mark.parametrize("missing", ["matplotlib", "skops"])
def test_what_to_install_is_said_before_the_training(tmp_path, capsys, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["train", small_file(tmp_path), "--target", "kind", "-o", tmp_path / "report", *QUICK[:4]]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert {"matplotlib": "pip install matplotlib, or --no-pictures", "skops": "scikit-learn pandas skops"}[
        missing
    ] in err


def learned(folder, path, target, *words):
    """The weights of a network that the command trained, and the seed that it drew them with."""
    words = ["train", path, "--target", target, "-o", folder / "report", *QUICK, "--overwrite", "--quiet", *words]
    assert main([str(word) for word in words]) == 0
    network = network_of(load(folder / "report" / "model.skops").pipeline)
    return [coef.tolist() for coef in network.coefs_], network.random_state


@pytest.mark.unmeasured
@pytest.mark.parametrize(("target", "position"), [("kind", 0), ("kind", 1), ("weight", 0), ("weight", 3)])
def test_other_test_rows_change_nothing_that_was_learned(tmp_path, target, position):
    path = small_file(tmp_path, 40)
    before, lines = learned(tmp_path, path, target), path.read_text().splitlines()
    for line in prepare(read_table(path, text=[target]), target).test.index:
        cells = lines[line - 1].split(",")
        cells[position] = "1000"
        lines[line - 1] = ",".join(cells)
    written(path, "\n".join(lines))
    assert learned(tmp_path, path, target) == before


@pytest.mark.unmeasured
def test_the_seed_reaches_the_network(tmp_path):
    one, other = (learned(tmp_path, small_file(tmp_path), "kind", "--seed", seed) for seed in (1, 2))
    assert (one[1], other[1]) == (1, 2)
    assert one[0] != other[0]


@pytest.mark.unmeasured
def test_predict_writes_a_line_for_each_row(small, tmp_path, capsys):
    data, model = small
    code, out, err = run(capsys, "predict", model, data)
    assert (code, err) == (0, "")
    header, *rows = csv.reader(io.StringIO(out))
    assert header == ["kind", "probability", "probability of large", "probability of small"]
    kinds = [line.split(",")[2] for line in data.read_text().splitlines()[1:]]
    assert statistics.fmean(row[0] == right for row, right in zip(rows, kinds, strict=True)) > 0.8
    for kind, *probabilities in rows:
        likeliest, large, small = map(float, probabilities)
        assert likeliest == {"large": large, "small": small}[kind] >= 0.5
        assert large + small == pytest.approx(1, abs=2e-4)
    assert run(capsys, "predict", model, data, "-o", tmp_path / "predictions.csv")[:2] == (0, "")
    assert (tmp_path / "predictions.csv").read_text(encoding="utf-8") == out
    first = json.loads(run(capsys, "predict", model, data, "--json")[1])[0]
    assert first["prediction"] == max(first["probabilities"], key=first["probabilities"].get)
    assert sum(first["probabilities"].values()) == pytest.approx(1)


def with_ids(path, first):
    """The rows of a table with ids, a measure and a remark that the model does not know."""
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = [f"{first + position:05d},{position + 0.5},same,{line}" for position, line in enumerate(lines)]
    return "\n".join([f"id,length,remark,{header}", *rows, ""])


def test_predict_writes_the_ids_of_the_rows_as_they_are_in_the_file(small, tmp_path, capsys, monkeypatch):
    data, model = written(tmp_path / "new.csv", with_ids(small[0], 7)), small[1]
    code, out, err = run(capsys, "predict", model, data)
    assert (code, err) == (0, "")
    header, *rows = csv.reader(io.StringIO(out))
    assert header[:3] == ["id", "kind", "probability"]
    assert [row[0] for row in rows[:2]] == ["00007", "00008"]
    assert [row[1:] for row in rows] == [*csv.reader(io.StringIO(run(capsys, "predict", model, small[0])[1]))][1:]
    first = json.loads(run(capsys, "predict", model, data, "--json")[1])[0]
    assert (first["ids"], [*first]) == ({"id": "00007"}, ["ids", "prediction", "probabilities"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data.read_bytes())))
    assert run(capsys, "predict", model, "-")[1] == out


def test_predict_takes_the_folder_that_train_wrote(small, tmp_path, capsys):
    data, model = small
    expected = run(capsys, "predict", model, data)
    assert expected[0] == 0
    assert run(capsys, "predict", model.parent, data) == expected
    assert "No such file" in run(capsys, "predict", tmp_path, data)[2]


def test_predict_takes_a_folder_and_names_the_file_of_each_row(small, tmp_path, capsys):
    folder = tmp_path / "new"
    folder.mkdir()
    code, out, err = run(capsys, "predict", small[1], folder)
    assert (code, out) == (2, "")
    assert f"{folder} is a folder without tables, whose names end in .csv, .tsv, .csv.gz, .tsv.gz" in err
    written(folder / "b.csv", with_ids(small[0], 100))
    shutil.copy(small[0], folder / "a.CSV")
    written(folder / "notes.txt", "these are no rows")
    code, out, err = run(capsys, "predict", small[1], folder, "-o", tmp_path / "predictions.csv")
    assert (code, out, err) == (0, "", "")
    header, *rows = csv.reader(io.StringIO((tmp_path / "predictions.csv").read_text(encoding="utf-8")))
    assert header[:3] == ["file", "id", "kind"]
    assert [row[:2] for row in (rows[0], rows[60])] == [["a.CSV", ""], ["b.csv", "00100"]]
    assert rows[0][2:] == rows[60][2:]
    assert json.loads(run(capsys, "predict", small[1], folder, "--json")[1])[60]["file"] == "b.csv"
    written(folder / "c.csv", "size,weight,colour\n1,2,red\nmuch,2,red\n")
    code, _, err = run(capsys, "predict", small[1], folder)
    assert (code, f"{folder / 'c.csv'}: line 3, column 'size': 'much' is no finite number" in err) == (2, True)


def test_predict_suggests_no_column_that_the_model_has_already(small, tmp_path, capsys):
    data = written(tmp_path / "new.csv", "size,colour,width\n1,red,2\n")
    code, _, err = run(capsys, "predict", small[1], data)
    assert (code, "there is no column 'weight'; there are 'size', 'colour', 'width'" in err) == (2, True)


def test_the_encoding_of_a_file_is_given(tmp_path, capsys):
    lines = "".join(f"{row % 10},{'größer' if row % 10 > 5 else 'kleiner'}\n" for row in range(40))
    path = written(tmp_path / "t.csv", f"länge,art\n{lines}", "cp1252")
    words = ["--target", "art", "-o", tmp_path / "report", *QUICK]
    code, _, err = run(capsys, "train", path, *words)
    assert (code, "line 1 is not UTF-8 (byte 0xe4)" in err) == (2, True)
    assert run(capsys, "train", path, *words, "--encoding", "cp1252")[0] == 0
    code, out, _ = run(capsys, "predict", tmp_path / "report" / "model.skops", path, "--encoding", "cp1252")
    assert (code, out.splitlines()[0]) == (0, "art,probability,probability of größer,probability of kleiner")


def rare_file(folder):
    """A table in which 7 of 100 rows are "yes": all have a large number, as have four times as many that are "no"."""
    chance = random.Random(5)
    yes = [f"{chance.uniform(0.7, 1):.3f},yes" for _ in range(14)]
    no = [f"{chance.uniform(0, 1):.3f},no" for _ in range(186)]
    return written(folder / "rare.csv", "\n".join(["x,bought", *yes, *no, ""]))


def test_a_rare_class_that_is_never_predicted_is_said_and_balance_finds_it(tmp_path, capsys):
    path = rare_file(tmp_path)
    words = ["train", path, "--target", "bought", "-o", tmp_path / "report", "--no-pictures", "--hidden", 2]
    words += ["--epochs", 20, "--folds", 3, "--overwrite"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "Never predicts 'yes', which 14 of 200 rows are: --balance has all classes weigh the same\n" in out
    assert re.search(r"Test accuracy: 92\.5% \(37 of 40 rows\), balanced accuracy 50\.0%; always", out)
    assert re.search(r"In folds, this network: accuracy 0\.9\d\d \(", out)
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "Classes never predicted" in page
    assert "Accuracy in folds" in page
    code, out, err = run(capsys, *words, "--balance")
    assert (code, err, "Never predicts" in out) == (0, "", False)
    assert float(re.search(r"balanced accuracy ([\d.]+)%; always", out)[1]) > 70
    assert float(re.search(r"In folds, this network: balanced accuracy ([\d.]+) \(", out)[1]) > 0.7
    numbers = json.loads((tmp_path / "report" / "metrics.json").read_text(encoding="utf-8"))
    assert (numbers["measure in folds"], numbers["training"]["balance"]) == ("balanced accuracy", True)
    assert numbers["folds"]["always the same answer"]["mean"] == 0.5
    assert "Balanced accuracy in folds" in (tmp_path / "report" / "report.html").read_text(encoding="utf-8")


def test_ids_are_left_out_and_numbers_with_signs_are_named(tmp_path, capsys):
    lines = [f'{row + 1},{row % 20},"${1000 * (row % 7) + 1000:,}.50",{row % 20 * 2.5}%' for row in range(60)]
    path = written(tmp_path / "t.csv", "\n".join(["id,x,price,share", *lines, ""]))
    words = ["train", path, "--target", "share", "-o", tmp_path / "report", *QUICK[:5], "--folds", 2, "--overwrite"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "Target: share, a number\n" in out
    assert "Columns: price, x\n" in out
    assert "Read as numbers: price, where '$1,000.50' is 1000.5\n" in out
    assert "Read as numbers: share, where '2.5%' is 2.5\n" in out or "share, where '0.0%' is 0\n" in out
    assert "Left out: id, because it looks like an id: each row has another whole number (--keep uses it)\n" in out
    assert "In folds, this network: R² " in out
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "&#x27;$1,000.50&#x27; is 1000.5" in page or "'$1,000.50' is 1000.5" in page
    assert "Columns: id, price, x\n" in run(capsys, *words, "--keep", "id")[1]
    model = tmp_path / "report" / "model.skops"
    assert run(capsys, "predict", model, path)[1].startswith("share\n")


@pytest.mark.parametrize("overwritten", ["small.csv", "model.skops"])
def test_predict_never_writes_over_what_it_reads(small, tmp_path, capsys, overwritten):
    for file in small:
        shutil.copy(file, tmp_path)
    (tmp_path / "link").symlink_to(overwritten)
    before = (tmp_path / overwritten).read_bytes()
    for output in (overwritten, "link"):
        words = ["predict", tmp_path / "model.skops", tmp_path / "small.csv", "-o", tmp_path / output]
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert f"{tmp_path / output} is read, too: it would be lost; choose another name for the predictions" in err
        assert (tmp_path / overwritten).read_bytes() == before


@pytest.mark.unmeasured
def test_predict_gives_numbers_for_a_number(tmp_path, capsys):
    path = small_file(tmp_path)
    assert run(capsys, "train", path, "--target", "weight", "-o", tmp_path / "report", *QUICK)[0] == 0
    model = tmp_path / "report" / "model.skops"
    expected = load(model).pipeline.predict(read_table(path)).tolist()
    header, *lines = run(capsys, "predict", model, path)[1].split()
    assert (header, list(map(float, lines))) == ("weight", pytest.approx(expected))
    assert json.loads(run(capsys, "predict", model, path, "--json")[1])[0] == {"prediction": expected[0]}


@pytest.mark.parametrize("word", ["tab", "\\t", "\t"])
def test_a_delimiter_is_given_as_a_word_too(small, tmp_path, capsys, word):
    data = written(tmp_path / "new.txt", "size\tcolour\tweight\n1,0\tred\t2,0\n9,0\tblue\t18,0\n")
    words = ["predict", small[1], data, "--decimal", ",", "--delimiter", word]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert [line.split(",")[0] for line in out.splitlines()] == ["kind", "small", "large"]


def test_predict_says_where_it_guesses(small, tmp_path, capsys):
    data = written(tmp_path / "new.csv", "weight,size,colour\n1,2,green\n3,,red\n,NA,\n")
    code, out, err = run(capsys, "predict", small[1], data)
    assert (code, len(out.splitlines())) == (0, 4)
    assert "2 cells of 'size' are missing or unknown" in err
    assert "2 cells of 'colour' are missing or unknown" in err


@pytest.mark.parametrize(("epochs", "code"), [(0, 130), (2, 0)])
def test_ctrl_c_before_the_first_epoch_ends_writes_nothing_and_after_it_the_report(
    tmp_path, capsys, monkeypatch, epochs, code
):
    step = BufferSteps.step

    def interrupted(self, batch, epoch, *noise):
        if epoch == epochs:
            raise KeyboardInterrupt
        return step(self, batch, epoch, *noise)

    monkeypatch.setattr(BufferSteps, "step", interrupted)
    words = ["train", small_file(tmp_path), "--target", "kind", "-o", tmp_path / "report", *QUICK, "--epochs", 9]
    found, out, err = run(capsys, *words)
    assert (found, "interrupted" in err) == (code, not epochs)
    assert ("Interrupted: the report is about the network as it is now" in out) == (epochs > 0)
    assert ("Training: 2 epochs in" in out) == (epochs > 0)
    assert {entry.name for entry in tmp_path.iterdir()} == ({"small.csv", "report"} if epochs else {"small.csv"})


def test_a_report_is_replaced_only_when_asked(tmp_path, capsys):
    words = ["train", small_file(tmp_path), "--target", "kind", "-o", tmp_path / "report", *QUICK, "--seed"]
    assert run(capsys, *words, 1)[0] == 0
    before = (tmp_path / "report" / "metrics.json").read_bytes()
    code, _, err = run(capsys, *words, 2)
    assert (code, "--overwrite" in err) == (2, True)
    assert (tmp_path / "report" / "metrics.json").read_bytes() == before
    assert run(capsys, *words, 2, "--overwrite")[0] == 0
    assert (tmp_path / "report" / "metrics.json").read_bytes() != before
    assert {entry.name for entry in tmp_path.iterdir()} == {"small.csv", "report"}


def test_a_folder_with_other_files_is_never_replaced(tmp_path, capsys):
    path, folder = small_file(tmp_path), tmp_path / "precious"
    folder.mkdir()
    written(folder / "thesis.txt", "years of work")
    code, out, err = run(capsys, "train", path, "--target", "kind", "-o", folder, *QUICK, "--overwrite")
    assert (code, out, "thesis.txt" in err) == (2, "", True)
    assert "is a file" in run(capsys, "train", path, "--target", "kind", "-o", path, *QUICK)[2]


def test_the_other_commands_load_none_of_it():
    code = "import sys, micrograd.command.main as m; m.main(['grad', 'x*x', 'x=2']); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "pandas", "sklearn", "skops", "matplotlib"} & {*modules}
