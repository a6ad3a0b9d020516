"""Pages without a browser: their data, what they refuse, and what notebooks show."""

import base64
import gzip
import json
import math
import random
import re
import struct
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

import micrograd as mg
from micrograd import Value
from micrograd.contexts.calls import neuron_call
from micrograd.draw.folding import groups
from micrograd.draw.folding.groups import Grouping
from micrograd.draw.text import enclosed
from micrograd.engine.backward import backpropagate
from micrograd.engine.commit import changing_gradients
from micrograd.pages import arrangement
from micrograd.pages import page as pages
from micrograd.pages.arrangement import arrange
from micrograd.pages.formulas import FOR_READING, TABLE, formulas, formulas_for_reading
from micrograd.pages.passes import passes
from tests.folders import ROOT
from tests.locks import is_held
from tests.strategies import programs

pytestmark = pytest.mark.slow(together=True)


def data_of(path):
    """What is embedded in a page."""
    text = Path(path).read_text(encoding="utf-8")
    embedded = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    if embedded.startswith("{"):
        return json.loads(embedded)
    data = json.loads(gzip.decompress(base64.b64decode(embedded)))  # that of a large page
    for name in ("nodes", "visits"):
        columns = data[name]
        data[name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for place, node in enumerate(data["nodes"]):
        node["operands"] = [place - distance for distance in node["operands"]]
        if node["data"] is None:  # it follows from them
            name = data["primitives"][node["primitive"]]["name"]
            inputs = [data["nodes"][operand]["data"] for operand in node["operands"]]
            node["data"] = computed([name, *map(str, range(len(inputs)))], 0.0, 0.0, inputs)
    gradients = [0.0] * len(data["nodes"])
    gradients[data["root"]] = 1.0
    for visit in data["visits"]:
        node = data["nodes"][visit["node"]]
        if visit["locals"] is None:  # they follow from the rules
            out, *inputs = (data["nodes"][place]["data"] for place in (visit["node"], *node["operands"]))
            rules, wanted = data["primitives"][node["primitive"]]["rules"], visit["contributions"]
            of_gradients = [
                [share and computed(rules[place], g, out, inputs) for place, share in enumerate(wanted)]
                for g in (gradients[visit["node"]], 1.0)
            ]
            visit["contributions"], visit["locals"] = of_gradients
        for operand, share in zip(node["operands"], visit["contributions"], strict=True):
            gradients[operand] += float(share or 0.0)
    return data


def explored(root, folder, **options):
    mg.explore(root, folder / "page.html", **options)
    return data_of(folder / "page.html")


@pytest.mark.parametrize("requires_grad", [True, False], ids=["both passes", "forward only"])
def test_a_large_page_has_the_same_data_compressed(tmp_path, monkeypatch, requires_grad):
    x = Value(3.0, label="</script>", requires_grad=requires_grad)
    plain = explored(mg.tanh(x * 0.1) + x, tmp_path)
    assert bool(plain["visits"]) is requires_grad
    monkeypatch.setattr(pages, "MOST_PLAIN", 100)
    mg.explore(mg.tanh(x * 0.1) + x, tmp_path / "packed.html")
    text = (tmp_path / "packed.html").read_text(encoding="utf-8")
    assert '<script id="data" type="application/json">{' not in text
    assert data_of(tmp_path / "packed.html") == plain


def computed(formula, g, out, inputs):
    """The number of a formula, computed by the primitives' own forward functions."""
    if isinstance(formula, float):
        return formula
    if isinstance(formula, str):
        return {"g": g, "out": out}[formula] if formula in ("g", "out") else inputs[int(formula)]
    name, *operands = formula
    if name == "where":
        return computed(operands[1 if computed(operands[0], g, out, inputs) else 2], g, out, inputs)
    numbers = [computed(operand, g, out, inputs) for operand in operands]
    compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}
    return float(compare[name](*numbers)) if name in compare else TABLE[name].forward(*numbers)


def points_of(primitive, count):
    """Random gradients of an output, with the output and the operands."""
    generator = random.Random(primitive.name)
    for _ in range(count):
        inputs = [generator.uniform(max(low, -3) + 1e-3, min(high, 3) - 1e-3) for low, high in primitive.domain]
        yield generator.uniform(-2, 2), primitive.forward(*inputs), inputs


