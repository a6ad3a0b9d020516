"""The native function of a program, for callers that know nothing of Python: SciPy, Numba, Cython, C and C++."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.tracing.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.guards.structure import Structure


class NativeFunction:
    """A native function; see CompiledFunction.address, which makes it.

    Attributes:
        address: where it is in memory, for as long as this object or ``pointer`` lives.
        signature: how it is called, in C: ``double (double)``.
        pointer: the same for ctypes, which ``scipy.LowLevelCallable`` takes.
    """

    def __init__(self, entry: Any, signature: str, prototype: Any) -> None:
        self.address: int = entry.address
        self.signature = signature
        self.pointer = prototype(self.address)
        self.pointer.keeps = entry  # SciPy keeps the pointer only

    def __int__(self) -> int:
        return self.address

    def __repr__(self) -> str:
        return f"<native {self.signature} at {self.address:#x}>"


def native_function(
    function: Callable[..., Any], given: Structure, signature: str | None, disable: Sequence[str]
) -> NativeFunction:
    """The native function for arguments of this structure."""
    backend = backend_of("llvm")
    from micrograd.compiler.backends.llvm.llvm_entries import SIGNATURES, Entry

    if signature is not None and signature not in SIGNATURES:
        raise ValueError(f"signature must be one of {', '.join(map(repr, SIGNATURES))}, not {signature!r:.80}")
    special = Specialised(Source(function, given), backend, disable)
    count, leaves = len(special.values), len(given.leaves)
    outputs = special.results.outputs
    if not leaves or not outputs or None in outputs:
        raise ValueError(f"{special.name} must compute numbers, and nothing else, from numbers in its arguments")
    if signature is None:
        plain = "double (double)" if leaves == 1 else "double (int, double *)"
        signature = plain if len(outputs) == 1 else "void (double *, double *, double *)"
    if not signature.startswith("void") and len(outputs) > 1:
        raise ValueError(f"{signature!r} is for one number, and {special.name} gives {len(outputs)}")
    if signature == "double (double)" and leaves > 1:
        raise ValueError(f"{signature!r} is for one argument, and {special.name} takes {leaves} numbers")
    differentiated = signature.startswith("void") and len(outputs) == 1
    if differentiated:
        special.want([*range(count, count + leaves), *(i for i in special.wanted.tolist() if i < count)])
    executable: Any = special.compiled(differentiated).run
    if executable.calls_python:
        raise ValueError(f"{special.name} uses a primitive that is Python code, so it has no native function")
    program = executable.program
    executable.buffer[program.inputs[: count + leaves]] = special.numbers(given)
    gradients = program.of_gradients
    entry = Entry(
        executable, program.inputs[count : count + leaves], program.outputs[np.array(outputs)], gradients, signature
    )
    return NativeFunction(entry, signature, SIGNATURES[signature].prototype)
