"""The command ``micrograd``: the value and the gradients of an expression, printed or drawn.

micrograd grad "x*y + z" x=2 y=-3 z=10
micrograd draw "x*y + z" x=2 y=-3 z=10 -o graph.svg
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import micrograd
from micrograd.draw import save
from micrograd.engine import Value
from micrograd.expressions import evaluate
from micrograd.testing import gradcheck

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the words after the command's name; those of the shell if left out.

    Returns:
        The exit code: 0 if all went well, 1 if the expression or the gradient is wrong, 2 for words
        that are not of the command.
    """
    options = _parser().parse_args(arguments)
    try:
        leaves = _leaves(options.names)
        return int(options.run(options, leaves))
    except (ValueError, ArithmeticError, AssertionError, ImportError, OSError) as error:
        print(f"micrograd: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="micrograd", description="Values and gradients of an expression.")
    parser.add_argument("--version", action="version", version=f"micrograd {micrograd.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, what in (
        ("grad", _grad, "print the value and the gradient of each name"),
        ("check", _check, "compare the gradients with finite differences"),
        ("draw", _draw, "draw the graph with its gradients"),
    ):
        command = commands.add_parser(name, help=what, description=what.capitalize() + ".")
        command.set_defaults(run=run)
        command.add_argument("expression", help='in Python\'s notation: "x*y + tanh(z)"')
        command.add_argument("names", nargs="*", metavar="name=number", help="what the names stand for: x=2 y=-3")
        if name == "draw":
            command.add_argument("-o", "--output", default="graph.svg", help="a .svg, .png, .pdf or .dot file")
    return parser


def _leaves(assignments: Sequence[str]) -> dict[str, Value]:
    """The names that are given, each a labelled leaf."""
    leaves: dict[str, Value] = {}
    for assignment in assignments:
        name, equals, number = assignment.partition("=")
        if not (equals and name.isidentifier()):
            raise ValueError(f"{assignment!r} is not of the form name=number, as x=2 is")
        if name in leaves:
            raise ValueError(f"{name!r} is given twice")
        try:
            leaves[name] = Value(float(number), label=name)
        except ValueError:
            raise ValueError(f"{number!r}, given for {name!r}, is not a number") from None
    return leaves


def _backpropagated(options: argparse.Namespace, leaves: dict[str, Value]) -> Value:
    result = evaluate(options.expression, leaves)
    if result.requires_grad:
        result.backward()
    return result


def _grad(options: argparse.Namespace, leaves: dict[str, Value]) -> int:
    result = _backpropagated(options, leaves)
    print(f"{options.expression} = {result.data!r}")
    for name, leaf in leaves.items():
        print(f"gradient of {name} = {leaf.grad!r}")
    return 0


def _check(options: argparse.Namespace, leaves: dict[str, Value]) -> int:
    def function(*operands: Value | float) -> Value:
        values = [operand if isinstance(operand, Value) else Value(operand) for operand in operands]
        return evaluate(options.expression, dict(zip(leaves, values, strict=True)))

    gradcheck(function, [leaf.data for leaf in leaves.values()])
    print(f"the gradients of {options.expression} agree with finite differences")
    return 0


def _draw(options: argparse.Namespace, leaves: dict[str, Value]) -> int:
    save(_backpropagated(options, leaves), options.output)
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
