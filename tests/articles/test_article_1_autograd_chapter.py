"""The autograd chapter: tensors that record a recipe, a table of backward functions, backprop in topological order."""

import asyncio
import math
import pickle
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.testing import gradcheck, numerical_gradient


class TestRequiresGrad:
    @pytest.mark.parametrize(("tracking", "first", "second"), list(product([True, False], repeat=3)))
    def test_a_result_requires_a_gradient_where_tracking_is_on_and_an_operand_requires_one(
        self, tracking, first, second
    ):
        x, y = Value(2.0, requires_grad=first), Value(3.0, requires_grad=second)
        if tracking:
            result = x * y
        else:
            with mg.no_grad():
                result = x * y
        assert result.data == 6.0
        assert result.requires_grad is (tracking and (first or second))

    def test_a_function_that_is_not_differentiable_gives_a_constant(self, own_registry):
        sign = mg.primitive("own_sign", "sign", lambda x: float((x > 0) - (x < 0)), None)
        x = Value(-2.5)
        assert (sign(x).data, sign(x).requires_grad, sign(x).is_leaf) == (-1.0, False, True)
        (x * sign(x)).backward()
        assert x.grad == -1.0

    def test_comparisons_argmax_floor_and_sign_carry_no_graph(self):
        x, y = Value(2.5), Value(-1.5)
        assert [x > y, x >= y, x < y, x <= y, x > 2, x == y] == [True, True, False, False, True, False]
        assert all(type(compared) is bool for compared in (x > y, x == y))
        assert type(math.floor(x)) is int
        array = mg.array([2.5, -1.5])
        assert type(array.argmax()) is np.int64
        for plain in (np.floor(array), np.sign(array), array > 0, array == array):
            assert not any(isinstance(element, Value) for element in plain)

    def test_a_function_of_a_constant_is_a_constant(self):
        x = Value(2.0, requires_grad=False)
        assert [f(x).requires_grad for f in (mg.log, mg.exp, mg.relu)] == [False] * 3


class TestTracking:
    def test_tracking_is_off_inside_and_restored_after(self):
        x = Value(3.0)
        with mg.no_grad():
            inside = x * x
            with mg.no_grad():
                innermost = x * x
            still_inside = x * x
        after = x * x
        assert [v.requires_grad for v in (inside, innermost, still_inside, after)] == [False, False, False, True]
        after.backward()
        assert x.grad == 6.0

    def test_tracking_is_restored_where_an_exception_leaves_the_block(self):
        x = Value(3.0)
        with pytest.raises(ZeroDivisionError), mg.no_grad():
            x / 0
        assert (x * x).requires_grad

    def test_tracking_goes_on_in_other_threads_and_tasks(self):
        x = Value(3.0)
        found = []
        with mg.no_grad():
            thread = threading.Thread(target=lambda: found.append((x * x).requires_grad))
            thread.start()
            thread.join()
        assert found == [True]

        async def silent(entered, leave):
            with mg.no_grad():
                entered.set()
                await leave.wait()
                return (x * x).requires_grad

        async def recording(entered, leave):
            await entered.wait()
            try:
                return (x * x).requires_grad
            finally:
                leave.set()

        async def both():
            entered, leave = asyncio.Event(), asyncio.Event()
            return await asyncio.gather(silent(entered, leave), recording(entered, leave))

        assert asyncio.run(both()) == [False, True]


class TestLeaves:
    def test_a_leaf_is_what_no_recorded_operation_made(self):
        x, constant = Value(2.0), Value(3.0, requires_grad=False)
        with mg.no_grad():
            silent = x * x
        leaves = [x, constant, constant * constant, silent, mg.detach(x * x)]
        assert [leaf.is_leaf for leaf in leaves] == [True] * len(leaves)
        assert [result.is_leaf for result in (x * constant, -x, x + 1, x.log())] == [False] * 4

    def test_a_leaf_that_requires_no_gradient_keeps_the_gradient_0(self):
        x, constant = Value(2.0), Value(3.0, requires_grad=False)
        (x * constant + constant).backward()
        assert (x.grad, constant.grad) == (3.0, 0.0)

    def test_backpropagation_ends_at_a_leaf(self):
        x = Value(2.0)
        with mg.no_grad():
            cut = x * x
        y = Value(5.0)
        (cut * y).backward()
        assert (x.grad, y.grad) == (0.0, 4.0)
        assert mg.topological_order(cut * y)[-1]._prev == {cut, y}


