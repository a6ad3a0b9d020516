"""The home page: it trains at once, explains what it does, weighs little, and keeps nobody out."""

import gzip
import math
import re

import pytest
from website import home, pages

from tests.docs.browser.test_cells import Learner
from tests.legible import LAPTOP, PHONE, photograph

pytestmark = pytest.mark.slow

SIZES = pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
LARGE = ("pyodide", "worker.js", "packages.zip", "live/editor/")  # Python and the editor
NUMBER = r"−?\d+(?:\.\d+)?(?:e−?\d+)?"
WATCH = """window.shifts = [];
new PerformanceObserver((list) => shifts.push(...list.getEntries().filter((entry) => !entry.hadRecentInput)
  .map((entry) => entry.value))).observe({ type: "layout-shift", buffered: true });"""


def step(page):
    return int(page.locator("#step").inner_text().removeprefix("Step "))


def until_step(page, number):
    page.wait_for_function(
        "(least) => Number(document.getElementById('home-moons').shadowRoot?.getElementById('step')"
        "?.textContent.slice(5)) >= least",
        arg=number,
    )


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(NUMBER, text)]


@SIZES
def test_it_trains_at_once_without_python_and_weighs_little(open_page, server, site, size):
    # From a file without a page, so that nothing of the site is there yet; it has no icon
    page = open_page("live/licences.txt", before=WATCH, allowed=["404"], **size)
    asked = set()
    page.on("request", lambda request: asked.add(request.url.removeprefix(server).partition("#")[0]))
    page.goto(f"{server}index.html")
    until_step(page, 30)  # nobody has clicked
    assert {"index.html", "live/moons.js", "home/4.json"} <= asked
    assert [name for name in asked if any(part in name for part in LARGE)] == []
    sizes = {name: len(gzip.compress((site / name).read_bytes())) for name in asked if not name.startswith("data:")}
    assert sum(sizes.values()) < 300_000, sizes  # compressed, as servers send it
    assert sum(page.evaluate("shifts")) == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    photograph(page, f"home-{page.viewport_size['width']}")


def test_its_steps_are_those_of_the_ten_lines(open_page):
    code, names = pages.ten_lines(), {}
    assert len(code.splitlines()) == 10
    *before, last = code.splitlines()
    fit = last.removeprefix("print(round(").partition(".loss[-1]")[0].replace("epochs=8", "epochs=120")
    exec("\n".join([*before, f"history = {fit}"]), names)
    page = open_page("index.html")
    until_step(page, 20)
    page.locator("#play").click()
    first, last = numbers(page.locator("#loss").get_attribute("aria-label"))
    steps = names["history"].steps
    assert [first, last] == pytest.approx([steps[0], steps[step(page) - 1]], rel=1e-3)


def test_a_touched_neuron_tells_its_chain_rule(open_page):
    """One of each layer; the numbers that the page gives follow from each other."""
    page = open_page("index.html")
    until_step(page, 20)
    for cell in (3, 7, 10):
        page.locator("#network .cell").nth(cell).click()
        page.locator("#words h2", has_text="at the point with the ring").wait_for()
        page.locator("#play", has_text="Go on").wait_for()  # it waits until the numbers have been read
        paused = step(page)
        adds, *rest = page.locator("#words .line").all_inner_texts()
        *terms, bias, total = numbers(adds)
        sums = [one * other for one, other in zip(terms[::2], terms[1::2], strict=True)]
        assert sum(sums) + bias == pytest.approx(total, abs=2e-3)
        if cell == 10:  # the last one: the loss is computed from it
            (gives,) = rest
            arrives = passed = numbers(gives)[-1]
        else:
            makes, gives, slope = rest
            (out,) = numbers(makes)
            assert out == pytest.approx(math.tanh(total), abs=1e-3)
            shares = numbers(gives.partition(":")[2])
            arrives = shares.pop()
            expected = sum(share * weight for share, weight in zip(shares[::2], shares[1::2], strict=True))
            assert arrives == pytest.approx(expected, rel=2e-3, abs=2e-3)
            local, one, other, passed = numbers(slope.partition("is")[2])
            assert local == other == pytest.approx(1 - out * out, abs=2e-3)
            assert one == arrives
            assert passed == pytest.approx(arrives * local, rel=2e-3, abs=1e-4)
        rows = page.locator("#words tbody tr").all()
        assert len(rows) == len(terms) // 2 + 1
        for row, given in zip(rows, [*terms[1::2], 1.0], strict=True):
            name, gradient, _, direction = row.locator("th, td").all_inner_texts()
            value = numbers(gradient)[-1]
            assert value == pytest.approx(passed * given, rel=2e-3, abs=1e-4), name
            assert direction == ("smaller" if value > 0 else "larger" if value < 0 else "stay")
        page.locator("#play").click()
        until_step(page, paused + 10)


def test_sliders_choose_width_rate_and_activation(open_page):
    page = open_page("index.html")
    until_step(page, 5)
    for width in (8, 2):
        page.locator("#width").fill(str(width))
        page.wait_for_function(
            "(count) => document.getElementById('home-moons').shadowRoot.querySelectorAll('.cell').length === count",
            arg=2 + 2 * width + 1,
        )
        until_step(page, 5)
    page.locator("#rate").fill("0.48")
    assert page.locator("#settings output").nth(1).inner_text() == "3"
    page.locator("#activation").select_option("relu")
    until_step(page, 5)
    page.locator("#network .cell").nth(2).click()
    page.locator("#words", has_text="Its relu makes").wait_for()


def test_the_code_is_shown_in_a_live_editor(open_page):
    page = open_page("index.html")
    assert page.locator(".cm-content").count() == 0
    page.get_by_text("Show the code").click()
    learner = Learner(page)
    assert "mg.nn.MLP(2, [4, 4, 1]" in page.locator(".cm-content").first.inner_text()
    learner.run(1)
    assert learner.output(1) == "0.17\n"


@pytest.mark.parametrize(("scheme", "size"), [("light", LAPTOP), ("dark", PHONE)], ids=["laptop", "phone"])
def test_axe_finds_nothing(open_page, axe, scheme, size):
    page = open_page("index.html", color_scheme=scheme, **size)
    until_step(page, 5)
    page.locator("#network .cell").nth(4).click()
    page.locator("#words h2").wait_for()
    run = "axe.run({ iframes: false, resultTypes: ['violations'] })"
    found = page.evaluate(f"async () => {{ {axe}; return (await {run}).violations; }}")
    assert [(item["id"], item["nodes"][0]["html"][:200]) for item in found] == []


def test_without_javascript_it_is_readable_text(open_page):
    page = open_page("index.html", java_script_enabled=False)
    text = page.locator("article").inner_text()
    for part in ("Two moons.", "Read.", "Trust.", "See.", "Run.", "Learn.", "micrograd grad"):
        assert part in text
    page.get_by_text("Show the code").click()
    assert page.locator("code", has_text="mg.nn.MLP(2, [4, 4, 1]").first.is_visible()


def test_what_the_page_could_not_train_is_refused_when_the_site_is_built():
    code = pages.ten_lines().replace("mg.losses.hinge(model(point), side)", "mg.nn.Dropout(0.5)([model(point)])[0]")
    with pytest.raises(ValueError, match="the home page cannot train its network: "):
        home.recorded(code, 2)
