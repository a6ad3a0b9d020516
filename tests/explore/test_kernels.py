"""Compiled functions on pages: their kernels as boxes, with the scalars in them."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value, nn
from micrograd.compiler.ir.program import Access, Reduction, Segment
from micrograd.pages import kernels
from micrograd.pages.kernel_values import KernelValues, Terms
from micrograd.pages.kernels import opened_calls
from micrograd.pages.passes import passes
from tests.explore.test_explore import explored
from tests.strategies import programs

pytestmark = pytest.mark.slow(together=True)

FIELDS = ("_primitive", "_first", "_second", "_x", "_y", "_scope")


def matrix():
    return [[Value(0.1 * row - 0.2 * column, label=f"w{row}{column}") for column in range(3)] for row in range(4)]


def vector():
    return [Value(number, label=f"x{index}") for index, number in enumerate((0.5, -1.0, 2.0))]


def tables(index, rows):
    return mg.tanh(mg.take(rows, index)[0] * 3.0) - 2.0 * mg.take(rows, index)[1]


def recurrent(state, inputs, weight):
    for x in inputs:
        state = mg.tanh(weight * state + x)
    return state


def boxes(data):
    return [group["name"] for group in data["groups"] if group["kind"] in ("run", "stack")]


def all_gradients(data):
    """What a page gives in the end, for each of its nodes."""
    found = [0.0] * len(data["nodes"])
    found[data["root"]] = 1.0
    for visit in data["visits"]:
        for operand, share in zip(data["nodes"][visit["node"]]["operands"], visit["contributions"], strict=True):
            found[operand] += share or 0.0
    return zip(data["nodes"], found, strict=True)


def gradients(data):
    """What a page gives in the end, by label."""
    return {node["label"]: gradient for node, gradient in all_gradients(data) if node["label"]}


def leaves_of(thing):
    return [leaf for part in thing for leaf in leaves_of(part)] if isinstance(thing, list) else [thing]


CASES = {
    "layer": (lambda w, x: mg.mean([mg.tanh(mg.dot(row, x)) ** 2 for row in w]), lambda: (matrix(), vector())),
    "table": (lambda rows: tables(2, rows), lambda: (matrix(),)),
    "index": (tables, lambda: (2, matrix())),
    "largest": (lambda x: mg.logsumexp(x) * mg.maximum(*x), lambda: (vector(),)),
    "sums of floats": (lambda x, numbers: x[0] * mg.dot(numbers, numbers), lambda: (vector(), [1.0, 2.0, 3.0])),
    "floats": (lambda x, scale: x[0] * scale - x[1] / 3.0 - x[2] + 1.5, lambda: (vector(), 7.0)),
    "loop": (recurrent, lambda: (Value(0.1, label="s"), [0.01 * k for k in range(40)], Value(0.9, label="w"))),
}


def assert_as_eager(data, function, arguments):
    """A page of twice a function's result has the number and the gradients of the function itself."""
    eager = function(*arguments) * 2.0
    eager.backward()
    assert data["nodes"][data["root"]]["data"] == pytest.approx(eager.data, rel=1e-13)
    found = gradients(data)
    for leaf in leaves_of(list(arguments)):
        if isinstance(leaf, Value) and leaf.grad:
            assert found[leaf.label] == pytest.approx(leaf.grad, rel=1e-12), leaf.label


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_make_the_number_and_the_gradients_of_the_function(name):
    function, make = CASES[name]
    arguments = make()
    result = mg.compile(function)(*arguments) * 2.0
    with opened_calls(result):
        data, _ = passes(result)
    assert_as_eager(data, function, arguments)
    inside = [group for group in data["groups"] if group["parent"] == 0 and group["kind"] in ("run", "stack")]
    assert data["groups"][0]["name"].startswith("compiled ")
    assert inside


def test_each_kernel_is_a_box_in_that_of_the_function(tmp_path):
    fast = mg.compile(CASES["layer"][0])
    data = explored(fast(matrix(), vector()), tmp_path)
    assert boxes(data) == ["compiled <lambda>", "1: matrix-vector", "2: tanh", "3: matrix-vector", "4: product"]


