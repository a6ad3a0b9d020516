"""Columns: the operations of a trace as arrays, primitive by primitive.

For ``x * y + x * x`` the tape says what stands on the left, and the columns are

    0  input        x                places   operands
    1  input        y
    2  mul   0 1             mul     2, 3     0, 0  and  1, 0
    3  mul   0 0             add     4        2     and  3
    4  add   2 3

A tape keeps each operation as a tuple, which takes some 200 bytes; in columns it is 24. So a trace becomes columns as
soon as it is written, and the tape is forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.numbers import no_integers
from micrograd.compiler.trace import INPUT, LITERAL

if TYPE_CHECKING:
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.trace import Trace
    from micrograd.engine.primitive import Primitive


class Column(NamedTuple):
    """All operations of one primitive.

    Attributes:
        primitive: what they apply.
        places: where they stand on the tape.
        operands: for each operand, the places of those of all operations.
    """

    primitive: Primitive
    places: Integers
    operands: tuple[Integers, ...]


class Columns(NamedTuple):
    """A trace whose operations are columns.

    Attributes:
        trace: all else that it says; it has no operations.
        size: how many operations there are, with inputs and literals.
        literals: the places of plain numbers.
        numbers: what these numbers are.
        operations: the others, but for inputs.
    """

    trace: Trace
    size: int
    literals: Integers
    numbers: Floats
    operations: tuple[Column, ...]


def in_columns(trace: Trace) -> Columns:
    """The columns of a trace."""
    keys = trace.operations
    codes: defaultdict[Primitive, int] = defaultdict(count().__next__)
    code_of = np.fromiter(map(codes.__getitem__, map(itemgetter(0), keys)), np.int64, len(keys))
    places = {primitive: np.flatnonzero(code_of == code) for primitive, code in codes.items()}
    places.pop(INPUT, None)
    literals = places.pop(LITERAL, no_integers())
    numbers = np.array([keys[place][1] for place in literals.tolist()], dtype=np.float64)
    operations = []
    for primitive, of_primitive in places.items():
        chosen = [keys[place] for place in of_primitive.tolist()]
        operands = [
            np.fromiter(map(itemgetter(number), chosen), np.int64, len(chosen)) for number in range(1, len(chosen[0]))
        ]
        operations.append(Column(primitive, of_primitive, tuple(operands)))
    return Columns(trace._replace(operations=()), len(keys), literals, numbers, tuple(operations))
