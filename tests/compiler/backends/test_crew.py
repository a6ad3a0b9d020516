"""Threads that work on parts of a job, and batches that are trained on by several of them."""

import gc
import os
import random
import signal
import threading
import weakref
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends import crew, llvm_backend, llvm_batches
from micrograd.compiler.backends.crew import at_once, cores

WAIT = 60  # seconds that no test needs


def test_tasks_are_done_at_the_same_time_and_some_in_the_thread_of_the_caller():
    together = threading.Barrier(3, timeout=WAIT)
    found = {}

    def work(worker, task):
        found[task] = worker, threading.current_thread()
        together.wait()  # which it does not get past alone

    for _ in range(3):
        found.clear()
        at_once(3, [partial(work, worker) for worker in "abc"])
        assert sorted(found) == [0, 1, 2]
        assert dict(found.values())["a"] is threading.current_thread()
        assert len(dict(found.values())) == 3
        assert all(thread.daemon for worker, thread in found.values() if worker != "a")


def test_who_is_late_leaves_the_tasks_to_others():
    begun, go_on, done = threading.Barrier(3, timeout=WAIT), threading.Event(), []

    def busy(task):
        begun.wait()
        go_on.wait(WAIT)

    other_caller = threading.Thread(target=at_once, args=(2, [busy, busy]))
    other_caller.start()
    begun.wait()
    at_once(5, [done.append, lambda task: done.append("late")])
    assert done == [0, 1, 2, 3, 4]
    go_on.set()
    other_caller.join(WAIT)


def test_one_worker_needs_no_thread(monkeypatch):
    monkeypatch.setattr(crew, "_queues", [])
    done = []
    at_once(3, [done.append])
    assert done == [0, 1, 2]
    assert crew._queues == []


@pytest.mark.parametrize("wrong", range(3))
def test_what_a_worker_raises_is_raised(wrong):
    together = threading.Barrier(3, timeout=WAIT)
    done = []

    def work(worker, task):
        together.wait()
        if worker == wrong:
            raise LookupError(worker)
        done.append(worker)

    with pytest.raises(LookupError, match=str(wrong)):
        at_once(3, [partial(work, worker) for worker in range(3)])
    at_once(1, [done.append] * 3)
    assert len(done) in (2, 3)
    assert done[-1] == 0


def test_who_is_interrupted_does_not_wait_and_others_take_the_next_task_after_that_one():
    begun, go_on, order = threading.Event(), threading.Event(), []

    def interrupted(task):
        begun.wait(WAIT)
        raise KeyboardInterrupt

    def slow(task):
        begun.set()
        go_on.wait(WAIT)
        order.append("slow")

    with pytest.raises(KeyboardInterrupt):
        at_once(2, [interrupted, slow])
    together = threading.Barrier(2, timeout=WAIT, action=lambda: order.append("next"))
    threading.Timer(0.1, go_on.set).start()
    at_once(2, [lambda task: together.wait()] * 2)
    assert order == ["slow", "next"]


def test_tasks_of_several_callers_go_to_their_workers():
    found = {}

    def caller(own):
        mine = []
        for _ in range(200):
            at_once(4, [mine.append, mine.append])
        found[own] = sorted(mine)

    threads = [threading.Thread(target=caller, args=(own,)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert found == {own: sorted([0, 1, 2, 3] * 200) for own in range(3)}


def test_the_cores_are_those_of_the_process_unless_the_environment_says_how_many(monkeypatch):
    monkeypatch.delenv("MICROGRAD_THREADS", raising=False)
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


# Training


def trained(sizes, batch_size, monkeypatch, threads, worth=1, python=False):
    """A small network, trained on lists of these lengths; and how many parts each batch was cut into."""
    monkeypatch.setenv("MICROGRAD_THREADS", str(threads))
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", worth)
    counts = []

    def counted(tasks, workers):
        counts.append(len(workers))
        at_once(tasks, workers)

    monkeypatch.setattr(llvm_batches, "at_once", counted)
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
    history = mg.fit(loss, examples, mg.optim.Adam(parameters, 0.01), batch_size=batch_size, epochs=3, compile="llvm")
    return [history.steps, *([p.data for p in parameters], [p.grad for p in parameters])], counts


@pytest.mark.parametrize("batch_size", [3, 8, 11, 32, 50])
def test_a_batch_has_the_same_numbers_on_any_number_of_cores(batch_size, monkeypatch):
    sizes = [2, 3, 3, 4, 2] * 10
    alone, counts = trained(sizes, batch_size, monkeypatch, threads=1)
    assert counts == []
    for threads in (2, 3, 20):
        found, counts = trained(sizes, batch_size, monkeypatch, threads)
        assert found == alone  # bit for bit
        assert max(counts, default=1) == min(threads, 8, max(1, batch_size // 4))


def test_products_of_matrices_in_several_threads_do_not_disturb_one_another(monkeypatch):
    """Where many columns lie apart, a product copies them first: each thread to a place of its own."""
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
    assert counts == []
    _, counts = trained([3] * 16, 16, monkeypatch, threads=4, worth=10**9)
    assert counts == []


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

    def interrupted(tasks, workers):
        here, other = workers

        def slow(task):
            begun.set()
            over.wait(WAIT)
            other(task)

        def then_interrupt(task):
            begun.wait(WAIT)
            here(task)
            signal.raise_signal(signal.SIGINT)

        at_once(tasks, [then_interrupt, slow])

    monkeypatch.setenv("MICROGRAD_THREADS", "2")
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(llvm_batches, "at_once", interrupted)
    w = [mg.Value(float(place)) for place in range(4)]
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
