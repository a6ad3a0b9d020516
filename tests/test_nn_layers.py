"""Layers beside neurons, modes of modules, and composition: eagerly, compiled and in fit."""

import math
import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value, nn
from micrograd.contexts.calls import calls_of
from micrograd.contexts.modes import MaskError
from micrograd.nn import MLP, Convolution2d, Dropout, Embedding, Layer, LayerNorm, Module, Neuron, Sequential

pytestmark = pytest.mark.slow(together=True)

MODES = pytest.mark.parametrize("mode", [False, "numpy", "llvm", "jax"])


def numbers(values):
    """The numbers of Values, as floats and lists."""
    return np.asarray(mg.numbers(values)).tolist() if isinstance(values, (list, np.ndarray)) else values.data


class Line(Module):
    def __init__(self):
        self.slope, self.intercept = Value(2.0), Value(1.0)

    def forward(self, x, shift=0.0):
        return self.slope * x + self.intercept + shift


class Inner(Module):
    """Modules in containers, one of them twice, and a loop."""

    def __init__(self):
        self.parts = [Dropout(0.5), {"a": Dropout(0.25)}, (Neuron(2), Value(1.0))]
        self.again, self.me, self.name = self.parts[0], self, "inner"

    def __call__(self, x):
        return x


class Scaled(Module):
    def __init__(self):
        self.factor = Value(0.5)

    def forward(self, x):
        return self.factor * x


class Blend(Scaled):
    def forward(self, x, y):
        return self.factor * x + y


class Twice(Module):
    def __init__(self):
        self.inner = Scaled()

    def __call__(self, x):
        return self.inner(self.inner(x))


class Same(Module):
    def forward(self, x):
        return x


class Pair(Module):
    def forward(self, x):
        return [x * x, x]


def names_of_calls(value):
    return [call.name for call in calls_of(value)]


def modules_of_inner():
    inner = Inner()
    return inner, [inner, inner.parts[0], inner.parts[1]["a"], inner.parts[2][0]]


