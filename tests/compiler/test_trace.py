"""What a compiled function may not do, and what it may."""

import functools
import gc
import html
import math
import operator
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.tape import Tape
from micrograd.compiler.tracing.trace import trace
from tests.compiler.runs import Runs

FREEZING = {
    ".data": (lambda x: x.data * 2, "mg.detach"),
    "setting .data": (lambda x: setattr(x, "data", 2.0), "outside"),
    ".grad": (lambda x: x.grad, "backward"),
    "float()": (lambda x: float(x), "mg.exp"),  # what a user writes
    "a new Value": (lambda x: Value(x) * 2, "mg.exp"),
    "math": (lambda x: math.exp(x), "mg.exp"),  # what a user writes
    "index": (lambda x: [1.0, 2][x], "mg.take"),
    # Python 3.10 does not say where on its line the index stands
    "range": (lambda x: sum(range(x)), r"range\(x\).*static" if sys.version_info >= (3, 11) else "the int of a number"),
    "format": (lambda x: f"{x:.3f}", "result"),
    "backward": (lambda x: (x * x).backward(), "result"),
    "gradient by a result": (lambda x: mg.gradient(mg.exp(x * x), x * x), "mg.grad"),
}


@pytest.mark.parametrize("what", FREEZING)
@pytest.mark.parametrize("make", [Value, lambda x: x], ids=["Value", "number"])
def test_what_would_freeze_a_number_is_refused_with_the_line(what, make, backend):
    f, advice = FREEZING[what]
    with pytest.raises(TraceError, match=advice) as error:
        mg.compile(f, backend=backend)(make(2))
    assert f"{__file__}:{f.__code__.co_firstlineno}" in str(error.value)


def test_a_refused_function_can_be_called_again_and_leaves_nothing_behind():
    w = Value(3.0)
    fast = mg.compile(lambda x, wrong: w * x if wrong is None else float(x))
    with pytest.raises(TraceError):
        fast(2.0, True)
    assert (w * 2.0).data == 6.0  # nothing records any more
    assert fast(2.0, None).data == 6.0


def test_a_symbol_that_escapes_is_refused_afterwards():
    tape = Tape()
    kept = [tape.input("x")]
    tape.finish()
    for use in (lambda s: s + 1.0, lambda s: 2.0 * s, lambda s: s.exp(), lambda s: Value(1.0) * s, lambda s: -s):
        with pytest.raises(TraceError):
            use(kept[0])
    for use in (
        lambda x: x * kept[0],
        lambda x: kept[0] * x,
        lambda x: mg.exp(kept[0]) * x,
        lambda x: mg.dot([x, x], [x, kept[0]]),
        lambda x: mg.dot([x, kept[0]], [x, x]),
        lambda x: mg.take([x, kept[0]], x),
        lambda x: [x, kept[0]],
    ):
        with pytest.raises(TraceError, match="a number of another trace is used here"):
            mg.compile(use)(Value(1.0))


OPERANDS = {
    "another argument": lambda x, y, closed_over: y,
    "the same": lambda x, y, closed_over: x,
    "a result": lambda x, y, closed_over: mg.tanh(y),
    "a Value from outside": lambda x, y, closed_over: closed_over,
    "a float": lambda x, y, closed_over: 0.75,
    "zero": lambda x, y, closed_over: 0.0,
    "minus zero": lambda x, y, closed_over: -0.0,
    "a power of two": lambda x, y, closed_over: 4.0,
    "an int": lambda x, y, closed_over: 3,
    "a large int": lambda x, y, closed_over: 2**60 + 1,
    "a bool": lambda x, y, closed_over: True,
    "a fraction": lambda x, y, closed_over: Fraction(1, 3),
    "a number of NumPy": lambda x, y, closed_over: np.float64(0.3),
    "what is computed from a float": lambda x, y, closed_over: mg.detach(y),
}


