"""What the tests of the compiler share."""

import pytest


def pytest_collection_modifyitems(items):
    """On JAX, a primitive of one's own is called back in Python, and a warning says so; and XLA takes its time."""
    for item in items:
        if getattr(item, "callspec", None) and item.callspec.params.get("backend") == "jax":
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore:JAX calls primitive:RuntimeWarning"))


@pytest.fixture(autouse=True, scope="package")
def _cache_folder(tmp_path_factory):
    """A cache of their own: the first test compiles, the others find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=["numpy", "llvm", "jax"], scope="module")
def backend(request):
    """The backends, one after the other."""
    return request.param
