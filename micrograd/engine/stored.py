"""Leaves whose numbers and gradients are stored in arrays, which may be newer than the Values.

A training step replaces one array by another, and touches no Value. Code that reads a Value brings it up to date
first:

    LATER: [reference to a storage]      # its arrays are newer than its Values
    looked_at(parameter)                 # its Values get their numbers and gradients; LATER is empty again

A stored leaf has its storage in ``_y``; other leaves have () there. storage.py makes the arrays; this module does not
import it.
"""

from __future__ import annotations

from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from micrograd.engine.commit import changing_gradients

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from weakref import ref

# Weak references: to what puts a recorder in use, as long as any thread, task or copied context has it (see
# recorder.py); and to the storages that are newer than their Values. Where it is empty, the operators look at nothing
# else, which is faster than to ask a ContextVar.
SPECIAL: list[ref[Any]] = []
LATER: list[ref[Any]] = []  # the storages alone


def note(reference: Any) -> None:
    """Note that a storage is newer than its Values: first for the operators, which look at LATER only then."""
    for noted in (SPECIAL, LATER):
        if reference not in noted:
            noted.append(reference)


def drop(reference: Any) -> None:
    """Note that a storage is not newer than its Values, or that nothing refers to it any more."""
    for noted in (LATER, SPECIAL):
        if reference in noted:
            noted.remove(reference)


def bring_up_to_date() -> None:
    """Give all Values the numbers and the gradients that are stored for them."""
    for storage in filter(None, [reference() for reference in LATER]):
        storage.write_back()


def looked_at(node: Any) -> None:
    """Bring a Value up to date, as somebody looks at it."""
    if node.is_leaf and (storage := node._y):  # another thread may take the leaf out of it meanwhile
        storage.write_back()


def set_on(leaf: Any, name: str, number: Any) -> None:
    """Set the number or the gradient of a leaf that may be stored."""
    if not leaf._y:
        setattr(leaf, name, number)
        return
    with changing_gradients:
        if (storage := leaf._y) and storage.is_read():
            storage.forget()
        setattr(leaf, name, number)


# Not an attribute of the class Value: when a class changes, the interpreter drops what it has cached for it.
_version: list[object] = [object()]


def requires_grad_was_set() -> None:
    """Note that requires_grad of some Value was set."""
    _version[0] = object()


def requires_grad_version() -> object:
    """An object that is replaced whenever requires_grad is set, so that caches can tell that they are stale."""
    return _version[0]


class Temporary:
    """Whether Values temporarily have other numbers or gradients, which storages must not keep.

    Set it inside a try, after ``changing``, and reset it by the plan that undoes the rest.
    """

    on = False


temporary = Temporary()


@contextmanager
def changing(leaves: Iterable[Any]) -> Iterator[None]:
    """Set numbers or gradients of leaves inside: their storages are written back before, and read again after."""
    with changing_gradients:
        forget_stored(leaves)
        yield


def forget_stored(leaves: Iterable[Any]) -> None:
    """Read the numbers and gradients of leaves from the Values again. The caller holds changing_gradients."""
    for leaf in leaves:  # in half the time of any(), which matters where there are few
        if leaf._y:
            for storage in set(map(storage_of, leaves)) - {()}:
                if storage.is_read():
                    storage.forget()
            return


storage_of = attrgetter("_y")  # a leaf's, where an array has its number; else ()
