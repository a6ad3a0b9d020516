"""The obvious tape (a Wengert list): each entry has its parents' indices and the local gradients."""

from __future__ import annotations

import math
from typing import Any


class Tape:
    """The entries in the order in which they were computed, and the gradients of the last backward."""

    def __init__(self) -> None:
        self.entries: list[tuple[tuple[int, ...], tuple[float, ...]]] = []
        self.gradients: list[float] = []

    def leaf(self, data: float) -> Variable:
        """A variable that nothing computed."""
        return self.record(data, (), ())

    def record(self, data: float, parents: tuple[int, ...], local: tuple[float, ...]) -> Variable:
        """A variable computed from others."""
        self.entries.append((parents, local))
        return Variable(self, len(self.entries) - 1, data)


class Variable:
    """A number and its position on the tape."""

    __slots__ = ("data", "index", "tape")

    def __init__(self, tape: Tape, index: int, data: float) -> None:
        self.tape, self.index, self.data = tape, index, data

    def __add__(self, other: Any) -> Variable:
        other = other if isinstance(other, Variable) else self.tape.leaf(other)
        return self.tape.record(self.data + other.data, (self.index, other.index), (1.0, 1.0))

    def __mul__(self, other: Any) -> Variable:
        other = other if isinstance(other, Variable) else self.tape.leaf(other)
        return self.tape.record(self.data * other.data, (self.index, other.index), (other.data, self.data))

    def __pow__(self, power: float) -> Variable:
        return self.tape.record(self.data**power, (self.index,), (power * self.data ** (power - 1),))

    def exp(self) -> Variable:
        data = math.exp(self.data)
        return self.tape.record(data, (self.index,), (data,))

    def log(self) -> Variable:
        return self.tape.record(math.log(self.data), (self.index,), (1 / self.data,))

    def relu(self) -> Variable:
        return self.tape.record(max(0.0, self.data), (self.index,), (float(self.data > 0),))

    def __neg__(self) -> Variable:
        return self * -1

    def __sub__(self, other: Any) -> Variable:
        return self + -other

    def __truediv__(self, other: Any) -> Variable:
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def backward(self) -> None:
        """Fill the tape's gradients, from this variable back."""
        entries = self.tape.entries
        self.tape.gradients = gradients = [0.0] * len(entries)
        gradients[self.index] = 1.0
        for index in range(self.index, -1, -1):
            gradient = gradients[index]
            parents, locals_ = entries[index]
            for parent, local in zip(parents, locals_):  # noqa: B905  # strict=True would cost time
                gradients[parent] += local * gradient

    @property
    def grad(self) -> float:
        """The gradient that the last backward gave."""
        return self.tape.gradients[self.index]
