"""Teach a small network to read handwritten digits, and report how well it reads them.

The network is the pixels of an image, a layer of tanh neurons and 10 outputs, one for each digit. It learns
from four in five of 1,797 images, and is tested on the others. The report is made as `micrograd train` makes
it, with a picture of the images that were misread. It is a folder with

    report.html     the page, with its pictures
    worst-1.html    the graph behind the worst reading, and two more like it
    recording.html  the training, step by step
    metrics.json    the numbers
    model.skops     the network itself, for `micrograd predict`
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import BLUE, ORANGE, at_least_one, optional, options, read_options, run, trained

import micrograd as mg

if TYPE_CHECKING:
    import pandas as pd

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
BATCH_SIZE = 8
SIDE = 8  # pixels of an image, each way
MISREAD_SHOWN, ACROSS = 40, 8


def eager_seconds(hidden: int, rows: pd.DataFrame) -> float:
    """How long an image takes without the compiler, forward and backward, measured on a few."""
    model = mg.nn.MLP(len(rows.columns), [hidden, 10], activation="tanh")
    few = rows[:: len(rows) // 12].to_numpy().tolist()
    start = time.perf_counter()
    for pixels in few:
        mg.losses.cross_entropy(model(pixels), 0).backward()
    return (time.perf_counter() - start) / len(few)


def draw_misread(figure: Any, images: pd.DataFrame, digits: pd.Series, probabilities: pd.DataFrame) -> None:
    """The misread images, those first that the network was surest about.

    Args:
        figure: to draw on.
        images: the 64 pixels of each.
        digits: what they show.
        probabilities: for each image those of the digits, which name the columns.
    """
    guesses, sureness = probabilities.idxmax(axis="columns"), probabilities.max(axis="columns")
    misread = sureness[guesses != digits].sort_values(ascending=False).index
    shown = misread[:MISREAD_SHOWN]
    title = f"{len(misread)} of {len(digits)} images were misread"
    if len(misread) > len(shown):
        title += f", these {len(shown)} with the most confidence"
    figure.suptitle(title, x=0.005, ha="left")
    places = figure.subplots(height_of(len(misread)), ACROSS, squeeze=False).flat
    for axes, line in zip(places, shown, strict=False):
        axes.imshow(images.loc[line].to_numpy().reshape(8, 8), cmap="gray_r")
        axes.set_title(digits[line], loc="left", color=BLUE, size=9, pad=2)
        axes.set_title(f"as {guesses[line]}", loc="right", color=ORANGE, size=9, pad=2)
        axes.set(xticks=[], yticks=[])
    for axes in places[len(shown) :]:
        axes.remove()


def height_of(misread: int) -> int:
    """How many rows of images the picture of the misread has."""
    return max(1, math.ceil(min(misread, MISREAD_SHOWN) / ACROSS))


def main() -> None:
    """Train, test and report."""
    parser = options(__doc__.partition("\n")[0], output="digits-report", epochs=12, may_compile=False)
    parser.add_argument("--hidden", type=at_least_one, default=16, help="the number of tanh neurons")
    arguments = read_options(parser, "matplotlib", "pandas", "sklearn", "skops")

    import pandas as pd

    from micrograd._support.folders import check_folder
    from micrograd.draw.plots import check_pictures, plot
    from micrograd.estimators import MLPClassifier
    from micrograd.reports import page, scores
    from micrograd.tables.reading import read_table
    from micrograd.tables.study import network_of, prepare
    from micrograd.training import History

    try:
        check_folder(arguments.output, page.FILES, overwrite=True)
        check_pictures()
    except (ImportError, ValueError) as error:
        parser.exit(1, f"{error}\n")

    table = read_table(DATA, text=["digit"])
    study = prepare(table, "digit", seed=arguments.seed)
    images, digits = study.parts(study.training)
    print(f"Images: {len(digits):,} to learn from, {len(study.test)} others to be tested on")
    print(
        f"Network: {len(images.columns)} pixels that are not always paper, {arguments.hidden} tanh neurons, 10 digits"
    )
    pipeline = study.pipeline(
        MLPClassifier(
            (arguments.hidden,),
            "tanh",
            alpha=0.03,
            batch_size=BATCH_SIZE,
            learning_rate="cosine",
            learning_rate_init=0.01,
            max_iter=arguments.epochs,
            random_state=arguments.seed,
            verbose=not arguments.quiet and optional("tqdm") is not None,  # also where there is no terminal
            n_iter_no_change=math.inf,
            record=True,
        )
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Training interrupted")  # which trained says
        pipeline.fit(images, digits)
    network, history = network_of(pipeline), History()
    history.steps, history.interrupted = network.record_.losses, network.interrupted_
    trained(history, time.perf_counter() - start)
    minutes = eager_seconds(arguments.hidden, images) * len(images) * network.n_iter_ / 60
    print(f"Without the compiler it would have taken about {minutes:.1f} minutes")

    numbers = scores.evaluate(pipeline, study, folds=0, seed=arguments.seed)
    print(page.headline(numbers))
    tested, digits = study.parts(study.test)
    probabilities = pd.DataFrame(pipeline.predict_proba(tested), tested.index, pipeline.classes_)
    misread = int((probabilities.idxmax(axis="columns") != digits).sum())
    pixels = table.drop(columns="digit")
    drawn = plot(draw_misread, pixels, digits, probabilities, height=0.5 + 0.8 * height_of(misread))
    more = {"The images that were misread": drawn}
    image = {"image": [[f"pixel{SIDE * row + column}" for column in range(SIDE)] for row in range(SIDE)]}
    how: dict[str, Any] = {"more": more, "inputs": image, "title": "Reading handwritten digits"}
    page.write_report(pipeline, study, numbers, arguments.output, pictures=True, overwrite=True, **how)
    print(f"Report: {arguments.output / 'report.html'}")


if __name__ == "__main__":
    run(main)
