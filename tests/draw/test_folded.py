"""Folded pictures: what repeats is one box."""

import math
import random
import re
from xml.etree import ElementTree

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.draw import graph as draw
from micrograd.draw.folded import GROUND
from micrograd.draw.opening import LONGEST, WIDEST
from micrograd.draw.strip import heat_map, strip
from tests.draw.test_draw import SVG, chain, drawn, lines, texts, tint, tooltip

pytestmark = pytest.mark.slow(together=True)


def titles(root, **options):
    """The first line of each card and each box in a folded picture, from the left to the right."""
    picture = ElementTree.fromstring(draw.draw_dot(root, fold=True, **options).pipe())
    return sorted(
        " ".join(" ".join(lines(element)).split(" data ")[0].split())
        for element in picture.iter(f"{SVG}g")
        if element.get("class") in ("cluster", "node box", "node leaf", "node result", "node constant")
    )


def loss_of_network():
    random.seed(0)
    model = mg.nn.MLP(3, [4, 4, 1], activation="tanh")
    samples = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    return sum((model(x) - y) ** 2 for x, y in zip(samples, [1.0, -1.0, -1.0, 1.0], strict=True))


def arrows(root, **options):
    """The arrows of a folded picture, as pairs of the titles of cards and boxes."""
    source = draw.draw_dot(root, fold=True, **options).source
    tables = re.findall(r"(item\d+) \[label=<(.*)> class=", source)
    title = {name: re.sub("<[^>]*>", "", table).partition("data")[0].strip() for name, table in tables}
    pairs = re.findall(r"(item\d+) -> (item\d+)\b(?! \[style=invis)", source)
    return [(title[tail], title[head]) for tail, head in pairs]


