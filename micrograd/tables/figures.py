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
MOST_DOTS = 1_000
MOST_CLASSES = 20  # for whose counts there is room
_LONGEST_NAME = 18


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


def course(losses: dict[str, Any]) -> str:
    """How the loss fell: of each batch, in the mean of some, and of the rows tested on beside those learned from.

    Args:
        losses: as scores.course gives them.
    """
    batches = pd.Series(losses["batches"], range(1, len(losses["batches"]) + 1))
    means = batches.rolling(max(1, len(batches) // 20), min_periods=1).mean()
    # One batch that is far off does not stretch the axis
    inside = [*losses["learned from"], *losses["tested on"], *batches.quantile([0.02, 0.98])]

    far = 0 < 10 * min(inside) < max(inside)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(xlabel="step", ylabel="loss", yscale="log" if far else "linear")
        some = slice(None, None, math.ceil(len(batches) / MOST_DOTS))
        dots: Any = {"alpha": 0.25, "markeredgewidth": 0}
        axes.plot(batches.index[some], batches[some], ".", color=BLUE, **dots, label="of a batch")
        axes.plot(means.index[some], means[some], color=BLUE, linewidth=1, label="running mean")
        axes.plot(losses["steps"], losses["learned from"], ":", color=BLUE, label="of the rows learned from")
        axes.plot(losses["steps"], losses["tested on"], color=ORANGE, linewidth=2, label="of the rows tested on")
        axes.set_ylim(0.9 * min(inside), 1.1 * max(inside))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend()

    return svg(draw)


def predictions(pipeline: Pipeline, study: Study) -> str:
    """The test rows: right and predicted classes, or how far predicted numbers are off."""
    from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

    inputs, right = study.parts(study.test)
    predicted = pipeline.predict(inputs)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        if study.of_classes:
            counted = len(pipeline.classes_) <= MOST_CLASSES
            names = {"labels": pipeline.classes_, "display_labels": list(map(_short, pipeline.classes_))}
            looks = {"cmap": "Blues", "colorbar": False, "include_values": counted, "xticks_rotation": 90}
            ConfusionMatrixDisplay.from_predictions(right, predicted, **names, **looks, ax=axes)
            axes.set(xlabel=f"predicted {study.target:.24}", ylabel=f"right {study.target:.24}")
        else:
            PredictionErrorDisplay.from_predictions(right, predicted, kind="residual_vs_predicted", ax=axes)
            axes.set(xlabel=f"predicted {study.target:.40}", ylabel="right minus predicted")

    return svg(draw)


def two_classes(pipeline: Pipeline, study: Study) -> str:
    """Of two classes: what each threshold finds, and what predicted probabilities are worth."""
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import RocCurveDisplay

    inputs, right = study.parts(study.test)
    is_second, probabilities = right == pipeline.classes_[1], pipeline.predict_proba(inputs)[:, 1]

    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1)
        bins = {"n_bins": int(np.clip(len(right) // 10, 2, 10)), "strategy": "quantile"}
        RocCurveDisplay.from_predictions(is_second, probabilities, plot_chance_level=True, ax=above, name="ROC")
        CalibrationDisplay.from_predictions(is_second, probabilities, **bins, ax=below, name="this network")
        above.set(xlabel="wrongly taken for it", ylabel=f"found of {pipeline.classes_[1]:.24}")
        below.set(xlabel=f"predicted probability of {pipeline.classes_[1]:.24}", ylabel="how often it is")

    return svg(draw, height=7.5)


def importance(by_column: dict[str, float], most: int = 15) -> str:
    """How much each column matters, those that matter most at the top."""
    shown = list(by_column.items())[:most][::-1]

    def draw(figure: Any) -> None:
        axes = figure.add_subplot(xlabel="how much worse when it is shuffled")
        axes.barh(range(len(shown)), [number for _, number in shown], color=BLUE)
        axes.set_yticks(range(len(shown)), [_short(name) for name, _ in shown])

    return svg(draw, height=1.2 + 0.3 * len(shown))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def svg(draw: Callable[[Any], None], width: float = 5.0, height: float = 3.75) -> str:
    """A picture of this size in inches, to stand in a page; drawn without a window or a display."""
    import matplotlib as mpl
    import matplotlib.colors
    from matplotlib.figure import Figure

    picture = io.StringIO()
    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # only measured here; the browser draws it
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        for axes in figure.axes:
            for line in axes.lines:  # scikit-learn draws some in black
                line.set_color(INK if mpl.colors.same_color(line.get_color(), "black") else line.get_color())
            if axes.get_legend():
                axes.legend()
        figure.savefig(picture, format="svg", metadata={"Date": None}, transparent=True)
    text = picture.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")
