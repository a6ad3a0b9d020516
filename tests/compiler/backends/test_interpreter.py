"""Small kernels, which one function reads from a table: the same numbers as from code of their own, and no new code."""

import math
import random
import threading
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm import llvm_backend, llvm_calls, llvm_machine
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Loop, Map, Program, Reduction, Segment, Take
from micrograd.engine.primitive import PRIMITIVES

pytestmark = pytest.mark.slow(together=True)

NOTHING = np.zeros(0, dtype=np.int64)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1.5, -3.0, 1e308, -1e308, 5e-324, -1e-310, math.inf, -math.inf, math.nan, 1 / 3]
COEFFICIENTS = [1.0, -1.0, 0.5, -2.0, 0.0, -0.0, 1e300, math.inf, math.nan]
CALLED = ["exp", "tanh", "div", "pow", "maximum", "minimum", "where", "less", "sqrt", "softplus", "abs", "log"]


@pytest.fixture
def new_machine(tmp_path, monkeypatch):
    """What makes the compiler of this process forget what it has compiled; its cache is empty at first."""
    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))
    return lambda: monkeypatch.setattr(llvm_machine, "_machine", None)


@pytest.fixture
def compiled_each(monkeypatch):
    """What makes a program that has a function for each of its kernels."""

    def make(program):
        with monkeypatch.context() as patch:
            patch.setattr(llvm_backend, "is_small", lambda kernel: False)
            return backend_of("llvm").run_of(program)

    return make


def operand(rng, end, rows, columns, terms):
    """An access to numbers before the end."""
    size = rows * columns * terms
    if rng.random() < 0.3:
        return Access(0, table=np.array([rng.randrange(end) for _ in range(size)]).reshape(rows, columns, terms))
    if rng.random() < 0.3:
        starts = np.array([rng.randrange(end - size) for _ in range(rows)])
        return Access(0, 0, rng.choice([0, 1]), rng.choice([0, 1]), table=np.array(starts).reshape(-1, 1, 1))
    steps = rng.choice([(columns * terms, terms, 1), (0, 1, columns), (1, 0, 0), (0, 0, 0)])
    return Access(rng.randrange(end - size), *steps)


def kernel(rng, end):
    """A small kernel, which writes from the end on."""
    rows, columns = rng.choice([1, 1, 1, 2, 3]), rng.choice([1, 1, 1, 2, 4, 5])
    target = Access(end, columns, 1)
    if rng.random() < 0.3:
        primitive = PRIMITIVES[rng.choice(CALLED)]
        operands = [operand(rng, end, rows, columns, 1) for _ in primitive.derivatives]
        return Map(primitive, rows, columns, target, tuple(operands))
    largest, segments, left = rng.random() < 0.2, [], rng.choice([1, 2, 2, 3, 4, 5, 8])
    while left:
        terms = rng.randint(1, left)
        left -= terms
        first, second = (operand(rng, end, rows, columns, terms) for _ in range(2))
        coefficient = rng.choice(COEFFICIENTS if rng.random() < 0.3 else COEFFICIENTS[:2])
        segments.append(Segment(coefficient, terms, first, second if rng.random() < 0.5 else None))
    return Reduction(rows, columns, target, tuple(segments), largest, rng.random() < 0.2 and not largest)


def straight(rng, count):
    """A program of small kernels, each of which may read what those before it wrote."""
    kernels, end = [], 200
    for _ in range(count):
        kernels.append(kernel(rng, end))
        end += kernels[-1].rows * kernels[-1].columns
    return Program(end, tuple(kernels), np.arange(200), NOTHING, NOTHING, slice(0, 0), ())


