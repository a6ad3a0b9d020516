"""The word that a program reads: what may be typed in its place, and which word a page shows first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.draw.text import enclosed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.engine.value import Value
    from micrograd.pages.blocks import Positions
    from micrograd.pages.lookups import Table
    from micrograd.pages.softmaxes import Prediction
    from micrograd.pages.totals import Total


class Word:
    """The tokens of a graph, and what is known of other words that it can read.

    Args:
        nodes: the Values, each after its operands.
        table: that of the tokens.
        positions: of the Values.
        predictions: those of the graph.
        classes: what classes are called.
        total: how their losses come together, where that is known.

    Attributes:
        reads_itself: whether each token is the right class of the prediction before it: then a word decides what is
            right, too.
        can_be_shorter: whether shorter words have the same program: no prediction depends on later tokens, and each
            loss can be left out.
        before, after: how many of its tokens are marks that stand before and after each word, as in ``.emma.``.
    """

    def __init__(
        self,
        nodes: Sequence[Value],
        table: Table,
        positions: Positions,
        predictions: Sequence[Prediction],
        classes: Sequence[str],
        total: Total | None,
    ) -> None:
        rows = [lookup.row for lookup in table.lookups]
        is_named = len(classes) == len(table.rows)
        self._names = list(classes) if is_named else [str(row) for row in range(len(table.rows))]
        own = {positions.of_result(each.scores[0]): each for each in predictions}
        targets = [own[place].target if place in own else None for place in range(len(rows))]
        scores = len(own[0].scores) if 0 in own else 0
        self.reads_itself = len(table.rows) == scores and targets[:-1] == rows[1:] and targets[-1] is not None
        self._word: list[Any] = [*rows, targets[-1]] if self.reads_itself else rows
        is_long = len(self._word) > 1
        self.before = int(is_long and self._is_mark(self._word[0]))
        self.after = int(is_long and self.reads_itself and self._is_mark(self._word[-1]))
        self.can_be_shorter = self.reads_itself and total is not None and _looks_back_only(nodes, positions, own)

    def _is_mark(self, row: int) -> bool:
        return not any(map(str.isalnum, self._names[row]))

    def described(self, shown: Sequence[str | int]) -> dict[str, Any]:
        """What a page has to know of it.

        Args:
            shown: the tokens to show first, without the marks before and after; none for all of the graph.

        Raises:
            ValueError: if it cannot read these.
        """
        known = {"reads": self.reads_itself, "shorter": self.can_be_shorter, "before": self.before, "after": self.after}
        return known | {"first": self._rows(shown) if shown else None}

    def _rows(self, shown: Sequence[str | int]) -> list[int]:
        """The rows of a word that is to be shown first, with the marks around it."""
        names = list(map(str, shown))
        if (odd := next((name for name in names if name not in self._names), None)) is not None:
            raise ValueError(f"tokens: {enclosed(odd)!r} is none of the {len(self._names)} that this program knows")
        if len(names) > (most := len(self._word) - self.before - self.after):
            raise ValueError(f"tokens: the graph has room for {most} of them, not for {len(names)}")
        if len(names) < most and not self.can_be_shorter:
            raise ValueError(f"tokens: only words of {most} have this graph, so it cannot show one of {len(names)}")
        rows = list(map(self._names.index, names))
        return [*self._word[: self.before], *rows, *self._word[len(self._word) - self.after :]]


def _looks_back_only(nodes: Sequence[Value], positions: Positions, own: dict[int | None, Prediction]) -> bool:
    """Whether no prediction depends on tokens after its own."""
    last: dict[Value, int] = {}
    for node in nodes:
        taken = positions.takers.get(node, 0).bit_length() - 1
        last[node] = max(taken, *(last[operand] for operand in node._operands()), -1)
    return all(place is not None and max(map(last.__getitem__, each.scores)) <= place for place, each in own.items())
