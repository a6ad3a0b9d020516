"""Layout: where the numbers of a program lie in its buffer.

A layout only grows. Each stretch of numbers begins where the one before it ends, and constants that are
there already are not put there again:

    >>> layout = Layout()
    >>> layout.stretch(3), layout.constant(np.array([0.5, 2.0])), layout.constant(np.array([0.5, 2.0]))
    (0, 3, 3)
    >>> layout.end
    5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from micrograd.compiler.numbers import Floats

_LINE = 8  # numbers in a cache line


class Layout:
    """Where the numbers of a program lie in its buffer.

    Attributes:
        end: where the next stretch begins; in the end, how many numbers the buffer has.
        constants: where runs of constants begin, and what they are, as Program has them.
        arrays: where each stretch begins, and how many positions it has: the arrays of the program.
    """

    def __init__(self) -> None:
        self.end = 0
        self.constants: list[tuple[int, Floats]] = []
        self.arrays: list[tuple[int, int]] = []
        self._known: dict[bytes, int] = {}

    def stretch(self, count: int) -> int:
        """The start of a new stretch of so many positions."""
        start = self.end
        if count:
            self.arrays.append((start, count))
        self.end += count
        return start

    def stretch_in_lines(self, count: int) -> int:
        """The same; a stretch of a cache line and more begins with a line."""
        if count >= _LINE:
            self.end = -(-self.end // _LINE) * _LINE
        return self.stretch(count)

    def whole_lines(self) -> int:
        """How many numbers there are; of a line and more, the lines are filled up."""
        return self.end if self.end < _LINE else -(-self.end // _LINE) * _LINE

    def constant(self, numbers: Floats) -> int:
        """The start of a stretch that holds these numbers."""
        content = np.ascontiguousarray(numbers).tobytes()  # so that 0 is not -0, and NaN is NaN
        if content not in self._known:
            self._known[content] = self.stretch(numbers.size)
            self.constants.append((self._known[content], np.frombuffer(content)))
        return self._known[content]
