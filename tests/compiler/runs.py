"""How often a function runs, and what a compiled one gives without running it.

A function prints into Runs, as what is printed is not watched by a compiled function.
"""

from weakref import WeakKeyDictionary

import micrograd as mg

_TIMES = WeakKeyDictionary()  # and no attribute, which would be watched where a function reads all of them


class Runs:
    """A file that counts what is written to it: ``print(end="", file=runs)``."""

    def write(self, _):
        _TIMES[self] = self.times + 1

    @property
    def times(self):
        return _TIMES.get(self, 0)


def compiled_only(function, *arguments, backend="numpy"):
    """What a compiled function gives at its second call; an error if that ran eagerly."""

    def refused(*arguments):
        raise AssertionError("it runs eagerly")

    fast = mg.compile(function, backend=backend)
    fast(*arguments)
    fast.function = refused
    return fast(*arguments)