class TestModules:
    def test_forward_is_what_calling_computes(self):
        line = Line()
        assert line(3.0, shift=1.0).data == line.forward(3.0, 1.0).data == 8.0
        model = MLP(2, [1])
        assert model.forward([1.0, 2.0]).data == model([1.0, 2.0]).data

    def test_what_forward_gives_remembers_the_call(self):
        assert names_of_calls(Line()(3.0)) == names_of_calls(Line().forward(3.0)) == ["Line"]
        assert names_of_calls(Scaled()(x=3.0)) == names_of_calls(Scaled().forward(3.0)) == ["Scaled"]
        assert (
            names_of_calls(Blend()(3.0, Value(2.0))) == names_of_calls(Blend().forward(Value(2.0), y=3.0)) == ["Blend"]
        )
        assert names_of_calls(Twice()(Value(3.0))) == ["Scaled", "Twice"]
        assert names_of_calls(Neuron(1, initial=1.0)([1.0])) == ["Neuron"]

    @MODES
    def test_modules_of_several_arguments_are_traced(self, mode):
        class Fused(Scaled):
            def forward(self, x, y, z):
                return self.factor * x * y + z

        x = Value(3.0)
        assert names_of_calls(Fused()(x, 2.0, 1.0)) == ["Fused"]
        for module, others, result in ((Blend(), (2.0,), 3.5), (Fused(), (2.0, 1.0), 4.0)):
            function = mg.compile(module, backend=mode) if mode else module
            assert function(x, *others).data == result

    def test_what_a_module_hands_on_is_not_of_its_call(self):
        x = Value(3.0)
        assert names_of_calls(Same()(x)) == []
        assert names_of_calls(Same()(x * 2)) == ["Same"]
        pair = Pair()(x)
        assert [names_of_calls(value) for value in pair] == [["Pair"], []]

    def test_forward_may_be_replaced(self):
        scaled = Scaled()
        scaled.forward = lambda x: x + 1
        assert scaled(3.0) == 4.0

    def test_the_forward_that_is_called_is_that_of_the_class(self):
        class Doubling:
            def forward(self, x, times=2):
                return x * times

        class Doubled(Doubling, Scaled):
            pass

        class Shifted(Scaled):
            def forward(self, x, y):
                return super().forward(x) + y

        class Said(Scaled):
            def __call__(self, x):
                return -self.forward(x)

        class SaidOfAll(Said):
            def forward(self, *numbers):
                return sum(numbers)

        assert (Doubled()(3.0), Doubled()(3.0, times=4)) == (6.0, 12.0)
        assert (Shifted()(3.0, 1.0).data, Shifted()(y=1.0, x=3.0).data) == (2.5, 2.5)
        assert (Said()(3.0).data, SaidOfAll()(3.0)) == (-1.5, -3.0)

    def test_a_wrong_number_of_arguments_is_said_of_forward(self):
        with pytest.raises(TypeError, match=r"Scaled.forward\(\) missing 1 required positional argument: 'x'"):
            Scaled()()
        with pytest.raises(TypeError, match=r"Blend.forward\(\) got an unexpected keyword argument 'z'"):
            Blend()(1.0, z=2.0)

    def test_modes_reach_all_modules_in_it(self):
        inner, modules = modules_of_inner()
        assert all(module.training for module in modules)
        assert inner.eval() is inner
        assert not any(module.training for module in modules)
        assert inner.train() is inner
        assert all(module.training for module in modules)
        inner.train(False)
        assert not any(module.training for module in modules)
        inner.training = True
        assert (inner.training, modules[1].training) == (True, False)
        with pytest.raises(TypeError, match="mode must be True or False"):
            inner.train(1)

    def test_modes_are_neither_parameters_nor_state(self):
        model = MLP(2, [1])
        names = list(model.eval().state_dict())
        assert names == list(MLP(2, [1]).state_dict())

    def test_reprs_are_short_and_count_parameters(self):
        assert repr(Line()) == "Line(2 parameters)"
        assert repr(MLP(2, [16, 1])) == "MLP of [Layer of 16 ReLUNeuron(2), Layer of [LinearNeuron(16)]], 65 parameters"
        assert repr(Layer(2, 9)) == "Layer of 9 ReLUNeuron(2)"
        assert repr(Dropout(0.5)) == "Dropout(0.5)"
        assert repr(LayerNorm(3)) == "LayerNorm(3)"
        assert repr(Convolution2d(1, 2, 3, stride=2, padding=1)) == "Convolution2d(1, 2, size=3, stride=2, padding=1)"
        model = Sequential(Embedding(27, 10), "tanh", Layer(10, 100), abs, Dropout())
        assert repr(model) == (
            "Sequential of [Embedding(27, 10), tanh, Layer of 100 ReLUNeuron(10), abs, Dropout(0.5)], 1,370 parameters"
        )

    def test_saving_a_model_as_a_picture_says_how_to_save_it(self, tmp_path):
        for name in ("m.json", "m.svg"):
            with pytest.raises(TypeError, match=r"model\.save\('.*m\."):
                mg.save(MLP(2, [1]), tmp_path / name)
        assert not list(tmp_path.iterdir())

    def test_a_compiled_model_keeps_what_the_model_has(self):
        model = Sequential(Layer(2, 3), Dropout(0.5), Layer(3, 1))
        fast = mg.compile(model)
        assert fast.parameters() == model.parameters()
        assert fast.state_dict() == model.state_dict()
        assert fast.eval() is model
        assert fast([1.0, 2.0]).data == pytest.approx(model([1.0, 2.0]).data, rel=1e-14)
        optimizer = mg.optim.SGD(fast, 0.1)
        assert optimizer.parameters == model.parameters()
        with pytest.raises(AttributeError, match="no attribute 'other'"):
            mg.compile(lambda x: x).other  # noqa: B018
        with pytest.raises(AttributeError, match="_private"):
            fast._private  # noqa: B018


