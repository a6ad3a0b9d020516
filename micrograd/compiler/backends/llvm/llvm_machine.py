"""The machine: LLVM for this processor, and the native functions that it has compiled.

    machine().address("micrograd_run", runner)     # from memory, from disk, or compiled

A function goes by its name, which says all that its code depends on but for the processor and the versions. Those that
are new are compiled together, as one object.

LLVM frees an engine as a whole, and not one object of it. So there are several engines, in the order of their age. A
quarter of the limit goes into each. Beyond the limit, the oldest is left to the programs that use it, and is freed with
the last of them.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
from contextlib import suppress
from functools import partial
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import llvmlite

from micrograd._support.locks import new_lock_for_library
from micrograd.compiler.backends.llvm.object_cache import cached, is_object
from micrograd.compiler.backends.shared import written
from micrograd.compiler.backends.shared.limits import limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import llvmlite.binding as llvm
    from llvmlite import ir

_LOG = logging.getLogger("micrograd")


def _version() -> str:
    """A hash of the files that write the code, so that kernels of another version are not taken from disk.

    The formulas of composites are not in it: a kernel's name has a hash of what became of them.
    """
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(written.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _library() -> Any:
    """LLVM: more than 40 MB, which come into memory when the passes no longer need theirs."""
    import llvmlite.binding as llvm

    return llvm


def _give_memory_back() -> None:
    """Give the system what the passes have freed, where the C library keeps it, as glibc does."""
    with suppress(AttributeError, OSError, TypeError):  # there is none
        ctypes.CDLL(None).malloc_trim(0)


class _Engine:
    """Native functions in memory, freed together when nothing refers to them any more.

    Attributes:
        addresses: of the functions, by name.
        size: bytes of the objects that they came from.
    """

    def __init__(self, machine: llvm.TargetMachine, triple: str) -> None:
        llvm = _library()
        empty = llvm.parse_assembly("")
        empty.triple = triple
        self._engine = llvm.create_mcjit_compiler(empty, machine)  # which owns the machine from now on
        self.addresses: dict[str, int] = {}
        self.size = 0

    def load(self, names: list[str], content: bytes) -> None:
        """Load an object with these functions in it, or raise a RuntimeError."""
        parsed = _library().ObjectFileRef.from_data(content)
        if not parsed._ptr:  # LLVM could not read it, and would crash if it were to load it
            raise RuntimeError(f"no object: {content[:20]!r}")
        self._engine.add_object_file(parsed)
        self._engine.finalize_object()
        self.size += len(content)
        for name in names:
            if not (address := int(self._engine.get_function_address(name))):
                raise RuntimeError(f"no function {name} in its object")
            self.addresses[name] = address


class Machine:
    """The compiler for this machine's processor, and the functions that it has compiled.

    Attributes:
        block: how many rows of a product, of sixteen columns each, half of its registers have the sums of. With sums in
            all 16 registers of AVX2, and factors in memory, a product takes 1.1 to 1.6 times as long.
    """

    def __init__(self) -> None:
        _give_memory_back()
        llvm = _library()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor = llvm.get_host_cpu_name()
        try:
            features = llvm.get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM cannot tell on every platform
            features = ""
        target = llvm.Target.from_default_triple()
        self.block = 8 if "+avx512f" in features.split(",") else 2
        self._triple = target.triple
        self._new_machine = partial(target.create_target_machine, cpu=processor, features=features, opt=2, jit=True)
        self._machine = self._new_machine()
        self._described = "\n".join((self._triple, processor, features, llvmlite.__version__, _version()))
        self._engines = [_Engine(self._new_machine(), self._triple)]  # the youngest last

    def addresses(self, functions: Mapping[str, Callable[[], ir.Module]]) -> tuple[dict[str, int], list[Any]]:
        """The addresses of functions, and what they are in: it must be kept for as long as they may be called.

        Those that are neither in memory nor on disk are compiled, all at once.
        """
        with _lock:
            self._make_room()
            engines = {n: engine for engine in self._engines for n in filter(engine.addresses.__contains__, functions)}
            new = list(filterfalse(engines.__contains__, functions))
            keys = {f"{name}\n{self._described}": name for name in new}

            def make(missing: list[str]) -> bytes:
                names = [keys[key] for key in missing]
                _LOG.debug("native code: %d functions are compiled", len(names))
                content = self._compiled([functions[name]() for name in names])
                self._engines[-1].load(names, content)
                return content

            def load(found: list[str], content: bytes) -> None:
                names = [keys[key] for key in found]
                if not all(is_object(content, name, self._triple.partition("-")[0]) for name in names):
                    raise RuntimeError(f"no object for this processor with {', '.join(names)} in it")
                self._engines[-1].load(names, content)

            if new:
                cached([*keys], make, load)
            engines.update(dict.fromkeys(new, self._engines[-1]))
            return {name: engine.addresses[name] for name, engine in engines.items()}, [*set(engines.values())]

    def alone(self, module: ir.Module, name: str) -> tuple[int, Any]:
        """The address of a function that no other program has, and what it is in: it is not kept on disk."""
        with _lock:
            engine = _Engine(self._new_machine(), self._triple)
            engine.load([name], self._compiled([module]))
        return engine.addresses[name], engine

    def names(self) -> list[str]:
        """The functions in memory that new programs find."""
        return [name for engine in self._engines for name in engine.addresses]

    @property
    def size(self) -> int:
        """Bytes of the native code that new programs find in memory."""
        return sum(engine.size for engine in self._engines)

    def forget(self) -> None:
        """Leave all native code to the programs that use it."""
        with _lock:
            self._engines = [_Engine(self._new_machine(), self._triple)]

    def _make_room(self) -> None:
        """Begin another engine where the youngest is full, and leave the oldest ones to those that use them."""
        most = limit("MICROGRAD_CODE_MB")
        if self._engines[-1].size > most / 4:
            self._engines.append(_Engine(self._new_machine(), self._triple))
        while len(self._engines) > 1 and self.size > most:
            _LOG.debug("native code: the oldest is no longer found, as there is more than MICROGRAD_CODE_MB")
            del self._engines[0]

    def _compiled(self, modules: list[ir.Module]) -> bytes:
        """One object of modules: most of the time of a small one goes into the preparations."""
        for module in modules:
            module.triple = self._triple
        whole, *others = (_library().parse_assembly(str(module)) for module in modules)
        for other in others:
            whole.link_in(other)
        whole.verify()
        # No optimising passes: the loops are written as they shall run, and passes would double the time.
        return bytes(self._machine.emit_object(whole))


_lock = new_lock_for_library()
_machine: Machine | None = None


def bytes_in_memory() -> int:
    """Bytes of the native code that new programs find in memory; 0 where there is none yet."""
    return 0 if _machine is None else _machine.size


def forget() -> None:
    """Leave all native code to the programs that use it."""
    if _machine is not None:
        _machine.forget()


def machine() -> Machine:
    """The Machine of this process."""
    global _machine
    with _lock:
        if _machine is None:
            _machine = Machine()
        return _machine
