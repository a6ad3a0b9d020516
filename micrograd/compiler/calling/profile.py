"""Profile: where the time of a program goes, kernel by kernel, and what keeps a kernel from being fast.

Each kernel is run alone, again and again, on what the last run has left in the buffer; the fastest time counts. What is
said of a kernel is read off its index maps:

    gathers       its operands lie in no order, so that a table says where each is
    one by one    neighbours lie apart in the buffer, or are too few, so that no vector of them can be loaded
    Python        a primitive of the user's own, whose forward is called for each number
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from micrograd.compiler.backends.shared.executable import Pace
from micrograd.compiler.ir.program import Loop, aligned, size_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.backends.shared.executable import Executable
    from micrograd.compiler.ir.program import Kernel, Singles

_ROUNDS = 5  # of which the fastest counts
_SECONDS = 2e-3  # at least so long a round runs a kernel
_SHOWN = 12  # kernels, which take most of the time
_FEW = 4  # fewer numbers are no vector

_IN_PYTHON = (
    "{} is Python, called for each number. Write its forward in operations of micrograd, as a function of Values"
)
_GATHERS = (
    "reads numbers that lie in no order, each through a table. Keep in one list what is read together, and read it in "
    "the order in which it was made"
)
_FEW_NUMBERS = "too few numbers for a vector. Compute more that are alike in one call: a batch, a wider layer"
_LIES_APART = (
    "one by one, as neighbours lie apart, like those of a column in a matrix of rows. Exchange the two loops, or the "
    "two indices of the nested lists, so that the last index is the one that moves fastest"
)


class _Timed(NamedTuple):
    """A kernel or a loop, and the seconds that it takes."""

    kernel: Kernel | Loop | Singles
    seconds: float


def profile(executable: Executable) -> str:
    """The kernels that take most of the time, as a table; and below it what keeps them from being fast."""
    executable.run()
    pairs = zip(executable.program.kernels, executable.parts(), strict=True)
    timed = sorted((_Timed(kernel, seconds_of(run)) for kernel, run in pairs), key=lambda one: -one.seconds)
    total = sum(one.seconds for one in timed)
    rows = [["kernel", "rows x columns x terms", "us", "of all", "Gflop/s"]]
    remarks: dict[str, list[int]] = {}
    for number, (kernel, seconds) in enumerate(timed[:_SHOWN], start=1):
        flops = _flops(kernel) / seconds / 1e9
        measured = f"{1e6 * seconds:.1f}", f"{seconds / total:.0%}", f"{flops:.1f}"
        name = f"loop of {len(kernel.kernels)}" if isinstance(kernel, Loop) else kernel.kind
        size = f"{kernel.iterations:,} iterations" if isinstance(kernel, Loop) else size_text(kernel)
        rows.append([f"{number} {name}", size, *measured])
        for remark in _remarks(kernel, executable):
            remarks.setdefault(remark, []).append(number)
    rest = sum(one.seconds for one in timed[_SHOWN:])
    others = [f"and {len(timed) - _SHOWN:,} more, which take {rest / total:.0%}"] if len(timed) > _SHOWN else []
    told = [f"{', '.join(map(str, numbers))}: {remark}" for remark, numbers in remarks.items()]
    together = seconds_of(executable.run)  # some are made one, or share the loop over samples
    heading = f"{len(timed):,} kernels take {1e6 * total:.1f} us one by one, {1e6 * together:.1f} us together"
    return "\n".join([heading, "", *aligned(rows), *others, *([""] if told else []), *told])


def seconds_of(run: Callable[[], object]) -> float:
    """How long a call takes, at its fastest."""
    times, fastest = 1, float("inf")
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        for _ in range(times):
            run()
        taken = time.perf_counter() - begin
        fastest = min(fastest, taken / times)
        times = max(times, int(_SECONDS / fastest))
    return fastest


def _flops(kernel: Kernel | Loop | Singles) -> int:
    return kernel.iterations * sum(map(_flops, kernel.kernels)) if isinstance(kernel, Loop) else kernel.flops


def _remarks(kernel: Kernel | Loop | Singles, executable: Executable) -> list[str]:
    """What keeps a kernel from being fast, and what to write instead."""
    if isinstance(kernel, Loop):
        return [*dict.fromkeys(remark for part in kernel.kernels for remark in _remarks(part, executable))]
    pace = executable.pace(kernel)
    if pace is Pace.IN_PYTHON:
        return [_IN_PYTHON.format(kernel.kind)]
    if any(access.gathers for access in kernel.accesses):
        return [_GATHERS]
    if pace is Pace.ONE_BY_ONE:
        return [_FEW_NUMBERS if max(kernel.columns, kernel.terms) < _FEW else _LIES_APART]
    return []