@pytest.mark.slow
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize("compute", [operator.add, operator.sub, operator.mul, operator.truediv])
@pytest.mark.unmeasured
def test_operators_mean_what_they_mean_eagerly_whatever_the_other_operand_is(compute, is_left, operand):
    closed_over = Value(-1.25)

    def f(x, y):
        other = OPERANDS[operand](x, y, closed_over)
        found = compute(other, x) if is_left else compute(x, other)
        return found * found + mg.sin(x) * found  # it is used twice

    def outcome(function):
        x, y = Value(0.625), Value(1.5)
        closed_over.grad = 0.0
        try:
            result = function(x, y)
        except ZeroDivisionError:
            return ZeroDivisionError
        result.backward()
        return [result.data, x.grad, y.grad, closed_over.grad]

    expected = outcome(f)
    if expected is ZeroDivisionError:
        assert outcome(mg.compile(f)) is expected
    else:
        assert outcome(mg.compile(f)) == pytest.approx(expected, rel=1e-14, abs=1e-300)


def test_what_the_result_does_not_need_vanishes():
    x = Value(2.0)

    def f():
        mg.tanh(x)  # not used
        return x * 3.0

    fast = mg.compile(f, backend="numpy")
    assert fast().data == 6.0
    assert [kernel.kind for kernel in fast.program().program.kernels if kernel.kind == "tanh"] == []


def test_freezing_a_parameter_takes_effect():
    a, b = Value(2.0), Value(3.0)
    fast = mg.compile(lambda: a * b)
    fast().backward()
    b.requires_grad = False
    result = fast()
    result.backward()
    assert (a.grad, b.grad) == (6.0, 2.0)
    assert result._prev == {a}
    b.requires_grad = True
    fast().backward()
    assert (a.grad, b.grad) == (9.0, 4.0)


def test_freezing_what_it_does_not_read_traces_nothing_again():
    traces, w, other = Runs(), Value(2.0), Value(3.0)

    @mg.compile
    def f(x):
        print(end="", file=traces)
        return w * x

    f(1.0)
    other.requires_grad = False
    assert f(2.0).data == 4.0
    assert traces.times == 1
    w.requires_grad = False
    assert f(3.0).requires_grad is False
    assert traces.times == 2


def test_plain_numbers_stay_plain_while_it_is_traced():
    def f(x):
        number = mg.dot([1.0, 2.0], [3.0, 4.0])
        return x * [0.5, 2.0][int(number) - 10]

    assert f(Value(3.0)).data == mg.compile(f)(Value(3.0)).data == 6.0


def test_values_are_compared_as_what_they_are_without_the_compiler():
    w, u = Value(2.0), Value(3.0)

    def f(x):
        products = [w * x, u * x, x]
        return sum(2.0 * product if product == x else product for product in products) + products.index(x)

    assert f(Value(5.0)).data == mg.compile(f)(Value(5.0)).data == 37.0


def test_under_no_grad_the_result_is_a_constant_and_no_gradient_is_computed():
    w = Value(2.0)
    fast = mg.compile(lambda x: w * x)
    with mg.no_grad():
        result = fast(3.0)
    assert (result.data, result.requires_grad) == (6.0, False)
    assert fast(3.0).requires_grad


def test_plain_numbers_in_give_plain_numbers_out():
    assert mg.compile(lambda x, y: x * y + mg.exp(x))(0.0, 3.0) == 1.0
    assert mg.compile(lambda: 3.0)() == 3.0


def test_a_compiled_function_inside_another_is_inlined():
    inner = mg.compile(lambda x: x * x)
    w = Value(3.0)
    outer = mg.compile(lambda x: inner(w) + inner(x))
    outer(2.0).backward()
    assert w.grad == 6.0


def test_values_are_equal_to_themselves_only(backend):
    def f(x, y):
        picked = np.maximum(x, y)
        different = [x != y, x != x, y != x]
        return x * sum(2.0**position for position, is_so in enumerate(different) if is_so) + (
            10.0 if picked == picked else 0
        )

    for numbers in ((2.0, 3.0), (3.0, 3.0)):
        x, y = map(Value, numbers)
        assert mg.compile(f, backend=backend)(x, y).data == f(x, y).data == x.data * 5.0 + 10.0


