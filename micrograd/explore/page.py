"""One self-contained file: the template, styles and scripts beside this module, with their data put in.

Nothing in a page comes from elsewhere, and its own content security policy says so to the browser: no
request leaves it, and no script runs in it but the one that is shipped here, whose digest it names.
"""

from __future__ import annotations

import json
from base64 import b64encode
from gzip import compress
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from micrograd.draw.text import enclosed
from micrograd.explore.derived import without_derived

# The script of a page is one text: these files, one after the other. Each uses what is above it when the page
# starts; inside of its functions it may use all of them.
SCRIPTS = (
    "page",  # the data, and the constants
    "names",  # numbers and names
    "evaluator",  # the primitives on floats, and formulas made of them
    "deriving",  # what a large page leaves out
    "words",  # formulas in words
    "steps",  # the steps of both passes, and the gradients at each
    "order",  # of turns: the right one, or a wrong one to see what goes wrong
    "births",  # where a number that is not finite comes from
    "folding",  # which groups are open, and which member of a stack is shown
    "wrapping",  # rows that are too long for the page
    "arrangement",  # the room that everything takes
    "elements",  # of SVG and HTML
    "drawing",  # the items in their places
    "strips",  # many numbers as colours
    "painting",  # what the step changes in the drawing
    "shares",  # where a gradient comes from
    "explanation",  # the step and the Value in words
    "editing",  # another number for a leaf
    "asking",  # for shares, before they are shown
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
    "sampling",  # words that the program makes up
    "trying",  # a word and the temperature, as one likes
    "moments",  # the same at each moment of a training, with words that are made up
    "sequence",  # all of it, and what the controls move
)
FILM = (  # before the start of a page that shows a training
    "random",  # Python's random numbers
    "training",  # what fit does, from the formulas
    "datasets",  # points to train on
    "course",  # the moments of a training, recorded or added by the page
    "losses",  # the curve
    "maps",  # what neurons say of each place of the plane
    "plane",  # the map with the points
    "network",  # the neurons with their maps, the edges with their weights
    "update",  # the step of the optimiser in words
    "laboratory",  # the settings of a training in the page
    "timeline",  # going through the moments of a training
    "example",  # one step: the graph with the numbers of a moment
    "film",  # what is shown of a training, and what the controls move
)


MOST_PLAIN = 1_000_000  # characters of data: a page with more has it compressed, and unpacks it before it starts
MOST_PACKED = 1_000_000  # of compressed data: a page with more leaves out what it can compute


def page(title: str, data: dict[str, Any]) -> str:
    """The text of the HTML file.

    Args:
        title: shown as typed, on the page and on its tab.
        data: what the script finds; anything that JSON holds.

    Example:
        >>> "&lt;b&gt;" in page("<b>", {}), "<b>" in page("<b>", {})
        (True, False)
    """
    folder = files("micrograd.explore")
    template = folder.joinpath("page.html").read_text("utf-8")
    parts = [(name, scripts) for name, scripts in (("sequence", SEQUENCE), ("film", FILM)) if data.get(name)]
    styles = ["page", *(name for name, _ in parts)]
    scripts = [*SCRIPTS[:-1], *(script for _, added in parts for script in added), SCRIPTS[-1]]
    style = "\n".join(folder.joinpath(f"{name}.css").read_text("utf-8") for name in styles)
    script = "".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in scripts)
    if len(embedded := _embedded(data)) <= MOST_PLAIN:
        return _put_together(template, style, [script], f"<script>{script}</script>", title, embedded)
    if len(embedded := _packed(data)) > MOST_PACKED:
        embedded = _packed(without_derived(data))
    unpacking = folder.joinpath("unpacking.js").read_text("utf-8")
    element = f'<script type="text/plain" id="script">{script}</script>\n<script>{unpacking}</script>'
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


def _packed(data: dict[str, Any]) -> str:
    """The data compressed, with what is alike together."""
    columns = {name: _columns(data[name]) for name in ("nodes", "turns")}
    text = json.dumps({**data, **columns}, separators=(",", ":"), allow_nan=False)
    return b64encode(compress(text.encode(), mtime=0)).decode()


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


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows with the same names, as a list for each name."""
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
