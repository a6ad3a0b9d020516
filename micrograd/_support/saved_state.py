"""Numbers by name, in a JSON file that is whole or refused: what a model saves and loads.

The file carries a checksum of its names and numbers, so that a damaged digit is noticed:

    {"format": "micrograd state 1", "checksum": "8c1f...", "state": {"layers.0.neurons.0.b": 0.0, ...}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_type, required_number

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

FORMAT = "micrograd state 1"


class SavedState:
    """What can be saved to a file and loaded again, because it has a state of numbers by name."""

    def state_dict(self) -> dict[str, float]:
        """The numbers by name."""
        raise NotImplementedError

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        """Take all of the numbers, or none where anything is wrong."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``state_dict`` to a JSON file: the old file or the new one is there, never a part.

        Raises:
            ValueError: if a number is infinite or NaN; nothing is written then.
            OSError: if the file cannot be written.
        """
        write_state(path, self.state_dict())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Load what ``save`` wrote; nothing is changed if anything is wrong.

        Raises:
            ValueError: if the file is cut off or damaged, or is of something else, such as another model.
            OSError: if the file cannot be read.
        """
        try:
            self.load_state_dict(read_state(path))
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"cannot load {path}: {error}") from error


class Parameterised(SavedState):
    """A module of nn.py, for what need not know more of it than that it has parameters."""


def check_state(state: Mapping[str, Any], names: Iterable[str]) -> dict[str, float]:
    """The finite floats of a state that has exactly these names.

    Raises:
        ValueError: if a name is missing or unknown, or a number is not finite.
        TypeError: if it is no dict, or something in it is not a number.
    """
    check_type(isinstance(state, Mapping), "a state must be a dict of numbers by name", state)
    expected = dict.fromkeys(names)
    missing = [name for name in expected if name not in state]
    unknown = [name for name in state if name not in expected]
    if missing or unknown:
        problems = [_some_of(missing, "missing"), _some_of(unknown, "unknown")]
        raise ValueError(f"the state does not fit: {'; '.join(filter(None, problems))}")
    return {name: _finite(state[name], name) for name in expected}


def write_state(path: str | os.PathLike[str], state: Mapping[str, float]) -> None:
    """Write numbers by name to a JSON file, all of it or nothing.

    Raises:
        ValueError: if a number is infinite or NaN.
        OSError: if the file cannot be written.
    """
    import json

    from micrograd._support.files import write_atomically

    numbers = {name: _finite(number, name) for name, number in state.items()}
    content = {"format": FORMAT, "checksum": _checksum(numbers), "state": numbers}
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def read_state(path: str | os.PathLike[str]) -> dict[str, float]:
    """Read the numbers by name that write_state wrote.

    Raises:
        ValueError: if the file is cut off, damaged, or not of this kind.
        OSError: if the file cannot be read.
    """
    import json
    from pathlib import Path

    try:
        content = json.loads(Path(path).read_bytes().decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is cut off or damaged, no valid JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("state"), dict):
        raise ValueError(f"it is not a file that save wrote (its format is not {FORMAT!r})")
    numbers = {name: _finite(number, name) for name, number in content["state"].items()}
    if content.get("checksum") != _checksum(numbers):
        raise ValueError("it is damaged or was edited: its checksum does not fit its numbers")
    return numbers


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not math.isfinite(number := required_number(value, f"parameter {name!r}")):
        raise ValueError(f"parameter {name!r} is {value}, not a finite number")
    return number


def _checksum(numbers: Mapping[str, float]) -> str:
    """The checksum of the numbers as JSON. It differs for any two states, whatever is in their names."""
    import json

    from micrograd._support.files import checksum

    return checksum(json.dumps(numbers).encode())


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of a JSON object. A name that is there twice is refused: the parser would keep the last."""
    if len(names := dict(pairs)) != len(pairs):
        raise ValueError("it has a name twice")
    return names


def _some_of(names: list[str], what: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(map(repr, names[:3]))}{more} {what}" if names else ""
