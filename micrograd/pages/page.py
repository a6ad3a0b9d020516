"""One self-contained file: the template, styles and scripts beside this module, with their data put in.

Nothing in a page comes from elsewhere, and its own content security policy says so to the browser: no
request leaves it, and no script runs in it but the one that is shipped here, whose digest it names.
"""

from __future__ import annotations

import json
import math
import operator
from base64 import b64encode
from gzip import compress
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from micrograd.draw.text import enclosed

# The script of a page is one text: these files, one after the other. Each uses what is above it when the page
# starts; inside of its functions it may use all of them.
SCRIPTS = (
    "page",  # the data, and the constants
    "names",  # numbers and names
    "evaluator",  # the primitives on floats, and formulas made of them
    "words",  # formulas in words
    "steps",  # the steps of both passes, and the gradients at each
    "order",  # of visits: the right one, or a wrong one to see what goes wrong
    "births",  # where a number that is not finite comes from
    "folding",  # which groups are open, and which member of a stack is shown
    "wrapping",  # rows that are too long for the page
    "arrangement",  # the room that everything takes
    "elements",  # of SVG and HTML
    "drawing",  # the items in their places
    "strips",  # many numbers as colours
    "painting",  # what the step changes in the drawing
    "contributions",  # where a gradient comes from
    "explanation",  # the step and the Value in words
    "editing",  # another number for a leaf
    "asking",  # for contributions, before they are shown
    "playing",  # going from step to step
    "stacks",  # which member is on top
    "view",  # pan, zoom, fit
    "events",  # pointers, keys and buttons
    "find",  # by label
    "saving",  # what is seen, as a file
    "start",
)
SEQUENCE = (  # before the start of a page with a softmax that predicts
    "probabilities",  # of the classes, as bars
    "influence",  # what depends on a token, and which losses reach it
    "attention",  # which token reads which, as maps
    "blocks",  # the program by blocks, token by token, and the steps through them
    "typing",  # another word
    "trying",  # a word and the temperature, as one likes, and words that the program makes up
    "recorded_blocks",  # the same at each snapshot of a training, with words that are made up
    "sequence",  # all of it, and what the controls move
)
RECORDING = (  # before the start of a page that shows a training
    "datasets",  # Python's random numbers, and points to train on
    "training",  # what fit does, from the formulas
    "snapshots",  # the snapshots of a training, recorded or added by the page
    "losses",  # the curve
    "maps",  # what neurons say of each place of the plane
    "plane",  # the map with the points
    "network",  # the neurons with their maps, the edges with their weights
    "update",  # the step of the optimiser in words
    "laboratory",  # the settings of a training in the page
    "timeline",  # going through the snapshots of a training
    "example",  # one step: the graph with the numbers of a snapshot
    "recording",  # what is shown of a training, and what the controls move
)


MOST_PLAIN = 1_000_000  # characters of data: a page with more has it compressed, and unpacks it before it starts


def page(title: str, data: dict[str, Any]) -> str:
    """The text of the HTML file.

    Args:
        title: shown as typed, on the page and on its tab.
        data: what the script finds; anything that JSON holds.

    Example:
        >>> "&lt;b&gt;" in page("<b>", {}), "<b>" in page("<b>", {})
        (True, False)
    """
    folder = files("micrograd.pages")
    template = folder.joinpath("page.html").read_text("utf-8")
    parts = [(name, scripts) for name, scripts in (("sequence", SEQUENCE), ("recording", RECORDING)) if data.get(name)]
    styles = ["page", *(name for name, _ in parts)]
    scripts = [*SCRIPTS[:-1], *(script for _, added in parts for script in added), SCRIPTS[-1]]
    style = "\n".join(folder.joinpath(f"{name}.css").read_text("utf-8") for name in styles)
    script = "".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in scripts)
    if len(embedded := _embedded(data)) <= MOST_PLAIN:
        return _put_together(template, style, [script], f"<script>{script}</script>", title, embedded)
    nodes, visits = _with_distances(without_results(data)), without_what_follows(data)
    columns = {"nodes": _columns(nodes), "visits": _columns(visits)}  # what is alike stands together
    packed = json.dumps({**data, **columns}, separators=(",", ":"), allow_nan=False)
    unpacking = folder.joinpath("unpacking.js").read_text("utf-8")
    element = f'<script type="text/plain" id="script">{script}</script>\n<script>{unpacking}</script>'
    embedded = b64encode(compress(packed.encode(), mtime=0)).decode()
    return _put_together(template, style, [script, unpacking], element, title, embedded)


def filled(template: str, style: str, script: str, title: str, data: dict[str, Any]) -> str:
    r"""The text of an HTML file: a template with its style, its script and their digests, the title and the data.

    Args:
        template: with a comment in the place of each: TITLE, STYLE, STYLE DIGEST, SCRIPT, SCRIPT DIGESTS, DATA.
        style: CSS.
        script: JavaScript.
        title: shown as typed.
        data: anything that JSON holds.

    Example:
        >>> filled("<title><!--TITLE--></title><p><!--DATA--></p>", "", "", "1 < 2", {"x": "</p>"})
        '<title>1 &lt; 2</title><p>{"x":"\\u003c/p>"}</p>'
    """
    return _put_together(template, style, [script], f"<script>{script}</script>", title, _embedded(data))


