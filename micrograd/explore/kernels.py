"""Compiled functions, opened: a result of one is a single Value, and its program says how it came to be.

The kernels of the program run once more, on Values, each in a block of its own. So a page shows

    compiled f  >  1: matrix-vector, 2: tanh, 3: mean   >   the scalars

For as long as the page is made, the results of the call are the last of these Values; then they are what they were.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import TYPE_CHECKING, Any

from micrograd.contexts.scope import block_on_top, record_scopes, scope
from micrograd.draw.array_steps import made_as, with_numbers
from micrograd.draw.folding.parameters import places_of_arrays
from micrograd.engine.order import topological_order
from micrograd.explore.passes import Opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.program import Kernel, Program
    from micrograd.compiler.numbers import Integers
    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.value import Value
    from micrograd.explore.passes import Element

MOST_TERMS = 50_000  # of all kernels of a call; in a larger one, a Value stands for all sums of a kernel
MOST_OF_ALL = 10_000_000  # terms; a call with more stays closed, as their places would take half a gigabyte


@contextmanager
def opened_calls(root: Value, most: int = 100_000) -> Iterator[Opened]:
    """Let the results of compiled functions under a Value be made by their kernels, as long as this lasts.

    Args:
        root: the Value.
        most: how many Values there may then be; a call that would need more stays as it is.

    Yields:
        Where in its kernel each Value is that kernels make, and what the parameters are called.
    """
    made: dict[Value, Value] = {}
    elements: dict[Value, Element] = {}
    places: dict[Value, Place] = {}
    order = topological_order(root)
    room = most - len(order)
    for call, results in _calls(order):
        places = _places(call) | places
        found, where, count = _made_by_kernels(call, results, room)
        room -= count
        made |= found
        elements |= where
    with made_as(made):
        yield Opened(elements, places)


def _calls(order: list[Value]) -> list[tuple[Any, dict[int, Value]]]:
    """The calls of compiled functions among Values, each with those of its results that are used, by their numbers."""
    found: dict[Any, dict[int, Value]] = {}
    for node in order:
        primitive: Any = node._primitive
        if hasattr(primitive, "origin"):
            found[node] = {} if hasattr(primitive, "results") else {0: node}
        elif hasattr(primitive, "result"):
            found[node._first][primitive.result] = node
    return [(call, results) for call, results in found.items() if results]


def _places(call: Any) -> dict[Value, Place]:
    """What the parameters that a call has read from outside are called."""
    from micrograd.compiler.guards.parameter_names import values_by_name

    read = {operand for operand in call._x if operand.is_leaf}
    arrays = values_by_name(call._primitive.origin.function, [*read])
    arrays.pop("others", None)
    return {value: place for value, place in places_of_arrays(arrays).items() if value in read}


def _made_by_kernels(
    call: Any, results: dict[int, Value], room: int
) -> tuple[dict[Value, Value], dict[Value, Element], int]:
    """What kernels make in place of the results of a call, where each is, and about how many Values they make in all.

    Nothing is made where there is no room for so many, or where it cannot be told.
    """
    from micrograd.explore.kernel_values import KernelValues

    origin, inputs = call._primitive.origin, call._primitive.inputs
    program, wanted = origin.program, origin.wanted
    outputs = program.outputs[[*results]]
    kernels = _needed(program, outputs)
    terms = sum(kernel.rows * kernel.columns * kernel.terms for _, kernel, _ in kernels)
    is_large = terms > MOST_TERMS or 3 * terms > room  # a product, a sum and a constant for each
    count = sum(2 * kernel.rows * kernel.columns + 1 for _, kernel, _ in kernels) if is_large else 3 * terms
    if not origin.is_whole or not kernels or terms > MOST_OF_ALL or count > room:
        return {}, {}, 0
    operands = list(call._x)
    given = dict(zip(program.inputs[wanted].tolist(), operands, strict=True))
    values = KernelValues(program, inputs, given, is_large)
    for place, result in zip(outputs.tolist(), results.values(), strict=True):
        values.results.setdefault(place, []).append(result)

    def make() -> None:
        with record_scopes(), scope(f"compiled {call._primitive.name}"):
            block: Any = block_on_top()
            for turn, together in groupby(kernels, key=lambda found: found[0]):
                with scope("turn") if turn else nullcontext():
                    for number, (_, kernel, last) in enumerate(together, 1):
                        with scope(f"{number}: {kernel.kind}"):
                            values.add(kernel, last)
            values.add_the_rest()
        block.below = next(iter(results.values()))._scope  # the function was called in this one

    try:
        with_numbers(operands, [float(number) for number in call._y], make)
    except (ArithmeticError, ValueError):  # what the compiled program computes in another way
        return {}, {}, 0
    return (values.made, values.elements, count) if values.is_new else ({}, {}, 0)


def _needed(program: Program, outputs: Integers) -> list[tuple[int, Kernel, list[int]]]:
    """The kernels that these outputs are made of, in the order in which they run.

    Each comes after its turn of a loop, or 0, and before those of the outputs that are complete when it has run.
    """
    import numpy as np

    from micrograd.compiler.ir.program import Loop, Singles

    turns: list[tuple[int, Kernel]] = []
    for kernel in program.kernels:
        if isinstance(kernel, Loop):
            count = len(kernel.kernels)
            turns += [(index // count + 1, each) for index, each in enumerate(kernel.unrolled())]
        else:
            turns += [(0, each) for each in (kernel.unrolled() if isinstance(kernel, Singles) else [kernel])]
    is_needed = np.zeros(program.size, dtype=bool)
    is_needed[outputs] = True
    is_open = is_needed.copy()
    found: list[tuple[int, Kernel, list[int]]] = []
    for turn, kernel in reversed(turns):
        target = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
        if is_needed[target].any():
            last = target[is_open[target]].tolist()
            is_needed[target] = is_open[target] = False
            if kernel.rows * kernel.columns * kernel.terms <= MOST_OF_ALL:
                for positions in _read(kernel):
                    is_needed[positions] = True
            found.append((turn, kernel, last))
    return found[::-1]


def _read(kernel: Kernel) -> list[Integers]:
    """The places of all that a kernel reads."""
    return [access.positions(kernel.rows, kernel.columns, terms) for access, terms in kernel.reads]
