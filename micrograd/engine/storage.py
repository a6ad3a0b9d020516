"""Storage: the numbers and the gradients of many leaves, in two arrays.

    storage = Storage.of(parameters)
    commit(storage.replacing(data=storage.data() - 0.1 * storage.grad()))   # no Value is touched
    parameters[0].data                                                       # all of them are brought up to date

A compiled function reads the numbers of its parameters from the first array, and its ``backward`` adds to the second.
An optimiser's ``zero_grad`` and ``step`` replace the arrays. So a step of training runs no Python for each parameter.
The Values are brought up to date when somebody looks at one of them, and what is set on a Value is read from there.
"""

from __future__ import annotations

from itertools import chain, repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from micrograd.engine.commit import changing_gradients, commit, setting, traversal
from micrograd.engine.primitive import LEAF
from micrograd.engine.stored import LATER, changing, drop, note, requires_grad_version, storage_of, temporary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.engine.value import Value

_number_of, _gradient_of = attrgetter("_data"), attrgetter("_grad")
_primitive_of = attrgetter("_primitive")


_ZERO = bytes(8)  # of a float


class Storage:
    """Leaves, and two arrays of their numbers and their gradients.

    Each array is as new as the Values, or newer (then this storage is in LATER), or None where the Values may be newer.
    An array is never changed: another one takes its place.

    Attributes:
        leaves: the Values, in order; none where another storage has taken them over.
        users: those who read and replace the arrays; the next storage has no leaves that only others have used.
    """

    __slots__ = ("__weakref__", "_data", "_data_is_newer", "_grad", "_grad_is_newer", "_reference", "leaves", "users")

    def __init__(self, leaves: list[Value]) -> None:
        self.leaves = leaves
        self.users: WeakSet[Stored] = WeakSet()
        self._data: Any = None
        self._grad: Any = None
        self._data_is_newer = self._grad_is_newer = False
        self._reference = ref(self, drop)

    @classmethod
    def of(cls, leaves: Sequence[Value]) -> tuple[Storage, Any]:
        """The storage of some leaves, each given once, and where in its arrays they are; see ``position``.

        Leaves that are in no storage, or in several, are put into one, with all that is in those and still used.
        """
        with changing_gradients:
            found = set(map(storage_of, leaves))
            if len(found) == 1 and (storage := found.pop()):
                return storage, storage.position(leaves)
            old: list[Storage] = list(filter(None, found))
            stored = list(chain.from_iterable(storage.leaves for storage in old))
            users = [user for storage in old for user in storage.users]
            used = set(chain.from_iterable(user.leaves for user in users))
            members = list(dict.fromkeys(chain(leaves, filter(used.__contains__, stored))))
            for storage in old:
                storage.write_back()
            made = cls(members)
            made.users.update(users)
            none: list[Value] = []
            released = setting(stored, "_y", repeat(()))
            commit(chain(released, setting(members, "_y", repeat(made)), setting(old, "leaves", repeat(none))))
            return made, made.position(leaves)

    def position(self, leaves: Sequence[Value]) -> Any:
        """Where in the arrays these leaves are; None if they are all there are, in order."""
        if len(leaves) == len(self.leaves) and all(map(is_, leaves, self.leaves)):
            return None
        import numpy as np

        number = {id(leaf): index for index, leaf in enumerate(self.leaves)}
        return np.fromiter((number[id(leaf)] for leaf in leaves), np.int64, len(leaves))

    def data(self) -> Any:
        """The numbers, to be read only."""
        import numpy as np

        with changing_gradients:
            data = self._data
            if data is None:
                data = np.fromiter(map(_number_of, self.leaves), np.float64, len(self.leaves))
                self._data = None if temporary.on else data
            return data

    def grad(self) -> Any:
        """The gradients, to be read only; None where one is a graph, or others are there for a while."""
        import numpy as np

        with changing_gradients:
            if self._grad is None:
                gradients = list(map(_gradient_of, self.leaves))
                # backward() sets them to 0 meanwhile, and a page to those that it shows
                if set(map(type, gradients)) != {float} or traversal.undo is not None or temporary.on:
                    return None
                self._grad = np.array(gradients)
            return self._grad

    def replacing(self, data: Any = None, grad: Any = None) -> Iterator[None]:
        """The plan to have other numbers or gradients from now on; for commit, under changing_gradients."""
        note(self._reference)
        me = [self]
        plans = []
        if data is not None:
            plans += [setting(me, "_data_is_newer", [True]), setting(me, "_data", [data])]
        if grad is not None:
            plans += [setting(me, "_grad_is_newer", [True]), setting(me, "_grad", [grad])]
        return chain(*plans)

    def write_back(self) -> None:
        """Give the Values what is newer in the arrays: all of them, or none."""
        with changing_gradients:
            if self._reference not in LATER:
                return
            me, plans = [self], []
            if self._data_is_newer:
                plans += [setting(self.leaves, "_data", self._data.tolist()), setting(me, "_data_is_newer", [False])]
            if self._grad_is_newer:
                plans += [setting(self.leaves, "_grad", self._grad.tolist()), setting(me, "_grad_is_newer", [False])]
            commit(chain(*plans))
            drop(self._reference)

    def is_read(self) -> bool:
        """Whether an array has what is in the Values, or what is newer."""
        return self._data is not None or self._grad is not None

    def forget(self) -> None:
        """Read the Values again before the arrays are used: somebody sets numbers or gradients there."""
        with changing_gradients:
            self.write_back()
            self._data = self._grad = None


