"""The pictures of pages in the docs: a network and its loss, a recording of two moons, and a report on penguins.

They need what tests of pages need.

python -m tests.pictures
"""

import io
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import micrograd as mg
from micrograd.command.main import main as command
from tests.folders import DATA, ROOT


def recording(path: Path) -> None:
    """Write the page of a training on two moons."""
    sys.path.insert(0, str(ROOT / "demos"))
    from moons import make_moons

    random.seed(1)
    points = make_moons(100)
    model = mg.nn.MLP(2, [8, 1], activation="tanh")
    recording = mg.Recording(model, [position for position, _ in points], [moon for _, moon in points])
    mg.fit(
        lambda position, moon: mg.losses.hinge(model(position), moon),
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


def lecture(path: Path) -> None:
    """Write the page of the network of micrograd's lecture, and its loss on four samples."""
    random.seed(1337)
    model = mg.nn.MLP(3, [4, 4, 1], activation="tanh")
    inputs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    loss = sum((model(x) - y) ** 2 for x, y in zip(inputs, [1.0, -1.0, -1.0, 1.0], strict=True))
    loss.label = "loss"
    mg.explore(loss, path, title="A network, and its loss on four samples")


def save(page: Any, name: str, colours: int = 256) -> None:
    """Save a screenshot with few colours: it has a third of the bytes, and looks the same."""
    from PIL import Image

    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(colours).save(ROOT / "docs" / "images" / f"{name}.png", optimize=True)


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.emulate_media(reduced_motion="reduce")
        lecture(path)
        page.goto(path.as_uri())
        page.keyboard.press("End")
        page.locator('.item[aria-label^="Neuron 2"]').first.press("Enter")
        page.locator('.item[aria-label^="tanh"], .item[aria-label*="result of tanh"]').first.click()
        page.locator("#fit").click()
        page.mouse.move(1, 1)
        save(page, "explore", 128)
        page.set_viewport_size({"width": 1280, "height": 800})
        recording(path)
        page.goto(path.as_uri())
        page.locator("#slider").fill("60")
        page.locator(".cell").nth(4).click()
        page.locator("aside").evaluate("aside => aside.scrollTo(0, 0)")
        save(page, "recording")
        page = browser.new_page(viewport={"width": 760, "height": 1540})
        page.goto(report(Path(folder)).as_uri())
        save(page, "report")
        browser.close()


if __name__ == "__main__":
    main()
