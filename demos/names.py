"""Teach a small transformer first names, a letter at a time, and let it make up new ones.

It is a GPT in plain scalars, every multiplication a node: embeddings of letters and places, one layer of
causal attention with 4 heads, a ReLU layer, RMS norms, no biases. It reads any text file with a name a
line, in any alphabet; the letters it knows and the longest name it can make are those of the file.

With ``--backend jax --devices 4`` each step learns from four names, one on each of four devices; on a machine without
accelerators, JAX makes as many of its processor.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from common import add_training, at_least_one, needs, read_options, run, trained, watched

import micrograd as mg

NAMES = Path(__file__).parent / "data" / "names.txt"
WIDTH, HEADS = 16, 4
COMPILED_STEPS, EAGER_STEPS = 400, 50
LONGEST = 100  # attention compares each letter with all before it: lines much longer take too long
END = 0  # the token that stands before a name and after it; letters are 1, 2, ...

Vector = list[mg.Value]
Memory = list[tuple[Vector, Vector]]  # the key and the value of each letter read so far


class Transformer(mg.nn.Module):
    """Scores for the next token, given a token and the memory of those before it."""

    def __init__(self, tokens: int, places: int) -> None:
        self.letter, self.place = matrix(tokens, WIDTH), matrix(places, WIDTH)
        self.query, self.key, self.value, self.mix = (matrix(WIDTH, WIDTH) for _ in range(4))
        self.widen, self.narrow = matrix(4 * WIDTH, WIDTH), matrix(WIDTH, 4 * WIDTH)
        self.output = matrix(tokens, WIDTH)

    def __call__(self, token: int, memory: Memory) -> Vector:
        """A score for each token to come next; what later tokens need to know is put into the memory."""
        x = added(mg.take(self.letter, token), self.place[len(memory)])
        x = added(x, self.attention(normalised(x), memory))
        wide = [mg.relu(total) for total in times(self.widen, normalised(x))]
        x = added(x, times(self.narrow, wide))
        return times(self.output, x)

    @mg.scope
    def attention(self, x: Vector, memory: Memory) -> Vector:
        """What a letter takes from itself and the letters before it: each head a mixture of their values."""
        query = times(self.query, x)
        memory.append((times(self.key, x), times(self.value, x)))
        taken = []
        for start in range(0, WIDTH, WIDTH // HEADS):
            head = slice(start, start + WIDTH // HEADS)
            weights = mg.softmax(mg.dot(query[head], key[head]) / (WIDTH // HEADS) ** 0.5 for key, _ in memory)
            taken += [mg.dot(weights, column) for column in zip(*(value[head] for _, value in memory), strict=True)]
        return times(self.mix, taken)

    def loss(self, tokens: list[int]) -> mg.Value:
        """The mean cross-entropy of each token of a name, given those before it."""
        memory: Memory = []
        return mg.losses.cross_entropy([self(token, memory) for token in tokens[:-1]], tokens[1:])

    def loss_of_filled(self, tokens: list[int], weights: list[float]) -> mg.Value:
        """The same of a name with more tokens after its end, whose losses have a weight of 0.

        So names of all lengths have one program. XLA takes seconds for each, and runs those of one side by side.
        """
        memory: Memory = []
        scores = [self(token, memory) for token in tokens[:-1]]
        return mg.dot(weights, [mg.losses.cross_entropy(*pair) for pair in zip(scores, tokens[1:], strict=True)])


def matrix(rows: int, columns: int) -> list[Vector]:
    """Rows of small random parameters."""
    return [[mg.Value(random.gauss(0, 0.08)) for _ in range(columns)] for _ in range(rows)]


def times(rows: list[Vector], x: Vector) -> Vector:
    """A matrix times a vector."""
    return [mg.dot(row, x) for row in rows]


def added(xs: Vector, ys: Vector) -> Vector:
    """The sum of two vectors."""
    return [x + y for x, y in zip(xs, ys, strict=True)]


@mg.scope
def normalised(xs: Vector) -> Vector:
    """A vector divided by its root mean square."""
    scale = (mg.dot(xs, xs) / len(xs) + 1e-5) ** -0.5
    return [x * scale for x in xs]


def filled(tokens: list[int], length: int) -> tuple[list[int], list[float]]:
    """The tokens of a name up to a length, and the weight of the loss at each place."""
    places, rest = len(tokens) - 1, length - len(tokens)
    return tokens + [END] * rest, [1 / places] * places + [0.0] * rest


def use_jax(parser: argparse.ArgumentParser, devices: int) -> None:
    """Load JAX with float64, and with as many devices of a processor as are wanted."""
    os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={devices}")
    needs(parser, "jax")
    import jax

    jax.config.update("jax_enable_x64", True)
    if devices > len(jax.devices()):
        parser.error(f"--devices {devices}: JAX finds {len(jax.devices())}")


def sample(model: Transformer, letters: str, temperature: float) -> str:
    """A name made up letter by letter, each drawn as likely as the model finds it."""
    memory: Memory = []
    token, name = END, ""
    with mg.no_grad():
        while len(memory) < len(model.place):
            first = END if name else END + 1  # no name is empty
            chances = mg.softmax(score / temperature for score in model(token, memory)[first:])
            token = random.choices(range(first, first + len(chances)), [float(chance) for chance in chances])[0]
            if token == END:
                break
            name += letters[token - 1]
    return name


def read_names(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"Cannot read {path}: {getattr(error, 'strerror', 'it is not UTF-8 text')}") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise SystemExit(f"Cannot read {path}: there are no names in it")
    if len(longest := max(names, key=len)) > LONGEST:
        raise SystemExit(f"Cannot read {path}: a line is longer than {LONGEST} letters: {longest[:40]}...")
    return names


def main() -> None:
    """Read, train and make up names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("file", type=Path, nargs="?", default=NAMES, help="a name a line (default: 686 first names)")
    parser.add_argument(
        "--steps",
        type=at_least_one,
        help=f"names to learn from (default: {COMPILED_STEPS} compiled, else {EAGER_STEPS}: some seconds)",
    )
    parser.add_argument("--samples", type=at_least_one, default=20, help="names to make up (default: 20)")
    parser.add_argument("--temperature", type=float, default=0.5, help="lower is more cautious (default: 0.5)")
    add_training(parser)
    parser.add_argument("--backend", choices=("llvm", "numpy", "jax"), help="what compiled programs run on")
    parser.add_argument("--devices", type=at_least_one, help="share each step out to so many, with --backend jax")
    arguments = read_options(parser)
    if arguments.devices and arguments.backend != "jax":
        parser.error("--devices needs --backend jax")
    if arguments.backend and not arguments.compile:
        parser.error(f"--backend {arguments.backend} needs compiled programs: without --no-compile")
    batch_size = arguments.devices or 1
    if arguments.backend == "jax":
        use_jax(parser, batch_size)
    steps = arguments.steps or (COMPILED_STEPS * batch_size if arguments.compile else EAGER_STEPS)
    if not 0.01 <= arguments.temperature <= 100:
        parser.error(f"--temperature must be from 0.01 to 100, not {arguments.temperature}")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # whatever the alphabet, and whatever the terminal can show

    random.seed(arguments.seed)
    names = read_names(arguments.file)
    letters = "".join(sorted(set("".join(names))))
    model = Transformer(len(letters) + 1, max(map(len, names)) + 1)
    print(f"Names: {len(names):,}, of {len(letters)} different letters")
    print(f"Transformer: 1 layer, {WIDTH} wide, {HEADS} heads: {len(model.parameters()):,} parameters")

    shuffled = random.sample(names, len(names))
    chosen = [shuffled[step % len(names)] for step in range(steps)]
    examples: list[Any] = [[END, *(letters.index(letter) + 1 for letter in name), END] for name in chosen]
    updates = math.ceil(steps / batch_size)
    rates = watched(mg.optim.linear(0.02, 0.0, updates), updates, arguments)
    optimizer = mg.optim.Adam(model.parameters(), rates, betas=(0.85, 0.99))
    start = time.perf_counter()
    settings = {"seed": arguments.seed, "progress": False if arguments.quiet else None}
    if arguments.backend == "jax":
        examples = [filled(tokens, max(map(len, examples))) for tokens in examples]
        settings |= {"batch_size": batch_size, "devices": arguments.devices}
    loss = model.loss_of_filled if arguments.backend == "jax" else model.loss
    history = mg.fit(loss, examples, optimizer, compile=arguments.backend or arguments.compile, **settings)
    trained(history, time.perf_counter() - start)
    for _ in range(arguments.samples):
        name = sample(model, letters, arguments.temperature)
        print(f"  {name} (in the file)" if name in names else f"  {name}")


if __name__ == "__main__":
    run(main)