class TestSequential:
    def test_functions_of_one_value_apply_to_each(self):
        random.seed(1)
        layer = Layer(2, 3, nonlin=False)
        x = [0.5, -1.0]
        expected = [mg.tanh(value).data for value in layer(x)]
        for function in (mg.tanh, "tanh"):
            assert numbers(Sequential(layer, function)(x)) == expected
        assert numbers(Sequential(layer, mg.softmax)(x)) == numbers(mg.softmax(layer(x)))
        assert numbers(Sequential(layer, mg.mean, mg.tanh)(x)) == mg.tanh(mg.mean(layer(x))).data

    def test_batches_and_arrays_go_through(self):
        model = Sequential(Layer(2, 3), LayerNorm(3), "tanh", Layer(3, 1))
        rows = [[0.5, -1.0], [1.0, 2.0]]
        expected = [model(row).data for row in rows]
        assert numbers(model(rows)) == expected
        assert numbers(model(np.array(rows))) == expected

    def test_a_layer_of_one_neuron_may_stand_in_the_middle(self):
        model = Sequential(Layer(2, 1), LayerNorm(1), Layer(1, 1), Neuron(1))
        assert type(model([1.0, 2.0])) is Value


class TestDropout:
    def test_in_training_numbers_are_dropped_and_the_others_scaled_up(self):
        random.seed(0)
        results = Dropout(0.25)([1.0] * 4000)
        assert set(results) == {0.0, 1 / 0.75}
        assert math.fsum(results) == pytest.approx(4000, rel=0.05)

    @pytest.mark.parametrize("off", [Dropout(0.5).eval(), Dropout(0.0)], ids=repr)
    def test_otherwise_it_gives_its_input(self, off):
        x = [Value(1.0)]
        assert off(x) is x

    def test_nested_lists_arrays_and_single_values_keep_their_shape(self):
        random.seed(0)
        x = [[Value(1.0), 2.0], [3.0]]
        assert [len(row) for row in Dropout()(x)] == [2, 1]
        assert Dropout()(np.array([[1.0, 2.0]])).shape == (1, 2)
        assert Dropout()(Value(1.0)).data in (0.0, 2.0)

    def test_gradients_are_those_of_what_is_kept(self):
        random.seed(0)
        x = [Value(1.0) for _ in range(20)]
        results = Dropout(0.5)(x)
        sum(results).backward()
        assert [value.grad for value in x] == [result.data for result in results]
        assert {value.grad for value in x} == {0.0, 2.0}

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_a_compiled_function_asks_for_evaluation_mode_and_follows_it(self, backend):
        model = Sequential(Layer(2, 3), Dropout(0.5))
        fast = mg.compile(model, backend=backend)
        with pytest.raises(MaskError, match=r"call eval\(\) of the module first, or train with mg.fit"):
            fast([1.0, 2.0])
        expected = numbers(model.eval()([1.0, 2.0]))
        assert numbers(fast([1.0, 2.0])) == pytest.approx(expected, rel=1e-14)
        model.train()
        with pytest.raises(MaskError):
            fast([1.0, 2.0])


def trained(mode, examples, noise=None, **settings):
    random.seed(7)
    model = Sequential(Layer(2, 4, activation="tanh"), Dropout(0.5), Layer(4, 3), Dropout(0.2), Layer(3, 1))

    def loss(x, y, noise=0.0):
        return (sum(model([x[0] + noise, part]) for part in x[1:]) - y) ** 2

    optimizer = mg.optim.SGD(model, 0.01)
    settings = {"epochs": 3, "batch_size": 2, "seed": 1, "noise": noise} | settings
    history = mg.fit(loss, examples, optimizer, compile=mode, **settings)
    return history, numbers(model.parameters()), model, loss


POINTS = [([0.5, 1.0], 1.0), ([1.0, -1.0], -1.0), ([2.0, 0.25], 0.5)]
UNLIKE = [([0.5, 1.0], 1.0), ([1.0, -1.0, 2.0], -1.0), ([2.0, 0.25], 0.5), ([1.0, 2.0, 3.0], 0.0)]


