"""Quick: a call with plain floats and Values that gives one number, without what other calls need.

What there is to look up for such a call is looked up once, at the call before: where the inputs and the result are in
the buffer of the program. So the floats go there, and the result comes from there, in half the time. Where the function
decides on numbers, its paths run one after the other, until one has the answers that it was traced for.
"""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.deciding import RunOfRegion
from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.calling.call import Call
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import all_finite, part_of
from micrograd.engine.primitive import CONSTANT
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.calling.specialise import Compiled, Specialised
    from micrograd.compiler.numbers import Floats

EAGER: Any = object()  # what a call gives that is to run as the function is written
_SCALARS = {float, Value}
_FROM_PORTS = (Executable.__call__, RunOfRegion.__call__)  # what needs nothing but the ports of a run
_number_of = attrgetter("_data")


class Quick:
    """Runs a program whose arguments are plain floats and Values, and whose result is one number or one Value.

    Args:
        owner: what is kept for such arguments.
        special: that, or another path of it: the programs for some answers to what the function asks.
        compiled: the program that runs.
        kinds: the classes of the arguments.
        as_written: runs the function as it is written; see CompiledFunction.

    Attributes:
        owner: the same.
        last_call: the programs, the one of them, and the inputs of the last call, if it was one of these.
    """

    last_call: tuple[Specialised, Compiled, Floats] | None = None

    def __init__(
        self,
        owner: Specialised,
        special: Specialised,
        compiled: Compiled,
        kinds: tuple[type, ...],
        as_written: Callable[..., list[Any]],
    ) -> None:
        self.owner, self._special, self._compiled, self._kinds = owner, special, compiled, kinds
        self._values_at = [position for position, kind in enumerate(kinds) if kind is Value]
        run: Any = compiled.run
        ports = run.ports()
        self._run, (self._given, self._inputs), self._failed = ports.run, ports.inputs, ports.failed
        self._found, outputs = ports.outputs
        self._output, self._answers = int(outputs[0]), part_of(outputs[1:])
        self._slopes, self._gradients = ports.gradients
        self._as_written = partial(as_written, special)

    @classmethod
    def of(
        cls,
        owner: Specialised,
        special: Specialised,
        compiled: Compiled,
        given: Structure,
        as_written: Callable[..., list[Any]],
    ) -> Quick | None:
        """The same; None where arguments or results are others, or the program has no arrays of its own."""
        arguments, named = given.nested
        kinds = tuple(map(type, arguments))
        is_quick = (
            not named
            and bool(kinds)
            and _SCALARS.issuperset(kinds)
            and special.is_of_few_numbers
            and type(compiled.run).__call__ in _FROM_PORTS
            and _operands(arguments, [position for position, kind in enumerate(kinds) if kind is Value]) is not None
        )
        return cls(owner, special, compiled, kinds, as_written) if is_quick else None

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        """What the function gives for arguments.

        EAGER where it is to run as it is written; None where these are others, or it is to be called as usual.
        """
        if tuple(map(type, arguments)) != self._kinds:
            return None
        operands: list[Any] | None = []
        numbers: Any = arguments
        if self._values_at:
            operands = _operands(arguments, self._values_at)
            if operands is None:
                return None
            numbers = [*map(_number_of, arguments)] if len(operands) == len(arguments) else _numbers_of(arguments)
        special = self._special
        if (paths := special.paths) is None:
            return None if special.is_outdated() else self._result(self, arguments, operands, self._ran(numbers))
        if not paths.are_worth_a_run():
            return EAGER
        path = paths.last
        for _ in range(len(paths)):
            quick: Quick | None = path.quick
            if quick is None or path.is_outdated():
                break
            inputs = quick._ran(numbers)
            answers = quick._found[quick._answers].tobytes()
            if answers == path.answers:
                paths.use(path)
                result = self._result(quick, arguments, operands, inputs)
                if result is not EAGER:
                    paths.end(result)
                return result
            path = paths.after(path, answers)
            if path is False or (path is True and paths.is_closed()):
                return EAGER
            if path is True:
                break
        return None

    def end(self, result: Any) -> Any:
        """Take note of the result of a call that has ended, and give it."""
        if (paths := self._special.paths) is not None:
            paths.end(result)
        return result

    def _ran(self, numbers: Any) -> Floats:
        """The inputs of the program, which has run."""
        values = self._special.values
        inputs = np.array([*map(_number_of, values), *numbers] if values else numbers)
        self._given[self._inputs] = inputs
        self._run()
        return inputs

    def _result(self, ran: Quick, arguments: tuple[Any, ...], operands: Any, inputs: Floats) -> Any:
        """What there is after a run."""
        special, compiled = ran._special, ran._compiled
        self.owner.retraced = 0  # nothing was replaced
        self.last_call = special, compiled, inputs
        number = ran._found.item(ran._output)
        if ran._failed.item() or not math.isfinite(number):
            return EAGER
        if not special.results.has_values:
            return number
        gradients = ran._slopes[ran._gradients].copy()
        if not all_finite(gradients):
            return EAGER
        written = partial(ran._written, arguments, number)
        return Call(compiled.origin, inputs, gradients, written).node(number, (*special.trained, *operands))

    def _written(self, arguments: tuple[Any, ...], number: float) -> list[Any]:
        return self._as_written(Structure.of_call(arguments, {}), np.array([number]))


def _operands(arguments: tuple[Any, ...], positions: list[int]) -> list[Any] | None:
    """The Values among the arguments; None where one has something of its own, or is there twice."""
    operands = [arguments[position] for position in positions]
    for operand in operands:
        if operand._primitive is CONSTANT or operand.__dict__:
            return None
    return operands if len(operands) == 1 or len(set(operands)) == len(operands) else None


def _numbers_of(arguments: tuple[Any, ...]) -> list[float]:
    return [each._data if type(each) is Value else each for each in arguments]
