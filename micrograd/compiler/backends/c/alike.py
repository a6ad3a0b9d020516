"""Kernels that differ in sizes and positions only, as calls of one function.

An attention that looks back at 1, 2, 3 ... letters has hundreds of such kernels, and compilers of C take long over each
loop. So where three kernels of a program have the same form, a function has their loops:

    static void NAME_sum(int rows, int terms, double *result, const double *x, int x_row)

What is the same number in all of them is a number in the function as well.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from micrograd.compiler.backends.c.loops import Loops, calls, is_for_many, manner, parts_of
from micrograd.compiler.backends.c.memory import AXES, kind_of, lookup_of, total
from micrograd.compiler.backends.c.regions import is_scalar, with_uses
from micrograd.compiler.ir.program import Map, Reduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.memory import Lookup, Memory
    from micrograd.compiler.backends.c.regions import Block, Use

_FEWEST = 3  # kernels that are worth a function
_LETTERS = ("x", "y", "z")
_SIZES = {"row": "rows", "column": "columns"}


class Form:
    """A kernel with names for what it reads, writes and counts: the names that its function has for them.

    Args:
        kernel: the kernel.
        uses: its operands, and its target last.

    Attributes:
        names: of these; what is at the same position has the same name.
        numbers: sizes, and how far apart elements are, by name.
        same: those of the numbers that are the same in all kernels of this form.
    """

    def __init__(self, kernel: Reduction | Map, uses: Sequence[Use]) -> None:
        self.kernel, self.uses = kernel, uses
        self.lookups = [lookup_of(use) for use in uses]
        self.names: list[str] = []
        self.numbers = {"rows": kernel.rows, "columns": kernel.columns}
        self.same: dict[str, int] = {}
        self._terms: list[str] = []
        if isinstance(kernel, Reduction):
            for part, factors, name in parts_of(kernel, uses):
                self._terms += [name] * len(factors)
                self.numbers[name] = part.terms
        known = {_position(uses[-1], self.lookups[-1]): "result"}
        for number, (use, lookup) in enumerate(zip(uses, self.lookups, strict=True)):
            name = _LETTERS[number] if number < len(_LETTERS) else f"x_{number + 1}"
            name = known.setdefault(_position(use, lookup), name)
            self.names.append(name)
            self.numbers |= {f"{name}_{axis}": step for axis in AXES if (step := use.step(axis))}
            if lookup is not None:
                self.numbers[f"{name}_scale"] = lookup.scale
                if lookup.period:
                    self.numbers |= {f"{name}_period": lookup.period, f"{name}_far": lookup.far}

    @property
    def key(self) -> Any:
        """What kernels of the same form have in common."""
        kernel = self.kernel
        known = [(name, min(number, 2)) for name, number in self.numbers.items()]
        tables = [lookup and [axis for axis, _ in lookup.axes] for lookup in self.lookups]
        found = [self.names, known, tables, [use.is_number for use in self.uses]]
        if isinstance(kernel, Map):
            return kernel.primitive, is_for_many(kernel), repr(found)
        how = manner(kernel)
        parts = [
            (part.coefficient, len(part.factors), part.terms if how == "in order" else 0) for part in kernel.segments
        ]
        return how, kernel.largest, kernel.from_zero, repr([found, calls(kernel, self.uses), parts])

    def at(self, use: Use, **fixed: int) -> str:
        """The expression of an operand, at this row, column or term where it is said which."""
        name, lookup = self.names[use.operand], self.lookups[use.operand]
        if use.is_number and name != "result":
            return name
        axes = AXES | {axis: str(number) for axis, number in fixed.items()}
        index = "" if lookup is None else lookup.text(f"{name}_at", axes, self._sizes(use))
        in_table = set() if lookup is None else {"row", "term"} if lookup.has_terms else {"row"}
        steps = [(self.step(use, axis), variable) for axis, variable in axes.items() if axis not in in_table]
        index = total(0, index, [(int(step), variable) for step, variable in steps if step.isdigit() and step != "0"])
        for step, variable in steps:
            if not step.isdigit() and variable != "0":
                index = f"{step} * {variable}" + (f" + {index}" if index != "0" else "")
        return f"{name}[{index}]"

    def _sizes(self, use: Use) -> Callable[[str, int], str]:
        """What says how long the axes of an operand's table are."""

        def text(kind: str, number: int) -> str:
            name = self._terms[use.operand] if kind == "term" else f"{self.names[use.operand]}_{kind}"
            return self.size(_SIZES.get(kind, name), number)

        return text

    def table(self, use: Use) -> str:
        """The table of where an operand's terms are in a row, as a pointer."""
        lookup = self.lookups[use.operand]
        return "0" if lookup is None else lookup.of_terms(f"{self.names[use.operand]}_at", self._sizes(use))

    def first(self, use: Use) -> str:
        """Where an operand begins."""
        return self.names[use.operand]

    def step(self, use: Use, axis: str) -> str:
        """How far an operand moves from one row, column or term to the next."""
        lookup = self.lookups[use.operand]
        kind, step = (axis, use.step(axis)) if lookup is None else lookup.step(axis, use)
        return self.size(f"{self.names[use.operand]}_{kind}", step) if step else "0"

    def size(self, name: str, count: int) -> str:
        """How many rows, columns or terms there are."""
        return str(self.same[name]) if name in self.same else name

    def arguments(self, memory: Memory) -> dict[str, str]:
        """What the function is called with, by the declarations of its parameters."""
        found = {f"int {name}": str(number) for name, number in self.numbers.items() if name not in self.same}
        order = [len(self.uses) - 1, *range(len(self.uses) - 1)]
        for name, use, lookup in ((self.names[n], self.uses[n], self.lookups[n]) for n in order):
            if use.is_number and name != "result":
                found[f"double {name}"] = memory.at(use)
            elif name == "result":
                found["double *result"] = memory.first(use)
            else:
                found[f"const double *{name}"] = memory.first(use)
            if lookup is not None:
                found[f"const int *{name}_at"] = memory.tables.name(lookup.numbers)
        return found

    def call(self, memory: Memory, functions: Functions, real: str) -> str:
        """The call of the function, which is written where it is the first one."""
        loops = Loops(functions, real, self, memory.tables)
        *operands, target = self.uses
        loops.write(self.kernel, operands, target)
        words = set(re.findall(r"[A-Za-z_]\w*", "\n".join(loops.lines)))
        found = {key: text for key, text in self.arguments(memory).items() if re.split(r"[ *]+", key)[-1] in words}
        declared = [key.replace("double", real) for key in found]
        name = functions.procedure((self.key, *self.same.items()), kind_of(self.kernel), declared, loops.lines)
        return f"{name}({', '.join(found.values())});"


