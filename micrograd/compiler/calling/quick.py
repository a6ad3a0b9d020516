"""Quick: a call with plain numbers and Values, and lists of them, that gives one number, without what other calls need.

What there is to look up for such a call is looked up once, at the call before: where the inputs and the result are in
the buffer of the program. So the floats go there, and the result comes from there, in half the time. Where the function
decides on numbers, its paths run one after the other, until one has the answers that it was traced for.

A loss of arrays and lists, whose parameters are stored in an array, has a way of its own: it looks at each array and
each list as a whole.
"""

from __future__ import annotations

from array import array
from functools import partial
from math import isfinite
from operator import attrgetter, countOf
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.deciding import RunOfRegion
from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.calling.call import Call, node_of_call
from micrograd.compiler.calling.last_call import MOST_INPUTS
from micrograd.compiler.calling.mapped import RunOfMaps
from micrograd.compiler.calling.nested_lists import NestedLists
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import all_finite, part_of
from micrograd.engine.primitive import CONSTANT
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from micrograd.compiler.backends.shared.executable import Ports
    from micrograd.compiler.calling.paths import Paths
    from micrograd.compiler.calling.specialise import Compiled, Specialised
    from micrograd.compiler.numbers import Floats

    _Form: TypeAlias = "tuple[Any, int | None]"

EAGER: Any = object()  # what a call gives that is to run as the function is written
_SCALARS = {float, Value}
_FROM_PORTS = (Executable.__call__, RunOfRegion.__call__)  # what needs nothing but the ports of a run
_MOST = 64  # numbers and Values: of more, it is quicker to look at each list at once
_number_of = attrgetter("_data")


class _QuickCalls:
    """Calls whose arguments have the form of those of the call before.

    Args:
        owner: what is kept for such arguments.
        special: that, or another path of it: the programs for some answers to what the function asks.
        compiled: the program that runs.
        as_written: runs the function as it is written; see CompiledFunction.
        lock: of the function.

    Attributes:
        owner: as given.
        last_call: the programs, the one of them, and the inputs of the last call, if it was one of these.
        lock: what a call holds meanwhile, if it shares something with other calls.
    """

    last_call: tuple[Specialised, Compiled, Sequence[float] | Floats] | None = None
    takes_stored = False  # whether Values may be behind what is stored for them

    def __init__(
        self,
        owner: Specialised,
        special: Specialised,
        compiled: Compiled,
        as_written: Callable[..., list[Any]],
        lock: Any,
    ) -> None:
        self.owner, self._special, self._compiled, self.lock = owner, special, compiled, lock
        self._as_written = partial(as_written, special)

    def end(self, result: Any) -> Any:
        """Take note that a call has ended that ran eagerly, and give its result."""
        if (paths := self._special.paths) is not None:
            paths.end(result)
        return result

    def _written(self, arguments: tuple[Any, ...], outputs: Any) -> list[Any]:
        return self._as_written(Structure.of_call(arguments, {}), np.atleast_1d(outputs))


