"""Interpreters: each representation of a program, evaluated modulo the prime 2**61 - 1.

Sums and products are those of the field, and a quotient is a product with the inverse. Other primitives are keyed
random functions of their operands, but for the choices, which keep what a pass may rely on:

    where(c, x, y)        y + k(c) * (x - y), so that it is linear in x and y
    maximum(x, y)         the one that comes later in a random order, so that maxima can be nested and sorted
    take(i, elements)     the sum of equal(i + n * less(i, 0), j) * elements[j], for n elements

A fused primitive is computed by its formula. Reading a number before it is written is an error.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.ir.columns import Columns
from micrograd.compiler.ir.entries import DIFFERENTIATED_AS, INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE
from micrograd.compiler.ir.graph import MAXIMUM, ONE
from micrograd.compiler.ir.program import Loop, Map, Reduction, unrolled
from micrograd.compiler.numbers import distinct, starts_run
from micrograd.compiler.passes.field import element_of, inverse, keyed, minus, plus, summed, times, total
from micrograd.engine import primitives
from micrograd.engine.primitive import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.ir.graph import Applications, Graph
    from micrograd.compiler.ir.program import Kernel, Program, Singles
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.passes.field import Elements
    from micrograd.engine.primitive import Primitive


class VerificationError(Exception):
    """A pass of the compiler changed what a program computes."""


class Point(NamedTuple):
    """The numbers that a program is evaluated at.

    Attributes:
        inputs: one after the other.
        seeds: the gradients of the outputs.
    """

    inputs: Elements
    seeds: Elements


@dataclass(frozen=True)
class Memory:
    """Numbers, and which of them have been written."""

    values: Elements
    written: Booleans

    @staticmethod
    def of_size(size: int) -> Memory:
        """One in which nothing is written but the 1 behind the last number, which is at -1."""
        memory = Memory(np.zeros(size + 1, dtype=np.uint64), np.zeros(size + 1, dtype=bool))
        memory.write(ONE, element_of(1.0))
        return memory

    def write(self, positions: Any, values: Elements) -> None:
        """Put numbers in their places."""
        self.values[positions] = values
        self.written[positions] = True

    def read(self, positions: Integers) -> Elements:
        """The numbers at some positions."""
        known = self.written[positions]
        if not known.all():
            raise VerificationError(f"number {int(positions[~known][0])} is read before it is written")
        return self.values[positions]


def applied(primitive: Primitive, *operands: Elements) -> Elements:
    """What stands for the results of a primitive."""
    if primitive in _EXACT:
        return _EXACT[primitive](*operands)
    if primitive.name == "fused" and primitive.composite is not None and PRIMITIVES.get("fused") is not primitive:
        return np.asarray(primitive.composite(_Formulas(), *map(_Symbolic, operands)).values)
    return keyed(f"{primitive.name} {primitive.settings}", *operands)


def _choice(condition: Elements, x: Elements, y: Elements) -> Elements:
    return plus(y, times(keyed("where", condition), plus(x, minus(y))))


def _larger(x: Elements, y: Elements) -> Elements:
    return np.where(keyed("order", x) >= keyed("order", y), x, y)


_EXACT: dict[Any, Callable[..., Elements]] = {
    primitives.add: plus,
    primitives.sub: lambda x, y: plus(x, minus(y)),
    primitives.neg: minus,
    primitives.mul: times,
    primitives.div: lambda x, y: times(x, inverse(y)),
    primitives.identity: lambda x: x,
    primitives.detach: lambda x: x,
    DIFFERENTIATED_AS: lambda x, _: x,
    primitives.where: _choice,
    primitives.maximum: _larger,
}


def taken(index: Elements, elements: Elements) -> Elements:
    """What is taken from the elements, which are along the last axis."""
    coefficients = times_of_elements(index, elements.shape[-1])
    return summed(times(coefficients, elements))


def times_of_elements(index: Elements, count: int) -> Elements:
    """What each element is multiplied by where one of them is taken: 1 for that one, and else 0, in real programs."""
    from_start = plus(index, times(element_of(float(count)), applied(primitives.less, index, element_of(0.0))))
    return applied(primitives.equal, from_start[..., None], element_of(np.arange(float(count))))


def _largest(values: Elements) -> Elements:
    """The one along the last axis that comes last in the random order."""
    found = values[..., 0]
    for column in range(1, values.shape[-1]):
        found = _larger(found, values[..., column])
    return found


class _Symbolic:
    """Elements with the operators that the formula of a fused primitive may use."""

    def __init__(self, values: Elements) -> None:
        self.values = values

    def __add__(self, other: Any) -> _Symbolic:
        return _Symbolic(plus(self.values, _elements(other)))

    def __mul__(self, other: Any) -> _Symbolic:
        return _Symbolic(times(self.values, _elements(other)))

    def __neg__(self) -> _Symbolic:
        return _Symbolic(minus(self.values))

    __radd__, __rmul__ = __add__, __mul__


def _elements(operand: Any) -> Elements:
    return operand.values if isinstance(operand, _Symbolic) else element_of(operand)


class _Formulas:
    """The primitives by their names, for formulas."""

    def __getattr__(self, name: str) -> Callable[..., _Symbolic]:
        primitive = PRIMITIVES[name]
        return lambda *operands: _Symbolic(applied(primitive, *map(_elements, operands)))


# Traces and columns


def of_trace(thing: Trace | Columns, point: Point) -> Elements:
    """The outputs of a trace, or of its columns. Operations of one level are computed together."""
    trace, entries = (thing.trace, _of_columns(thing)) if isinstance(thing, Columns) else (thing, _of_entries(thing))
    size = thing.size if isinstance(thing, Columns) else len(trace.operations)
    memory, levels = Memory.of_size(size), np.zeros(size, dtype=np.int64).tolist()
    memory.write(np.array([position for group in trace.inputs for position in group], dtype=np.int64), point.inputs)
    of_sequence: dict[tuple[Primitive, int], int] = {}
    together: defaultdict[tuple[int, Any, int], list[tuple[int, Sequence[Any]]]] = defaultdict(list)
    for position, primitive, operands in entries:
        if primitive is LITERAL:
            memory.write(position, element_of(operands[0]))
            continue
        direct, sequences, length = operands, operands[:0], 0
        if primitive is SUM_OF_PRODUCTS or primitive is TAKE:
            direct, sequences = operands[:1], operands[1:]
            lists = trace.rows if primitive is SUM_OF_PRODUCTS else trace.tables
            length = len(lists[sequences[0]])
            for number in sequences:
                if (primitive, number) not in of_sequence:
                    of_sequence[primitive, number] = max((levels[element] for element in lists[number]), default=0)
        found = [*(levels[operand] for operand in direct), *(of_sequence[primitive, number] for number in sequences)]
        levels[position] = 1 + max(found)
        together[levels[position], primitive, length].append((position, operands))
    for (_, primitive, _), rows in sorted(together.items(), key=lambda item: item[0][0]):
        positions = np.array([position for position, _ in rows])
        columns = [np.array(column) for column in zip(*(operands for _, operands in rows), strict=True)]
        memory.write(positions, _of_operations(trace, primitive, columns, memory))
    return memory.read(np.array(trace.outputs, dtype=np.int64))


def _of_operations(trace: Trace, primitive: Primitive, columns: list[Integers], memory: Memory) -> Elements:
    """The results of operations of one primitive, given a column for each operand."""
    if primitive is SUM_OF_PRODUCTS:
        start, first, second = columns
        factors = [memory.read(np.array([trace.rows[row] for row in rows.tolist()])) for rows in (first, second)]
        return plus(memory.read(start), summed(times(*factors)))
    if primitive is TAKE:
        index, tables = columns
        return taken(memory.read(index), memory.read(np.array([trace.tables[table] for table in tables.tolist()])))
    return applied(primitive, *map(memory.read, columns))


def _of_entries(trace: Trace) -> Iterator[tuple[int, Primitive, Sequence[Any]]]:
    for position, (primitive, *operands) in enumerate(trace.operations):
        if primitive is not INPUT:
            yield position, primitive, operands


def _of_columns(columns: Columns) -> list[tuple[int, Primitive, Sequence[Any]]]:
    found: list[Any] = [
        (position, LITERAL, [number])
        for position, number in zip(columns.literals.tolist(), columns.numbers, strict=True)
    ]
    for primitive, positions, operands in columns.operations:
        rows = zip(*(operand.tolist() for operand in operands), strict=True)
        found += [(position, primitive, row) for position, row in zip(positions.tolist(), rows, strict=True)]
    return sorted(found, key=itemgetter(0))


# Graphs


class Step(NamedTuple):
    """What is computed on one level of a graph: some of its terms, or some of the rows of an application."""

    level: int
    application: Applications | None
    rows: Integers


def steps_of(graph: Graph) -> list[Step]:
    """The steps in which a graph is computed; its terms are taken one by one."""
    levels, steps = graph.levels(), []
    for application in (None, *graph.applications):
        of_rows = levels[graph.terms.owner if application is None else application.nodes]
        order = np.argsort(of_rows, kind="stable")
        cuts = np.flatnonzero(np.diff(of_rows[order])) + 1
        parts = [rows for rows in np.split(order, cuts) if len(rows)]
        steps += [Step(int(of_rows[rows[0]]), application, rows) for rows in parts]
    return sorted(steps, key=lambda step: step.level)


def of_graph(graph: Graph, point: Point) -> Memory:
    """All numbers of a graph whose terms are one by one."""
    memory, constants = Memory.of_size(graph.size), np.flatnonzero(graph.is_constant)
    memory.write(constants, element_of(graph.constants[constants]))
    memory.write(np.concatenate(graph.inputs), point.inputs)
    memory.write(graph.seeds, point.seeds[: len(graph.seeds)])  # there are none before the adjoint pass
    coefficients, has_largest = element_of(graph.terms.coefficient), bool((graph.kind == MAXIMUM).any())
    for _, application, rows in steps_of(graph):
        if application is not None:
            memory.write(application.nodes[rows], _of_application(graph, application.chosen(rows), memory))
            continue
        terms = graph.terms[rows]
        values = times(coefficients[rows], times(memory.read(terms.first), memory.read(terms.second)))
        is_first = starts_run(terms.owner)  # they are sorted
        nodes, owners = terms.owner[is_first], np.cumsum(is_first) - 1
        found = total(values, owners, len(nodes))
        if has_largest:
            order = np.lexsort((keyed("order", values), owners))
            last = order[np.append(np.flatnonzero(np.diff(owners[order])), len(order) - 1)]
            found = np.where(graph.kind[nodes] == MAXIMUM, values[last], found)
        memory.write(nodes, found)
    return memory


def _of_application(graph: Graph, part: Applications, memory: Memory) -> Elements:
    if part.tables is None:
        return applied(part.primitive, *map(memory.read, part.operands.T))
    found = np.empty(len(part.nodes), dtype=np.uint64)
    for table in distinct(part.tables).tolist():
        rows = part.tables == table
        index = memory.read(part.operands[rows, 0])
        found[rows] = taken(
            index, np.broadcast_to(memory.read(graph.tables[table]), (len(index), len(graph.tables[table])))
        )
    return found


# Programs


def of_program(program: Program, points: Sequence[Point], is_alone: bool) -> tuple[Elements, Elements]:
    """The outputs and the gradients of the last of several runs, one after the other in the same memory.

    Args:
        program: which to run.
        points: what to run it at.
        is_alone: whether it reads only what it is given and what it has written. Of others, as those of a training
            step, the memory has random numbers at first.
    """
    memory = Memory.of_size(program.size)
    if not is_alone:
        memory.write(np.arange(program.size), keyed("memory", np.arange(program.size, dtype=np.uint64)))
    memory.write(program.seeds, element_of(1.0))
    for start, numbers in program.constants:
        memory.write(slice(start, start + len(numbers)), element_of(numbers))
    for point in points:
        memory.write(program.seeds, point.seeds[: len(program.seeds)])
        memory.write(program.inputs[: len(point.inputs)], point.inputs)
        for kernel in program.kernels:
            _run(kernel, memory)
    return memory.read(program.outputs), memory.read(np.arange(program.size)[program.gradients])


def _run(kernel: Kernel | Loop | Singles, memory: Memory) -> None:
    """Compute a kernel, those of all iterations of a loop, or single numbers."""
    iterations = kernel.iterations if isinstance(kernel, Loop) else 1
    kernels = kernel.kernels if isinstance(kernel, Loop) else [*unrolled(kernel)]
    positions = [
        [
            (access.positions(part.rows, part.columns, terms), access.iteration_step)
            for access, terms in ((part.target, 1), *part.reads)
        ]
        for part in kernels
    ]
    for iteration in range(iterations):
        for part, of_part in zip(kernels, positions, strict=True):
            target, *operands = [first + step * iteration for first, step in of_part]
            memory.write(target.ravel(), _of_kernel(part, [*map(memory.read, operands)]).ravel())


_coefficient = lru_cache(1000)(element_of)  # -0.0 and 0.0 are the same element


def _of_kernel(kernel: Kernel, operands: list[Elements]) -> Elements:
    """The results of a kernel, given what it reads."""
    if isinstance(kernel, Map):
        return applied(kernel.primitive, *operands)
    if not isinstance(kernel, Reduction):
        index, elements = operands
        return taken(index[..., 0], elements)
    reads, parts = iter(operands), []
    for segment in kernel.segments:
        terms = next(reads)
        if segment.second is not None:
            terms = times(terms, next(reads))
        if segment.coefficient != 1.0:
            terms = times(_coefficient(segment.coefficient), terms)
        parts.append(np.broadcast_to(terms, (kernel.rows, kernel.columns, segment.terms)))
    together = np.concatenate(parts, axis=2)
    return _largest(together) if kernel.largest else summed(together)
