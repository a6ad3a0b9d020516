"""What an iteration of mg.vmap asks of its numbers, as by ``if x > 0``, is data: one program serves all answers."""

import math
import signal
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg

pytestmark = pytest.mark.slow(together=True)

W, T = mg.Value(1.5), mg.Value(0.3)


def clipped(v):
    return v * v if v > 0 else -v


def huber(v):
    size = abs(v)
    if size < 0.5:
        return 0.5 * size * size * W
    if size < 1.5:
        return (size - 0.125) * W
    return mg.log(size) + W


def largest(v):
    return sorted([v, 0.5])[1] * max(v, 0.0)


def computed(v):
    size = mg.exp(v) * W
    return size if size > 1.2 else 3.0


def of_a_gradient(v):
    slope = mg.grad(lambda u: u * u * u if u > 0 else u)(v)
    return slope if slope > 0.5 else v


def around_a_choice(v):
    return mg.cond(v > 0, lambda u: u * u if u > 1 else 2 * u, lambda u: -u if u > -1 else u, v)


def around_a_loop(v):
    return mg.while_loop(lambda s: s > 0.25, lambda s: s * 0.5 if s > 0.5 else s * 0.25, v * W)


def around_a_scan(v):
    return mg.scan(lambda s, x: (s * 0.5 + x if s > 0 else s + x * x, s), v * W, [0.1, 0.2])[0]


def in_an_array(v):
    array = np.array([v, 2 * v, v * v])
    return array.sum() if array[1] > array[2] else array.prod()


def that_raises_on_one_branch(v):
    if v < -9:
        raise ValueError("too small")
    return mg.exp(v) if v < 0.5 else v


def loss_of(each):
    return mg.value_and_grad(lambda x: sum(mg.vmap(each)(x), 0.0 * W))


def numbers(found):
    value, slopes = found
    return [*mg.numbers([value]), *mg.numbers(slopes)]


RANDOM = np.random.default_rng(0)
ROWS = [RANDOM.normal(size=20) for _ in range(3)]


@pytest.mark.parametrize(
    "each",
    [
        *(clipped, huber, largest, computed, of_a_gradient, around_a_choice, around_a_loop, around_a_scan),
        *(in_an_array, that_raises_on_one_branch),
    ],
)
def test_one_trace_serves_all_answers(each):
    written, compiled = loss_of(each), mg.compile(loss_of(each))
    for rows in ROWS:
        assert numbers(compiled(rows)) == pytest.approx(numbers(written(rows)), rel=1e-12, abs=1e-12)
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_other_backends(backend):
    compiled = mg.compile(loss_of(clipped), backend=backend)
    for rows in ROWS:
        assert numbers(compiled(rows)) == pytest.approx(numbers(loss_of(clipped)(rows)))
    assert compiled.cache_info().traces == 1


@settings(max_examples=10)
@given(
    thresholds=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=3),
    powers=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    rows=st.lists(st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0]), min_size=8, max_size=12),
)
def test_random_decisions(thresholds, powers, rows):
    def each(v):
        for threshold, power in zip(thresholds, powers, strict=False):
            if v * (power + 1) < threshold:
                return v**power * W
        return v ** powers[-1] - W

    found = mg.compile(loss_of(each))(np.array(rows))
    assert numbers(found) == pytest.approx(numbers(loss_of(each)(np.array(rows))), rel=1e-12)


def test_many_rows_take_few_and_errors_of_rows_are_raised():
    def each(v):
        if v < -9:
            raise ValueError(f"{float(v)} is too small")
        return v * v if v > 0 else -v

    compiled = mg.compile(lambda x: mg.vmap(each)(x).sum())
    rows = RANDOM.normal(size=1_000)
    assert compiled(rows) == pytest.approx(np.where(rows > 0, rows * rows, -rows).sum(), rel=1e-12)
    assert compiled.cache_info().program_bytes < 1_000 * 250
    rows[987] = -10.0
    with pytest.raises(ValueError, match=r"-10.0 is too small"):
        compiled(rows)


def test_branches_that_may_raise_run_where_they_are_needed():
    compiled = mg.compile(mg.value_and_grad(lambda x: mg.vmap(lambda v: mg.log(v) if v > 0 else -v)(x).sum()))
    rows = RANDOM.normal(size=2_000)
    value, slopes = compiled(rows)
    positive = np.where(rows > 0, rows, 1.0)
    assert value == pytest.approx(np.where(rows > 0, np.log(positive), -rows).sum(), rel=1e-12)
    assert slopes == pytest.approx(np.where(rows > 0, 1 / positive, -1.0), rel=1e-12)


def test_the_int_of_a_number_in_a_branch_makes_paths():
    compiled = mg.compile(lambda x: mg.vmap(lambda v: v + int(v) if v > 0 else v)(x).tolist())
    rows = np.array([-1.5, 0.5, 1.5, 2.5, -0.5, 3.5, 0.25, 7.25])
    assert compiled(rows) == [v + int(v) if v > 0 else v for v in rows.tolist()]