class TestFormulas:
    @pytest.mark.parametrize("name", TABLE)
    def test_say_what_the_rules_compute(self, name):
        primitive = TABLE[name]
        for g, out, inputs in points_of(primitive, 20):
            for rule, formula in zip(primitive.derivatives, formulas(primitive), strict=True):
                if rule is None:
                    assert formula is None
                else:
                    assert computed(formula, g, out, inputs) == rule(g, out, *inputs)

    @pytest.mark.parametrize("name", FOR_READING)
    def test_as_books_have_them_say_the_same(self, name):
        primitive = TABLE[name]
        for g, out, inputs in points_of(primitive, 100):
            for rule, formula in zip(primitive.derivatives, formulas_for_reading(primitive), strict=True):
                if formula is not None:
                    assert computed(formula, g, out, inputs) == pytest.approx(rule(g, out, *inputs), rel=1e-12)

    def test_the_power_rule_is_a_formula_to_read(self):
        first, _ = formulas(mg.engine.primitives.pow)
        assert first == ["mul", ["mul", "g", ["lower_power", "0", "1", 1.0]], "1"]  # pages show it as a power

    def test_a_rule_that_is_no_formula_gives_none(self):
        branching = mg.engine.primitive.Primitive("branching", "b", abs, lambda g, out, x: g if x > 0 else -g)
        floats = mg.engine.primitive.Primitive("floats", "f", math.sin, lambda g, out, x: g * math.cos(x))
        assert formulas(branching) == formulas(floats) == [None]
        own = mg.engine.primitive.Primitive("own", "o", lambda x: 2 * x, lambda g, out, x: 2 * g)
        by_another = mg.engine.primitive.Primitive("by_another", "a", lambda x: x * x, lambda g, out, x: g * own(x))
        endless = mg.engine.primitive.Primitive("endless", "e", lambda x: math.inf, lambda g, out, x: g * math.inf)
        assert formulas(by_another) == formulas(endless) == [None]

    def test_a_namesake_of_a_primitive_is_not_taken_for_it(self):
        other = mg.engine.primitive.Primitive("exp", "exp", lambda x: 0.0, lambda g, out, x: 0 * g)
        data, _ = passes(other(Value(1.0)))
        assert not data["primitives"][0]["library"]


class TestTape:
    @settings(max_examples=24)
    @given(programs())
    @pytest.mark.slow
    def test_the_shares_add_up_to_the_gradients_of_the_engine(self, program):
        root = program(*map(Value, program.inputs))
        before = [node.grad for node in mg.topological_order(root)]
        data, nodes = passes(root)
        assert [node.grad for node in nodes] == before
        gradients = [0.0] * len(nodes)
        gradients[data["root"]] = 1.0
        for visit in data["visits"]:
            for operand, share in zip(data["nodes"][visit["node"]]["operands"], visit["contributions"], strict=True):
                gradients[operand] += 0.0 if share is None else float(share)
        for node in nodes:
            if node.is_leaf:
                node.grad = 0.0
        if data["backward"]:
            root.backward()
            assert [repr(gradients[i]) for i, node in enumerate(nodes) if node.requires_grad] == [
                repr(node.grad) for node in nodes if node.requires_grad
            ]

    def test_the_visits_are_in_the_engines_own_order(self):
        order = []

        def noted(name):
            def rule(g, out, x):
                order.append(name)
                return g

            return mg.engine.primitive.Primitive(name, name, float, rule)

        x = Value(1.0)
        one = noted("one")(x)
        two = noted("two")(one + x)
        root = noted("three")(two * one + noted("four")(two))
        visits = [node._primitive.name for node in backpropagate(root, 1.0) if not node.is_leaf]
        assert [name for name in visits if name in order] == order == ["three", "four", "two", "one"]

    def test_numbers_are_those_of_the_recorded_pass_and_the_page_says_so(self):
        x = Value(3.0, label="x")
        root = x * x
        x.data = 100.0
        data, _ = passes(root)
        assert data["nodes"][0]["data"] == 3.0
        assert data["notes"] == ["x is 100 by now; the page shows the pass that was recorded, where it was 3."]

    def test_what_json_cannot_write(self, tmp_path):
        x = Value(math.inf, label="x")
        data = explored(x * 2 + math.nan, tmp_path)
        assert {node["data"] for node in data["nodes"]} >= {"Infinity", "NaN"}

    def test_gradients_that_are_graphs_stay_as_they_are(self):
        x = Value(2.0)
        root = x * x * x
        root.backward(create_graph=True)
        grad = x.grad
        passes(root)
        assert x.grad is grad

    def test_other_threads_wait_while_the_gradients_are_those_of_the_page(self, monkeypatch):
        answers = []

        def asking(root, gradient):
            answers.append(is_held(changing_gradients))
            return backpropagate(root, gradient)

        monkeypatch.setattr(sys.modules[passes.__module__], "backpropagate", asking)
        passes(Value(2.0) * 3.0)
        assert answers == [True]
        assert not is_held(changing_gradients)

    def test_a_derivative_that_does_not_exist_is_told_and_changes_nothing(self):
        x = Value(0.0)
        x.grad = 7.0
        data, _ = passes(mg.sqrt(x))
        assert not data["backward"]
        assert "derivative of sqrt" in data["notes"][0]
        assert x.grad == 7.0

    def test_a_local_derivative_too_large_for_a_float_is_left_out_and_its_share_is_not(self):
        x = Value(1.0)
        steep = mg.engine.primitive.Primitive("steep", "s", lambda x: 0.5, lambda g, out, x: math.ldexp(g, 1030))
        data, _ = passes(steep(x) * 2.0**-20)
        visit = data["visits"][1]
        assert (visit["locals"], visit["contributions"]) == ([None], [2.0**1010])
        assert data["backward"]

    def test_operations_by_hand_and_by_decorator_give_their_shares(self):
        x, y = Value(2.0), Value(3.0)
        out = Value(x.data * y.data * x.data, (x, y, x), "square times")

        def backward():
            x.grad += 2 * x.data * y.data * out.grad
            y.grad += x.data**2 * out.grad

        out._backward = backward
        data, _ = passes(out)
        assert data["visits"][0]["contributions"] == [12.0, 4.0, None]

        @mg.operation
        def scaled(a, b):
            return a * b, lambda g: (None, g * a)

        assert passes(scaled(x, y))[0]["visits"][0]["contributions"] == [0.0, 2.0]


