"""train and predict: networks that learn a column of a CSV file. What they stand on is loaded when they run."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import os
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micrograd._support.files import write_atomically
from micrograd._support.folders import check_folder
from micrograd.command.output import OK, print_json, printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator

    import pandas as pd

    from micrograd.tables.models import Model
    from micrograd.tables.study import Study

EXAMPLES = 12_000  # that the network is shown where nobody says how many epochs
FEWEST_EPOCHS, MOST_EPOCHS = 3, 60
FOLDS = 10
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
LARGE = 200_000  # cells; a table of more is not judged in folds unasked


def check_packages() -> None:
    """Raise an ImportError where a package that tables need is missing."""
    try:
        import pandas  # noqa: F401  # only to see that they are there
        import sklearn  # noqa: F401
        import skops  # noqa: F401
    except ImportError:
        raise ImportError("tables need scikit-learn, pandas and skops: pip install scikit-learn pandas skops") from None


def _read(options: argparse.Namespace, path: str, **columns: Any) -> pd.DataFrame:
    from micrograd.tables.reading import read_table

    how = {name: getattr(options, name) for name in ("delimiter", "decimal", "missing", "encoding")}
    return read_table(path, **how, **columns)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Inside, the garbage collector looks less often: a wide table is thousands of objects, hardly any is garbage."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_collecting_rarely()
def train(options: argparse.Namespace) -> int:
    """Train a network and write its report."""
    check_packages()
    from threadpoolctl import threadpool_limits

    from micrograd.draw.plots import check_pictures
    from micrograd.reports import page, scores
    from micrograd.tables.study import network_of, prepare

    # All checks come before the training: an error after it would lose the training.
    table = _read(options, options.data, text=[options.target])
    chosen = {"task": options.task, "ignored": options.ignore or (), "kept": options.keep or ()}
    study = prepare(table, options.target, **chosen, share=options.test, seed=options.seed)
    if options.balance and not study.of_classes:
        raise ValueError(f"--balance is for classes, and {options.target!r} is learned as a number")
    folder = options.output or f"{_stem(options.data)}-report"
    check_folder(folder, page.FILES, overwrite=options.overwrite)
    if not options.no_pictures:
        try:
            check_pictures()
        except ImportError as error:
            raise ImportError(f"{error}, or --no-pictures") from error

    say = _say if not (options.quiet or options.json) else lambda text: None
    for line in _described(study):
        say(line)
    pipeline, start = study.pipeline(_estimator(options, study)), time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training interrupted")  # which is said below
        try:
            weights = {"estimator__sample_weight": scores.weights(study.training[study.target])}
            pipeline.fit(*study.parts(study.training), **(weights if options.balance else {}))
        except ArithmeticError as error:  # which names an argument of the estimator; the columns are scaled already
            raise ArithmeticError(f"{str(error).partition(':')[0]}: take a smaller --learning-rate") from error
    network, seconds = network_of(pipeline), time.perf_counter() - start
    if not network.loss_curve_:
        raise KeyboardInterrupt
    if network.interrupted_:
        say("Interrupted: the report is about the network as it is now")
    size = scores.described(network)
    say(f"Network: {_shape(size)}, {size['parameters']:,} parameters")
    losses = f"loss {network.loss_curve_[0]:.3g} to {network.loss_:.3g}"
    say(f"Training: {network.n_iter_} {'epochs' if network.n_iter_ > 1 else 'epoch'} in {seconds:.1f} s, {losses}")
    folds = options.folds
    if folds is None and (folds := FOLDS) and table.size > LARGE:
        say("Folds: none, as the table is large; --folds 10 asks for them")
        folds = 0
    how = {"pictures": not options.no_pictures, "overwrite": options.overwrite}
    with threadpool_limits(1):  # threads of NumPy wait for one another on tables that are not huge
        numbers = scores.evaluate(pipeline, study, folds=folds, seed=options.seed, balance=options.balance)
        page.write_report(pipeline, study, numbers, folder, **how)
    say(page.headline(numbers))
    advice = "" if options.balance else ": --balance has all classes weigh the same"
    for name, found in numbers["classes never predicted"].items():
        say(f"Never predicts {name!r}, which {found['rows']:,} of {len(study.rows):,} rows are{advice}")
    for name, score in numbers["folds"].items():
        interval = f"{score['mean']:.3f} ({score['low']:.3f} to {score['high']:.3f})"
        say(f"In folds, {name}: {numbers['measure in folds']} {interval}")
    say(f"Report: {Path(folder) / 'report.html'}")
    if options.json:
        print_json({**numbers, "report": folder})
    return OK


def _estimator(options: argparse.Namespace, study: Study) -> Any:
    """The network that is to learn."""
    from micrograd.estimators import MLPClassifier, MLPRegressor

    rows = len(study.training)
    hidden = (16,) if options.hidden is None else tuple(options.hidden)
    return (MLPClassifier if study.of_classes else MLPRegressor)(
        hidden,
        options.activation,
        alpha=options.alpha,
        batch_size=options.batch_size,
        learning_rate="cosine",
        learning_rate_init=options.learning_rate,
        max_iter=options.epochs or min(max(round(EXAMPLES / rows), FEWEST_EPOCHS), MOST_EPOCHS),
        random_state=options.seed,
        verbose=False if options.quiet else None,
        n_iter_no_change=math.inf,
        record=not options.no_pictures,
    )


def _say(text: str) -> None:
    for line in text.splitlines():
        print(printable(line), flush=True)


def _stem(path: str) -> str:
    """The name of a file without what follows its first dot; "table" where it has none."""
    return Path(path).name.lstrip("-.").partition(".")[0] or "table"


def _described(study: Study) -> list[str]:
    """What the network is to learn, and from what."""
    classes = study.training[study.target].nunique()
    lines = [f"Target: {study.target}, {f'one of {classes} classes' if study.of_classes else 'a number'}"]
    dropped = f"; {study.without_target:,} without a target are left out" if study.without_target else ""
    lines.append(f"Rows: {len(study.training):,} to learn from, {len(study.test):,} to test on{dropped}")
    columns = [f"{name}{_gaps(missing)}" for name, missing in study.described()["missing"].items()]
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    lines.append(f"Columns: {', '.join(columns[:12])}{more}")
    lines += [f"Read as numbers: {name}, where {example}" for name, example in study.as_numbers.items()]
    return lines + [f"Left out: {name}, because {reason}" for name, reason in study.left_out.items()]


def _gaps(count: int) -> str:
    return f" ({count:,} missing)" if count else ""


def _shape(size: dict[str, Any]) -> str:
    """The network in words."""
    hidden = f"{' and '.join(map(str, size['hidden']))} {size['activation']} neurons" if size["hidden"] else ""
    ends = [f"{size[end]} {end if size[end] != 1 else end[:-1]}" for end in ("inputs", "outputs")]
    return ", ".join(filter(None, (ends[0], hidden, ends[1])))


def predict(options: argparse.Namespace) -> int:
    """Write the predictions for the rows of a file, or of those in a folder."""
    check_packages()
    from micrograd.tables.models import load

    files, saved = _files(options.data), options.model
    if os.path.isdir(saved):
        saved = os.path.join(saved, "model.skops")
    if options.output is not None:
        _keep_what_is_read(options.output, [saved, *files])
    model, records = load(saved), []
    for file in files:
        named = {} if options.data == file else {"file": Path(file).name}
        records += [named | record for record in _predicted(options, model, file)]
    text = io.StringIO()
    if options.json:
        json.dump(records, text, indent=1, ensure_ascii=False)
        text.write("\n")
    else:
        _write_csv(records, model.target, text)
    if options.output is None:
        print(text.getvalue(), end="")  # which goes nowhere where the standard output was closed
    else:
        write_atomically(options.output, text.getvalue().encode())
    return OK


def _files(data: str) -> list[str]:
    """The files to predict for: the one that is given, or the tables in a folder."""
    if not os.path.isdir(data):
        return [data]
    files = [str(path) for path in sorted(Path(data).iterdir()) if path.name.lower().endswith(TABLES)]
    if not files:
        raise ValueError(f"{data} is a folder without tables, whose names end in {', '.join(TABLES)}")
    return files


def _predicted(options: argparse.Namespace, model: Model, file: str) -> list[dict[str, Any]]:
    """What is predicted for each row of a file, with the cells that tell it from the others."""
    import pandas as pd

    from micrograd.tables.study import tells_rows_apart

    table = _read(options, file, numbers=model.columns["numbers"])  # ids keep the zeros in front
    others = [name for name in table if name not in {*model.pipeline.feature_names_in_, model.target}]
    ids = [name for name in others if tells_rows_apart(table[name])]
    try:
        inputs = model.inputs(table)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    for name, count in model.guessed(inputs).items():
        print(printable(f"micrograd: {count} cells of {name!r} are missing or unknown to the model"), file=sys.stderr)
    records = [{"prediction": prediction} for prediction in model.pipeline.predict(inputs).tolist()]
    if (classes := getattr(model.pipeline, "classes_", None)) is not None:
        each = pd.DataFrame(model.pipeline.predict_proba(inputs), columns=classes).to_dict("records")
        records = [record | {"probabilities": row} for record, row in zip(records, each, strict=True)]
    if ids:
        records = [{"ids": row} | record for row, record in zip(table[ids].to_dict("records"), records, strict=True)]
    return records


def _write_csv(records: list[dict[str, Any]], target: str, text: io.StringIO) -> None:
    """Write a line for each prediction: its file, its ids, the prediction, its probability, and that of each class."""
    writer = csv.writer(text, lineterminator="\n")
    ids = [*dict.fromkeys(name for record in records for name in record.get("ids", ()))]
    files, classes = ["file"] * ("file" in records[0]), [*records[0].get("probabilities", ())]
    of_each = [f"probability of {name}" for name in classes]
    writer.writerow(map(_defused, [*files, *ids, target, *(["probability", *of_each] if classes else [])]))
    for record in records:
        named = [record[name] for name in files] + [record.get("ids", {}).get(name, "") for name in ids]
        if classes:
            shares = [f"{record['probabilities'][name]:.4f}" for name in classes]
            predicted = [record["prediction"], max(shares, key=float), *shares]
        else:
            predicted = [f"{record['prediction']:.10g}"]
        writer.writerow(map(_defused, [*named, *predicted]))


def _keep_what_is_read(output: str, inputs: Collection[str]) -> None:
    """Refuse to write over a file that is read, under whatever name; devices may be read and written."""
    if os.path.isfile(output) and any(os.path.exists(file) and os.path.samefile(file, output) for file in inputs):
        raise ValueError(f"{output} is read, too: it would be lost; choose another name for the predictions")


def _defused(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe stands before what might be one."""
    try:
        float(cell)
    except ValueError:
        return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
    return cell
