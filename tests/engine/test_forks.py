"""A forked child goes on, whatever the threads of its parent were doing at that moment."""

import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest

from micrograd import Value
from micrograd._support import locks
from micrograd.engine import commit, failures

pytestmark = [pytest.mark.stress, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")]

# Three threads are busy in the engine, the compiler and Graphviz. Six children each do a bit of everything; one that
# hangs is told by an alarm, which ends it.
BUSY = """
import os, signal, sys, threading, time, warnings
import micrograd as mg
from micrograd import Value

warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
shared = [Value(float(number)) for number in range(300)]
turns = [0, 0, 0]

def engine():
    while True:
        sum((a * a for a in shared), Value(0.0)).backward()
        turns[0] += 1

def compiler():
    number = 2
    while True:
        count = number
        fast = mg.compile(lambda xs: sum((x * count for x in xs), 0.0))
        fast([Value(1.0)] * (number % 40 + 1)).backward()
        number += 1
        turns[1] += 1

def pictures():
    while True:
        mg.draw_dot(Value(1.0) * 2 + 3).pipe()
        turns[2] += 1

def child():
    signal.alarm(60)
    for leaf in shared:
        leaf.grad = 0.0
    sum((a * a for a in shared), Value(0.0)).backward()
    assert [leaf.grad for leaf in shared] == [2 * leaf.data for leaf in shared]
    w = Value(3.0)
    mg.compile(lambda x: w * x * x)(Value(2.0)).backward()
    assert w.grad == 4.0
    assert mg.draw_dot(w * w).pipe()

for work in (engine, compiler, pictures):
    threading.Thread(target=work, daemon=True).start()
while min(turns) < 2:
    time.sleep(0.01)
children = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        try:
            child()
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    children.append(pid)
    time.sleep(0.01)
codes = [os.waitpid(pid, 0)[1] for pid in children]
print(codes)
os._exit(0)
"""


@pytest.mark.slow
def test_children_of_a_busy_process_do_not_hang():
    run = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == str([0] * 6), run.stdout + run.stderr


FROM_INSIDE = """
import os, warnings
from micrograd import Value

warnings.simplefilter("ignore")
x = Value(3.0)
out = Value(9.0, (x,), "forks")
def derivative():
    global pid
    pid = os.fork()
    x.grad += 2 * x.data * out.grad
out._backward = derivative
out.backward()
assert x.grad == 6.0
(x * x).backward()
assert x.grad == 12.0
if pid == 0:
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""


def test_a_derivative_may_fork():
    run = subprocess.run([sys.executable, "-c", FROM_INSIDE], capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == "0", run.stdout + run.stderr


# What a fork does in the child, done here: in another process neither mutants nor the coverage are seen


def in_child(check):
    """The exit code of a child that checks something: 0 if it holds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.alarm(60)  # for a child that hangs
            code = 0 if check() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1]


def test_a_fork_opens_locks_and_undoes_traversals():
    x = Value(3.0)
    x.grad = 5.0
    inside, over = threading.Event(), threading.Event()

    def derivative():
        inside.set()
        over.wait()

    stop = Value(0.0, (x,), "stop")
    stop._backward = derivative
    y = (x * x) * 2.0 + stop
    thread = threading.Thread(target=y.backward)
    thread.start()
    inside.wait()

    def check():
        before = x.grad
        (x * x).backward()
        return (before, x.grad) == (5.0, 11.0)

    code = in_child(check)
    over.set()
    thread.join()
    assert code == 0
    assert x.grad == 5.0 + 12.0


def test_locks_that_other_threads_hold_are_open_in_a_child_and_ones_own_are_held():
    lock, own, library = locks.new_lock(), locks.new_lock(), locks.new_lock_for_library()
    held, over = threading.Event(), threading.Event()

    def hold():
        lock.acquire()
        held.set()
        over.wait()

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    with own:
        locks._before_fork()
        assert library._is_owned()
        locks._in_child()
        assert not library._is_owned()
        assert lock.acquire(blocking=False)
        lock.release()
        assert own._is_owned()
    assert not own._is_owned()
    over.set()
    locks._before_fork()
    locks._after_fork()
    assert not library._is_owned()
    locks._held_while_forking.remove(library)


def test_the_traversal_of_another_thread_is_undone_and_ones_own_goes_on():
    x = Value(3.0)
    x.grad = 5.0
    traversal = commit.traversal
    floor = traversal.floor  # of traversals that failed in other tests
    traversal.undo = commit.keeping_gradients([x])
    x.grad = 0.0
    with commit.changing_gradients:
        failures._undo_in_child()
        assert (x.grad, traversal.floor) == (0.0, floor)
        assert traversal.undo is not None
    failures._undo_in_child()
    assert (x.grad, traversal.floor, traversal.undo) == (5.0, floor + commit.ABOVE, None)
    failures._undo_in_child()
    assert traversal.floor == floor + commit.ABOVE
    traversal.floor = floor
