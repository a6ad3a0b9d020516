"""Branches: what iterations of loops over many rows ask of their numbers, as by ``if x > 0``, is selected.

    for x in xs:
        if x > 0:
            total = total + w * x
        else:
            total = total - x

Each row has an answer of its own, and together they would be a path of the function that hardly any other rows take. So
where a few of many rows are traced, both branches are computed, and a number is selected of what each gives, as
choices.py does it for ``mg.vmap``. For this, the function has other code, in which what may ask is given to ``chosen``,
and a statement with branches to ``branched``; see indexing.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from micrograd.compiler.tracing.choices import Choosing
from micrograd.compiler.tracing.outline import OutlineTape, choosing_of
from micrograd.compiler.tracing.tape import Tape
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable

MISSING = object()  # in the place of a variable that has no value


class _Variables(list[Any]):
    """The variables after a statement with branches, all of them."""


def chosen(function: Callable[[], Any]) -> Any:
    """What a function gives, which may ask for the truth of numbers."""
    return _selected(function, function)


def branched(part: Callable[..., tuple[Any, ...]], always: int, *names: str) -> list[Any]:
    """The variables after a statement with branches.

    Args:
        part: gives them for what they are before it.
        always: how many of them all branches assign to.
        names: of the variables; these come first.
    """
    variables = sys._getframe(1).f_locals
    before = [variables.get(name, MISSING) for name in names]
    # what had no value, and has none after some branch, has none after any: if it is read, all rows are traced
    stays = [number >= always and each is MISSING for number, each in enumerate(before)]

    def with_values(after: Any) -> Any:
        is_whole = type(after) is _Variables
        return [each for each, has_none in zip(after, stays, strict=True) if not has_none] if is_whole else after

    after = _selected(lambda: _Variables(part(None, *before)), part, with_values)
    if type(after) is _Variables:  # nothing was asked
        return after
    found = iter(after)
    return [MISSING if has_none else next(found) for has_none in stays]


def _selected(run: Callable[[], Any], function: Any, of_branch: Callable[[Any], Any] | None = None) -> Any:
    """What a call of a function gives, or one of what all of its branches give."""
    rows, tape = rows_in_use(), recorder_on_top()
    if isinstance(tape, OutlineTape) and rows is not None:
        choosing = choosing_of(tape, of_branch)
        found = choosing.result(run)
        if choosing.has_asked:
            rows.chooses = True
            if not _are_numbers(found, of_branch is not None):
                tape.fail("a choice of objects")
        return found
    questions = tape.outermost.questions if isinstance(tape, Tape) else None
    if rows is None or not rows.chooses or not isinstance(tape, Tape) or questions is None:
        return run()
    known, code = rows.choosing, function.__code__
    if code not in known:
        known[code] = Choosing(tape.outermost, chosen, questions.rounding, of_branch)
    return known[code].selected(run)


def _are_numbers(result: Any, is_of_variables: bool) -> bool:
    """Whether a result, or each variable of it, has no objects in it that others may be, or change."""
    parts = result if is_of_variables or type(result) is tuple else (result,)
    return all(
        _are_numbers(each, False) if type(each) is tuple else isinstance(each, (Value, float, int, type(None)))
        for each in parts
    )