def test_the_larger_one_of_an_int_and_a_float_may_be_either(backend):
    fast = mg.compile(lambda n, x: [np.maximum(n, x), np.minimum(x, n)], backend=backend)
    for n, x in ((2, 2.5), (3, 2.5), (-1, 0.5)):
        assert fast(n, x) == [max(n, x), min(n, x)]
    fast = mg.compile(lambda n, x: np.where(x > 2, n, x), backend=backend)
    assert [fast(7, 2.5), fast(7, 1.5)] == [7, 1.5]


def test_a_user_s_primitive_is_compiled_with_its_own_rule(backend):
    cube = mg.primitive("cube_compiled", "cube", lambda x: x**3, lambda g, out, x: g * 3 * x * x, replace=True)
    leaves = [Value(float(i)) for i in range(1, 6)]
    fast = mg.compile(lambda: sum(cube(x) for x in leaves), backend=backend)
    result = fast()
    result.backward()
    assert result.data == 225.0
    assert [x.grad for x in leaves] == [3.0, 12.0, 27.0, 48.0, 75.0]


def test_a_rule_of_ones_own_may_take_a_dot_product(backend, own_registry):
    dotted = mg.primitive(
        "dotted",
        "dotted",
        lambda x, y: x * x * y,
        lambda g, out, x, y: mg.dot([g, g], [x * y, y * x]),
        lambda g, out, x, y: mg.dot([g], [x * x]),
    )

    def chain(leaves):
        return sum(dotted(x, y) for x, y in pairwise(leaves))

    plain, given = ([Value(float(i)) for i in range(1, 6)] for _ in range(2))
    chain(plain).backward()
    mg.compile(chain, backend=backend)(given).backward()
    assert [x.grad for x in given] == [x.grad for x in plain]


def test_a_rule_of_ones_own_that_takes_by_an_unknown_index_is_refused_as_without_the_compiler(backend, own_registry):
    looked = mg.primitive("looked", "looked", lambda x: x, lambda g, out, x: g * mg.take([1.0, 2.0, 3.0], x))
    for function in (looked, mg.compile(lambda x: 2.0 * looked(x), backend=backend)):
        with pytest.raises(TypeError, match="an index must be an int, not float"):
            function(Value(2.0)).backward()


def test_rows_of_factors_that_change_while_it_is_traced(backend):
    """A row that looks like one before, and is not it, is another row."""
    x, y, z = (Value(number, label=name) for name, number in zip("xyz", (2.0, 3.0, 5.0), strict=True))
    row, others = [x, y, z], [1.0, 10.0, 100.0]

    def f():
        found = [mg.dot(row, others)]
        row[1] = z  # the same list, which begins as before
        found.append(mg.dot(row, others))
        others[2] = 7.0
        found.append(mg.dot(row, others))
        found.append(mg.dot(row[:2], others[:2]))
        found.append(mg.dot([x, 1, True], [1.0, True, 1]))
        row[1] = y
        others[2] = 100.0
        return found

    numbers = mg.compile(f, backend=backend)()
    assert [number.data for number in numbers] == [532.0, 552.0, 87.0, 52.0, 4.0] == [number.data for number in f()]


def test_each_neuron_begins_with_its_own_bias(backend):
    layer = mg.nn.Layer(2, 3, nonlin=False)
    for neuron, bias in zip(layer.neurons, (0.5, -8.0, 0.0), strict=True):
        neuron.b.data = bias
    found = mg.compile(lambda x: [*layer(x), mg.dot(layer.neurons[0].w, x)], backend=backend)([1.0, -2.0])
    assert [value.data for value in found[:3]] == [value.data for value in layer([1.0, -2.0])]
    assert found[3].data == pytest.approx(found[0].data - 0.5)


def test_what_eager_raises_is_raised_and_what_it_gives_is_given(backend):
    x = Value(1.0, label="x")
    fast = mg.compile(lambda: mg.log(x), backend=backend)
    assert fast().data == 0.0
    x.data = -1.0
    with pytest.raises(ValueError, match=r"log\(+x = -1.0"):
        fast()
    x.data = math.inf
    assert fast().data == math.inf
    root = mg.compile(lambda: mg.sqrt(x), backend=backend)
    x.data = 0.0
    result = root()
    assert result.data == 0.0
    with pytest.raises(ZeroDivisionError):
        result.backward()


