"""A real browser, and pages in it that may load nothing and complain about nothing."""

from __future__ import annotations

import pytest

import micrograd as mg
from tests.browsers import axe, browser

__all__ = ["axe", "browser", "show"]


@pytest.fixture
def show(browser, tmp_path):
    """Explores something and opens the page; in the end nothing was requested, logged or alerted."""
    complaints, contexts, number = [], [], 0

    def show(what, title="", width=1280, height=800, **options):
        nonlocal number
        path = tmp_path / f"page{(number := number + 1)}.html"
        mg.explore(what, path, title=title)
        options = {"reduced_motion": "reduce", **options}  # the camera is where it goes to at once
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(30_000)
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
