"""Progress: kept on this machine, whole or not at all, and never in the way."""

import json
import os
import sys
from pathlib import Path

import pytest

import micrograd as mg
from micrograd.learn import keeping
from micrograd.learn.catalogue import EXERCISES


@pytest.fixture(autouse=True)
def _nothing_unsaved():
    keeping._unsaved.clear()
    yield
    keeping._unsaved.clear()


def notes(path):
    return json.loads(path.read_text(encoding="utf-8"))["exercises"]


def test_tries_hints_and_right_answers_are_kept(kept_in):
    mg.learn.check("1.2", 7.0)
    mg.learn.hint("1.2")
    mg.learn.check("1.2", 2.0)
    mg.learn.check("1.2", 7.0)  # whoever was right stays right
    mg.learn.solution("1.2")
    mg.learn.solution("1.1")
    assert notes(kept_in) == {
        "1.1": {"tries": 0, "hints": 0, "right": False, "solution": True},
        "1.2": {"tries": 2, "hints": 1, "right": True, "solution": False},
    }
    assert mg.learn.progress().right == ["1.2"]


def test_it_is_shown_chapter_by_chapter(kept_in):
    mg.learn.check("1.1", -0.03)
    first, *chapters, following, kept = str(mg.learn.progress()).splitlines()
    assert first == f"1 of {len(EXERCISES)} exercises are right"
    assert chapters[0].split() == ["1", "One", "multiplication", "●○○○○○"]
    assert following == "next: 1.2, The other slope"
    assert kept == f"kept in {kept_in}"


def test_all_done(kept_in):
    for number in EXERCISES:
        keeping.tried(number, True)
    assert "all done" in str(mg.learn.progress())
    assert "next:" not in str(mg.learn.progress())


def test_reset_forgets_it(kept_in):
    mg.learn.check("1.1", -0.03)
    mg.learn.reset()
    mg.learn.reset()
    assert not kept_in.exists()
    assert mg.learn.progress().right == []


def test_it_can_be_turned_off(monkeypatch, tmp_path):
    monkeypatch.setenv("MICROGRAD_PROGRESS", "Off")
    monkeypatch.chdir(tmp_path)
    assert mg.learn.progress().right == []
    assert mg.learn.check("1.2", 2.0)
    assert mg.learn.progress().right == ["1.2"]
    assert str(mg.learn.progress()).endswith("not kept: it is forgotten when Python ends")
    mg.learn.reset()
    assert mg.learn.progress().right == []
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_all_works_until_python_ends(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("MICROGRAD_PROGRESS", str(tmp_path / "file" / "below" / "progress.json"))
    mg.learn.check("1.2", 2.0)
    mg.learn.check("1.1", -0.03)
    assert mg.learn.progress().right == ["1.1", "1.2"]
    assert "not kept" in str(mg.learn.progress())


def test_what_could_not_be_written_is_written_when_it_can_be(monkeypatch, tmp_path):
    blocked = tmp_path / "kept"
    blocked.write_bytes(b"")
    monkeypatch.setenv("MICROGRAD_PROGRESS", str(blocked / "progress.json"))
    mg.learn.check("1.2", 2.0)
    blocked.unlink()
    mg.learn.check("1.1", -0.03)
    assert set(notes(blocked / "progress.json")) == {"1.1", "1.2"}
    assert "kept in" in str(mg.learn.progress())


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"exercises": {"1.1": 3}}', b'{"exercises": {"1.1": {"tries": "two"}}}', b"\xff\xfe",
     b'{"exercises": {"1.1": {"grade": 3}}}', b"[" * 100_000],
)  # fmt: skip
def test_a_damaged_file_is_named_and_left_alone(kept_in, content):
    kept_in.parent.mkdir()
    kept_in.write_bytes(content)
    assert mg.learn.check("1.2", 2.0)
    assert kept_in.read_bytes() == content
    assert str(mg.learn.progress()).endswith(
        f"{kept_in} is damaged, or is not a file of progress; mg.learn.reset() begins again"
    )
    mg.learn.reset()
    mg.learn.check("1.1", -0.03)
    assert set(notes(kept_in)) == {"1.1"}


def test_a_folder_in_its_place_is_named(kept_in):
    kept_in.mkdir(parents=True)
    assert mg.learn.check("1.2", 2.0)
    assert f"{kept_in} cannot be read: " in str(mg.learn.progress())


def test_two_processes_that_take_turns_lose_nothing(kept_in):
    mg.learn.check("1.1", -0.03)
    other = notes(kept_in)
    other["2.8"] = {"tries": 1, "hints": 0, "right": True, "solution": False}
    kept_in.write_text(json.dumps({"version": 1, "exercises": other}), encoding="utf-8")
    mg.learn.check("1.2", 2.0)
    assert mg.learn.progress().right == ["1.1", "1.2", "2.8"]


@pytest.mark.parametrize(
    ("platform", "variable", "place"),
    [
        ("linux", None, ".local/share/micrograd/progress.json"),
        ("linux", "XDG_DATA_HOME", "chosen/micrograd/progress.json"),
        ("darwin", None, "Library/Application Support/micrograd/progress.json"),
        ("win32", None, "AppData/Local/micrograd/progress.json"),
        ("win32", "LOCALAPPDATA", "chosen/micrograd/progress.json"),
    ],
)
def test_it_is_where_the_platform_keeps_such_files(monkeypatch, tmp_path, platform, variable, place):
    for name in ("MICROGRAD_PROGRESS", "XDG_DATA_HOME", "LOCALAPPDATA", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path / "chosen"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    assert keeping.place() == tmp_path / place


def test_whoever_has_no_home_is_not_in_the_way(monkeypatch):
    def home():
        raise RuntimeError("no home")

    monkeypatch.delenv("MICROGRAD_PROGRESS")
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    monkeypatch.setattr(Path, "home", home)
    assert mg.learn.check("1.2", 2.0)
    assert "not kept" in str(mg.learn.progress())


def test_what_pytest_runs_is_nobodys_progress(monkeypatch, tmp_path):
    monkeypatch.delenv("MICROGRAD_PROGRESS")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    mg.learn.check("1.2", 2.0)
    assert str(mg.learn.progress()).endswith("not kept: it is forgotten when Python ends")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_keeps_it_too(kept_in):
    mg.learn.check("1.1", -0.03)
    child = os.fork()
    if not child:
        os._exit(0 if mg.learn.check("1.2", 2.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert mg.learn.progress().right == ["1.1", "1.2"]
