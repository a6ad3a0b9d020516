"""Compiled functions, opened: the result of one is a single Value, and its program says how it came to be.

The kernels of the program run once more, on Values, each in a block of its own. So a page shows

    compiled f  >  1: matrix-vector, 2: tanh, 3: mean   >   the scalars

For as long as the page is made, the result of the call is the last of these Values; then it is what it was.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import reduce
from itertools import chain, groupby
from operator import add
from typing import TYPE_CHECKING, Any

from micrograd.contexts.scope import record_scopes, scope
from micrograd.engine.commit import commit, setting
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.explore.film import with_numbers
from micrograd.functional import maximum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.program import Access, Kernel, Program, Reduction, Segment

MOST_TERMS = 50_000  # of all kernels of a call; a larger one stays closed
_FIELDS = ("_primitive", "_first", "_second", "_x", "_y", "_scope")  # how a node was made, and where


@contextmanager
def opened_calls(root: Value) -> Iterator[None]:
    """Let the results of compiled functions under a Value be made by their kernels, as long as this lasts.

    A call stays as it is if it has several results, or so many terms that they would fill the page.
    """
    calls = [node for node in topological_order(root) if getattr(node._primitive, "source", None) is not None]
    made = [(call, result) for call in calls if (result := _made_by_kernels(call)) is not None]
    nodes = [call for call, _ in made]
    before = [[getattr(node, field) for node in nodes] for field in _FIELDS]
    after = [[getattr(result, field) for _, result in made] for field in _FIELDS]
    undo = chain.from_iterable([*map(setting, [nodes] * len(_FIELDS), _FIELDS, before)])
    try:
        commit(chain.from_iterable([*map(setting, [nodes] * len(_FIELDS), _FIELDS, after)]))
        yield
    finally:
        commit(undo)


def _made_by_kernels(call: Any) -> Value | None:
    """The result of a call as its kernels make it; None where it cannot be told, or is no new Value."""
    program, inputs, wanted = call._primitive.source
    kernels = _needed(program)
    if not kernels or sum(kernel.rows * kernel.columns * kernel.terms for _, kernel in kernels) > MOST_TERMS:
        return None
    operands = list(call._x)
    run = _Run(program, inputs, dict(zip(program.inputs[wanted].tolist(), operands, strict=True)))

    def make() -> Value:
        with record_scopes(), scope(f"compiled {call._primitive.name}"):
            for turn, together in groupby(kernels, key=lambda pair: pair[0]):
                with scope("turn") if turn else nullcontext():
                    for number, (_, kernel) in enumerate(together, 1):
                        with scope(f"{number}: {kernel.kind}"):
                            run.add(kernel)
        return run.at(int(program.outputs[0]))

    try:
        result = with_numbers(operands, [float(number) for number in call._y], make)
    except (ArithmeticError, ValueError):  # what the compiled program computes in another way
        return None
    if result._scope is None or result in operands:  # nothing was recorded, or there is nothing but what went in
        return None
    return result


class _Run:
    """A run of kernels on Values.

    Args:
        program: that the kernels are of.
        inputs: their numbers.
        values: those of the inputs that are Values, by their places in the buffer.
    """

    def __init__(self, program: Program, inputs: Floats, values: dict[int, Value]) -> None:
        import numpy as np

        self._numbers = program.fill(np.zeros(program.size))
        self._numbers[program.inputs[: len(inputs)]] = inputs
        self._values = values

    def at(self, place: int) -> Value:
        """The Value at a place of the buffer; a constant where no kernel has written."""
        if place not in self._values:
            self._values[place] = Value(float(self._numbers[place]), requires_grad=False)
        return self._values[place]

    def add(self, kernel: Any) -> None:
        """Run a kernel."""
        targets = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel().tolist()
        self._values.update(zip(targets, self._results(kernel), strict=True))

    def _results(self, kernel: Any) -> list[Value]:
        from micrograd.compiler.program import Reduction, Take

        if isinstance(kernel, Reduction):
            parts = [self._terms(kernel, part) for part in kernel.segments]
            rows = [[term for part in row for term in part] for row in zip(*parts, strict=True)]
            return [maximum(*terms) if kernel.largest else reduce(add, terms) for terms in rows]
        if isinstance(kernel, Take):
            indices = self._read(kernel.index, kernel, 1)
            rows = self._read(kernel.elements, kernel, kernel.terms)
            return [row[int(index.data)] for (index,), row in zip(indices, rows, strict=True)]
        columns = [self._read(access, kernel, 1) for access in kernel.operands]
        return [kernel.primitive(*(operand for (operand,) in operands)) for operands in zip(*columns, strict=True)]

    def _terms(self, kernel: Reduction, part: Segment) -> list[list[Value]]:
        """For each result of a reduction, the terms of a segment."""
        rows = self._read(part.first, kernel, part.terms)
        if part.second is not None:
            seconds = self._read(part.second, kernel, part.terms)
            rows = [[x * y for x, y in zip(*pair, strict=True)] for pair in zip(rows, seconds, strict=True)]
        return rows if part.coefficient == 1 else [[float(part.coefficient) * x for x in row] for row in rows]

    def _read(self, access: Access, kernel: Any, terms: int) -> list[list[Value]]:
        """What is at an index map: a row of terms for each result."""
        places = access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms).tolist()
        return [[self.at(place) for place in row] for row in places]


def _needed(program: Program) -> list[tuple[int, Kernel]]:
    """The kernels that the output is made of, in the order in which they run, each after its turn of a loop, or 0."""
    import numpy as np

    from micrograd.compiler.program import Loop

    turns: list[tuple[int, Kernel]] = []
    for kernel in program.kernels:
        if isinstance(kernel, Loop):
            count = len(kernel.kernels)
            turns += [(index // count + 1, each) for index, each in enumerate(kernel.unrolled())]
        else:
            turns.append((0, kernel))
    is_needed = np.zeros(program.size, dtype=bool)
    is_needed[program.outputs] = True
    found: list[tuple[int, Kernel]] = []
    for turn, kernel in reversed(turns):
        target = kernel.target.positions(kernel.rows, kernel.columns, 1)
        if is_needed[target].any():
            is_needed[target] = False
            for positions in _read(kernel):
                is_needed[positions] = True
            found.append((turn, kernel))
    return found[::-1]


def _read(kernel: Kernel) -> list[Integers]:
    """The places of all that a kernel reads."""
    from micrograd.compiler.program import Reduction, Take

    if isinstance(kernel, Reduction):
        return [
            access.positions(kernel.rows, kernel.columns, part.terms)
            for part in kernel.segments
            for access in part.factors
        ]
    if isinstance(kernel, Take):
        return [
            kernel.index.positions(kernel.rows, kernel.columns, 1),
            kernel.elements.positions(kernel.rows, kernel.columns, kernel.terms),
        ]
    return [access.positions(kernel.rows, kernel.columns, 1) for access in kernel.operands]
