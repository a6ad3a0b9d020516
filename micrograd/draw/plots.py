"""Plots by matplotlib, as SVG that takes the colour of the page around it: dark on white, and white in the dark."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING, Any

from micrograd.draw.graph import svg
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

# Colours that people tell apart who see colours differently (Okabe and Ito 2008), on white and on black.
BLUE, ORANGE = "#0072b2", "#d55e00"
INK = "#010203"  # stands for the colour of the text around a plot
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "legend.fontsize": 9,  # on a phone of 360 pixels, 8 pixels
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: the browser has the letters that matplotlib's font lacks
    "svg.hashsalt": "micrograd",  # the same plot is the same file
    "text.parse_math": False,  # a label may be price ($)
}
MOST_DOTS = 1_000


def check_pictures() -> None:
    """Find out, before a long computation, whether its plots and graphs can be drawn.

    Raises:
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """
    try:
        import matplotlib.figure  # noqa: F401  # whether this works is the question
    except ImportError:
        raise ImportError("the pictures need matplotlib: pip install matplotlib") from None
    svg(Value(1.0))


def plot(draw: Callable[..., None], *what: Any, height: float = 3.75) -> str:
    """A plot as SVG to stand in a page; drawn without a window or a display.

    Args:
        draw: draws on a figure of matplotlib, its first argument.
        what: its other arguments.
        height: of the plot, in inches.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    picture = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # only measured here; the browser draws it
        draw(figure := Figure(figsize=(5.0, height), layout="constrained"), *what)
        for axes in figure.axes:
            _in_ink(axes)
        figure.savefig(picture, format="svg", metadata={"Date": None}, transparent=True)
    text = picture.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def _in_ink(axes: Any) -> None:
    from matplotlib.colors import same_color

    for line in axes.lines:  # scikit-learn draws some in black
        line.set_color(INK if same_color(line.get_color(), "black") else line.get_color())
    if axes.get_legend():
        axes.legend()


def draw_losses(figure: Any, batches: Any, validation: Any) -> None:
    """Draw how the loss fell: of each batch, in the mean of the last twentieth of them, and of rows not learned from.

    Args:
        figure: of matplotlib.
        batches: the loss of each step, a Series of pandas by the steps.
        validation: the loss of the other rows after some steps, another Series.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    mean = batches.rolling(max(1, len(batches) // 20), min_periods=1).mean()
    some = slice(None, None, math.ceil(len(batches) / MOST_DOTS))
    axes = figure.add_subplot(xlabel="step", ylabel="loss")
    axes.plot(batches[some], ".", color=BLUE, alpha=0.25, markeredgewidth=0, label="of a batch")
    axes.plot(mean[some], color=BLUE, label="running mean of the batches")
    axes.plot(validation, color=ORANGE, linewidth=2, label="of the test rows")
    inside = [*validation, *batches.quantile([0.02, 0.98])]  # one batch that is far off does not stretch the axis
    axes.set_ylim(0.9 * min(inside), 1.1 * max(inside))
    if 0 < 10 * min(inside) < max(inside):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()
