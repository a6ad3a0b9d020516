"""Pages that play backpropagation: one file to open in a browser, with the graph and both passes through it.

    explore(loss)                      # in a notebook
    explore(loss, "loss.html")
    explore(fast, "kernels.html")      # the last call of a compiled function
    explore(recording, "training.html")    # after fit(..., record=recording)

kernels.py opens the results of compiled functions, and kernel_values.py runs their kernels on Values. formulas.py turns
the derivative rules into formulas, and passes.py writes both passes down, with the tree of boxes of
micrograd/draw/folding. recording.py adds a training run and laboratory.py what a page needs to train on by itself,
softmaxes.py, lookups.py, blocks.py and sequences.py find what a program that reads letters or words is made of,
arrangement.py has Graphviz lay the boxes out one by one, and page.py puts it all into page.html, with the styles and
scripts that it lists. They are written by hand and need no build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from micrograd._support.checks import check_type
from micrograd.engine.value import Value
from micrograd.training.recording import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from micrograd._support.files import StrPath
    from micrograd.compiler.calling.function import CompiledFunction
    from micrograd.pages.page import InlinePage

    Compiled = CompiledFunction[..., Any]

NODE_LIMIT = 100_000  # a page of these is about 20 MB


@overload
def explore(
    root: Value | Recording | Compiled,
    path: StrPath,
    title: str = "",
    inputs: Mapping[str, Any] | None = None,
    classes: Sequence[str] | None = None,
    tokens: Sequence[str | int] | None = None,
) -> None: ...


@overload
def explore(
    root: Value | Recording | Compiled,
    path: None = None,
    title: str = "",
    inputs: Mapping[str, Any] | None = None,
    classes: Sequence[str] | None = None,
    tokens: Sequence[str | int] | None = None,
) -> InlinePage: ...


def explore(
    root: Value | Recording | Compiled,
    path: StrPath | None = None,
    title: str = "",
    inputs: Mapping[str, Any] | None = None,
    classes: Sequence[str] | None = None,
    tokens: Sequence[str | int] | None = None,
) -> InlinePage | None:
    """Write a page that steps through the graph under a Value, forward and backward, or through a recorded training.

    For a compiled function, it shows the kernels of the last call, with their shapes and scalars. For a recording, it
    shows the training, and can continue it on the page. For that, the loss of each example is computed once more
    here.

    The page is one HTML file that needs no network and no server. It is written completely or not at all. No number
    and no gradient of the graph changes.

    Args:
        root: the Value to backpropagate from, usually a loss; or a compiled function, for its result or the sum of its
            results; or a Recording that fit filled.
        path: where to write; ends in ``.html``. Without one, a notebook shows the page.
        title: of the page; by default one is generated.
        inputs: what to draw as one group, by name. Either the shape of the first layer's inputs, as in
            ``{"image": (8, 8)}``, or the Values themselves, in nested lists or an array.
        classes: the names of the classes of a softmax, such as ``["cat", "dog"]``; for a program that reads
            letters, ``[".", "a", "b", "c"]``, also the names of its tokens.
        tokens: for a program that reads words, those to show first, by name or number, without the marks around them:
            ``"ab"``. The graph must be that of a word at least as long, which is the longest that you can type on
            the page.

    Returns:
        Without a path, an object that a notebook shows as the page; its ``html`` is the text.

    Raises:
        TypeError: if root is none of these, title no string, inputs no dict of names, classes no strings, or tokens
            no strings and numbers; for tokens of a Recording.
        ValueError: for another suffix, a graph with a cycle or of more than 100,000 Values, a recording of nothing,
            a compiled function that has not been called or has too many terms for a page, inputs of another size
            than the first layer takes, another number of classes, or tokens that the program cannot read.
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
    from micrograd.pages.arrangement import arrange
    from micrograd.pages.kernels import opened_calls
    from micrograd.pages.page import InlinePage, page
    from micrograd.pages.passes import NO_INPUTS, passes
    from micrograd.pages.recording import of_recording

    inputs, classes = NO_INPUTS if inputs is None else inputs, [] if classes is None else list(classes)
    check_type(isinstance(title, str), "title must be a string", title)
    if (odd := next((name for name in classes if not isinstance(name, str)), None)) is not None:
        raise TypeError(f"a class is named by a string, not by {type(odd).__name__}: {odd!r:.80}")
    tokens = [] if tokens is None else list(tokens)
    if (strange := next((token for token in tokens if not isinstance(token, (str, int))), None)) is not None:
        raise TypeError(f"a token is a string or a number, not {type(strange).__name__}: {strange!r:.80}")
    if path is not None and os.path.splitext(path)[1].lower() not in (".html", ".htm"):
        raise ValueError(f"a page's file must end in .html: {os.fspath(path)!r}")
    if isinstance(root, Recording):
        if tokens:
            raise TypeError("tokens are for the page of a Value: that of a Recording shows its longest example")
        title, data = title or "Training, step by step", of_recording(root, inputs, classes)
    elif isinstance(root, Value):
        named = f"Backpropagation through {root.label}" if root.label else "Backpropagation, step by step"
        with opened_arrays(root), opened_calls(root, NODE_LIMIT) as opened:
            title, (data, _) = title or named, passes(root, opened, inputs, classes, tokens)
    elif hasattr(root, "last_call"):
        result, arguments = root.last_call()
        with opened_calls(result, NODE_LIMIT) as opened:
            if not (opened.elements or opened.asked):
                raise ValueError(f"the last call of {root!r} has no kernels, or more terms than a page holds")
            data, _ = passes(result, opened, inputs or arguments, classes, tokens)
        title = title or f"The kernels of {root.__name__}"
    else:
        raise TypeError(
            f"a page is made of a Value, a compiled function or a Recording, not of {type(root).__name__}: {root!r:.80}"
        )
    if (count := len(data["nodes"])) > NODE_LIMIT:
        raise ValueError(f"this graph has {count:,} Values, and a page holds {NODE_LIMIT:,}: explore a part of it")
    text = page(title, data | arrange(data))
    if path is None:
        return InlinePage(title, text)
    write_atomically(path, text.encode())
    return None
