"""What test modules share."""

import pytest

from micrograd import registry


@pytest.fixture
def own_registry(monkeypatch):
    """Primitives that a test registers are gone after it, and their names are free again."""
    monkeypatch.setattr(registry, "PRIMITIVES", dict(registry.PRIMITIVES))
