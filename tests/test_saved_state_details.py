"""The checksum of a saved state: no two states have the same."""

import json
from hashlib import sha256

import pytest

from micrograd._support.saved_state import read_state, write_state

ALIKE = [  # states whose names and numbers, written one after the other, look much the same
    {"a": 1.0, "b": 2.0},
    {"a 1.0\nb": 2.0},
    {"a": 1.0, "b 2.0\n": 2.0},
    {'a": 1.0, "b': 2.0},
    {'a\\": 1.0, \\"b': 2.0},
    {"b": 2.0, "a": 1.0},
    {"a": 2.0, "b": 1.0},
    {"": 1.0, "b": 2.0},
    {"a": 1.0, "b": -2.0},
    {"A": 1.0, "b": 2.0},
    {"a": 1.0},
    {"a": 0.0},
    {"a": -0.0},
    {"c": 1.0},
    {"ä": 1.0},
    {"\\u00e4": 1.0},
    {},
]


def written(path, state):
    write_state(path, state)
    return json.loads(path.read_bytes())


def test_no_two_states_have_one_checksum(tmp_path):
    checksums = [written(tmp_path / "state", state)["checksum"] for state in ALIKE]
    assert len(set(checksums)) == len(ALIKE)
    assert all(len(checksum) == 64 for checksum in checksums)


@pytest.mark.parametrize("state", ALIKE, ids=repr)
@pytest.mark.slow
def test_a_state_is_read_as_it_was_written_and_not_with_the_checksum_of_another(tmp_path, state):
    path = tmp_path / "state"
    write_state(path, state)
    read = read_state(path)
    assert list(map(repr, read.items())) == list(map(repr, state.items()))
    for other in ALIKE:
        if list(map(repr, other.items())) != list(map(repr, state.items())):
            content = written(path, state) | {"state": other}
            path.write_text(json.dumps(content))
            with pytest.raises(ValueError, match="its checksum does not fit its numbers"):
                read_state(path)


def test_the_checksum_is_that_of_the_format(tmp_path):
    """Files that were written are to be read by later versions: the checksum must not change unnoticed."""
    content = written(tmp_path / "state", {"layers.0.neurons.0.w.0": -0.0, 'a "name"\n': 1e-300, "ä": 0.1})
    assert content["format"] == "micrograd state 1"
    text = r'{"layers.0.neurons.0.w.0": -0.0, "a \"name\"\n": 1e-300, "\u00e4": 0.1}'
    assert content["checksum"] == sha256(text.encode()).hexdigest()
