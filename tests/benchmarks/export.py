"""Exported files beside our kernels, CasADi's C code and C by hand: ``python tests/benchmarks/export.py [NAME ...]``.

Programs of the suite, by name; all with their gradients by the parameters, which are an argument. The C compiler gets
``-O3 -march=native`` for each. What is called is called from Python, through ctypes, in turns; the fastest of the
rounds counts. Seconds of cc are processor time. Without CasADi its rows are left out; where its file takes the compiler
longer than two minutes, there is no number.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from array_libraries import casadi_functions
from programs import PROGRAMS
from programs.bundle import projected
from programs.program import flat, mapped
from programs.runge_kutta import runge_kutta
from run import table

import micrograd as mg

if TYPE_CHECKING:
    from collections.abc import Callable

    from programs.program import Program

FLAGS = ["-O3", "-march=native"]
ROUNDS, LIMIT = 15, 120
ALL = {"rk-50": runge_kutta(50), **PROGRAMS}
HEADING = ["program", "by", "step, us", "times our kernels", "source, kB", "positions, kB", "data, kB"]
HEADING += ["object, kB", "cc, s", "work, kB"]
TABLE = re.compile(r"^static const (\w+) \w+\[\d*\] =\s*\{.*?\};", re.MULTILINE | re.DOTALL)
HERE = Path(__file__).resolve().parent


class Built:
    """A source file, compiled: the library, how long that took, and how many bytes there are.

    Those of the source, of the tables of positions and of numbers in it, and of its object.
    """

    def __init__(self, source: Path) -> None:
        library, result = source.with_suffix(".so"), source.with_suffix(".o")
        begin = seconds_of_children()
        compile_within_limit(["cc", *FLAGS, "-fPIC", "-c", str(source), "-o", str(result)])
        self.seconds = seconds_of_children() - begin
        subprocess.run(["cc", "-shared", result, "-o", library, "-lm"], check=True)
        self.library = ctypes.CDLL(str(library))
        tables = {"positions": 0, "data": 0}
        for found in TABLE.finditer(source.read_text()):
            tables["data" if found[1] in ("double", "float", "casadi_real") else "positions"] += len(found[0])
        self.sizes = source.stat().st_size, *tables.values(), result.stat().st_size

    def cells(self, work: int = 0) -> list[str]:
        """What the table says of it."""
        shown = f"{8 * work / 1e3:,.1f}" if work else "-"
        return [*(f"{size / 1e3:,.1f}" for size in self.sizes), f"{self.seconds:.2f}", shown]


def compile_within_limit(command: list[str]) -> None:
    """Run a compiler; where it takes too long, end it and the programs that it has started."""
    with subprocess.Popen(command, start_new_session=True) as compiler:
        try:
            code = compiler.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(compiler.pid, signal.SIGKILL)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def seconds_of_children() -> float:
    """The processor time of the compilers so far: on a busy machine they wait, too."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def ours(program: Program, folder: Path) -> tuple[Callable[[], object], Any, Callable[[], object], list[str]]:
    """The exported file and the kernels: a step of each, the gradient of the file, and the cells of the file."""
    numbers, given = program.data()
    weights = {name: mapped(mg.Value, nested) for name, nested in numbers.items()}
    scalars = program.scalars
    fast = mg.compile(lambda weights: scalars(weights, given), backend="llvm")
    source, header = fast.export(folder / "ours.c", weights, work="argument")
    text = Path(header).read_text(encoding="ascii")
    work = int(text.partition("OURS_WORK ")[2].split()[0])
    built = Built(Path(source))
    inputs = np.array(flat(numbers), dtype=float)
    results = np.zeros(1), np.zeros(len(inputs))
    arrays = [inputs, *results, *([np.zeros(work)] if work else [])]
    run, pointers = built.library.ours, [pointer(array) for array in arrays]
    run.restype = None

    def step(arrays: Any = arrays) -> None:
        run(*pointers)

    kernels = fast.program(weights)
    step()
    kernels.run()
    found = kernels.buffer[kernels.program.gradients]
    np.testing.assert_allclose(results[1], found, rtol=1e-9, atol=1e-11 * np.abs(found).max())
    return step, results[1], kernels.run, built.cells(work)


