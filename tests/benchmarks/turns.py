"""Measure a program of the suite: the first step of each runner in a process of its own, then steps in turn.

All processes share one core and use one thread each. Time is the processor's, of all threads of a process, and the
garbage collector is as Python sets it up. Whoever takes too long or too much memory is ended, and the others go on.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from workers import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from programs.program import Program
    from runners import Result, Runner, Step

TURN = 0.05  # seconds
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


class Limits(NamedTuple):
    """What a process may use.

    Attributes:
        seconds: of the processor, for each answer: the first step, what is made before steps are timed, a turn.
        gigabytes: of memory, in all.
        core: the number of the core that it runs on; None for any.
    """

    seconds: int = 120
    gigabytes: float = 12.0
    core: int | None = None


@dataclass
class Row:
    """What was measured of a program and a runner.

    Attributes:
        program: its title.
        runner: its name.
        result: value and gradient.
        first: the seconds of the first step.
        loading: the seconds that it takes before to load the library.
        memory: the bytes by which the first step made the process grow at most.
        seconds: for each kind of step, its time in each round.
        failure: in plain words, why there is nothing more.
    """

    program: str
    runner: str
    result: Result | None = None
    first: float | None = None
    loading: float | None = None
    memory: int | None = None
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failure: str | None = None


class First(NamedTuple):
    seconds: float
    memory: int
    result: Result


class Failure(NamedTuple):
    """What a process answers where something is raised."""

    says: str


def measured(program: Program, runners: list[type[Runner]], rounds: int, limits: Limits) -> list[Row]:
    """Measure a program with those runners that have a version of it; the first is compared with the others."""
    chosen = [runner for runner in runners if runner.takes(program)]
    rows = [Row(program.title, runner.name) for runner in chosen]
    before = {name: os.environ.get(name) for name in (*ONE_THREAD, "MICROGRAD_CACHE")}
    os.environ.update(ONE_THREAD)  # the processes inherit it
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        workers = []
        for position, (runner, row) in enumerate(zip(chosen, rows, strict=True)):
            os.environ["MICROGRAD_CACHE"] = str(Path(folder) / str(position))  # an empty one
            workers.append(stack.enter_context(Worker(runner, serve, program, limits)))
            loaded = asked(workers[-1], row, limits)
            if loaded and (first := asked(workers[-1], row, limits)) is not None:
                row.first, row.memory, row.result = first
                row.loading = loading(runner.loading)
        compare(rows)
        taking_turns = [(worker, row) for worker, row in zip(workers, rows, strict=True) if row.failure is None]
        for worker, row in taking_turns:
            asked(worker, row, limits)  # makes the steps
        for number in range(rounds + 1):
            for worker, row in taking_turns:
                if row.failure is None and (turn := asked(worker, row, limits)) and number:  # the first one warms up
                    for kind, seconds in turn.items():
                        row.seconds.setdefault(kind, []).append(seconds)
    for name, setting in before.items():
        os.environ.pop(name, None)
        if setting is not None:
            os.environ[name] = setting
    return rows


def asked(worker: Worker, row: Row, limits: Limits) -> Any:
    """The next answer of a process; None where it failed, and the row says so."""
    try:
        answer = worker.ask(limits.seconds)
    except TimeoutError:
        row.failure = f"over {limits.seconds} s"
        return None
    except (EOFError, OSError):
        row.failure = ended(worker.exit_code())
        return None
    if isinstance(answer, Failure):
        row.failure = answer.says
        return None
    return answer


def ended(code: int | None) -> str:
    """Why a process is gone, in plain words."""
    if code == -getattr(signal, "SIGKILL", 0):
        return "out of memory"
    return f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"ended with code {code}"


def compare(rows: list[Row]) -> None:
    """Mark those whose value or gradient is not that of the first that has one."""
    there = [row for row in rows if row.result is not None]
    for row in there[1:]:
        if (difference := differs(row.result, there[0].result)) is not None:
            row.failure = f"{difference} differs from {there[0].runner}'s"


def differs(found: Any, expected: Any) -> str | None:
    """What differs: "value", "gradient", or nothing; to nine digits, or to twelve of the largest of the gradient."""
    if not math.isclose(found[0], expected[0], rel_tol=1e-9):
        return "value"
    if not found[1] or not expected[1]:
        return None
    if len(found[1]) != len(expected[1]):
        return "gradient"
    largest = max(map(abs, expected[1]))
    pairs = zip(found[1], expected[1], strict=True)
    return None if all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12 * largest) for a, b in pairs) else "gradient"


def serve(runner: Runner, program: Program, limits: Limits) -> Iterator[Any]:
    """In the worker: yield once loaded; then the first step, the kinds of steps, and in each turn what a step takes."""
    try:
        confine(limits)
        runner.load(program)
        yield True
        yield first_step(runner)
        steps = runner.steps()
        for step in steps.values():
            step()
        yield list(steps)
        repeats = dict.fromkeys(steps, 1)
        while True:
            turn = {kind: timed(step, repeats[kind]) for kind, step in steps.items()}
            repeats = {kind: max(1, min(int(TURN / seconds), 100 * repeats[kind])) for kind, seconds in turn.items()}
            yield turn
    except MemoryError:
        yield Failure(f"over {limits.gigabytes:g} GB")
    except Exception as error:  # whatever it is belongs in the table
        yield Failure(f"{type(error).__name__}: {str(error).partition(chr(10))[0]:.100}")


def first_step(runner: Runner) -> First:
    before = resident("VmRSS")
    forget_most_resident()
    start = process_time() + of_children()
    runner.first_step()
    seconds = process_time() + of_children() - start
    return First(seconds, max(0, resident("VmHWM") - before), runner.result())


@cache
def loading(code: str) -> float:
    """The seconds of a new process that runs some code, beyond those of one that runs none: the least of three each."""
    seconds = []
    for each in ("", code):
        taken = []
        for _ in range(3):
            start = of_children()
            subprocess.run([sys.executable, "-c", each], check=True)
            taken.append(of_children() - start)
        seconds.append(min(taken))
    return seconds[1] - seconds[0]


def of_children() -> float:
    """The seconds of processes that this one started and that have ended, such as a compiler."""
    times = os.times()
    return times.children_user + times.children_system


def timed(step: Step, repeats: int) -> float:
    """The seconds that one of so many steps takes."""
    start = process_time()
    for _ in range(repeats):
        step()
    return max((process_time() - start) / repeats, 1e-9)


def confine(limits: Limits) -> None:
    """Keep this process to its core and its memory, where the system can."""
    if limits.core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {limits.core})
    if sys.platform == "linux":
        import resource

        room = resource.RLIM_INFINITY if limits.gigabytes == math.inf else int(limits.gigabytes * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (room, resource.RLIM_INFINITY))


def resident(what: str) -> int:
    """The memory of this process in bytes, now (VmRSS) or at most (VmHWM); 0 where the system has no such file."""
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    return 0


def forget_most_resident() -> None:
    """Count what this process has at most from now on."""
    counter = Path("/proc/self/clear_refs")
    if counter.exists():
        counter.write_text("5")
