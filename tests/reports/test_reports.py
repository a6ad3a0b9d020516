"""Reports: what they say, show and escape."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from micrograd.draw.plots import INK
from micrograd.estimators import MLPClassifier, MLPRegressor
from micrograd.reports import figures, page, scores
from micrograd.tables import models, study
from micrograd.tables.reading import read_table
from tests.tables.common import QUICK, run, small_file, written

pytestmark = pytest.mark.slow


def numbers_of(folder):
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


def test_the_report_has_its_files_and_its_page_is_whole(small_report):
    assert {path.name for path in small_report.iterdir()} == page.FILES
    text = (small_report / "report.html").read_text(encoding="utf-8")
    assert "<main>" in text
    assert text.count("<svg") == text.count("<figcaption>") == 4
    assert not re.search(r'(?:src|href)="(?!worst-\d\.html|recording\.html|#|data:)', text)
    assert "currentColor" in text
    assert INK not in text
    assert all(f'href="{name}"' in text for name in page.FILES if name.startswith(("worst", "recording")))


def test_the_numbers_are_those_of_the_saved_model_and_of_the_rows_that_the_seed_draws(small_report):
    numbers, model = numbers_of(small_report), models.load(small_report / "model.skops")
    made = study.prepare(read_table(small_report.parent / "small.csv", text=["kind"]), "kind", seed=3)
    inputs, right = made.parts(made.test)
    accuracies = [score["accuracy"] for score in numbers["scores"].values()]
    learned_from, learned = made.parts(made.training)
    assert accuracies[0] == np.mean(model.pipeline.predict(inputs) == right) > 0.8
    assert accuracies[1] == np.mean(model.pipeline.predict(learned_from) == learned)
    assert accuracies[2] == np.mean(right == learned.mode()[0])
    assert sum(line["support"] for line in numbers["classes"].values()) == 12
    (line, worst), *_ = numbers["worst rows"].items()
    wrong = 1 - model.pipeline.predict_proba(inputs)[np.arange(12), np.searchsorted(model.pipeline.classes_, right)]
    assert (worst["off"], line) == (pytest.approx(wrong.max()), f"line {inputs.index[wrong.argmax()]}")
    assert list(numbers["columns"])[-1] == "colour"
    assert numbers["columns"]["size"]["importance"] > 0


@pytest.mark.unmeasured
def test_folds_are_scikit_learns_and_the_interval_is_about_their_mean(small_report):
    made = study.prepare(read_table(small_report.parent / "small.csv", text=["weight"]), "weight")
    network = MLPRegressor((), max_iter=2, n_iter_no_change=np.inf, random_state=0, record=True)
    found = scores._in_folds(network, made, 4, seed=3)
    folds = scores.KFold(4, shuffle=True, random_state=3)
    expected = cross_val_score(made.pipeline(network), *made.parts(made.rows), cv=folds)
    assert found["this network"]["mean"] == pytest.approx(expected.mean())
    assert found["always the same answer"]["low"] < found["always the same answer"]["mean"] < 0.1
    assert found["a linear model"]["mean"] > 0.9
    spread = expected.std(ddof=1) * (1 / 4 + 1 / 3) ** 0.5
    assert found["this network"]["low"] == pytest.approx(expected.mean() - 3.182446 * spread)


def test_a_report_of_numbers_and_the_same_seed_gives_it_again(tmp_path, capsys):
    path = small_file(tmp_path, 40)
    words = ["train", path, "--target", "weight", "--epochs", 3, "--folds", 0, "--hidden"]
    for name in ("first", "second"):
        code, out, err = run(capsys, *words, "-o", tmp_path / name)
        assert (code, err) == (0, "")
    assert re.search(r"Test error: [\d.]+ \(root mean square\), R² -?[\d.]+; always guessing the mean gets [\d.]+", out)
    for file in (tmp_path / "first").iterdir():
        if file.suffix != ".skops":  # a zip file holds the time
            assert file.read_bytes() == (tmp_path / "second" / file.name).read_bytes(), file
    (test, _, usual), worst = (numbers_of(tmp_path / "first")[name].values() for name in ("scores", "worst rows"))
    first, second, _ = worst
    made = study.prepare(read_table(path, text=["weight"]), "weight")
    wrong = made.test["weight"] - made.training["weight"].mean()
    assert usual["rmse"] == pytest.approx((wrong**2).mean() ** 0.5)
    assert test["rmse"] >= test["mae"] > 0
    assert abs(first["off"]) >= abs(second["off"])
    assert first["off"] == pytest.approx(first["predicted"] - first["right"])


def test_markup_in_names_and_cells_is_shown_as_typed(tmp_path, capsys):
    bad, cell = "<script>alert(1)</script>", "<img src=x onerror=alert(2)>"
    lines = [f"{row},{'<b>' if row % 2 else cell},{'yes' if row % 3 else cell}" for row in range(40)]
    path = written(tmp_path / "table.csv", "\n".join([f"{bad},$\\x$,{bad}2", *lines, ""]))
    words = ["train", path, "--target", f"{bad}2", *QUICK[:4], "--folds", 2, "-o", tmp_path / "report"]
    assert run(capsys, *words)[0] == 0
    for file in (tmp_path / "report").glob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;2</h1>" in (tmp_path / "report" / "report.html").read_text("utf-8")


def test_of_many_rows_some_of_each_kind_are_judged_though_the_file_is_sorted(monkeypatch):
    rows, seen, real = pd.DataFrame({"x": np.arange(60.0), "y": ["a"] * 30 + ["b"] * 30}), [], figures.metrics.log_loss
    made = study.prepare(rows, "y", share=0.5)
    pipeline = made.pipeline(MLPClassifier((2,), max_iter=2, record=True, n_iter_no_change=np.inf, random_state=0))
    pipeline.fit(*made.parts(made.training))
    monkeypatch.setattr(figures, "MOST_ROWS", 12)
    monkeypatch.setattr(
        figures.metrics, "log_loss", lambda right, *more, **names: seen.append(right) or real(right, *more, **names)
    )
    assert np.isfinite(figures.validation(pipeline, made)).all()
    assert {len(right) for right in seen} == {12}
    assert set(seen[0]) == {"a", "b"}


@pytest.mark.parametrize("classes", [2, 25])
@pytest.mark.unmeasured
def test_pictures_of_few_and_of_many_classes_whatever_their_names(tmp_path, capsys, classes):
    names = ["accuracy", "weighted avg", *(f"class number {position} with a name" for position in range(2, classes))]
    lines = [f"{row % classes},{names[row % classes]}" for row in range(10 * classes)]
    path = written(tmp_path / "table.csv", "\n".join(["x,y", *lines, ""]))
    assert run(capsys, "train", path, "--target", "y", *QUICK[:4], "--folds", 0, "-o", tmp_path / "report")[0] == 0
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert ("What each threshold finds" in text) == (classes == 2)


@pytest.mark.parametrize("most", [0, 20_000])
def test_of_a_large_network_a_part_is_shown_and_the_loss_of_the_test_rows(tmp_path, capsys, monkeypatch, most):
    monkeypatch.setattr(page, "MOST_PARAMETERS", most)
    monkeypatch.setattr(scores, "MOST_COLUMNS", 1)
    monkeypatch.setattr("micrograd.estimators.MOST_SHOWN", 3)
    monkeypatch.setattr("micrograd.estimators.PART", 1)
    monkeypatch.setattr("micrograd.command.tables.LARGE", 3)
    words = ["train", small_file(tmp_path), "--target", "kind", *QUICK[:4], "-o", tmp_path / "report"]
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "Folds: none, as the table is large; --folds 10 asks for them" in out
    pages = {"recording.html", "worst-1.html", "worst-2.html", "worst-3.html"} if most else set()
    assert {file.name for file in (tmp_path / "report").iterdir()} == {
        "report.html",
        "metrics.json",
        "model.skops",
    } | pages
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "How much each column matters" not in text
    assert "How the loss fell" in text
    assert ("The training, step by step, with the inputs that weigh most</a>" in text) == (most > 0)


def test_a_network_that_was_not_recorded_has_no_curve_of_its_loss_and_no_recording(tmp_path):
    made = study.prepare(pd.DataFrame({"x": np.arange(20.0), "y": ["a", "b"] * 10}), "y")
    pipeline = made.pipeline(MLPClassifier((2,), max_iter=1, n_iter_no_change=np.inf)).fit(*made.parts(made.training))
    rows = scores.tested(pipeline, made)
    drawn = figures.figures(pipeline, made, rows, made.described(), {})
    assert not {"How the loss fell", "How much each column matters to the test rows"} & {*drawn}
    assert list(page._write_graphs(pipeline, made, rows[:1], tmp_path)) == ["worst-1.html"]


@pytest.mark.parametrize("beside", [True, False], ids=["and a column", "alone"])
def test_how_much_the_positions_of_an_image_matter_is_a_map(beside):
    random = np.random.default_rng(0)
    pixels = pd.DataFrame(random.random((40, 3)), columns=["p0", "p1", "p3"])  # the fourth is always paper
    table = pixels.assign(**({"size": random.random(40)} if beside else {}), y=np.where(pixels["p1"] > 0.5, "a", "b"))
    made = study.prepare(table, "y")
    network = MLPClassifier((2,), max_iter=1, n_iter_no_change=np.inf)
    pipeline = made.pipeline(network).fit(*made.parts(made.training))
    columns = made.described().assign(importance=[0.3, 0.1, 0.2, 0.05][: 3 + beside])
    inputs = {"<image>": [["p0", "p1"], ["p2", "p3"]], "row": ["p0", "p1"]}
    drawn = figures.figures(pipeline, made, scores.tested(pipeline, made), columns, inputs)
    picture = drawn["How much each position of the &lt;image&gt; matters to the test rows"]
    assert "<image " in picture
    assert "how much worse when it is shuffled" in picture
    of_columns = drawn.get("How much each column matters to the test rows", "")
    assert [name in of_columns for name in ("size", "p0", "p1")] == [beside, False, False]


def test_of_a_long_table_the_page_has_the_first_lines_and_the_last():
    table = page._table("Columns", {f"column {position}": {"missing": position} for position in range(1_000)})
    assert table.count("<tr>") == page.MOST_LINES + 1  # with the line of dots
    assert all(f"<th>column {position}</th>" in table for position in (0, 49, 950, 999))
