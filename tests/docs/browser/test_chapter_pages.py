"""All pages of the site can be read: the chapters and their slides, the others, and what cells have written."""

import pytest

from tests.docs.browser.test_reading import CHAPTERS, LIVE, PAGES, serious_violations
from tests.docs.browser.test_slides import assert_slides_show_all_once_and_in_its_order
from tests.legible import SIZES, faults, faults_of_graph, photograph

pytestmark = pytest.mark.slow


def test_what_cells_have_written_can_be_read(browser, site):
    """On a laptop, and on one of both phones."""
    page = browser.new_page(reduced_motion="reduce")
    laptop, *phones = SIZES
    found, chapters = {}, set()
    for number, path in enumerate(sorted((site / "recorded").glob("*.html"))):
        chapters.add(path.name.split("-")[1])
        for size in (laptop, phones[number % 2]):
            page.set_viewport_size(SIZES[size])
            page.goto(path.as_uri())
            is_graph = page.locator("#graph").count() > 0
            while is_graph and not page.evaluate("typeof isShown !== 'undefined' && isShown"):
                page.wait_for_timeout(50)
            if said := faults_of_graph(page, f"{path.stem} {size}") if is_graph else faults(page):
                found[path.name, size] = said
    page.close()
    assert len(chapters) > 12
    assert found == {}


@pytest.mark.parametrize("name", [*PAGES, *CHAPTERS])
def test_no_letter_is_too_small_no_page_too_wide_axe_finds_no_serious_violation_and_slides_show_all(
    open_page, axe, name
):
    scheme = ("light", "dark")[CHAPTERS.index(name) % 2] if name in CHAPTERS else "dark"
    page = open_page(name, color_scheme=scheme)
    if name in LIVE:
        page.locator(".cm-content").first.wait_for()
    if name == "index.html":
        page.locator("#network .cell").first.wait_for()
    for size in SIZES:
        page.set_viewport_size(SIZES[size])
        assert faults(page) == [], size
        photograph(page, f"{name} {size}".replace("/", "-").replace(" ", "-"))
    page.set_viewport_size(SIZES["phone"])
    assert serious_violations(page, axe) == []
    page.set_viewport_size(SIZES["laptop"])
    if name in CHAPTERS[2:]:
        assert_slides_show_all_once_and_in_its_order(page)
    else:
        assert page.get_by_role("button", name="This chapter as slides").count() == 0
