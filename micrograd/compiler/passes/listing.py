"""Listing: what a pass made, as text.

``fast.show(after=...)`` prints a graph or a program, an operation a line, and ``explain(passes=True)`` how large it is.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.compiler.ir.columns import Columns
from micrograd.compiler.ir.entries import Trace
from micrograd.compiler.ir.graph import MAXIMUM, ONE, Graph
from micrograd.compiler.ir.program import Loop, Program, aligned, size_text, unrolled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from micrograd.compiler.ir.program import Access, Kernel

_MOST = 200  # lines


def listing_of(thing: Graph | Program) -> str:
    """A graph or a program as text; of a long one the beginning.

    Nodes of a graph are ``n0``, ``n1`` and so on. Where the numbers of a kernel are is said by the position of the
    first, and how far apart rows (r), columns (c), terms (t) and iterations (i) are.
    """
    lines = _of_graph(thing) if isinstance(thing, Graph) else _of_program(thing)
    shown = list(islice(lines, _MOST))
    rest = sum(1 for _ in lines)
    return "\n".join([*shown, *([f"... and {rest:,} lines more"] if rest else [])])


def _of_graph(graph: Graph) -> Iterator[str]:
    yield f"inputs {', '.join(f'n{node}' for group in (*graph.inputs, graph.seeds) for node in group.tolist())}"
    graph, found = graph.expanded(), dict[int, list[str]]()
    terms = graph.terms
    columns = (terms.owner, terms.coefficient, terms.first, terms.second)
    for owner, coefficient, *factors in zip(*(column.tolist() for column in columns), strict=True):
        names = [_name(graph, factor) for factor in factors if factor != ONE]
        found.setdefault(owner, []).append(" * ".join([*([f"{coefficient:g}"] if coefficient != 1 else []), *names]))
    texts = {
        node: f"max({', '.join(parts)})" if graph.kind[node] == MAXIMUM else " + ".join(parts)
        for node, parts in found.items()
    }
    for application in graph.applications:
        for row, node in enumerate(application.nodes.tolist()):
            operands: Any = [_name(graph, operand) for operand in application.operands[row].tolist()]
            if application.tables is not None:
                operands += [_name(graph, element) for element in graph.tables[application.tables[row]].tolist()]
            texts[node] = f"{application.primitive.name}({', '.join(operands)})"
    for node in sorted(texts):
        yield f"n{node} = {texts[node]}"
    for name, nodes in (("outputs", graph.outputs), ("gradients", graph.gradients))[: 1 + bool(len(graph.gradients))]:
        yield f"{name} {', '.join(_name(graph, node) for node in nodes.tolist())}"


def _name(graph: Graph, node: int) -> str:
    return f"{graph.constants[node]:g}" if graph.is_constant[node] else f"n{node}"


def _of_program(program: Program) -> Iterator[str]:
    for kernel in program.kernels:
        if isinstance(kernel, Loop):
            yield f"loop of {kernel.iterations:,} iterations"
            yield from (f"    {_of_kernel(inside)}" for inside in kernel.kernels)
        else:
            yield from map(_of_kernel, unrolled(kernel))


def _of_kernel(kernel: Kernel) -> str:
    operands = ", ".join(map(_where, kernel.accesses))
    return f"{_where(kernel.target)} = {kernel.kind} {size_text(kernel)} of {operands}"


def _where(access: Access) -> str:
    steps = ("r", access.row_step), ("c", access.column_step), ("t", access.term_step), ("i", access.iteration_step)
    moves = [f"{step}{name}" for name, step in steps if step]
    start = str(access.base) if access.table is None else "table"
    return f"[{' + '.join([start, *moves])}]"


class Effect(NamedTuple):
    """How large a program is after a pass.

    Attributes:
        operations: how many there are on single numbers, a product and its sum being one.
        arrays: how many arrays, or single operations of a trace, it is written down as; of a program, its kernels.
        numbers: how many numbers it has.
        bytes: that these take when it runs.
    """

    operations: int
    arrays: int
    numbers: int
    bytes: int


def effect_of(thing: Any) -> Effect | None:
    """How large a trace, columns, a graph or a program is; None of what runs one."""
    if isinstance(thing, Trace):
        count = len(thing.operations)
        return Effect(count, count, count, 8 * count)
    if isinstance(thing, Columns):
        return Effect(thing.nodes, len(thing.operations), thing.size, 8 * thing.size)
    if isinstance(thing, Graph):
        terms = len(thing.terms.owner) + sum(part.length * len(part.owner) for part in thing.whole)
        made = terms + sum(len(part.nodes) for part in thing.applications)
        return Effect(made, len(thing.applications) + len(thing.whole) + 1, thing.size, 8 * thing.size)
    if isinstance(thing, Program):
        kernels = list(thing.with_iterations())
        made = sum(times * one.rows * one.columns * one.terms for times, one in kernels)
        return Effect(made, len(kernels), thing.size, 8 * thing.size)
    return None


def table_of(seconds: dict[str, float], effects: dict[str, Effect], disabled: Iterable[str]) -> str:
    """A table of the passes: how long each took, and how large the program is then.

    Args:
        seconds: that each pass took, by its name.
        effects: how large the program is after each.
        disabled: the names of those that did not run.
    """
    rows = [["pass", "ms", "operations", "arrays", "numbers", "bytes"]]
    for name, taken in seconds.items():
        cells = [f"{number:,}" for number in effects[name]] if name in effects else []
        rows.append([name, "disabled" if name in disabled else f"{1e3 * taken:.2f}", *cells])
    return "\n".join(aligned(rows))
