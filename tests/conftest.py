"""What test modules share."""

import pytest

from micrograd.engine.primitive import PRIMITIVES


@pytest.fixture
def own_registry():
    """Primitives that a test registers are gone after it, and their names are free again."""
    before = dict(PRIMITIVES)
    yield
    PRIMITIVES.clear()
    PRIMITIVES.update(before)
