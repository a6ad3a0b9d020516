"""Arrays of bools among the arguments of compiled functions, which are others at each call."""

import signal

import numpy as np
import pytest

import micrograd as mg

pytestmark = pytest.mark.slow(together=True)

RANDOM = np.random.default_rng(4)
MASKS = RANDOM.random((6, 5)) < 0.5
X = RANDOM.normal(size=5)


def filled(x, mask):
    return np.where(mask, x, -1.0).sum()


def combined(x, mask):
    both = np.where(mask & (x > 0), x, 1.0).sum() + np.where(mask | (x > 0) ^ ~mask, x, 2.0).sum()
    return both * mask.mean() + (x * mask).sum() / (1 + mask.sum()) + (mask.astype(float) @ x) * np.count_nonzero(mask)


def first(x, mask):
    return x[np.argmax(mask)] * np.cumsum(mask)[-1]


def chosen(x, mask):
    return x.sum() if mask.any() else x.prod()


def attention(x, mask):
    scores = np.where(mask[:, None] & mask, np.outer(x, x), -1e9)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True) @ x).sum()


def copied(x, mask):
    mask = mask.copy()
    mask[0] = True
    return np.where(mask, x, 0.0).sum()


def in_a_loop(x, mask):
    return mg.scan(lambda state, row: (state * 0.5 + np.where(row[1], row[0], 0.0), None), 0.0, (x, mask))[0]


DATA = [filled, combined, first, attention, copied, in_a_loop]


@pytest.mark.parametrize("function", [*DATA, chosen])
@pytest.mark.unmeasured
def test_masks_that_change_give_what_eager_gives(function, backend):
    derived = mg.value_and_grad(function)
    fast = mg.compile(derived, backend=backend)
    for mask in MASKS:
        found, expected = fast(X, mask), derived(X, mask)
        assert found[0] == pytest.approx(expected[0], rel=1e-12)
        assert found[1] == pytest.approx(expected[1], rel=1e-12)


@pytest.mark.parametrize("function", DATA)
def test_all_masks_but_the_first_are_one_program(function):
    fast = mg.compile(function)
    for mask in MASKS:
        assert fast(X, mask=mask) == pytest.approx(function(X, mask))
    assert fast.cache_info().programs == fast.cache_info().traces == 2
    assert fast.cache_info().given_up == 0


def test_the_same_mask_again_needs_no_second_program():
    fast = mg.compile(filled)
    for x in (X, X + 1, X * 2):
        assert fast(x, MASKS[0].copy()) == pytest.approx(filled(x, MASKS[0]))
    assert fast.cache_info().traces == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x, mask: x[mask].sum(),
        lambda x, mask: sum(x[0] * k for k in range(mask.sum())),
        lambda x, mask: sum(a if b else 2 * a for a, b in zip(x, mask, strict=True)),
        lambda x, mask: x.sum() + len(str(mask[0])),
    ],
    ids=["an index", "a count", "ifs", "a text"],
)
def test_masks_that_decide_are_static(function):
    fast = mg.compile(function)
    for mask in [*MASKS, *MASKS]:
        assert fast(X, mask) == pytest.approx(function(X, mask))
    assert fast.cache_info().programs == len(np.unique(MASKS, axis=0))


def test_functions_that_decide_on_other_numbers_may_have_masks():
    fast = mg.compile(lambda x, mask: filled(x, mask) if x[0] > 0 else x.prod())
    for x in (X, -X):
        for mask in MASKS:
            assert fast(x, mask) == pytest.approx(fast.function(x, mask))
    assert fast.cache_info().programs <= 4


def test_what_a_handler_of_a_signal_raises_goes_to_the_caller():
    def stop(*_):
        raise TimeoutError("stop")

    def f(x, mask):
        if type(mask) is not np.ndarray:  # while it is traced as data
            signal.raise_signal(signal.SIGINT)
        return filled(x, mask)

    fast, before = mg.compile(f), signal.signal(signal.SIGINT, stop)
    try:
        fast(X, MASKS[0])
        with pytest.raises(TimeoutError, match="stop"):
            fast(X, MASKS[1])
    finally:
        signal.signal(signal.SIGINT, before)
    assert fast(X, MASKS[0]) == pytest.approx(filled(X, MASKS[0]))


