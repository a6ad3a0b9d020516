"""A real browser for tests of pages: fixtures for a conftest to import."""

import os
import shutil
from pathlib import Path

import pytest

REQUIRED = "MICROGRAD_BROWSER_TESTS"  # set to "required", as .ci/run does, a missing browser is an error
# The shell has no window to draw: it opens a page in half of the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


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
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=120_000)
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
