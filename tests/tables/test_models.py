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


def changed(path, folder, name, change):
    """A copy of a saved model with one of its parts changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(folder / "changed.skops", "w") as new:
        for part in old.infolist():
            data = old.read(part)
            new.writestr(part.filename, change(data) if part.filename.endswith(name) else data)
    return folder / "changed.skops"


def test_columns_are_found_by_their_names(model, rows):
    predicted, moved = model.pipeline.predict(model.inputs(rows)), rows[list(rows)[::-1]].assign(other="x")
    assert model.pipeline.predict(model.inputs(moved)).tolist() == predicted.tolist()
    assert np.mean(predicted == rows["kind"]) > 0.8


def test_cells_that_are_missing_or_new_are_counted(model, rows):
    assert model.guessed(model.inputs(rows.assign(colour="2", size=np.nan))) == {"size": 60, "colour": 60}
    assert model.guessed(model.inputs(rows.assign(colour=pd.Series(index=rows.index, dtype=object)))) == {"colour": 60}
    assert model.guessed(model.inputs(rows)) == {}


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


def test_what_is_not_trusted_is_named_and_nothing_is_run(small_report, tmp_path, capsys):
    path = written(
        tmp_path / "runs.skops", skops.io.dumps({"format": models.FORMAT, "pipeline": Pipeline([("a", Runs())])})
    )
    with pytest.raises(ValueError, match=r"types that are not trusted: .*Runs"):
        models.load(path)
    for data in (pickle.dumps(Runs()), b"", b"{}", (small_report / "model.skops").read_bytes()[:-500]):
        with pytest.raises(ValueError, match=r"runs\.skops is no saved model, or damaged"):
            models.load(written(path, data))
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="its format is 'other', not"):
        models.load(written(path, skops.io.dumps({"format": "other"})))
    with pytest.raises(FileNotFoundError):
        models.load(tmp_path / "none.skops")


def test_an_array_that_claims_more_than_there_is_is_refused_before_it_is_made(small_report, tmp_path):
    def widened(data):
        file = io.BytesIO()
        header = {"descr": "<f8", "fortran_order": False, "shape": (99_999_999, 99_999)}
        np.lib.format.write_array_header_1_0(file, header)
        return file.getvalue() + data[-80:]

    path = changed(small_report / "model.skops", tmp_path, ".npy", widened)
    with pytest.raises(ValueError, match=r"an array of shape \(99999999, 99999\) is more than there is"):
        models.load(path)


def test_a_file_that_unpacks_to_more_than_a_model_is_refused(small_report, monkeypatch):
    monkeypatch.setattr(models, "LARGEST", 1_000)
    with pytest.raises(ValueError, match="and 1,000 are the most"):
        models.load(small_report / "model.skops")


def test_a_model_that_is_edited_to_name_code_is_refused(small_report, tmp_path):
    def edited(data):
        schema = json.loads(data)
        schema["content"]["pipeline"]["__module__"], schema["content"]["pipeline"]["__class__"] = "os", "system"
        return json.dumps(schema).encode()

    with pytest.raises(ValueError, match=r"not trusted: (os|posix)\.system"):
        models.load(changed(small_report / "model.skops", tmp_path, "schema.json", edited))
