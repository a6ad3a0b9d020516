"""Arrays of Values: what makes them, what reads them, and NumPy's operations on them, against NumPy's own on floats."""

import copy
import operator
import pickle
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import micrograd as mg
from micrograd import Value
from micrograd.testing import numerical_gradient
from tests.strategies import TABLE

VECTOR = np.array([0.5, -1.25, 2.0])
OTHER = np.array([1.5, 0.75, -0.5])
MATRIX = np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.5]])
BATCH = np.arange(12.0).reshape(2, 3, 2) / 8 - 0.5
POSITIVE = np.array([[0.5, 2.0], [1.25, 3.0]])


def weighted_sum(result):
    """One number that depends on every element of a result differently."""
    result = np.asarray(result)
    weights = np.arange(1.0, result.size + 1).reshape(result.shape)
    return np.sum(weights * result)


OPERATIONS = {
    "vector @ vector": (lambda a, b: a @ b, VECTOR, OTHER),
    "matrix @ vector": (lambda a, b: a @ b, MATRIX, VECTOR),
    "vector @ matrix": (lambda a, b: a @ b, OTHER[:2], MATRIX),
    "matrix @ matrix": (lambda a, b: a @ b, MATRIX, MATRIX.T + 0.5),
    "batch @ matrix": (lambda a, b: a @ b, BATCH, MATRIX[:, :2] + 1),
    "batch @ batch": (lambda a, b: a @ b, BATCH, BATCH.transpose(0, 2, 1) + 0.25),
    "np.matmul": (np.matmul, MATRIX, VECTOR),
    "np.dot of vectors": (np.dot, VECTOR, OTHER),
    "np.dot of matrices": (np.dot, MATRIX, MATRIX.T),
    "np.inner": (np.inner, MATRIX, OTHER),
    "np.outer": (np.outer, VECTOR, OTHER),
    "np.tensordot": (lambda a, b: np.tensordot(a, b, axes=([0], [0])), MATRIX, MATRIX + 1),
    "np.einsum, product": (lambda a, b: np.einsum("ij,jk->ik", a, b), MATRIX, MATRIX.T + 0.5),
    "np.einsum, all summed": (lambda a, b: np.einsum("ij,ij->", a, b), MATRIX, MATRIX + 1),
    "np.einsum, batched": (lambda a, b: np.einsum("bij,bj->bi", a, b), BATCH, MATRIX[:, :2]),
    "np.einsum, trace": (lambda a: np.einsum("ii", a), POSITIVE),
    "+ over broadcast axes": (operator.add, MATRIX, VECTOR),
    "- over broadcast axes": (operator.sub, MATRIX[:, :1], VECTOR),
    "* over new axes": (lambda a, b: a[:, None] * b[None, :], VECTOR, OTHER),
    "/ of a matrix by a row": (operator.truediv, MATRIX, OTHER),
    "** of arrays": (operator.pow, POSITIVE, POSITIVE.T),
    "- of one": (operator.neg, VECTOR),
    "abs": (abs, VECTOR),
    "sum": (lambda a: a.sum(), MATRIX),
    "sum over an axis": (lambda a: a.sum(axis=0), MATRIX),
    "sum over two axes, kept": (lambda a: a.sum(axis=(0, 2), keepdims=True), BATCH),
    "np.sum": (lambda a: np.sum(a, axis=-1), MATRIX),
    "mean": (lambda a: a.mean(), MATRIX),
    "mean over an axis, kept": (lambda a: a.mean(axis=1, keepdims=True), MATRIX),
    "np.average with weights": (lambda a: np.average(a, weights=[1.0, 2.0, 3.0]), VECTOR),
    "variance": (lambda a: a.var(), VECTOR),
    "standard deviation": (lambda a: a.std(axis=1), MATRIX),
    "np.linalg.norm": (np.linalg.norm, VECTOR),
    "product": (lambda a: a.prod(axis=0), MATRIX),
    "running sum": (np.cumsum, VECTOR),
    "differences": (np.diff, VECTOR),
    "trace": (np.trace, POSITIVE),
    "max": (lambda a: a.max(), MATRIX),
    "max over an axis, kept": (lambda a: a.max(axis=1, keepdims=True), MATRIX),
    "min over an axis": (lambda a: a.min(axis=0), MATRIX),
    "np.maximum of arrays": (np.maximum, VECTOR, OTHER),
    "np.minimum of arrays": (np.minimum, MATRIX, OTHER),
    "np.maximum with a number": (lambda a: np.maximum(a, 0), VECTOR),
    "np.clip": (lambda a: np.clip(a, -1, 1.5), VECTOR),
    "transpose": (lambda a: a.T, MATRIX),
    "transpose of axes": (lambda a: np.transpose(a, (2, 0, 1)), BATCH),
    "np.swapaxes": (lambda a: np.swapaxes(a, 0, 1), BATCH),
    "reshape": (lambda a: a.reshape(3, 2), MATRIX),
    "ravel": (lambda a: a.ravel() * [1, 2, 3, 4, 5, 6], MATRIX),
    "slice": (lambda a: a[:, ::-2], MATRIX),
    "one element": (lambda a: a[1, 2], MATRIX),
    "indices, one twice": (lambda a: a[[0, 2, 0]], VECTOR),
    "indices of two axes": (lambda a: a[np.array([0, 1, 1]), np.array([2, 0, 0])], MATRIX),
    "mask": (lambda a: a[np.array([True, False, True])], VECTOR),
    "np.take": (lambda a: np.take(a, [2, 0], axis=1), MATRIX),
    "np.concatenate": (lambda a, b: np.concatenate([a, b, a]), VECTOR, OTHER),
    "np.concatenate with floats": (lambda a: np.concatenate([a, [4.0, 5.0]]), VECTOR),
    "np.stack": (lambda a, b: np.stack([a, b], axis=1), VECTOR, OTHER),
    "np.vstack": (lambda a, b: np.vstack([a, b]), MATRIX, VECTOR),
    "np.split": (lambda a: np.split(a, 3)[1], VECTOR),
    "np.repeat": (lambda a: np.repeat(a, 2), VECTOR),
    "np.tile": (lambda a: np.tile(a, 2), VECTOR),
    "np.roll": (lambda a: np.roll(a, 1), VECTOR),
    "np.flip": (np.flip, MATRIX),
    "np.broadcast_to": (lambda a: np.broadcast_to(a, (2, 3)), VECTOR),
    "np.where": (lambda a, b: np.where([True, False, True], a, b), VECTOR, OTHER),
    "np.diag": (np.diag, VECTOR),
    "np.triu": (np.triu, POSITIVE),
    "np.sort": (np.sort, VECTOR),
    "np.square": (np.square, VECTOR),
    "np.reciprocal": (np.reciprocal, POSITIVE),
    "np.linalg.matrix_power": (lambda a: np.linalg.matrix_power(a, 3), POSITIVE),
    "softmax": (lambda a: np.exp(a) / np.exp(a).sum(axis=1, keepdims=True), MATRIX),
    "a layer": (lambda w, x: np.tanh(w @ x + 0.5), MATRIX, VECTOR),
}