def test_what_a_handler_of_a_signal_raises_is_not_taken_for_an_error_of_a_branch():
    calls = 0

    def handler(*_):
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyError("the handler's")

    def each(v):
        if v > 0:
            signal.raise_signal(signal.SIGUSR1)
            return v
        signal.raise_signal(signal.SIGUSR1)
        return mg.log(v + 9.0)

    before = signal.signal(signal.SIGUSR1, handler)
    last, is_over = 1, False
    try:
        while not is_over:
            calls = 0
            compiled = mg.compile(lambda x: mg.vmap(each)(x).sum())
            with suppress(KeyError):
                found = compiled(ROWS[0])
                is_over = True
            assert is_over is (calls < last)
            last += 1 + last // 2
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert last > 9
    assert found == pytest.approx(np.where(ROWS[0] > 0, ROWS[0], np.log(ROWS[0] + 9.0)).sum())


def test_ties_and_numbers_between_which_rounding_might_decide():
    compiled = mg.compile(lambda x: mg.vmap(lambda v: 2.0 * v if v >= 0.0 else 5.0)(x).tolist())
    rows = np.array([0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, 2.0, -2.0])
    assert compiled(rows) == [0.0, 0.0, 1e-323, 5.0, 2.0, 5.0, 4.0, 5.0]

    def close(v):
        return 1.0 if mg.exp(v) * 3.0 - 3.0 * mg.exp(v) >= 0 else 2.0

    assert mg.compile(lambda x: mg.vmap(close)(x).tolist())(rows) == [close(row) for row in rows.tolist()]


def test_items_of_which_some_are_computed():
    def squares(x):
        items = [*x[:5], *(mg.exp(v) * 3.0 - 3.0 * mg.exp(v) + v for v in x[5:])]
        return sum(mg.vmap(lambda v: v * v if v > 0 else -v)(items))

    compiled = mg.compile(squares)
    for seed in range(2):
        rows = np.random.default_rng(seed).normal(size=60).tolist()
        assert compiled(rows) == pytest.approx(squares(rows), rel=1e-12)
    assert compiled.cache_info().traces == 1


def test_not_a_number_is_as_eagerly():
    def each(x):
        return mg.vmap(lambda v: v * v if v > 0 else -v)(x)

    rows = np.array([math.nan, *range(8)])
    assert np.array_equal(mg.compile(each)(rows), each(rows), equal_nan=True)


def test_each_row_is_of_the_kind_that_it_has_eagerly():
    def each(x):
        return list(mg.vmap(lambda v: v * W if v > 0 else 1.0)(x))

    compiled = mg.compile(each)
    for rows in ROWS:
        assert [*map(type, compiled(rows))] == [*map(type, each(rows))]


def test_the_int_of_a_number_and_many_questions_make_paths():
    def counts(v):
        count = 0.0
        while v > 0.01:
            v, count = v * 0.5, count + 1.0
        return count + int(v)

    compiled = mg.compile(lambda x: mg.vmap(counts)(x).tolist())
    for rows in ROWS:
        assert compiled(rows) == [counts(row) for row in rows.tolist()]


def test_items_may_be_values_that_the_function_closes_over():
    values = [mg.Value(number) for number in ROWS[0].tolist()]
    compiled = mg.compile(lambda: sum(mg.vmap(clipped)(values)))
    for rows in ROWS:
        for value, number in zip(values, rows.tolist(), strict=True):
            value.data, value.grad = number, 0.0
        compiled().backward()
        assert [value.grad for value in values] == pytest.approx(np.where(rows > 0, 2 * rows, -1.0))
    assert compiled.cache_info().traces == 1


def test_what_all_rows_share_makes_paths_so_that_rows_are_computed_side_by_side():
    compiled = mg.compile(lambda x: mg.vmap(lambda v: v * W if T > 0 else v)(x).sum())
    assert compiled(ROWS[0]).data == pytest.approx(1.5 * ROWS[0].sum())
    assert "asked" in compiled.explain()


def test_a_function_that_remembers_is_run_once_for_each_row():
    seen = []

    def each(v):
        if v > 0:
            seen.append("positive")
            return v
        return -v

    compiled = mg.compile(lambda x: mg.vmap(each)(x).sum())
    assert compiled(ROWS[0]) == pytest.approx(abs(ROWS[0]).sum())
    assert len(seen) == (ROWS[0] > 0).sum()


def test_an_error_that_is_caught_is_a_branch():
    def each(v):
        try:
            return mg.log(v) if v > 0 else 1.0 / 0.0
        except ZeroDivisionError:
            return v

    compiled = mg.compile(loss_of(each))
    for rows in ROWS:
        assert numbers(compiled(rows)) == pytest.approx(numbers(loss_of(each)(rows)))


def catching_all(v):
    try:
        return v if v > 0 else 2 * v
    except BaseException:
        return 3 * v


def leaving_by_finally(v):
    result = 7 * v
    try:
        result = v if v > 0 else 2 * v
    finally:
        return result  # noqa: B012  # it takes the exception away


def raising_another(v):
    try:
        return v if v > 0 else 2 * v
    except BaseException as error:
        raise RuntimeError("another") from error


