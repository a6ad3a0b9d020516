"""What the tests of the engine share."""

import gc

import pytest


@pytest.fixture
def without_collector():
    """Run a test without the cycle collector, which otherwise would hide what only it frees."""
    gc.collect()
    gc.freeze()  # so that the next collection goes through what the test makes, and not through all modules
    gc.disable()
    yield
    gc.enable()
