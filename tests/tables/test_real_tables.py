"""Three real tables, beside scikit-learn."""

import csv
import gzip
import io
import json
import warnings

import pytest

from micrograd.tables.predictor import split
from tests.folders import DEMOS
from tests.pages import section, tables
from tests.tables.common import PENGUINS, run, written

pytestmark = pytest.mark.slow

DIGITS = DEMOS / "data" / "digits.csv.gz"


def reference(path, target, task, hidden, epochs, share=0.2, seed=1):
    """How well scikit-learn's network, with its own preprocessing, predicts the same test rows."""
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("sklearn")
    from sklearn.compose import TransformedTargetRegressor, make_column_transformer
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    place = header.index(target)
    rows = [row for row in rows if row[place] != "NA"]
    wanted = [row.pop(place) for row in rows]
    text = [
        i for i in range(len(rows[0])) if any(not row[i].replace(".", "").isdigit() and row[i] != "NA" for row in rows)
    ]
    numbers = [i for i in range(len(rows[0])) if i not in text]
    table = numpy.array(
        [[row[i] if i in text else float(row[i].replace("NA", "nan")) for i in range(len(row))] for row in rows], object
    )
    targets = numpy.array(wanted if task == "classification" else [float(cell) for cell in wanted])

    estimator = (MLPClassifier if task == "classification" else MLPRegressor)(
        hidden_layer_sizes=hidden,
        activation="tanh",
        batch_size=16,
        learning_rate_init=0.01,
        max_iter=epochs,
        random_state=0,
    )
    if task == "regression":
        estimator = TransformedTargetRegressor(estimator, transformer=StandardScaler())
    preprocessing = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), text),
    )
    test = numpy.isin(numpy.arange(len(rows)), list(split(wanted, share, seed, stratified=task == "classification")))
    pipeline = make_pipeline(preprocessing, estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline.fit(table[~test], targets[~test])
    return pipeline.score(table[test], targets[test])


def iris(folder):
    """Fisher's iris flowers, which scikit-learn carries, as a file."""
    flowers = pytest.importorskip("sklearn.datasets").load_iris()
    lines = [[*numbers, flowers.target_names[kind]] for numbers, kind in zip(flowers.data, flowers.target, strict=True)]
    text = io.StringIO()
    csv.writer(text).writerows([[*flowers.feature_names, "kind"], *lines])
    return written(folder / "iris.csv", text.getvalue())


TABLES = {"iris": iris, "penguins": lambda _: PENGUINS, "digits": lambda _: DIGITS}
COMPARED = tables(section("command.md", "Learning from a table"))[-1]


@pytest.mark.parametrize(("table", "count", "target", "measure", "mine", "other"), COMPARED)
def test_real_tables_are_predicted_as_the_page_says_and_as_well_as_by_scikit_learn(
    tmp_path, capsys, table, count, target, measure, mine, other
):
    path, target = TABLES[table.split(",")[0]](tmp_path), {"body mass": "body_mass_g"}.get(target, target)
    words = ["train", path, "--target", target, "--no-pictures", "--json", "-o", tmp_path / "report"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    numbers = json.loads(out)
    assert numbers["task"] == {"accuracy": "classification", "R²": "regression"}[measure]
    assert numbers["rows"]["training"] + numbers["rows"]["test"] == int(count.replace(",", ""))
    ours = numbers["on_test_rows"]["accuracy" if measure == "accuracy" else "r2"]
    theirs = reference(
        path, target, numbers["task"], tuple(numbers["network"]["hidden"]), numbers["training"]["epochs"]
    )
    assert (ours, theirs) == pytest.approx((float(mine), float(other)), abs=0.03)
    assert ours > theirs - 0.04