class TestFolded:
    def test_a_recurrent_chain_is_one_box_and_says_how_many_steps_there_are(self):
        w = Value(0.5, label="w")
        state = Value(0.25, label="start")
        for _ in range(499):
            state = mg.tanh(w * state)
        state.backward()
        assert len(mg.topological_order(state)) == 1000
        shown = titles(state)
        assert {"w", "start", "tanh"} <= set(shown)
        assert [title for title in shown if re.fullmatch(r"Step × 49\d", title)]
        assert len(shown) < 10
        assert "1,000 Values" in texts(state)

    def test_a_network_is_layers_of_neurons_and_its_samples_are_one(self):
        root = loss_of_network()
        root.backward()
        shown = titles(root)
        assert [title for title in shown if "Layer" in title] == [
            "Layer 1",
            "Layer 1",
            "Layer 2",
            "Layer 2",
            "Layer 3",
            "Layer 3",
        ]
        assert [title for title in shown if "Neuron" in title] == [f"Neuron {k}" for k in (1, 1, 2, 2, 3, 3, 4, 4)]
        assert {"Parameters", "Sample × 4", "Network", "sum of 4"} <= set(shown)

    def test_parameters_have_one_arrow_and_neurons_one_from_each_before_them(self):
        found = arrows(loss_of_network())
        assert ("− 1", "** 2") in found
        assert len([tail for tail, head in found if tail.startswith("Neuron") and head.startswith("Neuron")]) == 16
        assert len([tail for tail, _ in found if tail.startswith("Layer")]) == 2  # of the parameters, and of the last

    def test_a_box_shows_its_number_its_gradient_or_its_numbers_as_colours(self):
        root = loss_of_network()
        root.backward()
        boxes = {" ".join(lines(box)): box for box in drawn(root)["box"]}
        (sum_of_4,) = (box for title, box in boxes.items() if title.startswith("sum of 4"))
        assert lines(sum_of_4) == ["sum of 4", "data", draw_number(root.data), "grad", "1"]
        assert tint(sum_of_4) != "white"
        root = sum(mg.exp(mg.tanh(Value(0.5 * place) - 1.5)) for place in range(4))
        root.backward()
        boxes = {" ".join(lines(box)): box for box in drawn(root, fold=True)["box"]}
        (vector,) = (box for title, box in boxes.items() if title.startswith("x − 1.5"))
        assert len(colours(vector)) == 2 * 4
        assert tooltip(vector).startswith("x − 1.5: ")

    def test_the_result_of_many_in_a_box_is_a_number_too(self):
        root = chain(998)
        (box,) = drawn(root)["box"]
        assert lines(box)[-2:] == ["result", draw_number(root.data)]

    def test_steps_show_a_strip_of_what_each_gave(self):
        root = chain(60)
        (box,) = drawn(root, fold=True)["box"]
        assert len(colours(box)) == 2 * 59

    def test_a_matrix_of_parameters_is_a_heat_map(self):
        class Linear(mg.nn.Module):
            def __init__(self):
                self.weights = [[Value(row - column) for column in range(3)] for row in range(6)]
                self.rows = [Value(1.0), [Value(2.0), Value(3.0)]]  # no matrix, though it begins as one

            def __call__(self, x):
                return [
                    mg.tanh(mg.dot(row, x) * self.rows[1][1] + self.rows[0] * self.rows[1][0]) for row in self.weights
                ]

        linear = Linear()
        root = sum(linear([1.0, 2.0, 3.0])) + sum(linear([1.0, 2.0, 4.0]))
        boxes = {lines(box)[0]: box for box in drawn(root, fold=True)["box"]}
        assert len(colours(boxes["weights"])) == 2 * 6 * 3
        assert len(colours(boxes["rows"])) == 2 * 3

    def test_many_matrices_stand_in_columns(self):
        class Many(mg.nn.Module):
            def __init__(self):
                for name in "abcdefghi":
                    setattr(self, name, [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]])

            def __call__(self, x):
                return sum(mg.tanh(mg.dot(row, x)) for matrix in vars(self).values() for row in matrix)

        many = Many()
        source = draw.draw_dot(many([1.0, 2.0]) * many([3.0, 4.0]), fold=True).source
        assert source.count("style=invis") == 6  # from the first column to the second, and on to the third

    def test_formulas_of_known_functions_stand_beside_their_names(self):
        shares = mg.softmax([Value(0.1 * k, label=f"x{k}") for k in range(5)])
        assert "softmax = exp(x) / Σ exp(x)" in titles(mg.mean(shares))

    def test_plain_numbers_stand_in_their_operations(self):
        a = Value(3.0, label="a")
        assert titles(2 / (a * 3 - 1)) == sorted(["2 ÷", "a", "× 3", "− 1"])
        assert titles(a**2 + mg.leaky_relu(a, 0.1)) == sorted(["** 2", "+", "a", "leaky_relu"])

    def test_constants_with_a_name_are_small(self):
        rate = Value(0.5, label="rate", requires_grad=False)
        (constant,) = drawn(Value(3.0) * rate + rate, fold=True)["constant"]
        assert lines(constant) == ["rate = 0.5"]

    def test_a_number_that_several_use_is_a_card_of_its_own(self):
        two = Value(2.0, requires_grad=False)
        (constant,) = drawn(Value(3.0) * two + two, fold=True)["constant"]
        assert lines(constant) == ["2"]

    def test_a_leaf_alone_is_drawn(self):
        assert [lines(leaf) for leaf in drawn(Value(2.0, label="x"), fold=True)["leaf"]] == [
            ["x", "data", "2", "grad", "—"]
        ]

    def test_weights_have_the_names_of_their_places(self):
        random.seed(0)
        model = mg.nn.MLP(2, [2, 1])
        found = titles(model([1.0, 2.0]))
        assert {"Neuron 2", "Layer 2"} <= set(found)
        found = titles(model.layers[1]([1.0, 2.0]) + model.layers[0].neurons[0].w[1])
        assert {"w[0]", "w[1]", "b"} <= set(found)
        picture = drawn(mg.nn.Neuron(2)([1.0, 2.0]), fold=True)
        assert sorted(tooltip(leaf).partition(":")[0] for leaf in picture["leaf"]) == ["b", "w[0]", "w[1]"]

    def test_in_the_box_of_a_neuron_weights_have_short_names_and_their_full_ones_when_pointed_at(self):
        random.seed(0)
        layer = mg.nn.Layer(1, 2)
        picture = drawn(sum(layer([3.0])), fold=True)
        leaves = {tooltip(leaf).partition(":")[0]: lines(leaf)[0] for leaf in picture["leaf"]}
        assert leaves == {
            "neurons[0].w[0]": "w[0]",
            "neurons[0].b": "b",
            "neurons[1].w[0]": "w[0]",
            "neurons[1].b": "b",
        }

    def test_scopes_stand_in_each_other(self):
        @mg.scope
        def inner(x):
            return mg.tanh(x * 2)

        @mg.scope("the outer one")
        def outer(x):
            return mg.exp(inner(x)) + x

        shown = titles(outer(Value(1.0, label="x")))
        assert {"the outer one", "inner"} <= set(shown)

    def test_a_loop_in_a_part_is_one_box_in_the_box_of_that_part(self):
        w = Value(0.5, label="w")

        @mg.scope
        def recurrence(state):
            for _ in range(25):
                state = mg.tanh(w * state)
            return mg.exp(state)

        result = recurrence(recurrence(Value(0.25, label="start")))
        shown = titles(result)
        assert [title for title in shown if title.startswith("recurrence")] == ["recurrence × 2"]
        assert [title for title in shown if title.startswith("Step")] == ["Step × 24"]
        assert len(shown) < 12

    @pytest.mark.parametrize(
        ("factors", "title"),
        [([3.0] * 5, "x × 3 × 5"), ([3.0, 4.0, 5.0, 6.0, 7.0], "x × y × 5"), ([Value(3.0)] * 5, "x × y × 5")],
        ids=["one constant", "several", "none"],
    )
    def test_a_vector_names_the_constant_that_all_its_elements_share(self, factors, title):
        xs = [Value(float(number), label=f"x{number}") for number in range(5)]
        assert title in titles(sum(mg.exp(x * factor) for x, factor in zip(xs, factors, strict=True)))

    def test_what_a_stack_does_not_show_is_led_to_by_the_arrow_of_its_frame(self):
        @mg.scope
        def part(x, bias):
            return mg.exp(mg.tanh(x) + bias)

        xs = [Value(0.1 * k, label=f"x{k}") for k in range(3)]
        late = mg.sin(Value(2.0, label="late"))
        root = part(xs[0], 1.0) + part(xs[1], 2.0) * mg.cos(part(xs[2], late))
        source = draw.draw_dot(root, fold=True).source
        assert re.search(r"lhead=\"?cluster", source)  # of late, which only the third part uses
        assert re.search(r"ltail=\"?cluster", source)  # to cos, which uses the third part
        assert titles(root).count("tanh") == 1

    def test_a_picture_stays_small_enough_to_be_read(self):
        """The estimate of a picture's size is generous."""
        for root in (loss_of_network(), chain(998)):
            picture = ElementTree.fromstring(draw.draw_dot(root).pipe())
            assert float(picture.get("width")[:-2]) < LONGEST
            assert float(picture.get("height")[:-2]) < WIDEST

    def test_top_to_bottom_opens_other_boxes_and_leads_down(self):
        picture = ElementTree.fromstring(draw.draw_dot(mg.exp(mg.sin(Value(1.0) * 2)), rankdir="TB", fold=True).pipe())
        assert float(picture.get("width")[:-2]) < float(picture.get("height")[:-2])
        assert "Sample × 4" in titles(loss_of_network(), rankdir="TB")

    def test_arrows_lead_to_all_samples_and_from_all_of_them_and_inside_of_the_one_that_is_shown(self):
        model = mg.nn.MLP(2, [2, 1])
        samples = [[1.0, 2.0], [2.0, 3.0], [3.0, 1.0]]
        source = draw.draw_dot(mg.mean([mg.losses.hinge(model(x), 1) for x in samples]), fold=True).source
        assert source.count("subgraph") > 1
        ends = [re.findall("lhead|ltail", line) for line in source.splitlines() if "lhead" in line or "ltail" in line]
        assert ends == [["lhead", "ltail"], ["ltail"]]  # of the parameters, and to the mean

    def test_operations_written_by_hand_are_folded_too(self):
        out = Value(2.0)
        for _ in range(250):
            out = Value(out.data * 1.01, (out,), "grow")
        assert [title for title in titles(out) if title.startswith("Step × ")]

    def test_a_tangle_is_drawn_in_parts(self):
        generator = random.Random(0)
        values = [Value(generator.random(), label=f"x{place}") for place in range(20)]
        for place in range(700):
            values.append(mg.hypot(values[place], generator.choice(values) * generator.choice([2.0, values[place]])))
        assert "Part 1" in titles(values[-1])

    def test_drawing_changes_no_number_and_the_same_graph_is_drawn_the_same(self):
        root = loss_of_network()
        root.backward()
        before = [(node.data, node.grad) for node in mg.topological_order(root)]
        assert draw.draw_dot(root).source == draw.draw_dot(root).source
        assert [(node.data, node.grad) for node in mg.topological_order(root)] == before

    def test_labels_are_no_markup(self):
        @mg.scope("<b>{name}|\\N</b>\n\x00")
        def part(x):
            return mg.exp(x) * mg.tanh(x)

        label = "</td><script>\ud800"
        root = mg.sin(part(Value(1.0, label=label)))
        shown = texts(root, fold=True)
        assert r"<b>{name}|\N</b>" in shown
        assert r"</td><script>\ud800" in shown

    def test_the_text_is_the_same_picture_and_needs_nothing(self, tmp_path):
        from micrograd.draw import layout

        root = loss_of_network()
        draw.save(root, tmp_path / "a.dot")
        text = (tmp_path / "a.dot").read_text(encoding="utf-8")
        assert layout._laid_out(text, "svg", "dot") == draw.draw_dot(root).pipe()

    def test_png_and_pdf_are_drawn(self, tmp_path):
        for suffix in (".png", ".pdf"):
            draw.save(chain(300), tmp_path / f"a{suffix}")
            assert (tmp_path / f"a{suffix}").stat().st_size > 1000

    def test_before_backward_the_picture_says_so(self):
        assert "backward() has not run" in texts(chain(300))
        root = chain(300)
        root.backward()
        assert "backward() has not run" not in texts(root)


