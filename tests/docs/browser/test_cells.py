"""Cells in a real browser: the same outputs as in CPython, and what a learner does with them."""

import hashlib
import io
import json
import re
import zipfile
from xml.etree import ElementTree

import pytest
from website import cells, pages

from tests.folders import ROOT

pytestmark = pytest.mark.slow

# Runs blocks in one worker, page after page: each begins without the names of the one before.
RUN_ALL = """async ([worker, all]) => {
  const python = new Worker(worker, { type: "module" });
  const messages = [];
  let wake;
  window.python = python;  // so that it is not thought to be unused
  const give = (message) => {
    clearTimeout(window.silence);
    window.silence = setTimeout(() => give({ kind: "failed", text: "nothing for five minutes" }), 300_000);
    messages.push(message);
    wake?.();
  };
  python.onerror = (event) => give({ kind: "failed", text: event.message });
  python.onmessage = ({ data }) => give(data);
  give({ kind: "limit" });  // the first silence begins
  const until = async (...kinds) => {
    const got = [];
    for (;;) {
      while (messages.length === 0) await new Promise((resolve) => (wake = resolve));
      const message = messages.shift();
      if (message.kind === "failed") throw new Error(message.text);
      if (kinds.includes(message.kind)) return [got, message];
      if (message.kind !== "limit") got.push(message);  // it says how long an answer may run, and shows nothing
    }
  };
  await until("ready");
  const given = [];
  for (const blocks of all) {
    python.postMessage({ number: 0, code: "for _ in [n for n in globals() if n[:2] != '__']: del globals()[_]" });
    await until("done");
    const outputs = [];
    for (const [number, code] of blocks.entries()) {
      python.postMessage({ number: number + 1, code });
      const [got, end] = await until("done", "ended");
      outputs.push({ got, line: end.line ?? end.text });
    }
    given.push(outputs);
  }
  python.terminate();
  return given;
}"""


def live_pages():
    names = (path.relative_to(ROOT / "docs").as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))
    return [name for name in names if pages.is_live(name)]


def live_blocks(text):
    return [block for block in cells.blocks(text) if block.language == "python"]


def words(picture):
    """What a picture says; where it stands follows from the widths of letters, which differ from machine to machine."""
    return sorted(text for element in ElementTree.fromstring(picture).iter() if (text := (element.text or "").strip()))


def shape(kind, text):
    """What must be the same of an output: all of a text, the words of a picture, the title of a page."""
    if kind == "picture":
        return kind, words(text.partition("<svg")[1] + text.partition("<svg")[2])
    if kind == "html":
        return kind, text.rpartition("</style>")[2]  # a file of its own brings its style
    if kind == "page":
        return kind, re.search(r"<title>(.*)</title>", text)[1]
    return kind, text


def joined(outputs):
    """Text after text of the same kind is one."""
    found = []
    for kind, text in outputs:
        if found and found[-1][0] == kind == "text":
            found[-1] = (kind, found[-1][1] + text)
        else:
            found.append((kind, text))
    return [shape(kind, text) for kind, text in found]


# What stands on the pages of the site below each block that can be run: it was recorded in CPython.
RECORDED = """async (pages) => {
  const read = async (address) => await (await fetch(address)).text();
  const outputs = [];
  for (const address of pages) {
    const page = new DOMParser().parseFromString(await read(address), "text/html");
    const shown = async (output) => {
      const file = output.querySelector("img")?.getAttribute("src") ?? output.getAttribute("src");
      return [output.dataset.kind, file ? await read(new URL(file, address)) : output.textContent];
    };
    outputs.push(await Promise.all([...page.querySelectorAll(".cell > .cell-outputs")].map((outputs) =>
      Promise.all([...outputs.children].map(shown)))));
  }
  return outputs;
}"""


def test_every_cell_gives_in_the_browser_what_it_gave_in_cpython_when_the_site_was_built(open_page, server):
    names = live_pages()
    assert {"index.md", "tutorial.md", "explore.md", "gallery.md"} <= set(names)
    texts = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in names]
    blocks = [[block.code for block in live_blocks(text) if ".recorded" not in block.marks] for text in texts]
    page = open_page("tutorial.html")
    recorded = page.evaluate(RECORDED, [f"{server}{name.removesuffix('.md')}.html" for name in names])
    assert sum(len(outputs) for outputs in recorded[names.index("tutorial.md")]) > 10
    ran = page.evaluate(RUN_ALL, [f"{server}live/worker.js", blocks])
    for name, there, here in zip(names, ran, recorded, strict=True):
        for number, (outcome, outputs) in enumerate(zip(there, here, strict=True), 1):
            assert outcome["line"] == 0, (name, number, outcome)
            given = joined((message["kind"], message["text"]) for message in outcome["got"])
            assert given == joined(outputs), (name, number)


