"""The report of a training: its numbers, its page, and the folder that they stand in with the model.

report.html   the page, whole in one file
metrics.json  its numbers
worst-1.html  the graph behind the prediction that is the furthest off, and two more like it
film.html     the training, step by step
model.skops   the model, for `micrograd predict`
"""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pandas as pd
from sklearn.metrics import classification_report

from micrograd._support.files import write_atomically
from micrograd._support.folders import check_folder, write_folder
from micrograd.explore import explore
from micrograd.tables import figures, scores
from micrograd.tables.models import Model
from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from pathlib import Path

    from sklearn.pipeline import Pipeline

    from micrograd._support.files import StrPath
    from micrograd.tables.study import Study

FILES = {"report.html", "metrics.json", "model.skops", "film.html", "worst-1.html", "worst-2.html", "worst-3.html"}
WORST = 3
MOST_PARAMETERS = 5_000  # of a network whose graphs are shown
MOST_COLUMNS = 100  # that are shuffled to see whether they matter


def evaluate(pipeline: Pipeline, study: Study, *, folds: int, seed: int) -> dict[str, Any]:
    """The numbers of a pipeline that has learned, as they stand in metrics.json.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        folds: in how many it is judged again, beside others; below 2 for none.
        seed: of the folds, and of the columns that are shuffled.
    """
    network, (inputs, right) = network_of(pipeline), study.parts(study.test)
    classes: dict[str, Any] = {}
    if study.of_classes:
        classes = classification_report(right, pipeline.predict(inputs), output_dict=True, zero_division=0)
    return {
        "task": study.task,
        "target": study.target,
        "rows": {"training": len(study.training), "test": len(study.test), "without target": study.without_target},
        "columns": study.described(),
        "left_out": study.columns.left_out,
        "network": described(network),
        "training": {"seed": seed, "epochs": network.n_iter_, "losses": network.loss_curve_},
        "on_test_rows": scores.on_rows(pipeline, study, study.test),
        "on_training_rows": scores.on_rows(pipeline, study, study.training),
        "folds": scores.in_folds(pipeline, study, folds, seed) if folds > 1 else {},
        "classes": {name: classes[name] for name in sorted(set(right)) if classes},
        "worst": scores.worst(pipeline, study, WORST),
        "importance": scores.importance(pipeline, study, seed) if len(study.columns.names) <= MOST_COLUMNS else {},
    }


def described(network: Any) -> dict[str, Any]:
    """The size of a network that has learned."""
    inputs, *hidden, outputs = len(network.coefs_[0]), *map(len, network.intercepts_)
    parameters = sum(part.size for part in (*network.coefs_, *network.intercepts_))
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs}
    return {**sizes, "activation": network.activation, "parameters": parameters}


def headline(numbers: dict[str, Any]) -> str:
    """The result in a line or several."""
    test, rows = numbers["on_test_rows"], numbers["rows"]["test"]
    if numbers["task"] == "classification":
        right = round(test["accuracy"] * rows)
        text = (
            f"Test accuracy: {test['accuracy']:.1%} ({right:,} of {rows:,} rows); always guessing the commonest class"
        )
        text += f" gets {test['guessing']:.1%}"
    else:
        explained = "" if test["r2"] is None else f", R² {test['r2']:.3f}"
        text = f"Test error: {test['rmse']:.4g} (root mean square){explained}; always guessing the mean gets"
        text += f" {test['guessing']:.4g}"
    for name, score in numbers["folds"].items():
        text += f"\nIn folds, {name}: {score['mean']:.3f} ({score['low']:.3f} to {score['high']:.3f})"
    return text


