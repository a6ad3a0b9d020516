"""The smallest graph worth drawing: x * y + z, printed and drawn with its gradients.

python demos/tape.py
python demos/tape.py -o picture.png
"""

import argparse

from micrograd import Value, save


def main() -> None:
    """Compute, backpropagate, print the tape, and draw it."""
    parser = argparse.ArgumentParser(description="x * y + z, printed and drawn.")
    parser.add_argument("-o", "--output", default="tape.svg", help="a .svg, .png, .pdf or .dot file")
    options = parser.parse_args()

    x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(10.0, label="z")
    a = x * y
    a.label = "a = x * y"
    f = a + z
    f.label = "f = a + z"
    f.backward()

    print(f"{'':12}{'data':>8}{'grad':>8}")
    for value in (x, y, z, a, f):
        print(f"{value.label:12}{value.data:8g}{value.grad:8g}")
    try:
        save(f, options.output)
    except (ValueError, OSError, ImportError) as error:
        parser.exit(1, f"tape.py: {error}\n")
    print(f"\nThe graph is drawn in {options.output}.")


if __name__ == "__main__":
    main()
