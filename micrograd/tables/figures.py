"""The pictures of a report, in the colours of the page around them: scikit-learn's displays, where it has one."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay, RocCurveDisplay

from micrograd.draw.graph import svg as graph
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.tables.study import Study

# Colours that people tell apart who see colours differently (Okabe and Ito 2008), on white and on black.
BLUE, ORANGE = "#0072b2", "#d55e00"
INK = "#010203"  # stands for the colour of the text around a picture
STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "legend.fontsize": "small",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: the browser has the letters that matplotlib's font lacks
    "svg.hashsalt": "micrograd",  # the same picture is the same file
    "text.parse_math": False,  # a column may be named price ($)
}
MOST_BARS = 15
MOST_CLASSES = 20  # for whose counts there is room
MOST_DOTS = 1_000


def check() -> None:
    """Find out, before a training, whether pictures and pages can be drawn.

    Raises:
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """
    try:
        import matplotlib.figure  # noqa: F401  # whether this works is the question
    except ImportError:
        raise ImportError("the pictures need matplotlib: pip install matplotlib") from None
    graph(Value(1.0))


def svg(draw: Callable[..., None], *what: Any, height: float = 3.75) -> str:
    """A picture of this height in inches, to stand in a page; drawn without a window or a display.

    Args:
        draw: one of the functions below, or another that draws on a figure.
        what: its other arguments.
        height: of the picture.
    """
    import matplotlib as mpl
    import matplotlib.colors
    from matplotlib.figure import Figure

    picture = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # only measured here; the browser draws it
        draw(figure := Figure(figsize=(5.0, height), layout="constrained"), *what)
        for axes in figure.axes:
            for line in axes.lines:  # scikit-learn draws some in black
                line.set_color(INK if mpl.colors.same_color(line.get_color(), "black") else line.get_color())
            if axes.get_legend():
                axes.legend()
        figure.savefig(picture, format="svg", metadata={"Date": None}, transparent=True)
    text = picture.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def course(figure: Any, batches: list[float], validation: pd.Series) -> None:
    """How the loss fell: of each batch, in the mean of a twentieth of them, and of the test rows by the step."""
    from matplotlib.ticker import LogLocator, NullFormatter

    losses = pd.Series(batches, range(1, len(batches) + 1))
    mean = losses.rolling(max(1, len(losses) // 20), min_periods=1).mean()
    some = slice(None, None, math.ceil(len(losses) / MOST_DOTS))
    axes = figure.add_subplot(xlabel="step", ylabel="loss")
    axes.plot(losses[some], ".", color=BLUE, alpha=0.25, markeredgewidth=0, label="of a batch")
    axes.plot(mean[some], color=BLUE, label="running mean of the batches")
    axes.plot(validation, color=ORANGE, linewidth=2, label="of the test rows")
    inside = [*validation, *losses.quantile([0.02, 0.98])]  # one batch that is far off does not stretch the axis
    axes.set_ylim(0.9 * min(inside), 1.1 * max(inside))
    if 0 < 10 * min(inside) < max(inside):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()


def predictions(figure: Any, rows: pd.DataFrame, study: Study) -> None:
    """The test rows: right and predicted classes, or how far predicted numbers are off."""
    from matplotlib.colors import LinearSegmentedColormap

    axes = figure.add_subplot()
    if study.of_classes:
        classes = sorted(study.training[study.target].unique())
        names = {"labels": classes, "display_labels": [*map(_short, classes)], "xticks_rotation": 90}
        blues = LinearSegmentedColormap.from_list("", [f"{BLUE}00", f"{BLUE}90"])  # lets the page show through
        looks = {"include_values": len(classes) <= MOST_CLASSES, "text_kw": {"color": INK}, "colorbar": False}
        ConfusionMatrixDisplay.from_predictions(rows["right"], rows["predicted"], **names, **looks, cmap=blues, ax=axes)
        axes.set(xlabel=f"predicted {study.target:.24}", ylabel=f"right {study.target:.24}")
    else:
        shown = {"kind": "residual_vs_predicted", "subsample": MOST_DOTS, "random_state": 0}
        PredictionErrorDisplay.from_predictions(rows["right"], rows["predicted"], **shown, ax=axes)
        axes.set(xlabel=f"predicted {study.target:.40}", ylabel="right minus predicted")


def two_classes(figure: Any, rows: pd.DataFrame) -> None:
    """Of two classes: what each threshold finds, and what predicted probabilities are worth."""
    (above, below), second = figure.subplots(2, 1), max(rows["right"])
    given = {"y_true": rows["right"], "pos_label": second}
    RocCurveDisplay.from_predictions(**given, y_score=rows["probability"], plot_chance_level=True, name="ROC", ax=above)
    given |= {"n_bins": int(np.clip(len(rows) // 10, 2, 10)), "strategy": "quantile", "name": "this network"}
    CalibrationDisplay.from_predictions(**given, y_prob=rows["probability"], ax=below)
    above.set(xlabel="wrongly taken for it", ylabel=f"found of {second:.24}")
    below.set(xlabel=f"predicted probability of {second:.24}", ylabel="how often it is")


def importance(figure: Any, by_column: pd.Series) -> None:
    """How much each column matters, those that matter most at the top."""
    axes = figure.add_subplot(xlabel="how much worse when it is shuffled")
    axes.barh(range(len(by_column)), by_column[::-1], color=BLUE)
    axes.set_yticks(range(len(by_column)), map(_short, by_column.index[::-1]))


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
