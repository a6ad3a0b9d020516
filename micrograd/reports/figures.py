"""The pictures of a report, drawn by scikit-learn's displays, and the loss of the test rows along a training."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn import metrics
from sklearn.calibration import CalibrationDisplay

from micrograd.draw.plots import BLUE, INK, MOST_DOTS, draw_losses, plot
from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sklearn.pipeline import Pipeline

    from micrograd.tables.study import Study

MOST_BARS = 15
MOST_CLASSES = 20  # for whose counts there is room
MOST_ROWS = 1_000  # of which the loss is computed, at as many frames of a recording:
MOST_FRAMES = 50


def figures(
    pipeline: Pipeline, study: Study, rows: pd.DataFrame, columns: pd.DataFrame, inputs: Mapping[str, Any]
) -> dict[str, str]:
    """The pictures of a report by their captions.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        rows: what scores.tested gave.
        columns: those to predict from, perhaps with the "importance" of each.
        inputs: names of columns in rows, by what they are together, as those of the pixels of an image: a map each.
    """
    drawn = {"The test rows: what is right, and what is predicted": plot(_predictions, rows, study)}
    if study.of_classes and len(pipeline.classes_) == rows["right"].nunique() == 2:
        both = plot(_two_classes, rows, height=7.5)
        drawn["What each threshold finds, and what probabilities are worth"] = both
    if "importance" in columns:
        by_column = columns["importance"]
        grids = {name: np.array(inputs[name], dtype=object) for name in inputs}
        for name, grid in grids.items():
            if grid.ndim == 2:
                caption = f"How much each position of the {escape(name)} matters to the test rows"
                drawn[caption] = plot(_importance_map, by_column, grid)
                by_column = by_column.drop(grid.ravel(), errors="ignore")
        if len(by_column):
            bars = plot(_importance, by_column[:MOST_BARS], height=1.2 + 0.3 * min(len(by_column), MOST_BARS))
            drawn["How much each column matters to the test rows"] = bars
    if recording := network_of(pipeline).record_:
        batches = pd.Series(recording.losses, range(1, len(recording.losses) + 1))
        drawn["How the loss fell"] = plot(draw_losses, batches, validation(pipeline, study))
    return drawn


def validation(pipeline: Pipeline, study: Study) -> pd.Series:
    """The loss of test rows after some steps of a recorded training: the cross-entropy, or half the squared error."""
    network, rows = network_of(pipeline), study.test.sample(min(len(study.test), MOST_ROWS), random_state=0)
    inputs, right = study.parts(rows)
    inputs, losses = pipeline[:-1].transform(inputs), {}
    steps = [step for step, _ in network.record_.frames()]
    stages = network.staged_predict_proba(inputs) if study.of_classes else network.staged_predict(inputs)
    for position, (step, stage) in enumerate(zip(steps, stages, strict=True)):
        if position % math.ceil(len(steps) / MOST_FRAMES) == 0:
            if study.of_classes:
                losses[step] = metrics.log_loss(right, stage, labels=pipeline.classes_)
            else:
                standard = pipeline[-1].transformer_.transform(right.to_numpy()[:, None])[:, 0]
                losses[step] = metrics.mean_squared_error(standard, stage) / 2
    return pd.Series(losses)


def _predictions(figure: Any, rows: pd.DataFrame, study: Study) -> None:
    """Right and predicted classes, or how far predicted numbers are off."""
    from matplotlib.colors import LinearSegmentedColormap

    axes = figure.add_subplot()
    if study.of_classes:
        classes = sorted(study.training[study.target].unique())
        names = {"labels": classes, "display_labels": [*map(_short, classes)], "xticks_rotation": 90}
        blues = LinearSegmentedColormap.from_list("", [f"{BLUE}00", f"{BLUE}90"])  # lets the page show through
        looks = {"include_values": len(classes) <= MOST_CLASSES, "text_kw": {"color": INK}, "colorbar": False}
        given = rows["right"], rows["predicted"]
        metrics.ConfusionMatrixDisplay.from_predictions(*given, **names, **looks, cmap=blues, ax=axes)
        axes.set(xlabel=f"predicted {study.target:.24}", ylabel=f"right {study.target:.24}")
    else:
        shown = {"kind": "residual_vs_predicted", "subsample": MOST_DOTS, "random_state": 0}
        metrics.PredictionErrorDisplay.from_predictions(rows["right"], rows["predicted"], **shown, ax=axes)
        axes.set(xlabel=f"predicted {study.target:.40}", ylabel="right minus predicted")


def _two_classes(figure: Any, rows: pd.DataFrame) -> None:
    """Of two classes: what each threshold finds, and what predicted probabilities are worth."""
    (above, below), second = figure.subplots(2, 1), max(rows["right"])
    given = {"y_true": rows["right"], "pos_label": second}
    curve = given | {"y_score": rows["probability"], "plot_chance_level": True, "name": "ROC"}
    metrics.RocCurveDisplay.from_predictions(**curve, ax=above)
    given |= {"n_bins": int(np.clip(len(rows) // 10, 2, 10)), "strategy": "quantile", "name": "this network"}
    CalibrationDisplay.from_predictions(**given, y_prob=rows["probability"], ax=below)
    above.set(xlabel="wrongly taken for it", ylabel=f"found of {second:.24}")
    below.set(xlabel=f"predicted probability of {second:.24}", ylabel="how often it is")


def _importance(figure: Any, by_column: pd.Series) -> None:
    """How much each column matters, those that matter most at the top."""
    axes = figure.add_subplot(xlabel="how much worse when it is shuffled")
    axes.barh(range(len(by_column)), by_column[::-1], color=BLUE)
    axes.set_yticks(range(len(by_column)), map(_short, by_column.index[::-1]))


def _importance_map(figure: Any, by_column: pd.Series, grid: Any) -> None:
    """How much each column of a grid matters, at its position; nothing where it is not used."""
    from matplotlib.colors import LinearSegmentedColormap

    axes = figure.add_subplot()
    numbers = by_column.reindex(grid.ravel()).to_numpy(dtype=float).reshape(grid.shape)
    blues = LinearSegmentedColormap.from_list("", [f"{BLUE}00", BLUE])
    shown = axes.imshow(numbers, cmap=blues, vmin=0.0, vmax=max(np.nanmax(numbers, initial=0.0), 1e-12))
    axes.set(xticks=range(grid.shape[1]), yticks=range(grid.shape[0]))
    figure.colorbar(shown, label="how much worse when it is shuffled")


def _short(name: str, longest: int = 18) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
