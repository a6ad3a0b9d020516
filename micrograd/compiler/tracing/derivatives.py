"""Derivatives on a tape: the rules of primitives run on symbols, so gradients are recorded as all other operations are.

    0  input        x
    1  mul   0 0                 the gradient of 1 by 0:
    2  mul   1.0 0               what the rule of a product gives to its first operand
    3  mul   1.0 0               and to its second
    4  add   2 3

Gradients are reverse mode, from the end of the tape to its beginning; tangents are forward mode. A Jacobian takes the
mode with less work. Gradients of many operations are recorded at once; see gradients_in_lanes.py.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from functools import wraps
from itertools import compress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from micrograd._support.checks import are_all
from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.guards.sources import observing_again, resting
from micrograd.compiler.ir.entries import EQUAL, INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE, Called, Decided, Mapped, made_at
from micrograd.compiler.ir.equals import first_equals
from micrograd.compiler.tracing.array_gradients import gradient_of
from micrograd.compiler.tracing.colours import coloured, star_coloured
from micrograd.compiler.tracing.decisions import add_gradient, adjoint_of_scan, jacobian_of, tangents_of_scan
from micrograd.compiler.tracing.dependence import Cones, Dependence
from micrograd.compiler.tracing.gradients_in_lanes import GradientsInLanes
from micrograd.compiler.tracing.lanes import OF_LIBRARY
from micrograd.compiler.tracing.symbols import FloatSymbol, Symbol, is_plain
from micrograd.compiler.tracing.tape import Tape, tracing
from micrograd.engine import primitives
from micrograd.engine.differentiation import refuse_constant
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Mapping, Sequence

    from micrograd.compiler.ir.entries import Trace


AnyMethod = TypeVar("AnyMethod", bound="Callable[..., Any]")

_FEWEST_STEPS = 2000  # that gradients are written many at a time for
_AS_BEFORE = nullcontext()


def _unobserved(method: AnyMethod) -> AnyMethod:
    """A method inside of which only rules of derivatives may be code of the user."""

    @wraps(method)
    def unobserved(self: Derivatives, *arguments: Any) -> Any:
        with resting(self.tape.observer):
            return method(self, *arguments)

    return unobserved  # type: ignore[return-value]  # it has the same arguments


class Derivatives:
    """The derivatives of what is on a tape, written on it.

    Args:
        tape: the tape.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    @_unobserved
    def adjoints(self, root: Any, wanted: Collection[Any] | None, create_graph: bool) -> Any:
        """The gradients of a symbol, in reverse mode."""
        if not isinstance(root, Symbol) or wanted is None:
            return None
        positions = self._positions_of(wanted, create_graph)
        dependence = self.dependence([root], set(positions.values()))
        return self.gradients_of_one(root, dependence, _by_position(positions), create_graph)

    def gradients_of_one(
        self, root: Symbol, dependence: Dependence, values: Mapping[int, list[Any]], create_graph: bool
    ) -> dict[Any, Any]:
        """The gradients of a symbol by the Values at some positions, recorded in lanes where that is quicker."""
        found = None
        if not self.tape._has_iterations():
            found = self._in_lanes(Cones.of_one(dependence, root._position), dependence, values, create_graph)
        if found is None:
            return self.gradients(root._position, dependence, values, create_graph)
        _, positions, slopes = found
        return {value: slope for position, slope in zip(positions, slopes, strict=True) for value in values[position]}

    def _in_lanes(
        self, cones: Cones, dependence: Dependence, sources: Collection[int], create_graph: bool
    ) -> tuple[list[int], list[int], list[Symbol]] | None:
        """Rows, positions and gradients, recorded in lanes; None where that is not quicker."""
        if int(dependence.counts[cones.at].sum()) < (0 if self.tape.in_lanes else _FEWEST_STEPS):
            return None
        of_others = self.contributions_of_call, self._through_decision
        lanes = GradientsInLanes(self.tape, dependence, cones, self.contributions, *of_others)
        few = rows_in_use() if self.tape.in_lanes else None
        if not (lanes.are_wide if few is None else few.as_for_fewer(lanes.are_wide)):
            return None
        rows, positions, at = lanes.write(sources)
        if not create_graph and self.tape.as_floats:
            begin = self.tape.operations.append_block([primitives.detach], 1, len(at), [[at]])
            at = np.arange(begin, begin + len(at))
        kind = Symbol if create_graph else FloatSymbol
        return rows.tolist(), positions.tolist(), self.tape.symbols(at.tolist(), kind)

    @_unobserved
    def jacobian(self, outputs: Sequence[Any], inputs: Sequence[Any], create_graph: bool) -> list[Mapping[Any, Any]]:
        """For each output its gradients by the inputs: by forward mode, where there are fewer and that is less."""
        roots = [output for output in outputs if isinstance(output, Symbol)]
        if len(roots) > 1:
            self.tape._look_into_maps()
            self.tape.look_into_scans()
        positions = self._positions_of(inputs, create_graph)
        dependence = self.dependence(roots, set(positions.values()))
        of_rows, values = self._roots(outputs), _by_position(positions)
        cones = self._cones(of_rows, dependence)
        if len(inputs) < len(outputs) and dependence.is_large(of_rows, cones, len(inputs)):
            columns = self.tangents(outputs, [{value: 1.0} for value in inputs], create_graph)
            return [dict(zip(inputs, row, strict=True)) for row in zip(*columns, strict=True)]
        if len(outputs) == len(roots) == 1:
            return [self.gradients_of_one(roots[0], dependence, values, create_graph)]
        found = list[Any]({} for _ in outputs)
        for row, position, slope in zip(
            *self._row_by_row(of_rows, cones, dependence, values, create_graph), strict=True
        ):
            found[row].update(dict.fromkeys(values[position], slope))
        return found

    @_unobserved
    def sparse_entries(
        self, outputs: Sequence[Any], inputs: Sequence[Any], symmetric: bool
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The rows, columns and entries of a sparse Jacobian: row by row, or by coloured columns where that is less."""
        self.tape._look_into_maps()
        self.tape.look_into_scans()
        roots, positions = self._roots(outputs), self.tape.positions(inputs)  # copies, so each has its own
        written = self.tape._so_far()
        dependence = Dependence(list(roots.values()), set(positions), written, self._equal(written))
        cones = self._cones(roots, dependence)
        rows, least = dependence.rows(len(outputs), roots, cones, set(positions))
        colours, is_star = coloured(rows, least), False
        if symmetric and dependence.is_symmetric(rows, positions, OF_LIBRARY):
            most = least if colours is None else max(colours.values(), default=0)
            if (fewer := star_coloured(dict(zip(positions, rows, strict=True)), most)) is not None:
                colours, is_star = fewer, True
        if colours is None:
            found = self._row_by_row(roots, cones, dependence, positions, create_graph=False)
            how = "each by its own expression, as directions would be no less work"
        else:
            found = self._by_colours(outputs, inputs, rows, colours, positions)
            kind = "of a star colouring of the columns" if is_star else "of columns"
            how = f"by {len(set(colours.values())):,} directions, one for each colour {kind}"
        self.tape.remarks.append(f"Derivatives: {len(found[2]):,} entries of {len(outputs):,} rows, {how}")
        numbers: Any = np.zeros(1 + max(positions, default=0), dtype=np.int64)
        numbers[positions] = np.arange(len(positions))
        return found[0], numbers[np.array(found[1], dtype=np.int64)], found[2]

    def _roots(self, outputs: Sequence[Any]) -> dict[int, int]:
        """The positions of the outputs that are symbols, by their numbers."""
        if are_all(Symbol, outputs):
            return dict(enumerate(self.tape.positions(outputs)))
        return {row: self.tape.position(output) for row, output in enumerate(outputs) if isinstance(output, Symbol)}

    def _cones(self, roots: Mapping[int, int], dependence: Dependence) -> Cones | None:
        """The cones of several roots; None where iterations, calls or decisions are among the operations."""
        is_simple = len(roots) > 1 and not self.tape.decisions and not self.tape.maps
        return Cones.of(dependence, roots) if is_simple else None

    def _row_by_row(
        self,
        roots: Mapping[int, int],
        cones: Cones | None,
        dependence: Dependence,
        sources: Collection[int],
        create_graph: bool,
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The rows, positions and entries of a Jacobian, from the gradients of its outputs.

        Args:
            roots: the positions of the outputs, by their rows.
            cones: their cones, if these are known.
            dependence: the positions that gradients flow through.
            sources: the positions to differentiate by.
            create_graph: whether the entries are graphs.
        """
        if cones is not None and (found := self._in_lanes(cones, dependence, sources, create_graph)) is not None:
            return found
        rows, by, entries = list[int](), list[int](), list[Any]()
        values = {position: [position] for position in sources}
        for row, root in roots.items():
            slopes = self.gradients(root, dependence, values, create_graph)
            rows += [row] * len(slopes)
            by += slopes
            entries += slopes.values()
        return rows, by, entries

    def _by_colours(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        rows: Sequence[Sequence[int]],
        colours: Mapping[int, int],
        positions: Sequence[int],
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The same from a tangent for each colour; some entries of a Hessian from their mirror images."""
        directions: list[dict[Any, float]] = [{} for _ in set(colours.values())]
        for value, position in zip(inputs, positions, strict=True):
            if position in colours:
                directions[colours[position]][value] = 1.0
        tangents = self.tangents(outputs, directions, False)
        numbers, found = {position: number for number, position in enumerate(positions)}, []
        for number, row in enumerate(rows):
            of_colour = Counter(colours[position] for position in row)
            for position in row:
                mirrored = of_colour[colours[position]] > 1
                colour = colours[positions[number] if mirrored else position]
                slope = tangents[colour][numbers[position] if mirrored else number]
                if isinstance(slope, Symbol):
                    found.append((number, position, slope))
        return [row for row, _, _ in found], [position for _, position, _ in found], [slope for _, _, slope in found]

    def _positions_of(self, wanted: Collection[Any], create_graph: bool) -> dict[Any, int]:
        """The positions to differentiate by; a Value that the function has not read has none."""
        if any(map(is_plain, wanted)):
            _refuse_gradient()
        if not all(isinstance(value, Symbol) for value in wanted):
            self.tape.tells_apart = True  # an argument may be one of these Values
        found = {
            value: self.tape.position(value) if isinstance(value, Symbol) else self.tape.values.get(value)
            for value in wanted
        }
        positions = {value: position for value, position in found.items() if position is not None}
        applied = self.tape.operations.primitives
        if create_graph and any(
            applied[position] is INPUT and not self.tape._is_trained(position) for position in positions.values()
        ):
            refuse_constant("an argument of the compiled function")
        if any(
            made_at(self.tape, position) or (position not in self.tape._copies and applied[position] is not INPUT)
            for position in positions.values()
        ):
            _refuse_gradient()
        return positions

    def dependence(self, roots: Sequence[Symbol], sources: Collection[int]) -> Dependence:
        """The operations between sources and roots."""
        written = self.tape._so_far()
        return Dependence(self.tape.positions(roots), sources, written, self._equal(written))

    def _equal(self, written: Trace) -> Sequence[int]:
        """For each position, the first one that is equal to it.

        Where most operations were recorded in lanes, and many are new since the last time, it is quicker to compare all
        of them again. To do so each time would take the square of the number of derivatives.
        """
        if 2 * len(self.tape.operations) < 3 * self.tape.gone_through or not self.tape.operations.are_mostly_in_lanes:
            return self.tape._equals.of(written)
        self.tape.gone_through = len(self.tape.operations)
        return first_equals(written)[: self.tape.gone_through].tolist()

    def gradients(
        self, root: int, dependence: Dependence, values: Mapping[int, list[Any]], create_graph: bool
    ) -> dict[Any, Any]:
        """The gradients of the operation at a position by the Values at some positions, in reverse mode."""
        equal, written = dependence.equal, dependence.written
        last = equal[root]
        found: dict[int, Any] = {last: self.tape._symbol(self.tape.position(1.0), Symbol)}
        passed: list[Mapped | Decided] = []
        for position in reversed(dependence.order(last)):
            if dependence.passes_on(position) and position in found:
                made = made_at(self.tape, position)
                if isinstance(made, Called):
                    self._through_call(made, position, dependence, found)
                elif made is not None:
                    if not any(made is each for each in passed):  # its last result, before which all are complete
                        passed.append(made)
                        through: Any = self._through_map if isinstance(made, Mapped) else self._through_decision
                        through(made, dependence, found)
                else:
                    for operand, contribution in self.contributions(position, written, found[position], dependence):
                        add_gradient(found, equal[operand], contribution)
        slopes = {value: found[position] for position in found for value in values.get(position, ())}
        return slopes if create_graph else {value: self._number(slope) for value, slope in slopes.items()}

    def _number(self, slope: Any) -> Any:
        """A derivative as a plain number."""
        return self.tape.number_of(slope) if isinstance(slope, Symbol) else slope

    def contributions_of_call(self, called: Called, seeds: Sequence[Any], dependence: Dependence) -> list[Any]:
        """For each operand of a call the positions of its elements' contributions; None where no gradient flows to it.

        Args:
            called: the call.
            seeds: the positions of the gradients of its results, or floats.
            dependence: the positions that gradients flow through.
        """
        pairs = list(zip(called.is_given, called.operands, strict=True))
        needed = tuple(is_given and dependence.holds_any(operand) for is_given, operand in pairs)
        if called.function.is_gradient:  # what it is made of is written
            given = [seed if seed.dtype == float else self.tape.symbols_at(seed) for seed in seeds]
            made = called.function.rule(given, *self._symbols_of_call(called), needed)
            contributions = iter([self.tape.positions_in(each) for each in compress(made, needed)])
        else:
            function = gradient_of(called.function, needed)
            contributions = iter(self.tape._call(function, [*seeds, *called.results, *called.operands]))
        return [next(contributions) if wanted else None for wanted in needed]

    def _symbols_of_call(self, called: Called) -> tuple[list[Any], list[Any]]:
        """The results of a call and its operands, as arrays of symbols."""
        pairs = zip(called.is_given, called.operands, strict=True)
        operands = [self.tape.symbols_at(operand) if is_given else operand for is_given, operand in pairs]
        return list(map(self.tape.symbols_at, called.results)), operands

    def _through_call(self, called: Called, position: int, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add the contributions of a call to its operands. In reverse, the call comes after all of its results."""
        (hub,) = called.hub.tolist()
        if position != hub:
            found.setdefault(hub, None)
            return
        seeds = []
        for positions in called.results:
            slopes = [found.get(each, 0.0) for each in positions.ravel().tolist()]
            seed = np.array([self.tape.position(slope) for slope in slopes], dtype=np.int64).reshape(positions.shape)
            seeds.append(seed if any(isinstance(slope, Value) for slope in slopes) else np.zeros(positions.shape))
        equal = dependence.equal
        for positions, contributions in zip(
            called.operands, self.contributions_of_call(called, seeds, dependence), strict=True
        ):
            if contributions is None:
                continue
            for operand, at in zip(positions.ravel().tolist(), contributions.ravel().tolist(), strict=True):
                if (first := equal[operand]) in dependence:
                    add_gradient(found, first, self.tape._symbol(at, Symbol))

    def _through_map(self, mapped: Mapped, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add the contributions of iterations to what they read, by other iterations with a seed for each result."""
        equal = np.array(dependence.equal)
        is_source = np.append(np.zeros(dependence.begin, dtype=bool), dependence.inside)
        fixed, moving = equal[mapped.fixed], equal[mapped.moving]
        rows = mapped.results.T.tolist()
        own: dict[int, list[int]] = {}  # for each output with gradients, their positions
        common: dict[int, int] = {}  # the same of those that have one for all iterations, as those of a mean do
        for column, row in enumerate(rows):
            if any(position in found for position in row):
                own[column] = [self.tape.position(found.get(position, 0.0)) for position in row]
                if len(set(own[column])) == 1:
                    common[column] = own.pop(column)[0]
        for number, position in enumerate(mapped.sums.tolist(), len(rows)):
            if position in found:
                common[number] = self.tape.position(found[position])
        wanted = np.flatnonzero(is_source[fixed]).tolist(), np.flatnonzero(is_source[moving].any(axis=0)).tolist()
        trace, of_fixed, of_moving = _gradient_of_map(self.tape.observer, mapped, list(own), list(common), *wanted)
        seeds = np.array(list(own.values()), dtype=np.int64).reshape(len(own), len(moving)).T
        made = self.tape.add_map(
            trace,
            [*mapped.fixed.tolist(), *common.values()],
            np.concatenate([mapped.moving, seeds], axis=1),
            len(of_fixed),
        )
        pairs = [
            *zip(fixed[of_fixed].tolist(), made.sums.tolist(), strict=True),
            *zip(moving[:, of_moving].ravel().tolist(), made.results.ravel().tolist(), strict=True),
        ]
        for position, contribution_at in pairs:
            if is_source[position]:
                add_gradient(found, position, self.tape._symbol(contribution_at, Symbol))

    def _through_decision(self, decided: Decided, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add the contributions of a decision to what it reads."""
        if decided.is_scan:
            adjoint_of_scan(self.tape, decided, dependence, found)
            return
        reads = [
            position for position in decided.operands_of(decided.begin) if dependence.equal[position] in dependence
        ]
        rows = jacobian_of(self.tape, decided, reads)
        for position, row in zip(reads, rows, strict=True):
            first = dependence.equal[position]
            for result, slope in zip(decided.made, row, strict=True):
                if result in found and not (isinstance(slope, float) and slope == 0.0):
                    add_gradient(found, first, found[result] * slope)

    def _tangents_of_decision(self, decided: Decided, found: dict[int, dict[int, Any]]) -> None:
        """Add the tangents of all results of a decision, from those of what it reads."""
        if decided.is_scan:
            self.tape.look_into_scans()
            tangents_of_scan(self.tape, decided, found)
            return
        reads = [position for position in decided.operands_of(decided.begin) if position in found]
        rows = jacobian_of(self.tape, decided, reads)
        for number in sorted({number for position in reads for number in found[position]}):
            moving = [
                (found[position][number], row)
                for position, row in zip(reads, rows, strict=True)
                if number in found[position]
            ]
            for result, *slopes in zip(decided.made, *(row for _, row in moving), strict=True):
                terms = [tangent * slope for (tangent, _), slope in zip(moving, slopes, strict=True)]
                found.setdefault(result, {})[number] = sum(terms[1:], terms[0])

    @_unobserved
    def tangents(self, outputs: Sequence[Any], directions: Sequence[Mapping[Any, Any]], create_graph: bool) -> Any:
        """The tangents of symbols along each direction, in forward mode."""
        self.tape._look_into_maps()
        written = self.tape._so_far()
        positions = [
            output._position if isinstance(output, Symbol) else self.tape.values.get(output) for output in outputs
        ]
        found: dict[int, dict[int, Any]] = {}  # of each position, by the number of the direction
        for number, given in enumerate(directions):
            for value, tangent in given.items():  # what is given is by copies
                found.setdefault(value._position, {})[number] = self.tape._symbol(self.tape.position(tangent), Symbol)
        ends = [position for position in positions if position is not None]
        for position in Dependence(ends, set(found), written, range(len(self.tape.operations))).positions():
            operands = () if position in found else set(written.operands(position))
            moving = [(operand, found[operand]) for operand in operands if operand in found]
            source = made_at(self.tape, position) if moving else None
            if isinstance(source, Decided):
                self._tangents_of_decision(source, found)  # all of them, at the first one
                continue
            if isinstance(source, Called):
                self._tangents_of_call(source, found)  # at the call itself, which comes before its results
                continue
            for number in sorted({number for _, tangents in moving for number in tangents}):
                of_one = {operand: tangents[number] for operand, tangents in moving if number in tangents}
                if (tangent := self._tangent(position, written, of_one)) is not None:
                    found.setdefault(position, {})[number] = tangent
        of_outputs = [{} if position is None else found.get(position, {}) for position in positions]
        made = [[tangents.get(number, 0.0) for tangents in of_outputs] for number in range(len(directions))]
        if create_graph:
            return made
        return [list(map(self._number, tangents)) for tangents in made]

    def _tangents_of_call(self, called: Called, found: dict[int, dict[int, Any]]) -> None:
        """Add the tangents of all results of a call, from those of its operands.

        A rule is linear in the gradients of the results: so its own derivative by them gives the tangents.
        """
        given = zip(called.is_given, called.operands, strict=True)
        needed = [is_given and not found.keys().isdisjoint(each.ravel().tolist()) for is_given, each in given]
        seeds = []
        for positions in called.results:
            made: Any = self.tape.copies([1.0] * positions.size, called)
            seeds.append(self.tape.array(np.fromiter(made, object, positions.size).reshape(positions.shape)))
        contributions = called.function.rule(seeds, *self._symbols_of_call(called), needed)
        pairs = [
            (position, contribution)
            for positions, slopes in compress(zip(called.operands, contributions, strict=True), needed)
            for position, contribution in zip(positions.ravel().tolist(), np.ravel(slopes).tolist(), strict=True)
            if position in found
        ]
        leaves = [leaf for seed in seeds for leaf in seed.flat]
        results = np.concatenate([positions.ravel() for positions in called.results]).tolist()
        for number in sorted({number for position, _ in pairs for number in found[position]}):
            terms = [
                contribution * found[position][number] for position, contribution in pairs if number in found[position]
            ]
            total: Any = sum(terms[1:], terms[0])
            tangents = self.adjoints(total, leaves, True) if isinstance(total, Symbol) else {}
            for position, leaf in zip(results, leaves, strict=True):
                if leaf in tangents:
                    found.setdefault(position, {})[number] = tangents[leaf]

    def _tangent(self, position: int, written: Trace, found: Mapping[int, Any]) -> Any:
        """The tangent of the operation at a position, from those of its operands; None where no rule passes one on."""
        primitive, *operands = written.operations[position]
        if primitive is TAKE:
            elements = [found.get(element, 0.0) for element in written.tables[operands[1]]]
            return self.tape.take(elements, self.tape._symbol(operands[0], Symbol))
        if primitive is SUM_OF_PRODUCTS:
            start, *rows = operands
            first, second = (written.rows[row] for row in rows)
            pairs = list(zip(first, second, strict=True))
            moving = [(found[x], y) for x, y in pairs if x in found] + [(found[y], x) for x, y in pairs if y in found]
            if not moving:
                return found[start]
            factors = [self.tape._symbol(other, Symbol) for _, other in moving]
            return self.tape.sum_of_products([tangent for tangent, _ in moving], factors, found.get(start, -0.0))
        terms = [
            contribution
            for moving in dict.fromkeys(operands)
            if moving in found
            for _, contribution in self.contributions(position, written, found[moving], {moving})
        ]
        return sum(terms[1:], terms[0]) if terms else None

    def contributions(
        self, position: int, written: Trace, gradient: Any, wanted: Container[int]
    ) -> list[tuple[int, Any]]:
        """The contributions of the operation at a position to those of its operands that are wanted."""
        primitive, operands = written.operations.primitives[position], written.operands(position)
        if primitive is TAKE:
            index, equal = self.tape._symbol(written.operations.first[position], Symbol), self.tape.apply
            return [  # a negative index counts from the end, as in Python
                (element, gradient * (equal(EQUAL, index, float(n)) + equal(EQUAL, index, float(n - len(operands)))))
                for n, element in enumerate(operands)
                if element in wanted
            ]
        applied, first, literals = written.operations.primitives, written.operations.first, written.operations.numbers
        numbers = [literals[first[p]] if applied[p] is LITERAL else self.tape._symbol(p, Symbol) for p in operands]
        if primitive is SUM_OF_PRODUCTS:
            half = 1 + len(operands) // 2
            factors = [1.0, *numbers[half:], *numbers[1:half]]
            return [(p, gradient * factor) for p, factor in zip(operands, factors, strict=True) if p in wanted]
        if not primitive.derivatives:
            raise ValueError(f"{primitive.name} has no derivative")
        output = self.tape._symbol(position, Symbol)
        rules = zip(operands, primitive.derivatives, strict=True)
        asked = [(p, rule) for p, rule in rules if rule is not None and p in wanted]
        with _AS_BEFORE if primitive in OF_LIBRARY else observing_again(self.tape.observer):
            return [(p, rule(gradient, output, *numbers)) for p, rule in asked]


def _by_position(positions: Mapping[Any, int]) -> dict[int, list[Any]]:
    """The Values at each position."""
    found: dict[int, list[Any]] = {}
    for value, position in positions.items():
        found.setdefault(position, []).append(value)
    return found


def _refuse_gradient() -> NoReturn:
    refuse("a gradient by a result, or by a plain number,", "Differentiate a function of it: see mg.grad.")


def _gradient_of_map(
    observer: Any,
    mapped: Mapped,
    own: Sequence[int],
    common: Sequence[int],
    fixed: Sequence[int],
    moving: Sequence[int],
) -> tuple[Trace, list[int], list[int]]:
    """The backward pass of one iteration.

    Args:
        observer: looks for sources.
        mapped: the iterations.
        own: which outputs have a gradient for each iteration.
        common: which outputs have one gradient for all iterations.
        fixed: which of the shared inputs need gradients.
        moving: which of the other inputs do.

    Returns:
        The trace, whose further inputs are those gradients; and which inputs get gradients. Its first outputs are those
        of the inputs that are not shared.
    """
    given, tape = mapped.trace, Tape()
    tape.observer = observer
    tape.operations = given.operations.copy()
    tape.tables, tape.rows = ({part: n for n, part in enumerate(parts)} for parts in (given.tables, given.rows))
    outputs = [*own, *common]
    sources = {(group, n): given.inputs[group][n] for group, chosen in enumerate((fixed, moving)) for n in chosen}
    of_tape = Derivatives(tape)
    with tracing(tape):
        seeds = [tape.input("seed") for _ in outputs]
        terms = [seed * tape._symbol(given.outputs[n], Symbol) for seed, n in zip(seeds, outputs, strict=True)]
        root: Any = sum(terms[1:], terms[0])
        dependence = of_tape.dependence([root], sources.values())
        found = of_tape.gradients(root._position, dependence, _by_position(sources), True)
        of_fixed, of_moving = (
            [n for n in chosen if (group, n) in found] for group, chosen in enumerate((fixed, moving))
        )
        made = [tape.position(found[1, n]) for n in of_moving] + [tape.position(found[0, n]) for n in of_fixed]
    positions = [seed._position for seed in seeds]
    inputs = [*given.inputs[0], *positions[len(own) :]], [*given.inputs[1], *positions[: len(own)]]
    trace = tape.trace(inputs, made)._replace(checked=given.checked)
    tape.finish()
    return trace, of_fixed, of_moving


Tape.derivatives = Derivatives
