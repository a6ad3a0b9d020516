"""A real browser, and pages in it that may load nothing and complain about nothing."""

from pathlib import Path

import pytest

import micrograd as mg
from tests.browsers import axe, browser

__all__ = ["axe", "browser", "show", "tabs", "violations"]

# The script of a large page is text until its data is unpacked.
UNPACKING = "document.querySelector('#script') !== null && (typeof isShown === 'undefined' || !isShown)"


class Tab:
    """One tab of the browser for all tests that ask for the same options: opening another takes half a second."""

    def __init__(self, browser, options):
        self.page = browser.new_context(**options).new_page()
        self.page.set_default_timeout(30_000)
        self.address, self.complaints = "", []
        self.page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.is_own(request.url) or self.complaints.append(request.url))

    def is_own(self, url):
        """Whether it is the page itself, or what the page has made and never leaves it."""
        return url == self.address or url.startswith(("blob:", "data:"))

    def open(self, address):
        self.address = address
        self.page.mouse.move(1, 1)  # where nothing is pointed at
        self.page.goto(address)
        while self.page.evaluate(UNPACKING):  # the page forbids what wait_for_function does
            self.page.wait_for_timeout(20)


@pytest.fixture(scope="package")
def tabs(browser):
    """The tabs that are open, by their options."""
    return {}


@pytest.fixture
def show(browser, tabs, tmp_path):
    """Explores something and opens the page, or one that is there; in the end nothing was requested, logged or alerted.

    The page is shown until the next one is, in the same tab; one for which time is to stand still takes a fresh tab.
    """
    used, number = [], 0

    def show(what, title="", width=1280, height=800, fresh=False, inputs=None, classes=None, tokens=None, **options):
        nonlocal number
        path = what if isinstance(what, Path) else tmp_path / f"page{(number := number + 1)}.html"
        if path is not what:
            mg.explore(what, path, title=title, inputs=inputs, classes=classes, tokens=tokens)
        # without motion the camera is where it goes to at once
        media = {
            "reduced_motion": options.pop("reduced_motion", "reduce"),
            "color_scheme": options.pop("color_scheme", "light"),
        }
        key = number if fresh else str(sorted(options.items()))
        tab = tabs[key] if key in tabs and not fresh else Tab(browser, options)
        if not fresh:
            tabs[key] = tab
        used.append((tab, fresh))
        tab.page.emulate_media(**media)
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.open(path.as_uri())
        return tab.page

    yield show
    complaints = [complaint for tab, _ in used for complaint in tab.complaints]
    for tab, fresh in used:
        tab.complaints.clear()
        if fresh:
            tab.page.context.close()
    assert complaints == []


@pytest.fixture
def violations(axe):
    """What keeps people out of a page, as axe finds it: the rules, and where they are broken. It needs bypass_csp."""

    def violations(page):
        found = page.evaluate(f"async () => {{ {axe}; return (await axe.run()).violations; }}")
        return [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found]

    return violations