class Stored:
    """Some leaves, each of them once, and where they are stored.

    Args:
        leaves: a list or a tuple, which is not changed afterwards.
        any_order: whether their arrays may have another order, which saves copies.

    Attributes:
        leaves: the same.
        order: which element of the arrays each leaf has; None where they are in order.
    """

    __slots__ = ("__weakref__", "_any_order", "_members", "_position", "_require_grad", "_storage", "leaves", "order")

    def __init__(self, leaves: Sequence[Value], any_order: bool = False) -> None:
        self.leaves = leaves
        self._any_order = any_order
        self.order: Any = None
        self._storage: Storage | None = None
        self._members: Any = None
        self._position: Any = None
        self._require_grad: Any = None, False  # the version of requires_grad, and whether all required one then

    def storage(self) -> Storage:
        """Where they are stored now: another Stored may have moved them to a larger storage."""
        storage = self._storage
        if storage is None or storage.leaves is not self._members:
            with changing_gradients:
                storage, position = Storage.of(self.leaves)
                storage.users.add(self)
            all_of_it = self._any_order and len(self.leaves) == len(storage.leaves)
            self.order, self._position = (position, None) if all_of_it else (None, position)
            self._storage, self._members = storage, storage.leaves
        return storage

    def data(self) -> Any:
        """Their numbers, to be read only."""
        with changing_gradients:
            found = self.storage().data()
            return found if self._position is None else found[self._position]

    def grad(self) -> Any:
        """Their gradients, to be read only; None where one of them is a graph."""
        with changing_gradients:
            found = self.storage().grad()
            return found if found is None or self._position is None else found[self._position]

    def replacing(self, data: Any = None, grad: Any = None) -> Iterator[None]:
        """The plan to give them other numbers or gradients; for commit, under changing_gradients.

        Where the storage has more leaves, ``grad()`` must not have been None.
        """
        storage = self.storage()
        if self._position is not None:
            data = data if data is None else self._among(storage.data(), data)
            grad = grad if grad is None else self._among(storage.grad(), grad)
        return storage.replacing(data, grad)

    def adding(self, grad: Any) -> Iterator[None] | None:
        """The plan to add to their gradients, as ``replacing``; None where one of these is a graph."""
        sums = self.grad()
        if sums is None:
            return None
        are_zero = sums.strides == (0,)  # as set_gradients_to_zero leaves them
        return self.replacing(grad=grad if are_zero else sums + grad)

    def set_gradients_to_zero(self) -> None:
        """Set the gradient of every one of them to 0."""
        import numpy as np

        with changing_gradients:
            if len(self.leaves) == len(self.storage().leaves):
                zeros = np.ndarray(len(self.leaves), np.float64, _ZERO, strides=(0,))  # one number, and no memory
                commit(self.storage().replacing(grad=zeros))
            elif self.grad() is not None:
                commit(self.replacing(grad=0.0))
            else:
                with changing(self.leaves):
                    commit(setting(self.leaves, "_grad", repeat(0.0)))

    def all_require_grad(self) -> bool:
        """Whether all of them require a gradient."""
        version = requires_grad_version()
        if self._require_grad[0] is not version:
            self._require_grad = version, set(map(_primitive_of, self.leaves)) == {LEAF}
        return self._require_grad[1]

    def _among(self, all_of_them: Any, these: Any) -> Any:
        copied = all_of_them.copy()
        copied[self._position] = these
        return copied


def set_gradients_to_zero(leaves: Sequence[Value]) -> None:
    """Set the gradient of every leaf to 0, each given once."""
    with changing_gradients:
        found = set(map(storage_of, leaves))
        if len(found) == 1 and found != {()}:
            Stored(leaves).set_gradients_to_zero()
        else:
            with changing(leaves):
                commit(setting(leaves, "_grad", repeat(0.0)))
