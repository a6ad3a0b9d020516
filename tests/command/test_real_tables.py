"""Four real tables in ten folds, beside scikit-learn's own network."""

import argparse
import warnings

import pytest
from sklearn import neural_network
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from micrograd.command.tables import _estimator
from micrograd.reports.scores import interval
from micrograd.tables.reading import read_table
from micrograd.tables.study import prepare
from tests.folders import DEMOS
from tests.pages import section, tables
from tests.tables.common import PENGUINS

pytestmark = [pytest.mark.slow, pytest.mark.unmeasured]

USUAL = {"hidden": None, "activation": "tanh", "alpha": 0.03, "batch_size": 16, "learning_rate": 0.01, "epochs": None}
COMPARED = tables(section("command.md", "Learning from a table"))[-1]


def table_of(name, target):
    """One of the tables that the page compares."""
    if name == "iris":
        flowers = load_iris(as_frame=True)
        return flowers.data.assign(kind=flowers.target_names[flowers.target])
    return read_table(PENGUINS if "penguins" in name else DEMOS / "data" / "digits.csv.gz", text=[target])


def in_ten_folds(table, target):
    """The means of `micrograd train`'s network and of scikit-learn's, with the interval of the first; and the rows."""
    study = prepare(table, target)
    ours = _estimator(argparse.Namespace(**USUAL, seed=1, quiet=True, no_pictures=True), study)
    theirs = getattr(neural_network, type(ours).__name__)()
    settings = {name: setting for name, setting in ours.get_params().items() if name in theirs.get_params()}
    theirs.set_params(**settings | {"learning_rate": "constant"})
    kind, found = StratifiedKFold if study.of_classes else KFold, []
    for network in (ours, theirs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # theirs always warns after max_iter
            folds = kind(10, shuffle=True, random_state=1)
            scores = cross_val_score(study.pipeline(network), *study.parts(study.rows), cv=folds)
        found.append(interval(scores, 10))
    return *found, len(study.rows)


@pytest.mark.parametrize(("name", "count", "target", "measure", "mine", "low_high", "other"), COMPARED)
def test_real_tables_are_predicted_as_the_page_says_and_as_well_as_by_scikit_learn(
    name, count, target, measure, mine, low_high, other
):
    target = {"body mass": "body_mass_g"}.get(target, target)
    ours, theirs, rows = in_ten_folds(table_of(name, target), target)
    assert (rows, measure) == (int(count.replace(",", "")), "R²" if target == "body_mass_g" else "accuracy")
    found = [ours["mean"], ours["low"], ours["high"], theirs["mean"]]
    assert found == pytest.approx([float(mine), *map(float, low_high.split(" to ")), float(other)], abs=0.01)
    assert ours["mean"] > theirs["mean"] - 0.01
