"""What the demos share: their options, what they say of the training, and how their pictures look."""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

try:
    import matplotlib
except ImportError:
    raise SystemExit("The pictures need matplotlib: pip install matplotlib") from None
from matplotlib.figure import Figure  # drawn without pyplot, so without a window or a display

from micrograd._support.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable

    import micrograd as mg

# Colours that people tell apart who see colours differently (Okabe and Ito 2008).
BLUE, ORANGE = "#0072b2", "#d55e00"
DARK = "#333333"

matplotlib.rcParams.update(
    {
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
)


def options(description: str | None, output: str, epochs: int, compiled: bool = False) -> argparse.ArgumentParser:
    """A parser of the options that demos have, with the defaults of this one."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--output", type=folder, default=output, help="the folder for the report")
    parser.add_argument("--epochs", type=at_least_one, default=epochs, help="how often to go through the data")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same run")
    parser.add_argument("--quiet", action="store_true", help="show no progress bar")
    add_compile(parser, compiled)
    return parser


def add_compile(parser: argparse.ArgumentParser, default: bool) -> None:
    """The option of the demos that train."""
    parser.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        default=default,
        help="train with compiled programs, or step by step through graphs",
    )


def at_least_one(text: str) -> int:
    """An option that counts something."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def folder(text: str) -> Path:
    """An option that names a folder, which is made if need be."""
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot make the folder {text}: {error.strerror}") from None
    return path


def trained(history: mg.training.History, seconds: float) -> None:
    """Say how the training went; Ctrl-C ends it early, and the rest is about the network as it is then."""
    if not history.steps:
        raise KeyboardInterrupt
    if history.interrupted:
        print("Interrupted: the report is about the network as it is now")
    last = history.steps[-50:]
    print(f"Training: {len(history.steps)} steps in {seconds:.1f} s, loss {history.steps[0]:.2f} to {fmean(last):.3f}")


def run(main: Callable[[], None]) -> None:
    """Run a demo to its end, or to Ctrl-C."""
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("Interrupted: nothing more is written, and no file is half written") from None


def new_figure(width: float, height: float) -> Figure:
    """An empty picture of this size, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture, whole or not at all, in the format that the file's suffix names."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], metadata={"Date": None} if path.suffix == ".svg" else None)
    write_atomically(path, picture.getvalue())
