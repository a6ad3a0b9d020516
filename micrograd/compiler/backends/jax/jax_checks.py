"""In which state JAX computes what we do: in float64, and in the process that has loaded it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_process = os.getpid()


def check_jax() -> None:
    """Raise where JAX would compute something else, or hang.

    Raises:
        RuntimeError: if JAX has no float64, or in a process that was forked from one that has loaded JAX.
    """
    check_float64()
    check_process()


def check_float64() -> None:
    """Raise where JAX has no float64."""
    if not jax.config.jax_enable_x64:
        raise RuntimeError(
            'micrograd computes in float64, which JAX has switched off: write jax.config.update("jax_enable_x64", '
            "True) at the start of the program, or set JAX_ENABLE_X64=1 in its environment"
        )


def check_process() -> None:
    """Raise where JAX would hang."""
    if os.getpid() != _process:
        raise RuntimeError(
            "JAX does not work in a process that was forked from one that has loaded it: start processes with the "
            'method "spawn", or load JAX after the fork only'
        )


def in_float64(is_on: bool) -> AbstractContextManager[Any]:
    """Inside, JAX traces in float64, or in float32; outside, it does what the user has set."""
    if hasattr(jax, "enable_x64"):  # pragma: no branch
        return jax.enable_x64(is_on)
    from jax.experimental import enable_x64  # pragma: no cover  # JAX before 0.8 has it there

    return enable_x64(is_on)  # pragma: no cover
