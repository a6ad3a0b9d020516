"""The progress of a class: the table of docs/teach.md, from the files of the learners."""

import csv
import json
import runpy
import sys

import pytest

from micrograd.learn.__main__ import main
from micrograd.learn.catalogue import EXERCISES
from tests.folders import ROOT


def write(path, **notes):
    entries = {number.replace("_", "."): note for number, note in notes.items()}
    path.write_text(json.dumps({"version": 1, "exercises": entries}))
    return str(path)


def done(chapters, tries=1):
    return {
        number.replace(".", "_"): {"tries": tries, "right": True}
        for number in EXERCISES
        if number.split(".")[0] in chapters
    }


@pytest.fixture
def folder(tmp_path):
    ada = done(["1", "2"]) | {f"3_{number}": {"tries": 1, "right": True} for number in range(1, 6)}
    write(tmp_path / "Ada.json", **ada | {"2_5": {"tries": 6, "hints": 2, "right": True}})
    charles = done(["1"]) | {f"2_{number}": {"tries": 1, "right": True} for number in range(1, 4)}
    write(tmp_path / "Charles.json", **charles | {"2_5": {"tries": 5, "hints": 2}})
    return tmp_path


def test_the_table_is_that_of_the_docs(folder, capsys):
    assert main(["report", *map(str, sorted(folder.iterdir()))]) == 0
    shown = capsys.readouterr().out
    assert shown in (ROOT / "docs" / "teach.md").read_text(encoding="utf-8")


def test_a_file_of_values_has_a_row_for_each_exercise_that_was_tried(folder, capsys):
    path = folder / "class.csv"
    assert main(["report", str(folder / "Charles.json"), "--csv", str(path)]) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 10
    last = {"learner": "Charles", "exercise": "2.5", "right": "False", "tries": "5", "hints": "2", "solution": "False"}
    assert rows[-1] == {**last, "title": EXERCISES["2.5"].title}


def test_exercises_of_other_versions_do_not_count(tmp_path, capsys):
    assert main(["report", write(tmp_path / "Ada.json", **{"99_1": {"tries": 1, "right": True}})]) == 0
    assert f"0 of {len(EXERCISES)}\n\nnobody was stuck" in capsys.readouterr().out


def test_what_is_no_progress_is_refused_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "broken.json").write_text("{")
    for words, message in (
        ([str(tmp_path / "missing.json")], "missing.json is no file"),
        ([str(tmp_path / "broken.json")], "broken.json is damaged, or is not a file of progress"),
        ([write(tmp_path / "Ada.json")] * 2, "two files are called Ada: rename one"),
    ):
        assert main(["report", *words, "--csv", str(tmp_path / "out.csv")]) == 1
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_it_runs_as_a_module(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["micrograd.learn", "report", str(folder / "Ada.json")])
    monkeypatch.delitem(sys.modules, "micrograd.learn.__main__")
    with pytest.raises(SystemExit) as end:
        runpy.run_module("micrograd.learn", run_name="__main__")
    assert end.value.code == 0
    assert f"20 of {len(EXERCISES)}" in capsys.readouterr().out
