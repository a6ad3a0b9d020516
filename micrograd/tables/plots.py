"""The plots of a report, as SVG: how the loss fell, which class was taken for which, predicted against true."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# Colours that people tell apart who see colours differently (Okabe and Ito 2008).
BLUE, ORANGE, DARK = "#0072b2", "#d55e00", "#333333"
STYLE: Any = {  # matplotlib types each of its keys
    "axes.edgecolor": "#bbbbbb",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "svg.fonttype": "none",  # text stays text: the browser has the letters that matplotlib's font lacks
    "svg.hashsalt": "micrograd",  # the same picture is the same file
    "text.parse_math": False,  # a column may be named price ($)
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST_COUNTS = 20  # classes for whose confusions there is room in numbers
_LONGEST_NAME = 18


def check() -> None:
    """Find out whether plots can be drawn.

    Raises:
        ImportError: if matplotlib is not installed, naming it.
    """
    try:
        import matplotlib.figure  # noqa: F401  # whether this works is the question
    except ImportError:
        raise ImportError("the plots need matplotlib: pip install matplotlib") from None


def loss(losses: Sequence[float], guessing: float, name: str) -> bytes:
    """The loss of each step as a dot, and its running mean as a line.

    Args:
        losses: of the steps.
        guessing: the loss of one that always guesses the usual.
        name: of the loss.
    """
    means, mean = [], losses[0]
    for number in losses:
        mean += 0.05 * (number - mean)
        means.append(mean)
    steps = range(1, len(losses) + 1)

    def draw(figure: Any) -> None:
        scale = "log" if min(losses) > 0 else "linear"
        axes = figure.add_subplot(xlabel="step", ylabel=name, yscale=scale)
        axes.plot(steps, losses, ".", color=BLUE, alpha=0.25, markeredgewidth=0, label="one batch")
        axes.plot(steps, means, color=BLUE, linewidth=2, label="running mean")
        axes.axhline(guessing, color=ORANGE, linewidth=1, linestyle="--", label="guessing")
        label_plainly(axes.yaxis)
        axes.legend(frameon=False)

    return _svg(draw, 7, 4)


def label_plainly(axis: Any) -> None:
    """Label a logarithmic axis in one way: 0.001, 0.01, 0.1, or 10⁻⁵, 10⁻⁴, 10⁻³; a linear axis stays as it is.

    Args:
        axis: of matplotlib, with everything drawn already.
    """
    if axis.get_scale() != "log":
        return
    low, high = axis.get_view_interval()
    with_powers = low <= 1e-5 or high >= 1e6  # where shorter numbers would have an exponent

    def label(number: float, _: Any = None) -> str:
        if not with_powers:
            return f"{number:g}"
        factor, exponent = f"{number:.3e}".split("e")
        power = f"10{str(int(exponent)).translate(SUPERSCRIPT)}"
        return power if float(factor) == 1 else f"{float(factor):g}·{power}"

    axis.set_major_formatter(label)
    axis.set_minor_formatter(label if high < 10 * low else lambda number, _: "")  # where a power of 10 is far


def confusion(classes: Sequence[str], counts: Sequence[Sequence[int]], target: str) -> bytes:
    """How often each class was taken for each: rightly in blue, wrongly in orange.

    Args:
        classes: their names.
        counts: a row for each right class, with a number for each predicted one.
        target: the name of the column.
    """
    size = len(classes)
    names = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in classes]

    def draw(figure: Any) -> None:
        from matplotlib.patches import Rectangle

        axes = figure.add_subplot(xlabel=f"predicted {target:.24}", ylabel=f"true {target:.24}")
        axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(size), names, rotation=90 if max(map(len, names)) > 3 and size > 4 else 0)
        axes.set_yticks(range(size), names)
        axes.spines[:].set_visible(False)
        for right, row in enumerate(counts):
            for guess, count in enumerate(row):
                strength = count / (sum(row) or 1)
                color, alpha = BLUE if right == guess else ORANGE, 0.15 + 0.85 * strength if count else 0.03
                axes.add_patch(Rectangle((guess - 0.47, right - 0.47), 0.94, 0.94, color=color, alpha=alpha, lw=0))
                if count and size <= _MOST_COUNTS:
                    ink = "white" if strength > 0.5 else DARK
                    axes.text(guess, right, count, ha="center", va="center", color=ink)

    side = min(max(4.0, 2 + 0.5 * size), 14.0)
    return _svg(draw, side, side)


def scatter(wanted: Sequence[float], predicted: Sequence[float], target: str) -> bytes:
    """Predicted against true numbers, and the line on which they are equal.

    Args:
        wanted: the true numbers.
        predicted: those predicted for them.
        target: the name of the column.
    """

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(aspect="equal", adjustable="datalim")
        axes.set(xlabel=f"true {target:.40}", ylabel=f"predicted {target:.40}")
        axes.axline((wanted[0], wanted[0]), slope=1, color=ORANGE, linewidth=1, linestyle="--", label="equal")
        axes.plot(wanted, predicted, "o", color=BLUE, alpha=0.5, markersize=5, markeredgewidth=0, label="a test row")
        axes.legend(frameon=False)

    return _svg(draw, 6, 6)


def _svg(draw: Any, width: float, height: float) -> bytes:
    """A picture of this size in inches, drawn without a window or a display."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    picture = io.BytesIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # only measured here; the browser draws it
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