def test_a_module_and_a_method_can_be_compiled():
    class Scaled(mg.nn.Module):
        def __init__(self):
            self.scale, self.function = Value(2.0), "mine"

        def __call__(self, x):
            return self.scale * x

        @mg.compile
        def squared(self, x):
            return (self.scale * x) ** 2

    model = Scaled()
    fast = mg.compile(model)
    assert fast(3.0).data == 6.0
    assert fast.function is model
    other = Scaled()
    other.scale.data = 5.0
    assert [m.squared(3.0).data for m in (model, other, model)] == [36.0, 225.0, 36.0]
    model.squared(1.0).backward()
    assert (model.scale.grad, other.scale.grad) == (4.0, 0.0)
    assert "kernels" in model.squared.explain()


def test_a_program_without_arguments_is_that_of_the_last_call():
    w = Value(3.0)
    fast = mg.compile(lambda x, kind: w * x if kind == "a" else w + x)
    fast(2.0, "a")
    run = fast.program()
    run.run()
    assert run.buffer[run.program.outputs].tolist() == [6.0]
    run = fast.program(2.0, "b")
    run.run()
    assert run.buffer[run.program.outputs].tolist() == [5.0]
    assert fast.values() == [w]


def test_the_result_draws_refuses_a_copy_and_has_a_second_derivative():
    w = Value(2.0)

    @mg.compile
    def square():
        return w * w

    result = square()
    assert result._op == "compiled square"
    with pytest.raises(TypeError, match="compiled square cannot be copied"):
        __import__("copy").deepcopy(result)
    result.backward(create_graph=True)
    assert (w.grad.data, mg.gradient(w.grad, w)) == (4.0, 2.0)
    assert repr(square) == "<compiled square>"
    assert mg.grad(mg.compile(lambda x: x * x * x))(2.0) == pytest.approx(12.0)


@pytest.mark.slow
def test_the_kernels_are_drawn_and_saved(tmp_path):
    w = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]

    @mg.compile(backend="numpy")
    def loss(x, index):
        hidden = [mg.tanh(mg.dot(row, x)) for row in w]
        return mg.take(hidden, index) + mg.maximum(*hidden)

    loss([0.5, -0.5], 1)
    loss.save(tmp_path / "kernels.svg")
    picture = html.unescape((tmp_path / "kernels.svg").read_text(encoding="utf-8"))
    for word in ("inputs", "matrix-vector", "tanh", "take", "output", "gradients", "2 terms each"):
        assert word in picture
    assert picture.count('class="node"') > 8
    mg.save(loss, tmp_path / "by_name.svg")
    assert (tmp_path / "by_name.svg").read_bytes() == (tmp_path / "kernels.svg").read_bytes()
    assert mg.draw_dot(loss).source == loss.draw_dot().source
    with pytest.raises(TypeError, match="takes no rankdir, depth, style or fold"):
        mg.save(loss, tmp_path / "deep.svg", depth=2)
    with pytest.raises(ValueError, match="must end in one of"):
        loss.save(tmp_path / "kernels.txt")
    chain = mg.compile(lambda x: loss.function([x, x], 0), backend="numpy")

    def long(x):
        for iteration in range(500):  # in no order that repeats, so that there is no loop
            x = mg.sin(x) if math.sin(iteration * iteration) > 0 else mg.cos(x)
        return x

    deep = mg.compile(long, backend="numpy")
    deep(Value(1.0))
    with pytest.raises(ValueError, match="kernels; up to 400 can be drawn"):
        deep.draw_dot()
    assert chain(0.0).data == 0.0


def test_without_a_gradient_none_is_drawn():
    fast = mg.compile(lambda x: mg.sin(x) * x, backend="numpy")
    fast(2.0)
    assert "output" in fast.draw_dot().source
    assert "gradients" not in fast.draw_dot().source
    fast(Value(2.0))
    assert "gradients" in fast.draw_dot().source


