"""What the tests of the compiler share."""

import itertools
import os

import pytest

_ALL = "MICROGRAD_JAX_TESTS"


# What these modules test comes before the backend; on JAX, one in eight of their tests runs
ABOUT_TRACING = (
    "test_arrays_inside",
    "test_attributes_of_values",
    "test_kept",
    "test_structure",
    "test_what_is_closed",
)

# In these modules each pass is verified; see micrograd/compiler/passes/verifier.py
VERIFIED = (
    "test_against_eager",
    "test_compiled_derivatives",
    "test_loops",
    "test_normalise",
    "test_packs",
    "test_same_numbers",
    "test_several_results",
    "test_allocate",
    "test_transposing",
    "test_vectors",
)


@pytest.fixture(autouse=True)
def _verify(request, monkeypatch):
    """Verify each pass where the module is one of those."""
    if request.path.stem in VERIFIED:
        monkeypatch.setenv("MICROGRAD_VERIFY", "1")


def pytest_collection_modifyitems(config, items):
    """Mark what runs on JAX: XLA takes its time, and a primitive of one's own is called back in Python with a warning.

    With MICROGRAD_JAX_TESTS=all in the environment, all tests run.
    """
    left_out, count = set(), itertools.count()
    for item in items:
        if getattr(item, "callspec", None) and item.callspec.params.get("backend") == "jax":
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore:JAX calls primitive:RuntimeWarning"))
            if item.path.stem.startswith(ABOUT_TRACING) and next(count) % 8 and not os.environ.get(_ALL):
                left_out.add(item)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


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
