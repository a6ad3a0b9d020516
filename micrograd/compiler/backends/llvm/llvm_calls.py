"""Native functions that Python calls as it calls its own: in less time than it takes to look at a few numbers.

``direct(1.0, 2.0)`` puts floats into a buffer, runs a program there, and gives the result and the gradients as floats.

``add(leaves, gradients, node, gradient)`` adds to the gradients of leaves, and sets that of a node. It makes all sums
first, and then sets them.

Both keep the GIL, so that no other thread and no signal comes between: what may run code of Python, such as to make a
tuple, comes first. Both refuse other objects than floats. Each is one function for all programs; what it needs to know
of a program and of Python is in bytes, the first item of its self.
"""

from __future__ import annotations

import ctypes
from struct import pack
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_runners import run_table
from micrograd.compiler.backends.llvm.llvm_writer import Loops

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.numbers import Floats, Integers

_HEAD = object.__basicsize__  # of each object; the address of its class comes last
_SIZES = f"{_HEAD}_{bytes.__basicsize__}_{tuple.__basicsize__}"
DIRECT, ADD = f"micrograd_direct_{_SIZES}", f"micrograd_add_{_SIZES}"
_FASTCALL = 0x80  # METH_FASTCALL: the arguments are in an array
_GRADIENT = "_grad"
_API = ("Py_IncRef", "Py_DecRef", "PyObject_GetAttr", "PyObject_SetAttr", "PyFloat_FromDouble", "PyTuple_New")
_KNOWN = ("float", "none", "no", "yes", "gradient", *_API)  # the first words of each self


