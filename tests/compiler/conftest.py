"""What the tests of the compiler share."""

import pytest

from micrograd.compiler.calling import of_rows

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


@pytest.fixture
def few_are_many(monkeypatch):
    """Fewer rows than for users, so that eager runs, and traces for all of them, take no time."""
    monkeypatch.setattr(of_rows, "FEWEST_ROWS", 400)
    monkeypatch.setattr(of_rows, "FEWEST_ITERATIONS", 400)


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
