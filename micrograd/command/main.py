"""The command ``micrograd``: gradients and pictures of an expression, and networks that learn from a table.

micrograd grad "x*y + z" x=2 y=-3 z=10
micrograd train penguins.csv --target species -o report
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from micrograd.command.output import BROKEN_PIPE, INTERRUPTED, WRONG, printable
from micrograd.command.words import options_of

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the words after the command's name; those of the shell if left out.

    Returns:
        The exit code: 0 if all went well, 1 if a check failed, 2 if something is wrong with an argument,
        an expression or a file, 130 after Ctrl-C, 141 if what reads the output closed it.
    """
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            if sys.stdout is not None:  # as it is where it was closed before
                sys.stdout.flush()  # now, where an error can still be handled
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        print("micrograd: interrupted; no file is half written", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:  # the disk behind the output is full
        _drop_output()
        return _complain(error)


def _run(words: Sequence[str]) -> int:
    options = options_of(words)
    try:
        return int(options.run(options))
    except BrokenPipeError:
        raise
    except (ValueError, ArithmeticError, ImportError, OSError) as error:
        return _complain(error)


def _complain(error: Exception) -> int:
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        message = str(error)
    print("\n".join(map(printable, f"micrograd: {message}".split("\n"))), file=sys.stderr)
    return WRONG


def _drop_output() -> None:
    """Send what is left of the output nowhere, so that the interpreter's flush at the end does not fail, too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