def write_report(
    pipeline: Pipeline, study: Study, numbers: dict[str, Any], path: StrPath, *, pictures: bool, overwrite: bool
) -> None:
    """Write the folder of a report, whole or not at all.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        numbers: what evaluate gave.
        path: of the folder.
        pictures: whether to draw pictures, graphs and the film.
        overwrite: whether to replace an older report.

    Raises:
        ValueError: if there is something else than an empty folder or, with overwrite, an older report.
        OSError: if it cannot be written.
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """

    def fill(folder: Path) -> None:
        links = _write_graphs(pipeline, study, numbers, folder) if pictures else {}
        drawn = _figures(pipeline, study, numbers) if pictures else {}
        write_atomically(folder / "metrics.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
        write_atomically(folder / "model.skops", Model(pipeline, study.target).dumped())
        write_atomically(folder / "report.html", page(numbers, drawn, links).encode())

    check_folder(path, FILES, overwrite=overwrite)
    write_folder(path, fill)


def _write_graphs(pipeline: Pipeline, study: Study, numbers: dict[str, Any], folder: Path) -> dict[str, str]:
    """Write the graphs of the worst rows, and the film; each file's name, with what it shows."""
    network = network_of(pipeline)
    shown: dict[str, str] = {}
    if numbers["network"]["parameters"] <= MOST_PARAMETERS:
        for place, row in enumerate(numbers["worst"], start=1):
            inputs = pipeline[:-1].transform(study.parts(study.test.loc[[row["line"]]])[0])
            name = f"worst-{place}.html"
            shown[name] = f"Why is line {row['line']}, which is {row['right']}, predicted to be {row['predicted']}?"
            network.explore(inputs, folder / name, shown[name])
    if network.record_ is not None:
        shown["film.html"] = "The training as a film"
        explore(network.record_, folder / "film.html")
    return shown


def _figures(pipeline: Pipeline, study: Study, numbers: dict[str, Any]) -> dict[str, str]:
    """The pictures by their captions."""
    drawn = {"The test rows: what is right, and what is predicted": figures.predictions(pipeline, study)}
    if len(numbers["classes"]) == len(getattr(pipeline, "classes_", ())) == 2:
        drawn["What each threshold finds, and what probabilities are worth"] = figures.two_classes(pipeline, study)
    if numbers["importance"]:
        drawn["How much each column matters to the test rows"] = figures.importance(numbers["importance"])
    if network_of(pipeline).record_ is not None:
        drawn["How the loss fell"] = figures.course(scores.course(pipeline, study))
    return drawn


def page(numbers: dict[str, Any], drawn: dict[str, str], links: dict[str, str]) -> str:
    """The page. Names and cells are shown as typed.

    Args:
        numbers: what metrics.json holds.
        drawn: pictures as SVG, by their captions.
        links: to other files, each with what it shows.
    """
    network = {**numbers["network"], "epochs": numbers["training"]["epochs"]}
    both = {"test rows": numbers["on_test_rows"], "rows learned from": numbers["on_training_rows"]}
    tables = {
        "How well it predicts": pd.DataFrame(both),
        "In folds, beside others": pd.DataFrame(numbers["folds"]).T,
        "Class by class": pd.DataFrame(numbers["classes"]).T,
        "The worst rows": pd.DataFrame(numbers["worst"]).set_index("line"),
        "Columns": pd.DataFrame(numbers["columns"]).T,
        "Columns left out": pd.DataFrame({"because": numbers["left_out"]}),
        "Rows": pd.DataFrame({"how many": numbers["rows"]}),
        "The network": pd.DataFrame({"": pd.Series(network)}),
    }
    parts = [f"<h1 tabindex=0>{escape(numbers['target'])}</h1>"]
    parts += [f"<p class=headline tabindex=0>{escape(line)}</p>" for line in headline(numbers).splitlines()]
    parts += [
        f"<h2>{title}</h2><div class=wide tabindex=0>"
        + cells.to_html(border=0, na_rep="", float_format="{:.4g}".format).replace("<th></th>", "<td></td>")
        + "</div>"
        for title, cells in tables.items()
        if len(cells)
    ]
    parts += [f'<p><a href="{name}">{escape(text)}</a></p>' for name, text in links.items()]
    parts += [f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" for caption, picture in drawn.items()]
    template = files("micrograd.tables").joinpath("report.html").read_text("utf-8")
    head, after_title, foot = re.split("<!--TITLE-->|<!--BODY-->", template)  # what is put in is not searched again
    return "".join([head, escape(numbers["target"]), after_title, "\n".join(parts), foot])
