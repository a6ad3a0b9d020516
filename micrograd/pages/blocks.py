"""The blocks of a program that reads a sequence, such as attention and what follows it, found in the flow of its graph.

What mixes positions, the heads of one layer, and what bends numbers, a row of activations, are stages. A Value stands
before the stage that is all that uses it, and after the stage that is all that it comes from. A sum that leads past
a stage, a residual connection, belongs to the stage that it adds.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from micrograd.engine.value import Value
    from micrograd.pages.lookups import Table
    from micrograd.pages.softmaxes import Head, Softmaxes

ACTIVATIONS = frozenset(("relu", "tanh", "sigmoid", "silu", "gelu", "softplus", "maximum", "where", "sin", "erf"))
LEAST_ACTIVATIONS = 2  # side by side, at one position; one alone is part of a formula
END = 1 << 62  # stands for predictions among the stages that use a Value


class Positions:
    """The position of each Value: that of the token that it was computed from, but for what attention took from others.

    Args:
        nodes: the Values, each after its operands.
        table: that of the tokens; without one, nothing has a position.
        found: the heads and predictions of the graph.

    Attributes:
        of: for each Value the positions it depends on, as bits.
        takers: the Values that rows of tokens go into.
        of_head: the position that each head works for.
        read_by: for each head the positions that its weights are for; None where a mask has put a number in its place.
        place_of_head: its layer, and its number in it.
    """

    def __init__(self, nodes: Sequence[Value], table: Table | None, found: Softmaxes) -> None:
        self.of: dict[Value, int] = {}
        self.of_head: dict[Head, int] = {}
        self.read_by: dict[Head, list[int | None]] = {}
        self.place_of_head: dict[Head, tuple[int, int]] = {}
        self._depth: dict[Value, int] = {}
        self.takers: dict[Value, int] = {}
        for position, lookup in enumerate(table.lookups if table is not None else ()):
            for takers in lookup.takers:
                for taker in takers:
                    self.takers[taker] = self.takers.get(taker, 0) | 1 << position
        head_of = {mixed: head for head in found.heads for mixed in head.mixed}
        for node in nodes:
            if node in head_of:
                self._add_head(head := head_of[node])
                self.of[node] = 1 << self.of_head[head] if head in self.of_head else 0
                self._depth[node] = 1 + self.place_of_head[head][0] if head in self.place_of_head else 0
                continue
            bits, depth = self.takers.get(node, 0), 0
            for operand in node._operands():
                bits |= self.of[operand]
                depth = max(depth, self._depth[operand])
            self.of[node], self._depth[node] = bits, depth

    def of_result(self, node: Value) -> int | None:
        """The only position that a Value is of."""
        return _only(self.of[node])

    def _add_head(self, head: Head) -> None:
        if head in self.of_head:
            return
        common = -1
        for score in head.scores:
            if score is not None:
                common &= self.of[score]
        if (position := _only(common)) is None:
            return
        layer = max(self._depth[value] for value in (*(row[0] for row in head.rows), *filter(None, head.scores)))
        same = sum(self.of_head[other] == position and place[0] == layer for other, place in self.place_of_head.items())
        self.of_head[head], self.place_of_head[head] = position, (layer, same)
        self.read_by[head] = [_only(self.of[row[0]]) for row in head.rows]


def _only(bits: int) -> int | None:
    """The number of the only bit; None where there are others, or none."""
    return bits.bit_length() - 1 if bits > 0 and bits & (bits - 1) == 0 else None


def blocks(
    nodes: Sequence[Value], users: Mapping[Value, Sequence[Value]], positions: Positions, found: Softmaxes
) -> dict[str, Any]:
    """The blocks in the order of the program, each with a cell for each position, and the cell of each Value.

    Returns:
        ``blocks``: name and kind of each; ``cells``: the block and the position of each, in the order in which they
        are done; ``cell_of``: for the Values in their order, pairs of a cell, or −1, and how many have it in a row.

    Example:
        >>> from micrograd.pages.softmaxes import Softmaxes
        >>> blocks([], {}, Positions([], None, Softmaxes()), Softmaxes())
        {'blocks': [], 'cells': [], 'cell_of': []}
    """
    flow = _Flow(nodes, users, positions, found)
    keys = [flow.block_of(node) for node in nodes]
    last = {key: index for index, key in enumerate(keys) if key is not None}
    cells = sorted(last, key=last.__getitem__)
    kinds = sorted({key[0] for key in cells})
    number = {key: index for index, key in enumerate(cells)}
    counted = [(-1 if key is None else number[key]) for key in keys]
    return {
        "blocks": [flow.described(kind) for kind in kinds],
        "cells": [[kinds.index(kind), position] for kind, position in cells],
        "cell_of": [[cell, len(list(run))] for cell, run in groupby(counted)],
    }


# Blocks are sorted by their stage, and in it by what they are.
BEFORE, HEAD, AFTER, SCORES, LOSS = range(5)
Kind = tuple[int, int, int]  # stage, what it is, and which head


class _Flow:
    """Which stages each Value comes from, and which it goes to."""

    def __init__(
        self,
        nodes: Sequence[Value],
        users: Mapping[Value, Sequence[Value]],
        positions: Positions,
        found: Softmaxes,
    ) -> None:
        self.positions = positions
        self.heads = [head for head in found.heads if head in positions.of_head]
        self.head_of = {node: head for head in self.heads for node in head.core}
        self.prediction_of = {node: each for each in found.predictions for node in each.core}
        self._add_scores(users)
        self._bending = self._activations(nodes)
        self.least: dict[Value, int] = {}
        self.most: dict[Value, int] = {}
        self.stage_of: dict[Value, int] = {}
        self.is_attention: set[int] = set()
        for node in nodes:
            self._come(node)
        self.last = max(self.most.values(), default=0)
        self.is_plain = all(
            self.least.get(score) == self.most.get(score) for each in found.predictions for score in each.scores
        )  # without residual connections, all that follows the last stage makes scores
        self.next: dict[Value, int] = {}
        for node in reversed(nodes):
            self.next[node] = self._going(node, users)

    def _add_scores(self, users: Mapping[Value, Sequence[Value]]) -> None:
        """Let the products of two computed numbers that are added up to a score belong to the head."""
        for head in self.heads:
            stack = [score for score in head.scores if score is not None]
            while stack:
                node = stack.pop()
                operands = node._operands()
                name = node._primitive.name
                is_product = name == "mul" and all(operand.requires_grad for operand in operands)
                if name in ("add", "mul", "div", "sub") and len(users[node]) <= 1 and node not in self.head_of:
                    self.head_of[node] = head
                    if not is_product:
                        stack += operands

    def _activations(self, nodes: Sequence[Value]) -> set[Value]:
        """Activations of which several are side by side: at one position, after as many others."""
        depth: dict[Value, int] = {}
        rows: dict[tuple[int, int], list[Value]] = {}
        for node in nodes:
            depth[node] = max((depth[operand] for operand in node._operands()), default=0)
            if (
                node._primitive.name in ACTIVATIONS
                and node.requires_grad
                and node not in self.head_of
                and node not in self.prediction_of
            ):
                depth[node] += 1
                rows.setdefault((self.positions.of[node], depth[node]), []).append(node)
        return {node for row in rows.values() if len(row) >= LEAST_ACTIVATIONS for node in row}

    def _come(self, node: Value) -> None:
        operands = [operand for operand in node._operands() if operand in self.least]
        if node in self._bending or node in self.head_of:
            stage = 1 + max((self.most[operand] for operand in operands if operand not in self.head_of), default=0)
            if node in self.head_of:
                stage = max([stage, *(self.stage_of[operand] for operand in operands if operand in self.head_of)])
                self.is_attention.add(stage)
            self.stage_of[node] = self.least[node] = self.most[node] = stage
        elif operands:
            self.least[node] = min(self.least[operand] for operand in operands)
            self.most[node] = max(self.most[operand] for operand in operands)
        elif self.positions.of[node]:
            self.least[node] = self.most[node] = 0

    def _going(self, node: Value, users: Mapping[Value, Sequence[Value]]) -> int:
        """The stages that use a Value before any other does, as bits."""
        bits = 0
        for user in users[node]:
            if user in self.stage_of:
                bits |= 1 << self.stage_of[user]
            else:
                bits |= END if user in self.prediction_of else self.next[user]
        return bits

    def block_of(self, node: Value) -> tuple[Kind, int] | None:
        """The block and the position of a Value; None for what is of none, as parameters are."""
        if node.is_leaf:
            return None
        if head := self.head_of.get(node):
            return (self.stage_of[node], HEAD, self.positions.place_of_head[head][1]), self.positions.of_head[head]
        if prediction := self.prediction_of.get(node):
            position = self.positions.of_result(prediction.scores[0])
            return None if position is None else ((self.last + 1, LOSS, 0), position)
        if node not in self.least or not self.next[node] or (position := _only(self.positions.of[node])) is None:
            return None
        return self._kind(node), position

    def _kind(self, node: Value) -> Kind:
        least, most, following = self.least[node], self.most[node], self.next[node]
        if node in self.stage_of:
            return self.stage_of[node], AFTER, 0
        origins = [self.least[operand] for operand in node._operands() if operand in self.least]
        if node._primitive.name == "add" and least < most and most in origins:
            return most, AFTER, 0  # a residual connection
        if following == END and (least < most or self.is_plain) and not self._is_looked_up(node):
            return self.last, SCORES, 0
        if least == most and most > 0:
            return most, AFTER, 0
        stage = _only(following & ~END)
        if stage is None or self._is_looked_up(node):
            return most, AFTER, 0
        return stage, BEFORE if stage in self.is_attention else AFTER, 0

    def _is_looked_up(self, node: Value) -> bool:
        """Whether it is made of the row of a token, number by number."""
        return node in self.positions.takers and node._primitive.name != "mul"

    def described(self, kind: Kind) -> dict[str, Any]:
        """What a block is called."""
        stage, what, head = kind
        ordinal = self._ordinal(stage)
        if what == LOSS:
            name = "loss"
        elif what == SCORES:
            name = "logits"
        elif stage == 0:
            name = "embedding"
        elif what == HEAD:
            name = f"head {head + 1}{ordinal}"
        elif what == BEFORE:
            name = f"queries, keys, values{ordinal}"
        else:
            name = f"{'attention' if stage in self.is_attention else 'MLP'}{ordinal}"
        return {"name": name, "kind": ("before", "head", "after", "scores", "loss")[what], "stage": stage}

    def _ordinal(self, stage: int) -> str:
        """Which of several layers, in words; nothing where there is one."""
        alike = sorted(
            {other for other in self.stage_of.values() if (other in self.is_attention) == (stage in self.is_attention)}
        )
        return f", layer {alike.index(stage) + 1}" if stage in alike and len(alike) > 1 else ""
