"""The list of changes names modules that are there."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "docs" / "changelog.md").read_text(encoding="utf-8")
TABLE = TEXT.partition("### Moved modules")[2].partition("\n###")[0]
MOVED = re.findall(r"^\| `(micrograd\.[\w.]+)` \| (.*) \|$", TABLE, re.MULTILINE)
PACKAGES_NOW = {"micrograd.compiler.training", "micrograd.draw", "micrograd.engine", "micrograd.training"}


@pytest.mark.parametrize(("before", "now"), MOVED, ids=[before for before, _ in MOVED])
def test_a_moved_module_is_where_the_list_says(before, now):
    assert all(find_spec(name) for name in re.findall(r"`([^`]+)`", now))
    assert before in PACKAGES_NOW or find_spec(before) is None


def test_the_list_is_found():
    assert len(MOVED) == len(re.findall(r"^\| `", TABLE, re.MULTILINE)) > 30
