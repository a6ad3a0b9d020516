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

    import micrograd as mg

# Colours that people tell apart who see colours differently (Okabe and Ito 2008).
BLUE, ORANGE = "#0072b2", "#d55e00"
DARK = "#333333"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

STYLE = {
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


def optional(name: str) -> Any:
    """A package, or None where it is not installed: needs says so, once the options have been read."""
    try:
        return import_module(name)
    except ImportError:
        return None


def needs(parser: argparse.ArgumentParser, *packages: str) -> None:
    """End the demo where a package is missing, and name all that are."""
    if missing := [name for name in packages if optional(name) is None]:
        parser.exit(1, f"This demo needs {' and '.join(missing)}: pip install {' '.join(missing)}\n")


def options(description: str | None, output: str, epochs: int) -> argparse.ArgumentParser:
    """A parser of the options that demos have, with the defaults of this one."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    add = parser.add_argument
    add("--output", type=Path, default=Path(output), help="the folder for the report (default: %(default)s)")
    add("--epochs", type=at_least_one, default=epochs, help="how often to go through the data (default: %(default)s)")
    add_training(parser)
    return parser


def add_training(parser: argparse.ArgumentParser) -> None:
    """The options of the demos that train."""
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same run (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
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
        arguments.compile = can_compile()
    return arguments


def at_least_one(text: str) -> int:
    """An option that counts something."""
    if (number := int(text)) < 1:
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


def label_plainly(axis: Any) -> None:
    """Label a logarithmic axis in one way: 0.001, 0.01, 0.1, or 10⁻⁵, 10⁻⁴, 10⁻³; a linear axis stays as it is.

    Args:
        axis: of matplotlib, with everything drawn already.
    """
    if axis.get_scale() != "log":
        return
    low, high = axis.get_view_interval()
    with_powers = low <= 1e-5 or high >= 1e6  # where shorter numbers would have an exponent

    def label(number: float, _: Any = None) -> str:
        if not with_powers:
            return f"{number:g}"
        factor, exponent = f"{number:.3e}".split("e")
        power = f"10{str(int(exponent)).translate(SUPERSCRIPT)}"
        return power if float(factor) == 1 else f"{float(factor):g}·{power}"

    axis.set_major_formatter(label)
    axis.set_minor_formatter(label if high < 10 * low else lambda number, _: "")  # where a power of 10 is far


def save_figure(figure: Figure, path: Path, cropped: bool = False) -> None:
    """Write a picture, whole or not at all, in the format that the file's suffix names; empty edges may be cut off."""
    picture = io.BytesIO()
    options: dict[str, Any] = {"bbox_inches": "tight", "pad_inches": 0.1} if cropped else {}
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(picture, format=path.suffix[1:], metadata=metadata, **options)
    write_atomically(path, picture.getvalue())
