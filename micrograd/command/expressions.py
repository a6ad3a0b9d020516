"""grad, check, draw and explore: what is done with an expression and the numbers of its names."""

from __future__ import annotations

import keyword
import unicodedata
from typing import TYPE_CHECKING

from micrograd.command.grammar import ParsedExpression, functions
from micrograd.command.output import FAILED, OK, print_json
from micrograd.draw.graph import save
from micrograd.engine.value import Value
from micrograd.pages import explore as write_page
from micrograd.testing import GradientError, Report, gradcheck

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def _backpropagated(options: argparse.Namespace) -> tuple[Value, dict[str, Value]]:
    """The result with its gradients, and the leaves by name."""
    expression, leaves = ParsedExpression(options.expression), _leaves(options.names)
    result = expression(leaves)
    if result.requires_grad:
        result.backward()
    return result, leaves


def grad(options: argparse.Namespace) -> int:
    """Print the value and the gradients."""
    result, leaves = _backpropagated(options)
    text = options.expression.strip()
    gradients = {name: leaf.grad for name, leaf in leaves.items()}
    if options.json:
        print_json({"expression": text, "value": result.data, "gradients": gradients})
        return OK
    print(f"{text} = {result.data!r}")
    for name, gradient in gradients.items():
        print(f"gradient of {name} = {gradient!r}")
    return OK


def check(options: argparse.Namespace) -> int:
    """Compare the gradients with finite differences, and print the table of both."""
    expression = ParsedExpression(options.expression)
    _, leaves = _backpropagated(options)
    if not leaves:
        raise ValueError("there is no gradient to check: give names their numbers, as in x=2")

    def function(*operands: Value | float) -> Value:
        values = [operand if isinstance(operand, Value) else Value(operand) for operand in operands]
        return expression(dict(zip(leaves, values, strict=True)))

    point = [leaf.data for leaf in leaves.values()]
    try:
        report = gradcheck(function, point)
    except GradientError as error:
        report = error.report
    named = Report(tuple(row._replace(name=name) for name, row in zip(leaves, report.rows, strict=True)))
    if options.json:
        rows = [
            {
                "name": row.name,
                "at": row.input,
                "backpropagation": row.analytic,
                "differences": row.numeric,
                "verdict": row.verdict,
            }
            for row in named.rows
        ]
        print_json({"expression": expression.text.strip(), "agree": bool(report), "gradients": rows})
    else:
        print(named)
        open_ = [f"{row.name} ({row.verdict})" for row in named.rows if row.verdict not in ("right", "WRONG")]
        verdict = "agree with finite differences" if report else "do NOT agree with finite differences"
        if report and len(open_) == len(named.rows):
            verdict = "cannot be compared with finite differences at this point"
        elif report and open_:
            verdict += f", except for what cannot be compared at this point: {', '.join(open_)}"
        print(f"the gradients of {expression.text.strip()} {verdict}")
    return OK if report else FAILED


def draw(options: argparse.Namespace) -> int:
    """Draw the graph into a file."""
    result, _ = _backpropagated(options)
    save(result, options.output, style=options.style)
    return _wrote(options)


def explore(options: argparse.Namespace) -> int:
    """Write the page that steps through the graph."""
    result, _ = _backpropagated(options)
    write_page(result, options.output, title=options.title or options.expression.strip())
    return _wrote(options)


def _wrote(options: argparse.Namespace) -> int:
    if options.json:
        print_json({"wrote": options.output})
    else:
        print(f"wrote {options.output}")
    return OK


def _leaves(assignments: Sequence[str]) -> dict[str, Value]:
    """The names that are given, each a labelled leaf."""
    leaves: dict[str, Value] = {}
    for assignment in assignments:
        name, equals, number = assignment.strip().partition("=")
        name = unicodedata.normalize("NFKC", name)  # as Python does with the names in an expression
        if not (equals and name.isidentifier()) or keyword.iskeyword(name):
            raise ValueError(f"{assignment!r} is not of the form name=number, as x=2 is")
        if name in functions():
            raise ValueError(f"{name!r} is a function: choose another name")
        if name in leaves:
            raise ValueError(f"{name!r} is given twice")
        try:
            leaves[name] = Value(float(number), label=name)
        except ValueError:
            raise ValueError(f"{number!r}, given for {name!r}, is not a number, as in {name}=1.5") from None
    return leaves
