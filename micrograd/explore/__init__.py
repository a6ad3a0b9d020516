"""Pages that play backpropagation: one file to open in a browser, with the graph and both passes through it.

    explore(loss)                      # in a notebook
    explore(loss, "loss.html")
    explore(recording, "film.html")    # after fit(..., record=recording)

kernels.py opens the results of compiled functions, and kernel_values.py runs their kernels on Values. formulas.py turns
the derivative rules into formulas, and passes.py writes both passes down, with the tree of boxes of
micrograd/draw/folding. film.py adds a training run and laboratory.py what a page needs to train on by itself,
arrangement.py has Graphviz lay the boxes out one by one, and page.py puts it all into page.html, with the styles and
scripts that it lists. They are written by hand and need no build. inline.py is a page in
a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from micrograd.engine.value import Value
from micrograd.training.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from micrograd._support.files import StrPath
    from micrograd.explore.inline import InlinePage

NODE_LIMIT = 100_000  # a page of these is about 20 MB


@overload
def explore(
    root: Value | Recording, path: StrPath, title: str = "", inputs: Mapping[str, Any] | None = None
) -> None: ...


@overload
def explore(
    root: Value | Recording, path: None = None, title: str = "", inputs: Mapping[str, Any] | None = None
) -> InlinePage: ...


def explore(
    root: Value | Recording, path: StrPath | None = None, title: str = "", inputs: Mapping[str, Any] | None = None
) -> InlinePage | None:
    """A page that steps through the graph under a Value, forward and backward; or the film of a training.

    A film shows the training that fit recorded, and trains on in the page. For that the loss of each example is
    computed once more here.

    The page is one HTML file that needs nothing else: no network, no server. It is written whole or not
    at all. No number and no gradient of the graph is changed.

    Args:
        root: the Value to backpropagate from, usually a loss; or a Recording, which fit filled.
        path: where to write; ends in ``.html``. Without one, a notebook shows the page.
        title: of the page; one is made up where left out.
        inputs: what to draw as one box, by name. The shape of what the first layer takes, as in
            ``{"image": (8, 8)}``, or the Values themselves, in nested lists or an array.

    Returns:
        Without a path, an object that a notebook shows as the page, and whose ``html`` is its text.

    Raises:
        TypeError: if root is neither, title no string, or inputs no dict of names.
        ValueError: for another suffix, a graph with a cycle or of more than 100,000 Values, a recording of nothing,
            or inputs of another size than the first layer takes.
        ImportError: if graphviz or pygraphviz is not installed.
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

    from micrograd._support.files import write_atomically
    from micrograd.draw.array_steps import opened_arrays
    from micrograd.explore.arrangement import arrange
    from micrograd.explore.film import film
    from micrograd.explore.inline import InlinePage
    from micrograd.explore.kernels import opened_calls
    from micrograd.explore.page import page
    from micrograd.explore.passes import NO_INPUTS, passes

    inputs = NO_INPUTS if inputs is None else inputs
    if not isinstance(title, str):
        raise TypeError(f"title must be a string, not {type(title).__name__}: {title!r:.80}")
    if path is not None and os.path.splitext(path)[1].lower() not in (".html", ".htm"):
        raise ValueError(f"a page's file must end in .html: {os.fspath(path)!r}")
    if isinstance(root, Recording):
        title, data = title or "Training, step by step", film(root, inputs)
    elif isinstance(root, Value):
        named = f"Backpropagation through {root.label}" if root.label else "Backpropagation, step by step"
        with opened_arrays(root), opened_calls(root, NODE_LIMIT) as opened:
            title, (data, _) = title or named, passes(root, opened, inputs)
    else:
        said = " (of a compiled function, give a result: the page has a box for its kernels)" * hasattr(root, "explain")
        raise TypeError(f"a page is made of a Value or a Recording, not of {type(root).__name__}: {root!r:.80}{said}")
    if (count := len(data["nodes"])) > NODE_LIMIT:
        raise ValueError(f"this graph has {count:,} Values, and a page holds {NODE_LIMIT:,}: explore a part of it")
    text = page(title, data | arrange(data))
    if path is None:
        return InlinePage(title, text)
    write_atomically(path, text.encode())
    return None
