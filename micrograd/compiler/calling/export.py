"""Exporting: a compiled function as a file of C, and which number is what in it.

The order in the file is that of the program: numbers of the arguments as they stand there, parameters as they lie in
the program's buffer, so that a layer's weights are one matrix. Gradients come in the same order, those of the arguments
first.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from inspect import signature
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd._support.containers import Assembled
from micrograd._support.files import write_atomically
from micrograd.compiler.backends.c.files import HAS_CODE, MARK, PASSES, comment, files_of
from micrograd.compiler.backends.c.formulas import MATH_H
from micrograd.compiler.backends.c.functions import Pattern, Source
from micrograd.compiler.backends.c.memory import Name
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.calling.boundary import number_of, shape_of_all
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.guards.parameter_names import values_by_name
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import no_integers
from micrograd.compiler.passes.lists import disabled_passes
from micrograd.compiler.passes.regions import region_of
from micrograd.compiler.tracing.source import Source as TracedSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from micrograd._support.files import StrPath
    from micrograd.compiler.backends.c.files import Files
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.ir.regions import Region
    from micrograd.compiler.numbers import Integers
    from micrograd.engine.value import Value

_LANGUAGE = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while main alignas "
    "alignof and asm bool catch class constexpr delete explicit export false friend mutable namespace new not nullptr "
    "operator or private protected public template this throw true try typeid typename using virtual xor"
)
_MATH = (
    "ceil cbrt copysign fdim fmax fmin frexp ilogb isinf isnan isnormal j0 j1 jn y0 y1 yn ldexp lgamma gamma logb "
    "lrint lround modf nan nearbyint nextafter remainder remquo rint round scalbn signbit signgam tgamma trunc NAN "
    "INFINITY HUGE_VAL"
)
_VARIABLES = "row column term step item index sum largest work inputs outputs gradients parameters seeds"
_KEYWORDS, _OF_MATH_H = frozenset(_LANGUAGE.split()), MATH_H | frozenset(_MATH.split())
_LOCALS = frozenset(_VARIABLES.split())
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_PLAIN = Backend("C", lambda program: program, PASSES, HAS_CODE)


def check_name(name: str) -> None:
    """Raise a ValueError where a function of C cannot have this name."""
    if not _IDENTIFIER.match(name) or not name.isascii():
        reason = "letters of English, digits and underscores, with a letter first"
    elif name in _KEYWORDS:
        reason = "no word of the language C or C++"
    elif name in _OF_MATH_H or name.removesuffix("f") in _OF_MATH_H or name.removesuffix("l") in _OF_MATH_H:
        reason = "no name that math.h has"
    elif name in _LOCALS:
        reason = "no name that the file has for something else"
    else:
        return
    raise ValueError(f'a function of C cannot be called {name!r:.80}: it takes {reason}. Write name="..."')


def export(
    function: Callable[..., Any],
    path: StrPath,
    arguments: tuple[Any, ...] = (),
    named: Mapping[str, Any] = MappingProxyType({}),
    *,
    name: str | None = None,
    overwrite: bool = False,
    **options: Any,
) -> list[str]:
    """Write the file and its header; see CompiledFunction.export for the options. Returns their paths.

    One option more is texts: what the file says of the function, under "", of arguments, under their names, and of
    outputs, under "outputs 0" and so on.
    """
    path = Path(os.fspath(path))
    if path.suffix != ".c":
        raise ValueError(f"export writes a file of C, whose name ends in .c, not {str(path)!r:.80}")
    name = path.stem if name is None else name
    check_name(name)
    targets = [path, path.with_name(f"{name}.h")]
    if not overwrite:
        for target in targets:
            _check_own(target)
    files = files_of(*_source(function, name, (arguments, dict(named)), **options))
    _write_both(targets, files)
    return [*map(str, targets)]


def _check_own(target: Path) -> None:
    """Raise where a file would be lost that export has not written."""
    if target.is_file():
        with target.open("rb") as file:
            start = file.read(len(MARK))
        if start != MARK.encode():
            raise ValueError(f"{target} was not written by export: it would be lost. overwrite=True replaces it")


def _write_both(targets: Sequence[Path], files: Files) -> None:
    """Write the header and the source: both, or neither."""
    source, header = targets
    old = header.read_bytes() if header.is_file() else None
    write_atomically(header, files.header.encode())
    try:
        write_atomically(source, files.source.encode())
    except BaseException:
        if old is None:
            header.unlink()
        else:
            write_atomically(header, old)
        raise


def _source(
    function: Callable[..., Any],
    name: str,
    given: tuple[tuple[Any, ...], dict[str, Any]],
    parameters: str = "table",
    precision: str = "float64",
    work: str = "auto",
    gradients: bool = True,
    disable: Sequence[str] = (),
    texts: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Source, Region | None]:
    """What the file is made of; see files_of."""
    for option, value, choices in (
        ("parameters", parameters, ("table", "argument")),
        ("precision", precision, ("float64", "float32")),
        ("work", work, ("auto", "argument")),
    ):
        if value not in choices:
            raise ValueError(f'{option} must be "{choices[0]}" or "{choices[1]}", not {value!r:.80}')
    structure = Structure.of_call(*given)
    special = Specialised(TracedSource(function, structure, takes_decisions=True), _PLAIN, disable)
    if not special.results.kinds:
        raise ValueError(f"{special.name} computes nothing from its arguments: there is nothing to export")
    count, leaves = len(special.values), structure.count()
    if len(special.results.kinds) == 1:  # its gradients by plain numbers, too
        special.want([*(i for i in special.wanted.tolist() if i < count), *range(count, count + leaves)])
    results = [*zip(special.result.leaves, special.results.outputs, strict=True)]
    is_differentiable = special.is_differentiable or len(special.decisions) > 0
    gradients = gradients and len(special.wanted) > 0 and (len(special.results.kinds) == 1 or is_differentiable)
    programs, region, request = [], None, _PLAIN.request("", disabled_passes(disable))
    if special.decisions:
        region = region_of(special.graph, special.decisions, special.needed, request, gradients)
        order = np.arange(count)
    else:
        programs = [special.program(wants) for wants in ([False, True] if gradients else [False])]
        order = np.argsort(programs[-1].inputs[:count], kind="stable")  # of parameters: as they lie
    rank = np.argsort(order)
    wanted = special.wanted
    keys = np.concatenate([leaves + rank[wanted[wanted < count]], wanted[wanted >= count] - count])
    in_file = np.argsort(keys, kind="stable")
    read = [special.values[number] for number in order.tolist()]
    inputs = [part._replace(title=texts.get(part.title, part.title)) for part in _named_arguments(function, *given)]
    unique = _unique([*inputs, *_named_parameters(function, read)], name)
    names = {"inputs": unique[: len(inputs)], "parameters": unique[len(inputs) :]}
    outputs, patterns = _named_results(special, name)
    if "outputs 0" in texts:
        titles = [texts[f"outputs {number}"] for number in range(len(results))]
        outputs = [Name("outputs", title, (), number, 1) for number, title in enumerate(titles)]
    if gradients:
        names["gradients"] = _named_gradients(names, keys[in_file].tolist(), leaves)
        if len(special.results.kinds) > 1:
            seeds = len(special.results.kinds)
            names["seeds"] = [
                Name("seeds", "the gradients of these numbers, of each that is computed", (seeds,), 0, seeds)
            ]
    names["outputs"] = outputs
    source = Source(
        name,
        texts.get("", _title(special, name)),
        [_PLAIN.after_own_passes(program, request) for program in programs],
        [_positions(program, count, order, leaves, "seeds" in names) for program in programs]
        or [{"inputs": count + np.arange(leaves), "parameters": order}],
        np.array([-1 if output is None else output for output in special.results.outputs]),
        np.array([number_of(leaf) if output is None else 0.0 for leaf, output in results]),
        (in_file if region is None else special.wanted[in_file]) if gradients else no_integers(),
        names,
        patterns,
        np.array([value.data for value in read]) if parameters == "table" else None,
        precision == "float32",
        work == "argument",
    )
    return source, region


def _positions(program: Program, count: int, order: Integers, leaves: int, seeded: bool) -> dict[str, Integers]:
    """The positions of what is given, in the order of the file."""
    given = program.inputs
    return {
        "inputs": given[count : count + leaves],
        "parameters": given[:count][order],
        "seeds": program.seeds if seeded else program.seeds[:0],
    }


def _title(special: Specialised, name: str) -> str:
    what = comment(special.name) if special.name != name else ""
    return f"The function {what or name}, exported from Python by micrograd."


def _named_arguments(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Name]:
    """The parts of the inputs: one for each argument with numbers."""
    try:
        bound = [*signature(function).bind(*arguments, **named).arguments]
        bound = bound if len(bound) == len(arguments) + len(named) else []
    except ValueError:  # some classes do not say
        bound = []
    found, start = [], 0
    texts = bound[: len(arguments)] or [f"argument_{number}" for number in range(len(arguments))]
    for text, item in [*zip(texts, arguments, strict=True), *named.items()]:
        size = Structure(item).count()
        if size:
            found.append(Name(text, text, shape_of_all(item, size), start, size))
        start += size
    return found


def _named_parameters(function: Callable[..., Any], values: Sequence[Value]) -> list[Name]:
    """The parts of the parameters: stretches of the arrays that the program has names for."""
    position: dict[Value, tuple[str, int, tuple[int, ...]]] = {}
    for text, array in values_by_name(function, [value for value in values if value.requires_grad]).items():
        for number, value in enumerate(array.flat):
            position[value] = text, number, array.shape
    labels = [value.label or "constants" for value in values]
    counts, seen = Counter(labels), Counter[str]()
    found: list[Name] = []
    before = ("", 0)
    for start, (value, label) in enumerate(zip(values, labels, strict=True)):
        text, number, shape = position.get(value, ("others", 0, ()))
        if text == "others":  # no variable leads to it
            text, number, shape = label, seen[label], (counts[label],) if counts[label] > 1 else ()
            seen[label] += 1
        if found and before == (text, number - 1):
            last = found.pop()
            found.append(
                last._replace(size=last.size + 1, shape=shape if last.size + 1 == prod(shape) else (last.size + 1,))
            )
        else:
            index = f"[{', '.join(map(str, np.unravel_index(number, shape)))}]" if number else ""
            found.append(Name(text, text + index, shape and (1,), start, 1))
        before = text, number
    return _together(found)


def _together(parts: Sequence[Name]) -> list[Name]:
    """Parts such as neurons.0.w, neurons.1.w ... as one, which is named neurons.w."""
    found: list[Name] = []
    rows = 1
    for part in parts:
        if found and (name := _continued(found[-1], part, rows)):
            last, rows = found.pop(), rows + 1
            title = f"{last.title.partition(' to ')[0]} to {part.title}"
            found.append(Name(name, title, (rows, *part.shape), last.start, last.size + part.size))
        else:
            found.append(part)
            rows = 1
    return found


def _continued(last: Name, part: Name, rows: int) -> str | None:
    """The name of both, if the one is the next after the other ones: of as many numbers, with the next index."""
    first, _, end = last.title.partition(" to ")
    before, after = (end or first).split("."), part.title.split(".")
    if len(before) != len(after) or last.size != rows * part.size:
        return None
    positions = [position for position, (x, y) in enumerate(zip(before, after, strict=True)) if x != y]
    numbers = [text for position in positions for text in (before[position], after[position]) if text.isdecimal()]
    if len(numbers) != 2 or len(positions) != 1 or int(numbers[1]) != int(numbers[0]) + 1:
        return None
    return ".".join(after[: positions[0]] + after[positions[0] + 1 :]) or "parameter"


def _named_results(special: Specialised, name: str) -> tuple[list[Name], list[Pattern]]:
    """The parts of the outputs, and the patterns of those that are sparse matrices."""
    nested = special.result.nested
    several = isinstance(nested, (list, tuple)) and any(
        isinstance(part, Assembled) or is_array(part) for part in nested
    )
    found: list[Name] = []
    patterns: list[Pattern] = []
    start = 0
    for number, part in enumerate(nested if several else [nested]):
        size = Structure(part, returned=True).count()
        title = f"part {number} of the result" if several else "the result"
        shape = shape_of_all(part, size)
        if isinstance(part, Assembled):
            matrix = part.assemble([np.zeros(size)])
            rows, columns = matrix.shape
            what = f"{title}, a sparse matrix of {rows} x {columns}"
            of_matrix = f"{name}_{len(patterns) + 1}" if patterns else name
            patterns.append(
                Pattern(of_matrix, f"outputs[{start}..{start + size - 1}], {what}", matrix.indptr, matrix.indices)
            )
            title, shape = what, (size,)
        found.append(Name("outputs", title, shape, start, size))
        start += size
    return [part for part in found if part.size], patterns


def _named_gradients(names: dict[str, list[Name]], keys: Sequence[int], leaves: int) -> list[Name]:
    """The parts of the gradients: those of the inputs that are wanted, and then those of the parameters."""
    given = [*names["inputs"], *(part._replace(start=part.start + leaves) for part in names["parameters"])]
    found, start = [], 0
    for part in given:
        size = sum(part.start <= key < part.start + part.size for key in keys)
        if size:
            shape = part.shape if size == part.size else (size,)
            found.append(part._replace(title=f"by {part.title}", shape=shape, start=start, size=size))
        start += size
    return found


def _unique(parts: Sequence[Name], name: str) -> list[Name]:
    """The parts with names that C can have, each another one; none is like those that the file makes up."""
    taken = {*_KEYWORDS, *_OF_MATH_H, *_LOCALS, name}
    found = []
    for part in parts:
        plain = re.sub(r"\W+", "_", part.name, flags=re.ASCII)[:40].strip("_")
        text = plain if _IDENTIFIER.match(plain) else f"v_{plain}"
        while text in taken or re.search(r"_\d+$", text) or text.startswith(f"{name}_"):
            text = f"v_{text}" if text.startswith(f"{name}_") else f"{text}_"
        taken.add(text)
        found.append(part._replace(name=text))
    return found
