"""to_jax and from_jax: beside micrograd's own gradients, and beside models that are written by hand in JAX."""

import copy
import functools
import math
import pickle
import random
import re
import sys
from collections import OrderedDict, namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.parameter_names import values_by_name
from tests.compiler.backends.sparing import is_left_out
from tests.strategies import programs

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:JAX calls primitive:RuntimeWarning")]

POINT = [0.3, -0.2, 0.9]
GLOBAL = Value(4.0)


@pytest.fixture
def model():
    random.seed(1)
    return mg.nn.MLP(3, [4, 2], activation="gelu")


def by_hand(parameters, x):
    for layer, (width, activation) in enumerate([(4, functools.partial(jax.nn.gelu, approximate=False)), (2, None)]):
        w = jnp.stack([parameters[f"layers.{layer}.neurons.{neuron}.w"] for neuron in range(width)])
        b = jnp.stack([parameters[f"layers.{layer}.neurons.{neuron}.b"] for neuron in range(width)])
        x = w @ x + b
        x = activation(x) if activation else x
    return x


class TestAModule:
    def test_its_parameters_have_the_names_of_its_state(self, model):
        _, parameters = mg.to_jax(model, POINT)
        state = {}
        for name, array in parameters.items():
            numbers = np.ravel(array).tolist()
            state |= {f"{name}.{position}" if array.ndim else name: number for position, number in enumerate(numbers)}
        assert state == model.state_dict()

    @pytest.mark.unmeasured
    def test_it_is_the_network_that_is_written_by_hand(self, model):
        function, parameters = mg.to_jax(model, POINT)

        def total(network):
            return lambda parameters, x: jnp.sum(jnp.stack(list(network(parameters, x))) ** 2 * jnp.array([1.0, -2.0]))

        x = jnp.array([0.5, 1.5, -1.0])
        ours, theirs = total(function), total(by_hand)
        xs = jnp.linspace(-1, 1, 6).reshape(2, 3)
        many = jax.tree.map(lambda p: jnp.stack([p, 2 * p]), parameters)
        for transform, arguments in (
            (lambda f: lambda *point: jax.jvp(jax.value_and_grad(jax.checkpoint(f)), point, point), (parameters, x)),
            (lambda f: jax.vmap(jax.vmap(jax.grad(f), (0, None)), (None, 0)), (many, xs)),
        ):
            agree(jax.jit(transform(ours))(*arguments), jax.jit(transform(theirs))(*arguments))
        agree(ours(parameters, x), theirs(parameters, x))  # without jit, too

    @pytest.mark.unmeasured
    def test_trained_parameters_are_written_back(self, model):
        target = [1.0, -0.5]

        def loss(x):
            return mg.mean([(output - wanted) ** 2 for output, wanted in zip(model(x), target, strict=True)])

        function, parameters = mg.to_jax(loss, POINT)
        assert list(parameters)[:2] == ["layers.0.neurons.0.w", "layers.0.neurons.0.b"]  # it closes over one module

        traces = []

        @jax.jit
        def step(parameters, velocity, x):
            traces.append(x)
            gradients = jax.grad(function)(parameters, x)
            velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
            return jax.tree.map(lambda p, v: p - 0.05 * v, parameters, velocity), velocity

        expected = copy.deepcopy(model)
        optimizer = mg.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        velocity = jax.tree.map(jnp.zeros_like, parameters)
        for _ in range(20):
            parameters, velocity = step(parameters, velocity, jnp.array(POINT))
            optimizer.zero_grad()
            loss(POINT).backward()
            optimizer.step()
        assert len(traces) == 1
        trained = model.state_dict()
        model.load_state_dict(expected.state_dict())
        mg.from_jax(parameters)
        assert list(model.state_dict().values()) == pytest.approx(list(trained.values()), rel=1e-10)

    def test_of_several_modules_names_begin_with_the_variable(self, model):
        other, scale = mg.nn.Neuron(2), Value(3.0)
        _, parameters = mg.to_jax(lambda x: other(model(x)) * scale, POINT)
        assert set(parameters) == {
            *(f"model.{name}" for name in mg.to_jax(model, POINT)[1]),
            "other.w",
            "other.b",
            "scale",
        }

    def test_a_method_of_one_is_named_as_the_module_is(self):
        class Line(mg.nn.Module):
            def __init__(self):
                self.terms = {"slope": [Value(2.0), Value(3.0)], "bias": Value(1.0)}

            def loss(self, x, y):
                return (mg.dot(self.terms["slope"], x) + self.terms["bias"] - y) ** 2

        function, parameters = mg.to_jax(Line().loss, [0.0, 0.0], 1.0)
        assert {name: array.tolist() for name, array in parameters.items()} == {
            "terms.slope": [2.0, 3.0],
            "terms.bias": 1.0,
        }
        assert function(parameters, [1.0, 1.0], 2.0) == 16.0


