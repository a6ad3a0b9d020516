"""Threads that work on parts of a job, and batches that are trained on by several of them."""

import gc
import os
import random
import signal
import threading
import time
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends.llvm import llvm_backend, llvm_batches, llvm_machine, thread_pool
from micrograd.compiler.backends.llvm.llvm_batch_runner import AWAY, LOOKS_OUT, WORKS
from micrograd.compiler.backends.llvm.thread_pool import beside, cores

pytestmark = [pytest.mark.slow(together=True), pytest.mark.stress]

WAIT = 600  # seconds that no test needs


def wait_until(holds):
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_each_is_called_in_a_thread_of_its_own_and_nobody_waits_for_them():
    together = threading.Barrier(4, timeout=WAIT)
    found = {}

    def work(name):
        found[name] = threading.current_thread()
        together.wait()  # which it does not get past alone

    for _ in range(3):
        found.clear()
        beside([partial(work, name) for name in "abc"])
        together.wait()  # nor does this one
        assert sorted(found) == ["a", "b", "c"]
        assert len({threading.current_thread(), *found.values()}) == 4


def test_nothing_to_call_needs_no_thread(monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda thread: pytest.fail("a thread is started"))
    beside([])


@pytest.fixture
def own_pool(monkeypatch):
    """Threads that no other test keeps busy."""
    monkeypatch.setattr(thread_pool, "_pool", thread_pool.ThreadPoolExecutor(100))


@pytest.mark.usefixtures("own_pool")
def test_what_is_raised_is_shown_and_the_thread_goes_on(monkeypatch):
    shown, threads = [], []
    monkeypatch.setattr(threading, "excepthook", lambda told: shown.append((told.exc_value, told.thread)))
    wrong = LookupError("not there")

    def raises():
        threads.append(threading.current_thread())
        raise wrong

    beside([raises])
    wait_until(lambda: shown == [(wrong, threads[0])])
    beside([lambda: threads.append(threading.current_thread())])
    wait_until(lambda: len(threads) == 2)


def test_what_was_called_is_forgotten():
    class Call:
        def __call__(self):
            pass

    call = Call()
    forgotten = weakref.ref(call)
    beside([call])
    del call
    wait_until(lambda: forgotten() is None)


