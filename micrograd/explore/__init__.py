"""Pages that play backpropagation: one file to open in a browser, with the graph and both passes through it.

    explore(loss, "loss.html")

formulas.py turns the derivative rules into formulas, tape.py writes both passes down, groups.py finds
the neurons and layers, arrangement.py has Graphviz lay them out, and page.py puts it all into page.html,
page.css and page.js, which are written by hand and need no build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.engine import Value

if TYPE_CHECKING:
    from micrograd.files import StrPath

NODE_LIMIT = 100_000  # a page of these is about 20 MB


def explore(root: Value, path: StrPath, title: str = "") -> None:
    """Write a page that steps through the graph under a Value, forward and backward.

    The page is one HTML file that needs nothing else: no network, no server. It is written whole or not
    at all. No gradient is changed.

    Args:
        root: the Value to backpropagate from, usually a loss.
        path: where to write; ends in ``.html``.
        title: of the page; the root's label where left out.

    Raises:
        TypeError: if root is not a Value, or title no string.
        ValueError: for another suffix, a graph with a cycle, or one of more than 100,000 Values.
        ImportError: if the extra ``micrograd[draw]`` is not installed.
        OSError: if the file cannot be written.

    Example:
        >>> import os, tempfile
        >>> x = Value(3.0, label="x")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explore(x * x + x, f"{folder}/square.html", title="A square and a sum")
        ...     os.listdir(folder)
        ['square.html']
    """
    import os

    from micrograd.explore.arrangement import arrange
    from micrograd.explore.page import page
    from micrograd.explore.tape import tape
    from micrograd.files import write_atomically

    if not isinstance(root, Value):
        raise TypeError(f"a page is made of a Value, not of {type(root).__name__}: {root!r:.80}")
    if not isinstance(title, str):
        raise TypeError(f"title must be a string, not {type(title).__name__}: {title!r:.80}")
    if os.path.splitext(path)[1].lower() not in (".html", ".htm"):
        raise ValueError(f"a page's file must end in .html: {os.fspath(path)!r}")
    recorded = tape(root)
    if (count := len(recorded["nodes"])) > NODE_LIMIT:
        raise ValueError(f"this graph has {count:,} Values, and a page holds {NODE_LIMIT:,}: explore a part of it")
    heading = title or (str(root.label) and f"Backpropagation through {root.label}") or "Backpropagation, step by step"
    write_atomically(path, page(heading, recorded | arrange(recorded)).encode())
