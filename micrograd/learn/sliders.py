"""A page with sliders: a picture for each of their positions, drawn beforehand by a function."""

from __future__ import annotations

import math
import os
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST = 2_000  # pictures of a page


def sliders(path: str | os.PathLike[str], title: str, draw: Callable[..., str], /, **choices: Iterable[Any]) -> None:
    """Write a page with sliders that choose one of many pictures.

    The page is one HTML file that needs nothing else. All its pictures are drawn now, one for each position of the
    sliders, from numbers that Python computes.

    Args:
        path: where to write; ends in ``.html``.
        title: of the page.
        draw: returns a picture, as the text of an SVG element, for one choice of each slider: ``draw(spread=0.5)``.
        **choices: the name of each slider, with its choices: numbers or strings, from left to right.

    Raises:
        TypeError: if draw returns something else.
        ValueError: for another suffix, no slider, a slider with nothing to choose, or more than 2,000 pictures.
        OSError: if the file cannot be written.

    Example:
        >>> import tempfile
        >>> def circle(radius):
        ...     return f'<svg viewBox="-9 -9 18 18"><circle r="{radius}"/></svg>'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sliders(f"{folder}/circle.html", "A circle", circle, radius=[1, 2, 4, 8])
        ...     os.listdir(folder)
        ['circle.html']
    """
    from micrograd._support.files import write_atomically
    from micrograd.pages.page import filled

    if os.path.splitext(path)[1].lower() not in (".html", ".htm"):
        raise ValueError(f"a page's file must end in .html: {os.fspath(path)!r}")
    listed = {name: list(of) for name, of in choices.items()}
    count = math.prod(len(of) for of in listed.values()) if listed else 0
    if not 0 < count <= MOST:
        raise ValueError(f"sliders need from 1 to {MOST:,} pictures, not {count:,}: name what each chooses from")
    pictures = [draw(**dict(zip(listed, chosen, strict=True))) for chosen in product(*listed.values())]
    for picture in pictures:
        if not isinstance(picture, str) or not picture.lstrip().startswith("<svg"):
            raise TypeError(f"a picture is the text of an SVG element, not {type(picture).__name__}: {picture!r:.80}")
    folder = files("micrograd.learn")
    template, style, script = (folder.joinpath(f"sliders.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    shown = [(name, [f"{one:g}" if isinstance(one, float) else str(one) for one in of]) for name, of in listed.items()]
    data = {"title": title, "sliders": shown, "pictures": pictures}
    write_atomically(path, filled(template, style, script, title, data).encode())