def tangle(count):
    """A graph in which nothing repeats: each of so many results is made of two of those before it."""
    generator = random.Random(0)
    values = [Value(generator.random(), label=f"x{place}") for place in range(20)]
    used = 0
    while len(values) < count + 20:
        one, other = values[used := min(used + 1, len(values) - 1)], generator.choice(values)
        values.append(generator.choice([mg.tanh(one * other), mg.sin(one - other), mg.maximum(one, other)]))
    return mg.hypot(values[-1], mg.hypot(values[-2], values[-3]))


class TestGroups:
    def test_neurons_are_numbered_as_in_their_layer_and_hold_their_weights(self):
        model = mg.nn.MLP(2, [3, 1], activation="tanh")
        output = model([Value(1.0), Value(2.0)])
        grouping = Grouping(mg.topological_order((output - 1) ** 2))
        path = {parameter: grouping.groups[grouping.of[parameter]].name for _, parameter in model.named_parameters()}
        for place, neuron in enumerate(model.layers[0].neurons):
            assert {path[weight] for weight in [*neuron.w, neuron.b]} == {f"Neuron {place + 1}"}
        assert grouping.groups[grouping.of[output]].name == "Layer 2"

    def test_each_network_call_is_a_group_and_what_calls_share_is_outside(self):
        model = mg.nn.MLP(1, [2, 1])
        root = model([1.0]) + model([2.0])
        grouping = Grouping(mg.topological_order(root))
        assert [group.name for group in grouping.groups if group.parent is None] == ["Parameters", "Network"]
        assert [group.name for group in grouping.groups if group.kind == "network"] == ["Network 1", "Network 2"]
        assert {grouping.groups[grouping.of[p]].around()[-1].name for p in model.parameters()} == {"Parameters"}
        assert grouping.of[root] is None

    def test_a_network_under_no_grad_keeps_no_inputs_alive(self):
        with mg.no_grad():
            output = mg.nn.Neuron(1)([Value(1.0)])
        assert neuron_call(output) is None

    @pytest.mark.slow
    def test_a_large_graph_without_anything_that_repeats_is_parted(self):
        data, _ = passes(tangle(1000))
        sizes = [len(content["items"]) for content in arrange(data)["contents"]]
        assert max(sizes) <= 150
        assert len(data["groups"]) > 6

    def test_too_many_parts_are_in_parts_of_their_own_and_most_are_laid_out_in_columns(self, monkeypatch):
        monkeypatch.setattr(groups, "PART", 12)
        monkeypatch.setattr(arrangement, "MOST_SHAPES", 4)
        data, _ = passes(tangle(400))
        depth = {None: 0}
        for number, group in enumerate(data["groups"]):
            depth[number] = depth[group["parent"]] + 1
        assert max(depth.values()) == 3
        arranged = arrange(data)
        for shape in arranged["shapes"]:
            for x, y, width, height in shape["places"]:
                assert width / 2 <= x + 0.1 <= shape["width"] - width / 2 + 0.2
                assert height / 2 <= y + 0.1 <= shape["height"] - height / 2 + 0.2
        content = arranged["contents"][-1]
        place = dict(zip(content["items"], arranged["shapes"][content["shape"]]["places"], strict=True))
        arrows = [
            (place[f"n{operand}"], place[item])
            for item in place
            if item[0] == "n"
            for operand in data["nodes"][int(item[1:])]["operands"]
            if f"n{operand}" in place
        ]
        assert arrows
        assert all(tail[0] < head[0] for tail, head in arrows)  # from the left to the right

    def test_a_network_in_a_large_graph_is_in_a_part_whole(self):
        data, _ = passes(mg.nn.MLP(1, [3, 1])([tangle(400)]) + tangle(400))
        assert {group["name"].split()[0] for group in data["groups"] if group["parent"] is None} == {"Part"}
        layers = [group for group in data["groups"] if group["name"].startswith("Layer")]
        assert len({layer["parent"] for layer in layers}) == 1
        assert None not in [node["group"] for node in data["nodes"]]

    def test_several_hundred_values_side_by_side_are_laid_out(self):
        data, _ = passes(tangle(240))
        shape = max(arrange(data)["shapes"], key=lambda shape: len(shape["places"]))
        assert len(shape["places"]) > 130
        assert all(0 <= x <= shape["width"] and 0 <= y <= shape["height"] for x, y, _, _ in shape["places"])

    def test_a_weight_is_named_by_layer_and_neuron_where_there_are_several(self):
        model = mg.nn.MLP(2, [2, 1])
        data, nodes = passes(model([1.0, 2.0]) + model([3.0, 4.0]))
        shown = {node: (card["hint"], card["path"]) for node, card in zip(nodes, data["nodes"], strict=True)}
        assert shown[model.layers[0].neurons[1].w[1]] == ("w[1]", "layers[0].neurons[1].w[1]")
        assert shown[model.layers[1].neurons[0].b] == ("b", "layers[1].neurons[0].b")
        assert len({path for _, path in shown.values() if path}) == len(model.parameters())

    def test_what_is_side_by_side_stands_in_its_order_from_the_top_down(self):
        weights = [[Value(0.1), Value(0.2)], [Value(0.3), Value(0.4)], [Value(0.5), Value(0.6)]]
        inputs = [Value(1.0, label="x0"), Value(-1.0, label="x1")]
        data = passes(sum(mg.tanh(mg.dot(row, inputs)) ** 2 for row in weights))[0]
        data |= arrange(data)
        (whole, *_), names = data["contents"], [primitive["name"] for primitive in data["primitives"]]
        heights = {"tanh": [], "pow": []}
        for (_, y, _, _), item in zip(data["shapes"][whole["shape"]]["places"], whole["items"], strict=True):
            primitive = data["nodes"][int(item[1:])]["primitive"] if item[0] == "n" else None
            if primitive is not None and names[primitive] in heights:
                heights[names[primitive]].append(y)
        assert heights == {name: sorted(found) for name, found in heights.items()}
        assert [len(found) for found in heights.values()] == [3, 3]

    def test_inputs_stand_in_their_order(self):
        for sizes in [(2, [3, 1]), (3, [4, 4, 1]), (2, [5, 2])]:
            output = mg.nn.MLP(*sizes)([Value(0.1 * place, label=f"x{place}") for place in range(sizes[0])])
            page = passes(sum(output) if isinstance(output, list) else output)[0]
            data = page | arrange(page)
            whole = data["contents"][0]
            heights = [
                data["shapes"][whole["shape"]]["places"][place][1]
                for place, item in enumerate(whole["items"])
                if item[0] == "n" and data["nodes"][int(item[1:])]["label"].startswith("x")
            ]
            assert len(heights) == sizes[0]
            assert heights == sorted(heights)

    def test_parameters_of_any_module_are_in_boxes_by_attribute_and_matrices_have_their_shape(self):
        class Head(mg.nn.Module):
            def __init__(self):
                self.query = [[Value(0.1 * row + column) for column in range(3)] for row in range(4)]
                self.parts = {"gain": Value(2.0)}

            def __call__(self, x):
                return [mg.dot(row, x) * self.parts["gain"] for row in self.query]

        head = Head()
        data, nodes = passes(sum(head([1.0, 2.0, 3.0])) + sum(head([1.0, 2.0, 4.0])))
        boxes = {group["name"]: group for group in data["groups"] if group["kind"] == "parameters"}
        assert boxes.keys() == {"Parameters", "query", "parts['gain']"}
        assert boxes["query"]["shape"] == (4, 3)
        sizes = [tuple(place[2:]) for shape in arrange(data)["shapes"] for place in shape["places"]]
        assert (165, 138) in sizes  # 4 rows of 22.5 points, and twice 3 columns
        card = data["nodes"][nodes.index(head.query[3][1])]
        assert (card["hint"], card["indices"]) == ("query[3][1]", (3, 1))
        assert [group["name"] for group in data["groups"] if group["kind"] == "stack"] == ["Sample"]

    def test_what_is_in_a_module_in_a_module_has_the_name_that_the_outer_one_gives_it(self):
        class Line(mg.nn.Module):
            def __init__(self):
                self.slope = Value(2.0)

            def __call__(self, x):
                return mg.tanh(self.slope * x)

        class Twice(mg.nn.Module):
            def __init__(self):
                self.line = Line()

            def __call__(self, x):
                return self.line(self.line(x))

        data, _ = passes(Twice()(3.0))
        assert "line.slope" in [node["hint"] for node in data["nodes"]]

    def test_many_leaves_without_a_name_are_in_a_box(self):
        weights = [Value(float(x)) for x in range(9)]
        data, _ = passes(mg.tanh(weights[0]) * sum(map(mg.exp, weights)))
        assert "Leaves" in [group["name"] for group in data["groups"]]
        few, _ = passes(mg.tanh(weights[0]) * sum(map(mg.exp, weights[:8])))
        assert "Leaves" not in [group["name"] for group in few["groups"]]

    def test_samples_are_a_stack_with_the_loss_of_each_beside_its_network(self):
        model = mg.nn.MLP(3, [4, 4, 1], activation="tanh")
        outputs = [model([1.0 * k, 2.0, -1.0]) for k in range(4)]
        data, _ = passes(sum((output - 1) ** 2 for output in outputs))
        top = [(group["kind"], group["name"]) for group in data["groups"] if group["parent"] is None]
        assert top == [("parameters", "Parameters"), ("stack", "Sample"), ("sum", "sum of 4")]
        first = next(index for index, group in enumerate(data["groups"]) if group["name"] == "Sample 1")
        inside = [group["name"] for group in data["groups"] if group["parent"] == first]
        assert inside == ["Network"]
        loose = [node for node in data["nodes"] if node["group"] == first and node["kind"] == "result"]
        assert [data["primitives"][node["primitive"]]["name"] for node in loose] == ["sub", "pow"]

    def test_steps_that_feed_each_other_have_their_losses_with_them(self):
        @mg.scope
        def cell(state, x, weight):
            return mg.tanh(state * weight + x)

        weight, state, total = Value(0.5, label="weight"), Value(0.0, label="state"), Value(0.0)
        targets = [Value(0.1 * turn, label=f"target {turn}") for turn in range(4)]
        for turn in range(4):
            state = cell(state, 1.0 * turn, weight)
            total = total + (state - targets[turn]) ** 2
        data, nodes = passes(total * weight)
        kinds = {group["name"]: group["kind"] for group in data["groups"]}
        assert kinds == {"Step": "stack"} | {f"Step {turn}": "run" for turn in (1, 2, 3, 4)} | {
            "cell": "run",
            "sum of 5": "sum",
        }
        boxes = [data["groups"][data["nodes"][nodes.index(target)]["group"]]["name"] for target in targets]
        assert boxes == ["Step 1", "Step 2", "Step 3", "Step 4"]

    def test_what_only_some_samples_have_stays_outside_of_them(self):
        @mg.scope
        def half(x):
            return x / 2.0

        halves = [half(Value(1.0 * k, label=f"x{k}")) for k in range(3)]
        losses = [mg.exp(halves[0]), mg.exp(halves[1]), mg.sin(halves[2])]
        data, _ = passes(losses[0] * losses[1] * losses[2])
        assert {group["name"] for group in data["groups"]} == {"half", "half 1", "half 2", "half 3"}
        shared = halves[0] * halves[1]  # what two samples meet in is of neither
        data, _ = passes(mg.exp(shared) * halves[2])
        assert {group["name"] for group in data["groups"]} == {"half", "half 1", "half 2", "half 3"}

    def test_inside_of_a_function_they_are_branches(self):
        @mg.scope
        def head(x):
            return mg.softmax([x, x * 2.0])[0] * x

        @mg.scope
        def heads(x):
            return head(x) * 2.0 + head(x * 3.0) * 2.0

        data, _ = passes(heads(Value(1.0)))
        assert {"Branch", "Branch 1", "Branch 2"} <= {group["name"] for group in data["groups"]}

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_samples_of_many_calls_are_found_fast_enough(self):
        @mg.scope
        def square(x):
            return x * x

        data, _ = passes(sum(mg.tanh(square(Value(0.001 * k, label="x")) - 1.0) for k in range(1500)))
        assert len([group for group in data["groups"] if group["name"].startswith("Sample ")]) == 1500

    def test_a_matrix_times_a_vector_is_a_vector_of_dot_products(self):
        rows = [[Value(1.0 * row + column) for column in range(5)] for row in range(6)]
        x = [Value(0.5) for _ in range(5)]
        data, _ = passes(mg.maximum(*[mg.dot(row, x) for row in rows]))
        kinds = [group["kind"] for group in data["groups"]]
        assert kinds.count("dot") == 6
        (vector,) = [group for group in data["groups"] if group["kind"] == "vector"]
        assert (vector["name"], vector["shape"]) == ("dot of 5", (6,))

    def test_two_stages_of_one_function_are_no_stack_and_steps_of_a_state_are(self):
        @mg.scope
        def halved(x):
            return x / 2 + 1

        apart, _ = passes(halved(mg.exp(halved(Value(1.0)))))
        assert [group["name"] for group in apart["groups"]] == ["halved", "halved"]
        y = Value(1.0)
        for _ in range(3):
            y = halved(y)
        steps, _ = passes(y * 2)
        names = [(group["name"], group["kind"]) for group in steps["groups"]]
        assert names == [("halved", "stack"), ("halved 1", "run"), ("halved 2", "run"), ("halved 3", "run")]

    def test_the_iterations_of_a_plain_loop_are_a_stack(self):
        weight, state = Value(0.5, label="weight"), Value(0.1)
        for k in range(30):
            state = mg.tanh(weight * state + 0.1 * k)
        data, _ = passes(state)
        (stack,) = [group for group in data["groups"] if group["kind"] == "stack"]
        assert stack["name"] == "Step"
        assert len([group for group in data["groups"] if group["name"].startswith("Step ")]) == 29
        sizes = [len(content["items"]) for content in arrange(data)["contents"]]
        assert max(sizes) == 29  # the first is apart: nothing went before it

    def test_what_is_done_to_many_numbers_is_no_loop(self):
        data, _ = passes(mg.maximum(*[mg.relu(Value(float(x))) for x in range(60)]))
        assert [group["kind"] for group in data["groups"]].count("vector") == 1

    def test_the_values_of_a_box_follow_each_other_and_operands_come_first(self):
        model = mg.nn.MLP(2, [4, 4, 1])
        data, _ = passes(model([1.0, 2.0]) * model([3.0, 4.0]))
        for index, node in enumerate(data["nodes"]):
            assert all(operand < index for operand in node["operands"])
        path = [node["group"] for node in data["nodes"] if node["primitive"] is not None]
        runs = [group for group, before in zip(path, [None, *path], strict=False) if group != before]
        assert len(runs) == len(set(runs))

    def test_boxes_that_feed_each_other_keep_the_order_of_the_program(self):
        memory: list[Value] = []

        @mg.scope
        def write(x):
            memory.append(mg.exp(x))
            return x * 2

        @mg.scope
        def read():
            return memory[-1] + 1

        first = write(Value(1.0))
        other = read()
        second = mg.scope("both")(lambda x, y: (x * y, memory.append(mg.sin(y)))[0])(first, other)
        data, _ = passes(second + read())
        for index, node in enumerate(data["nodes"]):
            assert all(operand < index for operand in node["operands"])

    def test_a_plain_number_is_in_the_operation_that_alone_uses_it(self):
        named = Value(3.0, label="c", requires_grad=False)
        data, _ = passes(Value(1.0, label="x") * 2 + named)
        assert [node["folded"] for node in data["nodes"] if node["kind"] == "constant"] == [2, None]
        (shape,) = arrange(data)["shapes"]
        assert len(shape["places"]) == len(data["nodes"]) - 1

    def test_a_square_has_two_arrows(self):
        x = Value(3.0)
        (shape,) = arrange(passes(x * x)[0])["shapes"]
        assert [route[:2] for route in shape["routes"]] == [[0, 1], [0, 1]]

    def test_neurons_alike_share_one_layout(self):
        data, _ = passes(mg.nn.MLP(2, [16, 16, 1])([1.0, 2.0]))
        assert len([group for group in data["groups"] if group["kind"] in ("layer", "neuron")]) == 35
        assert len(arrange(data)["shapes"]) <= 6


