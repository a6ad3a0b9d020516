"""The report of a training: its page, and the folder that it stands in with the model.

report.html     the page, whole in one file
metrics.json    its numbers
worst-1.html    the graph behind the prediction that is the furthest off, and two more like it
recording.html  the training, step by step
model.skops     the model, for `micrograd predict`
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import pandas as pd

from micrograd._support.files import write_atomically
from micrograd._support.folders import check_folder, write_folder
from micrograd.pages import explore
from micrograd.reports import scores
from micrograd.reports.figures import figures
from micrograd.tables.models import Model
from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sklearn.pipeline import Pipeline

    from micrograd._support.files import StrPath
    from micrograd.tables.study import Study

FILES = {"report.html", "metrics.json", "model.skops", "recording.html", "worst-1.html", "worst-2.html", "worst-3.html"}
MOST_LINES = 100  # of a table; of a longer one, the first and the last, and metrics.json has all
MOST_PARAMETERS = 20_000  # behind the first layer of a network whose graphs and recording are shown


def headline(numbers: dict[str, Any]) -> str:
    """The result in a line."""
    test, _, usual = numbers["scores"].values()
    if numbers["task"] == "classification":
        rows = numbers["rows"]["tested on"]
        right = f"{test['accuracy']:.1%} ({round(test['accuracy'] * rows):,} of {rows:,} rows)"
        right += f", balanced accuracy {test['balanced accuracy']:.1%}"
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
    inputs: Mapping[str, Any] | None = None,
    title: str = "",
) -> None:
    """Write the folder of a report, whole or not at all.

    Args:
        pipeline: what study.pipeline made, fitted.
        study: what it learned.
        numbers: what scores.evaluate gave.
        path: of the folder.
        pictures: whether to draw pictures, graphs and the recording.
        overwrite: whether to replace an older report.
        more: pictures as SVG, by their captions, that stand before all others.
        inputs: columns that graphs show as one box, as the estimators' explore takes them.
        title: of the page; what is predicted where left out.

    Raises:
        ValueError: if there is something else than an empty folder or, with overwrite, an older report.
        OSError: if it cannot be written.
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """

    def fill(folder: Path) -> None:
        links, drawn = {}, {}
        if pictures:
            rows = scores.tested(pipeline, study)
            links = _write_graphs(pipeline, study, rows[: scores.WORST], folder, inputs)
            drawn = figures(pipeline, study, rows, pd.DataFrame(numbers["columns"]).T, inputs or {})
        write_atomically(folder / "metrics.json", (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())
        write_atomically(folder / "model.skops", Model(pipeline, study.target).dumped())
        write_atomically(folder / "report.html", _page(numbers, links, drawn, more or {}, title).encode())

    check_folder(path, FILES, overwrite=overwrite)
    write_folder(path, fill)


def _write_graphs(
    pipeline: Pipeline, study: Study, worst: pd.DataFrame, folder: Path, boxes: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """Write the graphs of the worst rows, and the recording if there is one; their names and titles."""
    network, encoder, shown = network_of(pipeline), pipeline[0], {}
    if sum(coef.size for coef in network.coefs_[1:]) > MOST_PARAMETERS:
        return {}
    inputs = encoder.transform(study.parts(study.test.loc[worst.index])[0])
    inputs = pd.DataFrame(inputs, worst.index, encoder.get_feature_names_out())
    for position, (line, row) in enumerate(worst.iterrows(), start=1):
        right, predicted = (f"{row[kind]:{'' if study.of_classes else '.6g'}}" for kind in ("right", "predicted"))
        title = f"Why is line {line}, which is {right}, predicted to be {predicted}?"
        network.explore(inputs.loc[[line]], folder / f"worst-{position}.html", title, boxes)
        shown[f"worst-{position}.html"] = title
    if network.record_ is not None:
        some = len(network.record_.inputs[0]) < network.n_features_in_
        shown["recording.html"] = f"The training, step by step{', with the inputs that weigh most' if some else ''}"
        explore(network.record_, folder / "recording.html", shown["recording.html"])
    return shown


def _page(
    numbers: dict[str, Any], links: dict[str, str], drawn: Mapping[str, str], first: Mapping[str, str], title: str
) -> str:
    """The page, with names and cells as typed: its numbers, links with what they show, pictures by their captions."""
    measure = numbers["measure in folds"]
    parts = [
        *_figures(first),
        _table("Scores", numbers["scores"]),
        _table(f"{measure[0].upper()}{measure[1:]} in folds", numbers["folds"]),
        _table("Classes", numbers["classes"]),
        _table("Classes never predicted", numbers["classes never predicted"]),
        _table("Worst rows", numbers["worst rows"]),
        *(f'<p><a href="{name}">{escape(text)}</a></p>' for name, text in links.items()),
        *_figures(drawn),
        _table("Columns", numbers["columns"]),
        _table("Columns left out", numbers["columns left out"]),
        _table("Columns read as numbers", numbers["columns read as numbers"]),
        *(
            _table(name.title(), {key: {"": what} for key, what in numbers[name].items()})
            for name in ("rows", "network")
        ),
    ]
    template = Template(files("micrograd.reports").joinpath("page.html").read_text("utf-8"))
    title = escape(title or f"Predicting {numbers['target']}")
    heading = title.replace("_", "_<wbr>")  # where a long name of a column may be wrapped
    return template.substitute(title=title, heading=heading, headline=escape(headline(numbers)), body="\n".join(parts))


def _figures(drawn: Mapping[str, str]) -> list[str]:
    return [f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" for caption, picture in drawn.items()]


def _table(heading: str, rows: dict[str, Any]) -> str:
    """A table under its heading; nothing where there are no rows."""
    cells = pd.DataFrame(rows).T.to_html(border=0, na_rep="", float_format="{:.4g}".format, max_rows=MOST_LINES)
    table = cells.replace("<th></th>", "<td></td>")
    return f"<h2>{heading}</h2><div class=wide tabindex=0>{table}</div>" if rows else ""
