"""What the modules share: a registry of primitives of their own, and the text of pictures."""

import re

import pytest

from micrograd import registry


@pytest.fixture
def own_registry(monkeypatch):
    """Primitives that a test registers are gone after it, and their names are free again."""
    monkeypatch.setattr(registry, "PRIMITIVES", dict(registry.PRIMITIVES))


@pytest.fixture
def draw():
    """The module that draws, where the extra for pictures is installed."""
    pytest.importorskip("graphviz")
    return pytest.importorskip("micrograd.draw")


@pytest.fixture
def text_of(draw):
    """What a picture of a graph says: its DOT source without tags."""
    return lambda root: re.sub(r"<[^<>]*>", " ", draw.draw_dot(root).source)
