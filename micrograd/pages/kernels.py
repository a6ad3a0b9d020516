"""Compiled functions, opened: a result of one is a single Value, and its program says how it came to be.

The kernels of the program run once more, on Values, each in a block of its own. So a page shows

    compiled f  >  1: matrix-vector, 2: tanh, 3: mean   >   the scalars

For as long as the page is made, the results of the call are the last of these Values; then they are what they were.
"""

from __future__ import annotations

import ast
import math
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.contexts.calls import tick
from micrograd.contexts.scope import block_on_top, record_scopes, scope
from micrograd.draw.array_steps import BlockOf, made_as, with_numbers
from micrograd.draw.folding.parameters import places_of_arrays
from micrograd.engine.node import NUMBER
from micrograd.engine.order import computed_from, topological_order
from micrograd.engine.primitives import identity, where
from micrograd.engine.value import Value
from micrograd.pages.passes import Opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from micrograd.compiler.ir.program import Kernel, Program
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.tracing.questions import Question
    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.primitive import Primitive
    from micrograd.pages.passes import Element

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
    asked: dict[Value, Question] = {}
    order = topological_order(root)
    room = most - len(order)
    for call, results in _calls(order):
        places = _places(call) | places
        if (found := _made_by_kernels(call, results, room)) is not None:
            room -= found.size
            made |= found.made
            elements |= found.elements
            asked |= found.asked
    with made_as(made):
        yield Opened(elements, places, asked)


def _calls(order: list[Value]) -> list[tuple[Any, dict[int, Value]]]:
    """The calls of compiled functions among Values, each with those of its results that are used, by their numbers."""
    found: dict[Any, dict[int, Value]] = {}
    for node in order:
        primitive: Any = node._primitive
        if hasattr(primitive, "origin"):
            found[node] = {} if hasattr(primitive, "results") else {0: node}
        elif hasattr(primitive, "part") and node._first in found:  # and no result of a solver, say
            found[node._first][primitive.part] = node
    return [(call, results) for call, results in found.items() if results]


def _places(call: Any) -> dict[Value, Place]:
    """What the parameters that a call has read from outside are called."""
    from micrograd.compiler.guards.parameter_names import values_by_name

    read = {operand for operand in call._x if operand.is_leaf}
    arrays = values_by_name(call._primitive.origin.function, [*read])
    arrays.pop("others", None)
    return {value: place for value, place in places_of_arrays(arrays).items() if value in read}


class _Made(NamedTuple):
    """What kernels make.

    Attributes:
        made: the Values in the place of the results of a call.
        elements: of each that a kernel made, where it is.
        asked: those that decided between two paths.
        size: about how many Values there are in all.
    """

    made: dict[Value, Value]
    elements: dict[Value, Element]
    asked: dict[Value, Question]
    size: int


class _Shown(NamedTuple):
    """What is shown of a call.

    Attributes:
        program: that computes its results.
        inputs: the numbers that it is given.
        operands: the Values of the graph among these, by their places in the buffer.
        questions: to which its last outputs are the answers.
    """

    program: Program
    inputs: Floats
    operands: dict[int, Value]
    questions: Sequence[Question]


def _shown(call: Any) -> _Shown | None:
    """The program of a call; if that decides by itself, the one of the path that was taken."""
    origin, inputs, operands = call._primitive.origin, call._primitive.inputs, list(call._x)
    if not origin.is_whole:
        return None
    if origin.path is None:
        given = dict(zip(origin.program.inputs[origin.wanted].tolist(), operands, strict=True))
        return _Shown(origin.program, inputs, given, origin.questions)
    import numpy as np

    path_of: Any = origin.path()  # it is there as long as the call knows how to run the function as it is written

    def followed() -> Any:
        path = path_of(inputs)
        return path, [value.data for value in path.values]

    try:
        path, read = with_numbers(operands, [float(number) for number in call._y], followed)
    except (ArithmeticError, ValueError, TypeError):  # what it reads from outside has changed
        return None
    program, outside, known = path.program(False), len(path.values), set(operands)
    of_inputs = dict(zip(range(len(inputs))[origin.wanted], operands, strict=True))
    arguments, first = program.inputs[outside:].tolist(), len(inputs) - (len(program.inputs) - outside)
    numbers = [*read, *inputs[first:].tolist()]
    given = {place: value for place, value in zip(program.inputs.tolist(), path.values, strict=False) if value in known}
    given |= {place: of_inputs[first + n] for n, place in enumerate(arguments) if first + n in of_inputs}
    return _Shown(program, np.array(numbers), given, path.questions)


