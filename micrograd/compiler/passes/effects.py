"""Effects: how large a program is after each pass, as ``explain(passes=True)`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.compiler.ir.columns import Columns
from micrograd.compiler.ir.entries import Trace
from micrograd.compiler.ir.graph import Graph
from micrograd.compiler.ir.program import Program, aligned

if TYPE_CHECKING:
    from collections.abc import Iterable


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
        terms = len(thing.terms.owner) + sum(part.length * part.nodes.size for part in thing.whole)
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
