"""Networks: micrograd's names, reprs and weights, the parameters that are found, and files of them."""

import math
import random
import statistics
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.nn import MLP, Layer, Module, Neuron
from micrograd.optim import SGD

finite = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)


def bits(numbers):
    """Floats as their bytes, so that 0.0 and -0.0 differ."""
    return struct.pack(f"<{len(numbers)}d", *numbers)


def numbers(model):
    return [parameter.data for parameter in model.parameters()]


class TestMicrograd:
    """The numbers here are those of micrograd 0.1.0."""

    def test_reprs(self):
        assert repr(Neuron(2)) == "ReLUNeuron(2)"
        assert repr(Neuron(2, nonlin=False)) == "LinearNeuron(2)"
        assert repr(Neuron(2, False)) == "LinearNeuron(2)"
        assert repr(Layer(2, 3)) == "Layer of [ReLUNeuron(2), ReLUNeuron(2), ReLUNeuron(2)]"
        assert repr(Layer(2, 2, nonlin=False)) == "Layer of [LinearNeuron(2), LinearNeuron(2)]"
        assert repr(MLP(3, [4, 4, 1])) == (
            "MLP of [Layer of [ReLUNeuron(3), ReLUNeuron(3), ReLUNeuron(3), ReLUNeuron(3)], "
            "Layer of [ReLUNeuron(4), ReLUNeuron(4), ReLUNeuron(4), ReLUNeuron(4)], Layer of [LinearNeuron(4)]]"
        )

    def test_a_layer_of_one_gives_a_bare_value_and_a_larger_one_a_list(self):
        assert type(Layer(2, 1)([1.0, 2.0])) is Value
        several = Layer(2, 3)([1.0, 2.0])
        assert type(several) is list
        assert [type(output) for output in several] == [Value] * 3
        assert type(MLP(2, [3, 1])([1.0, 2.0])) is Value
        assert len(MLP(2, [3, 2])([1.0, 2.0])) == 2

    def test_zero_grad_sets_every_gradient_to_zero(self):
        model = MLP(2, [2, 1], activation="tanh")
        model([1.0, 2.0]).backward()
        assert any(parameter.grad for parameter in model.parameters())
        model.zero_grad()
        assert [parameter.grad for parameter in model.parameters()] == [0.0] * 9


