"""Teach a small network to read handwritten digits, and report how well it reads them.

The network is 64 pixels, a layer of tanh neurons and 10 outputs, one for each digit. It learns from
1,433 images and is tested on 364 others. The report is a folder with

    loss.svg       how the loss fell
    confusion.png  which digits were read as which
    misread.png    the images that were misread
    neuron.svg     the computation graph of one neuron, with its gradients
    model.json     the network itself
"""

from __future__ import annotations

import csv
import gzip
import math
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from common import (
    BLUE,
    DARK,
    ORANGE,
    at_least_one,
    label_plainly,
    new_figure,
    options,
    read_options,
    run,
    save_figure,
    trained,
    watched,
)

import micrograd as mg
from micrograd.draw.graph import save as save_graph

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
BATCH_SIZE = 8
MISREAD_SHOWN = 40

Image = tuple[list[float], int]  # 64 pixels from 0 (paper) to 1 (ink), and the digit they show


class DigitReader(mg.nn.MLP):
    """An MLP that skips the paper: a pixel of 0 adds nothing to a weighted sum, and half of them are 0."""

    def __init__(self, hidden: int) -> None:
        super().__init__(64, [hidden, 10], activation="tanh", initial="glorot")

    def hidden(self, pixels: list[float]) -> list[mg.Value]:
        """The outputs of the tanh neurons."""
        # What stands for a pixel in a compiled program may be ink.
        ink = [(index, pixel) for index, pixel in enumerate(pixels) if isinstance(pixel, mg.Value) or pixel]
        return [
            mg.tanh(sum((neuron.w[index] * pixel for index, pixel in ink), neuron.b))
            for neuron in self.layers[0].neurons
        ]

    def __call__(self, pixels: list[float]) -> list[mg.Value]:
        """A score for each digit."""
        return self.layers[1](self.hidden(pixels))


class Reading(NamedTuple):
    """An image, the digit it shows, and the probability that the network gives to each digit."""

    pixels: list[float]
    digit: int
    probabilities: list[float]

    @property
    def guess(self) -> int:
        """The digit that the network takes it for."""
        return self.probabilities.index(max(self.probabilities))


def load_images() -> list[Image]:
    """All images of the data file."""
    with gzip.open(DATA, "rt", newline="") as file:
        rows = csv.reader(file)
        next(rows)  # the header
        return [([int(pixel) / 16 for pixel in pixels], int(digit)) for *pixels, digit in rows]


def split(images: list[Image]) -> tuple[list[Image], list[Image]]:
    """The images to learn from, and those to be tested on: every fifth of each digit."""
    train_images, test_images = [], []
    for digit in range(10):
        of_this_digit = [image for image in images if image[1] == digit]
        test_images += of_this_digit[::5]
        del of_this_digit[::5]
        train_images += of_this_digit
    return train_images, test_images


def train(model: DigitReader, images: list[Image], arguments: Namespace) -> mg.training.History:
    """Minimise the cross-entropy, with a learning rate that falls along a cosine."""
    steps = arguments.epochs * math.ceil(len(images) / BATCH_SIZE)
    rates = mg.optim.cosine(0.03, 0.0003, steps)
    return mg.fit(
        loss_of(model),
        images,
        mg.optim.Adam(model.parameters(), watched(rates, steps, arguments), betas=(0.9, 0.99)),
        epochs=arguments.epochs,
        batch_size=BATCH_SIZE,
        seed=arguments.seed,
        progress=False if arguments.quiet else None,
        compile=arguments.compile,
    )


def loss_of(model: DigitReader) -> Callable[[list[float], int], mg.Value]:
    """The loss of an image: the cross-entropy of the digit it shows."""
    return lambda pixels, digit: mg.losses.cross_entropy(model(pixels), digit)


