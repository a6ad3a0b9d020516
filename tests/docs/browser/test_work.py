"""A learner's work stays: what was typed, exported, imported and sent as a link; and what is asked for twice waits."""

import json
import re
import subprocess
import sys

import pytest

from tests.docs.browser.test_cells import Learner
from tests.folders import ROOT

pytestmark = pytest.mark.slow

PAGE = "tutorial.html"
CHAPTER = "learn/01-one-multiplication.html"


def written(learner, number):
    return learner.cell(number).locator(".cm-content").inner_text()


def undo(learner, number):
    return learner.cell(number).get_by_role("button", name="Undo the changes")


def test_what_was_typed_is_there_after_a_reload_and_can_be_undone(open_page):
    learner = Learner(open_page(PAGE))
    original = written(learner, 2)
    assert undo(learner, 2).is_hidden()
    learner.write(2, "mine = 1\nmine")
    learner.page.reload()
    learner = Learner(learner.page)
    assert written(learner, 2) == "mine = 1\nmine"
    undo(learner, 2).click()
    assert written(learner, 2) == original
    learner.page.reload()
    assert written(Learner(learner.page), 2) == original


def test_a_cell_is_found_after_the_page_was_written_again(open_page):
    """Texts of other originals, as an earlier version of the page had them."""
    learner = Learner(open_page(PAGE))
    learner.write(2, "mine")
    key = f"micrograd-cells:{PAGE}"
    (kept,) = json.loads(learner.page.evaluate("(key) => localStorage.getItem(key)", key))
    moved = [{**kept, "number": 4}, {"number": 1, "of": "an original that is gone", "code": "first"}]
    learner.page.evaluate("([key, text]) => localStorage.setItem(key, text)", [key, json.dumps(moved)])
    learner.page.reload()
    learner = Learner(learner.page)
    assert [written(learner, number) for number in (1, 2)] == ["first", "mine"]
    assert undo(learner, 4).is_hidden()


def test_where_the_browser_keeps_nothing_it_says_so(open_page):
    refused = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
    learner = Learner(open_page(PAGE, before=refused, allowed=["refused"]))
    learner.write(2, "mine")
    assert learner.status(2) == "this browser keeps nothing: export your work before you leave"


