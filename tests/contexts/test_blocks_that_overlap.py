"""Blocks of no_grad and its like that end in another order than they began in, or in another task."""

import asyncio
import contextvars

import pytest

import micrograd as mg
from micrograd import Value
from tests.compiler.runs import Runs


def records():
    x = Value(2.0)
    return (x * x).requires_grad


def silent():
    with mg.no_grad():
        for _ in range(2):
            yield records()


def watched():
    with mg.detect_anomaly():
        for _ in range(2):
            yield records()


@pytest.mark.parametrize("kinds", [(silent, silent), (silent, watched), (watched, silent), (silent, silent, silent)])
def test_generators_side_by_side_leave_recording_on(kinds):
    list(zip(*(kind() for kind in kinds), strict=True))
    assert records()
    with mg.no_grad():
        assert not records()
    assert records()


def test_an_async_generator_that_is_broken_out_of_leaves_recording_on():
    async def numbers():
        with mg.no_grad():
            for _ in range(3):
                yield records()

    async def program():
        async for recorded in numbers():
            assert not recorded
            break
        await asyncio.sleep(0)  # the loop closes the generator, in a task of its own
        await asyncio.sleep(0)
        return records()

    assert asyncio.run(program())


def test_what_was_closed_elsewhere_is_passed_over_by_every_way_to_compute():
    opened = silent()
    context = contextvars.copy_context()
    context.run(next, opened)
    opened.close()

    def program():
        x, y = Value(2.0), Value(3.0)
        out = Value(6.0, (x,), "by hand")
        out._backward = lambda: None
        everything = (x * y, 1.0 - x, mg.tanh(x), mg.where(x > 1, x, y), mg.dot([x, y], [1.0, 2.0]), out)
        return [value.requires_grad for value in everything]

    assert context.run(program) == [True] * 6


def test_a_derivative_of_a_compiled_function_is_recorded_under_no_grad():
    calls = Runs()

    def f(x):
        print(end="", file=calls)
        return x * x

    square = mg.compile(f, backend="numpy")
    with mg.no_grad():
        for _ in range(3):
            assert mg.grad(square)(3.0) == 6.0
            assert not square(Value(3.0)).requires_grad
    assert calls.times <= 2  # it was traced, and never run as it is
