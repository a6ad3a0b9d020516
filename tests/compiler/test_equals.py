"""Equal operations of a trace are one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EqualsInOrder, equals_in_order
from micrograd.compiler.ir.equals import in_columns
from micrograd.compiler.tracing.iterations import traced_once
from micrograd.compiler.tracing.trace import Tape, trace, tracing
from micrograd.engine.primitive import Primitive

four = Primitive("four", "four", lambda a, b, c, d: a * b + c * d, *[lambda g, out, *operands: g] * 4)
OPERATIONS = {
    "add": lambda a, b, c, index: a + b,
    "mul": lambda a, b, c, index: a * b,
    "sub": lambda a, b, c, index: a - 0.5,
    "tanh": lambda a, b, c, index: mg.tanh(a),
    "where": lambda a, b, c, index: mg.where(a < b, b, c),
    "dot": lambda a, b, c, index: mg.dot([a, b, c, a], [b, c, a, 2.0]),
    "take": lambda a, b, c, index: mg.take([a, b, c], index),
    "four": lambda a, b, c, index: four(a, b, c, a),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), *[st.integers(0, 5)] * 3), min_size=1, max_size=30)


def program(steps, several):
    """What computes the steps more than once; the operands of a step are among the last numbers."""

    def f(xs, index):
        outputs = []
        for _ in range(several):
            numbers = list(xs)
            for name, *positions in steps:
                numbers.append(
                    OPERATIONS[name](*[numbers[-1 - position % len(numbers)] for position in positions], index)
                )
            outputs += numbers[-2:]
        return outputs

    return f


def columns_of(f, *more):
    return in_columns(trace(f, Structure((([Value(0.5), Value(1.5), Value(2.5)], *more), {}))))


def counts(columns):
    return {column.primitive.name: len(column.positions) for column in columns.operations}


@settings(max_examples=24)
@given(steps, st.integers(2, 3))
def test_what_is_computed_again_costs_nothing(steps, several):
    once, again = (columns_of(program(steps, times), 1) for times in (1, several))
    assert counts(again) == counts(once)
    assert again.nodes == once.nodes
    assert again.trace.outputs == once.trace.outputs * several


@settings(max_examples=12)
@given(steps)
def test_numbers_are_those_of_eager(steps):
    f = program(steps, 2)
    numbers = [0.75, -1.5, 2.0]
    compiled = mg.compile(f, backend="numpy")(list(map(Value, numbers)), 1)
    expected = f(list(map(Value, numbers)), 1)
    np.testing.assert_allclose([v.data for v in compiled], [v.data for v in expected], rtol=1e-13)


def test_zeros_of_two_signs_are_two_literals():
    literals = []
    for zero in (0.0, -0.0):
        entries = trace(lambda x, zero=zero: x * zero, Structure(((Value(1.0),), {}))).operations
        literals.append(tuple(entries))
    assert literals[0] != literals[1]


def test_operations_of_other_numbers_are_not_equal():
    def f(xs):
        x, y, z = xs
        return [x * y, y * x, x * z, x + y, x - y, x * 0.0, x * -0.0, mg.dot([x, y], [z, z]), mg.dot([x, z], [z, z])]

    assert counts(columns_of(f)) == {"mul": 5, "add": 1, "sub": 1, "sum_of_products": 2}


def test_a_row_whose_elements_become_another_rows_elements():
    """The rows are told apart by positions; equal ones are found when their elements are."""

    def f(xs):
        x, y, z = xs
        return mg.vmap(lambda t: mg.tanh(mg.dot([mg.exp(t), mg.exp(y)], [z, mg.sin(t)])))([x] * 8)

    columns = columns_of(traced_once(f))
    assert counts(columns) == {"exp": 2, "sin": 1, "sum_of_products": 1, "tanh": 1}
    assert len(set(columns.trace.outputs)) == 1


def test_results_of_which_none_uses_the_first_of_its_operands():
    def f(xs):
        x, y, z = xs
        products = mg.vmap(lambda t: t * y)([x] * 8)
        return [*products, *[mg.tanh(product) * z for product in products[4:]]]

    assert counts(columns_of(traced_once(f))) == {"mul": 2, "tanh": 1}


@pytest.mark.parametrize(
    "compute", [lambda h, w: h * w + 0.5, lambda h, w: mg.tanh(h), lambda h, w: mg.dot([h, w], [w, h])]
)
def test_what_is_the_same_for_each_sample_is_not_written_again_for_each(compute):
    """It is found while the function is traced, so that the trace does not grow with it."""

    def entries(samples):
        def f(xs):
            w, *_ = xs
            total = 0.0
            for sample in range(samples):
                h = w
                for _ in range(10):
                    h = compute(h, w)
                total = total + h * (sample + 0.25)
            return total

        return len(trace(f, Structure((([Value(0.5)],), {}))).operations)

    assert entries(200) - entries(100) == 3 * 100  # a literal, a product and a sum


def test_a_long_chain_that_is_computed_twice():
    def f(xs):
        outputs = []
        for _ in range(2):
            x = xs[0]
            for _ in range(300):
                x = mg.sin(x) * xs[1]
            outputs.append(x)
        return outputs

    assert counts(columns_of(f)) == {"sin": 300, "mul": 300}


def test_checks_of_what_is_computed_again_raise_as_eagerly():
    def f(x):
        return x**-2 + x**-2

    assert mg.compile(f)(Value(0.5)).data == 8.0
    with pytest.raises(ZeroDivisionError):
        f(Value(0.0))
    with pytest.raises(ZeroDivisionError):
        mg.compile(f)(Value(0.0))


@settings(max_examples=12)
@given(st.lists(steps, min_size=2, max_size=4))
def test_a_trace_that_grows_is_gone_through_once(parts):
    tape, equal = Tape(), EqualsInOrder()
    with tracing(tape):
        xs, index = [tape.input(name) for name in "xyz"], tape.input("index", int)
        for steps in parts:
            program(steps, 2)(xs, index)
            written = tape.trace([], [])
            assert equal.of(written) == equals_in_order(written)
