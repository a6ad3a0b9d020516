"""detect_anomaly: what it raises, what it says, what it leaves alone, and what it holds for."""

import copy
import gc
import inspect
import math
import pickle
import threading
import weakref

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.recorder import Recorder, using
from tests.engine.test_primitives import ORDINARY
from tests.strategies import TABLE

INFINITY = math.inf


def line_of(marker):
    """The line of this file that ends with a marker in a comment."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    (number,) = [index for index, line in enumerate(lines, start=1) if line.endswith(f"# {marker}")]
    return f'File "{__file__}", line {number}, in '


def message_of(compute):
    with pytest.raises(FloatingPointError) as raised, mg.detect_anomaly():
        compute()
    return str(raised.value)


class TestForward:
    def test_the_message_names_the_operation_its_operands_their_labels_and_the_line(self):
        x, y = Value(1e200, label="x"), Value(-1e200, label="y")

        def compute():
            z = x + 1
            return z, x * y  # the product

        message = message_of(compute)
        assert message.startswith("(x = 1e+200) * (y = -1e+200) gives -inf\n")
        assert line_of("the product") + "compute" in message
        assert message.endswith("return z, x * y  # the product")

    @pytest.mark.parametrize(
        ("compute", "words"),
        [
            (lambda x: x * 1e200, "(x = 1e+200) * 1e+200 gives inf"),
            (lambda x: 1e200 * x, "1e+200 * (x = 1e+200) gives inf"),
            (lambda x: 1.7e308 - x * -1e108, "1.7e+308 - -1e+308 gives inf"),
            (lambda x: x * x - x * x, "(x = 1e+200) * (x = 1e+200) gives inf"),
            (lambda x: mg.leaky_relu(-x, 1e200), "leaky_relu(-1e+200, 1e+200) gives -inf"),
            (lambda x: mg.elu(x * math.nan, 2.0), "(x = 1e+200) * nan gives nan"),
            (lambda x: mg.where(x > 0, math.nan, x), "where(1.0, nan, x = 1e+200) gives nan"),
            (lambda x: abs(x * 0 + math.nan), "0.0 + nan gives nan"),
        ],
    )
    def test_every_way_to_apply_a_primitive_is_looked_at(self, compute, words):
        x = Value(1e200, label="x")
        assert words in message_of(lambda: compute(x))

    def test_an_infinity_that_was_put_in_may_go_on_and_a_nan_may_not(self):
        x = Value(2.0, label="x")
        with mg.detect_anomaly():
            assert (x + -INFINITY).data == -INFINITY
            assert mg.exp(x + -INFINITY).data == 0.0
            assert [y.data for y in mg.softmax([x, x, x + -INFINITY])] == [0.5, 0.5, 0.0]
            assert mg.logsumexp([x - INFINITY]).data == -INFINITY
        assert "(x = 2.0) + nan gives nan" in message_of(lambda: x + math.nan)
        assert "inf - inf gives nan" in message_of(lambda: (x + INFINITY) - INFINITY)

    def test_what_raises_by_itself_raises_what_it_always_does(self):
        x = Value(0.0, label="x")
        with mg.detect_anomaly():
            with pytest.raises(ValueError, match=r"^log\(x = 0\.0\): "):
                mg.log(x)
            with pytest.raises(OverflowError):
                mg.exp(x + 1000)
            with pytest.raises(TypeError):
                x + "1"

    def test_the_line_is_that_of_the_program_also_through_layers_and_arrays(self):
        model = mg.nn.MLP(2, [3, 1], activation=lambda z: z * 1e308 * 100)

        def through_numpy():
            return np.mean(mg.array([1e308, 1e308]))  # the mean

        def through_the_library():
            return mg.losses.mean_squared_error(Value(1e200), 0.0)  # the loss

        assert line_of("the mean") + "through_numpy" in message_of(through_numpy)
        assert line_of("the loss") + "through_the_library" in message_of(through_the_library)
        assert "in <lambda>" in message_of(lambda: model([1.0, 2.0]))

    def test_a_hand_written_operation_is_looked_at(self):
        x = Value(3.0, label="x")
        assert "cube(x = 3.0) gives nan" in message_of(lambda: Value(math.nan, (x,), "cube"))

        @mg.operation
        def triple(x):
            return x * math.inf, lambda g: g * math.inf

        assert "triple(x = 3.0) gives inf" in message_of(lambda: triple(x))

    def test_a_program_in_a_string_has_no_line_to_show(self):
        x = Value(1e200)
        assert message_of(lambda: exec("x * x", {"x": x})).endswith('\n  File "<string>", line 1, in <module>')

    @pytest.mark.parametrize("primitive", TABLE, ids=lambda primitive: primitive.name)
    def test_what_is_finite_is_what_it_is_without(self, primitive):
        inputs = [ORDINARY.get(primitive.name, 0.5)] * len(primitive.domain)
        plain, watched = ([Value(x) for x in inputs] for _ in range(2))
        expected = primitive(*plain)
        with mg.detect_anomaly():
            found = primitive(*watched)
            assert (found.data, found._op, found.requires_grad) == (expected.data, expected._op, expected.requires_grad)
            if found.requires_grad:
                found.backward()
                expected.backward()
                assert [x.grad for x in watched] == [x.grad for x in plain]
                with_graph = mg.gradient(found, watched, create_graph=True)
                assert [float(slope) for slope in with_graph] == mg.gradient(expected, plain)


class TestBackward:
    def test_the_message_names_the_operation_the_operand_and_the_line_that_made_it(self):
        x = Value(1e-200, label="x")
        with mg.detect_anomaly():
            y = mg.log(x)  # the logarithm
            z = y * 1e200
            with pytest.raises(FloatingPointError) as raised:
                z.backward()
        message = str(raised.value)
        assert message.startswith("the derivative of log(x = 1e-200) by x gives inf for the gradient 1e+200\n")
        assert line_of("the logarithm") in message
        assert (x.grad, y.grad, z.grad) == (0.0, 0.0, 0.0)

    @pytest.mark.parametrize(
        "differentiate",
        [
            lambda z, x: z.backward(),
            lambda z, x: z.backward(create_graph=True),
            lambda z, x: mg.gradient(z, x),
            lambda z, x: mg.gradient(z, x, create_graph=True),
        ],
    )
    def test_every_way_to_differentiate_is_looked_at(self, differentiate):
        x = Value(1e-200)
        with mg.detect_anomaly():
            z = mg.log(x) * 1e200
            with pytest.raises(ArithmeticError, match=r"log\(1e-200\).*inf[^$]*in test_every_way_to_differentiate"):
                differentiate(z, x)
        assert x.grad == 0.0

    def test_transformed_functions_are_looked_at(self):
        def logarithm(x):
            return mg.log(x) * 1e200  # inside grad

        with mg.detect_anomaly():
            with pytest.raises(FloatingPointError, match="by operand 1 gives inf") as raised:
                mg.grad(logarithm)(1e-200)
            assert mg.grad(mg.grad(logarithm))(1.0) == -1e200
        assert line_of("inside grad") + "logarithm" in str(raised.value)

    def test_a_derivative_that_raises_says_the_line_too(self):
        x = Value(0.0, label="x")
        with mg.detect_anomaly():
            y = mg.sqrt(x)  # the root
            with pytest.raises(ZeroDivisionError) as raised:
                y.backward()
        assert "the derivative of sqrt(x = 0.0)" in str(raised.value)
        assert line_of("the root") in str(raised.value)

    def test_gradients_that_add_up_to_infinity(self):
        x = Value(1e-3, label="x")
        with mg.detect_anomaly():
            y = x * 1e308 + x * 1e308
            with pytest.raises(FloatingPointError, match="the gradient that reaches x is inf"):
                y.backward()
            middle = x * 1
            with pytest.raises(FloatingPointError, match=r"reaches \(x = 0\.001\) \* 1\.0 is inf[^$]*middle = x \* 1"):
                (middle * 1e308 + middle * 1e308).backward()
        assert x.grad == 0.0

    @pytest.mark.parametrize("start", [math.nan, -math.inf])
    def test_a_gradient_to_start_from_that_is_not_finite(self, start):
        x = Value(1.0)
        with mg.detect_anomaly(), pytest.raises(FloatingPointError, match=f"reaches Value.* is {start}"):
            x.backward(start)
        assert x.grad == 0.0

    def test_graphs_made_outside_are_looked_at_without_a_line(self):
        x = Value(1e-200, label="x")
        z = mg.log(x) * 1e200
        with mg.detect_anomaly(), pytest.raises(FloatingPointError) as raised:
            z.backward()
        assert str(raised.value) == "the derivative of log(x = 1e-200) by x gives inf for the gradient 1e+200"

    def test_hand_written_derivatives_are_looked_at(self):
        x = Value(3.0, label="x")

        @mg.operation
        def triple(x):
            return 3 * x, lambda g: g * math.inf

        with mg.detect_anomaly():
            out = Value(9.0, (x,), "square")

            def backward():
                x.grad += math.nan

            out._backward = backward  # the closure
            with pytest.raises(FloatingPointError, match=r"square\(x = 3\.0\) by x gives nan") as raised:
                out.backward()
            assert line_of("the closure") in str(raised.value)
            with pytest.raises(FloatingPointError, match=r"triple\(x = 3\.0\) by x gives inf"):
                triple(x).backward()
        assert x.grad == 0.0


class TestWhereItHolds:
    def test_outside_nothing_is_raised(self):
        x = Value(1e200)
        with mg.detect_anomaly():
            y = x * 1e-200
        assert (x * x).data == INFINITY
        z = y * 1e308 + y * 1e308
        z.backward()
        assert z.data == INFINITY
        with mg.detect_anomaly(), pytest.raises(FloatingPointError):
            x * x
        assert (x * x).data == INFINITY

    @pytest.mark.parametrize("outer_first", [True, False])
    def test_it_composes_with_no_grad(self, outer_first):
        x = Value(1e200)
        contexts = [mg.detect_anomaly(), mg.no_grad()]
        first, second = contexts if outer_first else reversed(contexts)
        with first, second:
            y = x * 2
            assert not y.requires_grad
            assert y._prev == set()
            assert not Value(9.0, (x,), "square").requires_grad
            with pytest.raises(FloatingPointError):
                x * x
            with pytest.raises(FloatingPointError):
                mg.grad(lambda x: x * x)(1e200)
            assert mg.grad(lambda x: x * x)(3.0) == 6.0
        assert (x * x).requires_grad

    def test_an_error_inside_puts_everything_back(self):
        x = Value(1e200)
        errors = []  # kept, with the frames in which they were raised
        for compute in (lambda: x * x, lambda: mg.log(-x), lambda: (mg.log(x / 1e300 / 1e100) * 1e300).backward()):
            try:
                with mg.detect_anomaly():
                    compute()
            except (ArithmeticError, ValueError) as error:
                errors.append(error)
            assert (x * x).data == INFINITY
            assert (x * 2).requires_grad
        assert len(errors) == 3

    def test_other_threads_go_on(self):
        x, found = Value(1e200), []
        with mg.detect_anomaly():
            thread = threading.Thread(target=lambda: found.append((x * x).data))
            thread.start()
            thread.join()
        assert found == [INFINITY]

    def test_it_decorates_functions_and_refuses_what_runs_later(self):
        @mg.detect_anomaly()
        def square(x):
            return x * x

        assert square(Value(3.0)).data == 9.0
        with pytest.raises(FloatingPointError):
            square(Value(1e200))
        with pytest.raises(TypeError, match="detect_anomaly cannot decorate later"):

            @mg.detect_anomaly()
            def later():
                yield Value(1.0)

    def test_a_whole_training_run(self):
        model = mg.nn.MLP(1, [1], initial=0.5)
        data = [(float(x), 2.0 * x) for x in range(4)]

        def loss(x, y):
            error = model([x]) - y
            return error * error  # the loss of one

        with mg.detect_anomaly():
            history = mg.fit(loss, data, mg.optim.SGD(model.parameters(), 0.01), epochs=3, seed=0)
            assert history.epochs[-1] < history.epochs[0]
            with pytest.raises(FloatingPointError) as raised:
                mg.fit(loss, data, mg.optim.SGD(model.parameters(), 1e30), epochs=50, seed=0)
        assert line_of("the loss of one") + "loss" in str(raised.value)


class TestWhatItLeavesBehind:
    def test_graphs_are_freed_while_it_is_on(self):
        gc.collect()
        gc.disable()
        try:
            with mg.detect_anomaly():
                x = Value(2.0)
                before = sum(type(thing) is Value for thing in gc.get_objects())
                for _ in range(10):
                    (x * x + mg.exp(x)).backward()
                assert sum(type(thing) is Value for thing in gc.get_objects()) == before
        finally:
            gc.enable()

    def test_the_line_of_a_node_goes_with_it(self):
        x = Value(2.0)
        with mg.detect_anomaly():
            y = x * x
            own = weakref.ref(y._primitive)
            assert own() is not None
            del y
            assert own() is None

    def test_nodes_can_be_copied_and_pickled(self):
        x = Value(2.0)
        with mg.detect_anomaly():
            y = mg.tanh(x * 3) + mg.leaky_relu(x, 0.1)
        for twin in (copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
            twin.backward()
            assert (twin.data, twin._op) == (y.data, "+")
        assert x.grad == 0.0

    def test_primitives_with_settings_and_of_ones_own(self):
        scaled = mg.primitive(
            "scaled_for_anomaly",
            "scaled",
            lambda x, factor: x * factor,
            lambda g, out, x, factor: g * factor,
            replace=True,
        )
        x = Value(1e200, label="x")
        with mg.detect_anomaly():
            y = scaled(x, factor=2.0)
            assert y._op == "scaled factor=2.0"
            y.backward()
            assert x.grad == 2.0
            with pytest.raises(
                FloatingPointError, match=r"scaled_for_anomaly\(x = 1e\+200, factor=1e\+300\) gives inf"
            ):
                scaled(x, factor=1e300)


def test_what_another_recorder_makes_that_is_no_value_is_let_through():
    """As the symbols of a tracer are."""

    class Names(Recorder):
        def apply(self, primitive, *operands):
            return primitive.name, operands

    with using(Names()), mg.detect_anomaly():
        x = Value(1e200)
        assert x * x == ("mul", (x, x))