def by_casadi(name: str, program: Program, folder: Path, expected: Any) -> tuple[Callable[[], object], list[str]]:
    """What CasADi generates, for matrices where there is a program in them, and for the scalars where not."""
    import casadi
    from programs.in_matrices import IN_MATRICES, parameters

    numbers, given = program.data()
    scalars = getattr(program.scalars, "func", program.scalars).__globals__
    shared = projected.__globals__  # of the one program of which both use a part
    before = scalars.get("mg"), shared["mg"]
    scalars["mg"] = shared["mg"] = casadi_functions()
    try:
        if name in IN_MATRICES:
            vector = casadi.MX.sym("p", len(flat(numbers)))
            loss = IN_MATRICES[name](parameters(numbers, vector), given)
        else:
            vector = casadi.SX.sym("p", len(flat(numbers)))
            symbols = iter(casadi.vertsplit(vector))
            loss = program.scalars(
                {name: mapped(lambda _: next(symbols), each) for name, each in numbers.items()}, given
            )
    finally:
        scalars["mg"], shared["mg"] = before
    function = casadi.Function("theirs", [vector], [loss, casadi.gradient(loss, vector)])
    with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        function.generate("theirs.c")
    built = Built(folder / "theirs.c")
    inputs, value, gradient = np.array(flat(numbers), dtype=float), np.zeros(1), np.zeros(vector.numel())
    given_, results = (ctypes.c_void_p * function.sz_arg())(), (ctypes.c_void_p * function.sz_res())()
    given_[0], results[0], results[1] = (array.ctypes.data for array in (inputs, value, gradient))
    work, whole = np.zeros(function.sz_w() + 1), np.zeros(function.sz_iw() + 1, dtype=np.int64)
    run = built.library.theirs
    arguments = given_, results, pointer(whole), pointer(work), 0

    def step(kept: Any = (inputs, value, gradient, work, whole)) -> None:
        run(*arguments)

    step()
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())
    return step, built.cells(function.sz_w())


def by_hand(program: Program, folder: Path, expected: Any) -> tuple[Callable[[], object], list[str]]:
    numbers, given = program.data()
    source = folder / "runge_kutta.c"
    source.write_bytes((HERE / "programs" / "runge_kutta.c").read_bytes())
    built = Built(source)
    inputs, counted, gradient = (np.array(flat(part), dtype=float) for part in (numbers, given, numbers))
    run = built.library.value_and_gradient
    run.restype = ctypes.c_double
    arguments = pointer(inputs), pointer(counted), len(counted) // 2, pointer(gradient)

    def step(kept: Any = (inputs, counted, gradient)) -> None:
        run(*arguments)

    step()
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)
    return step, built.cells()


def rows(name: str, folder: Path) -> list[list[str]]:
    """The lines of the table for a program."""
    program = ALL[name]
    step, gradient, kernels, cells = ours(program, folder)
    steps, described = {"exported": step, "our kernels": kernels}, {"exported": cells, "our kernels": ["-"] * 6}
    if importlib.util.find_spec("casadi") and not name.endswith("scan"):
        try:
            steps["CasADi's C"], described["CasADi's C"] = by_casadi(name, program, folder, gradient)
        except Exception as error:  # what it cannot trace, or not compile in time, has no number
            described["CasADi's C"] = [type(error).__name__, *["-"] * 5]
    if name.startswith("rk"):
        steps["C by hand"], described["C by hand"] = by_hand(program, folder, gradient)
    seconds = dict(zip(steps, in_turns([*steps.values()]), strict=True))
    return [
        [
            name,
            key,
            *(
                [f"{1e6 * seconds[key]:,.1f}", f"{seconds[key] / seconds['our kernels']:.2f}"]
                if key in seconds
                else ["-", "-"]
            ),
            *texts,
        ]
        for key, texts in described.items()
    ]


def in_turns(steps: list[Callable[[], object]]) -> list[float]:
    """The seconds of a step of each: the least of the rounds."""
    fastest = [float("inf")] * len(steps)
    counts = []
    for step in steps:
        begin = time.perf_counter()
        step()
        counts.append(max(1, min(10_000, int(0.02 / max(time.perf_counter() - begin, 1e-7)))))
    for _ in range(ROUNDS):
        for position, (step, count) in enumerate(zip(steps, counts, strict=True)):
            begin = time.process_time()
            for _ in range(count):
                step()
            fastest[position] = min(fastest[position], (time.process_time() - begin) / count)
    return fastest


def main() -> None:
    os.environ.setdefault("MICROGRAD_THREADS", "1")
    lines = []
    for name in sys.argv[1:] or ALL:
        with tempfile.TemporaryDirectory() as folder:
            lines += rows(name, Path(folder))
            sys.stderr.write("".join(" | ".join(line) + "\n" for line in lines[-4:]))
    table("exported files", [HEADING, *lines])


if __name__ == "__main__":
    main()