class Quick(_QuickCalls):
    """Runs a program whose arguments are floats, Values and lists of them, and whose result is one number or Value.

    Args:
        forms: of each argument the class; with its length, of a list or a tuple.
        kinds: the classes of the numbers and Values.
        *common: as of all quick calls.
    """

    def __init__(self, forms: list[_Form], kinds: list[type], *common: Any) -> None:
        super().__init__(*common)
        self._kinds, special = kinds, self._special
        self._forms = forms if any(length is not None for _, length in forms) else None
        self._values_at = [position for position, kind in enumerate(kinds) if kind is Value]
        self._values = special.values
        run: Any = self._compiled.run
        ports = run.ports()
        ran: tuple[Callable[..., Any], Floats] = ports.direct or _running(ports)
        self._run, self._found = ran
        self._looks_at_kinds = ports.direct is None or bool(self._values_at)
        if ports.direct is not None and special.paths is None:
            self.lock = None
        self._answers = part_of(ports.outputs[1][1:])
        self._origin = self._compiled.origin._replace(add=ports.add)

    @classmethod
    def of(cls, given: Structure, *common: Any) -> Quick | None:
        """The same; None where arguments or results are others, or the program has no arrays of its own."""
        (arguments, named), (_, special, compiled, *_) = given.nested, common
        forms: list[_Form] = [(type(each), len(each) if type(each) in (list, tuple) else None) for each in arguments]
        numbers = _flat(arguments, forms)
        kinds = [*map(type, numbers or ())]
        is_quick = (
            not named
            and 0 < len(kinds) <= _MOST
            and _SCALARS.issuperset(kinds)
            and special.is_of_few_numbers
            and type(compiled.run).__call__ in _FROM_PORTS
            and _operands(numbers, [position for position, kind in enumerate(kinds) if kind is Value]) is not None
        )
        return cls(forms, kinds, *common) if is_quick else None

    def call(self, arguments: tuple[Any, ...]) -> Any:
        """What the function gives for arguments.

        EAGER where it is to run as it is written; None where these are others, or it is to be called as usual.
        """
        numbers: Any = arguments if self._forms is None else _flat(arguments, self._forms)
        operands: Sequence[Any] = ()
        if numbers is None:
            return None
        if self._looks_at_kinds and [*map(type, numbers)] != self._kinds:
            return None
        if self._values_at:
            if (given := _operands(numbers, self._values_at)) is None:
                return None
            operands = given
            numbers = [*map(_number_of, numbers)] if len(operands) == len(numbers) else _numbers_of(numbers)
        special = self._special
        if special.paths is not None:
            return self._on_paths(special.paths, arguments, operands, numbers)
        if special.is_outdated():
            return None
        inputs = self._inputs(numbers)
        return self._result(self._run(*inputs), arguments, operands, inputs)

    def _on_paths(self, paths: Paths, arguments: tuple[Any, ...], operands: Sequence[Any], numbers: Any) -> Any:
        """The same, where the function decides on numbers."""
        if not paths.are_worth_a_run():
            return EAGER
        path: Any = paths.last
        for _ in range(len(paths)):
            quick: Quick | None = path.quick
            if quick is None or path.is_outdated():
                break
            inputs = quick._inputs(numbers)
            if (found := quick._run(*inputs)) is None:
                break
            answers = quick._found[quick._answers].tobytes()
            if answers == path.answers:
                paths.use(path)
                result = quick._result(found, arguments, operands, inputs)
                self.last_call = quick.last_call
                if result is not EAGER:
                    paths.end()
                return result
            path = paths.after(path, answers)
            if path is False or (path is True and paths.is_closed()):
                return EAGER
            if path is True:
                break
        return None

    def _inputs(self, numbers: Any) -> Sequence[float]:
        """The numbers of all inputs of the program."""
        return (*map(_number_of, self._values), *numbers) if self._values else numbers

    def _result(self, found: Any, arguments: tuple[Any, ...], operands: Sequence[Any], inputs: Sequence[float]) -> Any:
        """What there is after a run, which found None where an input is no float, and False where a number is infinite.

        Else it found the number, and a tuple of the gradients.
        """
        if found is None:
            return None
        special = self._special
        self.owner.retraced = 0  # nothing was replaced
        self.last_call = special, self._compiled, inputs
        if found is False:
            return EAGER
        number, gradients = found
        if not special.results.has_values:
            return number
        trained, written = special.trained, (self._written, arguments, number)
        operands = (*trained, *operands) if operands else trained
        return node_of_call(Call, self._origin, inputs, gradients, written, number, operands)


