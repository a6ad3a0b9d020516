"""What the tests of tables share: small tables to learn, and the command run on them."""

import random

from micrograd.command.main import main
from tests.folders import DATA

PENGUINS = DATA / "penguins.csv"
QUICK = ["--hidden", "2", "--epochs", "1", "--no-pictures", "--folds", "0"]


def run(capsys, *words):
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def written(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def small_file(folder, rows=20, seed=1, name="small.csv"):
    """A table that a tiny network learns at once: a class and a quantity that follow from two columns."""
    chance, lines = random.Random(seed), ["size,colour,kind,weight"]
    for _ in range(rows):
        size, colour = chance.uniform(0, 10), chance.choice(["red", "blue"])
        lines.append(f"{size:.3f},{colour},{'large' if size > 5 else 'small'},{2 * size + (colour == 'red'):.3f}")
    return written(folder / name, "\n".join(lines) + "\n")
