"""The last call of a compiled function as a Value, for a page that opens it: all that it read is a Value of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd.compiler.calling.call import CallOfSeveral, OneOfSeveral
from micrograd.compiler.guards.structure import Structure, is_leaf
from micrograd.compiler.ir.program import Map, Singles
from micrograd.engine.primitives import detach
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.calling.specialise import Compiled, Specialised
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats, Integers


MOST_INPUTS = 100_000  # numbers of a call that are kept until the next one; a page holds no more


def last_call_of(
    special: Specialised, compiled: Compiled, inputs: Floats, numbers: Floats
) -> tuple[Value, dict[str, Any]]:
    """The results of a run of a program, on Values.

    Args:
        special: the programs for these arguments.
        compiled: the one of them that has run.
        inputs: its numbers.
        numbers: the results.

    Returns:
        The result, or the sum of the results; and by name, arrays of the Values of the arguments with a shape.
    """
    arguments, operands = {}, [*special.values]
    for name, shape in special.shapes:
        read = inputs[len(operands) : len(operands) + math.prod(shape)]
        leaves = [Value(number, label=name * (not shape)) for number in read.tolist()]
        operands += leaves
        if shape:
            arguments[name] = np.array(leaves, dtype=object).reshape(shape)
    program = replace(compiled.program, outputs=_attached(compiled.program))
    origin = compiled.origin._replace(wanted=slice(len(operands)), program=program)
    call = CallOfSeveral(origin, inputs, _not_opened, list).node(0.0, tuple(operands))
    given = enumerate(numbers[: len(program.outputs) - program.answers].tolist())
    first, *others = (OneOfSeveral(special.name, place).node(number, call) for place, number in given)
    return sum(others, first), arguments


def _attached(program: Program) -> Integers:
    """The places of the outputs; of derivatives, which are plain numbers, those of what is detached in the end."""
    origins = np.arange(program.size)
    kernels = chain.from_iterable(each.unrolled() if isinstance(each, Singles) else [each] for each in program.kernels)
    for kernel in kernels:
        if isinstance(kernel, Map) and kernel.primitive is detach:
            places = [each.positions(kernel.rows, kernel.columns, 1) for each in (kernel.target, *kernel.operands)]
            origins[places[0]] = places[1]
    return origins[program.outputs]


def _not_opened(seeds: Any) -> Any:
    raise ValueError("the kernels of this call cannot be shown")


def shapes_of(function: Callable[..., Any], arguments: Structure) -> list[tuple[str, tuple[int, ...]]]:
    """What the arguments of a call with numbers in them are called, and their shapes, in the order of the numbers."""
    positional, named = arguments.nested
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C
        parameters = []
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    names += [f"argument {place}" for place in range(len(names) + 1, len(positional) + 1)]
    given = [*zip(names, positional, strict=False), *named.items()]
    found = [(name, _shape(argument)) for name, argument in given]
    return [(name, shape) for name, shape in found if 0 not in shape]


def _shape(item: Any) -> tuple[int, ...]:
    """The shape of nested numbers; where their rows are of several lengths, how many there are."""
    if is_array(item):
        return tuple(item.shape)
    if isinstance(item, (list, tuple)) and item:
        shapes = {()} if _NUMBERS.issuperset(map(type, item)) else {_shape(part) for part in item}
        if len(shapes) == 1:
            return (len(item), *shapes.pop())
    return () if is_leaf(item) else (len(Structure(item).leaves),)


_NUMBERS = {float, int, Value}
