"""Which backends there are, and which one a name means.

    backend_of("numpy")     Backend(name="numpy", ...)
    backend_of("auto")      the fastest that is installed

A backend is loaded when it is asked for. To add one, write a file with a ``BACKEND`` in it, and add its
line to BACKENDS.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from micrograd._support.callers import warn_user

if TYPE_CHECKING:
    from micrograd.compiler.backends.shared.backend import Backend


class Entry(NamedTuple):
    """Where a backend is, and which package it needs."""

    module: str
    package: str


BACKENDS = {
    "numpy": Entry("micrograd.compiler.backends.numpy.numpy_backend", "numpy"),
    "llvm": Entry("micrograd.compiler.backends.llvm.llvm_backend", "llvmlite"),
    "jax": Entry("micrograd.compiler.backends.jax.jax_backend", "jax"),
}


def backend_of(name: str) -> Backend:
    """The backend of this name; for "auto" llvm, or numpy with a warning where llvmlite is not installed.

    Raises:
        ValueError: if there is none of this name.
        ImportError: if what it needs is not installed.
    """
    *others, last = map(repr, ["auto", *BACKENDS])
    if name not in ["auto", *BACKENDS]:
        raise ValueError(f"backend must be {', '.join(others)} or {last}, not {name!r}")
    if name == "auto":
        try:
            return _loaded("llvm")
        except ImportError:
            _warn_without_llvmlite()
            return _loaded("numpy")
    try:
        return _loaded(name)
    except ImportError as error:
        package = BACKENDS[name].package
        raise ImportError(f"the {name} backend needs {package}: pip install {package}") from error


def _loaded(name: str) -> Backend:
    backend: Backend = import_module(BACKENDS[name].module).BACKEND
    return backend


@cache  # once is enough
def _warn_without_llvmlite() -> None:
    warn_user(
        "llvmlite is not installed, so compiled functions run on NumPy, some 50 times slower: pip install llvmlite",
        UserWarning,
    )
