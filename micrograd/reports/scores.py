"""How good a pipeline is: on the test rows, in folds beside other estimators, and what matters to it."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn import dummy, ensemble, linear_model, metrics
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.utils.class_weight import compute_sample_weight
from threadpoolctl import threadpool_limits

from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from micrograd.tables.study import Study

MOST_COLUMNS = 100  # that are shuffled to see whether they matter
MOST_ROWS = 1_000  # on which they are shuffled
WORST = 3


def tested(pipeline: Pipeline, study: Study) -> pd.DataFrame:
    """The test rows by their lines, the worst first: what is "right", what is "predicted", and how far "off" that is.

    Of numbers that is the difference; of classes, what the probability of the right one lacks of 1, and there is one
    more column, with the "probability" of the second class.
    """
    inputs, right = study.parts(study.test)
    if study.of_classes:
        probabilities = pipeline.predict_proba(inputs)
        off = 1 - probabilities[range(len(right)), np.searchsorted(pipeline.classes_, right)]
        predicted = pipeline.classes_[probabilities.argmax(axis=1)]
        rows = pd.DataFrame({"right": right, "predicted": predicted, "off": off, "probability": probabilities[:, 1]})
    else:
        predicted = pipeline.predict(inputs)
        rows = pd.DataFrame({"right": right, "predicted": predicted, "off": predicted - right})
    return rows.sort_values("off", key=lambda off: -off.abs(), kind="stable")


def evaluate(pipeline: Pipeline, study: Study, *, folds: int, seed: int, balance: bool = False) -> dict[str, Any]:
    """The numbers of a pipeline that has learned, as they stand in metrics.json and in the tables of the page.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        folds: in how many it is judged again, beside others; below 2 for none.
        seed: of the folds, and of the columns that are shuffled.
        balance: whether all classes weighed the same when it learned, as they then do in folds.
    """
    network, rows, (inputs, right) = network_of(pipeline), tested(pipeline, study), study.parts(study.test)
    (learned_from, learned), columns, classes, never = study.parts(study.training), study.described(), {}, {}
    of_learned = pipeline.predict(learned_from)
    usual = (dummy.DummyClassifier if study.of_classes else dummy.DummyRegressor)().fit(learned_from, learned)
    if study.of_classes:
        names, given = sorted(set(right)), (rows["right"], rows["predicted"])
        by_class = metrics.precision_recall_fscore_support(*given, labels=names, zero_division=0)
        classes = pd.DataFrame(by_class, ["precision", "recall", "f1-score", "support"], names).to_dict()
        found, counts = {*rows["predicted"], *of_learned}, study.rows[study.target].value_counts().sort_index()
        never = {name: {"rows": int(count)} for name, count in counts.items() if name not in found}
    if len(columns) <= MOST_COLUMNS:
        most = min(len(right), MOST_ROWS)
        shuffled = permutation_importance(pipeline, inputs, right, random_state=seed, max_samples=most)
        columns = columns.assign(importance=shuffled.importances_mean).sort_values("importance", ascending=False)
    return {
        "task": "classification" if study.of_classes else "regression",
        "target": study.target,
        "training": {"seed": seed, "epochs": network.n_iter_, "losses": network.loss_curve_, "balance": balance},
        "scores": {
            "on test rows": _measures(study, rows["right"], rows["predicted"]),
            "on rows learned from": _measures(study, learned, of_learned),
            "always the same answer": _measures(study, right, usual.predict(inputs)),
        },
        "measure in folds": measure(study, balance),
        "folds": _in_folds(network, study, folds, seed, balance) if folds > 1 else {},
        "classes": classes,
        "classes never predicted": never,
        "worst rows": rows[["right", "predicted", "off"]][:WORST].rename("line {}".format).to_dict("index"),
        "columns": columns.to_dict("index"),
        "columns left out": {name: {"because": reason} for name, reason in study.left_out.items()},
        "columns read as numbers": {name: {"where": example} for name, example in study.as_numbers.items()},
        "rows": {
            "learned from": len(learned),
            "tested on": len(right),
            "without a target": study.without_target,
        },
        "network": described(network),
    }


def described(network: Any) -> dict[str, Any]:
    """The size of a network that has learned."""
    inputs, *hidden, outputs = len(network.coefs_[0]), *map(len, network.intercepts_)
    parameters = sum(part.size for part in (*network.coefs_, *network.intercepts_))
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs}
    return {**sizes, "activation": network.activation, "parameters": parameters}


def _measures(study: Study, right: Any, predicted: Any) -> dict[str, float | None]:
    """How good predictions are."""
    if study.of_classes:
        names = sorted(set(right))
        balanced = metrics.recall_score(right, predicted, labels=names, average="macro", zero_division=0)
        return {"accuracy": metrics.accuracy_score(right, predicted), "balanced accuracy": balanced}
    return {
        "rmse": metrics.root_mean_squared_error(right, predicted),
        "mae": metrics.mean_absolute_error(right, predicted),
        "r2": metrics.r2_score(right, predicted) if len(right) > 1 else None,
    }


def weights(right: pd.Series) -> Any:
    """A weight for each row, so that all classes weigh the same together."""
    return compute_sample_weight("balanced", right)


def measure(study: Study, balance: bool) -> str:
    """What is measured in folds."""
    if not study.of_classes:
        return "R²"
    return "balanced accuracy" if balance else "accuracy"


def _in_folds(network: Any, study: Study, folds: int, seed: int, balance: bool = False) -> dict[str, dict[str, float]]:
    """How good the network and three others are on the same folds of all rows; see measure.

    There are fewer folds where no class has as many rows.
    """
    inputs, right = study.parts(study.rows)
    if study.of_classes:
        kind, most = StratifiedKFold, int(right.value_counts().max())
        usual, linear = dummy.DummyClassifier(), linear_model.LogisticRegression(max_iter=1_000)
        boosted = ensemble.HistGradientBoostingClassifier(random_state=seed)
    else:
        kind, most = KFold, len(right)
        usual, linear = dummy.DummyRegressor(), linear_model.Ridge()
        boosted = ensemble.HistGradientBoostingRegressor(random_state=seed)
    split = kind(min(folds, most), shuffle=True, random_state=seed)
    network = clone(network).set_params(record=False)
    judged = {
        "this network": network,
        "always the same answer": usual,
        "a linear model": linear,
        "boosted trees": boosted,
    }
    found, how = {}, {}
    if balance:
        how = {"scoring": "balanced_accuracy", "params": {"estimator__sample_weight": weights(right)}}
    for name, estimator in judged.items():
        with warnings.catch_warnings(), threadpool_limits(1):  # threads of OpenMP wait for one another on small tables
            warnings.simplefilter("ignore")  # of rare classes: a fold without a second one is left out
            scores = cross_val_score(study.pipeline(estimator), inputs, right, cv=split, **how)
        found[name] = interval(scores[np.isfinite(scores)], split.n_splits)
    return found


def interval(scores: Any, folds: int) -> dict[str, float]:
    """The mean of the scores in folds, and an interval that holds it 95 in 100 times.

    It minds that folds share most of their rows (Nadeau and Bengio 2003, the corrected t-test).
    """
    mean, spread = float(scores.mean()), float(scores.std(ddof=1)) * math.sqrt(1 / len(scores) + 1 / (folds - 1))
    half = float(student.ppf(0.975, len(scores) - 1)) * spread
    return {"mean": mean, "low": mean - half, "high": min(mean + half, 1.0)}