class TestRecipe:
    def test_the_raw_inputs_are_recorded_so_a_later_change_of_a_leaf_changes_no_gradient(self):
        x, y = Value(2.0), Value(3.0)
        out = x * y
        x.data = 50.0
        out.backward()
        assert (x.grad, y.grad) == (3.0, 2.0)

    def test_numbers_among_the_operands_are_constants_for_which_no_gradient_is_computed(self, own_registry):
        def refuse(*_):
            raise AssertionError("a gradient that nobody needs was computed")

        scaled = mg.primitive("scaled", "scaled", lambda x, y: x * y, lambda g, out, x, y: g * y, refuse)
        x = Value(2.0)
        out = scaled(x, 5.0)
        out.backward()
        assert x.grad == 5.0
        assert [parent for parent in out._prev if parent.requires_grad] == [x]
        with pytest.raises(AssertionError, match="nobody needs"):
            scaled(x, Value(5.0)).backward()

    @pytest.mark.parametrize("constant", [5.0, Value(5.0, requires_grad=False)], ids=["number", "Value"])
    def test_nor_is_one_computed_for_a_constant_among_three_operands(self, own_registry, constant):
        def refuse(*_):
            raise AssertionError("a gradient that nobody needs was computed")

        def scale(g, out, x, y, z):
            return g * y

        def share(g, out, x, y, z):
            return g

        shifted = mg.primitive("shifted", "shifted", lambda x, y, z: x * y + z, scale, refuse, share)
        x, z = Value(2.0), Value(3.0)
        shifted(x, constant, z).backward()
        assert (x.grad, z.grad, getattr(constant, "grad", 0.0)) == (5.0, 1.0, 0.0)

    @pytest.mark.parametrize("second", [2, 2.0, True, np.float32(2.0), np.int64(2)], ids=repr)
    def test_numbers_of_any_kind_mix_with_values_on_either_side(self, second):
        x = Value(3.0)
        (x * second + second * x + (second - x) + x / second).backward()
        assert x.grad == 2 * float(second) - 1 + 1 / float(second)


