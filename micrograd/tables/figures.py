"""The pictures of a report, in the colours of the page around them: scikit-learn's displays, where it has one."""

from __future__ import annotations

import io
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from micrograd.draw.graph import svg as graph
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.pipeline import Pipeline

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


def course(figure: Any, losses: dict[str, Any]) -> None:
    """How the loss fell: of each batch, in the mean of some, and of the rows tested on beside those learned from."""
    batches = pd.Series(losses["batches"], range(1, len(losses["batches"]) + 1))
    means = batches.rolling(max(1, len(batches) // 20), min_periods=1).mean()
    # One batch that is far off does not stretch the axis
    inside = [*losses["learned from"], *losses["tested on"], *batches.quantile([0.02, 0.98])]
    far = 0 < 10 * min(inside) < max(inside)
    axes = figure.add_subplot(xlabel="step", ylabel="loss", yscale="log" if far else "linear")
    some = slice(None, None, math.ceil(len(batches) / MOST_DOTS))
    axes.plot(batches[some], ".", color=BLUE, alpha=0.25, markeredgewidth=0, label="of a batch")
    axes.plot(means[some], color=BLUE, linewidth=1, label="running mean")
    axes.plot(losses["steps"], losses["learned from"], ":", color=BLUE, label="of the rows learned from")
    axes.plot(losses["steps"], losses["tested on"], color=ORANGE, linewidth=2, label="of the rows tested on")
    axes.set_ylim(0.9 * min(inside), 1.1 * max(inside))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend()


def predictions(figure: Any, pipeline: Pipeline, study: Study) -> None:
    """The test rows: right and predicted classes, or how far predicted numbers are off."""
    from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

    (inputs, right), axes = study.parts(study.test), figure.add_subplot()
    if study.of_classes:
        classes, few = pipeline.classes_, len(pipeline.classes_) <= MOST_CLASSES
        names = {"labels": classes, "display_labels": list(map(_short, classes)), "xticks_rotation": 90}
        looks = {"cmap": "Blues", "colorbar": False, "include_values": few}
        ConfusionMatrixDisplay.from_estimator(pipeline, inputs, right, **names, **looks, ax=axes)
        axes.set(xlabel=f"predicted {study.target:.24}", ylabel=f"right {study.target:.24}")
    else:
        PredictionErrorDisplay.from_estimator(pipeline, inputs, right, kind="residual_vs_predicted", ax=axes)
        axes.set(xlabel=f"predicted {study.target:.40}", ylabel="right minus predicted")


def two_classes(figure: Any, pipeline: Pipeline, study: Study) -> None:
    """Of two classes: what each threshold finds, and what predicted probabilities are worth."""
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import RocCurveDisplay

    (inputs, right), (above, below) = study.parts(study.test), figure.subplots(2, 1)
    bins = {"n_bins": int(np.clip(len(right) // 10, 2, 10)), "strategy": "quantile"}
    RocCurveDisplay.from_estimator(pipeline, inputs, right, plot_chance_level=True, ax=above, name="ROC")
    CalibrationDisplay.from_estimator(pipeline, inputs, right, **bins, ax=below, name="this network")
    above.set(xlabel="wrongly taken for it", ylabel=f"found of {pipeline.classes_[1]:.24}")
    below.set(xlabel=f"predicted probability of {pipeline.classes_[1]:.24}", ylabel="how often it is")


def importance(figure: Any, by_column: dict[str, float]) -> None:
    """How much each column matters, those that matter most at the top."""
    axes = figure.add_subplot(xlabel="how much worse when it is shuffled")
    shown = pd.Series(by_column)[:MOST_BARS][::-1]
    axes.barh(range(len(shown)), shown, color=BLUE)
    axes.set_yticks(range(len(shown)), map(_short, shown.index))


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
