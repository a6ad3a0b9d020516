"""The last call of a compiled function as a Value, for a page that opens it: all that it read is a Value of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.calling.call import CallOfSeveral, OneOfSeveral, node_of_call
from micrograd.compiler.ir.program import Map, Singles
from micrograd.engine.primitives import detach
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.calling.specialise import Compiled, Specialised
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats, Integers


MOST_INPUTS = 100_000  # numbers of a call that are kept until the next one; a page holds no more


def last_call_of(
    special: Specialised, compiled: Compiled, inputs: Sequence[float] | Floats
) -> tuple[Value, dict[str, Any]]:
    """The results of a run of a program, on Values.

    Args:
        special: the programs for these arguments.
        compiled: the one of them that has run.
        inputs: its numbers.

    Returns:
        The result, or the sum of the results; and by name, arrays of the Values of the arguments with a shape.
    """
    given: Floats = np.asarray(inputs)
    numbers, _ = compiled.run(given)
    arguments, operands = {}, [*special.values]
    for name, shape in special.shapes:
        read = given[len(operands) : len(operands) + math.prod(shape)]
        leaves = [Value(number, label=name * (not shape)) for number in read.tolist()]
        operands += leaves
        if shape:
            arguments[name] = np.array(leaves, dtype=object).reshape(shape)
    program = replace(compiled.program, outputs=_attached(compiled.program))
    origin = compiled.origin._replace(wanted=slice(len(operands)), program=program)
    call = node_of_call(CallOfSeveral, origin, inputs, _not_opened, (list,), 0.0, tuple(operands))
    outputs = enumerate(numbers[: len(program.outputs) - program.answers].tolist())
    first, *others = (OneOfSeveral(special.name, position).node(number, call) for position, number in outputs)
    return sum(others, first), arguments


def _attached(program: Program) -> Integers:
    """The positions of the outputs; of derivatives, which are plain numbers, those of what is detached in the end."""
    origins = np.arange(program.size)
    kernels = chain.from_iterable(each.unrolled() if isinstance(each, Singles) else [each] for each in program.kernels)
    for kernel in kernels:
        if isinstance(kernel, Map) and kernel.primitive is detach:
            positions = [each.positions(kernel.rows, kernel.columns, 1) for each in (kernel.target, *kernel.operands)]
            origins[positions[0]] = positions[1]
    return origins[program.outputs]


def _not_opened(seeds: Any) -> Any:
    raise ValueError("the kernels of this call cannot be shown")
