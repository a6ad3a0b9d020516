"""The report of a training: a folder with a page, its numbers, its pictures and the model.

    report.html   the page
    metrics.json  its numbers
    loss.svg      how the loss fell
    confusion.svg or scatter.svg   how far off the predictions for the test rows are
    neuron.svg    the graph of one neuron, with its gradients
    model.json    the model, for `micrograd predict`

The folder appears whole or not at all.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micrograd._support.files import write_atomically
from micrograd._support.interrupts import finish
from micrograd.draw.graph import draw_dot, svg
from micrograd.engine.value import Value
from micrograd.tables import metrics, plots
from micrograd.tables.encoding import Classes, Number
from micrograd.tables.page import page
from micrograd.tables.predictor import is_compiled

if TYPE_CHECKING:
    from micrograd._support.files import StrPath
    from micrograd.tables.predictor import Predictor, Study
    from micrograd.tables.table import Table
    from micrograd.training.fit import History

FILES = {"report.html", "metrics.json", "loss.svg", "confusion.svg", "scatter.svg", "neuron.svg", "model.json"}
_WEIGHTS_SHOWN = 3  # of the drawn neuron; what the other inputs add is one number


def check_folder(path: StrPath, *, overwrite: bool = False) -> None:
    """Find out, before the training, whether a report can be written to a folder.

    Args:
        path: of the folder, which need not be there.
        overwrite: whether an older report may be there, to be replaced.

    Raises:
        ValueError: if there is something else than an empty folder or, with overwrite, an older report.
        OSError: if nothing can be written there.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        names = {entry.name for entry in target.iterdir()}
        if names - FILES:
            raise ValueError(f"{path} has other files in it, such as {min(names - FILES)!r}: choose another folder")
        if names and not overwrite:
            raise ValueError(f"{path} has a report in it: choose another folder, or --overwrite it")
    elif target.exists():
        raise ValueError(f"{path} is a file: choose another name for the folder")
    parent = next(folder for folder in target.parents if folder.exists())
    try:
        Path(tempfile.mkdtemp(dir=parent, prefix=".")).rmdir()
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def check_pictures() -> None:
    """Find out, before the training, whether the pictures can be drawn.

    Raises:
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """
    plots.check()
    svg(Value(1.0))


def evaluate(study: Study, history: History) -> dict[str, Any]:
    """The numbers of a trained study, as they stand in metrics.json."""
    predictor = study.predictor
    return {
        "task": predictor.target.task,
        "target": predictor.target.name,
        "rows": {
            "training": len(study.training.rows),
            "test": len(study.test.rows),
            "without_target": study.without_target,
        },
        "columns": columns(study),
        "left_out": study.left_out,
        "network": network(predictor),
        "training": {
            "epochs": len(history.epochs),
            "steps": len(history.steps),
            "seed": study.settings.seed,
            "compiled": is_compiled(study.settings),
            "interrupted": history.interrupted,
            "first_loss": history.steps[0],
            "last_loss": (history.epochs or history.steps)[-1],
        },
        "on_training_rows": _measured(study, study.training),
        "on_test_rows": _measured(study, study.test),
    }


def columns(study: Study) -> list[dict[str, Any]]:
    """The columns that the network predicts from, and how many of their cells are missing."""
    rows = [*study.training.rows, *study.test.rows]
    return [
        {
            "name": column.name,
            "kind": "number" if isinstance(column, Number) else "category",
            "inputs": len(column.inputs),
            "missing": sum(not row[study.training.position(column.name)] for row in rows),
        }
        for column in study.predictor.columns
    ]


def network(predictor: Predictor) -> dict[str, Any]:
    """The network's size."""
    return {
        "inputs": len(predictor.inputs),
        "hidden": predictor.hidden,
        "activation": predictor.activation,
        "outputs": predictor.target.outputs,
        "parameters": len(predictor.model.parameters()),
    }


