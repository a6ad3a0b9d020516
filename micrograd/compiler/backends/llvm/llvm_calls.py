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

    It gives the number at ``output``, and a tuple of the gradients. It gives False where not all are finite, and None,
    and nothing has run, where an argument is no float.
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
    """Writes a function: of its self, an array of its arguments, and how many these are.

    Attributes:
        made: a new object, which is given back where the function ends without a result.
    """

    made: Any = None

    def __init__(self, name: str) -> None:
        self.module = ir.Module(name=name)
        kind = ir.FunctionType(INTEGER, [INTEGER, INTEGER.as_pointer(), INTEGER])
        super().__init__(ir.Function(self.module, kind, name))
        self.function.attributes.update(("noinline", "optnone"))  # compiled in 8 ms, not 21; a call takes 0.03 us more
        itself, self.arguments, self.given = self.function.args
        words = self.item(self.items(itself, tuple.__basicsize__), 0)
        self._words = self.items(words, bytes.__basicsize__ - 1)
        self._ends: dict[tuple[str, bool], Any] = {}

    def word(self, number: int | str) -> Any:
        """A word of self: one that each has, or one of its own."""
        return self.item(self._words, _KNOWN.index(number) if isinstance(number, str) else len(_KNOWN) + number)

    def items(self, thing: Any, offset: int) -> Any:
        """What is at an offset in an object: as an array of integers."""
        return self.builder.inttoptr(self.builder.add(thing, integer(offset)), INTEGER.as_pointer())

    def item(self, array: Any, index: Any) -> Any:
        """An element of an array."""
        return self.builder.load(self.builder.gep(array, [integer(index) if isinstance(index, int) else index]))

    def number(self, thing: Any) -> Any:
        """The number of a float."""
        return self.item(self.builder.bitcast(self.items(thing, _HEAD), DOUBLE.as_pointer()), 0)

    def call(self, function: str, *arguments: Any, gives: ir.Type = INTEGER) -> Any:
        """Call a function of Python's."""
        kind = ir.FunctionType(gives, [each.type for each in arguments])
        return self.builder.call(self.builder.inttoptr(self.word(function), kind.as_pointer()), arguments)

    def count(self, change: str, thing: Any) -> None:
        """Take a reference, or give it back."""
        self.call(f"Py_{change}Ref", thing, gives=ir.VoidType())

    def new(self, function: str, *arguments: Any) -> Any:
        """A new object. If there is no memory for it, the function ends."""
        thing = self.call(function, *arguments)
        self.end_if(self.builder.icmp_signed("==", thing, integer(0)), "")
        return thing

    def put(self, thing: Any, position: Any, item: Any) -> None:
        """Put an item into a new tuple."""
        self.builder.store(item, self.builder.gep(self.items(thing, tuple.__basicsize__), [position]))

    def end_unless_float(self, thing: Any, answer: str) -> None:
        """End with an answer where an object is no float."""
        kind = self.item(self.items(thing, _HEAD - 8), 0)
        self.end_if(self.builder.icmp_signed("!=", kind, self.word("float")), answer)

    def end_if(self, condition: Any, answer: str) -> None:
        """End with an answer where a condition holds; with none, Python raises."""
        key = answer, self.made is not None
        if key not in self._ends:
            self._ends[key] = self.function.append_basic_block("end")
            with self.builder.goto_block(self._ends[key]):
                if self.made is not None:
                    self.count("Dec", self.made)
                self.end(answer)
        others = self.function.append_basic_block("others")
        self.builder.cbranch(condition, self._ends[key], others)
        self.builder.position_at_end(others)

    def end(self, answer: str) -> None:
        """End with an answer."""
        if answer:
            self.count("Inc", self.word(answer))
        self.builder.ret(self.word(answer) if answer else integer(0))


def _module_of_direct() -> ir.Module:
    code = _Writer(DIRECT)
    builder, zero, one = code.builder, integer(0), integer(1)
    start, count, output, first, gradients, buffer, table, length = map(code.word, range(8))
    buffer, table = builder.inttoptr(buffer, DOUBLE.as_pointer()), builder.inttoptr(table, INTEGER.as_pointer())
    code.end_if(builder.icmp_signed("!=", code.given, count), "none")
    with code.loop(zero, count, 1) as index:
        code.end_unless_float(code.item(code.arguments, index), "none")
    pair = code.new("PyTuple_New", integer(2))
    code.made = pair
    slopes = code.new("PyTuple_New", gradients)
    code.put(pair, one, slopes)
    with code.loop(zero, count, 1) as index:
        number = code.number(code.item(code.arguments, index))
        builder.store(number, builder.gep(buffer, [builder.add(start, index)]))
    run_table(code, buffer, table, length)
    for found, begin, size in ((pair, output, one), (slopes, first, gradients)):
        with code.loop(zero, size, 1) as index:
            number = code.item(buffer, builder.add(begin, index))
            is_finite = builder.fcmp_ordered("==", builder.fsub(number, number), ir.Constant(DOUBLE, 0.0))
            code.end_if(builder.not_(is_finite), "no")
            code.put(found, index, code.new("PyFloat_FromDouble", number))
    builder.ret(pair)
    return code.module


def _module_of_adding() -> ir.Module:
    code = _Writer(ADD)
    builder, zero = code.builder, integer(0)
    leaves, gradients, node, gradient = (code.item(code.arguments, index) for index in range(4))
    count = code.item(code.items(leaves, _HEAD), 0)
    leaves, gradients = (code.items(each, tuple.__basicsize__) for each in (leaves, gradients))
    sums = code.new("PyTuple_New", count)
    code.made = sums

    def set_gradient(thing: Any, number: Any) -> None:
        code.call("PyObject_SetAttr", thing, code.word("gradient"), number, gives=ir.IntType(32))

    with code.loop(zero, count, 1) as index:
        before = code.new("PyObject_GetAttr", code.item(leaves, index), code.word("gradient"))
        code.count("Dec", before)  # the leaf has it, too
        code.end_unless_float(before, "no")
        number = builder.fadd(code.number(before), code.number(code.item(gradients, index)))
        code.put(sums, index, code.new("PyFloat_FromDouble", number))
    with code.loop(zero, count, 1) as index:
        set_gradient(code.item(leaves, index), code.item(code.items(sums, tuple.__basicsize__), index))
    set_gradient(node, gradient)
    code.count("Dec", sums)
    code.end("yes")
    return code.module


MODULES: dict[str, Callable[[], ir.Module]] = {DIRECT: _module_of_direct, ADD: _module_of_adding}
