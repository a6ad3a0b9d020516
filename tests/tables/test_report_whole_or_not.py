"""A report takes its place whole or not at all, whatever fails and whenever Ctrl-C comes."""

import json
import os
import sys
from pathlib import Path

import pytest

from micrograd.optim import AdamW
from micrograd.tables import report
from micrograd.tables.predictor import load
from tests.interrupts import interrupted_while_training
from tests.tables.common import QUICK, run, small_file, written


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


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT to send to one process")
def test_ctrl_c_ends_the_training_and_the_report_is_about_what_was_learned(tmp_path):
    folder = tmp_path / "report"
    words = ["train", small_file(tmp_path, 200), "--target", "kind", "--epochs", 100_000, "-o", folder, "--no-pictures"]
    command = [sys.executable, "-W", "error", "-m", "micrograd", *map(str, words)]
    code, output, errors = interrupted_while_training(command)
    assert code == 0, errors
    assert "Interrupted" in output
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
