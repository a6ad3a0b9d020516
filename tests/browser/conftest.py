"""A real browser, and pages in it that may load nothing and complain about nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import micrograd as mg

REQUIRED = "MICROGRAD_BROWSER_TESTS"  # set to "required", as .ci/run does, a missing browser is an error
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def missing(what):
    if os.environ.get(REQUIRED) == "required":
        pytest.fail(f"{what}, and {REQUIRED}=required", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="package")  # no longer: while it lives, Playwright keeps an event loop running in this thread
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        missing(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe():
    """The text of axe-core, which looks for what keeps people out."""
    try:
        import axe_playwright_python
    except ImportError:
        missing("axe-core is not installed: pip install axe-playwright-python")
    return Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def show(browser, tmp_path):
    """Explores something and opens the page; in the end nothing was requested, logged or alerted."""
    complaints, contexts, number = [], [], 0

    def show(what, title="", width=1280, height=800, **options):
        nonlocal number
        path = tmp_path / f"page{(number := number + 1)}.html"
        mg.explore(what, path, title=title)
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: request.url == path.as_uri() or complaints.append(f"request: {request.url}"))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []
