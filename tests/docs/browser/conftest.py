"""A site that was built, a server for it, and pages that ask nobody else for anything."""

import os
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browsers import axe, browser

__all__ = ["axe", "browser", "open_page", "server", "site"]
SITE = "MICROGRAD_SITE"  # the folder of a site that was built, as .ci/run does


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site():
    folder = os.environ.get(SITE)
    if not folder:
        pytest.skip(f"no site: python docs/build.py SITE (it needs npm), then {SITE}=SITE pytest tests/docs/browser")
    if not (Path(folder) / "live" / "digest.txt").exists():
        pytest.fail(f"{SITE}={folder} is no site", pytrace=False)
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def server(site):
    """The address of the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def open_page(browser, server):
    """Opens a page of the site; in the end nothing was asked of another server, and nothing complained.

    No service worker keeps the site unless a test asks for it: it would fetch 25 MB for each page.
    """
    complaints, contexts = [], []

    def open_page(name, *, before="", allowed=(), width=1280, height=800, service_workers="block", **options):
        viewport = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=viewport, service_workers=service_workers, **options))
        if before:
            contexts[-1].add_init_script(f"if (window === top) {{ {before} }}")  # frames may store nothing
        page = contexts[-1].new_page()
        page.set_default_timeout(120_000)

        def complain(kind, text):
            if not any(part in text for part in allowed):
                complaints.append(f"{kind}: {text}")

        page.on("console", lambda message: message.type == "error" and complain("console", message.text))
        page.on("pageerror", lambda error: complain("error", str(error)))
        contexts[-1].on(
            "request",
            lambda request: request.url.startswith((server, "data:", "blob:")) or complain("request", request.url),
        )
        page.goto(server + name)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
