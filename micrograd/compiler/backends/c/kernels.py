"""Blocks as C: single statements, kernels as loops, and calls of functions that kernels have in common."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.backends.c.alike import alike
from micrograd.compiler.backends.c.loops import Loops
from micrograd.compiler.backends.c.memory import kind_of
from micrograd.compiler.backends.c.regions import Words, is_scalar, uses_of, with_uses
from micrograd.compiler.backends.c.repeats import Statement, repeated
from micrograd.compiler.backends.c.words import folded
from micrograd.compiler.ir.program import Map, Reduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.memory import Memory
    from micrograd.compiler.backends.c.regions import Block, Item, Use


class Writer:
    """Writes blocks as C.

    Args:
        memory: where the numbers are.
        functions: those of the file.
        real: the type of numbers.

    """

    def __init__(self, memory: Memory, functions: Functions, real: str) -> None:
        self.memory, self.functions, self.real = memory, functions, real
        self._loops = Loops(functions, real, memory, memory.tables)
        self.line = self._loops.line

    def write(self, blocks: Sequence[Block]) -> list[list[str]]:
        """The lines of each block, without local variables that nobody reads."""
        # the compiler of C would warn of these
        unread = self.memory.positions.locals.keys() - _read(blocks, self.memory)
        common = alike(blocks)
        used = with_uses(blocks)
        parts: list[list[str]] = []
        for number, block in enumerate(blocks):
            if block.iterations > 1:
                self._loops.open(f"for (int step = 0; step < {block.iterations}; step++)")
                for line in self.memory.moving(number, self.real):
                    self.line(line)
            read = [each for each in islice(used, len(block.kernels)) if each[1][-1].access.base not in unread]
            before, statements = self._taken(), []
            for kernel, (*operands, target) in read:
                if (form := common.get(target[:2])) is not None:
                    self.line(form.call(self.memory, self.functions, self.real))
                else:
                    self._kernel(kernel, operands, target)
                statements.append(Statement(self._taken(), is_scalar(kernel)))
            if block.iterations > 1:
                self._loops.close()
            parts.append([*before, *repeated(statements, self.memory.tables), *self._taken()])
        return parts

    def _taken(self) -> list[str]:
        """The lines since the last time."""
        lines = self._loops.lines[:]
        self._loops.lines.clear()
        return lines

    def _kernel(self, kernel: Item, operands: Sequence[Use], target: Use) -> None:
        if is_scalar(kernel):
            self._number(kernel, operands, target)
        elif isinstance(kernel, Words):
            self._words(kernel, target)
        else:
            self._loops.write(kernel, operands, target)

    def _number(self, kernel: Item, operands: Sequence[Use], target: Use) -> None:
        texts = [self.memory.at(use) for use in operands]
        if isinstance(kernel, Map):
            text = self.functions.call(kernel.primitive, texts)
        else:
            assert isinstance(kernel, Reduction)
            text = self._loops.written_out(kernel, texts)
        if target.access.base not in self.memory.positions.locals or not target.is_number:
            self.line(f"{self.memory.at(target)} = {text};")
        elif line := self.memory.local(target.access.base, kind_of(kernel), text, self.real):
            self.line(line)

    def _words(self, kernel: Words, target: Use) -> None:
        """A table, and the call of what goes through it."""
        region = self.memory.region(target.reach()[0])
        assert region is not None
        name, origin = self.memory.whole(region)
        words = kernel.words - np.where(kernel.is_position, origin, 0)
        functions = np.array([0, *(-self.functions.number(primitive) for primitive in kernel.primitives)])
        is_function = ~kernel.is_position & (words < 0)
        words[is_function] = functions[-words[is_function]]
        words = np.array(folded(words, kernel.is_position, kernel.starts))
        self.line(f"{self.functions.prefix}_run({len(words)}, {self.memory.tables.name(words)}, {name});")


def _read(blocks: Sequence[Block], memory: Memory) -> set[int]:
    """The positions of local variables that are read, or are results."""
    found: set[int] = set()
    for home in ("outputs", "gradients"):
        found.update(memory.positions.of[home].tolist())
    uses = [*uses_of(blocks)]
    for use in reversed(uses):  # targets come before operands here
        if use.operand == -1:
            needed = use.access.base in found or use.access.base not in memory.positions.locals
        elif needed and use.is_number:
            found.add(use.access.base)
    return found
