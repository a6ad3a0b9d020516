"""What the tests of tables share: small tables to learn, and the command run on them."""

import csv
import io
import random

from micrograd.command.main import main
from micrograd.tables.table import Table
from tests.folders import DATA

PENGUINS = DATA / "penguins.csv"


def run(capsys, *words):
    code = main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def small(rows=20, seed=1):
    """A table that a tiny network learns at once: a class and a quantity that follow from two columns."""
    chance = random.Random(seed)
    lines = []
    for _ in range(rows):
        size, colour = chance.uniform(0, 10), chance.choice(["red", "blue"])
        kind = "large" if size > 5 else "small"
        lines.append([f"{size:.3f}", colour, kind, f"{2 * size + (colour == 'red'):.3f}"])
    return Table(("size", "colour", "kind", "weight"), lines, list(range(2, rows + 2)))


def small_file(folder, rows=20, seed=1):
    table = small(rows, seed)
    text = io.StringIO()
    csv.writer(text).writerows([table.columns, *table.rows])
    return written(folder / "small.csv", text.getvalue())


QUICK = ["--hidden", "2", "--epochs", "1", "--no-pictures"]
