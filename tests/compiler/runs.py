"""Runs: how often a function runs. It prints into this, as what is printed is not watched by a compiled function."""

from weakref import WeakKeyDictionary

_TIMES = WeakKeyDictionary()  # and no attribute, which would be watched where a function reads all of them


class Runs:
    """A file that counts what is written to it: ``print(end="", file=runs)``."""

    def write(self, _):
        _TIMES[self] = self.times + 1

    @property
    def times(self):
        return _TIMES.get(self, 0)
