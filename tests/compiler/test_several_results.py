"""Compiled functions with several results: one reverse program takes the gradients of all that were used."""

import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.engine.array_calls import Seeds
from tests.compiler.backends.sparing import is_left_out
from tests.compiler.test_against_eager import gradients
from tests.strategies import programs


def test_several_outputs(backend):
    x, y = Value(2.0), Value(3.0)
    fast = mg.compile(lambda s: {"sum": x + y * s, "parts": [x * y, mg.exp(y), 7.0]}, backend=backend)
    result = fast(2.0)
    assert result["parts"][2] == 7.0
    assert [result["sum"].data, result["parts"][0].data] == [8.0, 6.0]
    (result["sum"] * 10 + result["parts"][0] + result["parts"][1]).backward()
    assert [x.grad, y.grad] == pytest.approx([13.0, 22.0 + math.exp(3.0)])


def test_a_singular_output_does_not_spoil_the_gradients_of_others(backend):
    x = Value(0.0)
    root, triple = mg.compile(lambda: (mg.sqrt(x), x * 3), backend=backend)()
    triple.backward()
    assert x.grad == 3.0
    (triple * 5).backward()
    assert x.grad == 18.0
    with pytest.raises(ZeroDivisionError):
        root.backward()
    assert x.grad == 18.0


def test_a_result_that_is_there_twice(backend):
    x = Value(0.0)

    def f():
        root = mg.sqrt(x)
        return root, root, x * 3

    results = mg.compile(f, backend=backend)()
    results[2].backward(create_graph=True)
    assert x.grad.data == 3.0
    with pytest.raises(ZeroDivisionError):
        results[1].backward()


def test_what_has_no_derivative_spoils_no_output_that_lets_no_gradient_through_it(backend):
    flat = mg.primitive("flat3_compiled", "flat", lambda x, y: x * y, replace=True)
    x = Value(3.0)
    first, second = mg.compile(lambda: (mg.detach(flat(x, x)) + x, flat(x, x) * 2.0), backend=backend)()
    assert (first.data, second.data) == (12.0, 18.0)
    first.backward()
    assert x.grad == 1.0
    with pytest.raises(ValueError, match="no derivative"):
        second.backward()


def test_each_of_two_outputs_has_its_own_gradient(backend):
    x, y = leaves = [Value(2.0), Value(3.0)]
    fast = mg.compile(lambda: (x * y, x + 5 * y), backend=backend)
    assert gradients(lambda: fast()[0], leaves) == [6.0, 3.0, 2.0]
    assert gradients(lambda: fast()[1], leaves) == [17.0, 1.0, 5.0]


@pytest.mark.slow
@settings(max_examples=10)
@given(program=programs(), weights=st.lists(st.sampled_from([0.0, 1.0, -2.0, 0.5]), min_size=3, max_size=3))
def test_any_sum_of_results_has_the_gradients_that_it_has_eagerly(program, weights, backend):
    if is_left_out(backend, (program, weights)):
        return
    leaves = list(map(Value, program.inputs))

    def f():
        result = program(*leaves)
        return result, result * 3.0 + leaves[0], leaves[-1] * leaves[0]

    fast = mg.compile(f, backend=backend)

    def total(function):
        return sum(weight * result for weight, result in zip(weights, function(), strict=True) if weight)

    if any(weights) and total(f).requires_grad:
        expected = gradients(lambda: total(f), leaves)
        assert gradients(lambda: total(fast), leaves) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@settings(deadline=None)
@given(
    numbers=st.lists(st.integers(-9, 9), min_size=6, max_size=6),
    seeds=st.lists(st.integers(-9, 9), min_size=6, max_size=6),
)
def test_whole_numbers_give_the_gradients_bit_for_bit(numbers, seeds, backend):
    w, v = leaves = [Value(2.0), Value(-3.0)]

    def total(function):
        return sum(seed * result for seed, result in zip(seeds, function(numbers, w, v), strict=True))

    assert gradients(lambda: total(compiled_folded(backend)), leaves) == gradients(lambda: total(folded), leaves)


def folded(xs, w, v):
    return [mg.maximum(w * x, v) * v + abs(x * w - v) for x in xs]


@cache
def compiled_folded(backend):
    return mg.compile(folded, backend=backend)


def test_one_run_of_the_reverse_program_serves_all_results(monkeypatch):
    w, runs = Value(2.0), []
    fast = mg.compile(lambda: [w * number for number in range(10)], backend="numpy")
    results = fast()
    kind = type(fast.program())
    run = kind.run
    monkeypatch.setattr(kind, "run", lambda self: (runs.append(self), run(self)))
    sum(results).backward()
    assert w.grad == 45.0
    assert len(runs) == 1


def test_gradients_add_up_over_calls_and_by_hand(backend):
    x, y = Value(2.0), Value(3.0)
    product, total = mg.compile(lambda: (x * y, x + y), backend=backend)()
    loss = product * 10 + total + total
    loss.backward()
    loss.backward()
    assert [x.grad, y.grad] == [64.0, 44.0]
    assert [product.grad, total.grad] == [10.0, 2.0]
    x.grad = y.grad = 0.0
    nodes = [loss, *loss._prev]
    for node in nodes:
        node.grad = 0.0
    order = mg.engine.order.topological_order(loss)
    for node in order:
        node.grad = 0.0
    loss.grad = 1.0
    for node in reversed(order):  # as in micrograd
        node._backward()
    assert [x.grad, y.grad] == [32.0, 22.0]


