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
    """The result in a line."""
    test, _, usual = numbers["scores"].values()
    if numbers["task"] == "classification":
        rows = numbers["rows"]["tested on"]["how many"]
        right = f"{test['accuracy']:.1%} ({round(test['accuracy'] * rows):,} of {rows:,} rows)"
        return f"Test accuracy: {right}; always guessing the commonest class gets {usual['accuracy']:.1%}"
    explained = "" if test["r2"] is None else f", R² {test['r2']:.3f}"
    error = f"{test['rmse']:.4g} (root mean square){explained}"
    return f"Test error: {error}; always guessing the mean gets {usual['rmse']:.4g}"


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
        links, drawn = {}, {}
        if pictures:
            rows = scores.tested(pipeline, study)
            if numbers["network"]["parameters"] <= MOST_PARAMETERS:
                links = _write_graphs(pipeline, study, rows[: scores.WORST], folder)
            drawn = {**_figures(pipeline, study, rows, numbers), **(more or {})}
        write_atomically(folder / "metrics.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
        write_atomically(folder / "model.skops", Model(pipeline, study.target).dumped())
        write_atomically(folder / "report.html", _page(numbers, links, drawn).encode())

    check_folder(path, FILES, overwrite=overwrite)
    write_folder(path, fill)


def _write_graphs(pipeline: Pipeline, study: Study, worst: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Write the graphs of the worst rows, and the film if there is one; their names and titles."""
    network, shown = network_of(pipeline), {}
    inputs = pipeline[:-1].transform(study.parts(study.test.loc[worst.index])[0])
    for place, (line, row) in enumerate(worst.iterrows(), start=1):
        right, predicted = (f"{row[kind]:{'' if study.of_classes else '.6g'}}" for kind in ("right", "predicted"))
        title = f"Why is line {line}, which is {right}, predicted to be {predicted}?"
        network.explore(inputs.loc[[line]], folder / f"worst-{place}.html", title)
        shown[f"worst-{place}.html"] = title
    if network.record_ is not None:
        explore(network.record_, folder / "film.html")
        shown["film.html"] = "The training as a film"
    return shown


def _figures(pipeline: Pipeline, study: Study, rows: pd.DataFrame, numbers: dict[str, Any]) -> dict[str, str]:
    """The pictures by their captions."""
    drawn = {"The test rows: what is right, and what is predicted": svg(figures.predictions, rows, study)}
    if study.of_classes and len(pipeline.classes_) == rows["right"].nunique() == 2:
        both = svg(figures.two_classes, rows, height=7.5)
        drawn["What each threshold finds, and what probabilities are worth"] = both
    columns = pd.DataFrame(numbers["columns"]).T[: figures.MOST_BARS]
    if "importance" in columns:
        matter = svg(figures.importance, columns["importance"], height=1.2 + 0.3 * len(columns))
        drawn["How much each column matters to the test rows"] = matter
    if film := network_of(pipeline).record_:
        drawn["How the loss fell"] = svg(figures.course, film.losses, scores.validation(pipeline, study))
    return drawn


def _page(numbers: dict[str, Any], links: dict[str, str], drawn: dict[str, str]) -> str:
    """The page, with names and cells as typed: its numbers, links with what they show, pictures by their captions."""
    title, measure = escape(numbers["target"]), "Accuracy" if numbers["task"] == "classification" else "R²"
    parts = [
        f"<h1 tabindex=0>{title}</h1>",
        f"<p class=headline tabindex=0>{escape(headline(numbers))}</p>",
        _table("Scores", numbers["scores"]),
        _table(f"{measure} in folds", numbers["folds"]),
        _table("Classes", numbers["classes"]),
        _table("Worst rows", numbers["worst rows"]),
        *(f'<p><a href="{name}">{escape(text)}</a></p>' for name, text in links.items()),
        *(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" for caption, picture in drawn.items()),
        _table("Columns", numbers["columns"]),
        _table("Columns left out", numbers["columns left out"]),
        _table("Rows", numbers["rows"]),
        _table("Network", {name: {"": what} for name, what in numbers["network"].items()}),
    ]
    template = files("micrograd.tables").joinpath("report.html").read_text("utf-8")
    head, after_title, foot = re.split("<!--TITLE-->|<!--BODY-->", template)  # what is put in is not searched again
    return "".join([head, title, after_title, "\n".join(parts), foot])


def _table(heading: str, rows: dict[str, Any]) -> str:
    """A table under its heading; nothing where there are no rows."""
    cells = pd.DataFrame(rows).T.to_html(border=0, na_rep="", float_format="{:.4g}".format)
    table = cells.replace("<th></th>", "<td></td>")
    return f"<h2>{heading}</h2><div class=wide tabindex=0>{table}</div>" if rows else ""
