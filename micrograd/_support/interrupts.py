"""Finishing what must not be left half done when Ctrl-C comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def finish(action: Callable[[], object]) -> None:
    """Run an action to its end, from the start again if Ctrl-C cuts it off; then let Ctrl-C through.

    Args:
        action: takes no arguments; it must be harmless to run it again after a part of it was done.
    """
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            action()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