class TestOrder:
    @pytest.mark.parametrize("sizes", [(2, [3, 1]), (2, [4, 3, 2]), (3, [5, 5, 3]), (2, [8, 1]), (6, [3, 3, 3])])
    def test_inputs_and_neurons_stand_in_their_order(self, sizes):
        random.seed(0)
        inputs = [Value(0.1 * place, label=f"x{place}") for place in range(sizes[0])]
        output = mg.nn.MLP(*sizes, activation="tanh")(inputs)
        picture = drawn(output if isinstance(output, Value) else sum(output), fold=True)
        assert heights(picture["leaf"], "x") == sorted(heights(picture["leaf"], "x"))
        columns = {}
        for box in picture["box"]:
            if lines(box)[0].startswith("Neuron"):
                columns.setdefault(round(place_of(box)[0] / 60), []).append(box)
        assert len(columns) == len([size for size in sizes[1] if size > 1])
        for neurons in columns.values():
            assert heights(neurons, "Neuron ") == sorted(heights(neurons, "Neuron "))


def place_of(element):
    """Where the first text of an element is."""
    text = next(element.iter(f"{SVG}text"))
    return float(text.get("x")), float(text.get("y"))


def heights(elements, before):
    """How far down each is, in the order of the numbers in their titles."""
    found = {int(lines(each)[0].removeprefix(before)): place_of(each)[1] for each in elements}
    return [found[number] for number in sorted(found)]


