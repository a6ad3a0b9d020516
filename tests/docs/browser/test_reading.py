"""Reading the site: search, keyboard, people with other eyes, phones, paper."""

import pytest

from tests.learn import chapters

pytestmark = pytest.mark.slow

PAGES = ("index.html", "tutorial.html", "gallery.html", "reference/derivatives.html", "api.html", "compiler.html")
CHAPTERS = ["learn/index.html", "learn/exercises.html", *(f"learn/{page.stem}.html" for page in chapters.CHAPTERS)]
LIVE = ("tutorial.html", "gallery.html", "learn/11-attention.html")  # seen with their editors; the others are alike


def test_search_finds_a_function(open_page):
    page = open_page("gallery.html")
    field = page.locator("dialog[open] input")
    for _ in range(120):
        if field.is_visible():
            break
        page.keyboard.press("Control+k")  # the page begins to listen to keys a while after it is loaded
        page.wait_for_timeout(1_000)
    field.fill("hessian")
    result = page.locator("a:visible", has_text="hessian").first
    result.wait_for()
    result.click()
    page.wait_for_url(lambda address: "gallery.html" not in address)
    assert "hessian" in page.locator("article").inner_text()


SETTLED = """async () => {
  const passing = document.getAnimations().filter((one) => one.effect?.getComputedTiming().endTime < Infinity);
  await Promise.allSettled(passing.map((one) => one.finished));
}"""


def serious_violations(page, axe):
    """Without those of pages in frames, which have tests of their own, and of what is still fading in or out."""
    page.evaluate(SETTLED)
    run = "axe.run({ iframes: false, resultTypes: ['violations'] })"
    found = page.evaluate(f"async () => {{ {axe}; return (await {run}).violations; }}")
    serious = [item for item in found if item["impact"] in ("serious", "critical")]
    return [(item["id"], item["nodes"][0]["html"][:200]) for item in serious]


def test_axe_finds_no_serious_violation(open_page, axe):
    for name in PAGES[:4]:
        page = open_page(name, color_scheme="light")
        if name in LIVE:
            page.locator(".cm-content").first.wait_for()
        assert serious_violations(page, axe) == [], name


def test_a_cell_is_reached_and_left_by_keyboard(open_page):
    page = open_page("tutorial.html")
    page.locator(".cm-content").first.wait_for()
    page.get_by_role("button", name="Run all").focus()
    for _ in ("Reset", "My work", "the cell"):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Python, cell 1.")
    page.keyboard.press("Control+End")
    page.keyboard.type("\nif f:\npass")
    text = page.locator(".cm-content").first.inner_text()
    assert text.endswith("if f:\n    pass")  # it indents what is inside
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Run cell 1"
    page.get_by_text("My work").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Export"


@pytest.mark.parametrize("name", ["tutorial.html", "learn/11-attention.html"])
def test_the_first_cell_is_reached_with_few_keys(open_page, name):
    page = open_page(name)
    page.locator(".cm-content").first.wait_for()
    for _ in range(9):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('skip-to-cell')"):
            assert page.locator(".skip-to-cell").bounding_box()["width"] > 50  # it is seen while it has the focus
            page.keyboard.press("Enter")
        if page.evaluate("document.activeElement.closest('#cell-1') !== null"):
            break
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Python, cell 1.")


def test_the_reader_chooses_light_or_dark(open_page):
    page = open_page("index.html", color_scheme="light")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    assert page.evaluate(scheme) == "default"
    page.get_by_title("Switch to dark mode").click()
    page.wait_for_function(f"{scheme} === 'slate'")
    page.reload()
    page.wait_for_function(f"{scheme} === 'slate'")


def test_on_paper_there_are_no_buttons(open_page):
    page = open_page("tutorial.html")
    page.locator(".cm-content").first.wait_for()
    page.emulate_media(media="print")
    assert page.locator(".cell-run").first.is_hidden()
    assert page.locator(".md-header").is_hidden()
    assert page.locator(".cell-outputs").first.is_visible()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_frame_is_as_high_as_its_page_of_sliders(open_page, width):
    page = open_page("learn/15-by-heart.html", width=width)
    frame = page.locator('iframe[title="hills.html"]')
    frame.scroll_into_view_if_needed()
    inside = frame.content_frame
    inside.get_by_role("slider", name="epochs").press("End")
    page.wait_for_function("document.querySelector('iframe[title=\"hills.html\"]').style.height")
    assert inside.locator("html").evaluate("root => root.scrollHeight <= innerHeight + 1")
    assert (
        frame.evaluate("frame => frame.offsetHeight") - inside.locator("body").evaluate("body => body.offsetHeight")
        < 40
    )