def agree(found, expected):
    """Two pytrees have the same numbers; whether their containers are of one class is of no consequence."""
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True)
    for x, y in pairs:
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


class TestRandomPrograms:
    @settings(max_examples=12)
    @given(program=programs())
    def test_values_and_gradients_are_those_of_micrograd(self, program):
        if is_left_out("jax", program):
            return
        leaves = [Value(number) for number in program.inputs]
        result = program(*leaves)
        function, parameters = mg.to_jax(lambda *xs: program(*xs) + 0.0, *program.inputs)
        assert dict(parameters) == {}
        argnums = tuple(range(1, 1 + len(leaves)))
        value, slopes = jax.jit(jax.value_and_grad(function, argnums))(parameters, *program.inputs)
        assert float(value) == pytest.approx(getattr(result, "data", result), rel=1e-9, abs=1e-12)
        if isinstance(result, Value):
            assert list(map(float, slopes)) == pytest.approx(mg.gradient(result, leaves), rel=1e-9, abs=1e-12)

    @pytest.mark.unmeasured
    def test_the_transformer_of_the_benchmark(self, monkeypatch):
        monkeypatch.syspath_prepend("tests/benchmarks")
        import transformer
        from by_hand import loss_by_hand

        monkeypatch.setattr(transformer, "WORD", transformer.WORD[:3])
        weights = transformer.parameters(Value)
        softmax, transformer.softmax = transformer.softmax, mg.softmax
        try:
            function, parameters = mg.to_jax(lambda: transformer.loss(weights, lambda x: Value(x, requires_grad=False)))
        finally:
            transformer.softmax = softmax
        assert {name: array.shape for name, array in parameters.items()} == {
            f"weights.{name}": shape for name, shape in transformer.SHAPES.items()
        }
        loss, gradients = jax.jit(jax.value_and_grad(function))(parameters)
        matrices = {name: jnp.array(rows) for name, rows in transformer.parameters(float).items()}
        word = jnp.array([transformer.END, *transformer.WORD, transformer.END])
        expected, slopes = jax.jit(jax.value_and_grad(loss_by_hand))(matrices, word)
        agree(loss, expected)
        agree({name: gradients[f"weights.{name}"] for name in slopes}, slopes)


