"""Programs of many rows, made from those of a few: so the first call takes as long for a million rows as for 5,000.

    fast(x)      x has 100,000 rows

    outlines     what the function does to arrays of 100,000, 320, 336 and 368 rows: does it do the same to all?
    traces       with the first 320, 336 and 368 rows of the arguments, each with its program
    program      what that is for 100,000 rows, if the three differ by the number of rows alone

If any of this fails, the function is traced for all rows, as one with few rows is. A function must be traced for 16
rows more to see what grows, as arrays begin at multiples of 8 numbers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.containers import Assembled
from micrograd.compiler.calling.boundary import shapes_of
from micrograd.compiler.calling.specialise import Compiled, Specialised
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.structure import Structure, is_leaf, is_result, parts_of
from micrograd.compiler.ir.extrapolated import UnlikeRowsError, extrapolated, is_same
from micrograd.compiler.numbers import part_of, taken
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.compiler.tracing.outline import OutlineError, outline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.numbers import Floats, Integers

_LOG = logging.getLogger("micrograd")
FEWEST_ROWS = 4096  # of fewer, one trace takes no longer than three
_FEW, _STEP = 320, 16
_MOST_PARTS = 1000  # of a list or a dict among the arguments
_MOST_NUMBERS = 1 << 27  # of a program; of a larger one, iterations of mg.vmap go through memory that is used again


class _OfRows(Specialised):
    """The programs of a function for many rows.

    Args:
        few: those for a few rows.
        sizes: how many rows these have.
        size: how many there are.
        given: the arguments.
        in_full: makes the programs by a trace for all rows.
    """

    def __init__(
        self,
        few: Sequence[Specialised],
        sizes: Sequence[int],
        size: int,
        given: Structure,
        in_full: Callable[[], Specialised],
    ) -> None:
        vars(self).update(vars(few[-1]))
        self._few, self._sizes, self._rows, self._in_full = few, sizes, size, in_full
        self._traced_in_full: Specialised | None = None
        self.shapes = shapes_of(self._function, given)
        told = [(each.values, each.wanted, each._nodes, each.remarks) for each in few]
        self.values, self.wanted, self._nodes, self.remarks = self._of_all(told)
        self.results: Any = _Results.of_rows(self._of_all([_Results.told(each) for each in few]), few[-1])
        self.requires_grad = [self.is_differentiable] * len(self.results.kinds)
        self._compiled, self._size = {}, (-1, 0)
        if few[-1]._under_no_grad is few[-1]:
            self._under_no_grad = self
        gradients = self.is_differentiable and len(self.results.kinds) == 1
        self._compiled[gradients] = self._extrapolated(gradients)

    def _of_all(self, things: list[Any]) -> Any:
        return extrapolated(self._sizes, things, self._rows)

    def compiled(self, gradients: bool) -> Compiled:
        """A program that can be run; it is made once."""
        if gradients not in self._compiled:
            try:
                self._compiled[gradients] = self._extrapolated(gradients)
            except UnlikeRowsError:
                return super().compiled(gradients)
        return self._compiled[gradients]

    def _extrapolated(self, gradients: bool) -> Compiled:
        made = [each._made(gradients) for each in self._few]
        program = self._of_all([each.thing for each in made])
        if program.size > _MOST_NUMBERS:
            raise UnlikeRowsError("much memory")
        effects = self._of_all([each.effects for each in made])
        ready = run_stages(made[-1]._replace(thing=program, effects=effects), "compile", self._request)
        return self._that_runs(self._described(program, ready), ready)

    @property
    def graph(self) -> Made:  # type: ignore[override]  # that of other programs is made when they are
        """What else is asked for is made of: the graph of a trace for all rows."""
        if self._traced_in_full is None:
            self._traced_in_full = self._in_full()
        return self._traced_in_full.graph

    def own_size(self) -> int:
        """About how many bytes it has."""
        return sum(each.own_size() for each in self._few) + 8 * sum(
            compiled.program.size for compiled in self._compiled.values()
        )


@dataclass
class _Results:
    """How the results of a function are made of the outputs of its program, as Results does it, for many rows.

    Attributes:
        kinds: for each output, float; or None for a single Value.
        has_values: whether there is one.
        outputs: which leaf of the result is which output.
    """

    kinds: list[Any]
    has_values: bool
    outputs: list[int | None]
    _result: Any

    @staticmethod
    def told(special: Specialised) -> tuple[int, Any]:
        """How many outputs there are, and the result with the numbers of outputs in the place of symbols.

        Raises:
            UnlikeRowsError: if there is something else than floats in it, or a single Value.
        """
        results = special.results
        kinds = set(results.kinds)
        if kinds != {float} and results.kinds != [None]:
            raise UnlikeRowsError("results of several kinds")
        outputs, leaves = iter(results.outputs), iter(special.result.leaves)
        return len(results.kinds), _told(special.result.nested, outputs, leaves)

    @classmethod
    def of_rows(cls, told: tuple[int, Any], special: Specialised) -> _Results:
        """Those for all rows."""
        count, result = told
        has_values = special.results.has_values
        return cls([None if has_values else float] * count, has_values, special.results.outputs, result)

    def of(self, numbers: Floats, nodes: Sequence[Any]) -> Any:
        """What the function returns.

        Args:
            numbers: the outputs.
            nodes: a Value for each output that is one.
        """
        return _filled(self._result, nodes if self.has_values else numbers)


@dataclass(frozen=True)
class _Output:
    """One number in a result."""

    number: int


@dataclass(frozen=True)
class _Array:
    """An array of numbers in a result.

    Attributes:
        outputs: which outputs these are, in its shape; -1 for numbers that are known.
        known: these, in order.
    """

    outputs: Integers
    known: Floats

    @cached_property
    def _part(self) -> Any:
        return part_of(self.outputs.ravel())

    def of(self, numbers: Floats) -> Floats:
        """The array, a copy."""
        made = taken(numbers, self._part).reshape(self.outputs.shape)
        if len(self.known):
            made[self.outputs < 0] = self.known
        return made


@dataclass(frozen=True)
class _Assembled:
    """A result that is made of arrays, such as a sparse matrix."""

    assemble: Any
    parts: list[Any]


def _told(item: Any, outputs: Iterator[Any], leaves: Iterator[Any]) -> Any:
    """A result with _Outputs and _Arrays in it, from which output each of its leaves is."""
    kind = type(item)
    if kind in (list, tuple):
        return kind([_told(part, outputs, leaves) for part in item])
    if kind is dict:
        return {name: _told(part, outputs, leaves) for name, part in item.items()}
    if kind is Assembled:
        return _Assembled(item.assemble, [_told(part, outputs, leaves) for part in item.parts])
    if is_leaf(item):
        output, leaf = next(outputs), next(leaves)
        return leaf if output is None else _Output(output)
    parts = parts_of(item)
    if parts is None:
        return item
    pairs = list(zip(islice(outputs, len(parts)), islice(leaves, len(parts)), strict=True))
    known = [leaf for output, leaf in pairs if output is None]
    if not is_result(item) or any(type(leaf) is not float for leaf in known):
        raise UnlikeRowsError("an array of other numbers than floats")
    numbers = np.array([-1 if output is None else output for output, _ in pairs], dtype=np.int64)
    return _Array(numbers.reshape(item.shape), np.array(known))


def _filled(told: Any, found: Any) -> Any:
    kind = type(told)
    if kind is _Output:
        return found.item(told.number) if isinstance(found, np.ndarray) else found[told.number]
    if kind is _Array:
        return told.of(found)
    if kind is _Assembled:
        return told.assemble([_filled(part, found) for part in told.parts])
    if kind in (list, tuple):
        return kind([_filled(part, found) for part in told])
    if kind is dict:
        return {name: _filled(part, found) for name, part in told.items()}
    return told


def of_rows(function: Callable[..., Any], given: Structure, make: Callable[..., Specialised]) -> Specialised:
    """The programs of a function for these arguments, from those for a few rows of them if that can be.

    Args:
        function: the function.
        given: the arguments.
        make: makes the programs by a trace, for arguments; with ``in_lanes`` if these stand for others with more rows.
    """
    size = max(_lengths(given.nested), default=0)
    if size < FEWEST_ROWS:
        return make(given)
    few = _FEW + size % _STEP
    sizes = [few, few + _STEP, few + 3 * _STEP]
    reached = ClosedOver([("", function), *((type(item).__name__, item) for item in given.objects)])
    try:
        arguments = [_cut(given.nested, size, count) for count in (size, *sizes)]
        whole, *parts = [outline(function, *each) for each in arguments]
        if not is_same(extrapolated(sizes, parts, size), whole) or not reached.is_current():
            raise OutlineError("another number of rows is another program")
        made = [_whole(make(Structure(each), in_lanes=True)) for each in arguments[1:]]
        return _OfRows(made, sizes, size, given, lambda: make(given))
    except Exception as error:  # one of the function's own comes again
        _LOG.debug("%r is traced for all of %d rows: %r", function, size, error)
        if not reached.is_current():
            reached.put_back()
        return make(given)


def _whole(special: Specialised) -> Specialised:
    """Programs that are no others at the next call, of one part, and not to be checked.

    Raises:
        UnlikeRowsError: if they are something else.
    """
    if special.maps or special.decisions or special.questions or special.is_outdated() or special._request.verify:
        raise UnlikeRowsError("programs in parts, that change, or that are to be checked")
    return special


def _lengths(nested: Any) -> Iterator[int]:
    """How many rows the arrays of floats among arguments have."""
    if isinstance(nested, (list, tuple, dict)) and len(nested) <= _MOST_PARTS:
        for part in nested.values() if isinstance(nested, dict) else nested:
            yield from _lengths(part)
    elif type(nested) is np.ndarray and nested.ndim:
        yield len(nested)


def _cut(nested: Any, size: int, count: int) -> Any:
    """The arguments with the first rows of the arrays that have as many as there are.

    Raises:
        UnlikeRowsError: if there are arrays of something else than floats, or long lists.
    """
    kind = type(nested)
    if kind in (list, tuple, dict):
        if len(nested) > _MOST_PARTS:
            raise UnlikeRowsError("a long list")
        if kind is dict:
            return {name: _cut(part, size, count) for name, part in nested.items()}
        return kind([_cut(part, size, count) for part in nested])
    if not isinstance(nested, np.ndarray) or not nested.ndim or len(nested) != size:
        return nested
    if kind is not np.ndarray or nested.dtype != np.float64:
        raise UnlikeRowsError("arrays of other numbers than floats")
    return nested[:count]
