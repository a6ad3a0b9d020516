"""First calls of one loss in several spellings: ``python tests/benchmarks/known_rows.py [1000 10000 100000]``.

Least squares of rows of six numbers, with the gradients of six Values; and a scan of as many numbers. The rows are
arguments, or closed over; arrays, or lists. Each first call has a new process and an empty cache, and is timed from
after the import to the gradients, by the processor's time. The fastest of three counts.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
from run import show, table

import micrograd as mg

ROUNDS, WIDTH = 3, 6
weights = mg.array([0.1 * number for number in range(WIDTH)])


def in_numpy(x: Any, y: Any) -> Any:
    return ((x @ weights - y) ** 2).mean()


def of_row(row: Any, target: Any) -> Any:
    return (mg.dot(row, weights) - target) ** 2


def by_vmap(x: Any, y: Any) -> Any:
    return mg.mean(mg.vmap(of_row)(x, y))


def by_scan(_: Any, y: Any) -> Any:
    return mg.scan(lambda state, number: (0.9 * state + mg.tanh(number), None), weights[0], y)[0]


def in_python(x: Any, y: Any) -> Any:
    return sum(of_row(row, target) for row, target in zip(x, y, strict=True))


SPELLINGS = {
    f"{name}, {where}, {kind}": (function, where == "arguments", kind == "lists")
    for name, function in [("NumPy", in_numpy), ("vmap", by_vmap), ("scan", by_scan), ("plain loop", in_python)]
    for where in ("arguments", "closed over")
    for kind in ("arrays", "lists")
    if not (function is in_numpy and kind == "lists")
}


def measure(spelling: str, rows: int) -> float:
    """In a process of its own: how long a first call takes."""
    function, are_arguments, are_lists = SPELLINGS[spelling]
    generator = np.random.default_rng(0)
    x: Any = generator.standard_normal((rows, WIDTH))
    y: Any = generator.standard_normal(rows)
    if are_lists:
        x, y = x.tolist(), y.tolist()
    fast: Any = mg.compile(function if are_arguments else lambda: function(x, y))
    begin = time.process_time()
    fast(*((x, y) if are_arguments else ())).backward()
    return time.process_time() - begin


def measured(spelling: str, rows: int) -> float:
    """What new processes with an empty cache measure."""
    found = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, __file__, spelling, str(rows)]
            environment = {**os.environ, "MICROGRAD_CACHE": cache}
            answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found.append(float(json.loads(answer.stdout)))
    return min(found)


def main(sizes: list[int]) -> None:
    """Measure all spellings at these numbers of rows."""
    rows = [["spelling", *(f"{size:,} rows" for size in sizes)]]
    rows += [[spelling, *(f"{measured(spelling, size):.2f} s" for size in sizes)] for spelling in SPELLINGS]
    table("first call of a loss and its gradients", rows)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in SPELLINGS:
        show(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main([int(size) for size in sys.argv[1:]] or [1000, 10_000, 100_000])
