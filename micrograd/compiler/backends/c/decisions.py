"""Functions of C that decide: straight programs, with ``if`` and ``for`` between them.

All numbers that one program hands to the next are in one array: what is given, the results of decisions, and what these
need besides. A loop keeps its state where its results go. For gradients there is an array of the same size, which is
filled from the last program back to the first; a loop keeps its states for that, and goes through them backwards. One
without a limit keeps some, as the file allocates nothing, and computes those between again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.backends.c.functions import STACK, Function, functions_of
from micrograd.compiler.backends.c.repeats import copied
from micrograd.compiler.numbers import no_integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.functions import Source
    from micrograd.compiler.backends.c.memory import Tables
    from micrograd.compiler.ir.regions import Region, Step, Straight
    from micrograd.compiler.numbers import Integers


class Deciding:
    """Writes the functions of regions.

    Args:
        source: what the file is made of. Its positions say which numbers inputs and parameters are, and its order which
            the gradients are of.
        tables, functions: those of the file.

    Attributes:
        made: the functions so far that others call.
    """

    def __init__(self, source: Source, tables: Tables, functions: Functions) -> None:
        self.source, self.tables, self.functions = source, tables, functions
        self.real = "float" if source.single else "double"
        self.made: list[Function] = []
        self._counts: Counter[str] = Counter()
        self._parts: dict[tuple[int, bytes, bool], Function] = {}

    def whole(self, region: Region, gradients: bool) -> Function:
        """The function of the file."""
        source, name = self.source, self.source.name
        start: list[str] = []
        for home in ("inputs", "parameters"):
            start += copied(len(found := source.positions[0][home]), f"numbers[{self.at(found)}]", f"{home}[index]")
        if source.parameters is not None and len(source.parameters):
            start.insert(0, f"const {self.real} *const parameters = {name}_parameters;")
        end = copied(len(source.order), "gradients[index]", f"slopes[{self.at(source.order)}]")
        seeded = gradients and "seeds" in source.names
        given = ["inputs", *(["parameters"] if source.parameters is None else []), *(["seeds"] if seeded else [])]
        last = self._straight(region.last, "result", region.last.reads, region.size, gradients, source, seeded)
        lines, work = self._region(region, gradients, last, len(source.outputs), start, end)
        takes_work = work > STACK or source.work
        lines = lines if takes_work else [f"    {self.real} work[{work}];", *lines]
        results = ["outputs", "gradients"] if gradients else ["outputs"]
        return Function(name if gradients else f"{name}_value", given, results, work, takes_work, lines)

    def _straight(
        self,
        part: Straight,
        what: str,
        reads: Integers,
        size: int,
        gradients: bool,
        source: Source | None = None,
        seeded: bool = True,
    ) -> Function:
        """The function of a program on an array of so many numbers.

        Args:
            part: with its programs.
            what: it is, for its name.
            reads: which of the numbers its inputs are.
            size: how many numbers there are.
            gradients: whether it gives the gradients of those.
            source: that of the file, if its outputs are those of the file.
            seeded: whether it takes the gradients of its results.
        """
        if source is None:
            count = part.results
            source = self.source._replace(outputs=np.arange(count), constants=np.zeros(count))
        program = part.gradients if gradients else part.value
        positions = np.full(size, -1)
        positions[reads] = program.inputs[: len(reads)]
        seeds = program.seeds if gradients and seeded else no_integers()
        given = {"inputs": positions, "parameters": no_integers(), "seeds": seeds}
        own = source._replace(order=np.arange(len(reads)), names={}, parameters=np.zeros(0), work=True)
        name = self._name(f"{what}_gradients" if gradients else what)
        self.made += functions_of(own, name, program, given, self.tables, self.functions)
        return self.made[-1]

    def part(self, region: Region, what: str, reads: Integers, size: int, gradients: bool) -> Function:
        """The function of a part on the numbers around it, which are so many."""
        key = id(region), reads.tobytes(), gradients  # equal parts of several decisions are one region
        if key not in self._parts:
            if region.steps:
                last = self._straight(region.last, "result", region.last.reads, region.size, gradients)
                start = copied(region.given, "numbers[index]", f"inputs[{self.at(reads)}]")
                end = copied(region.given, "gradients[index]", "slopes[index]")
                lines, work = self._region(region, gradients, last, region.last.results, start, end)
                names = (["inputs", "seeds"], ["outputs", "gradients"]) if gradients else (["inputs"], ["outputs"])
                self.made.append(
                    Function(self._name(f"{what}_gradients" if gradients else what), *names, work, True, lines)
                )
            else:
                self._straight(region.last, what, reads[region.last.reads], size, gradients)
            self._parts[key] = self.made[-1]
        return self._parts[key]

    def at(self, numbers: Integers) -> str:
        """The index of a number, for the index of these."""
        first = int(numbers[0]) if len(numbers) else 0
        if (numbers == first + np.arange(len(numbers))).all():
            return f"index + {first}" if first else "index"
        return f"{self.tables.name(numbers)}[index]"

    def _name(self, what: str) -> str:
        self._counts[what] += 1
        return f"{self.source.name}_{what}_{self._counts[what]}"

    def _region(
        self, region: Region, gradients: bool, last: Function, count: int, start: list[str], end: list[str]
    ) -> tuple[list[str], int]:
        """The lines of a region with steps, whose last program has so many results, and how much work memory they take.

        Start are the lines that fetch what is given, and end those that hand on the gradients.
        """
        calls = _Calls(self, region, last)
        arrays, work = [f"{self.real} *const numbers = work;"], region.size
        forwards: list[str] = []
        backwards: list[str] = []
        for number, step in enumerate(region.steps, 1):
            is_loop, kept = len(step.decided.state) > 0, f"kept_{number}" if gradients else ""
            forwards += calls.before(step) + (calls.loop(step, number, kept) if is_loop else calls.choice(step))
            if not gradients:
                continue
            back = calls.loop_back(step, number, kept) if is_loop else calls.choice_back(step)
            backwards = back + calls.before_back(step) + backwards
            if is_loop:
                arrays.append(f"{self.real} *const {kept} = work + {work};")
                rows = _ROWS if step.decided.limit is None else step.decided.limit
                work += rows * len(step.decided.results)
        sizes = {"slopes": region.size, "next": calls.most, "found": calls.most}
        for name in ("slopes", "next", "found") if gradients else ("next",):
            arrays.append(f"{self.real} *const {name} = work + {work};")
            work += sizes[name]
        if calls.work:
            arrays.append(f"{self.real} *const rest = work + {work};")
        lines = [*arrays, "int failed = 0;", *start, *forwards, calls.line(last, "seeds", "outputs")]
        if gradients:
            lines += copied(region.size, "slopes[index]", "0.0") + calls.added(region.last.reads)
            lines += backwards + end
        lines += ["if (failed) {", *inside(copied(count, "outputs[index]", "NAN")), "}"]
        return inside(lines), work + calls.work


class _Calls:
    """The lines that call the parts of a region, and the function of its last program.

    Attributes:
        most: how many results or gradients a part gives at most.
        work: how much work memory one takes at most.
    """

    def __init__(self, writer: Deciding, region: Region, last: Function) -> None:
        self._writer, self._size = writer, region.size
        self._all = np.arange(region.size)
        self.most, self.work = len(region.last.reads), last.work

    def line(self, function: Function, seeds: str, outputs: str) -> str:
        names = {"inputs": "numbers", "seeds": seeds, "outputs": outputs, "gradients": "found"}
        arguments = [names[name] for name in [*function.given, *function.results]]
        return f"{function.name}({', '.join([*arguments, *(['rest'] if function.takes_work else [])])});"

    def added(self, reads: Integers) -> list[str]:
        """The lines that add the gradients that a function has given to those of the numbers."""
        return copied(len(reads), f"slopes[{self._writer.at(reads)}]", "found[index]", "+=")

    def _value(self, part: Region, what: str, reads: Integers) -> str:
        function = self._writer.part(part, what, reads, self._size, False)
        self.most, self.work = max(self.most, part.last.results), max(self.work, function.work)
        return self.line(function, "", "next")

    def _back(self, part: Region, what: str, reads: Integers, seeds: str) -> list[str]:
        given = reads if part.steps else reads[part.last.reads]
        if not len(given):
            return []
        function = self._writer.part(part, what, reads, self._size, True)
        self.most, self.work = max(self.most, len(given)), max(self.work, function.work)
        return [self.line(function, seeds, "next"), *self.added(given)]

    def before(self, step: Step) -> list[str]:
        """The lines that compute what a decision needs."""
        if step.before is None:
            return []
        targets = f"numbers[{self._writer.at(step.targets)}]"
        return [self._value(step.before, "needed", self._all), *copied(len(step.targets), targets, "next[index]")]

    def before_back(self, step: Step) -> list[str]:
        """The same backwards. What these numbers give to others is in their gradients once, so they begin again."""
        if step.before is None:
            return []
        slopes, count = f"slopes[{self._writer.at(step.targets)}]", len(step.targets)
        seeds = f"next + {step.before.last.results}"
        self.most = max(self.most, 2 * step.before.last.results)
        lines = copied(count, f"next[index + {count}]", slopes) + copied(count, slopes, "0.0")
        return lines + self._back(step.before, "needed", self._all, seeds)

    def choice(self, step: Step) -> list[str]:
        """The lines of a choice."""
        then, otherwise = ([self._value(*each)] for each in self._branches(step))
        results = copied(len(step.decided.results), f"numbers[{self._results(step)}]", "next[index]")
        return [*self._either(step, then, otherwise), *results, *self._failing(step)]

    def choice_back(self, step: Step) -> list[str]:
        """The same backwards."""
        then, otherwise = (self._back(*each, f"slopes + {step.decided.results[0]}") for each in self._branches(step))
        return self._either(step, then, otherwise)

    @staticmethod
    def _branches(step: Step) -> Iterator[tuple[Region, str, Integers]]:
        return zip(step.parts, ("then", "otherwise"), step.decided.reads, strict=True)

    @staticmethod
    def _either(step: Step, then: list[str], otherwise: list[str]) -> list[str]:
        test = f"if (numbers[{step.decided.predicate[0]}] != 0.0) {{"
        return [test, *inside(then), "} else {", *inside(otherwise), "}"]

    def _results(self, step: Step) -> str:
        return self._writer.at(step.decided.results)

    def _failing(self, step: Step) -> list[str]:
        """The lines that notice a result that is not a number: it might reach no result of the region."""
        result = f"numbers[{self._results(step)}]"
        return copied(len(step.decided.results), "failed", f"{result} != {result}", "|=")

    def loop(self, step: Step, number: int, kept: str) -> list[str]:
        """The lines of a loop, whose state is where its results are; kept is the array of its states, if any."""
        decided, count, made = step.decided, len(step.decided.results), f"count_{number}"
        (condition, body), (asked, read) = step.parts, decided.reads
        state, positions = f"numbers[{self._results(step)}]", f"{count} * {made}" if count > 1 else made
        lines = copied(count, state, f"numbers[{self._writer.at(decided.state)}]")
        lines += [f"int {made} = 0;"] if kept or decided.limit is not None else []
        lines += [
            "for (;;) {",
            *inside(self._failing(step)),  # the next iteration may need nothing that is not finite
            f"    {self._value(condition, 'condition', asked)}",
            "    if (next[0] == 0.0) {",
            "        break;",
            "    }",
        ]
        if decided.limit is not None:
            lines += [f"    if ({made} == {decided.limit}) {{", "        failed = 1;", "        break;", "    }"]
        if kept and decided.limit is None:
            begin = lines.index("for (;;) {")
            lines[begin:begin] = copied(count, f"{kept}[index]", state)
        elif kept:
            lines += inside(copied(count, f"{kept}[{positions} + index]", state))
        lines += [f"    {self._value(body, 'body', read)}", *inside(copied(count, state, "next[index]"))]
        lines += [f"    {made}++;"] if kept or decided.limit is not None else []
        return [*lines, "}"]

    def loop_back(self, step: Step, number: int, kept: str) -> list[str]:
        """The same backwards: the gradients of the state are where those of the results were."""
        decided, count, made = step.decided, len(step.decided.results), f"count_{number}"
        slopes, first = f"slopes[{self._results(step)}]", int(decided.results[0])
        seeds, positions = f"next + {count}", f"{count} * {made}" if count > 1 else made
        self.most = max(self.most, 2 * count)
        lines = [f"while ({made}-- > 0) {{"]
        if decided.limit is None:
            lines = [f"int at_{number}[{_ROWS}] = {{0}}, last_{number} = 0;", *lines]
            lines += inside(self._again(step, number, kept))
        else:
            lines += inside(copied(count, f"numbers[{self._results(step)}]", f"{kept}[{positions} + index]"))
        lines += inside(copied(count, f"next[index + {count}]", slopes) + copied(count, slopes, "0.0"))
        lines += [*inside(self._back(step.parts[1], "body", decided.reads[1], seeds)), "}"]
        handed = copied(count, f"slopes[{self._writer.at(decided.state)}]", f"slopes[index + {first}]", "+=")
        return lines + handed

    def _again(self, step: Step, number: int, kept: str) -> list[str]:
        """The lines that compute a state from the last one before it that is kept, and keep some between.

        As many are kept as there is room for. If that is not for all, half of the room is for those nearer to the end.
        """
        count, made, at, last = len(step.decided.results), f"count_{number}", f"at_{number}", f"last_{number}"
        state, body, read = f"numbers[{self._results(step)}]", step.parts[1], step.decided.reads[1]
        row = f"{count} * {last}" if count > 1 else last
        return [
            f"while ({at}[{last}] > {made}) {{",
            f"    {last}--;",
            "}",
            *copied(count, state, f"{kept}[{row} + index]"),
            f"const int first = {at}[{last}], missing = {made} - first, room = {_ROWS - 1} - {last};",
            "const int stride = missing <= room ? 1 : missing / (room / 2 + 1) + 1;",
            "for (int done = 1; done <= missing; done++) {",
            f"    {self._value(body, 'body', read)}",
            *inside(copied(count, state, "next[index]")),
            f"    if (done % stride == 0 && {last} < {_ROWS - 1}) {{",
            f"        {last}++;",
            f"        {at}[{last}] = first + done;",
            *inside(inside(copied(count, f"{kept}[{row} + index]", state))),
            "    }",
            "}",
        ]


_ROWS = 64  # states that a loop without a limit keeps


def inside(lines: Sequence[str]) -> list[str]:
    """Lines in a block."""
    return [f"    {line}" for line in lines]