class TestWhen:
    def test_a_network_that_is_too_wide_for_a_laptop_is_layers_of_neurons(self):
        random.seed(0)
        root = mg.nn.MLP(2, [3, 1])([Value(0.5, label="x1"), Value(-0.5, label="x2")])
        assert sorted(lines(box)[0] for box in drawn(root)["box"]) == ["Layer 2", "Neuron 1", "Neuron 2", "Neuron 3"]
        picture = ElementTree.fromstring(draw.draw_dot(root).pipe())
        assert float(picture.get("width")[:-2]) * 4 / 3 < 1280
        sizes = [float(text.get("font-size")) * 4 / 3 for text in picture.iter(f"{SVG}text")]
        assert min(sizes) > 11
        assert len(drawn(root, fold=False)["leaf"]) == 2 + 13

    def test_a_small_one_and_an_expression_without_parts_are_drawn_whole(self):
        assert "box" not in drawn(mg.nn.Neuron(2)([1.0, 2.0]))
        assert "box" not in drawn(chain(12))
        assert "box" in drawn(mg.tanh(mg.nn.Neuron(4)([1.0, 2.0, 3.0, 4.0])))

        @mg.scope
        def part(x):
            return mg.tanh(x) * 2

        assert "box" in drawn(part(part(part(part(Value(0.5))))))
        with mg.record_scopes(), mg.scope("block"):
            root = chain(8)
        assert drawn(root)["cluster"]

    def test_graphs_of_more_than_200_nodes_are_folded_where_nothing_else_is_asked(self):
        assert "box" not in drawn(chain(199))
        assert "box" in drawn(chain(200))
        assert len(drawn(chain(250), fold=False)["result"]) == 250
        assert len(drawn(chain(250), depth=4)["result"]) == 5
        assert "box" not in drawn(chain(201), style="micrograd")

    def test_a_graph_whose_arrows_are_long_is_folded_too(self):
        x = f = Value(0.9)
        for _ in range(100):
            f = f * x
        assert "box" in drawn(f)

    def test_a_cycle_is_refused(self):
        a = Value(1.0)
        b = a + 1
        b._first = b
        with pytest.raises(ValueError, match="cycle"):
            draw.draw_dot(b, fold=True)


