"""Counting: the numbers of the iterations of loops over many rows, of which a few are traced.

    for i in range(1, len(xs)):
        height = height + xs[i - 1] * sin(0.01 * i)

As an index, the number of an iteration is an int. Where it is computed with, it is one of many known numbers, as if the
loop went through a list of them: else another number of rows would be another program.
"""

from __future__ import annotations

import operator
from typing import Any

from micrograd.loops import rows_in_use


class Counted:
    """The number of an iteration, times an int and plus another one: an index, or a number to compute with.

    Args:
        counted: the numbers of all iterations.
        times: what each is multiplied by.
        plus: what is added then.
    """

    __class__ = property(lambda self: int)  # isinstance asks for it

    def __init__(self, counted: range, times: int = 1, plus: int = 0) -> None:
        self.counted, self.times, self.plus = counted, times, plus

    def changed(self, times: int, plus: int) -> Counted:
        """One with another factor, to which something else is added."""
        raise NotImplementedError

    def itself(self) -> Any:
        """What stands for the number of the iteration."""
        raise NotImplementedError

    def number(self) -> Any:
        """The same number, to compute with."""
        found = self.itself()
        found = found if self.times == 1 else found * self.times
        return found + self.plus if self.plus else found

    def __add__(self, other: Any) -> Any:
        is_int = type(other) is int
        return self.changed(self.times, self.plus + other) if is_int else self.number() + number_of(other)

    def __radd__(self, other: Any) -> Any:
        return self + other if type(other) is int else other + self.number()

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) is int else self.number() - number_of(other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other if type(other) is int else other - self.number()

    def __mul__(self, other: Any) -> Any:
        is_int = type(other) is int
        return self.changed(self.times * other, self.plus * other) if is_int else self.number() * number_of(other)

    def __rmul__(self, other: Any) -> Any:
        return self * other if type(other) is int else other * self.number()

    def __neg__(self) -> Any:
        return self * -1

    def __truediv__(self, other: Any) -> Any:
        return self.number() / number_of(other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.number()

    def __pow__(self, other: Any) -> Any:
        return self.number() ** number_of(other)

    def __rpow__(self, other: Any) -> Any:
        return other ** self.number()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        return getattr(ufunc, method)(*map(number_of, inputs), **settings)


class Count(Counted):
    """The number of an iteration, where a few are traced.

    Args:
        own: the number of the iteration.
        counted, times, plus: see Counted.
    """

    def __init__(self, own: int, counted: range, times: int = 1, plus: int = 0) -> None:
        super().__init__(counted, times, plus)
        self._own, self.value = own, own * times + plus

    def changed(self, times: int, plus: int) -> Count:
        """One with another factor, to which something else is added."""
        return Count(self._own, self.counted, times, plus)

    def itself(self) -> Any:
        """What stands for the number of the iteration."""
        rows: Any = rows_in_use()
        return rows.numbers(self.counted)[self._own - self.counted.start]


def number_of(x: Any) -> Any:
    """What is computed with in the place of the number of an iteration; anything else as it is."""
    return x.number() if issubclass(type(x), Counted) else x


def counts_of(counted: range) -> list[Count]:
    """The numbers of iterations."""
    return [Count(own, counted) for own in counted]


def _of_value(name: str) -> Any:
    """A method of ints that only looks at the number."""
    method = getattr(operator, name)
    return lambda self, *others: method(self.value, *others)


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__index__"):
    setattr(Count, _name, _of_value(_name))
Count.__bool__ = lambda self: self.value != 0  # type: ignore[attr-defined]