@pytest.mark.slow
@pytest.mark.parametrize(("function", "operands"), [(f, x) for f, *x in OPERATIONS.values()], ids=OPERATIONS.keys())
@pytest.mark.unmeasured
def test_operations_give_what_numpy_gives_and_gradients_as_differences_do(function, operands):
    arrays = [mg.array(operand) for operand in operands]
    result = function(*arrays)
    expected = function(*operands)
    assert np.shape(result) == np.shape(expected)
    assert mg.numbers(result) == pytest.approx(expected, rel=1e-14)
    weighted_sum(result).backward()
    found = np.concatenate([mg.gradients(array).ravel() for array in arrays])

    def of_numbers(*numbers):
        parts = np.split(np.array(numbers), np.cumsum([operand.size for operand in operands])[:-1])
        shaped = [part.reshape(operand.shape) for part, operand in zip(parts, operands, strict=True)]
        with np.errstate(all="raise"):  # an exception where Values have one
            return weighted_sum(function(*shaped))

    point = np.concatenate([operand.ravel() for operand in operands])
    assert found == pytest.approx(numerical_gradient(of_numbers, point), rel=1e-6, abs=1e-8)


UFUNCS = {
    "neg": "negative",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "identity": "positive",
    "atan2": "arctan2",
}


def ufunc_of(primitive):
    """NumPy's function for a primitive, under the name that NumPy has for it."""
    for name in (UFUNCS.get(primitive.name, primitive.name), "arc" + primitive.name[1:]):
        if isinstance(getattr(np, name, None), np.ufunc):
            return getattr(np, name)
    return None


