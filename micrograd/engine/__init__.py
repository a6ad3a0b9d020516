"""The engine: what a Value is, and how backpropagation runs.

Everything that one expression and its ``backward()`` run is in seven modules. Read them in this order: primitives.py,
composites.py, primitive.py, node.py, value.py, backward.py, commit.py. docs/engine.md says what each is for, and what
the others are.
"""

import sys

from micrograd.engine import applying, copying
from micrograd.engine.freeing import free_in_turns
from micrograd.engine.value import Value

free_in_turns(sys.platform)

__all__ = ["Value", "applying", "copying"]
