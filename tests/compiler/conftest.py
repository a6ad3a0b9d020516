"""What the tests of the compiler share."""

import pytest


@pytest.fixture(autouse=True, scope="package")
def _cache_folder(tmp_path_factory):
    """A cache of their own: the first test compiles, the others find."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MICROGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(params=["numpy", "llvm"], scope="module")
def backend(request):
    """The backends, one after the other."""
    return request.param
