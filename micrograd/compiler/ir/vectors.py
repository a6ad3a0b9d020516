"""Vectors: long dot products stay whole, from the trace to the kernels.

A layer of 256 neurons that sees 32 images of 784 numbers is 6 million products, but only 8,192 dot products of
288 vectors. So a graph has the vectors once, and of each dot product only which two they are:

    elements   w0 w1 w2 | v0 v1 v2 | x0 x1 x2        vectors 0, 1 and 2
    owner      s   t                                 s = w . x, and t = v . x
    first      0   1
    second     2   2

The adjoint of such a vector is a linear combination of others: of x it is adjoint(s) * w + adjoint(t) * v. It
stays whole, too, as one row of nodes with its scalars and its vectors.

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
    def nodes(self) -> Integers:
        """The sums that they are parts of: a row of one for each."""
        return self.owner[:, None]

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


@dataclass(frozen=True)
class Combinations:
    """Linear combinations of equally many vectors of one length.

    Attributes:
        elements: the nodes of each vector, a row for each, of shape (vectors, length).
        nodes: the elements of each result, of shape (results, length).
        scalars: what the vectors are multiplied by, of shape (results, terms).
        vectors: which vectors they are, of the same shape.
    """

    elements: Integers
    nodes: Integers
    scalars: Integers
    vectors: Integers

    @property
    def length(self) -> int:
        """How many terms each node has."""
        return self.scalars.shape[1]

    @property
    def used(self) -> Integers:
        """All nodes that they are computed from, most of them once."""
        return np.concatenate([self.scalars.ravel(), self.elements.ravel()])

    def chosen(self, rows: Integers) -> Combinations:
        """Some of them."""
        return replace(self, nodes=self.nodes[rows], scalars=self.scalars[rows], vectors=self.vectors[rows])

    def reading(self, operands: Integers) -> Combinations:
        """The same of other nodes: those that each operand gives way to."""
        return replace(self, elements=operands[self.elements], scalars=operands[self.scalars])

    def merged(self, owners: Integers) -> Combinations:
        """The same as parts of other sums: those that each owner gives way to."""
        return replace(self, nodes=owners[self.nodes])

    def terms(self) -> tuple[Integers, Integers, Integers]:
        """Their terms one by one: owners, first factors and second factors."""
        owner = np.repeat(self.nodes.ravel(), self.length)
        scalars = np.repeat(self.scalars, self.nodes.shape[1], axis=0)
        return owner, scalars.ravel(), self.elements[self.vectors].transpose(0, 2, 1).ravel()

    def edges(self, start: int) -> tuple[Integers, Integers, int]:
        """The edges to what they are computed from, given the first stand-in; and how many stand-ins there are."""
        count, results = len(self.elements), len(self.nodes)
        vectors = np.repeat(np.arange(start, start + count), self.elements.shape[1])
        rows = np.arange(start + count, start + count + results)
        terms = np.repeat(rows, self.length)
        users = [self.nodes.ravel(), terms, terms, vectors]
        used = [np.repeat(rows, self.nodes.shape[1]), self.scalars.ravel(), start + self.vectors.ravel()]
        return np.concatenate(users), np.concatenate([*used, self.elements.ravel()]), count + results
