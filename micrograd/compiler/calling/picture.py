"""A picture of a program: its kernels, and which of them read what others wrote.

The product of a matrix and a vector is one box with one arrow from the inputs, whatever its size:

    inputs -> matrix-vector -> tanh -> output

The boxes that compute gradients have a colour of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.ir.program import Access, Kernel, Program, Singles
    from micrograd.compiler.numbers import Integers

MOST_KERNELS = 400
_FORWARD, _BACKWARD, _GIVEN = "#e3edf7", "#fbe8d3", "#f2f2f2"


def draw_program(
    program: Program,
    format: str = "svg",  # noqa: A002  # graphviz's own name for it
    kind: Callable[..., Any] | None = None,
) -> Any:
    """The picture of a program.

    Args:
        program: what to draw.
        format: of the picture.
        kind: what to make, such as ``micrograd.draw.dot.Source``; a graphviz.Digraph where it is left out.

    Raises:
        ValueError: if there are too many kernels to draw.
        ImportError: if graphviz is not installed, and a Digraph is to be made.
    """
    from micrograd.draw.style import FONT

    kernels = list(program.with_iterations())
    if len(kernels) > MOST_KERNELS:
        raise ValueError(f"the program has {len(kernels):,} kernels; up to {MOST_KERNELS} can be drawn")
    if kind is None:
        from micrograd.draw.layout import Picture

        kind = Picture
    picture = kind(
        "kernels",
        format=format,
        graph_attr={"rankdir": "LR", "fontname": FONT, "nodesep": "0.15", "ranksep": "0.3"},
        node_attr={"shape": "box", "style": "rounded,filled", "fontname": FONT, "fontsize": "11", "color": "#8a8a8a"},
        edge_attr={"color": "#8a8a8a", "arrowsize": "0.6"},
    )
    inputs, seeds = set(program.inputs.tolist()), set(program.seeds.tolist())
    writer = np.full(program.size, -1)  # the kernel that wrote each number last; -1 for none
    backward: set[int] = set()
    # what a loop reads of the iteration before comes from itself
    for number, (iterations, kernel) in enumerate(kernels):
        writer[_all_iterations(kernel.target, iterations, kernel.rows, kernel.columns, 1)] = number
    for number, (iterations, kernel) in enumerate(kernels):
        shape = kernel.rows, kernel.columns
        reads = [_all_iterations(access, iterations, *shape, terms).ravel() for access, terms in kernel.reads]
        read = distinct(np.concatenate(reads))
        sources = _writers(writer, read)
        if backward.intersection(sources) or seeds.intersection(read.tolist()):
            backward.add(number)
        picture.node(str(number), _label(kernel, iterations), fillcolor=_BACKWARD if number in backward else _FORWARD)
        for name, given in (("inputs", inputs), ("1", seeds)):
            if given.intersection(read.tolist()):
                picture.node(f"given_{name}", name, fillcolor=_GIVEN)
                sources.append(f"given_{name}")
        for source in sources:
            picture.edge(str(source), str(number))
    gradients = program.of_gradients
    for name, results in (("output", program.outputs), ("gradients", gradients)):
        if len(results):
            picture.node(name, name, fillcolor=_GIVEN)
            for source in _writers(writer, results):
                picture.edge(str(source), name)
    return picture


def _writers(writer: Integers, positions: Integers) -> list[Any]:
    """The kernels that wrote what is in these positions."""
    return sorted(set(distinct(writer[positions]).tolist()) - {-1})


def _label(kernel: Kernel | Singles, iterations: int) -> str:
    shape = f"{kernel.rows} × {kernel.columns}" if kernel.rows > 1 else f"{kernel.columns}"
    terms = f"\n{kernel.terms} terms each" if kernel.terms > 1 else ""
    times = f"\n{iterations:,} times" if iterations > 1 else ""
    return f"{kernel.kind}\n{shape}{terms}{times}"


def _all_iterations(access: Access, iterations: int, rows: int, columns: int, terms: int) -> Integers:
    """The positions of an operand at all iterations of a loop."""
    return np.add.outer(access.iteration_step * np.arange(iterations), access.positions(rows, columns, terms))