class TestOwnPrimitive:
    @pytest.fixture
    def gated_power(self, own_registry):
        """gate * x ** exponent + y: no gradient flows to the gate, and the exponent is a setting."""
        return mg.primitive(
            "gated_power",
            "gated",
            lambda x, y, gate, exponent: gate * x**exponent + y,
            lambda g, out, x, y, gate, exponent: g * gate * exponent * x ** (exponent - 1),
            lambda g, out, x, y, gate, exponent: g,
            None,
        )

    def test_several_operands_settings_by_keyword_and_an_operand_without_derivative(self, gated_power):
        x, y, gate = Value(2.0), Value(7.0), Value(10.0)
        out = gated_power(x, y, gate, exponent=3)
        out.backward()
        assert out.data == 10 * 8 + 7
        assert (x.grad, y.grad, gate.grad) == (120.0, 1.0, 0.0)
        assert out._op == "gated exponent=3"
        assert gradcheck(lambda x, y: gated_power(x, y, 10.0, exponent=3), [2.0, 7.0])

    def test_the_same_operand_in_several_places_gets_the_sum(self, gated_power):
        x = Value(2.0)
        gated_power(x, x, x, exponent=3).backward()
        assert x.grad == 2 * 3 * 4 + 1

    def test_its_rule_differentiates_again_and_again(self, gated_power):
        def f(x):
            return gated_power(x, 0.0, 1.0, exponent=4)

        derivatives = [f, mg.grad(f), mg.grad(mg.grad(f)), mg.grad(mg.grad(mg.grad(f)))]
        assert [derivative(3.0) for derivative in derivatives] == [81.0, 108.0, 108.0, 72.0]

    def test_plain_numbers_give_a_plain_number_and_arrays_go_element_by_element(self, gated_power):
        assert gated_power(2.0, 1.0, 1.0, exponent=3) == 9.0
        x = mg.array([1.0, 2.0, 3.0])
        gated_power(x, 0.0, 1.0, exponent=2).sum().backward()
        assert mg.gradients(x).tolist() == [2.0, 4.0, 6.0]

    def test_different_settings_do_not_meet(self, gated_power):
        x = Value(2.0)
        (gated_power(x, 0.0, 1.0, exponent=2) + gated_power(x, 0.0, 1.0, exponent=3)).backward()
        assert x.grad == 4.0 + 12.0

    def test_a_graph_with_it_can_be_pickled(self, gated_power):
        copied = pickle.loads(pickle.dumps(gated_power(Value(2.0, label="x"), 7.0, 10.0, exponent=3)))
        copied.backward()
        assert [parent.grad for parent in copied._prev if parent.label == "x"] == [120.0]

    def test_a_wrong_number_of_operands_and_a_taken_name_are_errors(self, gated_power):
        with pytest.raises(TypeError, match="gated_power takes 3 operands, not 2"):
            gated_power(Value(1.0), 2.0, exponent=1)
        with pytest.raises(ValueError, match="'gated_power' is registered already"):
            mg.primitive("gated_power", "again", math.sin, None)

    def test_settings_that_are_equal_but_not_the_same_do_not_meet(self, own_registry):
        signed = mg.primitive("signed", "signed", lambda x, sign: math.copysign(x, sign), None)
        assert signed(2.0, sign=0.0) == 2.0
        assert signed(2.0, sign=-0.0) == -2.0


class TestTopologicalOrder:
    @pytest.fixture
    def graph(self):
        a, b, c = Value(1.0, label="a"), Value(2.0, label="b"), Value(3.0, label="c")
        d = a * b
        e = c.log()
        f = d * e
        g = f.log()
        d.label, e.label, f.label, g.label = "defg"
        return {node.label: node for node in (a, b, c, d, e, f, g)}

    def test_the_example_backpropagates_to_its_gradients(self, graph):
        graph["g"].backward()
        assert graph["g"].data == pytest.approx(math.log(2 * math.log(3)), rel=1e-15)
        gradients = [graph[name].grad for name in "abc"]
        assert gradients == pytest.approx([1.0, 1 / 2, 1 / (3 * math.log(3))], rel=1e-15)

    def test_no_node_of_the_example_comes_before_what_uses_it_in_the_reverse_order(self, graph):
        order = "".join(node.label for node in reversed(mg.topological_order(graph["g"])))
        assert sorted(order) == list("abcdefg")
        assert order.startswith("gf")
        for user, used in ("gf", "fd", "fe", "da", "db", "ec"):
            assert order.index(user) < order.index(used)

    @given(pairs=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=25), data=st.data())
    def test_in_any_graph_every_node_comes_once_after_its_operands_and_the_root_last(self, pairs, data):
        nodes = [Value(1.0), Value(-1.0)]
        operands = {nodes[0]: set(), nodes[1]: set()}
        for first, second in pairs:
            x, y = nodes[first % len(nodes)], nodes[second % len(nodes)]
            nodes.append(x + y)
            operands[nodes[-1]] = {x, y}
        root = data.draw(st.sampled_from(nodes))
        order = mg.topological_order(root)
        place = {node: index for index, node in enumerate(order)}
        reachable, waiting = {root}, [root]
        while waiting:
            fresh = operands[waiting.pop()] - reachable
            reachable |= fresh
            waiting += fresh
        assert order[-1] is root
        assert len(order) == len(place)
        assert set(order) == reachable
        assert all(place[operand] < place[node] for node in order for operand in operands[node])

    def test_a_cycle_is_an_error_for_the_order_and_for_backpropagation(self):
        x = Value(2.0)
        first = x + 1
        last = first * x
        first._second = last  # no operator makes a cycle; only reaching inside does
        with pytest.raises(ValueError, match="cycle"):
            mg.topological_order(last)
        with pytest.raises(ValueError, match="cycle"):
            last.backward()
        assert x.grad == 0.0


