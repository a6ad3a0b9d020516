"""All or nothing: many attributes set in one step, which nothing can cut in two.

    commit(setting(parameters, "_data", numbers))

What can fail comes first: making the numbers and the plan. Carrying the plan out is one C call, which allocates
nothing. Python handles signals only between instructions of Python code, so Ctrl-C, or the error of a signal handler,
comes before it or after it.
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING, Any

from micrograd._support.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

commit: Callable[[Iterable[None]], None] = deque[None](maxlen=0).extend  # it draws a plan through, and keeps nothing


def setting(objects: Iterable[Any], name: str, values: Iterable[Any]) -> Iterator[None]:
    """The plan to set an attribute of each object to the value in the same position.

    Both may grow until the plan is carried out; where there are fewer values, the last objects stay as they are.
    """
    return map(setattr, objects, repeat(name), values)


# Held by whoever changes gradients that other threads may be changing, from reading them to writing them. Whoever
# holds it may take it again: a hand-written derivative may run another backpropagation, of a graph of its own.
changing_gradients = new_lock()


def keeping_gradients(nodes: Collection[Any]) -> Iterator[None]:
    """The plan that puts the gradients of nodes back; for use in a finally, under the lock above.

    It has been rehearsed: where there was room on the stack for this, there is room to carry it out.
    """
    gradients = [node._grad for node in nodes]
    commit(setting(nodes, "_grad", gradients))
    return setting(nodes, "_grad", gradients)


ABOVE = 1 << 40  # more than a node has uses


class Traversal:
    """The backpropagation that is running, if any.

    Attributes:
        undo: the plan that gives the leaves their gradients back.
        floor: counts of uses up to ``floor`` are stale: a traversal failed and could not clear them. They mean
            none.
    """

    undo: Iterator[None] | None = None
    floor = 0


traversal = Traversal()