def write_report(
    study: Study, history: History, path: StrPath, *, pictures: bool = True, overwrite: bool = False
) -> dict[str, Any]:
    """Write the report of a trained study to a folder.

    Args:
        study: trained.
        history: of the training.
        path: of the folder; see check_folder for what may be there.
        pictures: whether to draw pictures.
        overwrite: whether to replace an older report.

    Returns:
        What is in metrics.json.

    Raises:
        ValueError, OSError: as check_folder does.
        ImportError: if matplotlib or Graphviz is missing, naming it.
    """
    numbers = evaluate(study, history)
    files = _pictures(study, history, numbers) if pictures else {}
    files["metrics.json"] = (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode()
    files["report.html"] = page(numbers, list(files)).encode()
    check_folder(path, overwrite=overwrite)

    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        new = temporary / "new"
        new.mkdir()
        for name, data in files.items():
            write_atomically(new / name, data)
        study.predictor.save(new / "model.json")
        finish(lambda: _put_in_place(new, target, temporary / "old"))
    finally:
        finish(lambda: shutil.rmtree(temporary, ignore_errors=True))
    return numbers


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Move the old folder aside, and give its name to the new one. This may run again after a part of it was done."""
    if not new.exists():
        return
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def _measured(study: Study, table: Table) -> dict[str, Any]:
    """How good the predictions for some rows are."""
    target = study.predictor.target
    cells, predictions = table.column(target.name), study.predictor.predict(table)
    if isinstance(target, Classes):
        usual = Counter(study.training.column(target.name)).most_common(1)[0][0]
        return metrics.classification(target.classes, cells, [target.likeliest(p) for p in predictions], usual)
    return metrics.regression([float(cell) for cell in cells], predictions, target.mean)


def _pictures(study: Study, history: History, numbers: dict[str, Any]) -> dict[str, bytes]:
    """The pictures by the names of their files."""
    target = study.predictor.target
    files = {"neuron.svg": draw_dot(_neuron(study)).pipe("svg")}
    if isinstance(target, Classes):
        files["loss.svg"] = plots.loss(history.steps, math.log(len(target.classes)), "cross-entropy")
        confusion = numbers["on_test_rows"]["confusion"]
        files["confusion.svg"] = plots.confusion(target.classes, confusion, target.name)
    else:
        files["loss.svg"] = plots.loss(history.steps, 1.0, "squared error, in variances")
        wanted = [float(cell) for cell in study.test.column(target.name)]
        files["scatter.svg"] = plots.scatter(wanted, study.predictor.predict(study.test), target.name)
    return files


def _neuron(study: Study) -> Value:
    """The neuron of the first layer that learns the most from the test row with the largest loss.

    Of its inputs only those that weigh most are drawn; the others are one number.
    """
    predictor, target = study.predictor, study.predictor.target
    rows = predictor.encoded(study.test)
    wanted = [target.encode(cell) for cell in study.test.column(target.name)]
    losses = list(map(target.loss, predictor.outputs(study.test), wanted))
    hardest = losses.index(max(losses))
    predictor.model.zero_grad()
    target.loss(predictor.model(rows[hardest]), wanted[hardest]).backward()
    neuron = max(predictor.model.layers[0].neurons, key=lambda neuron: abs(neuron.b.grad))
    gradient = neuron.b.grad  # of the weighted sum, which the bias is a term of
    predictor.model.zero_grad()

    inputs = rows[hardest]
    products = [weight.data * number for weight, number in zip(neuron.w, inputs, strict=True)]
    order = sorted(range(len(inputs)), key=lambda index: -abs(products[index]))
    total = Value(neuron.b.data, label="bias")
    if others := order[_WEIGHTS_SHOWN:]:
        total = total + Value(sum(products[index] for index in others), label="other inputs", requires_grad=False)
    for index in order[:_WEIGHTS_SHOWN]:
        name = predictor.inputs[index]
        weight = Value(neuron.w[index].data, label=f"weight of {name}")
        total = total + weight * Value(inputs[index], label=name, requires_grad=False)
    total.label = "weighted sum"
    total.backward(gradient)
    return total
