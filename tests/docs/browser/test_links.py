"""Every link, picture and script of the site leads to a file of it, and every anchor to a place."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if given.get("id"):
            self.names.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name in ("src", "href"):
            if tag in ("link", "script", "img", "iframe") and name in given and given.get("rel") != "canonical":
                self.loaded.append(given[name])


@pytest.fixture(scope="module")
def parsed(site):
    pages = {}
    for path in sorted(site.rglob("*.html")):
        if "recorded" not in path.parts and path.name != "404.html":  # whose links begin at the root of a server
            pages[path] = Links()
            pages[path].feed(path.read_text(encoding="utf-8"))
    return pages


def test_there_are_pages_of_every_kind(site, parsed):
    names = {path.relative_to(site).as_posix() for path in parsed}
    for name in ("index", "tutorial", "gallery", "api", "reliability", "changelog", "reference/values"):
        assert f"{name}.html" in names
    assert "source/micrograd/engine/value.py.html" in names


def test_every_link_leads_somewhere(site, parsed):
    wrong = []
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            if (
                not target.is_relative_to(site.resolve())
                or not target.exists()
                or (anchor and target in parsed and anchor not in parsed[target].names | {"__skip"})
            ):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert wrong == []


def test_nothing_is_loaded_from_another_server(site, parsed):
    for path, page in parsed.items():
        for address in page.loaded:
            assert not urlsplit(address).netloc, f"{path.name}: {address}"
            assert address.startswith("data:") or (path.parent / unquote(urlsplit(address).path)).exists(), address


def test_the_service_worker_names_files_that_are_there(site):
    text = (site / "service-worker.js").read_text(encoding="utf-8")
    lists = re.findall(r"^const (?:RUNNER|PATH) = (\[.*\])\.map", text, re.MULTILINE)
    runner, path = map(json.loads, lists)
    assert {"live/live.js", "live/pyodide/pyodide.asm.wasm"} <= set(runner)
    assert {"index.html", "learn/13-how-it-bends.html", "learn/exercises.html"} <= set(path)
    assert [name for name in runner + path if not (site / name).exists()] == []
    assert "DIGEST" not in text.partition("const KEPT")[2].partition(";")[0]