class TestDropoutInFit:
    @pytest.mark.unmeasured
    @MODES
    @pytest.mark.parametrize("examples", [POINTS, UNLIKE])
    @pytest.mark.parametrize("noisy", [False, True])
    def test_each_step_has_new_masks_the_same_with_and_without_the_compiler(self, mode, examples, noisy):
        def drawing():
            rng = random.Random(3)
            return (lambda count: [rng.gauss(0, 1) for _ in range(count)]) if noisy else None

        expected, parameters, _, _ = trained(False, examples, drawing())
        history, found, _, _ = trained(mode, examples, drawing())
        assert history.steps == pytest.approx(expected.steps, rel=1e-9)
        assert found == pytest.approx(parameters, rel=1e-9)

    @MODES
    def test_masks_differ_from_step_to_step_and_from_example_to_example(self, mode):
        random.seed(0)
        weight, drop = Value(1.0), Dropout(0.5)
        history = mg.fit(
            lambda x: weight * sum(drop([1.0, 2.0, 4.0])) + x,
            [0.0] * 2,
            mg.optim.SGD([weight], 0.0),
            epochs=40,
            batch_size=2,
            compile=mode,
        )
        assert len(set(history.steps)) > 10

    @MODES
    @pytest.mark.unmeasured
    def test_validation_is_without(self, mode):
        history, _, model, loss = trained(mode, POINTS, validation=POINTS)
        model.eval()
        expected = sum(loss(*point).data for point in POINTS) / 3
        assert history.validation[-1] == pytest.approx(expected, rel=1e-12)
        assert not model.training

    @MODES
    def test_a_model_in_evaluation_mode_trains_without(self, mode):
        weight, drop = Value(1.0), Dropout(0.5).eval()
        history = mg.fit(lambda x: weight * drop(x), [3.0], mg.optim.SGD([weight], 0.0), epochs=9, compile=mode)
        assert history.steps == [3.0] * 9

    def test_a_loss_as_an_object(self):
        weight, drop = Value(1.0), Dropout(0.5)

        class Loss:
            def __call__(self, x):
                return weight * drop(x)

        history = mg.fit(Loss(), [3.0], mg.optim.SGD([weight], 0.0), epochs=40, compile="numpy")
        assert set(history.steps) == {0.0, 6.0}

    def test_a_generator_must_begin_with_the_longest_examples(self):
        weight, drop = Value(1.0), Dropout(0.5)

        def run(rows):
            optimizer = mg.optim.SGD([weight], 0.0)
            return mg.fit(lambda row: weight * sum(drop(row)), iter(rows), optimizer, steps=len(rows), compile="numpy")

        assert len(run([[1.0, 2.0], [1.0]]).steps) == 2
        with pytest.raises(ValueError, match="longer examples must come first"):
            run([[1.0], [1.0, 2.0]])


class TestEmbedding:
    def test_rows_by_index(self):
        table = Embedding(5, 3)
        assert [value is own for value, own in zip(table(2), table.rows[2], strict=True)] == [True] * 3
        assert numbers(table([1, 4])) == [numbers(table.rows[1]), numbers(table.rows[4])]
        assert numbers(table(np.array([[1], [4]]))) == [[numbers(table.rows[1])], [numbers(table.rows[4])]]
        assert len(table.parameters()) == 15
        with pytest.raises(IndexError):
            table(5)
        with pytest.raises(TypeError, match="an index must be an int"):
            table(1.5)

    @MODES
    def test_it_learns_the_rows_that_are_used(self, mode):
        random.seed(0)
        table = Embedding(4, 2)
        before = numbers(table.rows[3])
        optimizer = mg.optim.SGD(table, 0.2)
        mg.fit(
            lambda i, y: sum((v - y) ** 2 for v in table(i)), [(0, 1.0), (2, -1.0)], optimizer, epochs=60, compile=mode
        )
        assert numbers(table.rows[0]) == pytest.approx([1.0, 1.0], abs=1e-6)
        assert numbers(table.rows[2]) == pytest.approx([-1.0, -1.0], abs=1e-6)
        assert numbers(table.rows[3]) == before


