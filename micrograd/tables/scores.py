"""How good a pipeline is: on the test rows, in folds beside other estimators, and what matters to it."""

from __future__ import annotations

import math
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student
from sklearn import metrics
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from threadpoolctl import threadpool_limits

from micrograd.tables.study import network_of

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.pipeline import Pipeline

    from micrograd.tables.study import Study

MOST_ROWS = 1_000  # on which columns are shuffled, and the stages of a training are judged
_STRIDE = 4  # of the frames of a film at which the loss of all rows is computed


def on_rows(pipeline: Pipeline, study: Study, rows: pd.DataFrame) -> dict[str, float | None]:
    """How good the predictions for some rows are, beside always saying what is usual in the rows learned from."""
    inputs, wanted = study.parts(rows)
    predicted, learned_from = pipeline.predict(inputs), study.training[study.target]
    if study.of_classes:
        usual = learned_from.mode()[0]
        return {"accuracy": float((predicted == wanted).mean()), "guessing": float((wanted == usual).mean())}
    return {
        "rmse": float(metrics.root_mean_squared_error(wanted, predicted)),
        "mae": float(metrics.mean_absolute_error(wanted, predicted)),
        "guessing": float(((wanted - learned_from.mean()) ** 2).mean() ** 0.5),
        "r2": float(metrics.r2_score(wanted, predicted)) if len(rows) > 1 else None,
    }


def in_folds(pipeline: Pipeline, study: Study, folds: int, seed: int) -> dict[str, dict[str, float]]:
    """Accuracy, or R², of the pipeline and of three others on the same folds of all rows.

    The interval holds the mean of so many folds 95 in 100 times; it minds that they share most of their rows (Nadeau
    and Bengio 2003, the corrected t-test).

    Args:
        pipeline: what is judged; it stays as it is.
        study: what it learned.
        folds: how many; fewer where no class has as many rows.
        seed: of the folds.

    Returns:
        For each estimator by name the ``mean`` of its scores, and the interval from ``low`` to ``high``.
    """
    inputs, wanted = study.parts(study.rows)
    if study.of_classes:
        folds, kind, measure = min(folds, int(wanted.value_counts().max())), StratifiedKFold, "accuracy"
        peers = DummyClassifier(), LogisticRegression(max_iter=1_000), HistGradientBoostingClassifier(random_state=seed)
    else:
        folds, kind, measure = min(folds, len(wanted)), KFold, "r2"
        peers = DummyRegressor(), Ridge(), HistGradientBoostingRegressor(random_state=seed)
    names = ("this network", "always the usual", "a linear model", "boosted trees")
    found = {}
    for name, judged in zip(names, (clone(pipeline), *map(study.pipeline, peers)), strict=True):
        with warnings.catch_warnings(), threadpool_limits(1):  # threads of OpenMP wait for one another on small tables
            warnings.simplefilter("ignore")  # of rare classes: a fold without a second one is left out
            split = kind(folds, shuffle=True, random_state=seed)
            scores = cross_val_score(judged, inputs, wanted, cv=split, scoring=measure)
        found[name] = _interval(scores[np.isfinite(scores)], folds)
    return found


def _interval(scores: Any, folds: int) -> dict[str, float]:
    """The mean of scores, and where it would be in 95 of 100 tries."""
    spread = float(scores.std(ddof=1)) * math.sqrt(1 / len(scores) + 1 / (folds - 1))
    half, mean = float(student.ppf(0.975, len(scores) - 1)) * spread, float(scores.mean())
    return {"mean": mean, "low": mean - half, "high": min(mean + half, 1.0)}


def importance(pipeline: Pipeline, study: Study, seed: int) -> dict[str, float]:
    """How much worse the predictions for the test rows get when a column is shuffled, the most important first."""
    inputs, wanted = study.parts(study.test[:MOST_ROWS])
    found = permutation_importance(pipeline, inputs, wanted, random_state=seed).importances_mean
    return dict(sorted(zip(study.columns.names, found.tolist(), strict=True), key=lambda column: -column[1]))


def worst(pipeline: Pipeline, study: Study, count: int) -> list[dict[str, Any]]:
    """The test rows whose predictions are the furthest off.

    Returns:
        For each its ``line`` in the file, what is ``right`` and ``predicted``, and how far ``off`` that is: the
        probability that was not given to the right class, or the error.
    """
    inputs, wanted = study.parts(study.test)
    predicted = pipeline.predict(inputs)
    if study.of_classes:
        places = np.searchsorted(pipeline.classes_, wanted)
        off = 1 - pipeline.predict_proba(inputs)[np.arange(len(inputs)), places]
    else:
        off = predicted - wanted.to_numpy()
    order = np.argsort(-np.abs(off), kind="stable")[:count]
    columns = {
        "line": inputs.index[order],
        "right": wanted.iloc[order],
        "predicted": predicted[order],
        "off": off[order],
    }
    lists = [cells.tolist() for cells in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def course(pipeline: Pipeline, study: Study) -> dict[str, Any]:
    """How a recorded training went.

    Returns:
        The loss of all ``batches``; and at each of some ``steps`` that ``learned from`` and that ``tested on``, of all
        these rows: the cross-entropy, or the squared error in variances.
    """
    network, last = network_of(pipeline), pipeline[-1]
    film = network.record_
    found: dict[str, Any] = {"batches": film.losses, "steps": [step for step, _ in film.frames()][::_STRIDE]}
    for name, rows in (("learned from", study.training), ("tested on", study.test)):
        inputs, wanted = study.parts(rows[:MOST_ROWS])
        inputs = pipeline[:-1].transform(inputs)
        if study.of_classes:
            stages = islice(network.staged_predict_proba(inputs), 0, None, _STRIDE)
            found[name] = [metrics.log_loss(wanted, stage, labels=pipeline.classes_) for stage in stages]
        else:
            standard = last.transformer_.transform(wanted.to_numpy()[:, None])[:, 0]
            stages = islice(network.staged_predict(inputs), 0, None, _STRIDE)
            found[name] = [metrics.mean_squared_error(standard, stage) for stage in stages]
    return found
