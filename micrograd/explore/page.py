"""One self-contained file: the templates beside this module, with their data put in.

Nothing in a page comes from elsewhere, and its own content security policy says so to the browser: no
request leaves it, and no script runs in it but the one that is shipped here, whose digest it names.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from micrograd.draw.text import visible


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
    template, style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    shown = escape("".join(map(visible, title)))
    # In JSON < is in strings only, and may be written as an escape. So no label can end the script
    embedded = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "TITLE": shown,
        "STYLE DIGEST": _digest(style),
        "SCRIPT DIGEST": _digest(script),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": embedded,
    }
    first, *rest = template.split("<!--")  # in one pass, so that what is put in is not searched again
    return first + "".join(parts[name.strip()] + after for name, _, after in (part.partition("-->") for part in rest))


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
