"""An optimiser's update of arrays in native code: one pass over memory, to the same bits as NumPy's.

The update is called once with Columns, which write down what it does with them. What only depends on numbers that all
parameters share, such as the learning rate, is computed before the loop over the parameters:

    1 - 0.9**count            before the loop
    mean / that               in the loop
"""

from __future__ import annotations

import ctypes
import hashlib
from array import array
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from micrograd._support.checks import Operand
from micrograd.compiler.backends.llvm.llvm_codes import WIDE
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, constant, integer
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_writer import Loops, loaded, stored, summed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UPDATE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_BYTES: Any = ctypes.c_char * 0
_VECTOR = ir.VectorType(DOUBLE, WIDE)
_INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


class _Tape:
    """What an update does.

    Attributes:
        many: for each column whether there is a number for each parameter, and not one for all.
        operations: for each column what makes it: a sign and two columns; None of those that are given.
        constants: the numbers of columns that are plain numbers.
    """

    def __init__(self) -> None:
        self.many: list[bool] = []
        self.operations: list[tuple[str, int, int] | None] = []
        self.constants: dict[int, float] = {}

    def given(self, many: bool) -> Column:
        """A column that the function is given."""
        self.many.append(many)
        self.operations.append(None)
        return Column(self, len(self.many) - 1)

    def made(self, sign: str, *operands: Any) -> Column:
        """The column that an operation makes."""
        x, y = map(self._position, operands)
        self.many.append(self.many[x] or self.many[y])
        self.operations.append((sign, x, y))
        return Column(self, len(self.many) - 1)

    def _position(self, x: Any) -> int:
        if isinstance(x, Column):
            return x.position
        column = self.given(many=False)
        self.constants[column.position] = x
        return column.position


def _operator(sign: str) -> Any:
    return lambda x, y: x.tape.made(sign, x, y)


def _reflected(sign: str) -> Any:
    return lambda y, x: y.tape.made(sign, x, y)


class Column(Operand):
    """What stands for an array, or for a number that all parameters share, while an update is written down."""

    __array_ufunc__ = None  # a number of NumPy leaves its operators to this

    def __init__(self, tape: _Tape, position: int) -> None:
        self.tape, self.position = tape, position

    @staticmethod
    def _apply(primitive: Any, *operands: Any) -> Column:
        """Write a function down: the root is the only one."""
        (x,) = operands
        made: Column = x.tape.made(primitive.name, x, x)
        return made

    __add__, __radd__, __sub__, __rsub__ = _operator("+"), _reflected("+"), _operator("-"), _reflected("-")
    __mul__, __rmul__, __rpow__ = _operator("*"), _reflected("*"), _reflected("**")
    __truediv__, __rtruediv__ = _operator("/"), _reflected("/")


class NativeUpdate:
    """An update in native code.

    Args:
        update: of an optimiser; it may take arrays.
        shared: which numbers of the state are one for all parameters.
    """

    def __init__(self, update: Callable[..., Any], shared: Sequence[bool]) -> None:
        tape = _Tape()
        many = True, True, False, *(not one for one in shared)
        parameter, gradient, rate, *state = map(tape.given, many)
        number, following = update(parameter, gradient, tuple(state), rate)
        self._results = [result.position for result in (number, *following)]
        new = [position for position in self._results if position >= len(many)]
        self._arrays = [position for position in range(len(many)) if many[position]]
        self._made = [position for position in new if tape.many[position]]
        self._shared = [position for position in range(len(many)) if not many[position]]
        self._shared_made = [position for position in new if not tape.many[position]]
        self._constants = [*tape.constants.values(), *[0.0] * len(self._shared_made)]
        positions = (*self._arrays, *self._made), (*self._shared, *tape.constants, *self._shared_made)
        described = repr((tape.operations, tape.many, positions)).encode()
        name = f"micrograd_update_{hashlib.sha256(described).hexdigest()[:32]}"
        addresses, self._engines = machine().addresses({name: lambda: _module(name, tape, *positions)})
        self._call = _UPDATE(addresses[name])

    def __call__(self, data: Any, grad: Any, state: tuple[Any, ...], rate: float) -> tuple[Any, tuple[Any, ...]] | None:
        """The next numbers and the next state, in new arrays; None where one of them is not finite."""
        found: dict[int, Any] = dict(enumerate((data, grad, rate, *state)))
        floats = array("d", [*map(found.__getitem__, self._shared), *self._constants])
        arrays = [np.ascontiguousarray(found[position]) for position in self._arrays]
        for position in self._made:
            found[position] = made = np.empty(len(data))
            arrays.append(made)
        addresses = pack(f"{len(arrays)}q", *[ctypes.addressof(_BYTES.from_buffer(each)) for each in arrays])
        if self._call(addresses, floats.buffer_info()[0], len(data)) != 0.0:
            return None
        found.update(zip(reversed(self._shared_made), reversed(floats), strict=False))
        numbers, *states = [found[position] for position in self._results]
        return numbers, tuple(states)


