"""The autograd chapter: tensors that record a recipe, a table of backward functions, backprop in topological order."""

import math

import pytest

import micrograd as mg
from micrograd import Value


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
