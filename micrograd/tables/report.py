"""The report of a training: its page, and the folder that it stands in with the model.

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

from micrograd._support.files import write_atomically
from micrograd._support.folders import check_folder, write_folder
from micrograd.explore import explore
from micrograd.tables import figures, scores
from micrograd.tables.figures import svg
from micrograd.tables.models import Model
from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sklearn.pipeline import Pipeline

    from micrograd._support.files import StrPath
    from micrograd.tables.study import Study

FILES = {"report.html", "metrics.json", "model.skops", "film.html", "worst-1.html", "worst-2.html", "worst-3.html"}
MOST_PARAMETERS = 5_000  # of a network whose graphs and film are shown


def headline(numbers: dict[str, Any]) -> str:
    """The result in a line or several."""
    test, rows = numbers["on_test_rows"], numbers["rows"]["test"]
    if numbers["task"] == "classification":
        right = f"{test['accuracy']:.1%} ({round(test['accuracy'] * rows):,} of {rows:,} rows)"
        text = f"Test accuracy: {right}; always guessing the commonest class gets {test['guessing']:.1%}"
    else:
        explained = "" if test["r2"] is None else f", R² {test['r2']:.3f}"
        text = f"Test error: {test['rmse']:.4g} (root mean square){explained}; always guessing the mean gets"
        text += f" {test['guessing']:.4g}"
    for name, score in numbers["folds"].items():
        text += f"\nIn folds, {name}: {score['mean']:.3f} ({score['low']:.3f} to {score['high']:.3f})"
    return text


def write_report(
    pipeline: Pipeline,
    study: Study,
    numbers: dict[str, Any],
    path: StrPath,
    *,
    pictures: bool,
    overwrite: bool,
    more: Mapping[str, str] | None = None,
) -> None:
    """Write the folder of a report, whole or not at all.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        numbers: what scores.evaluate gave.
        path: of the folder.
        pictures: whether to draw pictures, graphs and the film.
        overwrite: whether to replace an older report.
        more: pictures as SVG, by their captions, that stand after the others.

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
        write_atomically(folder / "report.html", _page(numbers, {**drawn, **(more or {})}, links).encode())

    check_folder(path, FILES, overwrite=overwrite)
    write_folder(path, fill)


def _write_graphs(pipeline: Pipeline, study: Study, numbers: dict[str, Any], folder: Path) -> dict[str, str]:
    """Write the graphs of the worst rows, and the film, of a network that is not too large; their names and titles."""
    network, shown = network_of(pipeline), {}
    if numbers["network"]["parameters"] > MOST_PARAMETERS:
        return {}
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
    drawn = {"The test rows: what is right, and what is predicted": svg(figures.predictions, pipeline, study)}
    if len(numbers["classes"]) == len(getattr(pipeline, "classes_", ())) == 2:
        both = svg(figures.two_classes, pipeline, study, height=7.5)
        drawn["What each threshold finds, and what probabilities are worth"] = both
    if by_column := numbers["importance"]:
        height = 1.2 + 0.3 * min(len(by_column), figures.MOST_BARS)
        drawn["How much each column matters to the test rows"] = svg(figures.importance, by_column, height=height)
    if network_of(pipeline).record_ is not None:
        drawn["How the loss fell"] = svg(figures.course, scores.course(pipeline, study))
    return drawn


def _page(numbers: dict[str, Any], drawn: dict[str, str], links: dict[str, str]) -> str:
    """The page, with names and cells as typed: its numbers, pictures by their captions, links with what they show."""
    both = {"test rows": numbers["on_test_rows"], "rows learned from": numbers["on_training_rows"]}
    network = {**numbers["network"], "epochs": numbers["training"]["epochs"]}
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
    title = escape(numbers["target"])
    parts = [f"<h1 tabindex=0>{title}</h1>"]
    parts += [f"<p class=headline tabindex=0>{escape(line)}</p>" for line in headline(numbers).splitlines()]
    for heading, cells in tables.items():
        if len(cells):
            table = cells.to_html(border=0, na_rep="", float_format="{:.4g}".format).replace("<th></th>", "<td></td>")
            parts.append(f"<h2>{heading}</h2><div class=wide tabindex=0>{table}</div>")
    parts += [f'<p><a href="{name}">{escape(text)}</a></p>' for name, text in links.items()]
    parts += [f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" for caption, picture in drawn.items()]
    template = files("micrograd.tables").joinpath("report.html").read_text("utf-8")
    head, after_title, foot = re.split("<!--TITLE-->|<!--BODY-->", template)  # what is put in is not searched again
    return "".join([head, title, after_title, "\n".join(parts), foot])
