"""Backpropagate through a product and a sum, print every value and gradient, and draw the graph; write a page, too.

    python demos/tape.py -o tape.svg

A page beside the picture, tape.html, steps through both passes in a browser.

The program is a = x * y, f = a + z, at x = 2, y = -3, z = 10.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from micrograd import Value, explore
from micrograd.draw.graph import save


def main() -> None:
    """Compute, backpropagate, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("tape.svg"),
        help="the picture, a .svg, .png, .pdf or .dot file (default: tape.svg)",
    )
    output = parser.parse_args().output

    x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(10.0, label="z")
    a = x * y
    a.label = "a"
    f = a + z
    f.label = "f"
    f.backward()

    print(f"{'':4}{'value':>8}{'gradient':>10}   how it was made")
    made = {x: "given", y: "given", z: "given", a: "x * y", f: "a + z"}
    for value, how in made.items():
        print(f"{value.label:4}{value.data:8g}{value.grad:10g}   {how}")

    try:
        save(f, output)
        explore(f, output.with_suffix(".html"), title="a = x * y, f = a + z")
    except (OSError, ValueError, ImportError) as error:
        parser.exit(1, f"no picture: {error}\n")
    print(f"\nThe graph is drawn in {output}, and {output.with_suffix('.html')} steps through it")


if __name__ == "__main__":
    main()