class TestEdges:
    @pytest.mark.unmeasured
    def test_kinks_and_ties_are_those_of_micrograd(self):
        functions = (mg.relu, mg.abs, lambda x: mg.maximum(x, 0.0), lambda x: mg.minimum(0.0, x), mg.sign, mg.gelu)
        for f in (
            *functions,
            lambda x: mg.leaky_relu(x, 0.1),
            lambda x: x**1.5,
            lambda x: x**0,
            lambda x: 0 + x,
            mg.sinc,
            mg.atan,
        ):
            function, _ = mg.to_jax(f, 1.0)
            for x in (0.0, -0.0):
                value = Value(x)
                assert jax.grad(function, argnums=1)({}, x) == mg.gradient(f(value), value), f

        function, _ = mg.to_jax(lambda x, y: mg.maximum(x, y) * 2 + mg.minimum(y, x) * 5, 1.0, 1.0)
        assert jax.grad(function, argnums=(1, 2))({}, 1.0, 1.0) == (2.0, 5.0)

    def test_a_largest_number_that_is_detached_has_no_gradient(self):
        def f(xs):
            largest = mg.detach(mg.maximum(mg.maximum(xs[0], xs[1]), xs[2]))
            return sum(mg.exp(x - largest) for x in xs) * largest

        function, _ = mg.to_jax(f, POINT)
        values = list(map(Value, POINT))
        agree(jax.jit(jax.grad(function, argnums=1))({}, jnp.array(POINT)), np.array(mg.gradient(f(values), values)))

    def test_a_derivative_inside_is_differentiated_again(self):
        function, _ = mg.to_jax(lambda x: mg.grad(lambda a: mg.sin(a) * a)(x), 1.0)
        agree(jax.grad(function, argnums=1)({}, 0.7), mg.grad(mg.grad(lambda a: mg.sin(a) * a))(0.7))
        w = mg.Value(2.0)
        function, parameters = mg.to_jax(lambda x: mg.grad(lambda a: a * a * w)(x), 1.0)
        agree(jax.grad(lambda given: function(given, 0.5))(parameters), dict.fromkeys(parameters, 1.0))

    @pytest.mark.unmeasured
    def test_sums_in_order_have_the_derivatives_of_sums(self):
        function, _ = mg.to_jax(lambda x, y, z: -x * y + 2 * y * z - (x * z + x) + 0.0, 1.0, 1.0, 1.0)
        point = {}, 2.0, 3.0, 5.0
        positions = (1, 2, 3)
        slopes = jax.jit(jax.grad(function, positions))(*point)
        assert list(map(float, slopes)) == [-3.0 - 5.0 - 1.0, -2.0 + 10.0, 6.0 - 2.0]
        hessian = np.array(jax.jit(jax.hessian(function, positions))(*point)).tolist()
        assert hessian == [[0.0, -1.0, -1.0], [-1.0, 0.0, 2.0], [-1.0, 2.0, 0.0]]
        along = jax.jit(lambda *given: jax.jvp(jax.grad(function, 1), given, ({}, 0.0, 1.0, 0.0))[1])(*point)
        assert float(along) == -1.0

    @pytest.mark.unmeasured
    def test_a_check_costs_no_gradient(self):
        function, _ = mg.to_jax(lambda xs: sum(mg.tanh(mg.log(x)) for x in xs), POINT)
        xs = jnp.array([0.5, 1.5, 2.5])
        agree(jax.jit(jax.grad(function, argnums=1))({}, xs), 4 * xs / (xs**2 + 1) ** 2)
        both = str(jax.make_jaxpr(jax.value_and_grad(function, argnums=1))({}, xs))
        assert len(re.findall(r"[a-z]:\S+ = mul 0\.0", both)) == 1  # in the function; in no derivative

    def test_what_eager_raises_is_nan(self):
        function, _ = mg.to_jax(lambda x: mg.tanh(mg.log(x)) + mg.where(x > 1, 1.0, 2.0), 1.0)
        assert math.isnan(function({}, 0.0))
        assert math.isnan(function({}, math.nan))
        assert float(function({}, 2.0)) == pytest.approx(math.tanh(math.log(2.0)) + 1)

    @pytest.mark.unmeasured
    def test_takes_have_gradients_and_indices_may_be_integers(self):
        table = [Value(2.0), Value(3.0), Value(5.0)]
        function, parameters = mg.to_jax(lambda i: mg.take(table, i) ** 2, 0)
        assert [float(function(parameters, i)) for i in (0, 1, -1, np.int32(2), jnp.array(1))] == [4, 9, 25, 25, 9]
        assert jax.jit(jax.grad(function))(parameters, 1)["table"].tolist() == [0.0, 6.0, 0.0]
        assert math.isnan(function(parameters, 3))

    @pytest.mark.unmeasured
    def test_a_scan_is_one_scan_and_has_gradients_to_second_order(self):
        w = Value(0.5)

        def after(xs):
            return mg.scan(lambda h, x: (mg.tanh(w * h + x), h), 0.0, xs)[0]

        function, parameters = mg.to_jax(after, [0.1] * 40)
        xs = np.linspace(-1, 1, 40)
        assert str(jax.make_jaxpr(function)(parameters, xs)).count("scan[") == 1
        agree(function(parameters, xs), after(xs.tolist()).data)
        slopes = jax.jit(jax.grad(function, argnums=(0, 1)))(parameters, xs)
        values = [Value(x) for x in xs]
        expected = mg.gradient(after(values), [w, *values], create_graph=True)
        agree(slopes, [np.array(expected[0].data), np.array([slope.data for slope in expected[1:]])])
        second = jax.jit(jax.hessian(function))(parameters, xs)["w"]["w"]
        agree(second, mg.gradient(expected[0], w))

    def test_integers_are_exact(self):
        def f(xs, w):
            return [mg.maximum(w * x, 3.0) * x - mg.abs(x - w) for x in xs]

        function, _ = mg.to_jax(f, [1, 2, 3], 2)
        for w in (-3, 0, 4):
            assert list(map(float, jax.jit(function)({}, [5, -7, 2], w))) == f([5, -7, 2], w)