def test_what_is_asked_about_a_function_is_about_its_last_call():
    fast = mg.compile(filled)
    assert len(fast.program(X, MASKS[0]).program.inputs) == 5  # the first mask is static
    for mask in MASKS[:3]:
        fast(X, mask)
    assert len(fast.program().program.inputs) == len(fast.program(X, MASKS[4]).program.inputs) == 10  # x, and the mask
    assert fast.last_call()[0].data == pytest.approx(filled(X, MASKS[2]))
    assert set(fast.last_call()[1]) == {"x", "mask"}
    fast(X, MASKS[0].astype(float))
    assert fast.last_call()[0].data == pytest.approx(filled(X, MASKS[0]))
    fast.cache_clear()
    assert fast.cache_info().programs == 0


def test_values_are_trained_through_masks():
    weights = mg.array([0.5, -1.0, 2.0])
    fast = mg.compile(lambda x, mask: np.where(mask, weights * x, 0.0).sum())
    for mask in MASKS[:4, :3]:
        for each in weights:
            each.grad = 0.0
        loss = fast(X[:3], mask)
        loss.backward()
        assert loss.data == pytest.approx((np.array([0.5, -1.0, 2.0]) * X[:3])[mask].sum())
        assert mg.gradients(weights) == pytest.approx(np.where(mask, X[:3], 0.0))


def test_other_shapes_and_other_kinds_of_masks():
    fast = mg.compile(filled)
    for mask in (*MASKS[:3], *MASKS[:3, :2], True, MASKS[0].astype(int), False, MASKS[1], MASKS[1].astype(float)):
        x = X[: np.size(mask)] if np.ndim(mask) else X
        assert fast(x, mask) == pytest.approx(filled(x, mask))


def test_what_is_not_finite_runs_eagerly():
    fast = mg.compile(lambda x, mask: np.where(mask, np.log(x), 0.0).sum())
    for mask in MASKS:
        with np.errstate(invalid="ignore"):
            assert fast(X, mask) == pytest.approx(fast.function(X, mask), nan_ok=True)


def test_a_mask_that_is_changed_in_place_is_static():
    def spoils(x, mask):
        mask[0] = True
        return np.where(mask, x, 0.0).sum()

    fast = mg.compile(spoils)
    for mask in MASKS:
        assert fast(X, mask.copy()) == pytest.approx(spoils(X, mask.copy()))
    assert fast.cache_info().programs == len(MASKS)


@pytest.mark.usefixtures("few_are_many")
def test_masks_of_many_rows_need_no_trace_of_all(caplog):
    rows = RANDOM.normal(size=(450, 3))
    fast = mg.compile(mg.value_and_grad(lambda w, x, mask: np.where(mask, x @ w, 0.0).mean()))
    masks = RANDOM.random((3, 450)) < 0.5
    with caplog.at_level("DEBUG", logger="micrograd"):
        results = [fast(X[:3], rows, mask) for mask in masks]
    assert [r[0] for r in results] == pytest.approx([np.where(mask, rows @ X[:3], 0.0).mean() for mask in masks])
    messages = [record.getMessage() for record in caplog.records]
    assert sum("is traced for all" in message for message in messages) == 1  # with the first mask, which is static


def test_a_long_mask_is_data_at_once_where_it_can_be():
    x, masks = RANDOM.normal(size=2000), RANDOM.random((3, 2000)) < 0.5
    fast = mg.compile(filled)
    assert [fast(x, mask) for mask in masks] == pytest.approx([filled(x, mask) for mask in masks])
    assert fast.cache_info().programs == 1
    fast = mg.compile(lambda x, mask: filled(x, mask) if x[0] > -9 else x.sum())
    assert [fast(x, mask) for mask in masks] == pytest.approx([filled(x, mask) for mask in masks])
    assert fast.cache_info().programs == 2
    fast = mg.compile(lambda x, mask: x[mask].sum())
    assert [fast(x, mask) for mask in masks] == pytest.approx([x[mask].sum() for mask in masks])