class TestNetworks:
    def test_hidden_layers_of_one_neuron_work(self):
        model = MLP(2, [1, 1, 1], activation="tanh")
        result = model([0.5, -1.0])
        result.backward()
        (a, b, c), (d, e), (f, g) = numbers(model)[:3], numbers(model)[3:5], numbers(model)[5:]
        assert result.data == pytest.approx(f * math.tanh(d * math.tanh(a * 0.5 - b + c) + e) + g)
        assert all(parameter.grad for parameter in model.parameters())

    def test_an_output_is_the_formula_of_its_weights(self):
        random.seed(2)
        model = MLP(2, [2, 2], activation="sigmoid")
        w = numbers(model)
        x = [0.7, -1.3]

        def sigmoid(number):
            return 1 / (1 + math.exp(-number))

        hidden = [sigmoid(w[i] * x[0] + w[i + 1] * x[1] + w[i + 2]) for i in (0, 3)]
        expected = [w[i] * hidden[0] + w[i + 1] * hidden[1] + w[i + 2] for i in (6, 9)]
        assert [output.data for output in model(x)] == pytest.approx(expected)

    @pytest.mark.parametrize(
        "inputs", [(1.0, 2.0), [1, 2], np.array([1.0, 2.0]), [Value(1.0), 2.0], np.array([Value(1.0), Value(2.0)])]
    )
    def test_inputs_may_be_any_sequence_of_numbers_and_values(self, inputs):
        random.seed(0)
        model = MLP(2, [3, 1])
        assert model(inputs).data == model([1.0, 2.0]).data

    def test_under_no_grad_the_output_is_the_same_and_a_constant(self):
        model = MLP(2, [3, 1], activation="tanh")
        expected = model([0.5, Value(-2.0)])
        with mg.no_grad():
            output = model([0.5, Value(-2.0)])
        assert output.data == expected.data
        assert (output.requires_grad, expected.requires_grad) == (False, True)

    def test_gradients_reach_inputs_that_are_values(self):
        model = MLP(2, [3, 1], activation="tanh")
        inputs = [Value(0.5), Value(-0.2)]
        model(inputs).backward()
        step = 1e-6
        for index, value in enumerate(inputs):
            ahead, behind = [0.5, -0.2], [0.5, -0.2]
            ahead[index] += step
            behind[index] -= step
            assert value.grad == pytest.approx((model(ahead).data - model(behind).data) / (2 * step), rel=1e-6)

    @pytest.mark.parametrize(
        ("name", "shown", "function"),
        [
            ("relu", "ReLU", lambda x: max(x, 0.0)),
            ("leaky_relu", "LeakyReLU", lambda x: x if x > 0 else 0.01 * x),
            ("elu", "ELU", lambda x: x if x > 0 else math.exp(x) - 1),
            ("silu", "SiLU", lambda x: x / (1 + math.exp(-x))),
            ("gelu", "GELU", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
            ("tanh", "Tanh", math.tanh),
            ("sigmoid", "Sigmoid", lambda x: 1 / (1 + math.exp(-x))),
            ("softplus", "Softplus", lambda x: math.log(1 + math.exp(x))),
        ],
    )
    def test_activations_by_name(self, name, shown, function):
        neuron = Neuron(1, activation=name)
        assert repr(neuron) == f"{shown}Neuron(1)"
        neuron.w[0].data, neuron.b.data = 2.0, -0.25
        for x in (-1.5, 0.25, 1.5):
            assert neuron([x]).data == pytest.approx(function(2.0 * x - 0.25), rel=1e-12)
        model = MLP(1, [2, 1], activation=name)
        assert repr(model) == f"MLP of [Layer of [{shown}Neuron(1), {shown}Neuron(1)], Layer of [LinearNeuron(2)]]"

    def test_an_activation_may_be_a_function(self):
        def cube(x):
            return x**3

        neuron = Neuron(1, activation=cube)
        neuron.w[0].data = 2.0
        assert (repr(neuron), neuron([1.5]).data) == ("CubeNeuron(1)", 27.0)
        assert MLP(1, [2, 1], activation=mg.tanh)([1.0]).requires_grad
        by_function, by_name = Layer(2, 2, activation=mg.sin), Layer(2, 2, nonlin=False)
        for mine, other in zip(by_function.parameters(), by_name.parameters(), strict=True):
            other.data = mine.data
        outputs = zip(by_function([1.0, 2.0]), by_name([1.0, 2.0]), strict=True)
        assert all(one.data == math.sin(other.data) for one, other in outputs)

    def test_an_activation_without_a_name_works(self):
        class Square:
            def __call__(self, x):
                return x * x

        assert repr(Neuron(1, activation=Square())) == "SquareNeuron(1)"

    def test_an_activation_may_give_a_plain_number_or_a_leaf(self):
        assert Neuron(2, activation=lambda x: 1.5)([1.0, 2.0]) == 1.5
        leaf = Value(2.0)
        output = Neuron(2, activation=lambda x: leaf)([1.0, 2.0])
        assert (output, output.is_leaf) == (leaf, True)

    @pytest.mark.parametrize(
        ("initial", "inputs", "outputs", "deviation"),
        [
            ("uniform", 100, 50, 1 / math.sqrt(3)),
            ("he", 100, 50, math.sqrt(2 / 100)),
            ("he", 8, 500, math.sqrt(2 / 8)),
            ("glorot", 100, 50, math.sqrt(2 / 150)),
            ("glorot", 8, 500, math.sqrt(2 / 508)),
            (0.3, 100, 50, 0.3),
            (2, 100, 50, 2.0),
        ],
    )
    def test_initial_weights_have_the_spread_that_suits_the_size(self, initial, inputs, outputs, deviation):
        random.seed(11)
        layer = Layer(inputs, outputs, initial=initial)
        weights = [weight.data for neuron in layer.neurons for weight in neuron.w]
        assert len(weights) == inputs * outputs
        assert statistics.pstdev(weights) == pytest.approx(deviation, rel=0.06)
        assert abs(statistics.fmean(weights)) < 5 * deviation / math.sqrt(len(weights))
        assert {neuron.b.data for neuron in layer.neurons} == {0.0}
        if initial == "uniform":
            assert -1 <= min(weights) < -0.99 < 0.99 < max(weights) <= 1
        else:  # normal: about 4.6 percent lie beyond two deviations
            beyond = sum(abs(weight) > 2 * deviation for weight in weights) / len(weights)
            assert 0.035 < beyond < 0.06

    def test_a_neuron_alone_has_one_output(self):
        random.seed(11)
        drawn = Neuron(1, initial="glorot").w[0].data
        random.seed(11)
        assert drawn == random.gauss(0, 1.0)

    def test_a_spread_of_zero_makes_the_weights_zero(self):
        assert [weight.data for weight in Neuron(3, initial=0).w] == [0.0, 0.0, 0.0]

    def test_each_layer_of_a_network_has_a_spread_of_its_own(self):
        random.seed(12)
        model = MLP(200, [50, 20, 1], initial="glorot")
        for layer, expected in zip(model.layers[:2], (math.sqrt(2 / 250), math.sqrt(2 / 70)), strict=True):
            weights = [weight.data for neuron in layer.neurons for weight in neuron.w]
            assert statistics.pstdev(weights) == pytest.approx(expected, rel=0.06)

    @pytest.mark.parametrize("initial", ["uniform", "he", "glorot", 0.5])
    def test_the_seed_fixes_the_weights(self, initial):
        drawn = []
        for _ in range(2):
            random.seed(5)
            drawn.append(numbers(MLP(3, [4, 2], initial=initial)))
        assert drawn[0] == drawn[1]


class TestBatches:
    """A module given several points along the first axis answers for each, as it does for one."""

    POINTS = np.array([[1.0, 2.0], [3.0, 4.0]])  # square, so that columns would be taken for points
    MODULES = (
        lambda: Neuron(2, activation="tanh"),
        lambda: Layer(2, 3, activation="tanh"),
        lambda: MLP(2, [3, 1]),
        lambda: MLP(2, [3, 2]),
    )
    FORMS = (
        np.array,
        np.ndarray.tolist,
        mg.array,
        list,
        lambda points: tuple(map(tuple, points)),
        lambda points: pytest.importorskip("pandas").DataFrame(points, columns=["a", "b"]),
    )

    @pytest.mark.parametrize("make", MODULES)
    @pytest.mark.parametrize("form", FORMS)
    def test_each_row_is_a_point(self, make, form):
        random.seed(3)
        model, points = make(), form(self.POINTS)
        expected = [mg.numbers(model(point)).tolist() for point in self.POINTS]
        answers = model(points)
        assert mg.numbers(answers).tolist() == expected
        assert isinstance(answers, list) == isinstance(points, (list, tuple))

    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    @pytest.mark.parametrize("form", [np.array, np.ndarray.tolist, mg.array])
    def test_compiled_it_is_the_same(self, form, backend):
        random.seed(3)
        model = MLP(2, [3, 2], activation="tanh")
        fast = mg.compile(lambda points: model(points), backend=backend)
        answers, expected = fast(form(self.POINTS)), model(form(self.POINTS))
        assert mg.numbers(answers) == pytest.approx(mg.numbers(expected), rel=1e-14)
        assert type(answers) is type(expected)

    def test_there_may_be_any_number_of_points_and_axes(self):
        model = MLP(2, [3, 1])
        assert [model(np.ones((*shape, 2))).shape for shape in [(60,), (1,), (0,), (3, 4)]] == [
            (60,),
            (1,),
            (0,),
            (3, 4),
        ]
        assert len(model([[1.0, 2.0]])) == 1

    def test_gradients_are_those_of_the_single_points(self):
        random.seed(3)
        model = MLP(2, [3, 1])
        ((model(self.POINTS) - np.array([1.0, -1.0])) ** 2).sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        model.zero_grad()
        for point, target in zip(self.POINTS, [1.0, -1.0], strict=True):
            ((model(point) - target) ** 2).backward()
        assert gradients == pytest.approx([parameter.grad for parameter in model.parameters()], rel=1e-12)


class TestWrongArguments:
    def test_sizes_may_be_numpy_integers_a_tuple_or_an_array(self):
        assert len(MLP(np.int64(2), [np.int32(3), 1]).parameters()) == 13
        assert repr(MLP(1, (1,))) == "MLP of [Layer of [LinearNeuron(1)]]"
        assert len(MLP(2, np.array([3, 1])).parameters()) == 13


class Nested(Module):
    """Values in every kind of container."""

    def __init__(self):
        self.size = 3
        self.name = "nested"
        self.scale = Value(1.0)
        self.parts = [Value(2.0), (Value(3.0), [Value(4.0)])]
        self.by_name = {"left": Value(5.0), "right": {"deep": Value(6.0)}, 7: Value(7.0)}
        self.child = Neuron(1)
        self.children = {"layers": [Layer(1, 1)]}
        self.nothing = None


class TestParameters:
    def test_paths_name_attributes_indices_and_keys_in_order(self):
        assert [name for name, _ in MLP(1, [2, 1]).named_parameters()] == [
            "layers.0.neurons.0.w.0",
            "layers.0.neurons.0.b",
            "layers.0.neurons.1.w.0",
            "layers.0.neurons.1.b",
            "layers.1.neurons.0.w.0",
            "layers.1.neurons.0.w.1",
            "layers.1.neurons.0.b",
        ]

    def test_values_in_nested_containers_are_found(self):
        model = Nested()
        named = dict(model.named_parameters())
        assert list(named) == [
            "scale",
            "parts.0",
            "parts.1.0",
            "parts.1.1.0",
            "by_name.left",
            "by_name.right.deep",
            "by_name.7",
            "child.w.0",
            "child.b",
            "children.layers.0.neurons.0.w.0",
            "children.layers.0.neurons.0.b",
        ]
        assert [named[name].data for name in list(named)[:7]] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
        assert list(named.values()) == model.parameters()
        assert named["child.b"] is model.child.b

    def test_results_among_the_leaves_of_a_module_are_no_parameters(self):
        class Mixed(Module):
            def __init__(self):
                self.w = Value(2.0)
                self.parts = [Value(1.0), self.w * 2.0, Value(3.0)]

        model = Mixed()
        assert [parameter.data for parameter in model.parameters()] == [2.0, 1.0, 3.0]
        assert model.parameters() == [parameter for _, parameter in model.named_parameters()]

    def test_a_module_that_chooses_its_named_parameters_has_no_others(self):
        class Head(Module):
            def __init__(self):
                self.body, self.head = MLP(2, [2, 1]), MLP(1, [1])

            def named_parameters(self):
                return ((f"head.{name}", parameter) for name, parameter in self.head.named_parameters())

        model = Head()
        assert set(model.parameters()) == set(model.head.parameters())

    def test_parameters_are_leaves_and_frozen_ones_too_but_not_results(self):
        class Model(Module):
            def __init__(self):
                self.weight = Value(1.0)
                self.frozen = Value(2.0, requires_grad=False)
                self.last = self.weight * 3

        assert [name for name, _ in Model().named_parameters()] == ["weight", "frozen"]

    def test_a_shared_parameter_is_there_once_and_trained_once(self):
        class Tied(Module):
            def __init__(self):
                self.first = Neuron(1, nonlin=False)
                self.second = Neuron(1, nonlin=False)
                self.second.w = self.first.w
                self.again = self.first
                self.bias = self.second.b

            def __call__(self, x):
                return self.second([self.first([x])])

        model = Tied()
        assert [name for name, _ in model.named_parameters()] == ["first.w.0", "first.b", "second.b"]
        assert len(model.parameters()) == len(set(model.parameters())) == 3
        model.load_state_dict({"first.w.0": 3.0, "first.b": 0.0, "second.b": 0.0})
        model(1.0).backward()
        assert model.first.w[0].grad == 6.0
        SGD(model.parameters(), 0.5).step()
        assert model.second.w[0].data == 0.0

    def test_a_model_that_refers_to_itself_works(self):
        class Knot(Module):
            def __init__(self):
                self.weight = Value(1.0)
                self.myself = self
                self.circle = [self]
                self.circle.append(self.circle)
                self.child = Neuron(1)
                self.child.parent = self

        assert [name for name, _ in Knot().named_parameters()] == ["weight", "child.w.0", "child.b"]

    def test_a_model_without_parameters_has_none(self):
        assert (Module().parameters(), Module().state_dict()) == ([], {})

    def test_a_subclass_may_say_its_parameters_itself_as_micrograd_programs_do(self):
        class Model(Module):
            def __init__(self):
                self.backbone = MLP(2, [2, 1], activation="tanh")
                self.head = Neuron(1, nonlin=False)

            def __call__(self, x):
                return self.head([self.backbone(x)])

            def parameters(self):
                return self.head.parameters()

        model = Model()
        assert len(model.parameters()) == 2
        model([1.0, 2.0]).backward()
        kept = [parameter.grad for parameter in model.backbone.parameters()]
        assert any(kept)
        model.zero_grad()
        assert [parameter.grad for parameter in model.head.parameters()] == [0.0, 0.0]
        assert [parameter.grad for parameter in model.backbone.parameters()] == kept
        assert len(model.state_dict()) == 11  # and what it is made of is saved all the same

    @pytest.mark.parametrize("twice", [{1: 1.0, "1": 2.0}, {"a.b": 1.0, "a": {"b": 2.0}}], ids=["types", "dots"])
    def test_no_parameter_is_lost_where_two_paths_read_the_same(self, twice):
        class Model(Module):
            def __init__(self):
                self.table = {
                    key: {inner: Value(number) for inner, number in item.items()}
                    if isinstance(item, dict)
                    else Value(item)
                    for key, item in twice.items()
                }

        model = Model()
        try:
            state = model.state_dict()
        except ValueError:
            return  # an error is as good
        assert sorted(state.values()) == [1.0, 2.0]

    def test_values_in_an_array_are_found(self):
        class Model(Module):
            def __init__(self):
                self.weights = np.array([[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]])

        assert [parameter.data for parameter in Model().parameters()] == [1.0, 2.0, 3.0, 4.0]


class TestStateDict:
    def test_it_holds_the_numbers_by_name(self):
        model = MLP(1, [1])
        model.layers[0].neurons[0].w[0].data = 0.5
        assert model.state_dict() == {"layers.0.neurons.0.w.0": 0.5, "layers.0.neurons.0.b": 0.0}

    @given(values=st.lists(finite, min_size=9, max_size=9))
    def test_loading_it_into_another_model_makes_them_equal_to_the_bit(self, values):
        model, other = MLP(2, [2, 1]), MLP(2, [2, 1])
        for parameter, number in zip(model.parameters(), values, strict=True):
            parameter.data = number
        kept = other.parameters()
        other.load_state_dict(model.state_dict())
        assert bits(numbers(other)) == bits(values)
        assert other.parameters() == kept

    def test_it_is_a_copy(self):
        model = MLP(1, [1])
        state = model.state_dict()
        state["layers.0.neurons.0.b"] = 9.0
        assert model.layers[0].neurons[0].b.data == 0.0

    @pytest.mark.parametrize(
        ("change", "kind", "message"),
        [
            (lambda state: state.pop("layers.0.neurons.0.b"), ValueError, r"layers\.0\.neurons\.0\.b.* missing"),
            (lambda state: state.update(extra=1.0), ValueError, "'extra' unknown"),
            (lambda state: state.update({"layers.0.neurons.0.b": math.nan}), ValueError, "nan, not a finite"),
            (lambda state: state.update({"layers.0.neurons.0.b": math.inf}), ValueError, "inf, not a finite"),
            (lambda state: state.update({"layers.0.neurons.0.b": "1.0"}), TypeError, "real number, not str"),
            (lambda state: state.update({"layers.0.neurons.0.b": None}), TypeError, "real number, not None"),
            (lambda state: state.update({"layers.0.neurons.0.b": Value(1.0)}), TypeError, "real number, not Value"),
            (lambda state: state.update({"layers.0.neurons.0.b": True}), ValueError, "not a finite number"),
            (lambda state: state.update({"layers.0.neurons.0.b": [1.0]}), TypeError, "real number, not list"),
            (lambda state: state.clear(), ValueError, "and 6 more missing"),
        ],
    )
    def test_it_is_loaded_whole_or_not_at_all(self, change, kind, message):
        model = MLP(2, [2, 1])
        before = numbers(model)
        state = dict.fromkeys(model.state_dict(), 7.0)
        change(state)
        with pytest.raises(kind, match=message):
            model.load_state_dict(state)
        assert numbers(model) == before


@pytest.fixture
def saved(tmp_path):
    """A small model that was saved, the file, and what is in it."""
    random.seed(1)
    model = MLP(1, [1, 1])
    path = tmp_path / "model.json"
    model.save(path)
    return model, path, path.read_bytes()


def refused(model, path, kind=ValueError, message=""):
    """Check that a file is refused, by name and with a reason, and that the model is untouched."""
    before = bits(numbers(model))
    with pytest.raises(kind) as caught:
        model.load(path)
    text = str(caught.value)
    assert str(path) in text
    assert message in text
    assert len(text) > len(str(path)) + 20
    assert bits(numbers(model)) == before


class TestFiles:
    @settings(max_examples=16)
    @given(values=st.lists(finite, min_size=4, max_size=4))
    def test_a_model_comes_back_from_its_file_to_the_bit(self, tmp_path_factory, values):
        path = tmp_path_factory.mktemp("models") / "model.json"
        model, other = MLP(1, [1, 1]), MLP(1, [1, 1])
        for parameter, number in zip(model.parameters(), values, strict=True):
            parameter.data = number
        model.save(path)
        other.load(path)
        assert bits(numbers(other)) == bits(values)

    def test_extreme_numbers_come_back_to_the_bit_and_names_in_any_script(self, tmp_path):
        extremes = [5e-324, -5e-324, -0.0, 0.0, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3, -1e22]

        class Model(Module):
            def __init__(self, numbers_given):
                names = ["größe", "重み\n", 'a "b"\\', *"abcdef"]
                self.all = {name: Value(number) for name, number in zip(names, numbers_given, strict=True)}

        Model(extremes).save(tmp_path / "extremes")
        other = Model([1.0] * len(extremes))
        other.load(str(tmp_path / "extremes"))
        assert bits(numbers(other)) == bits(extremes)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_model_that_is_not_finite_is_not_saved_and_the_old_file_stays(self, saved, bad):
        model, path, content = saved
        model.layers[1].neurons[0].w[0].data = bad
        with pytest.raises(ValueError, match=r"layers\.1\.neurons\.0\.w\.0.*not a finite number"):
            model.save(path)
        assert path.read_bytes() == content
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]

    @pytest.mark.slow
    def test_a_file_with_any_byte_changed_is_refused_or_says_the_same(self, saved):
        model, path, content = saved
        chance = random.Random(3)
        refusals = 0
        for position in range(len(content)):
            for byte in {content[position] ^ (1 << chance.randrange(8)), chance.randrange(256)} - {content[position]}:
                changed = bytearray(content)
                changed[position] = byte
                path.write_bytes(changed)
                other = MLP(1, [1, 1])
                before = bits(numbers(other))
                reason = ""
                try:
                    other.load(path)
                except ValueError as error:
                    reason = str(error)
                    refusals += 1
                assert bits(numbers(other)) == (before if reason else bits(numbers(model)))
                assert not reason or str(path) in reason
        assert refusals > 1.5 * len(content)

    @pytest.mark.parametrize(
        "number",
        ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "null", '"1.0"', "true", 10**400, "1" + "0" * 100_000],
        ids=lambda number: f"{number!s:.9}",
    )
    def test_what_is_no_finite_number_is_refused(self, saved, number):
        model, path, content = saved
        weight = repr(model.layers[0].neurons[0].w[0].data).encode()
        assert content.count(weight) == 1
        path.write_bytes(content.replace(weight, str(number).encode()))
        refused(model, path)

    @pytest.mark.parametrize(
        "make", [lambda: MLP(1, [1]), lambda: MLP(2, [1, 1]), lambda: MLP(1, [2, 1]), lambda: MLP(1, [1, 1, 1])]
    )
    def test_a_file_of_another_shape_is_refused(self, saved, make):
        _, path, _ = saved
        refused(make(), path, message="the state does not fit")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b" ",
            b"\x00" * 100,
            bytes(range(256)),
            b"\x89PNG\r\n\x1a\n" + bytes(random.Random(1).randbytes(500)),
            b"[" * 200_000,
            b'{"state":' * 200_000,
            b"[" * 200_000 + b"]" * 200_000,
            b"{}",
            b"[]",
            b"null",
            b"3.0",
            b'"micrograd state 1"',
            b'{"format": "micrograd state 1"}',
            b'{"format": "micrograd state 1", "state": []}',
            b'{"format": "micrograd state 1", "state": {"layers": {"0": 1.0}}}',
            b'{"format": "micrograd state 1", "state": {}}',
            b'{"format": ["micrograd state 1"], "state": {}, "checksum": ""}',
            b'{"format": "micrograd state 1", "state": {"\\ud800": 1.0}, "checksum": ""}',
        ],
        ids=lambda content: f"{content[:30]!r} of {len(content)}",
    )
    def test_what_is_no_such_file_is_refused(self, tmp_path, content):
        path = tmp_path / "model.json"
        path.write_bytes(content)
        refused(MLP(1, [1, 1]), path)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            (b"micrograd state 1", b"micrograd state 2", "micrograd state 1"),
            (b'"layers.0.neurons.0.b"', b'"layers.0.neurons.0.w.0"', "it has a name twice"),
        ],
    )
    def test_a_file_of_another_format_or_with_a_name_that_stands_twice_is_refused(self, saved, old, new, message):
        model, path, content = saved
        path.write_bytes(content.replace(old, new))
        refused(model, path, message=message)


def test_what_an_input_itself_refuses_is_said_as_it_says_it():
    class Stubborn(Value):
        def __rmul__(self, other):
            raise TypeError("I do not multiply")

        def __mul__(self, other):
            raise TypeError("I do not multiply")

    with pytest.raises(TypeError, match=r"^I do not multiply$"):
        Neuron(1)([Stubborn(1.0)])
