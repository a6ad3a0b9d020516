"""The page of a report in a browser: on a phone, in the dark, and for those who listen to it."""

import pytest

from micrograd.command.main import main
from tests.legible import faults, photograph
from tests.tables.common import written

pytestmark = pytest.mark.slow

BROKEN_WORDS = """() => {
  const broken = [], walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();)
    for (const word of node.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set(Array.from(range.getClientRects(), (box) => box.top)).size > 1) broken.push(word[0]);
    }
  return broken;
}"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    name = "a_column_with_a_name_that_is_longer_than_a_telephone_is_wide"
    lines = [f"{row % 7},{row % 3},{'yes' if row % 7 > 3 else 'no'}" for row in range(40)]
    table = written(folder / "table.csv", "\n".join([f"{name},other,{name}_too", *lines, ""]))
    words = ["train", str(table), "--target", f"{name}_too", "--epochs", "2", "--folds", "2", "--quiet"]
    assert main([*words, "-o", str(folder / "report")]) == 0
    return folder / "report" / "report.html"


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 1280), ("light", 360)])
def test_no_word_is_broken_nothing_is_out_of_reach_and_figures_follow_the_page(browser, axe, path, scheme, width):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BROKEN_WORDS) == []
    assert page.locator("h1").evaluate("heading => heading.scrollWidth <= heading.clientWidth")
    assert faults(page) == []
    photograph(page, f"report-{width}", full_page=True)
    assert page.locator("main").count() == 1
    ink = "(element) => getComputedStyle(element).fill"
    text = page.evaluate("getComputedStyle(document.body).color")
    assert {page.locator("figure svg text").first.evaluate(ink)} == {text}
    assert (
        page.evaluate(f"async () => {{ {axe}; return (await axe.run()).violations.map((found) => found.id); }}") == []
    )
    assert requests == [path.as_uri()]
    context.close()