Pair = namedtuple("Pair", "first second")  # one without types is a container as well


class TestStructures:
    @pytest.mark.unmeasured
    def test_results_have_the_containers_of_the_program(self):
        w = Value(2.0)

        def f(x):
            product = w * x
            return {
                "pair": Pair(product, [product, 3.0]),
                "matrix": np.array([[product, x], [w, w * w]]),
                "input": x,
                "parameter": w,
                "flag": True,
                "none": None,
                "nothing": (),
            }

        function, parameters = mg.to_jax(f, 1.0)
        found = jax.jit(function)(parameters, 5.0)
        assert type(found["pair"]) is Pair
        assert float(found["pair"].first) == 10.0
        assert list(map(float, found["pair"].second)) == [10.0, 3.0]
        assert found["matrix"].tolist() == [[10.0, 5.0], [2.0, 4.0]]
        assert (float(found["input"]), float(found["parameter"])) == (5.0, 2.0)
        assert (bool(found["flag"]), found["none"], found["nothing"]) == (True, None, ())
        slopes = jax.jit(jax.jacobian(lambda x: function(parameters, x)["matrix"]))(5.0)
        assert slopes.tolist() == [[2.0, 1.0], [0.0, 0.0]]

    def test_a_constant_is_a_function_too(self):
        for f, expected in ((lambda: 3.0, 3.0), (list, []), (lambda: Value(2.0, requires_grad=False) * 2, 4.0)):
            function, parameters = mg.to_jax(f)
            assert dict(parameters) == {}
            assert jax.tree.map(float, function(parameters)) == expected

    def test_arguments_are_lists_arrays_and_dicts_as_the_example(self):
        def f(rows, settings, *, power=2):
            return sum(x * y for row in rows for x, y in zip(row, settings["w"], strict=True)) * settings["by"] ** power

        example = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], OrderedDict(w=(1.0, Value(2.0)), by=3)
        function, _ = mg.to_jax(f, *example)
        expected = f(*example).data
        rows = jnp.array(example[0])
        ws = (1.0, 2.0), [1, 2], jnp.array([1.0, 2.0]), (1.0, 2.0)
        for given_rows, w in zip((example[0], rows, list(rows), np.array(example[0])), ws, strict=True):
            assert function({}, given_rows, {"by": 3.0, "w": w}) == expected
        batch = jax.vmap(function, in_axes=({}, 0, None))({}, jnp.stack([rows, 2 * rows]), {"by": 3, "w": (1, 2)})
        assert batch.tolist() == [expected, 2 * expected]
        empty, _ = mg.to_jax(lambda xs, y: sum(xs) + y, [], 1.0)
        assert empty({}, [], 2.0) == empty({}, jnp.zeros(0), 2.0) == 2.0
        array, _ = mg.to_jax(lambda a: (a * a).sum(), np.ones((2, 3)))
        assert array({}, [[1, 2, 3], [4, 5, 6]]) == 91.0

    @pytest.mark.parametrize(
        "example",
        [[[1.0, 2.0], [3.0, 4.0]], np.ones((2, 2)), jnp.ones((2, 2)), [jnp.ones(2), (jnp.ones(()), 4.0)]],
        ids=["lists", "an array of NumPy", "an array of JAX", "some of all"],
    )
    def test_examples_may_be_arrays_of_jax(self, example):
        w = Value(2.0)

        def weighted(rows, more):
            return w * rows[0][0] + rows[1][0] * rows[1][1] + more["last"]

        function, parameters = mg.to_jax(weighted, example, {"last": jnp.float64(5.0)})
        assert function(parameters, jnp.array([[1.0, 2.0], [3.0, 4.0]]), {"last": 7.0}) == 2.0 + 12.0 + 7.0

    def test_strings_and_flags_are_part_of_the_program(self):
        function, _ = mg.to_jax(lambda x, way, n: x if way == "up" else -x * len(n), 1.0, "down", range(3))
        assert function({}, 2.0, "down", range(3)) == -6.0
        with pytest.raises(ValueError, match=r"argument 1 is part of the program, which was made for 'down', not 'up'"):
            function({}, 2.0, "up", range(3))

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((1.0,), TypeError, "takes 2 arguments beside the parameters, not 1"),
            (([1.0, 2.0], 1.0), ValueError, r"argument 0 must look like the example, \[1.0, 2.0, 3.0\]"),
            ((np.ones(2), 1.0), ValueError, r"argument 0 must have the shape \(3,\), as the example has, not \(2,\)"),
            ((POINT, np.ones(3)), ValueError, r"argument 1 must have the shape \(\), as the example has, not \(3,\)"),
            (({"a": 1.0}, 1.0), ValueError, "argument 0 must look like the example"),
            (([1.0, [2.0], 3.0], 1.0), ValueError, r"argument 0\[1\] must have the shape \(\)"),
        ],
    )
    def test_other_arguments_are_refused(self, arguments, error, message):
        function, _ = mg.to_jax(lambda xs, y: xs[0] * y, [1.0, 2.0, 3.0], 1.0)
        with pytest.raises(error, match=message):
            function({}, *arguments)

    def test_attributes_of_containers_are_refused(self):
        class Row(list):
            pass

        row = Row([1.0, [2.0]])
        row.scale = 3.0
        function, _ = mg.to_jax(lambda xs: xs[0] * xs.scale, row)
        with pytest.raises(TypeError, match="argument 0 has attributes, which JAX does not look at"):
            function({}, row)


