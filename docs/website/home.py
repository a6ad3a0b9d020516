"""The home page's training: the ten lines of the page, recorded, for the page to go on with in its own JavaScript.

The scripts are those of mg.explore, inside of one function, with home/moons.js below them.
"""

from __future__ import annotations

import ast
import json
import re
from importlib.resources import files
from pathlib import Path

HERE = Path(__file__).parent / "home"
WIDTHS = range(2, 9)
MARK = "[4, 4, 1]"  # the widths of the layers in the ten lines
SCRIPTS = (
    *("names", "evaluator", "words", "elements", "datasets", "training"),
    *("snapshots", "losses", "maps", "plane", "network"),
)
BEGIN = """// What explore's pages train with, and the moons of the home page. docs/build.py has put it together.
export function begin(passes, place, themed, settings) {
const { nodes, groups, primitives, root } = passes;
"""


def recorded(code, width):
    """What the page needs to train a network of this width: as for a page of explore, without the graph of the loss.

    Args:
        code: a program whose last line calls mg.fit(...); it calls the network model, and the examples points.
        width: of both hidden layers.

    Returns:
        A dict that JSON holds.

    Raises:
        ValueError: if the page could not train it.
    """
    import micrograd as mg
    from micrograd.pages.recording import of_recording

    tree = ast.parse(code.replace(MARK, f"[{width}, {width}, 1]"))
    call = next(node for node in ast.walk(tree.body.pop()) if ast.unparse(getattr(node, "func", node)) == "mg.fit")
    call.keywords = [keyword for keyword in call.keywords if keyword.arg != "epochs"]
    names = {}
    exec(compile(tree, "the home page", "exec"), names)
    places, sides = zip(*names["points"], strict=True)
    recording = names["recording"] = mg.Recording(names["model"], list(places), list(sides), frames=2)
    call.keywords.append(ast.keyword("record", ast.Name("recording", ast.Load())))
    eval(compile(ast.fix_missing_locations(ast.Expression(call)), "the home page", "eval"), names)
    made = of_recording(recording)
    if reason := made["recording"]["training"].get("reason"):
        raise ValueError(f"the home page cannot train its network: {reason}")
    made["recording"]["parameters"] = [None] * len(made["recording"]["parameters"])  # the page shows no graph of Values
    loss = {"kind": "leaf", "label": "loss", "hint": "", "data": 0, "primitive": None, "operands": [], "group": None}
    kept = {name: made[name] for name in ("primitives", "composites", "recording")}
    return {"root": 0, "nodes": [{**loss, "terms": "", "indices": []}], "groups": [], **kept}


def write(site, code):
    """Write the scripts, the style and the recordings of the home page into a site.

    Args:
        site: its folder.
        code: the ten lines.
    """
    package = files("micrograd.pages")
    scripts = "".join(package.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    own = (HERE / "moons.js").read_text(encoding="utf-8")
    (site / "live" / "moons.js").write_text(f"{BEGIN}{scripts}{own}}}\n", encoding="utf-8")
    palette = package.joinpath("page.css").read_text("utf-8").partition("* { box-sizing")[0]
    styles = palette + package.joinpath("recording.css").read_text("utf-8")
    styles = re.sub(r":root(\[[^\]]*\])?", lambda found: f":host({found[1]})" if found[1] else ":host", styles)
    style = styles + (HERE / "home.css").read_text(encoding="utf-8")
    (site / "live" / "home.css").write_text(style, encoding="utf-8")
    (site / "home").mkdir()
    for width in WIDTHS:
        text = json.dumps(recorded(code, width), separators=(",", ":"), allow_nan=False)
        (site / "home" / f"{width}.json").write_text(text, encoding="utf-8")
