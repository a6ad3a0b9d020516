"""The path as a stranger walks it on a phone: with reloads, and offline in the middle."""

import pytest

from tests.docs.browser.test_cells import Learner
from tests.learn import chapters
from tests.legible import PHONE, faults, photograph

pytestmark = pytest.mark.slow

OFFLINE = ("ERR_INTERNET_DISCONNECTED", "Failed to load resource", "Failed to fetch")


def test_chapters_are_read_left_and_run_with_reloads_and_without_the_network_in_the_middle(open_page, server):
    names = [page.stem for page in chapters.CHAPTERS]
    page = open_page(f"learn/{names[0]}.html", **PHONE, allowed=OFFLINE, service_workers="allow")
    page.locator(".cell-offline", has_text="The whole path works without a network.").wait_for()
    for number in (1, 6, 13, len(names)):
        page.context.set_offline(number in (6, 13))
        page.goto(f"{server}learn/{names[number - 1]}.html")
        learner = Learner(page)
        learner.write(1, f"from micrograd import Value\nprint('chapter', Value({number}.0) * 2)")
        page.reload()
        learner = Learner(page)
        assert "'chapter'" in learner.cell(1).locator(".cm-content").inner_text()
        if number != 6:  # each start of Python takes seconds; test_cells.py runs all cells
            learner.run(1)
            assert learner.output(1) == f"chapter Value(data={2.0 * number}, grad=0.0)\n"
        assert faults(page) == []
        page.locator(".exercise-bar").first.wait_for()
        photograph(page, f"{names[number - 1]}-phone", full_page=True)
        if number == 13:
            page.goto(f"{server}learn/exercises.html")
            page.locator(".progress").wait_for()
            photograph(page, "exercises-phone")
            page.get_by_role("button", name="A hint for exercise 2.1").click()
            assert page.locator(".exercise-help:not(:empty)").inner_text().startswith("Hint 1 of ")
            page.goto(f"{server}reference/values.html")
            assert "this page has not been kept in this browser yet" in page.locator("body").inner_text()