@pytest.mark.parametrize(
    ("primitive", "ufunc"),
    [(p, ufunc_of(p)) for p in TABLE if any(p.derivatives) and ufunc_of(p)],  # comparisons give a bool for each
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_every_ufunc_that_has_a_primitive_works_on_arrays_of_values(primitive, ufunc):
    inside = 1.0 if ufunc is np.arccosh else 0.0
    floats = [np.array([0.25, 0.5, 0.75]) + 0.125 * index + inside for index in range(len(primitive.domain))]
    arrays = [mg.array(numbers) for numbers in floats]
    result = ufunc(*arrays)
    assert result.dtype == object
    assert mg.numbers(result) == pytest.approx(ufunc(*floats), rel=1e-15)
    result.sum().backward()
    slopes = [
        mg.jacobian(primitive, index)(*(numbers[0] for numbers in floats)) for index in range(len(primitive.domain))
    ]
    assert [mg.gradients(array)[0] for array in arrays] == pytest.approx(slopes, rel=1e-15)


def test_numpy_has_a_ufunc_for_most_primitives():
    """So that the test above walks more than a few."""
    assert {"exp", "log1p", "arcsin", "tanh", "absolute", "power", "maximum", "sqrt", "positive"} <= {
        ufunc_of(primitive).__name__ for primitive in TABLE if ufunc_of(primitive)
    }


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "relu", "silu", "gelu", "erf", "tanh", "leaky_relu", "elu"])
def test_functions_of_the_library_apply_to_arrays_element_by_element(name):
    function = getattr(mg, name)
    array = mg.array(MATRIX)
    result = function(array)
    assert mg.numbers(result).tolist() == [[function(number) for number in row] for row in MATRIX.tolist()]
    result.sum().backward()
    assert mg.gradients(array).tolist() == [[mg.grad(function)(number) for number in row] for row in MATRIX.tolist()]
    of_floats = function(MATRIX)
    assert of_floats.dtype == float
    assert of_floats.tolist() == mg.numbers(result).tolist()


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        (mg.maximum, np.maximum),
        (mg.minimum, np.minimum),
        (Value.maximum, np.maximum),
        (Value.minimum, np.minimum),
        (lambda x, y: mg.where(y > 1, x, y), lambda x, y: np.where(y > 1, x, y)),
        (mg.leaky_relu, lambda x, slope: np.where(x > 0, x, slope * x)),
    ],
)
def test_a_value_and_an_array_of_floats_as_operands_of_one_function(function, truth):
    value, floats = Value(1.5), np.array([1.0, 2.0, -3.0])
    result = function(value, floats)
    assert mg.numbers(result).tolist() == truth(1.5, floats).tolist()
    if function not in (Value.maximum, Value.minimum):
        assert mg.numbers(function(floats, value)).tolist() == truth(floats, 1.5).tolist()


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
SCALARS = [np.float64(2), np.float32(2), np.float16(2), np.int64(2), np.uint8(2), np.True_, np.array(2.0)]


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda scalar: f"{type(scalar).__name__}")
@pytest.mark.parametrize("operate", OPERATORS.values(), ids=OPERATORS.keys())
def test_numpy_scalars_on_either_side_give_a_value(operate, scalar):
    for f in (lambda x, other: operate(other, x)), operate:
        value = Value(3.0)
        result = f(value, scalar)
        assert type(result) is Value
        assert result.data == f(3.0, float(scalar))
        result.backward()
        assert value.grad == mg.grad(lambda x, f=f: f(x, float(scalar)))(3.0)


@pytest.mark.parametrize("operate", OPERATORS.values(), ids=OPERATORS.keys())
class TestFloatArrays:
    def test_beside_a_value_give_an_array_of_values(self, operate):
        value, floats = Value(1.5), np.array([[2.0, 3.0], [0.5, 1.0]])
        for result, expected in (
            (operate(floats, value), operate(floats, 1.5)),
            (operate(value, floats), operate(1.5, floats)),
        ):
            assert all(type(element) is Value for element in result.ravel())
            assert mg.numbers(result) == pytest.approx(expected, rel=1e-15)
        operate(floats, value).sum().backward()
        assert value.grad == pytest.approx(numerical_gradient(lambda x: operate(floats, x).sum(), [1.5])[0], rel=1e-8)

    def test_beside_an_array_of_values_are_constants(self, operate):
        array, floats = mg.array([1.5, 2.5]), np.array([2.0, 3.0])
        left, right = operate(floats, array), operate(array, floats)
        assert mg.numbers(left) == pytest.approx(operate(floats, [1.5, 2.5]), rel=1e-15)
        assert mg.numbers(right) == pytest.approx(operate(np.array([1.5, 2.5]), floats), rel=1e-15)
        assert all(sum(operand.requires_grad for operand in element._prev) == 1 for element in [*left, *right])


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS.keys())
def test_comparisons_give_bools_and_no_gradients(compare):
    array, floats = mg.array(VECTOR), OTHER
    for result, expected in (
        (compare(array, floats), compare(VECTOR, floats)),
        (compare(floats, array), compare(floats, VECTOR)),
        (compare(array, mg.array(floats)), compare(VECTOR, floats)),
        (compare(array, 0.5), compare(VECTOR, 0.5)),
        (compare(Value(0.5), floats), compare(0.5, floats)),
    ):
        assert result.dtype == bool
        assert result.tolist() == expected.tolist()
    assert type(compare(np.float64(1.0), Value(2.0))) in (bool, np.bool_)


