"""A chain of additions, as deep as it is long: bytes a node, and time a node up to millions of nodes."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from time import process_time
from typing import TYPE_CHECKING, Any

from workers import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engines import Engine

MEMORY_LENGTH = 1_000_000
DEEP_LENGTHS = (500_000, 1_000_000, 2_000_000, 3_000_000)


def chain(leaf: Any, length: int) -> Any:
    """The sum of a leaf and as many more as the length says."""
    total = leaf
    for _ in range(length):
        total = total + leaf
    return total


def serve_memory(engine: Engine, length: int) -> Iterator[tuple[float, float]]:
    """In the worker: yield the bytes a node that a backpropagated chain holds, and that it took at most.

    tracemalloc counts what Python allocates, headers included: nodes, numbers, tuples, sets, closures
    and lists. It does not count what the allocator adds to round up.
    """
    leaf = engine.leaf(1.0)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    root = chain(leaf, length)
    root.backward()
    _, most = tracemalloc.get_traced_memory()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    yield (after - before) / length, (most - before) / length


def serve_resident(engine: Engine, length: int) -> Iterator[float]:
    """In the worker: yield the bytes a node by which the process grew at most, as the system sees it."""
    leaf = engine.leaf(1.0)
    before = most_resident()
    chain(leaf, length).backward()
    yield (most_resident() - before) / length


def most_resident() -> int:
    """The most memory that this process has had, in bytes; 0 on Windows, which has no such count."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def serve_deep(engine: Engine, lengths: tuple[int, ...]) -> Iterator[tuple[float, float, float]]:
    """In the worker: yield for each length the seconds (of the processor) to build, backpropagate and free a chain."""
    for _ in range(engine.warm_up):
        chain(engine.leaf(1.0), 100).backward()
        engine.free()
    for length in lengths:
        leaf = engine.leaf(1.0)
        times = [process_time()]
        root = chain(leaf, length)
        times.append(process_time())
        root.backward()
        times.append(process_time())
        if leaf.grad != length + 1:
            raise ValueError(f"the gradient of a chain of {length} is {leaf.grad}")
        del root
        engine.free()
        times.append(process_time())
        yield times[1] - times[0], times[2] - times[1], times[3] - times[2]


def memory_rows(engines: list[type[Engine]]) -> list[list[str]]:
    """The table of bytes a node, a line an engine, each number from a process of its own."""
    lines = [["engine", "additions", "bytes a node after backward", "at most", "growth of the process"]]
    for engine in engines:
        length = engine.deepest or MEMORY_LENGTH
        with Worker(engine, serve_memory, length) as worker:
            after, most = worker.ask()
        with Worker(engine, serve_resident, length) as worker:
            grown = worker.ask()
        lines.append([engine.name, f"{length:,}", f"{after:.0f}", f"{most:.0f}", f"{grown:.0f}" if grown else "-"])
    return lines


def deep_rows(engine: type[Engine]) -> list[list[str]]:
    """The table of microseconds a node, a line a length."""
    lines = [["additions", "build", "backward", "free", "µs a node in all"]]
    with Worker(engine, serve_deep, DEEP_LENGTHS) as worker:
        for length in DEEP_LENGTHS:
            micros = [1e6 * seconds / length for seconds in worker.ask()]
            lines.append([f"{length:,}", *(f"{time:.2f}" for time in micros), f"{sum(micros):.2f}"])
    return lines
