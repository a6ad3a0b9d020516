"""The colours and letters of pictures, and how Graphviz is to lay them out."""

from __future__ import annotations

INK, GREY, PALE = "#1f2933", "#616e7c", "#e9edf1"
POSITIVE, NEGATIVE, NOT_A_NUMBER = "#0072b2", "#d55e00", "#cc79a7"  # told apart by the colour-blind too
WARNING = "#a33c00"
FONT = "Helvetica,Arial,sans-serif"  # all three have letters of the same widths, so numbers stay flush right

NODE = {"shape": "plain", "fontname": FONT, "fontsize": "11", "fontcolor": INK}
EDGE = {"color": GREY, "arrowsize": "0.6"}
STRAIGHT_FROM = 10_000  # layers that arrows pass


def mixed(colour: str, share: float) -> str:
    """A colour of which this share is left; the rest is white.

    Example:
        >>> mixed("#0072b2", 0.5)
        '#80b8d8'
    """
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in bytes.fromhex(colour[1:]))


def graph_style(nodes: int, layers: int, format: str) -> dict[str, str]:  # noqa: A002  # Graphviz's name for it
    """The attributes of a picture.

    Args:
        nodes: how many there are in it.
        layers: how many layers of it the arrows pass together.
        format: of the file.
    """
    # Without a bound on these two, Graphviz may improve the layout of a hundred nodes for minutes, unseen.
    effort = f"{min(30.0, 5e6 / (nodes * (layers + 1))):.3g}"
    style = {
        "nslimit": effort,
        "nslimit1": effort,
        "ranksep": "0.3",
        "nodesep": "0.15",
        "pad": "0.15",
        "bgcolor": "white",
        "fontname": FONT,
        "fontsize": "11",
        "labelloc": "b",
        "labeljust": "l",
    }
    if layers > STRAIGHT_FROM:
        style |= {"splines": "line", "mclimit": "0.1"}
    # For screens with two pixels a point. At most 40 inches a side, which is a bitmap of a quarter of a gigabyte.
    return style | {"dpi": "192", "size": "40,40"} if format == "png" else style
