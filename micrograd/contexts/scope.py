"""Scopes: names for the parts of a program, which pages show as groups.

    @mg.scope
    def attention(query, keys): ...         # each call is a box, always

    with mg.record_scopes():                # blocks are boxes where this is on
        with mg.scope("attention"):
            ...

What a call computed lies between what went in and what came out (see calls.py), so calls cost next to nothing. A block
has no results: each node has to be told in which one it is made. That takes a recorder, and is done on request only.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, overload

from micrograd._support.checks import check_type
from micrograd.contexts.calls import observed, tick, tick_of_start
from micrograd.contexts.no_grad import Everything
from micrograd.engine.recorder import RUNS_LATER, ContextEntry, holding, on_top, recorder_on_top, using
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from micrograd.engine.primitive import Primitive

    AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class Block(ContextEntry):
    """One run through a block.

    Attributes:
        name: of the group.
        kind: of the group; see folding/boxes.py.
        start, end: when it began and ended, as for calls.
    """

    def __init__(self, name: str) -> None:
        self.name, self.kind = name, "run"
        self.start = self.end = tick_of_start()


_block: ContextVar[Block | None] = ContextVar("block", default=None)


def block_on_top() -> Block | None:
    """The innermost block that is open, for Values that no operator makes."""
    return on_top(_block)


class _Scope:
    """A context manager, and a decorator of functions."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: list[tuple[Block, Generator[None, None, None]]] = []

    def __enter__(self) -> None:
        block = Block(self._name)
        held = holding(_block, block)
        next(held)  # where this is left right after, nothing refers to it, and so it is closed
        self._held.append((block, held))

    def __exit__(self, *_: object) -> None:
        block, held = self._held.pop()
        block.end = tick()
        held.close()

    def __call__(self, function: AnyFunction) -> AnyFunction:
        return _decorated(function, self._name)


@overload
def scope(what: str) -> _Scope: ...


@overload
def scope(what: AnyFunction) -> AnyFunction: ...


def scope(what: Any) -> Any:
    """Name a part of a program: a page shows it as a group that you can open.

    ``@mg.scope``, or ``@mg.scope("a name")``, groups each call of a function. ``with mg.scope("a name"):``
    groups a block inside ``mg.record_scopes()``; elsewhere it does nothing. Numbers and gradients do not change.

    Modules, iterations of ``vmap`` and ``scan``, and library functions such as softmax and cross_entropy are scopes
    already.

    Args:
        what: the name of a block, or the function.

    Raises:
        TypeError: if it is neither a string nor a function, or if it is a generator or a coroutine, which run later.
        ValueError: for an empty name.

    Example:
        >>> @scope
        ... def energy(mass, speed):
        ...     return mass * speed * speed / 2
        >>> energy(Value(2.0), Value(3.0)).data
        9.0
    """
    if isinstance(what, str):
        if not what:
            raise ValueError("a scope needs a name, such as mg.scope('attention')")
        return _Scope(what)
    return _decorated(what, "")


def _decorated(function: Any, name: str) -> Any:
    check_type(callable(function), "scope takes a name or a function", function)
    if isinstance(function, type):
        raise TypeError(f"scope takes a name or a function, not the class {function.__name__}: decorate its methods")
    if getattr(getattr(function, "__code__", None), "co_flags", 0) & RUNS_LATER:
        raise TypeError(f"scope cannot decorate {function.__name__}, which runs later: use mg.scope inside")
    return observed(function, name or getattr(function, "__name__", type(function).__name__))


class _InBlocks(Everything):
    """The recorder that tells each node in which block it is made."""

    remembers_calls = True

    def apply(self, primitive: Primitive, *operands: Any) -> Value:
        """The result of a primitive, which remembers the block."""
        result = super().apply(primitive, *operands)
        if (block := block_on_top()) is not None and isinstance(result, Value):
            result._scope = block
        return result


@contextmanager
def record_scopes() -> Iterator[None]:
    """Let every Value computed inside remember its block: ``with mg.scope("a name"):``.

    Computing takes longer inside. A context manager, and a decorator of functions. It does nothing if something else
    records already: under no_grad, inside detect_anomaly, and while a function is compiled.

    Example:
        >>> with record_scopes(), scope("square"):
        ...     y = Value(3.0) ** 2
        >>> y.data
        9.0
    """
    if recorder_on_top() is None:
        with using(_InBlocks()):
            yield
    else:
        yield