def test_the_iterations_of_a_loop_and_several_calls_are_stacks(tmp_path):
    function, make = CASES["loop"]
    data = explored(mg.compile(function)(*make()), tmp_path)
    iterations = [group for group in data["groups"] if group["name"].startswith("iteration ")]
    assert len(iterations) > 30
    assert data["groups"][iterations[0]["parent"]]["kind"] == "stack"
    square = mg.compile(lambda x: mg.tanh(x) * x)
    total = square(Value(1.0)) + square(Value(2.0)) + square(Value(3.0))
    data = explored(total, tmp_path)
    assert [group["name"] for group in data["groups"] if group["kind"] == "stack"] == ["compiled <lambda>"]


def test_afterwards_the_graph_is_what_it_was_also_where_it_fails():
    result = mg.compile(CASES["layer"][0])(matrix(), vector())
    before = [getattr(result, field) for field in FIELDS]
    during = []

    def fails():
        with opened_calls(result):
            during.append(result._primitive)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert during != before[:1]
    for field, was in zip(FIELDS, before, strict=True):
        found = getattr(result, field)
        assert found is was or list(found) == list(was), field
    w, x = result._operands()[0], result._operands()[-1]
    result.backward()
    assert w.grad
    assert x.grad


def test_the_numbers_are_those_of_the_call(tmp_path):
    x = Value(3.0, label="x")
    result = mg.compile(lambda x: mg.exp(x) * x)(x)
    x.data = 100.0
    data = explored(result, tmp_path)
    assert data["nodes"][data["root"]]["data"] == result.data
    assert gradients(data)["x"] == pytest.approx(4 * mg.exp(3.0))
    assert data["notes"] == ["x is 100 by now; the page shows the pass that was recorded, where it was 3."]
    assert x.data == 100.0


def test_it_is_in_the_function_that_called_it(tmp_path):
    fast = mg.compile(lambda x: mg.tanh(x) * x)

    @mg.scope
    def outer(x):
        return fast(x * 2.0) + 1.0

    assert boxes(explored(outer(Value(1.0)), tmp_path))[:2] == ["outer", "compiled <lambda>"]


def test_what_cannot_be_opened_stays_one_value(tmp_path, monkeypatch):
    element = mg.compile(lambda index, x: mg.take(x, index))(1, vector())
    assert boxes(explored(element, tmp_path)) == []  # nothing but what went in
    same = mg.compile(lambda x: x)(Value(2.0))
    assert boxes(explored(same, tmp_path)) == []
    exp = mg.compile(lambda x: mg.exp(x) * x)
    with mg.no_grad():
        inside = exp(Value(1.0))
    assert boxes(explored(inside, tmp_path)) == []
    result = exp(Value(1.0))
    with mg.no_grad():
        assert boxes(explored(result, tmp_path)) == []  # nothing is recorded here
    monkeypatch.setattr(kernels, "MOST_OF_ALL", 0)
    assert boxes(explored(result, tmp_path)) == []


def test_a_call_is_opened_as_far_as_there_is_room_on_the_page():
    x = [Value(0.1 * number, label=f"x{number}") for number in range(20)]
    fast = mg.compile(lambda x: mg.dot(x, x))
    total = fast(x) + fast(x)
    found = []
    for most in (1_000, 100, 30, 20):
        with opened_calls(total, most) as known:
            data, _ = passes(total, known)
        found.append((len(data["nodes"]), sum(node["terms"] != "" for node in data["nodes"])))
        assert gradients(data)["x3"] == pytest.approx(1.2)
        assert len(data["nodes"]) <= max(most, 23)
    assert found == [(99, 0), (62, 1), (25, 2), (23, 0)]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_page_of_a_call_that_would_just_be_too_large_is_made(tmp_path):
    x = [Value(0.0, label=f"x{number}") for number in range(40_000)]
    data = explored(mg.compile(lambda x: mg.dot(x, x))(x), tmp_path)
    assert len(data["nodes"]) == 40_002


def test_where_scalars_raise_what_rounding_spares_the_program_it_stays_one_value(tmp_path, monkeypatch):
    def add(self, kernel, complete):
        raise ArithmeticError("sqrt(-1e-17): the square root of a negative number")

    monkeypatch.setattr(KernelValues, "add", add)
    assert boxes(explored(mg.compile(lambda x: mg.exp(x) * x)(Value(1.0)), tmp_path)) == []


def heads(w, x):
    hidden = [mg.tanh(mg.dot(row, x)) for row in w]
    return {"loss": mg.mean([h * h for h in hidden]), "parts": (sum(hidden), hidden[0]), "same": hidden[0] * 1.0}


