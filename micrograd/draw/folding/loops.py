"""Loops that nobody named: what a program does again and again is found in the graph."""

from __future__ import annotations

from operator import eq
from re import finditer
from typing import TYPE_CHECKING, Any

from micrograd.draw.folding.boxes import Box, operation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from micrograd.engine.value import Value

LONGEST = 60  # operations of an iteration
LEAST_ITERATIONS = 6
LEAST_LENGTH = 40  # operations of all iterations


def put_into_iterations(nodes: Iterable[Value], of: dict[Value, Box | None], family: Callable[[Value], Any]) -> None:
    """Put the iterations of loops into boxes of their own, inside of the box that they are in.

    Args:
        nodes: the results that may be of iterations, each after its operands.
        of: the box of each; those of iterations are added.
        family: what leaves that are used alike have in common.
    """
    inside: dict[Box | None, list[Value]] = {}
    for node in nodes:
        inside.setdefault(of[node], []).append(node)
    for around, results in inside.items():
        if len(results) >= LEAST_LENGTH and (around is None or around.kind == "run"):
            start, length, count = _iterations(_signatures(results, family))
            for iteration in range(count):
                box = Box(f"Step {iteration + 1}", "run", around, start + iteration, ("step", around, start))
                own = results[start + iteration * length : start + (iteration + 1) * length]
                of.update(dict.fromkeys(own, box))
                leaves = [operand for node in own for operand in node._operands() if operand.is_leaf]
                of.update((leaf, box) for leaf in leaves if not leaf.requires_grad and of[leaf] is around)


def _signatures(results: list[Value], family: Callable[[Value], Any]) -> list[Any]:
    """What each does, and how far back its operands are."""
    position = {node: index for index, node in enumerate(results)}
    return [
        (
            operation_of(node),
            *(index - position[x] if x in position else family(x) if x.is_leaf else "other" for x in node._operands()),
        )
        for index, node in enumerate(results)
    ]


def _iterations(signatures: list[Any]) -> tuple[int, int, int]:
    """Where the longest loop starts, how long its iterations are and how many there are; none where it is too short.

    Example:
        >>> _iterations([("exp", "x"), *[("mul", 3), ("add", 1), ("tanh", 1)] * 20, ("log", 1)])
        (1, 3, 20)
    """
    best = (0, 0, 0)
    numbers: dict[Any, int] = {}
    kinds = [numbers.setdefault(signature, len(numbers)) for signature in signatures]
    for length in range(1, min(LONGEST, len(kinds) // LEAST_ITERATIONS) + 1):
        same = bytes(map(eq, kinds[length:], kinds))  # whether each is as the one an iteration before it
        for run in finditer(rb"\x01{%d,}" % (length * (LEAST_ITERATIONS - 1)), same):
            start, count = run.start(), (run.end() - run.start()) // length + 1
            is_longer = count * length > max(LEAST_LENGTH - 1, best[1] * best[2] + length)
            if is_longer and _is_handed_on(signatures[start : start + length]):
                best = (start, length, count)
    return best


def _is_handed_on(iteration: list[Any]) -> bool:
    """Whether an iteration uses what the one before it computed."""
    return any(
        isinstance(back, int) and back > index for index, (_, *operands) in enumerate(iteration) for back in operands
    )
