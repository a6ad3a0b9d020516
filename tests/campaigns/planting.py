"""Planting a mistake in the library without changing a file: a fork of this process gets other source for a module.

    loader = Loader("optim", source_with_a_mistake)
    sent, ended_by = forked(lambda pipe: run_pytest(files, Noticing(loader)))

The process has pytest and the libraries loaded, but not micrograd. So a fork starts at once, and imports micrograd
from the loader.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec

ROOT = Path(__file__).parents[2]
MEMORY = 8 << 30  # bytes, for a mistake that collects without end
LOADED = ["pytest", "_pytest.doctest", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy", "coverage",
          "numpy", "scipy.optimize", "scipy.special", "mpmath", "llvmlite.binding", "llvmlite.ir"]  # fmt: skip


def load_libraries() -> None:
    """Load what the forks would otherwise load each for itself."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def path_of(module: str) -> Path:
    """The file of a module, which is named as from inside of micrograd."""
    return ROOT / "micrograd" / (module.replace(".", "/") + ".py")


def name_of(module: str) -> str:
    """The name that a module is imported by."""
    return f"micrograd.{module}".removesuffix(".__init__")


def forked(work: Callable[[Any], None]) -> tuple[Any, int]:
    """What work in a fork has sent last, and the signal that ended it, or 0."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        try:
            import resource  # Windows has none, and does not fork

            os.setpgid(0, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
            os.close(reader)
            quiet = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(quiet, stream)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            with open(writer, "w", encoding="utf-8") as pipe:
                work(pipe)
        except BaseException:  # nothing may get out of the fork and go on as if it were the parent
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    sent = ""
    try:
        with open(reader, encoding="utf-8") as pipe:
            for line in pipe:
                sent = line
        _, status = os.waitpid(child, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # and the processes that a test has started
    return json.loads(sent) if sent else None, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def run_pytest(files: list[str], plugin: object) -> int:
    """Run the tests of files, or of parts of them, as everywhere, but with a Hypothesis that repeats itself."""
    import pytest
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        "campaign",
        max_examples=30,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("campaign")
    os.chdir(ROOT)
    words = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*words, *files], plugins=[plugin]))


class Loader(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Hands out a module with other source than its file has."""

    def __init__(self, module: str, source: str) -> None:
        super().__init__(name_of(module), str(path_of(module)))
        self.source = source

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, name: str) -> Any:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Noticing:
    """The plugin of a run with a mistake planted, if any: names the first test that fails."""

    def __init__(self, loader: Loader | None = None) -> None:
        self.loader = loader
        self.failed = ""
        if loader is not None:
            sys.meta_path.insert(0, loader)

    def pytest_sessionstart(self) -> None:
        if self.loader is not None:  # once more, before pytest's own, which loads what has examples to test
            sys.meta_path.insert(0, self.loader)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
