"""Quick: a call with plain floats that gives one number, without what other calls need.

What there is to look up for such a call is looked up once, at the call before: where the inputs and the result are in
the buffer of the program. So the floats go there, and the result comes from there, in half the time.
"""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.calling.call import Call
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import all_finite, part_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.calling.specialise import Compiled, Specialised
    from micrograd.compiler.numbers import Floats

_ONLY_FLOATS = {float}
_number_of = attrgetter("_data")


class Quick:
    """Runs a program whose arguments are plain floats, and whose result is one number or one Value.

    Args:
        special: the programs for such arguments.
        compiled: the one that runs.
        count: how many arguments there are.
        as_written: runs the function as it is written; see CompiledFunction.

    Attributes:
        special: the same.
    """

    def __init__(
        self, special: Specialised, compiled: Compiled, count: int, as_written: Callable[..., list[Any]]
    ) -> None:
        run: Any = compiled.run
        program = compiled.program
        self._compiled = compiled
        self._last: Floats | None = None  # the inputs of the last call
        self.special, self._count, self._origin = special, count, compiled.origin
        self._buffer, self._run = run.buffer, run.run
        self._inputs, self._output = part_of(program.inputs), int(program.outputs[0])
        self._gradients = program.gradients
        self._as_written = partial(as_written, special)

    @classmethod
    def of(
        cls, special: Specialised, compiled: Compiled, given: Structure, as_written: Callable[..., list[Any]]
    ) -> Quick | None:
        """The same; None where arguments or results are others, or the program has no buffer of its own."""
        arguments, named = given.nested
        is_quick = (
            not named
            and set(map(type, arguments)) == _ONLY_FLOATS
            and special.is_of_few_numbers
            and type(compiled.run).__call__ is Executable.__call__
        )
        return cls(special, compiled, len(arguments), as_written) if is_quick else None

    @property
    def last_call(self) -> tuple[Specialised, Compiled, Floats] | None:
        """What the last call ran, if it was one of these: the programs, the one of them, and its inputs."""
        return None if self._last is None else (self.special, self._compiled, self._last)

    def forget_last_call(self) -> None:
        """A call of another kind came after it."""
        self._last = None

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        """What the function gives for arguments; None where these are others, or it is to be called as usual."""
        special = self.special
        if len(arguments) != self._count or set(map(type, arguments)) != _ONLY_FLOATS or special.is_outdated():
            return None
        special.retraced = 0  # nothing was replaced
        buffer, values = self._buffer, special.values
        inputs: Any = [*map(_number_of, values), *arguments] if values else arguments
        buffer[self._inputs] = inputs = np.array(inputs)
        self._run()
        number = buffer.item(self._output)
        self._last = inputs
        if not special.results.has_values:
            return number if math.isfinite(number) else None
        gradients = buffer[self._gradients].copy()
        if not (math.isfinite(number) and all_finite(gradients)):
            return None
        written = partial(self._written, arguments, number)
        return Call(self._origin, inputs, gradients, written).node(number, special.trained)

    def _written(self, arguments: tuple[Any, ...], number: float) -> list[Any]:
        return self._as_written(Structure.of_call(arguments, {}), np.array([number]))
