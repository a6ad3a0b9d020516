"""A source file of C and its header, made of the programs of a function.

Both programs, for the value and for the value with its gradients, are functions of the same file, and have its tables
and small functions in common.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from micrograd.compiler.backends.c.decisions import Deciding
from micrograd.compiler.backends.c.formulas import Functions, has_c
from micrograd.compiler.backends.c.functions import functions_of
from micrograd.compiler.backends.c.memory import GIVEN, Tables
from micrograd.compiler.passes.lists import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd.compiler.backends.c.functions import Function, Source
    from micrograd.compiler.backends.c.memory import Name
    from micrograd.compiler.ir.regions import Region as Decisions

PASSES, HAS_CODE = NATIVE, has_c
MARK = "/* Written by micrograd: "
WIDTH = 120


class Files(NamedTuple):
    """The texts of a source file and its header."""

    source: str
    header: str


def files_of(source: Source, region: Decisions | None = None) -> Files:
    """The source file and the header.

    Args:
        source: what the file is made of.
        region: what there is in place of the programs, if some decisions are left to them.

    Raises:
        NoCodeError: for a primitive that cannot be written in C.
    """
    real = "float" if source.single else "double"
    tables, functions = Tables(source.name, source.single), Functions(source.name, source.single)
    parts: list[Function] = []
    if region is not None:
        writer = Deciding(source, tables, functions)
        made = [writer.whole(region, gradients) for gradients in ([False, True] if len(source.order) else [False])]
        parts = writer.made
    else:
        made = []
        for end, program, positions in zip(("_value", ""), source.programs, source.positions, strict=False):
            *others, function = functions_of(source, source.name + end, program, positions, tables, functions)
            parts += others
            made.append(function)
    apart = f"static {functions.apart()} void" if parts else ""
    code = [
        f"{MARK}{source.name}.c",
        "",
        *_described(source, made),
        "*/",
        "",
        "#include <math.h>",
        "",
        f'#include "{source.name}.h"',
        "",
    ]
    table = f"{source.name}_parameters"
    if source.parameters is not None and any(table in line for each in (*parts, *made) for line in each.lines):
        code += ["/* The parameters. */", *tables.define(table, source.parameters)]
    for pattern in source.patterns:
        for table, numbers in pattern.tables():
            code += [line.removeprefix("static ") for line in tables.define(table, numbers)]
    of_words = functions.of_words()  # which may need functions of its own
    code += [*tables.lines, *functions.lines, *of_words]
    for each in parts:
        code += [f"{apart} {each.name}({each.parameters(real)})", "{", *each.lines, "}", ""]
    code += _FINITE.replace("NAME", source.name).replace("double", real).split("\n")
    for each in made:
        code += [f"void {each.name}({each.parameters(real)})", "{", *each.lines, "}", ""]
        code += _checked(each, source, real)
    header = _header(source, made, real)
    return Files("\n".join(wrapped(code)) + "\n", "\n".join(wrapped(header)) + "\n")


def _checked(function: Function, source: Source, real: str) -> list[str]:
    """The function that says whether all results are finite."""
    finite = (f"{source.name}_finite({source.name.upper()}_{home.upper()}, {home})" for home in function.results)
    return [
        f"int {function.name}_checked({function.parameters(real)})",
        "{",
        f"    {function.name}({function.arguments});",
        f"    return {' && '.join(finite)} ? 0 : 1;",
        "}",
        "",
    ]


_FINITE = """\
static int NAME_finite(int count, const double *numbers)
{
    for (int index = 0; index < count; index++) {
        if (!isfinite(numbers[index])) {
            return 0;
        }
    }
    return 1;
}
"""


def _described(source: Source, functions: Sequence[Function]) -> list[str]:
    """The comment at the start of a file."""
    lines = [f"   {line}" for line in wrap(comment(source.title), WIDTH - 4)]
    for home in (*GIVEN, "outputs", "gradients"):
        parts = source.names.get(home, [])
        if not parts:
            continue
        total = sum(part.size for part in parts)
        lines += ["", f"   {home}: {total:,} numbers" if total > 1 else f"   {home}: 1 number"]
        lines += [f"       {_range(part):<12} {comment(part.title)}{_shape(part.shape)}" for part in parts]
    return lines


def _range(part: Name) -> str:
    return f"[{part.start}]" if part.size == 1 else f"[{part.start}..{part.start + part.size - 1}]"


def _shape(shape: tuple[int, ...]) -> str:
    return f", {' x '.join(map(str, shape))}" if len(shape) > 1 else ""


def comment(text: str) -> str:
    """A text that stays inside of a comment, on one line.

    >>> comment('*/ system("rm"); /*')
    '* / system("rm"); / *'
    """
    plain = ascii(text)[1:-1].replace("\\'", "'") if not text.isascii() or not text.isprintable() else text
    for sign in ("*/", "/*", "??"):
        while sign in plain:
            plain = plain.replace(sign, " ".join(sign))
    return plain.strip()[:400].rstrip("\\ ")


def _header(source: Source, functions: Sequence[Function], real: str) -> list[str]:
    guard = source.name.upper()
    lines = [f"{MARK}{source.name}.h", "", f"   How to call what is in {source.name}.c, which says what is what."]
    lines += ["", *_HOW.splitlines(), "*/", "", f"#ifndef {guard}_H", f"#define {guard}_H", ""]
    counts = {home: sum(part.size for part in source.names.get(home, [])) for home in (*GIVEN, "outputs", "gradients")}
    lines += [f"#define {guard}_{home.upper()} {count}" for home, count in counts.items() if count or home == "outputs"]
    for each in functions:
        kind = "_VALUE_WORK" if each.name.endswith("_value") else "_WORK"
        lines.append(f"#define {guard}{kind} {max(each.work, 1) if each.takes_work else 0}")
    lines += ["", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    for pattern in source.patterns:
        starts, columns = (name for name, _ in pattern.tables())
        text = (
            f"{pattern.title}: row r has the entries from {starts}[r] to {starts}[r + 1] - 1, in the columns {columns}"
        )
        lines += [*(f"{'   ' if number else ''}{line}" for number, line in enumerate(wrap(f"/* {text}. */", 110)))]
        lines += [f"extern const int {name}[{numbers.size}];" for name, numbers in pattern.tables()] + [""]
    for each in functions:
        what = "the outputs alone" if each.name.endswith("_value") else "the outputs and their gradients"
        lines += [f"/* Computes {what}. */", f"void {each.name}({each.parameters(real)});", ""]
        lines += [
            "/* The same; returns 0 if all results are finite, and 1 if not, as where Python raises an error. */",
            f"int {each.name}_checked({each.parameters(real)});",
            "",
        ]
    return [*lines, "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard}_H */"]


_HOW = """\
   Arrays must not overlap. Nothing is allocated or kept between calls, so threads may call at the same time, each with
   arrays of its own. A work array, where one is an argument, has as many numbers as the macro says; what is in it
   before and after a call does not matter.

   Sums of up to eight terms are computed in the order of the program, so the results are those of Python bit for bit
   where the compiler keeps products apart from sums (-ffp-contract=off) and has the same math library. The order in
   longer sums may differ, and exponentials, logarithms and hyperbolic tangents in loops: by some units in the last
   place. Do not compile with -ffast-math: then infinities and NaNs are not found."""


def wrapped(lines: Iterable[str]) -> list[str]:
    """The lines, where longer ones are continued on the next."""
    found = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        while len(line) > WIDTH and (cut := line.rfind(" ", len(indent) + 1, WIDTH)) > 0:
            found.append(line[:cut])
            line = indent + line[cut + 1 :]
        found.append(line)
    return found
