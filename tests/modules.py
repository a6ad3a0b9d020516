"""All modules of the library, for tests that need them loaded."""

import contextlib
import importlib
import pkgutil

import micrograd


def load_all():
    """Import every module, but for those that need what is not installed."""
    for module in pkgutil.walk_packages(micrograd.__path__, "micrograd."):
        if module.name != "micrograd.__main__":  # which runs the command
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
