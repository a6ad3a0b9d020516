"""The engines that are compared, and how each is reached.

Each worker process makes one of them, and so imports nothing of the others.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

CACHE = Path(__file__).resolve().parents[2] / ".benchmarks"
PYPI = "micrograd==0.1.0"


class Engine(ABC):
    """What the benchmarks need of an engine, beside the operators, exp, log, relu and backward of its values."""

    name: str
    warm_up = 12  # steps; CPython specialises a function for what it sees in its first eight calls or so
    recursive = False  # whether its walk through the graph is
    deepest: int | None = None  # the longest chain to walk, if not any
    leaf: Any  # makes a value from a float

    def keep(self) -> None:  # noqa: B027  # most engines have nothing to do here
        """Called when the parameters are made: they outlast free."""

    def free(self) -> None:  # noqa: B027  # nor here
        """Let go of what a step made, as far as dropping its result does not."""

    def zero(self, parameters: list[Any]) -> None:
        """Set the gradients of the parameters to 0."""
        for parameter in parameters:
            parameter.grad = 0.0

    @abstractmethod
    def nodes(self, root: Any, parameters: list[Any]) -> int:
        """How many nodes were made for root, apart from the parameters."""


class Ours(Engine):
    name = "this micrograd"

    def __init__(self) -> None:
        from micrograd import Value

        self.leaf = Value

    def nodes(self, root: Any, parameters: list[Any]) -> int:
        """Count what root was computed from; plain numbers become nodes only here, in the walk."""
        from micrograd import topological_order

        return len({node for node in topological_order(root) if node.requires_grad}.difference(parameters))


class Pypi(Engine):
    """micrograd 0.1.0, from the Python package index, with exp and log added in its own style.

    Its walk through the graph is recursive, so a chain of a million would need a stack that deep; and
    tracemalloc looks through the whole stack at each allocation.
    """

    name = "micrograd 0.1.0 (PyPI)"
    warm_up = 2
    recursive = True
    deepest = 10_000

    def __init__(self) -> None:
        self.leaf = pypi_module().Value
        self.leaf.exp, self.leaf.log = exp_by_closure, log_by_closure

    def nodes(self, root: Any, parameters: list[Any]) -> int:
        """Count what root was computed from, nodes for plain numbers among it."""
        seen, stack = {root}, [root]
        while stack:
            fresh = stack.pop()._prev - seen
            seen |= fresh
            stack += fresh
        return len(seen.difference(parameters))


class Taped(Engine):
    """An engine that keeps what it computes on a list, and so needs no walk through a graph."""

    entries: list[Any]
    kept = 0

    def keep(self) -> None:
        """Remember where the parameters end."""
        self.kept = len(self.entries)

    def free(self) -> None:
        """Truncate the tape to the parameters."""
        del self.entries[self.kept :]

    def nodes(self, root: Any, parameters: list[Any]) -> int:
        """Count what is on the tape beside the parameters."""
        return len(self.entries) - len(parameters)


class ObjectTape(Taped):
    name = "tape: objects and local gradients"

    def __init__(self) -> None:
        from object_tape import TAPE, Node

        self.leaf, self.entries = Node, TAPE


ENGINES = (Ours, Pypi, ObjectTape)


def pypi_module() -> ModuleType:
    """micrograd 0.1.0's module engine, under a name of its own as its package has ours.

    The first time, pip installs it aside, without touching the environment.
    """
    folder = CACHE / PYPI.replace("==", "-")
    source = folder / "micrograd" / "engine.py"
    if not source.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), PYPI]
        subprocess.run(command, check=True)
    specification = importlib.util.spec_from_file_location("pypi_micrograd_engine", source)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def exp_by_closure(x: Any) -> Any:
    """The exponential as micrograd would have it."""
    out = type(x)(math.exp(x.data), (x,), "exp")

    def backward() -> None:
        x.grad += out.data * out.grad

    out._backward = backward
    return out


def log_by_closure(x: Any) -> Any:
    """The logarithm as micrograd would have it."""
    out = type(x)(math.log(x.data), (x,), "log")

    def backward() -> None:
        x.grad += out.grad / x.data

    out._backward = backward
    return out
