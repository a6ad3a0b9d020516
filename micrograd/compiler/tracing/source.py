"""Source: what is traced, and how. The first pass makes a trace of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.guards.structure import Structure
    from micrograd.engine.value import Value


class Source(NamedTuple):
    """A function, and the arguments that it is traced for.

    Attributes:
        function: as it was written.
        arguments: its positional and its named arguments.
        first: Values that shall be the first inputs, in this order, whether it reads them or not.
        as_floats: whether no gradient flows through derivatives that are plain numbers; see Tape.
        is_recorded: whether calls are recorded, and not under no_grad; see Tape.
        rounding: where the function may decide on numbers, the relative errors of its program; see questions.py.
        takes_maps: whether what ``mg.vmap`` runs many times may be written once.
        takes_decisions: whether ``mg.cond`` and ``mg.while_loop`` may be left to the program.
        chooses: whether the program also decides what the iterations of ``mg.vmap`` ask.
        selects: whether choices between short branches that raise nothing are computed on both sides.
        takes_calls: whether functions of whole arrays, as those of linear algebra, may be called between programs.
        leaves_calls: whether there are so many of them that all of small matrices, too, are left to the program.
        writes_scans: whether all iterations of large scans are written out.
        in_lanes: whether gradients are written many at a time however few there are, as for more rows they would be.
        writes_out: whether what ``mg.vmap`` runs many times is written for all of them at once.
        answers: to the first questions that the function asks; the numbers answer those after them.
        asked: if all that the function asks shall be data, how many questions there are; see histories.py.
        every_path: if choices shall stand for decisions, for programs that run for many examples at a time, how many
            numbers of an example, the first ones, stay as they are; those decide which of the others it may run with.
            See every_path.py.
    """

    function: Callable[..., Any]
    arguments: Structure
    first: Sequence[Value] = ()
    as_floats: bool = True
    is_recorded: bool = True
    rounding: float | None = None
    takes_maps: bool = False
    takes_decisions: bool = False
    chooses: bool = False
    selects: bool = False
    takes_calls: bool = False
    leaves_calls: bool = False
    writes_scans: bool = False
    in_lanes: bool = False
    writes_out: bool = False
    answers: Sequence[float] = ()
    asked: int = 0
    every_path: int | None = None

    def of(self, function: Callable[..., Any], **takes: Any) -> Source:
        """Another function for the same arguments, recorded in the same way, as is said besides."""
        return Source(function, self.arguments, self.first, self.as_floats, self.is_recorded, **takes)