class Learner:
    """Someone in front of a page with cells."""

    def __init__(self, page):
        self.page = page
        page.locator(".cell .cm-content").first.wait_for()

    def cell(self, number):
        return self.page.locator(".cell").nth(number - 1)

    def write(self, number, code):
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(code)

    def run(self, number, code=None, until="done"):
        if code is not None:
            self.write(number, code)
        self.cell(number).locator(".cell-run").click()
        self.wait(number, until)

    def wait(self, number, text):
        self.page.wait_for_function(
            "([n, text]) => document.querySelectorAll('.cell-status')[n].textContent.startsWith(text)",
            arg=[number - 1, text],
        )

    def status(self, number):
        return self.cell(number).locator(".cell-status").inner_text()

    def output(self, number):
        return self.cell(number).locator(".cell-outputs").inner_text()


def test_a_learner_changes_runs_stops_and_begins_again(open_page):
    """One visit, because starting Python takes seconds."""
    allowed = ["Pyodide", "RangeError", "Stack", "cell 2", "fatal error"]
    learner = Learner(open_page("tutorial.html", allowed=allowed, memory=8))
    recorded = learner.output(2)

    # The cells above run first, and cells below one that fails are not run.
    learner.write(1, "1 / 0")
    learner.cell(3).locator(".cell-run").click()
    learner.wait(1, "an error")
    assert learner.status(3) == "not run: see cell 1"
    assert learner.output(3) == "-3.0\n"  # as it was recorded
    learner.cell(1).get_by_role("button", name="Undo the changes").click()

    # Names last from cell to cell.
    learner.run(1)
    learner.run(2)
    assert learner.status(1).startswith("done")
    assert learner.output(2) == recorded == "-3.0 2.0 1.0\n"

    # A change is run by the keyboard, and shown as such.
    learner.write(2, "f.backward()\nprint(x.grad)")
    assert learner.status(2) == "changed since it ran"
    learner.page.keyboard.press("Shift+Enter")
    learner.wait(2, "done")
    assert learner.output(2) == "-6.0\n"  # gradients of leaves add up over calls

    # An error points at its line, and what the cell gave before stays.
    learner.run(2, "print(1)\n\nundefined", until="an error")
    said = learner.output(2)
    assert said.startswith("1\n")
    assert 'File "cell 2", line 3' in said
    assert said.rstrip().endswith("NameError: name 'undefined' is not defined")
    assert learner.cell(2).locator(".at-fault").inner_text() == "undefined"
    learner.run(2, "x = (1", until="an error")
    assert "SyntaxError" in learner.output(2)
    assert "cell_runner" not in learner.output(2)

    # Long chains are freed, in one cell or in several.
    learner.run(2, "long = x\nfor _ in range(20_000): long = long + 1.0\nlong.backward()\ndel long\n'freed'")
    assert learner.output(2) == "'freed'\n"

    # What cannot be done here says what to do.
    learner.run(2, "mg.save(f, 'f.png')", until="an error")
    assert "the page cannot draw this as 'png'" in learner.output(2)
    learner.run(2, "input('name? ')", until="an error")
    assert "input() has nobody to ask" in learner.output(2)

    # A loop that never ends is stopped, however much it prints; the cells above run again.
    learner.run(2, "while True: print('x' * 1000)", until="running")
    learner.page.wait_for_function("document.querySelectorAll('.cell-outputs')[1].innerText.length > 90000")
    learner.run(2, until="stopped; the cells above have run again")
    assert len(learner.output(2)) < 110_000
    assert "the rest is left out" in learner.output(2)
    assert learner.status(1).startswith("done")
    learner.run(2, "f.data")
    assert learner.output(2) == "4.0\n"

    # An answer to an exercise is stopped by itself, whatever it catches; one that ends in time is not.
    endless = (
        "def slope(x):\n    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass\n\nmg.learn.check('1.4', slope, seconds=0.5)"
    )
    learner.run(2, endless, until="stopped; the cells above have run again")
    assert "The answer was stopped after 0.5 s: is there a loop that never ends?" in learner.output(2)
    assert "Its variables are lost" in learner.output(2)
    learner.run(2, "print(mg.learn.check('1.2', 2.0, seconds=0.5).right, f.data)\nimport time\ntime.sleep(1)")
    assert learner.output(2) == "True 4.0\n"

    # Where Python itself ends, another takes its place.
    learner.run(
        2, "deep = []\nfor _ in range(50_000): deep = [deep]\ndel deep", until="ended; the cells above have run again"
    )
    assert "Python itself has ended" in learner.output(2)
    learner.run(2, "f.data")
    assert learner.output(2) == "4.0\n"

    # An explorer page and a table stand in frames that cannot reach the page.
    learner.run(2, "mg.explore(f, 'f.html', title='<b>f</b>')\nmg.nn.MLP(2, [1])")
    frames = learner.cell(2).locator("iframe")
    assert [frame.get_attribute("sandbox") for frame in frames.all()] == ["", "allow-scripts allow-downloads"]
    assert frames.nth(1).content_frame.locator("h1").inner_text() == "<b>f</b>"
    assert "MLP: 3 parameters" in frames.nth(0).content_frame.locator("caption").inner_text()

    # Reset: the outputs as recorded, and no name is left. What was typed can be undone.
    learner.page.get_by_role("button", name="Reset").click()
    assert learner.output(2) == recorded
    learner.cell(2).get_by_role("button", name="Undo the changes").click()
    learner.run(2)
    assert learner.output(2) == recorded


