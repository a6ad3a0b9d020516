"""NumPy and matplotlib in cells, with Pyodide's own wheels: on sites that were built with --wheels."""

import hashlib
import json

import pytest

from tests.docs.browser.test_cells import Learner
from tests.legible import LAPTOP, PHONE, photograph

pytestmark = pytest.mark.slow

NATURAL = "image => image.decode().then(() => [image.naturalWidth, image.getBoundingClientRect().width])"


@pytest.fixture(scope="module", autouse=True)
def wheels(site):
    """The wheels that Pyodide's lock file names, each with its digest there."""
    live = site / "live" / "pyodide"
    listed = json.loads((live / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    digests = {package["file_name"]: package["sha256"] for package in listed.values()}
    found = sorted(live.glob("*.whl"))
    if not found:
        pytest.skip("the site has no NumPy: build it with --wheels, as docs/contributing.md says")
    return {path.name: (path.read_bytes(), digests[path.name]) for path in found}


def test_the_wheels_are_those_of_pyodide(wheels):
    assert {name.partition("-")[0] for name in wheels} >= {"numpy", "matplotlib", "contourpy", "pillow"}
    for content, digest in wheels.values():
        assert hashlib.sha256(content).hexdigest() == digest


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_arrays_of_values_and_figures_work_in_a_cell(open_page, size):
    width, asked = size["width"], []
    page = open_page("tutorial.html", **size, service_workers="block")
    page.context.on("request", lambda request: asked.append(request.url))
    learner = Learner(page)
    learner.run(1, "import micrograd as mg\nfrom micrograd import Value\nprint(1)")
    assert not any(address.endswith(".whl") for address in asked)

    learner.run(2, "mg.array([1.0])", until="an error")
    said = "This page loads numpy for a cell that says `import numpy`; the first time, it needs a network."
    assert said in learner.output(2)
    learner.run(2, "import pandas", until="an error")
    assert "This page cannot load pandas." in learner.output(2)

    learner.run(
        2,
        "import numpy as np\n"
        "x = mg.array([Value(0.0), Value(2.0)])\n"
        "plain = np.array([Value(1.0), Value(3.0)])\n"
        "y = np.sum(np.exp(x) * plain + np.maximum(x, 1) @ np.arange(2))\n"
        "y.backward()\n"
        "print([each.grad for each in x], plain[0].grad, type(np.linspace(0, 1, 3)).__name__)\n"
        "print(np.linalg.det(mg.array([[Value(2.0), Value(1.0)], [Value(1.0), Value(3.0)]])).data)\n"
        "print(mg.hessian(lambda x: np.sum(x**3))(np.arange(1.0, 3.0)).tolist())",
    )
    gradients, determinant, hessian = learner.output(2).splitlines()
    assert gradients.startswith("[1.0, 24.16716829")  # e**2 * 3, and 2 for x @ [0, 1] that each of two sums has
    assert gradients.endswith(" 1.0 ndarray")
    assert float(determinant) == pytest.approx(5)
    assert hessian == "[[6.0, 0.0], [0.0, 12.0]]"

    learner.run(2, "mg.compile(lambda x: x * x)(2.0)", until="an error")
    assert "compiling needs a Python of 64 bits, and this one has 32" in learner.output(2)

    learner.run(
        2,
        "import matplotlib.pyplot as plt\n"
        "plt.plot(np.linspace(-2, 2), np.tanh(np.linspace(-2, 2)))\nplt.title('tanh')\nplt.show()\nprint('after')\n"
        "_ = plt.figure(figsize=(9, 3)); _ = plt.imshow(np.outer(np.arange(3), np.arange(9)))",
    )
    outputs = learner.cell(2).locator(".cell-outputs > *")
    assert [output.get_attribute("data-kind") for output in outputs.all()] == ["picture", "text", "picture"]
    figures = learner.cell(2).locator("figure img")
    assert figures.nth(0).get_attribute("alt") == "picture: figure 1: tanh"
    for figure in figures.all():
        natural, shown = figure.evaluate(NATURAL)
        assert natural > 300
        assert min(natural, 250) < shown <= width - 50  # all of it is in sight
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    figures.nth(0).scroll_into_view_if_needed()
    photograph(page, f"numpy-{width}")


def test_after_they_were_used_once_they_work_without_the_network(open_page):
    offline = ["ERR_INTERNET_DISCONNECTED", "Failed to load resource", "Failed to fetch"]
    page = open_page("learn/01-one-multiplication.html", allowed=offline, service_workers="allow")
    page.locator(".cell-offline", has_text="The whole path works without a network.").wait_for()
    learner = Learner(page)
    code = "import matplotlib.pyplot as plt, numpy as np\n_ = plt.plot(np.arange(3.0))"
    learner.run(1, code)
    page.context.set_offline(True)
    page.goto(page.url.replace("01-one-multiplication", "13-how-it-bends"))  # a chapter that was never opened
    learner = Learner(page)
    learner.run(1, code)
    assert learner.cell(1).locator("figure img").evaluate(NATURAL)[0] > 300
