"""train and predict: networks that learn a column of a CSV file."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.files import write_atomically
from micrograd.command.output import OK, print_json
from micrograd.tables import predictor as networks
from micrograd.tables import report
from micrograd.tables.encoding import Classes
from micrograd.tables.page import describe, headline
from micrograd.tables.table import read_table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from micrograd.tables.table import Table


def _read(options: argparse.Namespace) -> Table:
    return read_table(options.data, delimiter=options.delimiter, decimal=options.decimal, missing=options.missing)


def train(options: argparse.Namespace) -> int:
    """Train a network and write its report."""
    settings = networks.Settings(
        task=options.task,
        hidden=networks.Settings.hidden if options.hidden is None else tuple(options.hidden),
        activation=options.activation,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        test=options.test,
        seed=options.seed,
        compile=options.compile,
        progress=False if options.quiet else None,
    )
    # All checks come before the training: an error after it would lose the training.
    networks.is_compiled(settings)
    study = networks.prepare(_read(options), options.target, settings, options.ignore or ())
    folder = options.output or f"{_stem(options.data)}-report"
    report.check_folder(folder, overwrite=options.overwrite)
    if not options.no_pictures:
        try:
            report.check_pictures()
        except ImportError as error:
            raise ImportError(f"{error}, or --no-pictures") from error

    say = _say if not (options.quiet or options.json) else lambda text: None
    _describe(study, say)
    start = time.perf_counter()
    history = networks.train(study)
    if not history.steps:
        raise KeyboardInterrupt
    if history.interrupted:
        say("Interrupted: the report is about the network as it is now")
    last = (history.epochs or history.steps)[-1]
    seconds = time.perf_counter() - start
    say(f"Training: {len(history.steps):,} steps in {seconds:.1f} s, loss {history.steps[0]:.3g} to {last:.3g}")
    numbers = report.write_report(study, history, folder, pictures=not options.no_pictures, overwrite=options.overwrite)
    say(headline(numbers))
    say(f"Report: {Path(folder) / 'report.html'}")
    if options.json:
        print_json({**numbers, "report": folder})
    return OK


def _say(text: str) -> None:
    print(text, flush=True)


def _stem(path: str) -> str:
    """The name of a file without what follows its first dot; "table" where it has none."""
    return Path(path).name.lstrip("-.").partition(".")[0] or "table"


def _describe(study: networks.Study, say: Callable[[str], None]) -> None:
    """Say what the network is to learn, and from what."""
    predictor = study.predictor
    target = predictor.target
    what = f"one of {len(target.classes)} classes" if isinstance(target, Classes) else "a number"
    say(f"Target: {target.name}, {what}")
    dropped = f"; {study.without_target:,} without a target are left out" if study.without_target else ""
    say(f"Rows: {len(study.training.rows):,} to train on, {len(study.test.rows):,} to test on{dropped}")
    columns = [f"{column['name']}{_gaps(column['missing'])}" for column in report.columns(study)]
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    say(f"Columns: {', '.join(columns[:12])}{more}")
    for name, reason in study.left_out.items():
        say(f"Left out: {name}, because {reason}")
    network = report.network(predictor)
    say(f"Network: {describe(network)}, {network['parameters']:,} parameters")


def _gaps(count: int) -> str:
    return f" ({count:,} missing)" if count else ""


def predict(options: argparse.Namespace) -> int:
    """Write the predictions for the rows of a file."""
    predictor, table = networks.load(options.model), _read(options)
    predictions = predictor.predict(table)
    for name, count in predictor.guessed(table).items():
        print(f"micrograd: {count} cells of {name!r} are missing or unknown to the model", file=sys.stderr)
    text = io.StringIO()
    if options.json:
        records = [predictor.target.described(prediction) for prediction in predictions]
        json.dump(records, text, indent=1, ensure_ascii=False)
        text.write("\n")
    else:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(predictor.target.header)
        writer.writerows(map(predictor.target.row, predictions))
    if options.output is None:
        sys.stdout.write(text.getvalue())
    else:
        write_atomically(options.output, text.getvalue().encode())
    return OK
