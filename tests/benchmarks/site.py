"""What the site weighs, and what the first run of a cell costs: python -m tests.benchmarks.site SITE.

Processor time is that of the browser with all of its processes, from a click on Run to the output. The browser is a
new one each time, with nothing kept. It needs a site that was built, Chromium and `pip install --group browser`.
"""

import argparse
import gzip
import os
import shutil
import statistics
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

RUNNER = ("live/worker.js", "live/packages.zip", "live/viz", "live/pyodide")
EDITOR = ("live/editor", "live/live.js", "live/live.css")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TICKS = os.sysconf("SC_CLK_TCK")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def weight(site, names):
    """The bytes of files, as they are and as a server compresses them."""
    files = [
        path for name in names for path in ([site / name] if (site / name).is_file() else (site / name).rglob("*"))
    ]
    contents = [path.read_bytes() for path in files if path.is_file()]
    return sum(map(len, contents)), sum(len(gzip.compress(content, 9)) for content in contents)


def processor_time():
    """Seconds of all processes under this one, but not its own."""
    parents, spent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(path.parent.name)] = int(words[1])
        spent[int(path.parent.name)] = (int(words[11]) + int(words[12])) / TICKS
    ours, total = {os.getpid()}, 0.0
    while new := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= new
        total += sum(spent[process] for process in new)
    return total


def first_run(playwright, server):
    """Processor and wall time from a click on Run to the output, the first time and afterwards."""
    path = next(filter(None, map(shutil.which, CHROMIUM)))
    browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
    page = browser.new_page()
    page.goto(f"{server}tutorial.html")
    page.locator(".cm-content").first.wait_for()
    page.wait_for_timeout(2000)
    spent, began = processor_time(), time.perf_counter()
    _run(page)
    first = processor_time() - spent, time.perf_counter() - began
    page.wait_for_timeout(15_000)  # until the spare one is there
    later = []
    for _ in range(9):
        began = time.perf_counter()
        _run(page)
        later.append(time.perf_counter() - began)
    browser.close()
    return *first, statistics.median(later)


def _run(page):
    page.evaluate(
        """async () => {
            const [status, button] = ["status", "run"].map((name) => document.querySelector(`.cell-${name}`));
            button.click();
            await new Promise((resolve) => {
                const look = () => (status.textContent.startsWith("done") ? resolve() : setTimeout(look, 1));
                look();
            });
        }"""
    )


def report(line):
    sys.stdout.write(f"{line}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=options.site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, files in {"tutorial.html": ("tutorial.html",), "editor": EDITOR, "Python": RUNNER}.items():
        whole, compressed = weight(options.site, files)
        report(f"{name}: {whole / 1e6:.2f} MB, compressed {compressed / 1e6:.2f} MB")
    with sync_playwright() as playwright:
        address = f"http://127.0.0.1:{server.server_port}/"
        runs = [first_run(playwright, address) for _ in range(options.times)]
    names = "first run, processor", "first run, wall", "later runs, wall"
    for name, values in zip(names, zip(*runs, strict=True), strict=True):
        report(f"{name}: {statistics.median(values):.3f} s")


if __name__ == "__main__":
    main()
