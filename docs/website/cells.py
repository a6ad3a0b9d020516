"""The Python blocks of a page: which of them run on it, and what they gave when the site was built."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w*)(?: *\{(?P<marks>[^}\n]*)\})? *$")
PROMISE = re.compile(r"^(\s*print\(.*\))  # .*$", re.MULTILINE)  # what is printed: it stands below the cell, too
FILES = {"picture": ".svg", "page": ".html", "html": ".html"}


class Block(NamedTuple):
    """A fenced block of a page: where it stands, and what it says."""

    first: int  # its lines: that of the opening fence, and the one after the closing fence
    after: int
    language: str
    marks: tuple[str, ...]
    code: str


class Output(NamedTuple):
    """Something that a cell gave: a text, a picture, a page ..."""

    kind: str
    text: str
    name: str


class CellError(Exception):
    """A cell raised an error when the site was built."""


def blocks(text):
    """The fenced blocks of a page that begin at the left margin.

    Example:
        >>> [(block.language, block.marks, block.code) for block in blocks("```python {.recorded}\\nx = 1\\n```\\n")]
        [('python', ('.recorded',), 'x = 1\\n')]
    """
    lines, found, number = text.splitlines(keepends=True), [], 0
    while number < len(lines):
        opening = FENCE.match(lines[number].rstrip("\n"))
        number += 1
        if opening is None:
            continue
        first, code = number - 1, []
        while number < len(lines) and lines[number].strip() != opening["ticks"]:
            code.append(lines[number])
            number += 1
        number += 1
        marks = tuple((opening["marks"] or "").split())
        found.append(Block(first, number, opening["language"], marks, "".join(code)))
    return found


def place_of(part, text):
    """The number of the cell of a page that has a part in its code, from 1; None for none.

    Example:
        >>> place_of("y", "```python\\nx\\n```\\n```python {.recorded}\\ny\\n```\\n```python\\ny\\n```\\n")
        2
    """
    codes = [block.code for block in blocks(text) if block.language == "python" and ".recorded" not in block.marks]
    return next((number for number, code in enumerate(codes, 1) if part in code), None)


def recorded(path, text):
    """What each Python block of a page gives, run from first to last in a process of its own.

    Args:
        path: of the page, for messages.
        text: of the page.

    Returns:
        A list of Outputs for each Python block.

    Raises:
        CellError: if a block raises.
    """
    codes = [block.code for block in blocks(text) if block.language == "python"]
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("MICROGRAD_", "XDG_"))}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE.parents[1]), *sys.path[1:]])
    with tempfile.TemporaryDirectory() as home:  # a page may keep something there, as it does in a browser
        run = subprocess.run(
            [sys.executable, str(HERE / "record.py")],
            input=json.dumps(codes),
            env=environment | {"HOME": home},
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode != 0:
        raise CellError(f"{path}: a block of Python cannot be run:\n{run.stderr}")
    return [[Output(*output) for output in outputs] for outputs in json.loads(run.stdout)]


def with_cells(text, outputs, name, folder, *, up=""):
    """A page in whose text each Python block is a cell.

    Args:
        text: of the page.
        outputs: what recorded() gives for it.
        name: of the page, which its recorded files begin with.
        folder: where recorded pictures and pages are written.
        up: the way from the page to the folder that holds "recorded".

    Returns:
        The text, with each block in an element that the page's script makes a cell of.
    """
    lines, given, made, end, count = text.splitlines(keepends=True), iter(outputs), [], 0, 0
    for number, block in enumerate((block for block in blocks(text) if block.language == "python"), 1):
        made += lines[end : block.first]
        kind = "cell-recorded" if ".recorded" in block.marks else "cell"
        count += kind == "cell"
        anchor = f' id="cell-{count}"' if kind == "cell" else ""
        shown = [_element(output, f"{name}-{number}-{place}", folder, up) for place, output in enumerate(next(given))]
        code = PROMISE.sub(r"\1", block.code)
        made.append(
            f'<div class="{kind}"{anchor} markdown="1">\n<div class="cell-code" markdown="1">\n\n'
            f"```python\n{code}```\n\n</div>\n"
            f'<div class="cell-outputs">{"".join(shown)}</div>\n</div>\n'
        )
        end = block.after
        _drop_picture(lines, end, {output.name for output in outputs[number - 1]})
    return "".join(made + lines[end:])


def _drop_picture(lines, start, names):
    """Blank the picture that follows a cell, if the cell has shown that file already: it is for readers of the file."""
    following = next((place for place in range(start, len(lines)) if lines[place].strip()), None)
    if following is not None:
        found = re.match(r"!\[[^\]]*\]\((?:[^)]*/)?([^)/]+)\)$", lines[following].rstrip())
        if found and found[1] in names:
            lines[following] = "\n"


def _element(output, name, folder, up):
    if output.kind in ("text", "warning", "error"):
        text = escape(output.text).replace("\n", "&#10;")  # on one line, so that Markdown leaves it alone
        return f'<pre data-kind="{output.kind}" tabindex="0"><code>{text}</code></pre>'
    file = name + FILES[output.kind]
    text = output.text
    if output.kind == "html":
        text = f'<!doctype html><meta charset="utf-8"><style>body{{font:14px system-ui}}</style>{text}'
    (folder / file).write_text(text, encoding="utf-8")
    address, title = f"{up}recorded/{file}", escape(output.name, quote=True)
    if output.kind == "picture":
        return f'<figure data-kind="picture" tabindex="0"><img src="{address}" alt="picture: {title}"></figure>'
    rights = 'sandbox="allow-scripts allow-downloads"' if output.kind == "page" else 'sandbox=""'
    return f'<iframe data-kind="{output.kind}" src="{address}" title="{title}" {rights} loading="lazy"></iframe>'
