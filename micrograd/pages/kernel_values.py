"""The kernels of a program, run on Values: each number that a kernel computes is a Value that remembers how.

Of a small program every term is a Value. In a large one, the sums of a kernel are

    entry 3 of a kernel  =  number 3 of one Value, which stands for all terms of the kernel

as the results of a compiled function stand on the Value of its call; what they pass back to it are Seeds, and it hands
all of it on at once.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.program import Reduction, Take
from micrograd.contexts.scope import block_on_top
from micrograd.engine.array_calls import Seeds
from micrograd.engine.primitive import Primitive
from micrograd.engine.value import Value
from micrograd.functional import maximum
from micrograd.pages.passes import Element

if TYPE_CHECKING:
    from collections.abc import Container

    from micrograd.compiler.ir.program import Access, Kernel, Program, Segment
    from micrograd.compiler.numbers import Floats, Integers

# The number of the entry stands where that of the kernel would: there is none
ENTRY = Primitive("entry", "entry", float, lambda gradient, out, number: Seeds(gradient, int(number)))


def shape_of(kernel: Kernel) -> str:
    """The shape of the results of a kernel, and how many terms each has; nothing for one result of one term."""
    if kernel.rows * kernel.columns == 1:
        return f"{kernel.terms:,} terms" if kernel.terms > 1 else ""
    shape = f"{kernel.rows:,} × {kernel.columns:,}" if kernel.rows > 1 else f"{kernel.columns:,} numbers"
    return f"{shape}, {kernel.terms:,} terms each" if kernel.terms > 1 else shape


class KernelValues:
    """The numbers of a program as Values.

    Args:
        program: that the kernels are of.
        inputs: their numbers.
        given: those of the inputs that are Values, by their places in the buffer.
        is_large: whether one Value stands for all terms of a kernel.

    Attributes:
        results: by place in the buffer, the results of the call that kernels are to make.
        made: for each of these, the Value that was made in its place.
        elements: of the Values that kernels made, where in its kernel each is.
        made_of: what a number was made of that remembers nothing, as no gradient flows through it: a comparison, say.
        is_new: whether anything was made.
    """

    def __init__(self, program: Program, inputs: Floats, given: dict[int, Value], is_large: bool) -> None:
        self._numbers = program.fill(np.zeros(program.size))
        self._numbers[program.inputs[: len(inputs)]] = inputs
        self._values = given.copy()
        self._old = {*given.values()}
        self._is_large = is_large
        self.results: dict[int, list[Value]] = {}
        self.made: dict[Value, Value] = {}
        self.elements: dict[Value, Element] = {}
        self.made_of: dict[Value, tuple[Primitive, list[Value]]] = {}
        self.is_new = False

    def add(self, kernel: Any, complete: list[int]) -> None:
        """Run a kernel, with which the results at these places are complete."""
        targets = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel().tolist()
        made = self._made_by(kernel)
        self._values.update(zip(targets, made, strict=True))
        self._numbers[targets] = [value._data for value in made]
        for place in complete:
            self._take_over(place)
        shape = shape_of(kernel)
        for number, place in enumerate(targets):
            if (value := self._values[place]) not in self._old and value.requires_grad:
                self.elements.setdefault(value, Element(shape, divmod(number, kernel.columns)))

    def add_the_rest(self) -> None:
        """Complete the results that no kernel writes: the function gives what it was given."""
        for place in self.results:
            self._take_over(place)

    def _take_over(self, place: int) -> None:
        """Let the results at a place be made as what is there now, and be there for kernels to come."""
        value = self.at(place)
        if value in self._old or value in self.made:
            value = value + 0.0  # a copy: it stays what it is, too
        else:
            self.is_new |= value._scope is not None
        for result in self.results[place]:
            if result not in self.made:
                self.made[result] = value
                self._values[place] = result

    def at(self, place: int) -> Value:
        """The Value at a place of the buffer; a constant where no kernel has written."""
        if place not in self._values:
            self._values[place] = Value(float(self._numbers[place]), requires_grad=False)
        return self._values[place]

    def _made_by(self, kernel: Any) -> list[Value]:
        if isinstance(kernel, Reduction):
            if self._is_large and kernel.terms > 1:
                return self._sums_at_once(kernel)
            parts = [self._terms(kernel, part) for part in kernel.segments]
            rows = [[term for part in row for term in part] for row in zip(*parts, strict=True)]
            self._place_terms(kernel, rows)
            return [maximum(*terms) if kernel.largest else reduce(add, terms) for terms in rows]
        if isinstance(kernel, Take):
            indices = self._numbers[kernel.index.positions(kernel.rows, kernel.columns, 1)].ravel()
            elements = kernel.elements.positions(kernel.rows, kernel.columns, kernel.terms)
            elements = elements.reshape(-1, kernel.terms)
            return [self.at(int(row[int(index)])) for index, row in zip(indices, elements, strict=True)]
        columns = [self._read(access, kernel, 1) for access in kernel.operands]
        operands = [[operand for (operand,) in row] for row in zip(*columns, strict=True)]
        made = [kernel.primitive(*row) for row in operands]
        self.made_of |= {
            value: (kernel.primitive, row) for value, row in zip(made, operands, strict=True) if value.is_leaf
        }
        return made

    def _place_terms(self, kernel: Reduction, rows: list[list[Value]]) -> None:
        """Say of the products that are terms of sums which of them they are."""
        is_made = [
            part.second is not None or part.coefficient != 1 for part in kernel.segments for _ in range(part.terms)
        ]
        if kernel.terms > 1:
            shape = shape_of(kernel)
            for result, row in enumerate(rows):
                for number, (term, made) in enumerate(zip(row, is_made, strict=True)):
                    if made and term.requires_grad:
                        self.elements[term] = Element(shape, (*divmod(result, kernel.columns), number))

    def _terms(self, kernel: Reduction, part: Segment) -> list[list[Value]]:
        """For each result of a reduction, the terms of a segment."""
        rows = self._read(part.first, kernel, part.terms)
        if part.second is not None:
            seconds = self._read(part.second, kernel, part.terms)
            rows = [[x * y for x, y in zip(*pair, strict=True)] for pair in zip(rows, seconds, strict=True)]
        return rows if part.coefficient == 1 else [[float(part.coefficient) * x for x in row] for row in rows]

    def _read(self, access: Access, kernel: Any, terms: int) -> list[list[Value]]:
        """What is at an index map: a row of terms for each result."""
        places = access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms).tolist()
        return [[self.at(place) for place in row] for row in places]

    def _sums_at_once(self, kernel: Reduction) -> list[Value]:
        """The results of a reduction, on one Value that stands for all of its terms."""
        terms = Terms(kernel, self._numbers)
        found = [self._values.get(place) for place in terms.places.tolist()]
        is_wanted = np.array([value is not None and value.requires_grad for value in found])
        operands = tuple(value for value, wanted in zip(found, is_wanted, strict=True) if wanted)
        results = terms.results().tolist()
        if not operands:
            return [Value(number, requires_grad=False) for number in results]
        whole: Any = Value(0.0)
        whole._primitive = AllTerms(kernel.kind, terms, is_wanted)
        whole._x, whole._y, whole._scope = operands, terms.numbers[is_wanted], block_on_top()
        self.elements[whole] = Element(shape_of(kernel))
        return [_entry(result, number, whole) for number, result in enumerate(results)]


def _entry(data: float, number: int, whole: Any) -> Value:
    """One result of a kernel, on the Value that stands for all of its terms."""
    node: Any = Value(data)
    node._primitive, node._first, node._x, node._scope = ENTRY, whole, float(number), whole._scope
    return node


class Terms:
    """The terms of a reduction, as places in what it reads.

    Args:
        kernel: the reduction.
        numbers: the buffer when it runs.

    Attributes:
        places: all that it reads, in the buffer.
        numbers: what is there.
        count: how many results there are.
    """

    def __init__(self, kernel: Reduction, numbers: Floats) -> None:
        def positions(access: Access, part: Segment) -> Integers:
            return access.positions(kernel.rows, kernel.columns, part.terms).reshape(-1, part.terms)

        is_read = np.zeros(len(numbers), dtype=bool)
        for part in kernel.segments:
            for access in part.factors:
                is_read[positions(access, part)] = True
        self.places = np.flatnonzero(is_read)
        self.numbers = numbers[self.places]
        self.count = kernel.rows * kernel.columns
        self._largest = kernel.largest
        self._parts = [
            (
                float(part.coefficient),
                [np.searchsorted(self.places, positions(each, part)) for each in part.factors],
            )
            for part in kernel.segments
        ]

    def results(self) -> Floats:
        """The sums of the terms, or the largest of them."""
        terms = np.concatenate([self._part(*part) for part in self._parts], axis=1)
        return terms.max(axis=1) if self._largest else terms.sum(axis=1)

    def gradients(self, seeds: Floats) -> Floats:
        """For gradients of the results, those of what is at the places."""
        found = np.zeros(len(self.places))
        weights = seeds[:, None]
        if self._largest:  # the first of several gets all of it, as where one maximum is taken of another
            terms = np.concatenate([self._part(*part) for part in self._parts], axis=1)
            weights = np.where(np.arange(terms.shape[1]) == terms.argmax(axis=1)[:, None], weights, 0.0)
        start = 0
        for coefficient, factors in self._parts:
            stop = start + factors[0].shape[1]
            own = weights[:, start:stop] if self._largest else weights
            for number, factor in enumerate(factors):
                contributions = np.broadcast_to(own * coefficient, factor.shape)
                if len(factors) == 2:
                    contributions = contributions * self.numbers[factors[1 - number]]
                found += np.bincount(factor.ravel(), contributions.ravel(), len(found))
            start = stop
        return found

    def _part(self, coefficient: float, factors: list[Integers]) -> Floats:
        """The terms of a segment: a row for each result."""
        product = self.numbers[factors[0]]
        if len(factors) == 2:
            product = product * self.numbers[factors[1]]
        return coefficient * product


class AllTerms(Primitive):
    """The primitive of a Value that stands for all terms of a kernel.

    Args:
        kind: of the kernel.
        terms: these.
        is_wanted: which of their places are those of the operands.
    """

    __slots__ = ("_is_wanted", "_terms")

    def __init__(self, kind: str, terms: Terms, is_wanted: Any) -> None:
        super().__init__("all_terms", kind, float)
        self._terms, self._is_wanted = terms, is_wanted

    def receivers(self, node: Any) -> list[Any]:
        """The operands: gradients flow to each."""
        return list(node._x)

    def contributions(self, node: Any, gradient: Any, useful: Container[Any] | None = None) -> list[tuple[Any, float]]:
        """What each operand is given, for the gradients that the results have passed on."""
        seeds = np.zeros(self._terms.count)
        for number, result in gradient.parts():
            if result is not None:
                seeds[result] += number
        found = self._terms.gradients(seeds)[self._is_wanted]
        return list(zip(node._x, found.tolist(), strict=True))