def test_positions_are_ints_and_carry_no_gradient():
    array = mg.array(MATRIX)
    assert array.argmax() == MATRIX.argmax()
    assert array.argmin(axis=1).tolist() == MATRIX.argmin(axis=1).tolist()
    assert np.argsort(array[0]).tolist() == np.argsort(MATRIX[0]).tolist()
    assert np.sign(array).tolist() == np.sign(MATRIX).tolist()
    assert np.floor(array).tolist() == np.floor(MATRIX).tolist()


def test_a_mask_from_a_comparison_selects_values():
    array = mg.array(VECTOR)
    array[array > 0].sum().backward()
    assert mg.gradients(array).tolist() == [1.0, 0.0, 1.0]


class TestArray:
    @pytest.mark.parametrize(
        "nested",
        [
            [1.0, 2.0],
            (1, 2),
            [[1, 2], [3, 4]],
            [(1.0, 2), [True, np.float32(4)]],
            [[[1.0]], [[2.0]]],
            [],
            [[], []],
            3.0,
            np.arange(6).reshape(2, 3),
            np.zeros((0, 3)),
            np.array(3.0),
            [np.array([1, 2]), [3, 4]],
            [Fraction(1, 2), Decimal("0.25")],
        ],
        ids=repr,
    )
    def test_nested_lists_and_arrays_become_leaves_of_the_same_shape(self, nested):
        made = mg.array(nested)
        expected = np.array(nested, dtype=float)
        assert made.dtype == object
        assert made.shape == expected.shape
        assert all(type(element) is Value and element.is_leaf for element in made.ravel())
        assert mg.numbers(made).tolist() == expected.tolist()

    @given(arrays_of.arrays(float, arrays_of.array_shapes(max_dims=3, max_side=3), elements=st.floats(-1e6, 1e6)))
    @settings(max_examples=12)
    def test_numbers_gives_back_the_float_array_that_it_was_made_of(self, floats):
        found = mg.numbers(mg.array(floats))
        assert found.dtype == float
        assert np.array_equal(found, floats)

    def test_a_function_of_the_index_fills_a_shape(self):
        made = mg.array(lambda row, column: 10 * row + column, shape=(2, 3))
        assert mg.numbers(made).tolist() == [[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]
        assert mg.numbers(mg.array(lambda index: index, shape=3)).tolist() == [0.0, 1.0, 2.0]
        assert mg.numbers(mg.array(lambda: 5.0, shape=())).tolist() == 5.0

    def test_values_among_the_elements_stay_those_values(self):
        value = Value(2.0, label="mine")
        made = mg.array([value, 1.0, value * 3], label="w", requires_grad=False)
        assert made[0] is value
        assert made[0].label == "mine"
        assert [element.requires_grad for element in made] == [True, False, True]
        made.sum().backward()
        assert value.grad == 4.0

    def test_labels_say_the_index(self):
        made = mg.array([[1.0, 2.0]], label="w")
        assert [element.label for element in made[0]] == ["w[0, 0]", "w[0, 1]"]

    def test_constants_carry_no_gradient(self):
        constants = mg.array([1.0, 2.0], requires_grad=False)
        assert not (constants * 2).sum().requires_grad
        weights = mg.array([3.0, 4.0])
        (weights @ constants).backward()
        assert mg.gradients(weights).tolist() == [1.0, 2.0]
        assert mg.gradients(constants).tolist() == [0.0, 0.0]


class TestAccessors:
    def test_they_read_nested_lists_and_single_values_too(self):
        x = Value(3.0)
        (x * x).backward()
        assert mg.numbers([[x, 1.0], [2, x]]).tolist() == [[3.0, 1.0], [2.0, 3.0]]
        assert mg.gradients([x, 1.0]).tolist() == [6.0, 0.0]
        assert (mg.numbers(x).shape, mg.gradients(x)) == ((), 6.0)

    def test_what_they_give_is_a_copy(self):
        array = mg.array([1.0, 2.0])
        mg.numbers(array)[0] = 9.0
        mg.gradients(array)[0] = 9.0
        assert (array[0].data, array[0].grad) == (1.0, 0.0)

    def test_gradients_that_are_graphs_are_read_as_numbers(self):
        array = mg.array([1.0, 2.0])
        (array**3).sum().backward(create_graph=True)
        assert mg.gradients(array).tolist() == [3.0, 12.0]
        assert mg.gradients(array).dtype == float


class TestGraphs:
    def test_a_layer_of_a_network_trains(self):
        """Least squares by gradient descent: the solution is that of np.linalg.lstsq."""
        inputs = np.array([[1.0, 0.5], [-1.0, 2.0], [0.5, -1.0], [2.0, 1.0]])
        targets = np.array([1.0, -2.0, 0.5, 3.0])
        weights = mg.array(np.zeros(2))
        for _ in range(150):
            ((inputs @ weights - targets) ** 2).mean().backward()
            for weight in weights:
                weight.data -= 0.2 * weight.grad
                weight.grad = 0.0
        assert mg.numbers(weights) == pytest.approx(np.linalg.lstsq(inputs, targets)[0], abs=1e-6)

    def test_several_outputs_are_weighted_by_a_float_array(self):
        array = mg.array(VECTOR)
        (OTHER * array**2).sum().backward()
        assert mg.gradients(array).tolist() == (2 * OTHER * VECTOR).tolist()

    def test_a_large_product(self):
        left, right = np.random.default_rng(0).normal(size=(2, 20, 20))
        a, b = mg.array(left), mg.array(right)
        (a @ b).sum().backward()
        ones = np.ones((20, 20))
        assert mg.gradients(a) == pytest.approx(ones @ right.T, rel=1e-12, abs=1e-12)
        assert mg.gradients(b) == pytest.approx(left.T @ ones, rel=1e-12, abs=1e-12)

    def test_second_derivatives_through_arrays(self):
        array = mg.array(VECTOR)
        slopes = mg.gradient(np.exp(array).sum() ** 2, array, create_graph=True)
        found = [mg.gradient(slope, list(array)) for slope in slopes]
        exponentials = np.exp(VECTOR)
        expected = 2 * np.outer(exponentials, exponentials) + 2 * exponentials.sum() * np.diag(exponentials)
        assert np.array(found) == pytest.approx(expected, rel=1e-13)

    def test_assigning_an_element_rebinds_it_and_nothing_else(self):
        array = mg.array([1.0, 2.0])
        first = array[0]
        array[0] = first * 10
        array.sum().backward()
        assert first.grad == 10.0

    def test_in_position_operators_make_new_values(self):
        array = mg.array([1.0, 2.0])
        leaves = array.copy()
        array *= 3
        array.sum().backward()
        assert mg.gradients(leaves).tolist() == [3.0, 3.0]
        assert mg.numbers(leaves).tolist() == [1.0, 2.0]

    def test_adding_values_in_position_to_floats_is_refused_by_numpy(self):
        floats = np.zeros(2)
        with pytest.raises(TypeError):
            floats += mg.array([1.0, 2.0])

    def test_under_no_grad_nothing_is_recorded(self):
        array = mg.array(MATRIX)
        with mg.no_grad():
            result = (array @ VECTOR).sum()
        assert not result.requires_grad

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
    def test_a_copied_array_has_a_graph_of_its_own(self, copied):
        array = mg.array([1.0, 2.0])
        array_copy, squares = copied((array, array**2))
        squares.sum().backward()
        assert mg.gradients(array_copy).tolist() == [2.0, 4.0]
        assert mg.gradients(array).tolist() == [0.0, 0.0]

    def test_sums_of_nothing_are_zero(self):
        assert mg.array([]).sum() == 0
        assert (mg.array(np.zeros((2, 0))) @ mg.array(np.zeros((0, 2)))).tolist() == [[0, 0], [0, 0]]


def test_without_numpy_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match=r"need NumPy: pip install numpy"):
        mg.array([1.0])