class TestColours:
    def test_of_more_numbers_than_fit_the_first_the_last_and_some_between_are_shown(self):
        numbers = [0.0] * 1000
        numbers[0], numbers[-1] = 1.0, -1.0
        cells = re.findall(r'bgcolor="(#\w+)"', strip(numbers))
        assert len(cells) < 100
        assert cells[0] != cells[1] == cells[-2] != cells[-1]
        assert heat_map([numbers] * 500).count("<tr>") == heat_map([numbers]).count("<td") < 100

    def test_numbers_that_are_not_finite_have_colours(self):
        nan, inf, minus, large, zero = re.findall(
            r'bgcolor="(#\w+)"', strip([math.nan, math.inf, -math.inf, 1e308, 0.0])
        )
        assert len({nan, inf, minus, zero}) == 4
        assert inf == large
        assert len(set(re.findall(r'bgcolor="(#\w+)"', strip([math.inf, 5e-324])))) == 1


def colours(element):
    """The cells of the strips, or of the heat maps, in a box: what is painted in a colour and has no frame."""
    return [
        polygon
        for polygon in element.iter(f"{SVG}polygon")
        if polygon.get("stroke") == "none" and polygon.get("fill") not in ("white", "none", GROUND)
    ]


def draw_number(number):
    from micrograd.draw.text import readable

    return readable(number)