def _made_by_kernels(call: Any, results: dict[int, Value], room: int) -> _Made | None:
    """What kernels make in place of the results of a call.

    None where there is no room for so many, or where it cannot be told.
    """
    from micrograd.pages.kernel_values import KernelValues

    if (shown := _shown(call)) is None:
        return None
    program, answers = shown.program, len(shown.questions)
    outputs, asked = program.outputs[[*results]], program.outputs[len(program.outputs) - answers :].tolist()
    kernels = _needed(program, outputs, asked)
    terms = sum(kernel.rows * kernel.columns * kernel.terms for _, kernel, _, _ in kernels)
    is_large = terms > MOST_TERMS or 3 * terms > room  # a product, a sum and a constant for each
    count = sum(2 * kernel.rows * kernel.columns + 1 for _, kernel, _, _ in kernels) if is_large else 3 * terms
    if not kernels or terms > MOST_OF_ALL or count > room:
        return None
    values = KernelValues(program, shown.inputs, shown.operands, is_large)
    for place, result in zip(outputs.tolist(), results.values(), strict=True):
        values.results.setdefault(place, []).append(result)

    def make() -> Any:
        with record_scopes(), scope(f"compiled {call._primitive.name}"):
            block: Any = block_on_top()
            for iteration, together in groupby(kernels, key=lambda found: found[0]):
                with scope("iteration") if iteration else nullcontext():
                    number = 0
                    for _, kernel, last, is_of_results in together:
                        number += is_of_results
                        with scope(f"{number}: {kernel.kind}"):
                            values.add(kernel, last)
            values.add_the_rest()
        block.below = next(iter(results.values()))._scope  # the function was called in this one
        return block

    try:
        block = with_numbers(list(call._x), [float(number) for number in call._y], make)
    except (ArithmeticError, ValueError):  # what the compiled program computes in another way
        return None
    is_other = any(not math.isclose(new.data, old.data, rel_tol=1e-6, abs_tol=1e-9) for old, new in values.made.items())
    if is_other or not (values.is_new or asked):  # what the function reads has changed, and it took another path
        return None
    known, copies = computed_from(values.made.values(), set(shown.operands.values())), dict[Any, Value]()
    found: dict[Value, Question] = {}
    for place, question in zip(asked, shown.questions, strict=True):
        value = _remembering(values.at(place), values.made_of, copies)
        if value in known or value.is_leaf:
            value = _node(identity, [value], value.data)  # a number of the path itself
        asking = BlockOf(_condition(question), tick(), block, "question")
        new = computed_from([value], known)
        for node in new:
            node._scope = asking
            values.elements.pop(node, None)
        known |= new
        found[value] = question
    return _Made(values.made, values.elements, found, count)


def _condition(question: Question) -> str:
    """What was asked, in words of the program: of ``mg.cond(x > 0, f, g)``, it is the first argument."""
    try:
        expression = ast.parse(question.condition, mode="eval").body
    except SyntaxError:  # there is no source, or it is no expression
        return question.text
    if isinstance(expression, ast.IfExp):
        return ast.unparse(expression.test)
    if isinstance(expression, ast.Call) and ast.unparse(expression.func).rpartition(".")[2] in _DECIDES:
        first = expression.args[0]
        return ast.unparse(first.body if isinstance(first, ast.Lambda) else first)
    return question.condition


_DECIDES = ("cond", "switch", "while_loop")
_ASKED = 0.5  # what a program answers where rounding might decide


def _remembering(
    value: Value, made_of: Mapping[Value, tuple[Primitive, list[Value]]], copies: dict[Any, Value]
) -> Value:
    """An answer as Python has it, with what it was made of, as far as no gradient flows there.

    Args:
        value: the answer of a program, which chooses another number where rounding might decide.
        made_of: what such numbers are made of, in the order in which they were.
        copies: those that are there already; new ones are added.
    """
    while value in made_of and made_of[value][0] is where and made_of[value][1][1].data == _ASKED:
        value = made_of[value][1][2]
    needed: set[Value] = set()
    waiting = [value]
    while waiting:
        if (this := waiting.pop()) in made_of and this not in copies and this not in needed:
            needed.add(this)
            waiting += made_of[this][1]
    for this in filter(needed.__contains__, made_of):
        primitive, operands = made_of[this]
        copies[this] = _node(primitive, [copies.get(operand, operand) for operand in operands], this.data)
    return copies.get(value, value)


def _node(primitive: Primitive, operands: list[Value], data: float) -> Value:
    """A result that remembers its operands."""
    node: Any = Value(data)
    node._primitive, numbers = primitive, [operand.data for operand in operands]
    if primitive.variadic:
        node._x, node._y = tuple(operands), tuple(numbers)
    else:
        node._first, node._x = operands[0], numbers[0]
        node._second, node._y = (operands[1], numbers[1]) if len(operands) == 2 else (NUMBER, ())
    return node


def _needed(program: Program, outputs: Integers, asked: Sequence[int]) -> list[tuple[int, Kernel, list[int], bool]]:
    """The kernels that these outputs and answers are made of, in the order in which they run.

    Each comes after its iteration of a loop, or 0, and before those of the outputs that are complete when it has run,
    and whether outputs are made of it, and not answers only.
    """
    import numpy as np

    from micrograd.compiler.ir.program import Loop, unrolled

    iterations: list[tuple[int, Kernel]] = []
    for part in program.kernels:
        count = len(part.kernels) if isinstance(part, Loop) else 0
        iterations += [(index // count + 1 if count else 0, each) for index, each in enumerate(unrolled(part))]
    is_needed, is_of_results = np.zeros(program.size, dtype=bool), np.zeros(program.size, dtype=bool)
    is_needed[outputs] = is_of_results[outputs] = True
    is_open = is_needed.copy()
    is_needed[asked] = True
    found: list[tuple[int, Kernel, list[int], bool]] = []
    for iteration, kernel in reversed(iterations):
        target = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
        if is_needed[target].any():
            last, of_results = target[is_open[target]].tolist(), bool(is_of_results[target].any())
            is_needed[target] = is_of_results[target] = is_open[target] = False
            if kernel.rows * kernel.columns * kernel.terms <= MOST_OF_ALL:
                for positions in _read(kernel):
                    is_needed[positions] = True
                    is_of_results[positions] |= of_results
            found.append((iteration, kernel, last, of_results))
    return found[::-1]


def _read(kernel: Kernel) -> list[Integers]:
    """The places of all that a kernel reads."""
    return [access.positions(kernel.rows, kernel.columns, terms) for access, terms in kernel.reads]
