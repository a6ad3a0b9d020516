"""The commands train and predict: their words, what they print, and what they refuse."""

import csv
import io
import json
import statistics
import subprocess
import sys

import pytest

from micrograd.command.main import main
from micrograd.tables.predictor import load
from tests.tables.common import PENGUINS, QUICK, run, small, small_file, written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.csv", "--target", "kind"], "No such file or directory"),
        (["train", "small.csv", "--target", "kid"], "did you mean 'kind'"),
        (["train", "small.csv", "--target", "kind", "--test", "0.9"], "at most 0.5"),
        (["train", "small.csv", "--target", "kind", "--task", "regression"], "is no number"),
        (
            ["train", "small.csv", "--target", "weight", "--task", "classification", "--test", "0.001"],
            "less than one row to test on",
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
