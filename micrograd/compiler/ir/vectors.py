"""Vectors: long dot products stay whole, from the trace to the kernels.

A layer of 256 neurons that sees 32 images of 784 numbers is 6 million products, but only 8,192 dot products of
288 vectors. So a graph has the vectors once, and of each dot product only which two they are:

    elements   w0 w1 w2 | v0 v1 v2 | x0 x1 x2        vectors 0, 1 and 2
    owner      s   t                                 s = w . x, and t = v . x
    first      0   1
    second     2   2

The adjoint of such a vector is a linear combination of others: of x it is adjoint(s) * w + adjoint(t) * v. Each of its
elements is a dot product, too: of (adjoint(s), adjoint(t)) and (w0, v0), of the former and (w1, v1), and so on.

Edges would be as many as the products. They lead through a stand-in for each vector instead: a dot product is computed
from two stand-ins, and each of these from the elements of its vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Integers

Rows: TypeAlias = "Sequence[tuple[int, ...]]"


@dataclass(frozen=True)
class Dots:
    """Dot products of vectors of one length.

    Attributes:
        elements: the nodes of each vector, a row for each, of shape (vectors, length).
        owner: for each dot product the sum that it is a part of.
        first: which vector one of its factors is.
        second: and which the other one.
    """

    elements: Integers
    owner: Integers
    first: Integers
    second: Integers

    @staticmethod
    def of(rows: Rows, owner: Integers, factors: Integers) -> Dots:
        """The dot products of rows: two for each owner, of shape (2, owners). They come in the order of their use."""
        uses, number = np.arange(factors.size), np.full(len(rows), factors.size)
        number[factors.ravel()[::-1]] = uses[::-1]  # the first use of each row is the last that is written
        used = np.flatnonzero(number < factors.size)
        used = used[np.argsort(number[used])]
        number[used] = uses[: len(used)]
        chosen = [rows[row] for row in used.tolist()]
        elements = np.fromiter(chain.from_iterable(chosen), np.int64).reshape(len(used), -1)
        return Dots(elements, owner, *number[factors])

    @property
    def length(self) -> int:
        """How many terms each has."""
        return self.elements.shape[1]

    @property
    def used(self) -> Integers:
        """All nodes that they are computed from, most of them once."""
        return self.elements.ravel()

    def chosen(self, rows: Integers) -> Dots:
        """Some of them."""
        return replace(self, owner=self.owner[rows], first=self.first[rows], second=self.second[rows])

    def reading(self, operands: Integers) -> Dots:
        """The same of other nodes: those that each operand gives way to."""
        return replace(self, elements=operands[self.elements])

    def merged(self, owners: Integers) -> Dots:
        """The same as parts of other sums: those that each owner gives way to."""
        return replace(self, owner=owners[self.owner])

    def highest(self, levels: Integers) -> Integers:
        """The highest level of what each dot product is computed from."""
        of_vectors = levels[self.elements].max(axis=1)
        return np.maximum(of_vectors[self.first], of_vectors[self.second])

    def terms(self) -> tuple[Integers, Integers, Integers]:
        """Their terms one by one: owners, first factors and second factors."""
        owner = np.repeat(self.owner, self.length)
        return owner, self.elements[self.first].ravel(), self.elements[self.second].ravel()

    def edges(self, start: int) -> tuple[Integers, Integers, int]:
        """The edges to what they are computed from, given the first stand-in; and how many stand-ins there are."""
        count = len(self.elements)
        vectors = np.repeat(np.arange(start, start + count), self.length)
        users, used = [self.owner, self.owner, vectors], [start + self.first, start + self.second, self.used]
        return np.concatenate(users), np.concatenate(used), count
