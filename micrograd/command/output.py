"""What the command ends with: the exit codes, and JSON for scripts."""

from __future__ import annotations

import json
import math
from typing import Any

from micrograd.draw.text import visible

OK, FAILED, WRONG = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141  # what a shell reports of a program that these signals end


def print_json(content: Any) -> None:
    """Print JSON. Infinities and NaNs become null, as JSON has none."""

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: finite(value) for key, value in part.items()}
        if isinstance(part, (list, tuple)):
            return [finite(value) for value in part]
        return None if isinstance(part, float) and not math.isfinite(part) else part

    print(json.dumps(finite(content), indent=1, allow_nan=False))


def printable(text: str) -> str:
    """A text for the terminal: what would move the cursor or change colours is written as in Python."""
    return "".join(map(visible, text))