class TestParameters:
    def test_they_are_a_pytree_that_knows_its_values(self):
        w, b = [Value(1.0), Value(2.0)], Value(3.0)
        function, parameters = mg.to_jax(lambda x: mg.dot(w, [x, x]) + b, 1.0)
        gradients = jax.grad(function)(parameters, 2.0)
        assert type(gradients) is type(parameters)
        paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(parameters)]
        assert paths == ["['b']", "['w']"]
        mg.from_jax(jax.tree.map(lambda p, g: p - g, parameters, gradients))
        assert [w[0].data, w[1].data, b.data] == [-1.0, 0.0, 2.0]
        assert parameters["w"].tolist() == [1.0, 2.0]  # as they were
        assert function(dict(parameters), 2.0) == 9.0  # a plain dict will do

    def test_values_may_change_without_the_function(self):
        w, frozen = Value(2.0), Value(5.0, requires_grad=False)
        function, parameters = mg.to_jax(lambda x: w * frozen * x, 1.0)
        w.data = frozen.data = 100.0
        assert function(parameters, 1.0) == 10.0
        assert set(parameters) == {"w"}

    def test_copies_and_pickles_are_plain_dicts(self):
        w = Value(2.0)
        _, parameters = mg.to_jax(lambda x: w * x, 1.0)
        for other in (copy.copy(parameters), copy.deepcopy(parameters), pickle.loads(pickle.dumps(parameters))):
            assert type(other) is dict
            assert other == {"w": 2.0}
            with pytest.raises(TypeError, match="a plain dict does not know which Values it stands for"):
                mg.from_jax(other)

    def test_all_values_are_written_or_none(self):
        w, b = [Value(1.0), Value(2.0)], Value(3.0)
        _, parameters = mg.to_jax(lambda x: mg.dot(w, [x, x]) + b, 1.0)
        broken = {
            r"parameter 'b' has a number that is not finite": {"b": jnp.array(math.nan)},
            r"parameter 'b' must have the shape \(\), not \(2,\)": {"b": jnp.ones(2)},
            r"the parameters do not fit: 'other' missing or unknown": {"other": 1.0},
        }
        for message, change in broken.items():
            changed = jax.tree.map(lambda p: p + 1, parameters)
            changed.update(change)
            with pytest.raises(ValueError, match=message):
                mg.from_jax(changed)
            assert [w[0].data, w[1].data, b.data] == [1.0, 2.0, 3.0]
        changed.pop("w")
        with pytest.raises(ValueError, match="'other', 'w' missing or unknown"):
            mg.from_jax(changed)

    def test_others_are_refused_by_the_function(self):
        w = Value(2.0)
        function, _ = mg.to_jax(lambda x: w * x, 1.0)
        for parameters in ({}, {"v": 1.0}, [1.0]):
            with pytest.raises(ValueError, match="the parameters must be arrays by name, as to_jax gave them: 'w'"):
                function(parameters, 1.0)
        with pytest.raises(ValueError, match=r"parameter 'w' must have the shape \(\), not \(2,\)"):
            function({"w": jnp.ones(2)}, 1.0)

    def test_a_value_that_is_computed_outside_is_refused(self):
        w = Value(2.0)
        square = w * w
        with pytest.raises(ValueError, match="reads a Value that is computed outside of it"):
            mg.to_jax(lambda x: square * x, 1.0)

    def test_what_is_no_function_is_refused(self):
        with pytest.raises(TypeError, match=r"to_jax takes a function, not float: 2.0"):
            mg.to_jax(2.0)