def test_a_symbol_prints_and_has_no_gradient_to_set():
    texts = []

    def f(x):
        texts.append(repr(x))
        assert x.requires_grad
        assert not x.is_leaf
        return x * 2

    mg.compile(f)(Value(1.0))
    assert texts == ["<symbol 0>"]
    with pytest.raises(TraceError, match="requires_grad"):
        mg.compile(lambda x: setattr(x, "requires_grad", False))(Value(1.0))


def test_closures_as_derivatives_are_refused():
    @mg.operation
    def product(x, y):
        return x * y, lambda g: (g * y, g * x)

    def by_hand(x):
        out = Value(2.0, (x,), "double")
        out._backward = lambda: None
        return out

    for f in (lambda x: product(x, x), by_hand):
        with pytest.raises(TraceError, match="Make it a primitive"):
            mg.compile(f)(Value(1.0))


def test_a_kind_of_value_of_ones_own():
    class Parameter(Value):
        pass

    w = Parameter(2.0)
    result = mg.compile(lambda x: w * x)(3.0)
    result.backward()
    assert (result.data, w.grad) == (6.0, 3.0)
    assert mg.compile(lambda x: x * 2)(Parameter(4.0)).data == mg.grad(lambda x: x * x)(Parameter(4.0)).data == 8.0


@pytest.mark.parametrize("name", ["exp", "__add__", "scaled"])
def test_what_a_kind_of_value_has_of_its_own_is_not_lost(name):
    """In the position of an argument stands another Value, which has not got it."""
    kind = type("Times", (type("Base", (Value,), {name: lambda self, *_: 5.0 * self}),), {"__doc__": "No change."})
    f = {"exp": lambda x: x.exp(), "__add__": lambda x: x + 1.0, "scaled": lambda x: x.scaled()}[name]
    assert f(kind(1.0)).data == 5.0
    calls = (lambda x: mg.compile(lambda xs: f(*xs))([x]), mg.compile(f), mg.grad(f), mg.compile(mg.grad(f)))
    for call in calls:
        with pytest.raises(TypeError, match=f"would lose the `{name}` of Times"):
            call(kind(1.0))
    x = kind(1.0)
    assert mg.compile(lambda: f(x))().data == 5.0
    with pytest.raises(TypeError, match=f"returns Values of its own .* would lose the `{name}` of Times"):
        mg.compile(lambda: x)()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_rests_while_a_function_is_traced(enabled):
    before = gc.isenabled()
    seen = []
    is_enabled = functools.partial(gc.isenabled)  # asking by name is refused
    try:
        (gc.enable if enabled else gc.disable)()
        mg.compile(lambda x: seen.append(is_enabled()) or x * 2.0)(Value(1.0))
        assert seen == [False]
        assert gc.isenabled() is enabled
        with pytest.raises(TraceError):
            mg.compile(float)(Value(1.0))
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("part", ["first", "second", "primitives"])
@pytest.mark.parametrize("compute", [lambda x: x * 3.0, mg.tanh, lambda x: mg.dot([x, x], [x, x])])
def test_a_trace_that_was_interrupted_in_an_operation_and_went_on_is_refused(part, compute):
    class InterruptedOnce(list):
        def append(self, entry):
            if not interrupted:
                interrupted.append(entry)
                raise KeyboardInterrupt
            super().append(entry)

    interrupted = []

    def f(x):
        y = x + 1.0
        setattr(x._tape.operations, part, InterruptedOnce(getattr(x._tape.operations, part)))
        try:
            compute(x)
        except KeyboardInterrupt:
            return y * x
        return y

    if part == "first":  # nothing was written by then
        assert mg.compile(f)(Value(3.0)).data == 12.0
    else:
        with pytest.raises(TraceError, match="interrupted in the middle of an operation"):
            mg.compile(f)(Value(3.0))


def test_a_number_that_is_kept_somewhere_keeps_no_tape():
    kept = []

    def f(x):
        kept.append(x)
        return x * 2 + 1

    made = trace(Source(f, Structure(((Value(3.0),), {}))))
    assert [operation[0].name for operation in made.operations].count("mul") == 1
    assert not kept[0]._tape.operations
