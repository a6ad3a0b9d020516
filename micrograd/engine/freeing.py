"""Graphs of any depth, freed one node after the other, where the interpreter would run out of stack.

A freed node frees its operands, and these theirs. CPython interrupts such a chain before its stack is full. Python in
a browser cannot, and a chain of some thousands of nodes ends the interpreter. So there, a node about to be freed moves
its contents to a list, and the first of them empties that list. On all other platforms nothing is done, at no cost.
"""

from __future__ import annotations

from typing import Any

from micrograd.engine.node import NUMBER, Node
from micrograd.engine.primitive import LEAF

BROWSER = "emscripten"  # sys.platform of Python in a browser

_waiting: list[Any] = []
_emptying: list[bool] = []  # something in it says that the list is being emptied


def free_in_turns(platform: str) -> None:
    """Free nodes one after the other, if the interpreter of this platform cannot do so itself.

    Args:
        platform: as ``sys.platform`` has it.

    Example:
        >>> free_in_turns("linux")
        >>> hasattr(Node, "__del__")
        False
    """
    if platform == BROWSER:
        Node.__del__ = _hand_on  # type: ignore[attr-defined]  # it is there in browsers only


def _hand_on(node: Node) -> None:
    """Queue what a node refers to. Then free the queue, unless an outer call is already doing so."""
    try:
        _waiting.append((node._primitive, node._first, node._second, node._x, node._grad))
    except AttributeError:  # it was refused before it had operands
        return
    node._primitive, node._first, node._second, node._x, node._grad = LEAF, NUMBER, NUMBER, (), 0.0
    if _emptying:
        return
    _emptying.append(True)
    try:
        _pop_all()
    finally:
        _emptying.clear()


def _pop_all() -> None:
    while _waiting:
        _waiting.pop()
