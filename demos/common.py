"""What the demos share: their options, what they say of the training, and how their pictures look."""

from __future__ import annotations

import argparse
import io
import sys
import time
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from micrograd._support.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from micrograd.training import History

# Colours that people tell apart who see colours differently (Okabe and Ito 2008).
BLUE, ORANGE = "#0072b2", "#d55e00"
DARK = "#333333"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same pictures everywhere
    "font.size": 10,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.edgecolor": "#bbbbbb",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": DARK,
    "axes.labelcolor": DARK,
    "xtick.color": DARK,
    "ytick.color": DARK,
    "xtick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "savefig.dpi": 160,
    "svg.hashsalt": "micrograd",  # the same picture is the same file
}


PACKAGES = {"sklearn": "scikit-learn"}  # what pip calls those that it does not call by the name of the module


def optional(name: str) -> Any:
    """A package, or None where it is not installed: needs says so, once the options have been read."""
    try:
        return import_module(name)
    except ImportError:
        return None


def needs(parser: argparse.ArgumentParser, *packages: str) -> None:
    """End the demo where a package is missing, and name all that are."""
    if missing := [PACKAGES.get(name, name) for name in packages if optional(name) is None]:
        parser.exit(1, f"This demo needs {' and '.join(missing)}: pip install {' '.join(missing)}\n")


def options(description: str | None, output: str, epochs: int, *, may_compile: bool = True) -> argparse.ArgumentParser:
    """A parser of the options that demos have, with the defaults of this one.

    Args:
        description: of the demo.
        output: the folder for the report.
        epochs: how often to go through the data.
        may_compile: whether to ask if the training is to be compiled.
    """
    parser = with_report(description, output)
    parser.add_argument(
        "--epochs", type=at_least_one, default=epochs, help="how often to go through the data (default: %(default)s)"
    )
    add_training(parser, may_compile=may_compile)
    return parser


def with_report(description: str | None, output: str) -> argparse.ArgumentParser:
    """A parser with the option that all demos with a report have.

    Args:
        description: of the demo.
        output: the folder for the report.
    """
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument(
        "--output", type=Path, default=Path(output), help="the folder for the report (default: %(default)s)"
    )
    return parser


def add_training(parser: argparse.ArgumentParser, *, may_compile: bool = True) -> None:
    """The options of the demos that train."""
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same run (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    if may_compile:
        parser.add_argument(
            "--compile",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="train with compiled programs, or step by step through graphs (default: compiled where numpy and "
            f"llvmlite are installed, {'as they are' if can_compile() else 'which they are not'} here)",
        )


def can_compile() -> bool:
    """Whether what compiled programs need is installed."""
    return optional("numpy") is not None and optional("llvmlite") is not None


def read_options(parser: argparse.ArgumentParser, *packages: str) -> argparse.Namespace:
    """The options, where these packages are installed; with the folder made, and whether to compile decided."""
    arguments = parser.parse_args()
    needs(parser, *packages)
    if getattr(arguments, "output", None) is not None:
        make_folder(parser, arguments.output)
    if getattr(arguments, "compile", False) is None:
        arguments.compile = can_compile() or bool(getattr(arguments, "backend", None))
    return arguments


def at_least_one(text: str) -> int:
    """An option that counts something."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def make_folder(parser: argparse.ArgumentParser, path: Path) -> None:
    """Make the folder of the report if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --output: cannot make the folder {path}: {error.strerror}")


def watched(rates: Callable[[int], float], steps: int, arguments: argparse.Namespace) -> Callable[[int], float]:
    """The same learning rates, which say once a second how far the training is, where no progress bar does."""
    if arguments.quiet or (sys.stderr.isatty() and optional("tqdm")):
        return rates
    said = time.monotonic()

    def rate(step: int) -> float:
        nonlocal said
        if (now := time.monotonic()) >= said + 1:
            said = now
            print(f"  step {step:,} of {steps:,}")
        return rates(step)

    return rate


def trained(history: History, seconds: float) -> None:
    """Say how the training went; Ctrl-C ends it early, and the rest is about the network as it is then."""
    if not history.steps:
        raise KeyboardInterrupt
    if history.interrupted:
        print("Interrupted: the report is about the network as it is now")
    last = history.steps[-50:]
    print(f"Training: {len(history.steps)} steps in {seconds:.1f} s, loss {history.steps[0]:.2f} to {fmean(last):.3f}")


def run(main: Callable[[], None]) -> None:
    """Run a demo to its end, or to Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # each line is seen when it is printed, in a file too
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("Interrupted: nothing more is written, and no file is half written") from None


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of this size, in inches."""
    import matplotlib as mpl
    from matplotlib.figure import Figure  # drawn without pyplot, so without a window or a display

    mpl.rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all, in the format that the file's suffix names."""
    picture = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(picture, format=path.suffix[1:], metadata=metadata)
    write_atomically(path, picture.getvalue())
