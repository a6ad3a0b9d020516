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


class Tab:
    """A page of the browser in a context of its own. One that has shown others is ready in half of the time."""

    def __init__(self, browser, server, before="", memory=2, service_workers="block", **options):
        context = browser.new_context(service_workers=service_workers, **options)
        # A second Python waits to take the place of the first where a device has more memory than 2 GB.
        before = f"Object.defineProperty(navigator, 'deviceMemory', {{ value: {memory} }}); {before}"
        context.add_init_script(f"if (window === top) {{ {before} }}")  # frames may store nothing
        self.server, self.complaints, self.allowed = server, [], ()
        self.page = context.new_page()
        self.page.set_default_timeout(120_000)
        self.page.on("console", lambda message: message.type == "error" and self.complain("console", message.text))
        self.page.on("pageerror", lambda error: self.complain("error", str(error)))
        context.on("request", lambda request: self.is_own(request.url) or self.complain("request", request.url))

    def is_own(self, address):
        return address.startswith((self.server, "data:", "blob:"))

    def complain(self, kind, text):
        if not any(part in text for part in self.allowed):
            self.complaints.append(f"{kind}: {text}")

    def open(self, name, allowed, width, height, color_scheme):
        self.allowed = allowed
        self.page.mouse.move(1, 1)  # where nothing is pointed at
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(media="screen", color_scheme=color_scheme)
        self.page.goto(self.server + name)
        return self.page

    def forget(self):
        """Leave the page, with what it has stored."""
        self.page.goto("about:blank")
        stored = {"origin": self.server.rstrip("/"), "storageTypes": "all"}
        self.page.context.new_cdp_session(self.page).send("Storage.clearDataForOrigin", stored)
        self.complaints.clear()


@pytest.fixture(scope="package")
def tabs(browser):
    """Those that are open and show nothing."""
    return []


@pytest.fixture
def open_page(browser, server, tabs):
    """Opens a page of the site; in the end nothing was asked of another server, and nothing complained.

    Each page of a test finds nothing stored. Where a test changes more than what open() sets again, it asks for a fresh
    tab. No service worker keeps the site unless a test asks for it: it would fetch 25 MB for each page.
    """
    used = []

    def open_page(name, *, allowed=(), width=1280, height=800, color_scheme="light", fresh=False, **options):
        fresh = fresh or bool(options)
        tab = Tab(browser, server, **options) if fresh or not tabs else tabs.pop()
        used.append((tab, fresh))
        return tab.open(name, allowed, width, height, color_scheme)

    yield open_page
    complaints = [complaint for tab, _ in used for complaint in tab.complaints]
    for tab, fresh in used:
        if fresh:
            tab.page.context.close()
        else:
            tab.forget()
            tabs.append(tab)
    assert complaints == []
