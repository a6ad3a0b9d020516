"""Predictors: what they predict, saved models, and what is refused."""

import json
import math
import random
from hashlib import sha256

import pytest

from micrograd.optim import AdamW
from micrograd.tables.predictor import Settings, load, prepare, train
from micrograd.tables.table import Table
from tests.tables.common import small, written


@pytest.fixture(scope="module")
def study():
    result = prepare(small(60), "kind", Settings(hidden=(3,), epochs=4, progress=False))
    train(result)
    return result


def test_a_saved_model_predicts_as_before(study, tmp_path):
    study.predictor.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert repr(loaded) == "Predictor('kind' from 'size', 'colour', 'weight')"
    assert loaded.predict(study.test) == study.predictor.predict(study.test)


def test_it_is_trained_by_adamw_at_a_rate_that_falls_along_a_cosine(monkeypatch):
    seen = []
    monkeypatch.setattr("micrograd.tables.predictor.fit", lambda loss, examples, optimizer, **_: seen.append(optimizer))
    study = prepare(small(60), "kind", Settings(epochs=4))
    train(study)
    (optimizer,) = seen
    assert type(optimizer) is AdamW
    steps = 4 * math.ceil(len(study.training.rows) / 16)
    rates = [optimizer.learning_rate(step) for step in range(steps + 1)]
    assert rates == sorted(rates, reverse=True)
    assert (rates[0], rates[steps // 2], rates[-1]) == pytest.approx((0.01, 0.00505, 0.0001))


def test_predictions_in_plain_numbers_are_those_of_the_network(study):
    for inputs, outputs in zip(study.predictor.encoded(study.test), study.predictor.outputs(study.test), strict=True):
        assert outputs == [output.data for output in study.predictor.model(inputs)]


def test_columns_are_found_by_their_names(study):
    order = [3, 1, 2, 0]
    moved = Table(
        (*(study.test.columns[index] for index in order), "another"),
        [[*(row[index] for index in order), "x"] for row in study.test.rows],
        study.test.lines,
    )
    assert study.predictor.predict(moved) == study.predictor.predict(study.test)


def test_training_leaves_pythons_random_numbers_alone():
    state = random.getstate()
    prepare(small(), "kind")
    assert random.getstate() == state


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["tall", "red", "1"], "line 2, column 'size': 'tall' is no finite number"),
        (["inf", "red", "1"], "line 2, column 'size': 'inf' is no finite number"),
    ],
)
def test_cells_that_a_model_cannot_take_are_named(study, cells, message):
    with pytest.raises(ValueError, match="line 2") as caught:
        study.predictor.predict(Table(("size", "colour", "weight"), [cells], [2]))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "cut off or damaged"),
        (lambda text: text.replace('"tanh"', '"relu"'), "its checksum does not fit"),
        (lambda text: text.replace('"mean": ', '"mean": 1'), "its checksum does not fit"),
        (lambda text: "[]", "is no model"),
        (lambda text: text.replace("predictor 1", "predictor 9"), "is no model"),
        (lambda text: "", "cut off or damaged"),
    ],
)
def test_a_damaged_model_is_refused(study, tmp_path, damage, message):
    path = tmp_path / "model.json"
    study.predictor.save(path)
    written(path, damage(path.read_text(encoding="utf-8")))
    with pytest.raises(ValueError, match=r"model\.json") as caught:
        load(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "kid"}, "no column 'kid'; did you mean 'kind'"),
        ({"ignored": ["kind"]}, "'kind' is the target, and cannot be ignored"),
        ({"ignored": ["size", "colour", "weight"]}, "no column is left"),
        ({"rows": 4}, "'kind' has a value in 4 rows only"),
    ],
)
def test_what_cannot_be_learned_is_refused(change, message):
    with pytest.raises(ValueError, match=r"kid|kind") as caught:
        prepare(small(change.get("rows", 20)), change.get("target", "kind"), None, change.get("ignored", ()))
    assert message in str(caught.value)


def test_a_model_that_somebody_wrote_by_hand_is_refused_in_words(study, tmp_path):
    study.predictor.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    content["columns"][0]["kind"] = "Date"
    del content["checksum"]
    content["checksum"] = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    with pytest.raises(ValueError, match="is no model that `micrograd train` saved: 'Date'"):
        load(written(tmp_path / "edited.json", json.dumps(content)))


def test_numbers_too_large_for_the_network_are_named_by_their_line():
    far = prepare(small(60), "weight", Settings(hidden=(), progress=False))
    far.predictor.model.parameters()[0].data = 1e10
    table = Table(("size", "colour", "kind"), [["1e308", "red", "small"]], [7])
    with pytest.raises(ValueError, match="line 7: the numbers are too large"):
        far.predictor.predict(table)


@pytest.mark.parametrize("wrong", [{"test": 0.0}, {"test": 0.6}, {"test": math.nan}, {"task": "clustering"}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=r"must be above 0|the task is"):
        Settings(**wrong)
