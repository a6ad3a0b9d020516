"""The machine: LLVM for this processor, and the native functions that it has compiled.

    machine().address("micrograd_run", runner)     # from memory, from disk, or compiled

A function goes by its name, which says all that its code depends on but for the processor and the versions. Those that
are new are compiled together, as one object.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import llvmlite
import llvmlite.binding as llvm

from micrograd._support.locks import new_lock_for_library
from micrograd.compiler.backends.llvm import (
    llvm_batch_runner,
    llvm_codes,
    llvm_functions,
    llvm_interpreter,
    llvm_kernels,
    llvm_products,
    llvm_runners,
    llvm_scalars,
    llvm_writer,
)
from micrograd.compiler.backends.llvm.object_cache import cached, is_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from llvmlite import ir

_WRITERS = (
    *(llvm_batch_runner, llvm_codes, llvm_functions, llvm_interpreter, llvm_kernels, llvm_products, llvm_runners),
    *(llvm_scalars, llvm_writer),
)


def _version() -> str:
    """A hash of the files that write the code, so that kernels of another version are not taken from disk.

    The formulas of composites are not in it: a kernel's name has a hash of what became of them.
    """
    files = [__file__, *(str(module.__file__) for module in _WRITERS)]
    content = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()


class Machine:
    """The compiler for this machine's processor, and the functions that it has compiled.

    Attributes:
        block: how many rows of a product, of sixteen columns each, its registers have the sums of.
    """

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor = llvm.get_host_cpu_name()
        try:
            features = llvm.get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM cannot tell on every platform
            features = ""
        target = llvm.Target.from_default_triple()
        self.block = 8 if "+avx512f" in features.split(",") else 4
        self._triple = target.triple
        self._machine = target.create_target_machine(cpu=processor, features=features, opt=2, jit=True)
        empty = llvm.parse_assembly("")
        empty.triple = self._triple
        self._engine = llvm.create_mcjit_compiler(empty, self._machine)
        self._described = "\n".join((self._triple, processor, features, llvmlite.__version__, _version()))
        self._addresses: dict[str, int] = {}

    def address(self, name: str, make: Callable[[], ir.Module]) -> int:
        """The address of a function; make gives a module with it."""
        return self.addresses({name: make})[name]

    def addresses(self, functions: Mapping[str, Callable[[], ir.Module]]) -> dict[str, int]:
        """The addresses of functions. Those that are neither in memory nor on disk are compiled, all at once."""
        with _lock:
            new = [name for name in functions if name not in self._addresses]
            keys = {f"{name}\n{self._described}": name for name in new}

            def make(missing: list[str]) -> bytes:
                names = [keys[key] for key in missing]
                content = self._compiled([functions[name]() for name in names])
                self._load(names, content)
                return content

            def load(found: list[str], content: bytes) -> None:
                names = [keys[key] for key in found]
                if not all(is_object(content, name, self._triple.partition("-")[0]) for name in names):
                    raise RuntimeError(f"no object for this processor with {', '.join(names)} in it")
                self._load(names, content)

            if new:
                cached([*keys], make, load)
            return {name: self._addresses[name] for name in functions}

    def _load(self, names: list[str], content: bytes) -> None:
        """Load an object with these functions in it, or raise a RuntimeError."""
        parsed = llvm.ObjectFileRef.from_data(content)
        if not parsed._ptr:  # LLVM could not read it, and would crash if it were to load it
            raise RuntimeError(f"no object: {content[:20]!r}")
        self._engine.add_object_file(parsed)
        self._engine.finalize_object()
        for name in names:
            if not (address := int(self._engine.get_function_address(name))):
                raise RuntimeError(f"no function {name} in its object")
            self._addresses[name] = address

    def _compiled(self, modules: list[ir.Module]) -> bytes:
        """One object of modules: most of the time of a small one goes into the preparations."""
        for module in modules:
            module.triple = self._triple
        whole, *others = (llvm.parse_assembly(str(module)) for module in modules)
        for other in others:
            whole.link_in(other)
        whole.verify()
        # No optimising passes: the loops are written as they shall run, and passes would double the time.
        return bytes(self._machine.emit_object(whole))


_lock = new_lock_for_library()
_machine: Machine | None = None


def machine() -> Machine:
    """The Machine of this process."""
    global _machine
    with _lock:
        if _machine is None:
            _machine = Machine()
        return _machine
