"""The pictures of pages in the docs: a film of two moons, and a report on penguins. It needs what tests of pages need.

python -m tests.pictures
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from pathlib import Path

import micrograd as mg
from micrograd.command.main import main as command
from tests.folders import DATA, ROOT


def film(path: Path) -> None:
    """Write the page of a training on two moons."""
    sys.path.insert(0, str(ROOT / "demos"))
    from moons import make_moons

    random.seed(1)
    points = make_moons(100)
    model = mg.nn.MLP(2, [8, 1], activation="tanh")
    recording = mg.Recording(model, [place for place, _ in points], [moon for _, moon in points])
    mg.fit(
        lambda place, moon: mg.losses.hinge(model(place), moon),
        points,
        mg.optim.Adam(model.parameters(), 0.05),
        epochs=20,
        batch_size=10,
        seed=0,
        progress=False,
        record=recording,
    )
    mg.explore(recording, path, title="Two moons")


def report(folder: Path) -> Path:
    """Write the report of the command on a table, and give its page."""
    words = ["train", str(DATA / "penguins.csv"), "--target", "species", "--quiet", "-o", str(folder / "report")]
    if command(words):
        raise SystemExit("the command failed")
    return folder / "report" / "report.html"


def main() -> None:
    """Draw the pictures anew."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "film.html"
        film(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.as_uri())
        page.locator("#slider").fill("60")
        page.locator(".cell").nth(4).click()
        page.locator("aside").evaluate("aside => aside.scrollTo(0, 0)")
        page.screenshot(path=ROOT / "docs" / "images" / "film.png")
        page = browser.new_page(viewport={"width": 760, "height": 1540})
        page.goto(report(Path(folder)).as_uri())
        page.screenshot(path=ROOT / "docs" / "images" / "report.png")
        browser.close()


if __name__ == "__main__":
    main()
