"""Files of models from strangers: what `micrograd train` could not have written is refused before anything is made."""

import copy
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from micrograd.estimators import MLPClassifier, MLPRegressor
from micrograd.tables import models, networks
from micrograd.tables.study import prepare
from micrograd.training.rows import FUNCTIONS

pytestmark = pytest.mark.slow


def text(value):
    head = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    return head | {"content": json.dumps(value), "is_json": True}


def parts_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(parts.pop("schema.json")), parts


def written(folder, schema, parts):
    path = folder / "strange.skops"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**parts, "schema.json": json.dumps(schema).encode()}.items():
            archive.writestr(name, data)
    return path


def trained(target, columns, **settings):
    count = 24
    frame = pd.DataFrame(
        {
            "size": np.linspace(0.0, 1.0, count),
            "gap": [np.nan if row % 4 == 1 else float(row) for row in range(count)],
            "colour": ["red", "blue", np.nan, "green"] * (count // 4),
            "few": ["a", "b", "c"] * (count // 3),
            "two": ["yes", "no"] * (count // 2),
            "weight": np.linspace(5.0, 9.0, count) ** 2,
        }
    )
    study = prepare(frame[[*columns, target]], target, task="regression" if target == "weight" else "classification")
    make = MLPClassifier if study.of_classes else MLPRegressor
    network = make(max_iter=1, n_iter_no_change=np.inf, random_state=1, **settings)
    pipeline = study.pipeline(network).fit(*study.parts(study.training))
    return models.Model(pipeline, target), study.training


CASES = {
    "classes": ("few", ["size", "gap", "colour"], {"hidden_layer_sizes": (3, 2)}),
    "two classes of numbers": ("two", ["size", "gap"], {"hidden_layer_sizes": 3, "solver": "sgd"}),
    "texts alone": ("two", ["colour", "few"], {"hidden_layer_sizes": ()}),
    "a number": ("weight", ["size", "gap", "colour"], {"hidden_layer_sizes": (2,), "early_stopping": False}),
}


@pytest.fixture(scope="module", params=CASES)
def saved(request):
    target, columns, settings = CASES[request.param]
    model, rows = trained(target, columns, **settings)
    return model, rows, model.dumped()


@pytest.mark.unmeasured
def test_what_is_saved_is_loaded_and_predicts_the_same(saved, tmp_path):
    model, rows, data = saved
    path = tmp_path / "model.skops"
    path.write_bytes(data)
    loaded = models.load(path)
    assert loaded.columns == model.columns
    assert loaded.guessed(loaded.inputs(rows)) == {}
    expected = model.pipeline.predict(model.inputs(rows)).tolist()
    assert loaded.pipeline.predict(loaded.inputs(rows)).tolist() == expected


def nodes_of(node, path=()):
    """Every position of a node in a schema."""
    if isinstance(node, dict):
        if "__loader__" in node:
            yield path
        for key, value in node.items():
            yield from nodes_of(value, (*path, key))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from nodes_of(value, (*path, number))


def replaced(node, path, value):
    """The node with another value at a path; only what leads there is copied."""
    if not path:
        return value
    first, *rest = path
    changed = copy.copy(node)
    changed[first] = replaced(node[first], rest, value)
    return changed


def at(node, path):
    for key in path:
        node = node[key]
    return node


SHARES = {"classes": (1, 4), "two classes of numbers": (1, 2), "texts alone": (0, 2), "a number": (3, 4)}


def test_a_node_that_is_another_one_is_refused(saved, tmp_path, request):
    """Some nodes in turn, others for each case, are another kind of thing; a text may be another text."""
    *_, data = saved
    start, step = SHARES[request.node.callspec.params["saved"]]
    schema, parts = parts_of(data)
    paths = list(nodes_of(schema))
    assert len(paths) > 150
    for number, path in [*enumerate(paths)][start::step]:
        node = at(schema, path)
        is_text = node["__loader__"] == "JsonNode" and node["content"].startswith('"')
        others = text(None if is_text else "odd"), [], text({}), {**node, "__class__": "odd"}, {**node, "more": 1}
        with pytest.raises(ValueError, match="is no saved model, or damaged"):
            models.load(written(tmp_path, replaced(schema, path, others[number % len(others)]), parts))


def test_a_field_that_is_missing_or_new_is_named(saved, tmp_path):
    *_, data = saved
    schema, parts = parts_of(data)
    objects = [path for path in nodes_of(schema) if at(schema, path)["__loader__"] == "ObjectNode"]
    assert len(objects) > 5
    for path in objects:
        fields = (*path, "content")
        node = at(schema, fields)
        names, types = node["content"], node["key_types"]
        for name in [*names][:1]:
            fewer = {**node, "content": {key: names[key] for key in names if key != name}}
            fewer["key_types"] = {**types, "content": types["content"][1:]}
            with pytest.raises(ValueError, match=f"{name}|has other steps|another kind|other settings|is no"):
                models.load(written(tmp_path, replaced(schema, fields, fewer), parts))
        more = {**node, "content": {**names, "odd": text(1)}}
        more["key_types"] = {**types, "content": [*types["content"], types["content"][0]]}
        with pytest.raises(ValueError, match=r"has a field 'odd'|has other settings"):
            models.load(written(tmp_path, replaced(schema, fields, more), parts))


def test_arrays_of_other_shapes_and_kinds_are_refused(saved, tmp_path):
    *_, data = saved
    schema, parts = parts_of(data)
    for number, (name, part) in enumerate(parts.items()):
        array = np.load(io.BytesIO(part))
        others = np.zeros((*array.shape, 1)), array.astype("complex"), np.ones(array.size + 1), np.array("odd")
        for other in others[number % 2 :: 2]:
            file = io.BytesIO()
            np.save(file, other)
            with pytest.raises(ValueError, match="is no saved model, or damaged"):
                models.load(written(tmp_path, schema, {**parts, name: file.getvalue()}))


def refused(pipeline, tmp_path, message, target="y"):
    path = tmp_path / "strange.skops"
    path.write_bytes(skops.io.dumps({"format": models.FORMAT, "pipeline": pipeline, "target": target}))
    with pytest.raises(ValueError, match=f"is no saved model, or damaged: .*{message}"):
        models.load(path)


def test_a_file_that_would_read_other_files_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("password")
    vote = VotingClassifier([("one", LogisticRegression())], voting="soft")
    vote.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    words = CountVectorizer(input="filename", vocabulary={"password": 0})
    columns = ColumnTransformer([("words", words, 0)])
    refused(Pipeline([("encoder", columns), ("estimator", vote)]), tmp_path, "not trusted: .*CountVectorizer")


def test_a_file_that_would_crash_the_process_is_refused(tmp_path):
    vectors = SVC().fit([[0.0], [1.0]], [0, 1])
    vectors.support_vectors_ = np.zeros((10_000_000, 0))
    refused(Pipeline([("estimator", vectors)]), tmp_path, r"an array of shape \(10000000, 0\) is more than there is")


def test_a_file_that_would_write_files_is_refused(tmp_path):
    """A method of an array that calls itself a dtype, in the place of the function that names inputs."""
    schema, parts = parts_of(trained(*CASES["classes"][:2])[0].dumped())
    path = next(path for path in nodes_of(schema) if path[-1:] == ("feature_name_combiner",))
    array = next(at(schema, position) for position in nodes_of(schema) if at(schema, position).get("type") == "numpy")
    method = {"__class__": "dtype", "__module__": "numpy", "__loader__": "MethodNode"}
    changed = replaced(schema, path, {**method, "content": {"func": "tofile", "obj": array}})
    file = written(tmp_path, changed, parts)
    with pytest.raises(ValueError, match=r"types that are not trusted: numpy\.dtype, as a MethodNode"):
        models.load(file)
    with pytest.raises(Exception, match=r"dtype|tofile"):  # as skops refuses it by itself
        skops.io.loads(file.read_bytes(), trusted=models._TOLD)


def test_nodes_that_go_by_the_number_of_another_one_are_taken_as_they_are_written(tmp_path):
    """Skops would take the first node of a number for all that have it."""
    schema, parts = parts_of(trained(*CASES["classes"][:2])[0].dumped())
    changed = json.loads(
        json.dumps(schema), object_hook=lambda node: {**node, "__id__": 1} if "__id__" in node else node
    )
    assert models.load(written(tmp_path, changed, parts)).target == "few"


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (Pipeline([("encoder", ColumnTransformer([])), ("other", None)]), "has other steps than encoder and estimator"),
        (None, "the pipeline is no Pipeline"),
        (Pipeline([("encoder", None), ("estimator", None)]), "the pipeline has no estimator|is no array of texts"),
    ],
)
def test_a_pipeline_of_another_shape_is_refused(tmp_path, pipeline, message):
    refused(pipeline, tmp_path, message)


def test_other_contents_are_refused(tmp_path):
    refused(None, tmp_path, "it has no pipeline and the name of a target alone", target=3)
    path = tmp_path / "strange.skops"
    path.write_bytes(skops.io.dumps([1]))
    with pytest.raises(ValueError, match="its format is None, not 'micrograd model 3'"):
        models.load(path)


@pytest.mark.parametrize(
    "odd", [{"start": 0}, {"start": 0, "stop": "2", "step": None}, {"start": 0, "stop": 2, "step": 1}]
)
def test_another_slice_is_refused(tmp_path, odd):
    schema, parts = parts_of(trained(*CASES["classes"][:2])[0].dumped())
    path = next(path for path in nodes_of(schema) if at(schema, path)["__loader__"] == "SliceNode")
    with pytest.raises(
        ValueError, match=r"for a slice|is another one|is slice\(0, 2, 1\), and not slice\(0, 2, None\)"
    ):
        models.load(written(tmp_path, replaced(schema, (*path, "content"), odd), parts))


def test_a_schema_of_very_many_lists_is_refused(tmp_path):
    path = tmp_path / "strange.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"[" + b"[]," * 5_000_000 + b"1]")
    with pytest.raises(ValueError, match="holds more than 4,000,000 lists, dicts and elements"):
        models.load(path)


def test_settings_and_activations_are_those_of_the_estimators():
    assert {"hidden_layer_sizes", *networks.SETTINGS} == MLPClassifier().get_params().keys()
    assert FUNCTIONS.keys() == networks.ACTIVATIONS