def test_the_node_below_the_results_is_a_number_that_is_added_to_each(backend):
    x, y = Value(2.0), Value(3.0)
    product, total = mg.compile(lambda: (x * y, x + y), backend=backend)()
    (call,) = product._prev
    assert total._prev == {call}
    assert call._prev == {x, y}
    assert call.data == 0.0
    (product * 10 + total).backward()
    assert call.grad == 11.0
    x.grad = y.grad = 0.0
    call.backward()  # the gradient of the sum of the results
    assert [x.grad, y.grad] == [4.0, 3.0]
    assert mg.gradient(product * 2 + total, [call, x, y]) == [3.0, 7.0, 5.0]


def test_pictures_pages_and_watching_take_such_results(backend, tmp_path):
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    product, total = mg.compile(lambda: (x * y, x + y), backend=backend)()
    loss = product * total
    with mg.detect_anomaly():
        loss.backward()
    assert [x.grad, y.grad] == [6.0 + 15.0, 6.0 + 10.0]
    source = mg.draw_dot(loss).source
    assert [f"output {number} of" in source for number in range(4)] == [False, True, True, False]
    mg.explore(loss, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert ["compiled \\u003clambda>" in text, "output 2 of" in text] == [True, False]  # its kernels are there


def test_results_of_one_call_go_into_another(backend):
    x = Value(0.5)
    first = mg.compile(lambda v: (mg.sin(v), mg.cos(v)), backend=backend)
    second = mg.compile(lambda a, b: [a * b, a + b, a], backend=backend)

    def f(one, two):
        a, b = one(x)
        return sum(result * (number + 1) for number, result in enumerate(two(a, b)))

    expected = gradients(lambda: f(first.function, second.function), [x])
    assert gradients(lambda: f(first, second), [x]) == pytest.approx(expected, rel=1e-12)


def test_a_singular_result_needs_the_numbers_of_the_call(backend):
    x, y = Value(0.0), Value(3.0)
    fast = mg.compile(lambda: (mg.sqrt(x), x * y), backend=backend)
    _, product = fast()
    y.data = 5.0
    with pytest.raises(ValueError, match="have changed since the call; call it again"):
        product.backward()
    assert [x.grad, y.grad] == [0.0, 0.0]
    _, product = fast()
    product.backward()
    assert [x.grad, y.grad] == [5.0, 0.0]


def test_gradients_are_those_of_the_numbers_at_the_call(backend):
    x, y = Value(2.0), Value(3.0)
    product, total = mg.compile(lambda: (x * y, x + y), backend=backend)()
    x.data = y.data = 100.0
    (product + total).backward()
    assert [x.grad, y.grad] == [4.0, 3.0]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_gradients_that_are_graphs_are_those_of_the_function_as_it_is_written(backend):
    """Also where the operands depend on one another, and one is given twice."""
    x = Value(2.0)
    double = x * 2.0
    for f in (
        lambda a, b: a * a * b + double * a,
        lambda a, b: (a * a * b, double * a),
        lambda a, b: (a * a, a * a * b + double * a, b),
        lambda a, b: (a, a * b * double),
    ):
        for arguments in ((x, double), (double, x), (x, x), (x, 3.0)):
            found = []
            for function in (f, mg.compile(f, backend=backend)):
                results = function(*arguments)
                results = results if isinstance(results, tuple) else (results,)
                slope = mg.gradient(sum(result**2 for result in results), x, create_graph=True)
                found.append((slope.data, mg.gradient(slope, x)))
            assert found[1] == pytest.approx(found[0])


def test_a_graph_after_something_was_replaced_is_an_error(backend):
    x, factors = Value(2.0), [3.0]
    fast = mg.compile(lambda: factors[0] * x**3, backend=backend)
    result = fast()
    result.backward(create_graph=True)
    assert mg.gradient(x.grad, x) == 36.0
    result = fast()
    factors[0] = 4.0
    with pytest.raises(ValueError, match="gives other numbers now than at the call"):
        result.backward(create_graph=True)
    pair = mg.compile(lambda y: (x * y, y), backend=backend)(x)
    x.data = 5.0
    with pytest.raises(ValueError, match=r"was 2\.0 in the forward pass"):
        pair[0].backward(create_graph=True)


def test_seeds_keep_their_parts_in_any_sum():
    one, two = Seeds(2.0, 0), Seeds(3.0, 1)
    assert (one + two) + (two + one) == 10.0
    for total in (1.0 + (one + two), (one + 1.0) + two, one + (two + 1.0)):
        assert total == 6.0
        parts = sorted((number, result) for number, result in total.parts() if number)
        assert parts == [(1.0, None), (2.0, 0), (3.0, 1)]
    assert math.isnan(Seeds(math.inf, 0) + Seeds(-math.inf, 1))