def test_a_package_of_pyodide_that_the_site_has_is_loaded_when_a_cell_imports_it(open_page, site):
    """With stand-ins, as the wheels are not on npm: see --wheels in docs/contributing.md."""
    made = {
        "numpy": {
            "numpy/__init__.py": "def linspace(a, b, n):\n    return [a + (b - a) * i / (n - 1) for i in range(n)]\n"
        },
        "matplotlib": {"matplotlib/__init__.py": "", "matplotlib/pyplot.py": STAND_IN_FOR_PYPLOT},
    }
    listed = json.loads((site / "live" / "pyodide" / "pyodide-lock.json").read_text(encoding="utf-8"))
    wheels = {}
    for name, files in made.items():
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            for file, text in files.items():
                archive.writestr(file, text)
            archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
            archive.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{name}-1.dist-info/RECORD", "")
        wheels[f"{name}-1-py3-none-any.whl"] = wheel.getvalue()
        listed["packages"][name] |= {
            "file_name": f"{name}-1-py3-none-any.whl",
            "sha256": hashlib.sha256(wheel.getvalue()).hexdigest(),
            "depends": ["numpy"] * (name == "matplotlib"),
        }
    worker = (site / "live" / "worker.js").read_text(encoding="utf-8")
    has = json.dumps({name: name for name in made})
    worker = re.sub(r"^const PACKAGES = .*?;", f"const PACKAGES = {has};", worker, flags=re.MULTILINE)
    page = open_page("tutorial.html", fresh=True)
    asked = []

    def give(route):
        name = route.request.url.rpartition("/")[2]
        asked.append(name)
        if name == "worker.js":
            route.fulfill(body=worker, content_type="text/javascript")
        elif name == "pyodide-lock.json":
            route.fulfill(body=json.dumps(listed), content_type="application/json")
        else:
            route.fulfill(body=wheels[name], content_type="application/octet-stream")

    page.context.route(re.compile(r"/live/(worker\.js|pyodide/(pyodide-lock\.json|.*\.whl))$"), give)
    learner = Learner(page)
    learner.run(1, "print(1)")
    assert not any(name.endswith(".whl") for name in asked)
    learner.run(2, "import matplotlib.pyplot as plt\nimport numpy as np\nplt.plot(np.linspace(0, 1, 3))")
    assert page.locator("#cell-2 figure img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 30
    learner.run(3, "import pandas", until="an error")
    assert "This page cannot load pandas. To use it, run the cell in a Python of your own." in learner.output(3)


STAND_IN_FOR_PYPLOT = """
class Figure:
    axes = ()

    def savefig(self, file, format, bbox_inches):
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{10 * len(drawn[-1])}" height="10"></svg>')

drawn = []
def plot(numbers): drawn.append(numbers)
def get_fignums(): return [1] if drawn else []
def figure(number): return Figure()
def close(figure): pass
"""


def test_without_wasm_the_recorded_outputs_stand_there(open_page):
    page = open_page("tutorial.html", before="delete globalThis.WebAssembly")
    assert "outputs are shown as recorded" in page.locator(".cell-note").inner_text()
    assert page.locator(".cell-run").count() == 0
    assert page.locator(".cell-outputs").nth(1).inner_text().strip() == "-3.0 2.0 1.0"
    picture = page.locator(".cell-outputs img").first
    assert picture.evaluate("(image) => image.decode().then(() => image.naturalWidth > 100)")
