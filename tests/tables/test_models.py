"""Saved models: they predict as before, run nothing when they are loaded, and ask for no more memory than they hold."""

import io
import json
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import Pipeline

from micrograd.tables import models
from micrograd.tables.reading import read_table
from micrograd.tables.study import prepare
from tests.support.test_archives import widened
from tests.tables.common import written

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(small_report):
    return models.load(small_report / "model.skops")


@pytest.fixture(scope="module")
def rows(small_report):
    return read_table(small_report.parent / "small.csv", text=["colour"])


class Runs:
    """Something that runs code of its own when it is loaded."""

    def __reduce__(self):
        return print, ("it ran",)


def with_part(saved, name, change):
    """A saved model with those of its parts changed whose names end so."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as old, zipfile.ZipFile(file, "w") as new:
        for part in old.infolist():
            data = old.read(part)
            new.writestr(part.filename, change(data) if part.filename.endswith(name) else data)
    return file.getvalue()


def naming_code(data):
    schema = json.loads(data)
    schema["content"]["pipeline"] |= {"__module__": "os", "__class__": "system"}
    return json.dumps(schema).encode()


def test_columns_are_found_by_their_names(model, rows):
    predicted, moved = model.pipeline.predict(model.inputs(rows)), rows[list(rows)[::-1]].assign(other="x")
    assert model.pipeline.predict(model.inputs(moved)).tolist() == predicted.tolist()
    assert np.mean(predicted == rows["kind"]) > 0.8


def test_cells_that_are_missing_or_new_are_counted(model, rows):
    assert model.guessed(model.inputs(rows.assign(colour="2", size=np.nan))) == {"size": 60, "colour": 60}
    nothing = pd.Series(index=rows.index, dtype=object)
    assert model.guessed(model.inputs(rows.assign(colour=nothing))) == {"colour": 60}
    assert model.guessed(model.inputs(rows)) == {}


def test_a_model_of_text_alone_counts_what_is_new_too():
    study = prepare(pd.DataFrame({"colour": ["red", "blue"] * 5, "y": ["a", "b"] * 5}), "y")
    pipeline = study.pipeline(None)
    pipeline[0].fit(study.training[study.columns])
    model = models.Model(pipeline, "y")
    assert model.columns == {"numbers": [], "categories": ["colour"]}
    assert model.guessed(pd.DataFrame({"colour": ["green", "red", None]})) == {"colour": 2}


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"size": ["tall"]}, "line 0, column 'size': 'tall' is no finite number"),
        ({"size": [np.inf]}, "line 0, column 'size': inf is no finite number"),
        ({"siz": [1.0]}, r"there is no column 'size'; did you mean 'siz'\?"),
    ],
)
def test_cells_and_columns_that_a_model_cannot_take_are_named(model, cells, message):
    with pytest.raises(ValueError, match=message):
        model.inputs(pd.DataFrame({"colour": ["red"], "weight": [1.0], **cells}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: skops.io.dumps({"pipeline": Pipeline([("a", Runs())])}), r"types that are not trusted: .*Runs"),
        (lambda _: pickle.dumps(Runs()), "not a zip file"),
        (lambda _: b"", "not a zip file"),
        (lambda saved: saved[:-500], "not a zip file"),
        (lambda _: skops.io.dumps({"format": "other"}), "its format is 'other', not"),
        (lambda saved: with_part(saved, "schema.json", naming_code), r"not trusted: (os|posix)\.system"),
        (lambda saved: with_part(saved, ".npy", widened), r"an array of shape \(99999999, 99999\) is more than there"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_runs_or_is_made(small_report, tmp_path, capsys, change, message):
    path = written(tmp_path / "changed.skops", change((small_report / "model.skops").read_bytes()))
    with pytest.raises(ValueError, match=rf"changed\.skops is no saved model, or damaged: .*{message}"):
        models.load(path)
    assert capsys.readouterr().out == ""
