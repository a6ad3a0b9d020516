"""How good a pipeline is: on the test rows, in folds beside other estimators, and what matters to it."""

from __future__ import annotations

import math
import warnings
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
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
    from sklearn.pipeline import Pipeline

    from micrograd.tables.study import Study

MOST_COLUMNS = 100  # that are shuffled to see whether they matter
MOST_ROWS = 1_000  # on which columns are shuffled, and the stages of a training are judged
WORST = 3
_STRIDE = 4  # of the frames of a film at which the loss of all rows is computed


def evaluate(pipeline: Pipeline, study: Study, *, folds: int, seed: int) -> dict[str, Any]:
    """The numbers of a pipeline that has learned, as they stand in metrics.json.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        folds: in how many it is judged again, beside others; below 2 for none.
        seed: of the folds, and of the columns that are shuffled.
    """
    network, (inputs, right) = network_of(pipeline), study.parts(study.test)
    predicted, classes, importance = pipeline.predict(inputs), {}, {}
    if study.of_classes:
        classes = metrics.classification_report(right, predicted, output_dict=True, zero_division=0)
        off = 1 - pipeline.predict_proba(inputs)[range(len(right)), np.searchsorted(pipeline.classes_, right)]
    else:
        off = predicted - right.to_numpy()
    rows = pd.DataFrame({"line": inputs.index, "right": right.array, "predicted": predicted, "off": off})
    if len(inputs.columns) <= MOST_COLUMNS:
        shuffled = permutation_importance(pipeline, inputs[:MOST_ROWS], right[:MOST_ROWS], random_state=seed)
        importance = pd.Series(shuffled.importances_mean, inputs.columns).sort_values(ascending=False).to_dict()
    return {
        "task": study.task,
        "target": study.target,
        "rows": {"training": len(study.training), "test": len(study.test), "without target": study.without_target},
        "columns": study.described(),
        "left_out": study.left_out,
        "network": described(network),
        "training": {"seed": seed, "epochs": network.n_iter_, "losses": network.loss_curve_},
        "on_test_rows": _on_rows(pipeline, study, study.test),
        "on_training_rows": _on_rows(pipeline, study, study.training),
        "folds": in_folds(pipeline, study, folds, seed) if folds > 1 else {},
        "classes": {name: classes[name] for name in sorted(set(right)) if classes},
        "worst": rows.sort_values("off", key=lambda off: -off.abs(), kind="stable")[:WORST].to_dict("records"),
        "importance": importance,
    }


def described(network: Any) -> dict[str, Any]:
    """The size of a network that has learned."""
    inputs, *hidden, outputs = len(network.coefs_[0]), *map(len, network.intercepts_)
    parameters = sum(part.size for part in (*network.coefs_, *network.intercepts_))
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs}
    return {**sizes, "activation": network.activation, "parameters": parameters}


def _on_rows(pipeline: Pipeline, study: Study, rows: pd.DataFrame) -> dict[str, float | None]:
    """How good the predictions for some rows are, beside always saying what is usual in the rows learned from."""
    inputs, right = study.parts(rows)
    predicted, learned_from = pipeline.predict(inputs), study.training[study.target]
    if study.of_classes:
        usual = learned_from.mode()[0]
        return {"accuracy": float((predicted == right).mean()), "guessing": float((right == usual).mean())}
    return {
        "rmse": metrics.root_mean_squared_error(right, predicted),
        "mae": metrics.mean_absolute_error(right, predicted),
        "guessing": float(((right - learned_from.mean()) ** 2).mean() ** 0.5),
        "r2": metrics.r2_score(right, predicted) if len(rows) > 1 else None,
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
    inputs, right = study.parts(study.rows)
    if study.of_classes:
        folds, kind, measure = min(folds, int(right.value_counts().max())), StratifiedKFold, "accuracy"
        peers = DummyClassifier(), LogisticRegression(max_iter=1_000), HistGradientBoostingClassifier(random_state=seed)
    else:
        folds, kind, measure = min(folds, len(right)), KFold, "r2"
        peers = DummyRegressor(), Ridge(), HistGradientBoostingRegressor(random_state=seed)
    names = ("this network", "always the usual", "a linear model", "boosted trees")
    found = {}
    for name, judged in zip(names, (clone(pipeline), *map(study.pipeline, peers)), strict=True):
        with warnings.catch_warnings(), threadpool_limits(1):  # threads of OpenMP wait for one another on small tables
            warnings.simplefilter("ignore")  # of rare classes: a fold without a second one is left out
            split = kind(folds, shuffle=True, random_state=seed)
            scores = cross_val_score(judged, inputs, right, cv=split, scoring=measure)
        found[name] = interval(scores[np.isfinite(scores)], folds)
    return found


def interval(scores: Any, folds: int) -> dict[str, float]:
    """The mean of scores, and where it would be in 95 of 100 tries."""
    spread = float(scores.std(ddof=1)) * math.sqrt(1 / len(scores) + 1 / (folds - 1))
    half, mean = float(student.ppf(0.975, len(scores) - 1)) * spread, float(scores.mean())
    return {"mean": mean, "low": mean - half, "high": min(mean + half, 1.0)}


def course(pipeline: Pipeline, study: Study) -> dict[str, Any]:
    """How a recorded training went.

    Returns:
        The loss of all ``batches``; and at each of some ``steps`` that ``learned from`` and that ``tested on``, of all
        these rows: the cross-entropy, or the squared error in variances.
    """
    network, film = network_of(pipeline), network_of(pipeline).record_
    found: dict[str, Any] = {"batches": film.losses, "steps": [step for step, _ in film.frames()][::_STRIDE]}
    for name, rows in (("learned from", study.training), ("tested on", study.test)):
        inputs, right = study.parts(rows[:MOST_ROWS])
        inputs = pipeline[:-1].transform(inputs)
        if study.of_classes:
            stages = islice(network.staged_predict_proba(inputs), 0, None, _STRIDE)
            found[name] = [metrics.log_loss(right, stage, labels=pipeline.classes_) for stage in stages]
        else:
            standard = pipeline[-1].transformer_.transform(right.to_numpy()[:, None])[:, 0]
            stages = islice(network.staged_predict(inputs), 0, None, _STRIDE)
            found[name] = [metrics.mean_squared_error(standard, stage) for stage in stages]
    return found