class _Method(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def direct_call(buffer: Floats, table: Integers, inputs: slice, output: int, gradients: slice) -> Callable[..., Any]:
    """What puts floats where the inputs are in a buffer, and runs a table of kernels. Whoever has it keeps both.

    It gives the number at ``output``; with gradients, a pair of that and a tuple of them. It gives False where not all
    are finite, and None, and nothing has run, where an argument is no float.
    """
    counts = inputs.start, inputs.stop - inputs.start, output, gradients.start, gradients.stop - gradients.start
    return _callable(DIRECT, *counts, buffer.ctypes.data, table.ctypes.data, len(table))


def adding() -> Callable[[Any, Any, Any, float], bool]:
    """What adds to the gradients of a tuple of leaves a tuple of floats, and sets the gradient of a node.

    It gives False, and nothing has changed, where a gradient is no float.
    """
    return _callable(ADD)


def _callable(name: str, *words: int) -> Callable[..., Any]:
    """A native function as a function of Python. Its self has these words, and what must stay in memory for it."""
    addresses, engines = machine().addresses({name: MODULES[name]})
    method, python = _Method(name.encode(), addresses[name], _FASTCALL, None), ctypes.pythonapi
    known = [*map(id, (float, None, False, True, _GRADIENT))]
    known += [ctypes.cast(getattr(python, each), ctypes.c_void_p).value or 0 for each in _API]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    itself = pack(f"{len(known) + len(words)}q", *known, *words), method, engines
    function: Callable[..., Any] = make(("PyCFunction_NewEx", python))(ctypes.addressof(method), itself, None)
    return function


class _Writer(Loops):
    """Writes a function: of its self, an array of its arguments, and how many these are."""

    def __init__(self, name: str) -> None:
        self.module = ir.Module(name=name)
        kind = ir.FunctionType(INTEGER, [INTEGER, INTEGER.as_pointer(), INTEGER])
        super().__init__(ir.Function(self.module, kind, name))
        itself, self.arguments, self.given = self.builder.function.args
        words = self.item(self.items(itself, tuple.__basicsize__), integer(0))
        self._words = self.items(words, bytes.__basicsize__ - 1)

    def word(self, number: int | str) -> Any:
        """A word of self: one that each has, or one of its own."""
        position = _KNOWN.index(number) if isinstance(number, str) else len(_KNOWN) + number
        return self.item(self._words, integer(position))

    def items(self, thing: Any, offset: int) -> Any:
        """What is at an offset in an object: as an array of integers."""
        return self.builder.inttoptr(self.builder.add(thing, integer(offset)), INTEGER.as_pointer())

    def item(self, array: Any, index: Any) -> Any:
        """An element of an array."""
        return self.builder.load(self.builder.gep(array, [index]))

    def number(self, thing: Any) -> Any:
        """The number of a float."""
        return self.item(
            self.builder.inttoptr(self.builder.add(thing, integer(_HEAD)), DOUBLE.as_pointer()), integer(0)
        )

    def is_float(self, thing: Any) -> Any:
        """Whether an object is a float."""
        return self.builder.icmp_signed("==", self.item(self.items(thing, _HEAD - 8), integer(0)), self.word("float"))

    def ask(self, function: str, *arguments: Any, gives: ir.Type = INTEGER) -> Any:
        """Call a function of Python's."""
        kind = ir.FunctionType(gives, [each.type for each in arguments])
        return self.builder.call(self.builder.inttoptr(self.word(function), kind.as_pointer()), arguments)

    def release(self, thing: Any) -> None:
        """Give a reference back."""
        self.ask("Py_DecRef", thing, gives=ir.VoidType())

    def give(self, answer: str) -> None:
        """Give None, True or False."""
        found = self.word(answer)
        self.ask("Py_IncRef", found, gives=ir.VoidType())
        self.builder.ret(found)

    def made(self, function: str, *arguments: Any, beside: Any = None) -> Any:
        """A new object. If there is no memory for it, the function raises, and gives the one beside it back."""
        thing = self.ask(function, *arguments)
        with self.builder.if_then(self.builder.icmp_signed("==", thing, integer(0))):
            if beside is not None:
                self.release(beside)
            self.builder.ret(integer(0))
        return thing

    def put(self, thing: Any, position: Any, item: Any) -> None:
        """Put an item into a new tuple."""
        self.builder.store(item, self.builder.gep(self.items(thing, tuple.__basicsize__), [position]))


def _module_of_direct() -> ir.Module:
    code = _Writer(DIRECT)
    builder, none, one = code.builder, integer(0), integer(1)
    start, count, output, first, gradients, buffer, table, length = map(code.word, range(8))
    buffer, table = builder.inttoptr(buffer, DOUBLE.as_pointer()), builder.inttoptr(table, INTEGER.as_pointer())
    with builder.if_then(builder.icmp_signed("!=", code.given, count)):
        code.give("none")
    with (
        code.loop(none, count, 1) as index,
        builder.if_then(builder.not_(code.is_float(code.item(code.arguments, index)))),
    ):
        code.give("none")
    has_gradients = builder.icmp_signed(">", gradients, none)

    def run() -> None:
        with code.loop(none, count, 1) as index:
            number = code.number(code.item(code.arguments, index))
            builder.store(number, builder.gep(buffer, [builder.add(start, index)]))
        run_table(code, buffer, table, length)

    def is_infinite(position: Any) -> Any:
        number = code.item(buffer, position)
        return builder.fcmp_unordered("!=", builder.fsub(number, number), ir.Constant(DOUBLE, 0.0))

    with builder.if_then(has_gradients):
        pair = code.made("PyTuple_New", integer(2))
        slopes = code.made("PyTuple_New", gradients, beside=pair)
        code.put(pair, one, slopes)
        run()

        def give_no_if(condition: Any) -> None:
            with builder.if_then(condition):
                code.release(pair)
                code.give("no")

        give_no_if(is_infinite(output))
        with code.loop(none, gradients, 1) as index:
            give_no_if(is_infinite(builder.add(first, index)))
        code.put(pair, none, code.made("PyFloat_FromDouble", code.item(buffer, output), beside=pair))
        with code.loop(none, gradients, 1) as index:
            slope = code.item(buffer, builder.add(first, index))
            code.put(slopes, index, code.made("PyFloat_FromDouble", slope, beside=pair))
        builder.ret(pair)
    run()
    with builder.if_then(is_infinite(output)):
        code.give("no")
    builder.ret(code.made("PyFloat_FromDouble", code.item(buffer, output)))
    return code.module


def _module_of_adding() -> ir.Module:
    code = _Writer(ADD)
    builder, none = code.builder, integer(0)
    leaves, gradients, node, gradient = (code.item(code.arguments, integer(index)) for index in range(4))
    count = code.item(code.items(leaves, _HEAD), none)
    leaves, gradients = (code.items(each, tuple.__basicsize__) for each in (leaves, gradients))
    sums = code.made("PyTuple_New", count)

    def set_gradient(thing: Any, number: Any) -> None:
        code.ask("PyObject_SetAttr", thing, code.word("gradient"), number, gives=ir.IntType(32))

    with code.loop(none, count, 1) as index:
        before = code.made("PyObject_GetAttr", code.item(leaves, index), code.word("gradient"), beside=sums)
        with builder.if_then(builder.not_(code.is_float(before))):
            code.release(before)
            code.release(sums)
            code.give("no")
        number = builder.fadd(code.number(before), code.number(code.item(gradients, index)))
        code.release(before)
        code.put(sums, index, code.made("PyFloat_FromDouble", number, beside=sums))
    with code.loop(none, count, 1) as index:
        set_gradient(code.item(leaves, index), code.item(code.items(sums, tuple.__basicsize__), index))
    set_gradient(node, gradient)
    code.release(sums)
    code.give("yes")
    return code.module


MODULES: dict[str, Callable[[], ir.Module]] = {DIRECT: _module_of_direct, ADD: _module_of_adding}
