"""What may be typed: the commands, their options, and the help."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, Any

import micrograd
from micrograd.command import exporting, expressions, tables
from micrograd.command.grammar import functions
from micrograd.draw.graph import STYLES
from micrograd.nn import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EPILOG = """examples:
  micrograd grad "x*y + z" x=2 y=-3 z=10
  micrograd check "tanh(x*y + exp(x))" x=0.7 y=-0.4
  micrograd draw "x*y + z" x=2 y=-3 z=10 -o graph.svg
  micrograd explore "x*y + z" x=2 y=-3 z=10 -o page.html
  micrograd train penguins.csv --target species --hidden 16 16 -o report
  micrograd predict report/model.skops more.csv -o predictions.csv
  micrograd export "x*y + tanh(z)" -o f.c

exit codes: 0 all went well, 1 a check failed, 2 something is wrong with an argument, an expression or a file,
130 interrupted, 141 nobody reads the output any more"""
ABOUT_EXPRESSIONS = {
    "grad": (expressions.grad, "print the value of an expression and the gradient of each name"),
    "check": (expressions.check, "compare the gradients of an expression with finite differences"),
    "draw": (expressions.draw, "draw the graph of an expression with its gradients"),
    "explore": (expressions.explore, "write a page that steps through its graph"),
}
OPTION = re.compile(r"--$|--[a-z]|-h$|-o")
NOTATION = f"in Python's notation: numbers, names, e, pi, + - * / ** and {', '.join(functions())}"


def parser() -> argparse.ArgumentParser:
    """The parser of the words. Where it cannot read them it ends the program with exit code 2, as argparse does."""
    top = argparse.ArgumentParser(
        prog="micrograd",
        description="Gradients and pictures of an expression, and networks that learn from a table.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = top.add_subparsers(required=True, metavar="command", dest="command")
    add = _adder(commands)

    for name, (run, what) in ABOUT_EXPRESSIONS.items():
        _expression(add(name, run, what))
    draw = commands.choices["draw"]
    picture = "a .svg, .png, .pdf or .dot file (default: %(default)s)"
    draw.add_argument("-o", "--output", type=_as_typed, default="graph.svg", metavar="FILE", help=picture)
    style = "the operations as they are written, or as micrograd's lecture has them (default: %(default)s)"
    draw.add_argument("--style", choices=STYLES, default=STYLES[0], help=style)
    explore = commands.choices["explore"]
    page = "default: %(default)s"
    explore.add_argument("-o", "--output", type=_as_typed, default="page.html", metavar="FILE", help=page)
    explore.add_argument("--title", type=_as_typed, help="of the page (default: the expression)")
    _training(add("train", tables.train, "train a network to predict a column of a CSV file, and report on it"))

    predict = add("predict", tables.predict, "predict the column of a CSV file that a saved model learned")
    predict.add_argument("model", help="the folder of a report, or the model.skops in it")
    _table(predict, may_be_folder=True)
    predict.add_argument("-o", "--output", metavar="FILE", help="write there, not to the standard output")

    export = add("export", exporting.export, "write an expression with its gradients, or a saved model, as a file of C")
    export.add_argument("what", type=_as_typed, help="an expression, or the model.skops of a report")
    output = "ends in .c; a header is written beside it"
    export.add_argument("-o", "--output", type=_as_typed, required=True, metavar="FILE", help=output)
    export.add_argument("--name", help="of the function in C (default: the name of the file)")
    export.add_argument("--float32", action="store_true", help="compute with float, not with double")
    export.add_argument("--overwrite", action="store_true", help="replace files that export has not written, too")
    return top


class _Version(argparse.Action):
    """Prints the version, which takes a while to find: no other command looks for it."""

    def __call__(self, parser: argparse.ArgumentParser, *of_action: Any) -> None:
        print(f"micrograd {micrograd.__version__}")
        parser.exit()


def _adder(commands: Any) -> Callable[..., argparse.ArgumentParser]:
    def add(name: str, run: Callable[[argparse.Namespace], int], what: str) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            allow_abbrev=False,
        )
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="print JSON, for scripts")
        return command

    return add


def _expression(command: argparse.ArgumentParser) -> None:
    command.add_argument("expression", help=NOTATION)
    command.add_argument("names", nargs="*", metavar="name=number", help="what the names stand for: x=2 y=-3")


def _table(command: argparse.ArgumentParser, *, may_be_folder: bool = False) -> None:
    add = command.add_argument
    data = "a CSV file with a header line; may be compressed by gzip; - for the standard input"
    add("data", help=f"{data}; or a folder of them" if may_be_folder else data)
    add("--encoding", default="utf-8", metavar="NAME", help="of the file: cp1252, utf-16 ... (default: utf-8)")
    add("--delimiter", type=_delimiter, metavar="MARK", help="between the cells: ';', tab ... (default: found out)")
    decimal = "before the decimals of a number: . or , (default: .); the other one parts thousands"
    add("--decimal", metavar="MARK", help=decimal)
    help_ = "what stands for a missing value, beside an empty cell, NA, N/A, NaN, null, None and ?"
    add("--missing", nargs="+", default=[], metavar="TEXT", help=help_)


def _training(command: argparse.ArgumentParser) -> None:
    _table(command)

    def add(name: str, what: str, default: Any = None, **options: Any) -> None:
        shown = "" if default is None else " (default: %(default)s)"
        command.add_argument(*name.split(), default=default, help=what + shown, **options)

    add("--target", "what to predict", required=True, metavar="COLUMN")
    tasks = ["classification", "regression"]
    add("--task", "what the target is (default: what it looks like)", choices=tasks)
    add("--ignore", "columns not to predict from", nargs="+", metavar="COLUMN")
    add("--keep", "columns to predict from though they look like ids", nargs="+", metavar="COLUMN")
    add("--balance", "have all classes weigh the same, however rare they are", action="store_true")
    hidden = "neurons in each hidden layer; no number for a linear model (default: 16)"
    add("--hidden", hidden, nargs="*", type=_count, metavar="N")
    add("--activation", ", ".join(ACTIVATIONS), "tanh", choices=list(ACTIVATIONS), metavar="NAME")
    epochs = "how often to go through the rows (default: by their number, from 3 to 60)"
    add("--epochs", epochs, type=_count, metavar="N")
    add("--batch-size", "rows in each step", 16, type=_count, metavar="N")
    add("--learning-rate", "of Adam, at the start", 0.01, type=_positive, metavar="RATE")
    add("--alpha", "the L2 penalty on the weights", 0.03, type=_not_negative, metavar="PENALTY")
    add("--test", "the fraction of the rows to test on", 0.2, type=float, metavar="FRACTION")
    add("--seed", "the same seed gives the same report", 1, type=_seed, metavar="N")
    folds = "judge it again in so many folds, beside others; 0 for none (default: 10, none of a large table)"
    add("--folds", folds, type=_whole, metavar="N")
    add("-o --output", "of the report (default: the file's name and -report)", metavar="FOLDER")
    add("--overwrite", "replace an older report", action="store_true")
    add("--no-pictures", "draw none", action="store_true")
    add("--quiet", "print nothing but errors", action="store_true")


def options_of(words: Sequence[str]) -> argparse.Namespace:
    """What the words mean. Numbers of names may also stand behind options: draw x*y -o graph.svg x=2 y=3."""
    top = parser()
    options, rest = top.parse_known_args(with_minus_signs(words))
    if rest and options.command in ABOUT_EXPRESSIONS and not any(word.lstrip().startswith("-") for word in rest):
        options.names += rest
    elif rest:
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def with_minus_signs(words: Sequence[str]) -> list[str]:
    """The words, where an expression such as -x*y is not taken for an option."""
    if not words or words[0] not in {*ABOUT_EXPRESSIONS, "export"}:
        return list(words)
    return [f" {word}" if word.startswith("-") and not OPTION.match(word) else word for word in words]


def _as_typed(text: str) -> str:
    return text[1:] if text.startswith(" -") else text  # see with_minus_signs


def _delimiter(text: str) -> str:
    return "\t" if text in {"tab", "\\t"} else text


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _whole(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to {2**32 - 1}")
    return int(text)


def _not_negative(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return number


def _positive(text: str) -> float:
    if not (number := _not_negative(text)):
        raise argparse.ArgumentTypeError("it must be above 0")
    return number