class TestBackward:
    def test_the_gradient_given_for_the_end_weighs_every_gradient(self):
        x, y = Value(2.0), Value(3.0)
        (x * y).backward(gradient=10.0)
        assert (x.grad, y.grad) == (30.0, 20.0)

    def test_an_array_of_weights_backpropagates_from_many_outputs_at_once(self):
        x = mg.array([1.0, 2.0, 3.0])
        weights = np.array([1.0, 10.0, 100.0])
        outputs = x * x
        (weights * outputs).sum().backward()
        assert mg.gradients(x).tolist() == [2.0, 40.0, 600.0]

    def test_weights_from_many_outputs_give_what_one_backward_each_adds_up_to(self):
        weights = [3.0, -0.5]
        together, apart = mg.array([0.7, 1.9]), mg.array([0.7, 1.9])

        def outputs(x):
            return [(x[0] * x[1]).tanh(), x[0].exp() - x[1]]

        (np.array(weights) * np.array(outputs(together))).sum().backward()
        for output, weight in zip(outputs(apart), weights, strict=True):
            output.backward(gradient=weight)
        assert mg.gradients(together) == pytest.approx(mg.gradients(apart), rel=1e-15)


X = np.array([[0.5, 1.5, -2.0], [3.0, -0.25, 1.25]])
Y = np.array([[2.0, -1.0, 0.75], [0.3, 1.1, -4.0]])
POSITIVE = np.array([[0.5, 1.5, 2.0], [3.0, 0.25, 1.25]])
MATRIX = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]])
ROW = np.array([1.0, -1.0, 2.0])
COLUMN = np.array([[0.5], [-3.0]])


def plus_in_place(x, y):
    total = x.copy()
    total += y
    return total


def minus_in_place(x, y):
    difference = x.copy()
    difference -= y
    return difference


ARRAY_PROGRAMS = {
    "neg": (lambda x: -x, X),
    "add": (lambda x, y: x + y, X, Y),
    "add a number": (lambda x: 2 + x + 1, X),
    "sub": (lambda x, y: x - y, X, Y),
    "sub from a number": (lambda x: 1 - x, X),
    "mul": (lambda x, y: x * y, X, Y),
    "mul by itself": (lambda x: x * x, X),
    "div": (lambda x, y: x / y, X, Y),
    "div of a number": (lambda x: 1 / x, X),
    "matmul": (lambda x, y: x @ y, X, MATRIX),
    "matmul with a vector": (lambda x, y: x @ y, X, ROW),
    "matmul with plain numbers": (lambda x: MATRIX @ x, X),
    "getitem, a row": (lambda x: x[1], X),
    "getitem, an element": (lambda x: x[1, 2], X),
    "getitem, a slice": (lambda x: x[:, 1:], X),
    "getitem, an index several times": (lambda x: x[[1, 0, 1]], X),
    "getitem, a mask": (lambda x: x[X > 0], X),
    "iadd": (plus_in_place, X, Y),
    "isub": (minus_in_place, X, Y),
    "T": (lambda x: x.T, X),
    "sum": (lambda x: x.sum(), X),
    "sum over a dimension": (lambda x: x.sum(axis=0), X),
    "sum keeping the dimension": (lambda x: x.sum(axis=1, keepdims=True) * x, X),
    "sum over several dimensions": (lambda x: x.sum(axis=(0, 1)), X),
    "log": (lambda x: np.log(x), POSITIVE),
    "exp": (lambda x: np.exp(x), X),
    "reshape": (lambda x: x.reshape(3, 2), X),
    "permute": (lambda x: x.reshape(1, 3, 2).transpose(2, 0, 1), X),
    "maximum": (lambda x, y: np.maximum(x, y), X, Y),
    "maximum of micrograd": (lambda x, y: mg.maximum(x, y), X, Y),
    "relu": (lambda x: mg.relu(x), X),
    "broadcasting a row": (lambda x, y: x + y, X, ROW),
    "broadcasting a column": (lambda x, y: x * y, X, COLUMN),
    "broadcasting both": (lambda x, y: x / y, ROW, COLUMN),
}