def chain(length):
    """Operations one after the other, none of which repeats; x is used now and again."""
    generator = random.Random(0)
    x = y = Value(0.3, label="x")
    for place in range(length):
        y = generator.choice([mg.sin, mg.cos, mg.tanh, mg.exp])(y) + (x if place % 20 == 0 else 0.1 * place)
    return y


class TestPage:
    def test_is_one_file_that_refers_to_nothing_outside(self, tmp_path):
        explored(Value(1.0) * 2, tmp_path)
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert re.findall(r"""(?:src|href)\s*=|@import|url\((?!"#)""", text) == []
        assert set(re.findall(r"https?://[^\s\"']*", text)) == {"http://www.w3.org/2000/svg"}

    @pytest.mark.parametrize(
        "label", ["</script><script>alert(1)</script>", "<!--DATA-->", "\ud800 \x00 \u2028", "𝒳{a|b}"]
    )
    def test_holds_any_label_and_title(self, tmp_path, label):
        data = explored(Value(1.0, label=label) * 2, tmp_path, title=label)
        (shown,) = {node["label"] for node in data["nodes"]} - {""}
        assert shown == label.replace("\ud800", "\\ud800").replace("\x00", "\\x00")
        assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<script") == 2

    @pytest.mark.parametrize(
        ("typed", "shown"),
        [
            ("plain", "plain"),
            ("\u202eleft", "\u202eleft\u202c"),
            ("a\u2069\u202cb", "ab"),  # ends of what began elsewhere
            ("\u2067in\u202eand", "\u2067in\u202eand\u202c\u2069"),
            ("\u2067in\u202eand\u2069out", "\u2067in\u202eand\u2069out"),
            ("\u202e\u2067in\u202cout", "\u202e\u2067inout\u2069\u202c"),
            ("\u202eone\ntwo\u202c", "\u202eone\u202c\ntwo"),
            ("", ""),
        ],
    )
    def test_what_turns_the_direction_of_writing_ends_in_its_label(self, tmp_path, typed, shown):
        assert enclosed(typed) == shown
        assert enclosed(shown) == shown
        data = explored(Value(1.0, label=typed) * 2, tmp_path, title=typed)
        assert sorted(node["label"] for node in data["nodes"])[-1] == shown

    def test_what_is_too_large_is_refused_and_nothing_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys.modules["micrograd.pages"], "NODE_LIMIT", 2)
        with pytest.raises(ValueError, match="explore a part of it"):
            mg.explore(Value(1.0) * 2, tmp_path / "page.html")
        assert list(tmp_path.iterdir()) == []

    def test_without_a_path_a_notebook_shows_the_same_page(self, tmp_path):
        root = Value(1.0, label='"><script>alert(1)</script>') * 2
        data = explored(root, tmp_path, title="<\ud800")
        page = mg.explore(root, title="<\ud800")
        assert page.html == (tmp_path / "page.html").read_text(encoding="utf-8")
        assert repr(page) == "InlinePage('<\\ud800')"
        frame = ElementTree.fromstring(page._repr_html_())
        assert frame.get("srcdoc").split() == page.html.split()  # XML has no lines in attributes
        assert frame.get("sandbox") == "allow-scripts allow-downloads"
        assert frame.get("title") == "<\\ud800"
        assert len(data["nodes"]) == 3

    def test_without_graphviz_the_error_says_what_to_install(self):
        code = (
            "import sys; sys.modules['graphviz'] = None\n"
            "import micrograd as mg\n"
            "try: mg.explore(mg.Value(1.0), 'page.html')\n"
            "except ImportError as error: print(error)"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "pip install graphviz pygraphviz" in run.stdout

    def test_a_single_leaf_and_a_constant(self, tmp_path):
        assert explored(Value(1.0), tmp_path)["backward"]
        assert not explored(Value(1.0, requires_grad=False), tmp_path)["backward"]


def trained(steps=7, **options):
    random.seed(0)
    model = mg.nn.MLP(2, [2, 1])
    points = [([x, y], 1 if x > y else -1) for x, y in ((0.0, 1.0), (1.0, 0.0), (0.5, 0.2))]
    recording = mg.Recording(model, [place for place, _ in points], [side for _, side in points], **options)
    start = [parameter.data for parameter in model.parameters()]
    history = mg.fit(
        lambda place, side: mg.losses.hinge(model(place), side),
        points * (steps // 3 + 1),
        mg.optim.SGD(model.parameters(), 0.1),
        batch_size=1,
        record=recording,
        seed=1,
    )
    return model, recording, history, start


class TestRecording:
    def test_has_the_losses_and_the_numbers_before_and_after_each_step(self):
        model, recording, history, start = trained()
        assert recording.losses == history.steps
        frames = recording.frames()
        assert [step for step, _ in frames] == list(range(len(history.steps) + 1))
        assert frames[0][1] == start
        assert frames[-1][1] == [parameter.data for parameter in model.parameters()]

    def test_a_long_run_is_thinned_evenly_and_ends_with_the_last_step(self):
        _, recording, history, _ = trained(steps=100, frames=10)
        steps = [step for step, _ in recording.frames()]
        assert 5 <= len(steps) <= 11
        assert steps[0] == 0
        assert steps[-1] == len(history.steps)
        assert len({after - before for before, after in pairwise(steps[:-1])}) == 1

    def test_the_recording_has_the_frames_and_leaves_the_model_as_it_is(self, tmp_path):
        model, recording, _, _ = trained()
        before = [(parameter.data, parameter.grad) for parameter in model.parameters()]
        data = explored(recording, tmp_path)
        assert [(parameter.data, parameter.grad) for parameter in model.parameters()] == before
        assert len(data["recording"]["frames"]) == len(recording.frames())
        assert data["recording"]["losses"] == [[step, loss] for step, loss in enumerate(recording.losses, 1)]
        raw = base64.b64decode(data["recording"]["numbers"])
        numbers = struct.unpack(f"<{len(raw) // 8}d", raw)[: len(model.parameters())]
        assert [*numbers] == [data["nodes"][node]["data"] for node in data["recording"]["parameters"]]

    def test_the_recording_of_a_large_network_has_fewer_frames_the_first_and_the_last_among_them(
        self, tmp_path, monkeypatch
    ):
        model, recording, history, _ = trained()
        whole = explored(recording, tmp_path)["recording"]["frames"]
        monkeypatch.setattr(sys.modules["micrograd.pages.recording"], "MOST_NUMBERS", 3 * len(model.parameters()))
        steps = [frame["step"] for frame in explored(recording, tmp_path)["recording"]["frames"]]
        assert 2 < len(steps) <= 4 < len(whole)
        assert (steps[0], steps[-1]) == (0, len(history.steps))

    def test_a_recording_of_several_outputs_starts_from_their_sum(self, tmp_path):
        model = mg.nn.MLP(2, [3])
        recording = mg.Recording(model, [[1.0, 2.0]])
        recording.step(1.0)
        data = explored(recording, tmp_path)
        hints = {node["hint"] for node in data["nodes"]}
        assert {"output 1", "output 2", "output 3", "sum of outputs"} <= hints
        assert data["nodes"][data["root"]]["data"] == sum(output.data for output in model([1.0, 2.0]))

    def test_a_recording_of_what_is_no_network_of_values_is_refused(self, tmp_path):
        class Constant(mg.nn.Module):
            def __call__(self, inputs):
                return 1.0

        recording = mg.Recording(Constant(), [[1.0]])
        recording.step(1.0)
        with pytest.raises(TypeError, match="the network must give Values, not float"):
            mg.explore(recording, tmp_path / "recording.html")


class TestNotebooks:
    def test_a_module_shows_its_parameters_as_a_table(self):
        table = ElementTree.fromstring(mg.nn.MLP(2, [3, 1])._repr_html_())
        rows = [[cell.text for cell in row] for row in table.iter("tr")]
        assert [row[:2] for row in rows] == [["name", "parameters"], ["layers.0", "9"], ["layers.1", "4"]]
        assert table.find("caption").text == "MLP: 13 parameters"

    def test_names_are_shown_as_typed(self):
        module = mg.nn.Module()
        setattr(module, "<b>\ud800", Value(1.0))
        (row,) = ElementTree.fromstring(module._repr_html_()).find("tbody")
        assert row[0].text == "<b>\\ud800"

    def test_a_module_of_many_lists_is_cut(self):
        module = mg.nn.Module()
        for place in range(100):
            setattr(module, f"p{place}", Value(1.0))
        assert "and 70 more" in module._repr_html_()

    @pytest.mark.parametrize(
        ("steps", "epochs", "texts"),
        [
            ([4.0, 3.0, 2.0, 1.0], [3.5, 1.5], ["3.5", "1.5", "loss", "epoch 2"]),
            ([100.0, 1.0], [], ["100", "1", "loss, on a logarithmic scale", "step 2"]),
            ([100.0, 1.0, 0.0], [], ["100", "0", "loss", "step 3"]),
            ([2.0, 2.0, 2.0], [], ["2", "2", "loss", "step 3"]),
            ([9.0] + [2.0] * 1000, [], ["9", "2", "loss", "step 1,001"]),
        ],
    )
    def test_a_history_shows_its_curve(self, steps, epochs, texts):
        history = mg.training.History()
        assert "0 epochs" in history._repr_html_()
        history.steps, history.epochs = steps, epochs
        drawing = ElementTree.fromstring(history._repr_html_())
        assert [text.text for text in drawing.iter("text")] == texts

    @pytest.mark.parametrize("losses", [[123456.7, 1.234e-5], [-1.234e-5, -2.5e-7], [1.5, 0.1], [1e300, 1e-300]])
    def test_labels_and_curve_are_inside_of_the_picture(self, losses):
        history = mg.training.History()
        history.steps = losses
        drawing = ElementTree.fromstring(history._repr_html_())
        for text in list(drawing.iter("text"))[:2]:
            assert float(text.get("x")) - 7 * len(text.text) >= 0  # no digit of 11 pixels is wider than 7
        curve = [path.get("d") for path in drawing.iter("path")][1]
        numbers = [float(number) for number in re.findall(r"[-\d.einfa]+", curve)]
        assert all(0 <= x <= 420 for x in numbers[::2])
        assert sorted(numbers[1::2]) == [10, 136]

    def test_the_tutorial_runs_and_shows_what_it_says(self, tmp_path, monkeypatch):
        """Each cell runs in turn; what its last line gives is shown, in the kind of output the file has."""
        import ast

        monkeypatch.chdir(tmp_path)
        notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
        names, shown = {"__name__": "__main__"}, []
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
            kinds = {kind for output in cell["outputs"] for kind in output.get("data", {})}
            for kind, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
                assert (kind in kinds) == bool(getattr(value, method, lambda: None)()), cell["source"]
            texts = ["".join(output["data"]["text/plain"]) for output in cell["outputs"] if "data" in output]
            assert texts == ([] if value is None else [repr(value)]), cell["source"]
            shown += kinds
        assert {"image/svg+xml", "text/html"} <= set(shown)
        assert (tmp_path / "page.html").exists()
        assert (tmp_path / "recording.html").exists()


def test_pages_and_pictures_need_no_numpy(tmp_path):
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import micrograd as mg\n"
        "net = mg.nn.MLP(2, [3, 1])\n"
        "examples = [([1.0, 2.0], 1.0), ([0.5, -1.0], -1.0)]\n"
        "recording = mg.Recording(net, *zip(*examples))\n"
        "loss = lambda point, side: (net(point) - side) ** 2\n"
        "mg.fit(loss, examples, mg.optim.Adam(net.parameters(), 0.1), epochs=4, record=recording)\n"
        "mg.explore(recording, 'recording.html')\n"
        "mg.explore(loss(*examples[0]), 'page.html')\n"
        "mg.save(loss(*examples[0]), 'picture.svg', fold=True)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)
    assert {path.name for path in tmp_path.iterdir()} >= {"recording.html", "page.html", "picture.svg"}
