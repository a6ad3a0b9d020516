"""The whole path as a stranger walks it on a phone: every chapter, with reloads, and offline in the middle."""

import pytest

from tests.docs.browser.test_cells import Learner
from tests.learn import chapters
from tests.legible import PHONE, faults, photograph

pytestmark = pytest.mark.slow

OFFLINE = ("ERR_INTERNET_DISCONNECTED", "Failed to load resource", "Failed to fetch")


def test_every_chapter_is_read_and_left_and_some_are_run_with_reloads_and_offline_in_the_middle(open_page, server):
    names = [page.stem for page in chapters.CHAPTERS]
    page = open_page(f"learn/{names[0]}.html", **PHONE, allowed=OFFLINE, service_workers="allow")
    page.locator(".cell-offline", has_text="The whole path works without a network.").wait_for()
    for number, name in enumerate(names, 1):
        page.context.set_offline(5 <= number <= 11)
        page.goto(f"{server}learn/{name}.html")
        learner = Learner(page)
        learner.write(1, f"mine = {number}\nprint('chapter', mine)")
        page.reload()
        learner = Learner(page)
        assert "mine" in learner.cell(1).locator(".cm-content").inner_text()
        if number in (1, 8, len(names)):  # each start of Python takes seconds; test_cells.py runs all cells
            learner.run(1)
            assert learner.output(1) == f"chapter {number}\n"
        assert faults(page) == []
        page.locator(".exercise-bar").first.wait_for()
        photograph(page, f"{name}-phone", full_page=True)
    page.goto(f"{server}learn/exercises.html")
    page.locator(".progress").wait_for()
    photograph(page, "exercises-phone")