def alike(blocks: Sequence[Block]) -> dict[tuple[int, int], Form]:
    """The forms that kernels have in common, by the number of the block and of the kernel in it."""
    groups: dict[Any, list[tuple[tuple[int, int], Form]]] = defaultdict(list)
    for form in filter(None, forms_of(blocks)):
        groups[form.key].append((form.uses[-1][:2], form))
    found: dict[tuple[int, int], Form] = {}
    for group in groups.values():
        if len(group) >= _FEWEST:
            first = group[0][1].numbers
            same = {
                name: number for name, number in first.items() if all(form.numbers[name] == number for _, form in group)
            }
            for _, form in group:
                form.same = same
            found.update(group)
    return found


def forms_of(blocks: Sequence[Block]) -> Iterator[Form | None]:
    """The forms of all kernels; None for a kernel that shares no function."""
    for kernel, uses in with_uses(blocks):
        yield Form(kernel, uses) if isinstance(kernel, (Reduction, Map)) and not is_scalar(kernel) else None


def _position(use: Use, lookup: Lookup | None) -> Any:
    return (
        use.access.base if lookup is None else lookup.start,
        use.access.iteration_step,
        *map(use.step, AXES),
        repr(lookup and (*lookup.numbers.tolist(), lookup[1:])),
    )