class TestLayerNorm:
    def test_its_outputs_have_mean_0_and_variance_1(self):
        result = np.array(numbers(LayerNorm(4, 1e-12)([1.0, 2.0, 4.0, 8.0])))
        assert result.mean() == pytest.approx(0.0, abs=1e-12)
        assert result.var() == pytest.approx(1.0, rel=1e-9)
        assert numbers(LayerNorm(2)([3.0, 3.0])) == [0.0, 0.0]

    def test_gradients_are_right(self):
        norm = LayerNorm(3)
        mg.testing.gradcheck(
            lambda *x: sum(v * w for v, w in zip(norm(x), [1.0, 2.0, -3.0], strict=True)), [0.5, 1.0, -2.0]
        )


def convolved(image, weights, biases, stride, padding):
    """The same as Convolution2d without an activation, with NumPy."""
    image = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    size = weights.shape[-1]
    height, width = ((side - size) // stride + 1 for side in image.shape[1:])
    result = np.empty((len(weights), height, width))
    for o, i, j in np.ndindex(result.shape):
        square = image[:, i * stride : i * stride + size, j * stride : j * stride + size]
        result[o, i, j] = (square * weights[o]).sum() + biases[o]
    return result


class TestConvolution2d:
    @pytest.mark.parametrize("stride", [1, 2])
    @pytest.mark.parametrize("padding", [0, 1])
    @pytest.mark.parametrize("compiled", [False, True])
    def test_its_sums_are_those_of_numpy(self, stride, padding, compiled):
        rng = np.random.default_rng(0)
        layer = Convolution2d(2, 3, 3, stride, padding, activation=None)
        for bias, number in zip(layer.b, rng.normal(size=3), strict=True):
            bias.data = number
        image = rng.normal(size=(2, 5, 6))
        weights = np.array(numbers(layer.w)).reshape(3, 2, 3, 3)
        expected = convolved(image, weights, np.array(numbers(layer.b)), stride, padding)
        model = mg.compile(layer) if compiled else layer
        found = model(image)
        assert isinstance(found, np.ndarray)
        assert np.array(numbers(found)) == pytest.approx(expected, rel=1e-12)
        assert np.array(numbers(model(image.tolist()))) == pytest.approx(expected, rel=1e-12)

    def test_rows_of_one_channel_batches_and_single_pixels(self):
        layer = Convolution2d(1, 2, 1, initial=1.0)
        image = [[1.0, 2.0], [3.0, 4.0]]
        one = numbers(layer(image))
        assert one == numbers(layer([image]))
        assert numbers(layer([[image], [image]])) == [one, one]
        assert numbers(layer(np.array([[image]]))) == [one]

    def test_numbers_that_no_sum_of_products_takes(self):
        layer = Convolution2d(1, 1, 1, activation=None, initial=0.0)
        layer.w[0][0].data = 2.0
        with mg.detect_anomaly():
            assert layer([[np.float64(3.0)]])[0][0][0].data == 6.0

    @MODES
    @pytest.mark.unmeasured
    def test_a_filter_of_edges_is_learnt(self, mode):
        random.seed(0)
        layer = Convolution2d(1, 1, 2, activation=None, initial=0.1)
        rng = random.Random(1)
        images = [[[rng.random() for _ in range(3)] for _ in range(3)] for _ in range(8)]

        def loss(image):
            (found,) = layer(image)
            return mg.mean([(found[i][j] - (image[i][j + 1] - image[i][j])) ** 2 for i in range(2) for j in range(2)])

        mg.fit(loss, images, mg.optim.Adam(layer, 0.05), epochs=60, batch_size=4, seed=0, compile=mode)
        assert numbers(layer.w[0]) == pytest.approx([-1, 1, 0, 0], abs=0.1)


class TestDrawing:
    def test_layers_are_boxes_of_pages_and_pictures(self, tmp_path):
        model = Sequential(Embedding(4, 3), LayerNorm(3), Layer(3, 1))
        result = model(2)
        mg.explore(result, tmp_path / "page.html")
        text = (tmp_path / "page.html").read_text()
        assert all(name in text for name in ("Sequential", "LayerNorm"))
        assert "LayerNorm" in dir(nn)
        mg.save(result, tmp_path / "graph.dot")