@pytest.mark.slow
class TestArrays:
    @pytest.mark.parametrize(("program", "arrays"), [(f, a) for f, *a in ARRAY_PROGRAMS.values()], ids=ARRAY_PROGRAMS)
    def test_numbers_are_those_of_numpy_and_gradients_those_of_differences(self, program, arrays):
        expected = np.asarray(program(*arrays))
        values = [mg.array(array) for array in arrays]
        out = program(*values)
        assert mg.numbers(out).shape == expected.shape
        assert mg.numbers(out) == pytest.approx(expected, rel=1e-14)

        weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
        np.sum(weights * out).backward()

        def weighted_sum(*numbers):
            parts = np.split(np.array(numbers), np.cumsum([array.size for array in arrays])[:-1])
            shaped = [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]
            with np.errstate(all="ignore"):  # a difference may step out of the domain, to NaN
                return float(np.sum(weights * program(*shaped)))

        found = np.concatenate([mg.gradients(array).ravel() for array in values])
        by_differences = numerical_gradient(weighted_sum, np.concatenate([array.ravel() for array in arrays]))
        assert found == pytest.approx(by_differences, rel=1e-8, abs=1e-10)

    def test_in_place_addition_leaves_the_values_that_were_there_alone(self):
        x = mg.array([1.0, 2.0])
        leaves = x.copy()
        x += 10.0
        assert (mg.numbers(x).tolist(), mg.numbers(leaves).tolist()) == ([11.0, 12.0], [1.0, 2.0])
        x.sum().backward()
        assert mg.gradients(leaves).tolist() == [1.0, 1.0]

    def test_equality_is_identity_for_values_and_by_number_for_their_numbers(self):
        x, y = mg.array([1.0, 2.0]), mg.array([1.0, 3.0])
        assert (x == x).tolist() == [True, True]
        assert (x == y).tolist() == [False, False]
        assert (mg.numbers(x) == mg.numbers(y)).tolist() == [True, False]

    def test_argmax_follows_the_numbers_and_gives_plain_indices(self):
        x = mg.array(X)
        assert x.argmax() == X.argmax() == 3
        assert x.argmax(axis=1).tolist() == X.argmax(axis=1).tolist() == [1, 0]

    def test_of_equal_elements_maximum_gives_the_gradient_to_the_first_and_relu_gives_none_at_0(self):
        for maximum in (np.maximum, mg.maximum):
            x, y = mg.array([2.0]), mg.array([2.0])
            maximum(x, y).sum().backward()
            assert (x[0].grad, y[0].grad) == (1.0, 0.0)
        zero = mg.array([0.0])
        mg.relu(zero).sum().backward()
        assert zero[0].grad == 0.0

    def test_maximum_takes_a_value_and_an_array_in_either_order(self):
        x, floor = mg.array([1.0, 3.0]), Value(2.0)
        assert mg.numbers(mg.maximum(x, floor)).tolist() == [2.0, 3.0]
        assert mg.numbers(mg.maximum(floor, x)).tolist() == [2.0, 3.0]

    def test_length_is_that_of_the_first_dimension(self):
        assert len(mg.array(X)) == 2
        with pytest.raises(TypeError):
            len(mg.array(3.0))
        with pytest.raises(TypeError):
            len(Value(3.0))

    def test_only_one_element_has_a_truth(self):
        assert bool(mg.array([[0.5]])) is True
        assert bool(mg.array([0.0])) is False
        with pytest.raises(ValueError, match="ambiguous"):
            bool(mg.array(X))

    def test_item_gives_the_value_of_one_element(self):
        x = mg.array([[2.5]])
        assert x.item() is x[0, 0]
        assert float(x.item()) == 2.5
        with pytest.raises(ValueError, match="size 1"):
            mg.array(X).item()
