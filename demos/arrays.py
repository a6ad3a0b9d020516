"""Multiply two small matrices, keep what is positive, sum it up, and see every gradient.

There is no tensor class here: an array of Values is a NumPy array, NumPy multiplies and adds its elements
as it would any objects, and each product and sum becomes a node. The picture shows all of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common import needs, optional

import micrograd as mg
from micrograd.draw.graph import save

np = optional("numpy")


def main() -> None:
    """Compute, backpropagate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--output", type=Path, default=Path("arrays.svg"), help="the picture (default: arrays.svg)")
    arguments = parser.parse_args()
    needs(parser, "numpy")

    l1 = mg.array(np.arange(-4, 4).reshape(2, 4), label="l1")
    l2 = mg.array(np.arange(-2, 2).reshape(4, 1), label="l2")
    n1 = l1 @ l2
    n2 = mg.relu(n1)
    n3 = n2.sum()
    for name, values in (("n1", n1), ("n2", n2)):
        for (row, column), value in np.ndenumerate(values):
            value.label = f"{name}[{row}, {column}]"
    n3.label = "n3"
    n3.backward()

    for name, values in (("l1", l1), ("l2", l2), ("n1 = l1 @ l2", n1), ("n2 = relu(n1)", n2)):
        print(f"{name}\n{mg.numbers(values)}\ngradient\n{mg.gradients(values)}\n")
    print(f"n3 = sum of n2 = {n3.data}")
    try:
        save(n3, arguments.output)
    except (ImportError, OSError, ValueError) as error:
        parser.exit(1, f"No picture: {error}\n")
    print(f"Picture: {arguments.output}")


if __name__ == "__main__":
    main()