def test_all_work_goes_through_one_file_to_another_browser(open_page, tmp_path):
    learner = Learner(open_page(CHAPTER))
    answered = 1 + learner.page.evaluate(
        "[...document.querySelectorAll('.cell')].findIndex((cell) => cell.innerText.includes('\"1.2\"'))"
    )
    learner.run(answered, "import micrograd as mg\nprint(mg.learn.check('1.2', 2.0).right)")
    learner.page.get_by_text("My work").click()
    with learner.page.expect_download() as download:
        learner.page.get_by_role("button", name="Export all my work").click()
    assert download.value.suggested_filename == "micrograd.progress"
    file = tmp_path / "Ada.progress"
    download.value.save_as(file)

    # It is a file for the teacher's table, too.
    command = [sys.executable, "-m", "micrograd.learn", "report", str(file)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[1].startswith("Ada  1/6")

    # Another browser, with work of its own.
    other = Learner(open_page(CHAPTER, fresh=True))
    other.write(1, "own = 1")
    other.write(answered, "another answer")
    other.page.get_by_text("My work").click()
    answers = []

    def answer(dialog):
        assert dialog.message == "1 cell has another text here. Take that of the file?"
        (dialog.accept if answers.pop() else dialog.dismiss)()

    other.page.on("dialog", answer)
    bring = other.page.locator(".cell-work input[type=file]")
    said = other.page.locator(".cell-work [role=status]")
    answers.append(False)
    bring.set_input_files(file)
    said.get_by_text("Nothing was changed.").wait_for()
    assert written(other, answered) == "another answer"
    answers.append(True)
    bring.set_input_files(file)
    said.get_by_text("Imported 1 cell and the notes on 1 exercises.").wait_for()
    assert "mg.learn.check('1.2', 2.0)" in written(other, answered)
    assert written(other, 1) == "own = 1"
    assert other.page.locator(".progress").inner_text().endswith("1 of 6 right")
    bring.set_input_files({"name": "a", "mimeType": "text/plain", "buffer": b"[1]"})
    said.get_by_text("This is no file of exported work. Nothing was changed.").wait_for()


def test_a_link_brings_the_code_of_a_cell_and_runs_nothing(open_page, server):
    page = open_page(PAGE, fresh=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    learner = Learner(page)
    learner.write(2, "print('höher & weiter' * 3)")
    learner.cell(2).get_by_role("button", name="Copy a link").click()
    learner.wait(2, "link copied")
    address = page.evaluate("navigator.clipboard.readText()")
    assert address.startswith(f"{server}{PAGE}#cell-2=")

    other = Learner(open_page(PAGE))
    other.write(2, "own")
    other.page.goto("about:blank")
    other.page.goto(address)
    other = Learner(other.page)
    other.wait(2, "the code came with the link, and has not been run")
    assert written(other, 2) == "print('höher & weiter' * 3)"
    other.page.reload()  # what was there before is not lost
    other = Learner(other.page)
    assert written(other, 2) == "own"
    other.page.goto("about:blank")
    other.page.goto(f"{server}{PAGE}#cell-3=damaged")
    other = Learner(other.page)
    other.wait(3, "the link is damaged: this is the code of the page")


SLOW = "import time\nfor _ in range(60): time.sleep(0.05)\nprint('slept')"


def test_python_says_that_it_starts_and_what_runs_says_for_how_long(open_page):
    seen = """new MutationObserver(() => {
      const line = document.querySelector('.cell-bar')?.innerText.replaceAll('\\n', ' ');
      if (line) (window.seen ??= []).push(line);
    }).observe(document, { childList: true, subtree: true, characterData: true })"""
    for start in ("mouse", "Run all"):
        page = open_page(PAGE, before=seen)
        learner = Learner(page)
        learner.write(1, SLOW)
        if start == "mouse":
            learner.cell(1).locator(".cell-run").click()
        else:
            page.get_by_role("button", name="Run all").click()
        learner.wait(1, "done in ")
        lines = page.evaluate("window.seen")
        starting = [line for line in lines if "Python is starting, once for this page" in line]
        shares = [int(line.split()[-2]) for line in starting if line.endswith(" %")]
        assert shares == sorted(shares)
        assert shares[0] < shares[-1] < 100, start
        assert any(re.fullmatch(r"Stop .*running [1-9]\d* s", line) for line in lines), start
        assert page.locator(".cell-loading").first.is_hidden()


def test_a_second_run_waits_and_says_for_what(open_page):
    learner = Learner(open_page(PAGE))
    learner.run(2)
    learner.run(1, SLOW, until="running")
    learner.cell(3).locator(".cell-run").click()
    learner.cell(4).locator(".cell-run").click()
    assert [learner.status(number) for number in (3, 4)] == ["waits for cell 1", "waits for cell 3"]
    buttons = [learner.cell(number).locator(".cell-run").inner_text() for number in (1, 3, 4)]
    assert buttons == ["Stop", "Cancel", "Cancel"]
    learner.cell(4).locator(".cell-run").click()
    assert learner.status(4) == ""
    learner.wait(3, "done")
    assert learner.output(1) == "slept\n"
    assert learner.status(4) == ""


def test_the_chapter_is_a_notebook_too(open_page):
    learner = Learner(open_page(CHAPTER))
    learner.page.get_by_text("My work").click()
    with learner.page.expect_download() as download:
        learner.page.get_by_text("This chapter as a notebook").click()
    notebook = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    assert "".join(notebook["cells"][0]["source"]).startswith("# 1. One multiplication")


class TestExercises:
    def test_the_list_says_how_far_each_is_and_what_comes_next(self, open_page):
        notes = {
            "1.1": {"tries": 2, "hints": 0, "right": True, "solution": False},
            "1.2": {"tries": 1, "hints": 0, "right": False, "solution": False},
        }
        kept = json.dumps({"version": 1, "exercises": notes})
        page = open_page("learn/exercises.html", before=f"localStorage.setItem('micrograd-progress', '{kept}')")
        page.locator(".progress").wait_for()
        states = page.locator(".exercise-state").all_inner_texts()
        assert states[:3] == ["solved", "tried", "new"]
        assert set(states[3:]) == {"new"}
        assert page.locator(".progress").inner_text().startswith(f"1 of {len(states)} exercises are right; next: 1.2")
        page.locator(".progress a").click()
        page.wait_for_url("**/learn/01-one-multiplication.html#cell-*")
        cell = page.locator(page.evaluate("location.hash"))
        assert 'mg.learn.check("1.2"' in cell.inner_text()

    @pytest.mark.parametrize("name", ["learn/exercises.html", CHAPTER])
    def test_hints_and_solutions_are_a_button_away_and_noted(self, open_page, name):
        page = open_page(name)
        bar = page.locator(".exercise-bar").nth(1)
        shown = page.locator(".exercise-help").nth(1)
        bar.get_by_role("button", name="A hint for exercise 1.2").click()
        shown.get_by_text("Hint 1 of ").wait_for()
        assert bar.locator(".exercise-state").inner_text() == "tried"
        bar.get_by_role("button", name="A solution of exercise 1.2").click()
        shown.get_by_text("One way to do it:").wait_for()
        assert shown.locator("code").inner_text() == "2.0"
        notes = json.loads(page.evaluate("localStorage.getItem('micrograd-progress')"))["exercises"]
        assert notes == {"1.2": {"tries": 0, "hints": 1, "right": False, "solution": True}}