def _module(name: str, tape: _Tape, arrays: Sequence[int], shared: Sequence[int]) -> ir.Module:
    """The module with the function of an update. It returns 0 if all numbers of arrays that it makes are finite.

    Args:
        name: of the function, which is given the addresses of arrays, where other numbers are, and how long arrays are.
        tape: what it does.
        arrays: which columns are arrays that it is given, and then those that it makes.
        shared: which are numbers that it is given, and then those that it makes.
    """
    module = ir.Module(name=name)
    kind = ir.FunctionType(DOUBLE, [INTEGER.as_pointer(), DOUBLE.as_pointer(), INTEGER])
    code = Loops(ir.Function(module, kind, name))
    builder, (addresses, numbers, length) = code.builder, code.function.args
    roots = {kind: f"llvm.sqrt.{name}" for kind, name in ((DOUBLE, "f64"), (_VECTOR, f"v{WIDE}f64"))}
    sqrt = {kind: ir.Function(module, ir.FunctionType(kind, [kind]), root) for kind, root in roots.items()}
    power = ir.Function(module, ir.FunctionType(DOUBLE, [DOUBLE, DOUBLE]), "pow")

    def made(position: int, operands: dict[int, Any]) -> Any:
        sign, x, y = tape.operations[position]  # type: ignore[misc]
        if sign == "sqrt":
            return builder.call(sqrt[operands[x].type], [operands[x]])
        if sign == "**":
            return builder.call(power, [operands[x], operands[y]])
        return getattr(builder, _INSTRUCTIONS[sign])(operands[x], operands[y])

    computed = [position for position, operation in enumerate(tape.operations) if operation is not None]
    positions = [(position, builder.gep(numbers, [integer(number)])) for number, position in enumerate(shared)]
    ones = {position: builder.load(pointer) for position, pointer in positions if position not in computed}
    for position in computed:
        if not tape.many[position]:
            ones[position] = made(position, ones)
    for position, pointer in positions:
        builder.store(ones[position], pointer)
    pointers = {
        position: builder.inttoptr(builder.load(builder.gep(addresses, [integer(number)])), DOUBLE.as_pointer())
        for number, position in enumerate(arrays)
    }
    everywhere = {position: code.splat(number, WIDE) for position, number in ones.items()}
    last = builder.sub(length, integer(WIDE))
    with code.loop(integer(0), length, WIDE, [constant(_VECTOR, 0.0)]) as (start, (check,)):
        # The last vector ends with the last number: some are computed twice, to the same end.
        index = builder.select(builder.icmp_signed("<", start, last), start, last)
        here = {position: builder.gep(pointer, [index]) for position, pointer in pointers.items()}
        vectors = everywhere | {
            position: loaded(builder, here[position], WIDE) for position in here if position not in computed
        }
        for position in computed:
            if tape.many[position]:
                vectors[position] = made(position, vectors)
        for position in filter(here.__contains__, computed):
            stored(builder, vectors[position], here[position])
            check = builder.fadd(check, builder.fsub(vectors[position], vectors[position]))
        code.carry([check])
    builder.ret(summed(builder, code.carried[0]))
    return module
