"""Train a network of MNIST's size, 784-256-10, in plain scalars, and time it honestly.

It has 203,530 parameters, and one image makes a graph of some hundred thousand nodes: about a second of
Python, the best part of a day for all of MNIST. So by default it learns from 60 images, enough to see that
it learns, and says how long a whole epoch would take. Compiled it is fast, and the program is the same.

The images are the digits beside this program, enlarged to 28 by 28 pixels, or those of MNIST:

    python demos/mnist.py --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import struct
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import add_training, at_least_one, optional, read_options, run, trained, watched

import micrograd as mg

if TYPE_CHECKING:
    import numpy as np

    Data = tuple[np.ndarray, np.ndarray]  # images, a row of 784 pixels from 0 to 1 each, and the digits they show
else:
    np = optional("numpy")

DIGITS = Path(__file__).parent / "data" / "digits.csv.gz"
SIDE = 28  # pixels
BATCH_SIZE = 4
TESTED = 1000  # images at most


class DigitReader(mg.nn.MLP):
    """An MLP that skips the paper: a pixel of 0 adds nothing to a weighted sum, and most of them are 0."""

    def __init__(self) -> None:
        super().__init__(SIDE * SIDE, [256, 10], activation="relu", initial="he")

    def __call__(self, pixels: Any) -> Any:
        """A score for each digit, in a list of Values."""
        # What stands for a pixel in a compiled program may be ink
        ink = [(index, pixel) for index, pixel in enumerate(pixels) if isinstance(pixel, mg.Value) or pixel]
        hidden, output = self.layers
        return output(
            [mg.relu(sum((neuron.w[index] * pixel for index, pixel in ink), neuron.b)) for neuron in hidden.neurons]
        )

    def read(self, images: np.ndarray) -> np.ndarray:
        """The likeliest digit of each image: the same network on floats, all images at once."""
        for layer in self.layers:
            weights = mg.numbers([neuron.w for neuron in layer.neurons])
            images = images @ weights.T + mg.numbers([neuron.b for neuron in layer.neurons])
            if layer is not self.layers[-1]:
                images = np.maximum(images, 0)
        return images.argmax(axis=1)


class DataError(Exception):
    """A file that is not what it should be."""


def enlarged_digits() -> Data:
    """The digits of 8 by 8 pixels: each pixel becomes 3 by 3, with an edge of 2 around the image."""
    table = np.loadtxt(DIGITS, delimiter=",", skiprows=1)
    small = table[:, :-1].reshape(-1, 8, 8) / 16
    images = np.pad(np.kron(small, np.ones((1, 3, 3))), ((0, 0), (2, 2), (2, 2)))
    return images.reshape(len(images), -1), table[:, -1].astype(int)


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The bytes in a file of MNIST's format, IDX, compressed or not.

    It begins with a magic number, 0x08 for bytes and how many dimensions there are, and their sizes:
    four bytes each, the most significant first.
    """
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"Cannot read {path}: {error}") from error
    header = 4 + 4 * dimensions
    if content[:4] != bytes([0, 0, 8, dimensions]):
        raise DataError(f"{path} is not an IDX file of bytes in {dimensions} dimensions: it begins {content[:4].hex()}")
    if len(content) < header:
        raise DataError(f"{path} is cut off: {len(content)} bytes are no whole header")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    if len(content) - header != math.prod(shape):
        sizes = " x ".join(map(str, shape))
        raise DataError(f"{path} is cut off or damaged: {sizes} bytes announced, {len(content) - header:,} there")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def read_mnist(images_path: Path, labels_path: Path) -> Data:
    """Images and their digits out of two IDX files."""
    images, digits = read_idx(images_path, 3), read_idx(labels_path, 1)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(f"{images_path} has images of {images.shape[1]} x {images.shape[2]} pixels, not 28 x 28")
    if len(images) != len(digits):
        raise DataError(f"{images_path} has {len(images):,} images, {labels_path} {len(digits):,} labels")
    if len(digits) and digits.max() > 9:
        raise DataError(f"{labels_path} has the label {digits.max()}, which is no digit")
    return images.reshape(len(images), -1) / 255, digits.astype(int)


def main() -> None:
    """Train, test, and say how long it took and would take."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--images", type=Path, help="MNIST's images, an IDX file (default: the digits, enlarged)")
    parser.add_argument("--labels", type=Path, help="MNIST's labels, an IDX file")
    parser.add_argument("--samples", type=at_least_one, default=60, help="images to learn from (default: 60)")
    add_training(parser)
    arguments = read_options(parser, "numpy")
    if (arguments.images is None) != (arguments.labels is None):
        parser.error("--images and --labels go together")
    try:
        images, digits = read_mnist(arguments.images, arguments.labels) if arguments.images else enlarged_digits()
    except DataError as error:
        parser.exit(1, f"{error}\n")
    if arguments.samples >= len(images):
        parser.error(f"there are {len(images):,} images: --samples must leave some to be tested on")

    random.seed(arguments.seed)
    order = random.sample(range(len(images)), len(images))
    learned, tested = order[: arguments.samples], order[arguments.samples :][:TESTED]
    model = DigitReader()
    steps = math.ceil(len(learned) / BATCH_SIZE)
    begun: list[float] = []  # when each step began; the first waits for the compiler

    def rate(step: int) -> float:
        begun.append(time.perf_counter())
        return 0.1

    optimizer = mg.optim.SGD(model.parameters(), watched(rate, steps, arguments))
    print(f"Images: {len(images):,}, of which {len(learned):,} to learn from and {len(tested):,} to be tested on")
    print(f"Network: 784 pixels, 256 relu neurons, 10 digits: {len(optimizer.parameters):,} parameters")

    start = time.perf_counter()
    history = mg.fit(
        lambda pixels, digit: mg.losses.cross_entropy(model(pixels), digit),
        [(images[index].tolist(), int(digits[index])) for index in learned],
        optimizer,
        batch_size=BATCH_SIZE,
        seed=arguments.seed,
        progress=False if arguments.quiet else None,
        compile=arguments.compile,
    )
    end = time.perf_counter()
    trained(history, end - start)
    ready, done = (begun[1], len(history.steps) - 1) if len(history.steps) > 1 else (start, 1)
    seconds = ready - start + (end - ready) / done * math.ceil(len(images) / BATCH_SIZE)
    print(f"A whole epoch of {len(images):,} images would take {seconds / 60:,.1f} minutes")
    right = (model.read(images[tested]) == digits[tested]).mean()
    print(f"Test accuracy: {right:.1%} (guessing: 10%)")


if __name__ == "__main__":
    run(main)