def _embedded(data: dict[str, Any]) -> str:
    """The data as JSON in which no label can end the script: there < is in strings only, and written as an escape."""
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _put_together(template: str, style: str, scripts: list[str], element: str, title: str, embedded: str) -> str:
    parts = {
        "TITLE": escape(enclosed(title)),
        "STYLE DIGEST": _digest(style),
        "SCRIPT DIGESTS": " ".join(f"'{_digest(script)}'" for script in scripts),
        "STYLE": style,
        "SCRIPT": element,
        "DATA": embedded,
    }
    first, *rest = template.split("<!--")  # in one pass, so that what is put in is not searched again
    return first + "".join(parts[name.strip()] + after for name, _, after in (part.partition("-->") for part in rest))


def _with_distances(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes, each with how far before it its operands stand: these numbers are smaller, and alike."""
    return [node | {"operands": [place - operand for operand in node["operands"]]} for place, node in enumerate(nodes)]


def without_results(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The nodes without the results that the page can compute, to the last bit: those have None as data.

    Args:
        data: of a page, as passes() gives it.
    """
    nodes, left = data["nodes"], []
    for node in data["nodes"]:
        entry = {} if node["primitive"] is None else data["primitives"][node["primitive"]]
        inputs = [float(nodes[operand]["data"]) for operand in node["operands"]]
        formula = [entry["name"], *map(str, range(len(inputs)))] if entry.get("library") else None
        is_found = repr(_exact(formula, 0.0, 0.0, inputs)) == repr(node["data"])
        left.append(node | {"data": None} if is_found else node)
    return left


def without_what_follows(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The visits of a backward pass without the contributions that the page can compute, to the last bit.

    Those are the ones whose rules are sums, products and choices of what is there: IEEE 754 rounds them alike in every
    language. Here each is computed, and left out where it is what the engine gave.

    Args:
        data: of a page, as passes() gives it.

    Returns:
        The visits; of those that follow, the contributions are True where there is one, and the local derivatives None.
    """
    nodes, gradients = data["nodes"], [0.0] * len(data["nodes"])
    gradients[data["root"]] = 1.0
    visits = []
    for visit in data["visits"]:
        node = nodes[visit["node"]]
        out, *inputs = (float(nodes[place]["data"]) for place in (visit["node"], *node["operands"]))
        contributions: list[Any] = [None if each is None else float(each) for each in visit["contributions"]]
        rules, gradient = data["primitives"][node["primitive"]]["rules"], gradients[visit["node"]]
        wanted = [place for place, each in enumerate(contributions) if each is not None]
        found = [[_exact(rules[place], g, out, inputs) for place in wanted] for g in (gradient, 1.0)] if rules else []
        if [*map(repr, found)] == [repr([row[place] for place in wanted]) for row in (contributions, visit["locals"])]:
            wanted_later = [each is not None or None for each in contributions]
            visit = {"node": visit["node"], "contributions": wanted_later, "locals": None}
        visits.append(visit)
        for place in wanted:
            gradients[node["operands"][place]] += contributions[place]
    return visits


def _exact(formula: Any, g: float, out: float, inputs: list[float]) -> float | None:
    """The number of a formula of exactly rounded operations; None of any other."""
    if not isinstance(formula, list):
        if isinstance(formula, str):
            return {"g": g, "out": out}[formula] if formula in ("g", "out") else inputs[int(formula)]
        return formula
    name, *operands = formula
    if name not in _EXACT:
        return None
    numbers = [_exact(operand, g, out, inputs) for operand in operands]
    if None in numbers:
        return None
    return float(_EXACT[name](*numbers))


_EXACT: dict[str, Any] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": lambda x, y: x / y if y else math.nan,  # no contribution of the engine: it raises
    "neg": operator.neg,
    "where": lambda condition, x, y: x if condition != 0.0 else y,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows with the same names, as a list for each name."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


HEIGHT = 640  # pixels of a frame


class InlinePage:
    """A page that a notebook shows below the cell.

    Args:
        title: of the page.
        html: its text, one HTML file, which is an attribute, too.

    Example:
        >>> InlinePage("A sum", "<p>1 + 1</p>")
        InlinePage('A sum')
    """

    def __init__(self, title: str, html: str) -> None:
        self.title, self.html = title, html

    def _repr_html_(self) -> str:
        """The frame; what is in it can run its own script and save pictures, and reach nothing of the notebook."""
        return (
            f'<iframe title="{_text(self.title)}" srcdoc="{escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{HEIGHT}" style="border: 1px solid #cfd7df; border-radius: 8px"></iframe>'
        )

    def __repr__(self) -> str:
        return f"InlinePage({self.title!r})"


def _text(title: str) -> str:
    return escape(title.encode("utf-8", "backslashreplace").decode())
