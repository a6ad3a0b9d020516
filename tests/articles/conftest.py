"""What the modules share: the text of pictures."""

import re

import pytest


@pytest.fixture
def draw():
    """The module that draws, where the extra for pictures is installed."""
    pytest.importorskip("graphviz")
    return pytest.importorskip("micrograd.draw.graph")


@pytest.fixture
def text_of(draw):
    """What a picture of a graph says: its DOT source without tags."""
    return lambda root: re.sub(r"<[^<>]*>", " ", draw.draw_dot(root).source)