def eager_seconds(model: DigitReader, images: list[Image]) -> float:
    """How long an image takes without the compiler, forward and backward, measured on a few."""
    loss, few = loss_of(model), images[:: len(images) // 12]
    start = time.perf_counter()
    for image in few:
        loss(*image).backward()
    model.zero_grad()
    return (time.perf_counter() - start) / len(few)


def read(model: DigitReader, images: list[Image]) -> list[Reading]:
    """What the network makes of each image."""
    with mg.no_grad():
        return [
            Reading(pixels, digit, [float(probability) for probability in mg.softmax(model(pixels))])
            for pixels, digit in images
        ]


def draw_loss(history: mg.training.History, path: Path) -> None:
    """The loss of each step as a dot, and the running mean as a line."""
    means, mean = [], history.steps[0]
    for loss in history.steps:
        mean += 0.05 * (loss - mean)
        means.append(mean)
    figure = new_figure(7, 4)
    axes = figure.add_subplot(title="How the loss fell", xlabel="step", ylabel="cross-entropy", yscale="log")
    steps = range(1, len(means) + 1)
    axes.plot(steps, history.steps, ".", color=BLUE, alpha=0.25, markeredgewidth=0, label="one batch")
    axes.plot(steps, means, color=BLUE, linewidth=2, label="running mean")
    axes.axhline(math.log(10), color=ORANGE, linewidth=1, linestyle="--", label="guessing")
    axes.margins(x=0.01)
    label_plainly(axes.yaxis)
    axes.legend(frameon=False)
    save_figure(figure, path)


def draw_confusion(readings: list[Reading], path: Path) -> None:
    """How often each digit was read as each: rightly in blue, wrongly in orange."""
    from matplotlib.patches import Rectangle

    counts = [[0] * 10 for _ in range(10)]
    for reading in readings:
        counts[reading.digit][reading.guess] += 1
    figure = new_figure(6, 6)
    axes = figure.add_subplot(title="Which digit was read as which", xlabel="read as", ylabel="digit")
    axes.set(xlim=(-0.5, 9.5), ylim=(9.5, -0.5), xticks=range(10), yticks=range(10), aspect="equal")
    axes.spines[:].set_visible(False)
    for digit, row in enumerate(counts):
        for guess, count in enumerate(row):
            color, many = (BLUE, sum(row)) if digit == guess else (ORANGE, 6)
            strength = min(count / many, 1)
            alpha = 0.15 + 0.85 * strength if count else 0.03
            axes.add_patch(Rectangle((guess - 0.47, digit - 0.47), 0.94, 0.94, color=color, alpha=alpha, linewidth=0))
            if count:
                axes.text(guess, digit, count, ha="center", va="center", color="white" if strength > 0.5 else DARK)
    save_figure(figure, path)


def draw_misread(readings: list[Reading], path: Path) -> None:
    """The misread images, those first that the network was surest about."""
    misread = [reading for reading in readings if reading.guess != reading.digit]
    misread.sort(key=lambda reading: max(reading.probabilities), reverse=True)
    shown = misread[:MISREAD_SHOWN]
    columns = 8
    rows = max(1, math.ceil(len(shown) / columns))
    figure = new_figure(1.25 * columns, 0.6 + 1.45 * rows)  # without the edges where nothing is
    title = f"{len(misread)} of {len(readings)} images were misread"
    if len(misread) > len(shown):
        title += f", these {len(shown)} with the most confidence"
    figure.suptitle(title, x=0.005, ha="left", weight="bold")
    for index, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if index < len(shown):
            reading = shown[index]
            axes.imshow([reading.pixels[start : start + 8] for start in range(0, 64, 8)], cmap="gray_r")
            axes.set_title(f"{reading.digit}", loc="left", color=BLUE, pad=4)
            axes.set_title(f"read as {reading.guess}", loc="right", color=ORANGE, weight="normal", size=9, pad=4)
            axes.spines[:].set_visible(True)
            axes.set(xticks=[], yticks=[])
        else:
            axes.remove()
    save_figure(figure, path, cropped=True)


def draw_neuron(model: DigitReader, reading: Reading, path: Path) -> None:
    """The tanh neuron that an image's loss would change the most, and its gradients.

    Of its 64 inputs only the three that weigh most are drawn; the others are one number.
    """
    model.zero_grad()
    hidden = model.hidden(reading.pixels)
    mg.losses.cross_entropy(model.layers[1](hidden), reading.digit).backward()
    neuron, output = max(zip(model.layers[0].neurons, hidden, strict=True), key=lambda pair: abs(pair[0].b.grad))

    products = [weight.data * pixel for weight, pixel in zip(neuron.w, reading.pixels, strict=True)]
    *others, third, second, first = sorted(range(64), key=lambda index: abs(products[index]))
    neuron.b.label = "bias"
    total = neuron.b + mg.Value(sum(products[index] for index in others), label="other inputs", requires_grad=False)
    for index in (first, second, third):
        place = f"{index // 8 + 1},{index % 8 + 1}"
        neuron.w[index].label = f"weight {place}"
        total = total + neuron.w[index] * mg.Value(reading.pixels[index], label=f"pixel {place}", requires_grad=False)
    picture = mg.tanh(total)
    picture.label = "output"
    model.zero_grad()
    picture.backward(output.grad)
    save_graph(picture, path)


def write_report(model: DigitReader, history: mg.training.History, readings: list[Reading], folder: Path) -> None:
    """All the files of the report."""
    model.save(folder / "model.json")
    draw_loss(history, folder / "loss.svg")
    draw_confusion(readings, folder / "confusion.png")
    draw_misread(readings, folder / "misread.png")
    hardest = min(readings, key=lambda reading: reading.probabilities[reading.digit])
    draw_neuron(model, hardest, folder / "neuron.svg")


def check_drawing() -> None:
    """Draw a graph to find out now, not after the training, whether that works."""
    with tempfile.TemporaryDirectory() as folder:
        save_graph(mg.Value(1.0), Path(folder) / "graph.svg")


def main() -> None:
    """Train, test and report."""
    parser = options(__doc__.partition("\n")[0], output="digits-report", epochs=12)
    parser.add_argument("--hidden", type=at_least_one, default=16, help="the number of tanh neurons")
    arguments = read_options(parser, "matplotlib")
    try:
        check_drawing()
    except ImportError as error:
        parser.exit(1, f"{error}\n")

    random.seed(arguments.seed)
    train_images, test_images = split(load_images())
    model = DigitReader(arguments.hidden)
    print(f"Images: {len(train_images):,} to learn from, {len(test_images)} others to be tested on")
    print(f"Network: 64 pixels, {arguments.hidden} tanh neurons, 10 digits: {len(model.parameters()):,} parameters")

    start = time.perf_counter()
    history = train(model, train_images, arguments)
    trained(history, time.perf_counter() - start)
    if arguments.compile:
        minutes = eager_seconds(model, train_images) * len(train_images) * len(history.epochs) / 60
        print(f"Without the compiler it would have taken about {minutes:.1f} minutes")
    readings = read(model, test_images)
    right = sum(reading.guess == reading.digit for reading in readings)
    print(f"Test accuracy: {right / len(readings):.1%} ({right} of {len(readings)} images)")
    write_report(model, history, readings, arguments.output)
    print(f"Report: {arguments.output}/")


if __name__ == "__main__":
    run(main)