class QuickOfArrays(_QuickCalls):
    """Runs a program of arrays, floats, and lists of floats and ints, whose result is one Value, or plain numbers.

    Args:
        forms: of each argument the class; with the shape of an array, of a list its length and what is in it, and of
            nested lists what reads them.
        *common: as of all quick calls.
    """

    def __init__(self, forms: list[tuple[Any, ...]], *common: Any) -> None:
        super().__init__(*common)
        self._forms = forms
        self.takes_stored = self._special.stored is not None or not self._special.values

    @classmethod
    def of(cls, given: Structure, *common: Any) -> QuickOfArrays | None:
        """The same; None where arguments or results are others."""
        (arguments, named), (_, special, compiled, *_) = given.nested, common
        is_quick = (
            not named
            and 0 < len(arguments) <= _MOST
            and (special.gives_one_number or special.gives_numbers)
            and type(compiled.run).__call__ in (Executable.__call__, RunOfMaps.__call__)
        )
        forms = [form for form in map(_form_of, arguments) if form is not None] if is_quick else []
        return cls(forms, *common) if is_quick and len(forms) == len(arguments) else None

    def call(self, arguments: tuple[Any, ...]) -> Any:
        """What the function gives for arguments; see Quick."""
        special, compiled = self._special, self._compiled
        if len(arguments) != len(self._forms) or (special.paths is not None and not special.paths.begin_with(special)):
            return None
        parts: list[Any] = [special.stored.data() if special.stored is not None else [*map(_number_of, special.values)]]
        for argument, form in zip(arguments, self._forms, strict=True):
            if (part := _numbers_in(argument, form)) is None:
                return None
            parts.append(part)
        if special.is_outdated():
            return None
        inputs = np.concatenate(parts, dtype=np.float64)
        outputs, gradients = compiled.run(inputs)
        if special.paths is not None:
            count = len(special.results.kinds)
            if outputs[count:].tobytes() != special.answers:
                return None
            outputs = outputs[:count]
            special.paths.use(special)
        self.owner.retraced = 0  # nothing was replaced
        self.last_call = (special, compiled, inputs) if len(inputs) <= MOST_INPUTS else None
        if not (all_finite(outputs) and all_finite(gradients)):
            return EAGER
        if not special.results.has_values:
            return special.results.of(outputs, ())
        written = self._written, arguments, outputs
        return node_of_call(Call, compiled.origin, inputs, gradients, written, outputs.item(), special.trained)


def _running(ports: Ports) -> tuple[Callable[..., Any], Floats]:
    """What puts floats, its arguments, where the inputs are, and runs the program; and the array of outputs."""
    run, (array, inputs), (found, (output, *_)), (slopes, part) = (
        ports.run,
        ports.inputs,
        ports.outputs,
        ports.gradients,
    )
    failed = ports.failed

    def direct(*numbers: float) -> Any:
        array[inputs] = numbers
        run()
        number, gradients = found[output].item(), tuple(slopes[part].tolist())
        if failed.item() or not (isfinite(number) and all(map(isfinite, gradients))):
            return False
        return number, gradients

    return direct, found


def _form_of(argument: Any) -> tuple[Any, ...] | None:
    """What ``_numbers_in`` compares an argument with; None where it does not know it."""
    kind = type(argument)
    if kind is np.ndarray:
        form: tuple[Any, ...] = (kind, argument.shape, None)
    elif (kind is list or kind is tuple) and argument and type(argument[0]) in (list, tuple):
        form = kind, NestedLists.of(argument), None
    elif kind is list or kind is tuple:
        form = kind, len(argument), type(argument[0]) if argument else None
    else:
        form = kind, None, None
    return None if _numbers_in(argument, form) is None else form


def _numbers_in(argument: Any, form: tuple[Any, ...]) -> Any:
    """The numbers of an argument; None where it has another form, or one that other calls must look at."""
    kind, shape, element = form
    if type(argument) is not kind:
        return None
    if kind is np.ndarray:
        as_before = argument.shape == shape and argument.dtype.char == "d" and argument.flags.c_contiguous
        return argument.ravel() if as_before else None
    if kind is float:
        return (argument,)
    if isinstance(shape, NestedLists):
        return shape.numbers(argument)
    if shape is None or len(argument) != shape or countOf(map(type, argument), element) != shape:
        return None
    if element is float:
        return array("d", argument)
    try:
        return array("i", argument) if element is int else None
    except OverflowError:  # it may be one that is no float
        return None


def _flat(arguments: tuple[Any, ...], forms: list[_Form]) -> list[Any] | None:
    """The numbers and Values in the arguments; None where these have other forms."""
    if len(arguments) != len(forms):
        return None
    flat: list[Any] = []
    for argument, (kind, length) in zip(arguments, forms, strict=True):
        if type(argument) is not kind:
            return None
        if length is None:
            flat.append(argument)
        elif len(argument) == length:
            flat += argument
        else:
            return None
    return flat


def _operands(arguments: Any, positions: list[int]) -> list[Any] | None:
    """The Values among the arguments; None where one has something of its own, or is there twice."""
    operands = [arguments[position] for position in positions]
    for operand in operands:
        if operand._primitive is CONSTANT or operand.__dict__:
            return None
    return operands if len(operands) == 1 or len(set(operands)) == len(operands) else None


def _numbers_of(arguments: Any) -> list[float]:
    return [each._data if type(each) is Value else each for each in arguments]
