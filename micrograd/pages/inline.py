"""A page inside of a notebook: a frame that holds its whole text, also where no file can be opened."""

from __future__ import annotations

from html import escape

HEIGHT = 640  # pixels


class InlinePage:
    """A page that a notebook shows below the cell.

    Args:
        title: of the page.
        html: its text.

    Attributes:
        html: the text of the page, one HTML file.

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