USES = {
    "all": lambda result: result["loss"] * 3.0 + result["parts"][0] * result["parts"][1] - result["same"],
    "some": lambda result: result["parts"][0] * 2.0,
    "one twice": lambda result: result["loss"] * result["loss"],
    "one that another is made of": lambda result: result["parts"][1] + result["parts"][0],
}


def assert_as_eagerly(data, total, arguments):
    """The page's number and gradients are those of the function as it was written."""
    for leaf in leaves_of(list(arguments)):
        leaf.grad = 0.0
    total.backward()
    assert data["nodes"][data["root"]]["data"] == pytest.approx(total.data, rel=1e-12)
    found = gradients(data)
    for leaf in leaves_of(list(arguments)):
        assert found.get(leaf.label, 0.0) == pytest.approx(leaf.grad, rel=1e-11, abs=1e-14), leaf.label


def opened(root):
    with opened_calls(root) as found:
        return passes(root, found)[0]


@pytest.mark.parametrize("terms", [kernels.MOST_TERMS, 0])
@pytest.mark.parametrize("use", USES)
def test_several_results_lead_out_of_the_kernels_of_one_call(use, terms, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_TERMS", terms)
    arguments = matrix(), vector()
    data = opened(USES[use](mg.compile(heads)(*arguments)))
    assert sum(name.startswith("compiled") for name in boxes(data)) == 1
    assert not any("output" in primitive["symbol"] for primitive in data["primitives"])  # nothing is left of the call
    assert_as_eagerly(data, USES[use](heads(*arguments)), arguments)


@pytest.mark.parametrize("terms", [kernels.MOST_TERMS, 0])
def test_each_call_has_its_own_kernels_also_where_one_reads_what_another_gave(terms, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_TERMS", terms)

    def total(function, w, x):
        first = function(w, x)
        second = function(w, [first["parts"][0], first["loss"], x[0]])
        return first["loss"] + second["loss"] * second["parts"][1]

    arguments = matrix(), vector()
    data = opened(total(mg.compile(heads), *arguments))
    assert sum(name.startswith("compiled heads ") for name in boxes(data)) == 2
    assert_as_eagerly(data, total(heads, *arguments), arguments)


def test_a_result_that_another_is_made_of_is_there_once():
    x = Value(0.5, label="x")
    inner, outer = mg.compile(lambda x: (mg.tanh(x), mg.exp(mg.tanh(x))))(x)
    data = opened(inner * outer)
    operations = [data["primitives"][node["primitive"]]["name"] for node in data["nodes"] if node["kind"] == "result"]
    assert sorted(operations) == ["exp", "mul", "tanh"]


def test_results_that_are_given_back_or_are_constants_stay_what_they_are():
    x, y = Value(2.0, label="x"), Value(5.0, label="y")
    fast = mg.compile(lambda x, y, number: (x, x * y, number * 2.0, y, x * y))

    def total(results):
        first, product, number, second, again = results
        return first * product + number * second * again

    data = opened(total(fast(x, y, 3.0)))
    assert_as_eagerly(data, total((x, x * y, 6.0, y, x * y)), (x, y))
    assert boxes(opened(fast(x, y, 3.0)[0] * 2.0)) == []  # nothing but what went in
    assert boxes(opened(fast(x, y, 3.0)[2] * x)) == []  # nothing that has a gradient


def test_several_results_are_those_of_the_call_also_after_backward_and_where_the_arguments_have_changed():
    w, x = matrix(), vector()
    result = mg.compile(heads)(w, x)
    loss = result["loss"] * result["parts"][0]
    loss.backward()
    expected = {leaf.label: leaf.grad for leaf in leaves_of([w, x])}
    for leaf in leaves_of([w, x]):
        leaf.data += 10.0
    data = opened(loss)
    assert data["nodes"][data["root"]]["data"] == loss.data
    assert {name: gradients(data)[name] for name in expected} == pytest.approx(expected)
    assert {leaf.label: leaf.grad for leaf in leaves_of([w, x])} == expected
    assert result["loss"]._op == "output 1 of heads"


def test_it_is_in_the_block_that_it_was_called_in():
    fast = mg.compile(heads)
    with mg.record_scopes(), mg.scope("head"):
        loss = fast(matrix(), vector())["loss"]
        assert mg.compile(lambda number: number * 2.0)(3.0) == 6.0
    data = opened(loss * 2.0)
    assert boxes(data)[:2] == ["head", "compiled heads"]
    assert data["groups"][1]["parent"] == 0


def wide(w, x, scale):
    hidden = [mg.maximum(*(scale * a for a in row), x[0]) + mg.dot(row, x) for row in w]
    return mg.logsumexp(hidden), sum((h * h for h in hidden), 0.0)


@pytest.mark.parametrize("numbers", [(0.5, -1.0, 2.0), (1.0, 1.0, 1.0), (0.0, -0.0, 0.0)])
def test_the_sums_of_a_large_kernel_stand_on_one_value_with_the_right_gradients(numbers, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_TERMS", 0)
    x = [Value(number, label=f"x{index}") for index, number in enumerate(numbers)]
    w = [[Value(numbers[(row + column) % 3], label=f"w{row}{column}") for column in range(3)] for row in range(4)]

    def total(function):
        first, second = function(w, x, 0.5)
        return first * 2.0 + second

    data = opened(total(mg.compile(wide)))
    assert_as_eagerly(data, total(wide), (w, x))
    terms = [node["terms"] for node in data["nodes"] if node["terms"]]
    assert "4 numbers, 3 terms each" in terms
    assert any(group["kernel"] for group in data["groups"])


def test_the_largest_of_terms_gives_its_gradient_to_the_first_of_equal_ones():
    segments = (Segment(1.0, 3, Access(0, column_step=3, term_step=1), None), Segment(2.0, 1, Access(6), Access(7)))
    kernel = Reduction(1, 2, Access(8, column_step=1), segments, largest=True)
    terms = Terms(kernel, np.array([3.0, 5.0, 5.0, -1.0, 4.0, 0.0, 2.0, 1.0, 0.0, 0.0]))
    assert terms.results().tolist() == [5.0, 4.0]  # of 3, 5, 5 and 4; of -1, 4, 0 and 4
    assert terms.gradients(np.array([10.0, 100.0])).tolist() == [0.0, 10.0, 0.0, 0.0, 100.0, 0.0, 0.0, 0.0]
    terms = Terms(kernel, np.array([3.0, 5.0, 5.0, -1.0, 4.0, 0.0, 2.0, 3.0, 0.0, 0.0]))
    assert terms.gradients(np.array([10.0, 100.0])).tolist() == [0.0] * 6 + [2 * 3 * 110.0, 2 * 2 * 110.0]


@pytest.mark.parametrize("name", CASES)
def test_large_programs_of_every_kind_have_the_numbers_of_the_function(name, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_TERMS", 0)
    function, make = CASES[name]
    arguments = make()
    data = opened(mg.compile(function)(*arguments) * 2.0)
    assert_as_eager(data, function, arguments)


@pytest.mark.slow
def test_a_network_of_fifty_thousand_terms_is_a_page_of_kernels(tmp_path):
    random.seed(1)
    network = nn.MLP(12, [40, 40, 1])
    xs = [[random.uniform(-1, 1) for _ in range(12)] for _ in range(32)]

    def loss(xs):
        return mg.mean([(network(x) - 1.0) ** 2 for x in xs])

    data = explored(mg.compile(loss)(xs), tmp_path)
    shapes = {group["kernel"]: tuple(group["shape"]) for group in data["groups"] if group["kernel"]}
    assert shapes["32 × 40, 13 terms each"] == shapes["32 × 40, 41 terms each"] == (32, 40)
    assert len(data["nodes"]) < 10_000
    network.zero_grad()
    loss(xs).backward()
    assert sorted(share for share in leaf_gradients(data) if share) == pytest.approx(
        sorted(parameter.grad for parameter in network.parameters() if parameter.grad), rel=1e-9
    )


def leaf_gradients(data):
    return [gradient for node, gradient in all_gradients(data) if node["kind"] == "leaf"]


def test_parameters_that_a_compiled_function_reads_have_their_names(tmp_path):
    network, scale, table = nn.MLP(2, [3, 1]), Value(2.0), [[Value(0.1), Value(0.2)], [Value(0.3), Value(0.4)]]

    def loss(x):
        return network([mg.dot(row, x) for row in table]) * scale

    data = explored(mg.compile(loss)([0.5, Value(1.0, label="x")]), tmp_path)
    paths = {node["path"] or node["label"] for node in data["nodes"] if node["kind"] == "leaf"}
    assert paths >= {"network.layers[0].neurons[2].w[1]", "network.layers[1].neurons[0].b", "scale", "table[1][0]", "x"}
    assert {"Parameters", "network", "Layer 1", "Neuron 3"} <= {group["name"] for group in data["groups"]}
    data = explored(mg.compile(network)([0.5, 1.0]), tmp_path)
    assert "layers[0].neurons[2].w[1]" in {node["path"] for node in data["nodes"]}
    data = explored(mg.compile(network.layers[0])([0.5, 1.0])[0], tmp_path)
    assert "neurons[0].w[1]" in {node["path"] for node in data["nodes"]}


class TestTheLastCallOfACompiledFunction:
    """mg.explore(fast): the page of the last call, without a result of it."""

    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    @pytest.mark.parametrize("as_values", [True, False], ids=["Values", "numbers"])
    def test_has_the_number_and_the_gradients_of_the_function(self, tmp_path, backend, as_values):
        fast = mg.compile(CASES["layer"][0], backend=backend)
        weights, inputs = matrix(), vector()
        if as_values:
            fast(weights, inputs)
        else:
            fast([[w.data for w in row] for row in weights], np.array([x.data for x in inputs]))
        data = explored(fast, tmp_path)
        eager = CASES["layer"][0](weights, inputs)
        eager.backward()
        assert data["nodes"][data["root"]]["data"] == pytest.approx(eager.data, rel=1e-12)
        found = {node["path"]: gradient for node, gradient in all_gradients(data) if node["kind"] == "leaf"}
        given = {f"w[{row}][{column}]": w for row, each in enumerate(weights) for column, w in enumerate(each)}
        given |= {f"x[{place}]": x for place, x in enumerate(inputs)}
        assert found == {name: pytest.approx(leaf.grad, rel=1e-12) for name, leaf in given.items()}

    def test_shows_kernels_and_arguments_with_their_shapes(self, tmp_path):
        network = nn.MLP(3, [8, 1])
        fast = mg.compile(lambda xs, targets: sum((network(x) - t) ** 2 for x, t in zip(xs, targets, strict=True)))
        fast(np.ones((5, 3)), [0.0] * 5)
        data = explored(fast, tmp_path)
        shown = {group["name"]: group for group in data["groups"]}
        assert shown["xs"]["shape"] == [5, 3]
        assert shown["xs"]["parent"] is shown["targets"]["parent"] is shown["Parameters"]["parent"] is None
        (product,) = (group for name, group in shown.items() if name.endswith(": matrix product"))
        assert product["kernel"] == "5 × 8, 4 terms each"
        assert product["size"] == [5, 8]

    def test_has_a_title_of_its_own(self, tmp_path):
        def loss(x):
            return x * x

        fast = mg.compile(loss)
        fast(3.0)
        mg.explore(fast, tmp_path / "page.html")
        assert "<title>The kernels of loss</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")

    def test_of_several_results_is_their_sum(self, tmp_path):
        fast = mg.compile(lambda x, y: [x * y, mg.tanh(x) + y])
        fast(2.0, 3.0)
        data = explored(fast, tmp_path)
        assert data["nodes"][data["root"]]["data"] == pytest.approx(9.0 + math.tanh(2.0))
        found = gradients(data)
        assert found == {"x": pytest.approx(4.0 - math.tanh(2.0) ** 2), "y": 3.0}

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_of_derivatives_shows_how_they_are_computed(self, tmp_path, backend):
        fast = mg.compile(mg.value_and_grad(lambda x: mg.dot(x, x) * x[0]), backend=backend)
        value, slopes = fast(np.array([1.0, 2.0, 3.0]))
        data = explored(fast, tmp_path)
        assert data["nodes"][data["root"]]["data"] == pytest.approx(value + sum(slopes))
        names = {node["path"] for node in data["nodes"] if node["kind"] == "leaf"}
        assert names == {"argument 1[0]", "argument 1[1]", "argument 1[2]"}

    def test_takes_arguments_of_any_form(self, tmp_path):
        def f(pair, ragged, table, scale=1.0, *, power, word):
            return (pair[0] * table["a"] + ragged[1][0] * pair[1]) * scale * power

        fast = mg.compile(f)
        fast((2.0, 3.0), [[1.0], [4.0, 5.0]], {"a": 6.0}, power=0.5, word="w")
        data = explored(fast, tmp_path)
        read = {node["path"] or node["label"]: node["data"] for node in data["nodes"] if node["kind"] == "leaf"}
        assert read == {"pair[0]": 2.0, "pair[1]": 3.0, "ragged[1]": 4.0, "table[0]": 6.0, "power": 0.5}
        assert data["nodes"][data["root"]]["data"] == 12.0

        fast = mg.compile(lambda *numbers: numbers[0] * numbers[1])
        fast(2.0, 3.0)
        assert gradients(explored(fast, tmp_path)) == {"argument 1": 3.0, "argument 2": 2.0}

    def test_of_a_function_without_a_signature_counts_its_arguments(self, tmp_path):
        class Product:
            __signature__ = "none"

            def __call__(self, x, y):
                return x * y

        fast = mg.compile(Product())
        fast(2.0, 3.0)
        assert {node.label for node in mg.topological_order(fast.last_call()[0])} == {"argument 1", "argument 2", ""}

    def test_is_that_of_the_numbers_it_had(self):
        weight = Value(2.0, label="w")
        fast = mg.compile(lambda x: weight * x)
        fast(3.0)
        weight.data = 10.0
        result, _ = fast.last_call()
        with opened_calls(result) as opened:
            data, _ = passes(result, opened)
        assert data["nodes"][data["root"]]["data"] == 6.0
        assert "w is 10 by now" in data["notes"][0]

    def test_a_matrix_with_negative_numbers_is_no_image(self, tmp_path):
        """Greys show no sign, and gradients on top of orange numbers could not be told from them."""
        fast = mg.compile(lambda w, x: sum(mg.dot(row, x) for row in w), backend="numpy")
        for least, is_image in ((0.0, True), (-1.0, False)):
            fast([[least, 2.0, 3.0], [4.0, 5.0, 6.0]], [1.0, 2.0, 3.0])
            groups = {group["name"]: group for group in explored(fast, tmp_path)["groups"]}
            assert groups["w"]["shape"] == [2, 3]
            assert groups["w"]["image"] is is_image
            assert not any(group["image"] for name, group in groups.items() if name not in ("w", "x"))

    def test_is_refused_where_there_is_none_to_show(self, tmp_path):
        fast = mg.compile(lambda x: x * 2.0, backend="numpy")
        with pytest.raises(ValueError, match="has not been called"):
            explored(fast, tmp_path)
        fast(2.0)
        fast.cache_clear()
        with pytest.raises(ValueError, match="has not been called"):
            explored(fast, tmp_path)
        same = mg.compile(lambda x: x, backend="numpy")
        same(2.0)
        with pytest.raises(ValueError, match="no kernels, or more terms than a page holds"):
            explored(same, tmp_path)
        result, _ = same.last_call()
        with pytest.raises(ValueError, match="the kernels of this call cannot be shown"):
            result.backward()
        each = mg.vmap(lambda x, w: mg.tanh(x * w) * mg.exp(-x) * w, in_axes=(0, None))
        mapped = mg.compile(lambda w, xs: mg.mean(each(xs, w)), backend="numpy")
        result = mapped(Value(2.0), np.linspace(0.0, 1.0, 10_000))
        assert boxes(opened(result)) == []  # the program around has as many inputs as the function
        with pytest.raises(ValueError, match="no kernels, or more terms than a page holds"):
            explored(mapped, tmp_path)
        many = mg.compile(lambda xs: mg.dot(xs, xs), backend="numpy")
        many(np.ones(100_001))
        with pytest.raises(ValueError, match="more than 100,000 numbers"):
            explored(many, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("terms", [kernels.MOST_TERMS, 0])
@settings(max_examples=24)
@given(program=programs(), weights=st.lists(st.sampled_from([0.0, 1.0, -2.0]), min_size=3, max_size=3))
def test_any_program_of_several_results_has_the_numbers_and_gradients_of_eager(terms, program, weights):
    leaves = [Value(number, label=f"x{place}") for place, number in enumerate(program.inputs)]

    def f():
        result = program(*leaves)
        return result, result * 3.0 + leaves[0], leaves[-1] * leaves[0]

    def total(function):
        return sum(weight * result for weight, result in zip(weights, function(), strict=True) if weight)

    if not any(weights) or not total(f).requires_grad:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "MOST_TERMS", terms)
        data = opened(total(mg.compile(f, backend="numpy")))
    eager = total(f)
    eager.backward()
    assert data["nodes"][data["root"]]["data"] == pytest.approx(eager.data, rel=1e-9, abs=1e-12)
    found = gradients(data)
    for leaf in leaves:
        assert found.get(leaf.label, 0.0) == pytest.approx(leaf.grad, rel=1e-9, abs=1e-12)
