"""What the tests of the engine share."""

import copy
import pickle

import pytest

WAYS = {
    "deepcopy": copy.deepcopy,
    **{f"pickle{p}": lambda obj, p=p: pickle.loads(pickle.dumps(obj, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)},
    "pickle in Python": lambda obj: pickle.loads(pickle._dumps(obj)),
}


@pytest.fixture(params=WAYS.values(), ids=WAYS.keys())
def copied(request):
    """Each way to copy what there is."""
    return request.param
