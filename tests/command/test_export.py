"""The command export: expressions and saved models as files of C."""

import json
import math
import sys

import numpy as np
import pandas as pd
import pytest

from micrograd.command.main import main
from tests.compiler.c_files import Built, needs_cc
from tests.folders import DATA

pytestmark = needs_cc


def exported(capsys, *words):
    """The file that the command writes, and what it prints."""
    assert main(["export", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_an_expression(tmp_path, capsys):
    out = exported(capsys, "x*y + tanh(z)", "-o", tmp_path / "wave.c")
    assert out == f"wrote {tmp_path / 'wave.c'} and {tmp_path / 'wave.h'}\n"
    file = Built([tmp_path / "wave.c", tmp_path / "wave.h"])
    assert "The expression x*y + tanh(z)." in file.source
    value, slopes = file.both([2.0, -3.0, 0.5])
    assert value[0] == -6.0 + math.tanh(0.5)
    np.testing.assert_allclose(slopes, [-3.0, 2.0, 1 / math.cosh(0.5) ** 2], rtol=1e-14)


def test_an_expression_that_begins_with_a_sign_in_float32_and_json(tmp_path, capsys):
    out = exported(capsys, "-x*2", "-o", tmp_path / "a.c", "--name", "twice", "--float32", "--json")
    assert json.loads(out) == {"wrote": [str(tmp_path / "a.c"), str(tmp_path / "twice.h")]}
    assert "void twice_value(const float *inputs, float *outputs);" in (tmp_path / "twice.h").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1 + 2", "-o", "a.c"], "'1 + 2' has no names: it is the same number in each call"),
        (["x +", "-o", "a.c"], "x +"),
        (["x", "-o", "a.txt"], "a file of C, whose name ends in .c"),
        (["x", "-o", "int.c"], "a function of C cannot be called 'int'"),
        (["x", "-o", "mine.c"], "was not written by export"),
        pytest.param(["none.skops", "-o", "a.c"], "No such file or directory", marks=pytest.mark.slow),
    ],
)
def test_what_is_refused(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.c").write_text("int x;")
    assert main(["export", *words]) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.c"]
    assert main(["export", "x", "-o", "mine.c", "--overwrite"]) == 0


def rows_of(model, table):
    """The rows of a table as the numbers that the file takes."""
    inputs = model.inputs(table)
    columns = [inputs[name].to_numpy(float) for name in model.columns["numbers"]]
    known = model.pipeline[0].named_transformers_["categories"][1].categories_ if model.columns["categories"] else []
    for name, texts in zip(model.columns["categories"], known, strict=True):
        codes = {text: code for code, text in enumerate(texts)}
        columns.append(np.array([codes.get(text, -1) for text in inputs[name].fillna("")], dtype=float))
    return np.stack(columns, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("species", ["--activation", "elu"]),
        ("sex", ["--ignore", "island", "species"]),
        ("body_mass_g", ["--hidden", "4", "3"]),
        ("island", ["--ignore", *["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"]]),
    ],
)
def test_a_saved_model_takes_a_row_and_gives_the_answer(target, words, tmp_path, capsys):
    """Missing numbers, and categories that are missing or unknown, among them."""
    from micrograd.tables.models import load  # which loads much

    quick = ["--epochs", "2", "--folds", "0", "--no-pictures", "--quiet"]
    assert (
        main(["train", str(DATA / "penguins.csv"), "--target", target, *quick, *words, "-o", str(tmp_path / "r")]) == 0
    )
    exported(capsys, tmp_path / "r" / "model.skops", "-o", tmp_path / "model.c")
    file = Built([tmp_path / "model.c", tmp_path / "model.h"])
    model = load(tmp_path / "r" / "model.skops")
    table = pd.read_csv(DATA / "penguins.csv").drop(columns=[target])
    for name in model.columns["categories"]:
        table.loc[3, name] = "Atlantis"
    inputs = model.inputs(table)
    is_class = hasattr(model.pipeline, "classes_")
    expected = model.pipeline.predict_proba(inputs) if is_class else model.pipeline.predict(inputs)[:, None]
    found = np.array([file.value(row) for row in rows_of(model, table)])
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    assert "void model(" not in file.source
    if is_class:
        assert f"the probability that {target} is {model.pipeline.classes_[0]}" in file.source
    assert "weights of layer 1" in file.source


def test_without_numpy_the_error_says_what_to_install(monkeypatch, tmp_path, capsys):
    monkeypatch.delitem(sys.modules, "micrograd.compiler.calling.export", raising=False)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert main(["export", "x*y", "-o", str(tmp_path / "f.c")]) == 2
    assert capsys.readouterr().err == "micrograd: export needs NumPy: pip install numpy\n"
    assert not list(tmp_path.iterdir())