def bits(numbers):
    """Numbers that are equal only where the floats are, and the signs of zeros; all NaNs are one."""
    return [math.copysign(1.0, x) if x == 0 else "nan" if math.isnan(x) else x for x in numbers.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.unmeasured
def test_a_table_gives_the_same_bits_as_a_function_for_each_kernel(seed, compiled_each):
    rng = random.Random(seed)
    program = straight(rng, 60)
    table, functions = backend_of("llvm").run_of(program), compiled_each(program)
    assert 3 * len(table.table) < len(functions.table) == 60
    for draw in (lambda: rng.choice(SPECIAL), lambda: float(rng.randint(-2, 2)), lambda: rng.uniform(-2.0, 2.0)):
        numbers = [draw() for _ in range(200)]
        for executable in (table, functions):
            executable.buffer[:200] = numbers
            executable.run()
        assert bits(table.buffer) == bits(functions.buffer)


@pytest.mark.parametrize("count", [1, 2, pytest.param(100_000, marks=[pytest.mark.slow, pytest.mark.unmeasured])])
def test_programs_of_any_length_take_no_function_for_a_kernel(count, new_machine, monkeypatch):
    """x, x - x / 2, ...: each number is half of the one before; signs change, as do patterns."""
    new_machine()
    patterns = [
        lambda at: (Segment(0.5, 1, Access(at), None),),
        lambda at: (Segment(1.0, 1, Access(at), None), Segment(-0.5, 1, Access(at), None)),
        lambda at: (Segment(0.25, 1, Access(at), Access(0)),),
    ]
    kernels = [Reduction(1, 1, Access(at + 1), patterns[at % 3](at)) for at in range(count)]
    program = Program(count + 1, tuple(kernels), np.array([0]), np.array([count]), NOTHING, slice(0, 0))
    (output,), _ = backend_of("llvm").run_of(program)(np.array([2.0]))
    assert output == 2.0 * 0.5**count
    assert {*llvm_machine.machine().names()} == {"micrograd_run", "micrograd_words", *llvm_calls.MODULES}


def test_what_is_no_small_kernel_stands_between_them():
    """Takes, loops, large kernels, and primitives in Python or of many operands."""
    own = mg.primitive("own_between", "o", lambda x: 2 * x + 1, lambda g, out, x: 2 * g, replace=True)
    derivatives = [lambda g, out, a, b, c, d: g] * 4
    four = mg.primitive("four_between", "f", lambda a, b, c, d: a + 2 * b + 4 * c + 8 * d, *derivatives, replace=True)
    double, one = (lambda at: (Segment(2.0, 1, Access(at), None),)), lambda at: (Segment(1.0, 1, Access(at), None),)
    turning = Reduction(1, 1, Access(3, iteration_step=1), (Segment(3.0, 1, Access(2, iteration_step=1), None),))
    kernels = (
        Reduction(1, 1, Access(1), double(0)),
        Map(own, 1, 1, Access(2), (Access(1),)),
        Loop(4, (turning,)),
        Reduction(1, 1, Access(7), double(6)),
        Take(1, 1, 2, Access(8), Access(9), Access(6, term_step=1)),
        Map(four, 1, 1, Access(10), (Access(0), Access(1), Access(2), Access(8))),
        Reduction(1, 40, Access(20, column_step=1), one(10)),
        Reduction(1, 1, Access(11), (Segment(1.0, 40, Access(20, term_step=1), None),)),
    )
    found = []
    for backend in ("numpy", "llvm"):
        executable = backend_of(backend).run_of(Program(60, kernels, np.array([0]), NOTHING, NOTHING, slice(0, 0)))
        executable.buffer[:1], executable.buffer[9] = 1.5, -1.0
        executable.run()
        found.append(executable.buffer.tolist())
    assert found[0] == found[1]
    last = 2 * 3**4 * 7.0
    assert found[0][1:9] == [3.0, 7.0, 21.0, 63.0, 189.0, 567.0, 1134.0, last]
    assert found[0][11] == 40 * (1.5 + 6.0 + 28.0 + 8 * last)


def irregular(rng, count, own=None):
    """A function of some numbers, each of whose steps is another one."""
    plan = [(rng.randrange(8), rng.random(), rng.random()) for _ in range(count)]

    def function(*given):
        numbers = list(given)
        for step, first, second in plan:
            x, y = numbers[int(first * len(numbers))], numbers[int(second * len(numbers))]
            steps = [
                lambda x, y: x + y,
                lambda x, y: x - y * 0.5,
                lambda x, y: x * y,
                lambda x, y: mg.tanh(x) - y,
                lambda x, y: mg.maximum(x, y),
                lambda x, y: mg.where(x < y, x, 2.0 * y),
                lambda x, y: x / (1.0 + y * y),
                lambda x, y: own(x) if own else mg.sigmoid(x) + mg.abs(y),
            ]
            numbers[int(second * len(numbers))] = steps[step](x, y)
        return sum(numbers)

    return function


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
@pytest.mark.unmeasured
def test_irregular_programs_and_their_derivatives(seed, own_registry):
    """With a primitive in Python among the straight code."""
    own = mg.primitive("own_step", "o", math.sin, lambda g, out, x: g * mg.cos(x))
    function = irregular(random.Random(seed), 60, own if seed % 2 else None)
    inputs = [Value(0.3 * n - 0.7) for n in range(6)]
    fast = mg.compile(function, backend="llvm")
    assert fast(*inputs).data == pytest.approx(function(*inputs).data, rel=1e-13)
    assert mg.gradient(fast(*inputs), inputs) == pytest.approx(mg.gradient(function(*inputs), inputs), rel=1e-11)
    second = mg.compile(mg.hessian(function), backend="llvm")
    numbers = [value.data for value in inputs]
    np.testing.assert_allclose(second(*numbers), mg.hessian(function)(*numbers), rtol=1e-10, atol=1e-12)


def test_an_error_on_the_way_is_that_of_the_eager_run():
    def function(x, y):
        ratio = (x - y) / (y - 1.0)
        return mg.log(x) + ratio * 0.0 + mg.tanh(x * y)

    fast = mg.compile(function, backend="llvm")
    assert fast(2.0, 3.0) == function(2.0, 3.0)
    for inputs in ((2.0, 1.0), (0.0, 3.0), (-1.0, 0.5)):
        with pytest.raises((ArithmeticError, ValueError)) as expected:
            function(*map(Value, inputs))
        with pytest.raises(type(expected.value)) as found:
            fast(*map(Value, inputs))
        assert str(found.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_training_takes_the_same_steps():
    def trained(backend):
        w = [Value(0.1 * n + 0.2) for n in range(3)]
        function = irregular(random.Random(7), 25)
        examples, optimizer = [0.3, -0.5, 0.9], mg.optim.Adam(w, 0.01)
        mg.fit(lambda x: function(*w, x) ** 2, examples, optimizer, epochs=4, compile=backend, seed=0)
        return [value.data for value in w]

    assert trained("llvm") == pytest.approx(trained(False), rel=1e-11)


def test_a_loop_that_is_not_kept_rolled_gives_the_same(monkeypatch):
    def swing(angle, speed, length):
        for _ in range(40):
            angle, speed = angle + 0.1 * speed, speed - 0.1 / length * mg.sin(angle)
        return angle

    found = []
    for loops in ("1", "0"):
        monkeypatch.setenv("MICROGRAD_LOOPS", loops)
        inputs = Value(0.5), Value(-0.1), Value(1.3)
        fast = mg.compile(swing, backend="llvm")
        found.append((fast(*inputs).data, *mg.gradient(fast(*inputs), inputs)))
    assert found[0] == pytest.approx(found[1], rel=1e-13)


def test_threads_that_compile_at_once(new_machine):
    new_machine()
    functions = [irregular(random.Random(seed), 30) for seed in range(6)]
    found, start = {}, threading.Barrier(len(functions))

    def work(number, function):
        start.wait()
        fast = mg.compile(function, backend="llvm")
        inputs = [Value(0.2), Value(-0.4), Value(0.9)]
        found[number] = fast(*inputs).data, *mg.gradient(fast(*inputs), inputs)

    threads = [threading.Thread(target=partial(work, *pair)) for pair in enumerate(functions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, function in enumerate(functions):
        inputs = [Value(0.2), Value(-0.4), Value(0.9)]
        expected = function(*inputs).data, *mg.gradient(function(*inputs), inputs)
        assert found[number] == pytest.approx(expected, rel=1e-11)