def test_the_cores_are_those_of_the_process_unless_the_environment_says_how_many(monkeypatch):
    monkeypatch.delenv("MICROGRAD_THREADS", raising=False)
    monkeypatch.setattr(thread_pool, "_TIME_OF_CONTAINER", Path("not there"))
    given = len(os.sched_getaffinity(0))
    for others, expected in (("", given), ("1", 1), ("1000", given), ("0", given), ("4,2", given)):
        monkeypatch.setenv("OMP_NUM_THREADS", others)
        assert cores() == expected
    monkeypatch.setenv("MICROGRAD_THREADS", "3")
    assert cores() == 3
    for wrong in ("0", "-1", "two", "1.5", "²"):
        monkeypatch.setenv("MICROGRAD_THREADS", wrong)
        with pytest.raises(ValueError, match=f"MICROGRAD_THREADS must be an int of at least 1, not '{wrong}'"):
            cores()


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max 100000", 64), ("150000 100000", 2), ("100000 100000", 1), ("1000 100000", 1), ("", 64), ("100 0", 64)],
)
def test_a_container_with_less_time_than_cores_has_fewer_threads(limit, expected, monkeypatch, tmp_path):
    monkeypatch.delenv("MICROGRAD_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64))
    monkeypatch.setattr(thread_pool, "_TIME_OF_CONTAINER", tmp_path / "cpu.max")
    assert cores() == 64
    (tmp_path / "cpu.max").write_text(limit + "\n")
    assert cores() == expected


# Training


def trained(sizes, batch_size, monkeypatch, threads, worth=1, python=False, beside=beside, backend="llvm", epochs=3):
    """A small network, trained on lists of these lengths; and how many threads each batch was given to."""
    monkeypatch.setenv("MICROGRAD_THREADS", str(threads))
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", worth)
    counts = []

    def counted(calls):
        counts.append(1 + len(calls))
        beside(calls)

    monkeypatch.setattr(llvm_batches, "beside", counted)
    rng = random.Random(3)
    hidden, outer = ([mg.Value(rng.gauss(0, 1)) for _ in range(count)] for count in (5, 7))
    other = mg.Value(0.3)
    examples = [([rng.gauss(0, 1) for _ in range(size)], rng.random()) for size in sizes]
    last = mg.primitive("a_python_one", "p", float, lambda g, out, x: g, replace=True) if python else (lambda x: x)

    def loss(numbers, target):
        found = [mg.tanh(sum(w * x for x in numbers)) for w in hidden]
        return last((sum(v * y for v, y in zip(outer, found, strict=False)) * mg.detach(other) - target) ** 2)

    random.seed(3)  # the order of the examples
    parameters = [*hidden, *outer]
    history = mg.fit(
        loss, examples, mg.optim.Adam(parameters, 0.01), batch_size=batch_size, epochs=epochs, compile=backend
    )
    return [history.steps, *([p.data for p in parameters], [p.grad for p in parameters])], counts


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("batch_size", [3, 8, 11, 12, 20, 27, 31, 32, 50])
def test_a_batch_has_the_same_numbers_on_any_number_of_cores(batch_size, monkeypatch):
    sizes = [2, 3, 3, 4, 2] * 10
    alone, counts = trained(sizes, batch_size, monkeypatch, threads=1)
    assert set(counts) == {1}
    for threads in (2, 3, 20):
        found, counts = trained(sizes, batch_size, monkeypatch, threads)
        assert found == alone  # bit for bit
        assert max(counts) == min(threads, 8, max(1, batch_size // 4))
    in_numpy, _ = trained(sizes, batch_size, monkeypatch, threads=1, backend="numpy")
    for native, expected in zip(alone, in_numpy, strict=True):
        assert native == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("sizes", [[3] * 24, [2, 3, 4] * 8], ids=["alike", "of several lengths"])
def test_a_training_is_the_same_whether_its_code_is_compiled_or_found(sizes, monkeypatch, tmp_path):
    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))  # which is empty
    histories = []
    for _ in range(2):
        monkeypatch.setattr(llvm_machine, "_machine", None)
        histories.append(trained(sizes, 8, monkeypatch, threads=1)[0])
    assert histories[0] == histories[1]


def test_blocks_that_other_threads_run_have_the_same_numbers(monkeypatch):
    def first_the_others(calls):
        over = [threading.Event() for _ in calls]

        def run(call, event):
            call()
            event.set()

        beside([partial(run, *given) for given in zip(calls, over, strict=True)])
        assert all(event.wait(WAIT) for event in over)

    alone, _ = trained([2, 3, 4] * 11, 33, monkeypatch, threads=1)
    found, counts = trained([2, 3, 4] * 11, 33, monkeypatch, threads=3, beside=first_the_others)
    assert found == alone
    assert set(counts) == {3}


def test_a_batch_is_over_when_the_blocks_of_all_threads_are(monkeypatch):
    """Where the last block is another thread's, this one waits."""
    expected, _ = trained([3] * 32, 32, monkeypatch, threads=1)
    batch, found, waited = llvm_batches.BATCH, [], []

    def not_over_at_first(address):
        native = batch(address)

        def call(*given):
            found.append(native(*given))
            return found[-1] if len(found) % 2 == 0 else 0

        return call

    monkeypatch.setattr(llvm_batches, "BATCH", not_over_at_first)
    monkeypatch.setattr(llvm_batches, "_let_others_run", lambda: waited.append(0))
    assert trained([3] * 32, 32, monkeypatch, threads=1)[0] == expected
    assert found == [1, 1] * 3
    assert waited == [0] * 3


def test_a_thread_that_looks_out_for_the_next_batch_need_not_be_called_again(monkeypatch):
    workers, new_worker = [], llvm_batches._Worker
    monkeypatch.setattr(llvm_batches, "_Worker", lambda *given: workers.append(new_worker(*given)) or workers[-1])
    monkeypatch.setattr(llvm_batches, "_ITERATIONS", 2**62)  # for ever

    def let_them_run_all(calls):
        beside(calls)
        wait_until(lambda: all(worker.state == LOOKS_OUT for worker in calls))

    _, counts = trained([3] * 32, 32, monkeypatch, threads=2, beside=let_them_run_all, epochs=1)
    here, other = workers
    assert counts == [2]
    assert here.run([other])  # nothing is left to do: whoever comes too late looks out no more
    try:
        wait_until(lambda: other.state == AWAY)
    finally:
        other.state = WORKS  # so that it ends in any case


def test_batches_have_the_same_numbers_where_threads_look_out_for_the_next(monkeypatch):
    def until_they_have_run(calls):
        beside(calls)
        wait_until(lambda: all(worker.state != WORKS for worker in calls))

    expected, _ = trained([3] * 40, 32, monkeypatch, threads=1, epochs=40)
    for threads in (2, 3):
        found, _ = trained([3] * 40, 32, monkeypatch, threads, beside=until_they_have_run, epochs=40)
        assert found == expected


@pytest.mark.usefixtures("own_pool")
def test_where_no_thread_can_be_started_one_runs_all_blocks(monkeypatch):
    """As in a container that has as many as it may have, or while Python ends."""
    alone, _ = trained([3] * 32, 32, monkeypatch, threads=1)

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    found, counts = trained([3] * 32, 32, monkeypatch, threads=3)
    assert found == alone
    assert counts == [3, 1, 1]  # nobody waits for those that were never called


@pytest.mark.slow
@pytest.mark.unmeasured
def test_products_of_matrices_in_several_threads_do_not_disturb_one_another(monkeypatch):
    """Where many columns lie apart, a product copies them first: each thread to a position of its own."""
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", 1)
    rng = np.random.default_rng(5)
    start = rng.normal(size=(2, 40, 40)) / 6
    examples = [(rows,) for rows in rng.normal(size=(32, 40, 40))]

    def found(threads):
        monkeypatch.setenv("MICROGRAD_THREADS", str(threads))
        first, second = ([[mg.Value(number) for number in row] for row in matrix] for matrix in start.tolist())

        def loss(rows):
            hidden = [[mg.tanh(mg.dot(weights, row)) for weights in first] for row in rows]
            return mg.mean([mg.dot(weights, row) ** 2 for weights in second for row in hidden])

        parameters = [weight for matrix in (first, second) for row in matrix for weight in row]
        mg.fit(loss, examples, mg.optim.SGD(parameters, 0.5), batch_size=32, epochs=3, seed=0, compile="llvm")
        return [weight.data for weight in parameters]

    alone = found(1)
    assert all(found(3) == alone for _ in range(3))


def test_a_batch_is_cut_where_there_is_work_enough_and_python_is_not_called(monkeypatch):
    _, counts = trained([3] * 16, 16, monkeypatch, threads=4, python=True)
    assert set(counts) == {1}
    _, counts = trained([3] * 16, 16, monkeypatch, threads=4, worth=10**9)
    assert set(counts) == {1}


def test_a_forked_child_trains_with_threads_of_its_own(monkeypatch):
    alone, _ = trained([3] * 40, 40, monkeypatch, threads=3)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover  # which is not measured
        try:
            found, counts = trained([3] * 40, 40, monkeypatch, threads=3)
            os.write(writing, b"1" if found == alone and max(counts) == 3 else b"0")
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"1"
    os.close(reading)
    os.waitpid(child, 0)


def test_an_interrupt_while_others_work_leaves_the_parameters_and_what_the_others_need(monkeypatch):
    """Ctrl-C comes while this thread waits for the other one, which goes on when the training is gone."""
    expected, _ = trained([3] * 32, 32, monkeypatch, threads=1)
    begun, over, made = threading.Event(), threading.Event(), []

    def interrupted(calls):
        (other,) = calls

        def slow():
            begun.set()
            over.wait(WAIT)
            other()

        beside([slow])
        begun.wait(WAIT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setenv("MICROGRAD_THREADS", "2")
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(llvm_batches, "beside", interrupted)
    w = [mg.Value(float(position)) for position in range(4)]
    rng = np.random.default_rng(0)
    examples = [(row, 1.0) for row in rng.normal(size=(16, 4)).tolist()]
    optimizer = mg.optim.SGD(w, 0.1)
    run_of = llvm_backend.NativeExecutable
    start = run_of.__init__
    monkeypatch.setattr(run_of, "__init__", lambda run, *given: made.append(weakref.ref(run)) or start(run, *given))
    history = mg.fit(lambda row, y: (mg.dot(w, row) - y) ** 2, examples, optimizer, batch_size=16, compile="llvm")
    assert (history.interrupted, history.steps) == (True, [])
    assert [p.data for p in w] == [0.0, 1.0, 2.0, 3.0]
    assert [p.grad for p in w] == [0.0] * 4
    gc.collect()
    assert [run for run in made if run() is not None]
    over.set()
    assert trained([3] * 32, 32, monkeypatch, threads=2)[0] == expected  # its thread is the one that was late