class TestRefusals:
    def test_without_float64_the_error_says_what_to_write(self):
        function, _ = mg.to_jax(mg.sin, 1.0)
        jax.config.update("jax_enable_x64", False)
        try:
            for use in (lambda: mg.to_jax(mg.sin, 1.0), lambda: function({}, 1.0)):
                with pytest.raises(RuntimeError, match=r'write jax.config.update\("jax_enable_x64", True\)'):
                    use()
        finally:
            jax.config.update("jax_enable_x64", True)

    def test_without_jax_the_error_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jax", None)
        with pytest.raises(ImportError, match=r"^to_jax needs JAX: pip install jax$"):
            mg.to_jax(mg.sin, 1.0)
        with pytest.raises(ImportError, match=r"^from_jax needs JAX: pip install jax$"):
            mg.from_jax({})

    def test_a_primitive_without_a_formula_is_differentiated_by_its_rule_and_its_errors_are_those_of_jax(
        self, own_registry
    ):
        def forward(x):
            if x == 3.0:
                raise LookupError("no three")
            return 2 * x / (x > 0)

        made = mg.primitive("doubled_for_jax", "d", forward, lambda g, out, x: 2.0 * g)
        function, parameters = mg.to_jax(lambda x: made(x) * x, 1.0)
        assert function(parameters, 4.0) == 32.0
        assert jax.grad(function, argnums=1)(parameters, 4.0) == 16.0
        curvatures = jax.jit(jax.vmap(jax.hessian(function, argnums=1), (None, 0)))(parameters, jnp.ones(3))
        assert curvatures.tolist() == [4.0] * 3
        assert math.isnan(function(parameters, -1.0))
        with pytest.raises(jax.errors.JaxRuntimeError, match="no three"):
            jax.block_until_ready(function(parameters, 3.0))  # a GPU goes on meanwhile