@pytest.mark.parametrize("each", [catching_all, leaving_by_finally, raising_another])
def test_code_that_catches_everything_is_as_eagerly(each):
    compiled = mg.compile(lambda x: mg.vmap(each)(x).tolist())
    assert compiled(ROWS[0]) == [each(row) for row in ROWS[0].tolist()]
    chosen = mg.compile(lambda x: mg.cond(x > 0, each, lambda x: x, x))
    assert [chosen(2.0), chosen(-2.0)] == [2.0, -2.0]


def in_another_order(v):
    return {"a": v, "b": 2.0} if v > 0 else {"b": v * v, "a": -1.0}


def logarithms_in_another_order(v):
    return {"a": mg.log(v), "b": 2.0} if v > 0 else {"b": v * v, "a": -1.0}


@pytest.mark.parametrize("each", [in_another_order, logarithms_in_another_order])
def test_dicts_whose_keys_have_another_order_are_matched_by_their_keys(each):
    assert mg.compile(mg.vmap(each))(ROWS[0].tolist()) == mg.vmap(each)(ROWS[0].tolist())
    function, parameters = mg.to_jax(each, 0.5)
    for number in (-2.0, 2.0):
        assert function(parameters, number) == pytest.approx(each(number))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mg.cond(x > 0, lambda: {"a": x, "b": 2.0}, lambda: {"b": x * x, "a": -1.0}),
        lambda x: mg.switch(abs(x), [lambda: 1.0, lambda: {"a": x}, lambda: {"a": x, "b": 2.0}][2:] * 3),
        lambda x: mg.while_loop(lambda s: s["a"] < 9, lambda s: {"b": s["b"] + 1, "a": 2 + s["a"]}, {"a": x, "b": 0.0}),
        lambda x: mg.scan(
            lambda s, k: ({"b": s["a"] * 0.5 + k, "a": s["b"]}, s["a"]), {"a": x, "b": 1.0}, [0.1] * 20, checkpoint=4
        ),
    ],
)
def test_decisions_match_dicts_by_their_keys_too(f):
    compiled = mg.compile(f)
    for number in (2.0, -2.0):
        found, expected = compiled(number), f(number)
        (found, outputs), (expected, others) = (
            each if isinstance(each, tuple) else (each, []) for each in (found, expected)
        )
        assert found == pytest.approx(expected)
        assert outputs == pytest.approx(others)


def test_what_an_iteration_has_decided_may_be_asked_by_another_one():
    def twice(x):
        return mg.vmap(lambda v: 1.0 * v if v > 0.2 else 2.0)(mg.vmap(lambda v: mg.exp(v) / 3 if v > 0 else v)(x))

    written = mg.value_and_grad(lambda x: sum(twice(x)))
    compiled = mg.compile(written)
    for rows in ROWS:
        assert numbers(compiled(rows)) == pytest.approx(numbers(written(rows)), rel=1e-12)


def test_a_question_for_each_of_several_columns_makes_paths():
    each = mg.vmap(lambda row: sum(x if x > 0 else -2 * x for x in row))
    table = RANDOM.normal(size=(10, 9))
    assert mg.compile(each)(table) == pytest.approx(each(table))


def test_integers_and_floats_of_one_list_keep_their_kinds():
    for each in (lambda x: x * x if x > 0 else -x, lambda x: x / 2 if x > 0 else x):
        compiled = mg.compile(mg.vmap(each))
        for rows in ([0.5, 1, 2, -3.5, True, 7] * 2, [1, 0.5, 2, -3.5, 0, 7.5] * 2, [1.0, 2] * 4):
            found, expected = compiled(rows), mg.vmap(each)(rows)
            assert found == expected
            assert [*map(type, found)] == [*map(type, expected)]


def test_what_they_close_over_may_change_between_calls():
    compiled = mg.compile(loss_of(huber))
    compiled(ROWS[0])
    before = W.data
    try:
        W.data = -2.0
        assert numbers(compiled(ROWS[1])) == pytest.approx(numbers(loss_of(huber)(ROWS[1])))
    finally:
        W.data = before
    assert compiled.cache_info().traces == 1


class TestLoopsInPython:
    """A loop that asks makes a path for each set of answers, where branches may raise: such calls soon run eagerly."""

    def test_no_call_takes_long(self):
        def loss(x):
            return sum(mg.log(v) if v > 0 else -v for v in x)

        compiled = mg.compile(loss)
        rows = np.random.default_rng(0).normal(size=(18, 400)).tolist()
        with pytest.warns(RuntimeWarning, match="was traced for 16 ways through it"):
            found = [*map(compiled, rows)]
        assert found == pytest.approx([*map(loss, rows)])
        assert compiled.cache_info().traces < 20

    def test_few_paths_that_recur_are_kept(self):
        compiled = mg.compile(lambda x: sum(v * v if v > 0 else -v for v in x))
        rows = np.random.default_rng(0).choice([-1.0, 1.0], size=(12, 20))
        for row in rows:
            for _ in range(2):
                assert compiled(row.tolist()) == 20.0 - 0.0 * row.sum()
