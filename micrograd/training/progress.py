"""The progress bar of a training."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def progress_bar(progress: bool | None, steps: int) -> Any:
    """A tqdm bar for so many steps, or None for none.

    Args:
        progress: whether to show one; None for on a terminal, if tqdm is there.
        steps: how many there will be.

    Raises:
        ImportError: if there must be one, and tqdm is not installed.
    """
    if progress is False or (progress is None and not (sys.stderr and sys.stderr.isatty())):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        if progress is None:
            return None
        raise ImportError("a progress bar needs tqdm: pip install tqdm") from None
    return tqdm(total=steps, unit="step")


def show(bar: Any, epoch: int, loss: float, others: Mapping[str, float]) -> None:
    """Let the bar say the number of the epoch, its loss so far, and what the last epoch gave besides."""
    numbers = "".join(f", {name} {number:.4f}" for name, number in {"loss": loss, **others}.items())
    bar.set_postfix_str(f"epoch {epoch + 1}{numbers}", refresh=False)