class Scaled:
    """A callable object of the user's."""

    def __init__(self):
        self.factors = np.array([Value(2.0), Value(3.0)])

    def __call__(self, x):
        return (self.factors * x).sum()


class TestNames:
    def names(self, function, *values):
        return {name: array.shape for name, array in values_by_name(function, values).items()}

    def test_variables_of_all_kinds(self):
        a, b, c, d = (Value(float(number)) for number in range(4))

        def inner(x, *, by=b):
            return x * by

        def outer(x, first=a):
            return (lambda: inner(x) * first * c * GLOBAL)()

        assert self.names(outer, a, b, c, GLOBAL) == {"inner.by": (), "c": (), "first": (), "GLOBAL": ()}
        assert self.names(functools.partial(outer, d), d, a) == {"first": (), "0": ()}
        assert self.names(functools.partial(outer, first=d), d) == {"first": ()}
        assert self.names(Scaled(), *(scaled := Scaled()).factors) == {"others": (2,)}
        assert self.names(scaled, *scaled.factors) == {"factors": (2,)}
        assert self.names(scaled.__call__, *scaled.factors) == {"self.factors": (2,)}
        assert self.names(lambda: 0, a, b) == {"others": (2,)}
        assert self.names(a, a) == {"value": ()}

    def test_lists_that_are_no_rectangles_are_named_by_their_positions(self):
        a, b, c, d = values = [Value(float(number)) for number in range(4)]
        ragged, twice, mixed = [[a], [b, c]], [[d, d]], [a, 1.0]
        assert self.names(lambda: ragged, *values) == {"ragged.0": (1,), "ragged.1": (2,), "others": (1,)}
        assert self.names(lambda: twice, d) == {"twice.0.0": ()}
        assert self.names(lambda: mixed, a) == {"mixed.0": ()}
        assert self.names(lambda: (ragged, ragged), a, b, c) == {"ragged.0": (1,), "ragged.1": (2,)}
        empty, number = [], np.array(3.0)
        assert self.names(lambda: (empty, number, a), a) == {"a": ()}

    def test_two_variables_of_one_name_have_numbers(self):
        def made(number):
            w = Value(number)
            return (lambda x: w * x), w

        (f, v), (g, u) = made(1.0), made(2.0)
        table = [f, g]
        assert self.names(lambda x: table[0](x) * table[1](x), v, u) == {"table.0.w": (), "table.1.w": ()}
        assert self.names(functools.partial(lambda x: f(x), g), v, u) == {"f.w": (), "0.w": ()}
        assert self.names(functools.partial(f, w=u), v, u) == {"w": (), "w_2": ()}

    def test_a_variable_without_a_value_and_functions_of_packages_are_passed_over(self):
        def outer():
            function = lambda: late  # noqa: E731  # late is set after it is looked at
            names = self.names(function, GLOBAL)
            late = GLOBAL
            return names, late

        assert outer() == ({"others": (1,)}, GLOBAL)
        assert self.names(mg.functional.dot, GLOBAL) == {"others": (1,)}


@pytest.mark.unmeasured
def test_many_derivatives_inside_are_differentiated_by_jax_again():
    """They are written many at a time, and are plain numbers in the function."""
    xs = np.linspace(-1.0, 1.0, 3_000)

    def loss(xs):
        slopes = mg.grad(lambda z: (np.tanh(z) * z).sum())(xs)
        return (slopes**2).sum()

    function, _ = mg.to_jax(loss, xs)
    by_hand = lambda z: (jax.grad(lambda z: (jnp.tanh(z) * z).sum())(z) ** 2).sum()  # noqa: E731
    found, expected = jax.jit(jax.grad(function, argnums=1))({}, xs), jax.jit(jax.grad(by_hand))(xs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_rounding_is_not_simplified_away():
    x = np.array([0.5, 1.5, 1.7, -2.6, -2.5, 2.0**53])
    traced, parameters = mg.to_jax(np.round, x)
    np.testing.assert_array_equal(np.asarray(jax.jit(traced)(parameters, x)), np.round(x))
