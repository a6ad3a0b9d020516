"""The list that says whether a recorder may be in use anywhere: what it must never miss, and when it is empty again."""

import asyncio
import contextvars
import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.refusals import TraceError
from micrograd.engine.applying import record
from micrograd.engine.recorder import Recorder, Recording, using
from micrograd.engine.stored import SPECIAL
from tests.interrupts import interrupted_and_recording


def records():
    x = Value(2.0)
    return (x * x).requires_grad


def active():
    """How many entries stand for a recorder; parameters that other tests have stored have entries, too."""
    return sum(isinstance(reference(), Recording) for reference in SPECIAL)


@pytest.fixture(autouse=True)
def empty_before_and_after():
    """Nothing is in use around a test."""
    gc.collect()
    gc.freeze()  # the next collection is quick
    assert active() == 0
    yield
    assert active() == 0
    assert records()


class Listing(Recorder):
    """Writes down the names of the primitives."""

    def __init__(self):
        self.names = []

    def apply(self, primitive, *operands):
        """Record as the operators do."""
        self.names.append(primitive.name)
        return record(primitive, operands)


@pytest.mark.parametrize("context", [mg.no_grad, mg.detect_anomaly, mg.record_scopes])
def test_it_holds_something_inside_a_block_and_nothing_after_it(context):
    for _ in range(2):
        with context():
            assert active() == 1
            with mg.no_grad():
                assert active() == 2
                assert not records()
            assert active() == 1
        assert active() == 0


def test_it_is_empty_after_every_kind_of_program():
    x = Value(0.5)

    def f(x):
        return x * mg.tanh(x)

    mg.compile(f, backend="numpy")(x)
    mg.grad(mg.grad(f))(x)
    mg.vmap(f)([x, x])
    with mg.no_grad():
        mg.grad(f)(x)
        assert active() == 1


def test_a_recorder_that_its_user_keeps_is_in_use_only_inside_and_may_be_used_again_and_inside_itself():
    listing, x = Listing(), Value(2.0)
    for _ in range(2):
        with using(listing):
            x * x
            with using(listing):
                x + x
            x - x
        assert active() == 0
        x / x
    assert listing.names == ["mul", "add", "sub"] * 2


def test_an_exception_that_is_kept_keeps_no_recorder_in_use():
    kept = []
    try:
        with using(Listing()):
            raise ValueError("inside")
    except ValueError as error:
        kept.append(error)
    try:
        mg.compile(lambda x: float(x), backend="numpy")(Value(1.0))
    except TraceError as error:
        kept.append(error)
    assert len(kept) == 2
    assert active() == 0


def test_another_thread_records_while_this_one_does_not_and_the_other_way_round():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def silent():
        with mg.no_grad():
            inside.set()
            leave.wait(600)
            seen.append(records())

    thread = threading.Thread(target=silent)
    thread.start()
    inside.wait(600)
    assert active() == 1
    assert records()
    with mg.no_grad():
        assert not records()
        leave.set()
        thread.join()
        assert not records()
    assert seen == [False]


def test_a_copied_context_keeps_the_recorder_until_nothing_refers_to_it():
    with mg.no_grad():
        copied = contextvars.copy_context()
        again = copied.copy()
    assert active() == 1
    assert records()
    assert not copied.run(records)
    del copied
    assert not again.run(records)
    del again
    assert active() == 0


def test_a_task_that_was_started_inside_is_silent_to_its_end():
    async def child(go_on):
        await go_on.wait()
        return records()

    async def program():
        go_on = asyncio.Event()
        with mg.no_grad():
            task = asyncio.create_task(child(go_on))
        assert records()
        assert active() == 1
        go_on.set()
        silent = await task
        del task
        await asyncio.sleep(0)
        assert active() == 0
        return silent

    assert not asyncio.run(program())


def steps():
    with mg.no_grad():
        yield records()
        yield records()


def test_a_generator_that_another_context_closes_is_over_in_both():
    copied, generator = contextvars.copy_context(), steps()
    copied.run(next, generator)
    generator.close()
    assert records()
    assert copied.run(records)
    assert active() == 0


def test_what_lies_below_a_block_that_was_ended_elsewhere_is_still_in_use():
    generator = steps()

    def program():
        with mg.detect_anomaly():
            next(generator)
            thread = threading.Thread(target=generator.close)
            thread.start()
            thread.join()
            assert records()
            with pytest.raises(FloatingPointError):
                Value(1e200) * Value(1e200)

    contextvars.copy_context().run(program)


def test_a_generator_that_is_dropped_leaves_nothing():
    generator = steps()
    next(generator)
    del generator
    gc.collect()
    assert records()


def test_a_task_that_goes_on_after_the_trace_it_was_started_in_records_as_always():
    async def child(go_on):
        await go_on.wait()
        return records()

    async def program():
        go_on, tasks = asyncio.Event(), []

        def f(x):
            tasks.append(asyncio.create_task(child(go_on)))
            with mg.no_grad():
                tasks.append(asyncio.create_task(child(go_on)))
                mg.grad(lambda y: (tasks.append(asyncio.create_task(child(go_on))), y * y)[1])(x)
            return x * x

        mg.compile(f, backend="numpy")(Value(2.0))
        go_on.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(program()) == [True] * 3


@pytest.mark.parametrize("context", [mg.no_grad, mg.detect_anomaly])
def test_an_interrupt_anywhere_loses_no_recorder_and_leaves_none(context):
    inside = []

    def program():
        with context():
            inside.append(active())
            Value(2.0) * 3

    for count in range(1, 200):
        interrupted, recording = contextvars.copy_context().run(interrupted_and_recording, count, program)
        assert recording, count
        assert active() == 0, count
        if not interrupted:
            break
    assert count > 20
    assert set(inside) == {1}


def test_copies_and_pickles_made_inside_are_like_those_made_outside():
    x = Value(2.0, label="x")
    with mg.no_grad():
        made = [pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)]
        assert not any((copied * 2).requires_grad for copied in made)
    assert [(copied * 2).requires_grad for copied in made] == [True] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_goes_on_as_its_parent_was():

    with mg.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if not records() and active() == 1 else 1
            finally:
                os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


FIRST_CALL = """
import dis
from micrograd import Value
from micrograd.engine import backward

x = y = Value(0.5)
for _ in range(100):
    y = y * x
y.backward()
for function in (backward._count_uses, backward._pass_gradients):
    print("LOAD_ATTR_SLOT" in {step.opname for step in dis.get_instructions(function, adaptive=True)})
"""


@pytest.mark.skipif(
    sys.implementation.name != "cpython" or sys.version_info < (3, 11), reason="this Python specialises nothing"
)
def test_the_interpreter_makes_backward_fast_at_its_first_call():
    run = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "True"]
