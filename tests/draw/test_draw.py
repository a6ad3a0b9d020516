"""Pictures: what is drawn, how it is labelled, and what is refused."""

import math
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.draw import graph as draw
from micrograd.draw import layout
from micrograd.draw.style import GREY, INK
from micrograd.draw.text import readable
from tests.locks import is_held

SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"
XML = b"<?xml"


def drawn(root, **options):
    """The elements of the picture by their class, as the SVG parser finds them."""
    picture = ElementTree.fromstring(draw.draw_dot(root, **options).pipe())
    elements = {}
    for element in picture.iter(f"{SVG}g"):
        if kind := element.get("class"):
            elements.setdefault(kind.removeprefix("node "), []).append(element)
    return elements


def lines(element):
    """The texts of an element, from the top down; Graphviz makes the second of two spaces one that does not break."""
    return [(text.text or "").replace("\xa0", " ") for text in element.iter(f"{SVG}text")]


def texts(root, **options):
    """Every text of the picture in one string."""
    return " ".join(ElementTree.fromstring(draw.draw_dot(root, **options).pipe()).itertext())


def card(root, **options):
    """The lines of the one leaf in a picture."""
    (leaf,) = drawn(root, **options)["leaf"]
    return lines(leaf)


def tooltip(element):
    return next(element.iter(f"{SVG}a")).get(TITLE).replace("\xa0", " ")


def tint(element):
    """The colour behind the gradient of a card."""
    fills = [polygon.get("fill") for polygon in element.iter(f"{SVG}polygon")]
    return [fill for fill in fills if fill not in ("none", INK, GREY)][-1]  # those are lines


def small():
    x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(10.0, label="z")
    f = x * y + z
    f.backward()
    return f


def chain(length):
    x = Value(1.0)
    for _ in range(length):
        x = x.tanh()
    return x


@pytest.fixture
def no_program(monkeypatch, tmp_path):
    """A PATH with nothing on it."""
    monkeypatch.setenv("PATH", str(tmp_path))


class TestTrace:
    def test_nodes_come_after_their_operands_and_root_last(self):
        f = small()
        nodes, edges = draw.trace(f)
        place = {node: index for index, node in enumerate(nodes)}
        assert nodes[-1] is f
        assert all(place[operand] < place[result] for operand, result in edges)

    def test_an_operand_used_twice_gives_two_edges(self):
        a = Value(3.0)
        b = a * a
        assert draw.trace(b) == ([a, b], [(a, b), (a, b)])

    def test_a_leaf_is_a_graph_of_one(self):
        a = Value(3.0)
        assert draw.trace(a) == ([a], [])

    def test_a_plain_number_is_a_node(self):
        nodes, _ = draw.trace(Value(3.0) + 1)
        assert sorted((node.data, node.requires_grad) for node in nodes) == [(1.0, False), (3.0, True), (4.0, True)]


class TestPicture:
    @pytest.mark.slow
    def test_each_value_is_a_card_with_label_data_and_gradient(self):
        found = drawn(small())
        assert sorted(map(lines, found["leaf"])) == [
            ["x", "data", "2", "grad", "-3"],
            ["y", "data", "-3", "grad", "2"],
            ["z", "data", "10", "grad", "1"],
        ]
        assert sorted(map(lines, found["result"])) == [["data", "-6", "grad", "1"], ["data", "4", "grad", "1"]]
        assert sorted(map(lines, found["operation"])) == [["*"], ["+"]]
        assert len(found["edge"]) == 6

    def test_an_operand_used_twice_has_two_arrows(self):
        a = Value(3.0)
        assert len(drawn(a * a)["edge"]) == 3

    def test_a_constant_is_small_and_without_gradient(self):
        (constant,) = drawn(Value(3.0) * 2)["constant"]
        assert lines(constant) == ["2"]
        (constant,) = drawn(Value(3.0) * Value(2.0, label="rate", requires_grad=False))["constant"]
        assert lines(constant) == ["rate = 2"]

    def test_arrows_of_constants_are_dashed(self):
        dashed = [
            path.get("stroke-dasharray") for edge in drawn(Value(3.0) * 2)["edge"] for path in edge.iter(f"{SVG}path")
        ]
        assert sorted(dash is not None for dash in dashed) == [False, False, True]

    def test_operands_are_numbered_where_their_order_matters(self):
        a, b = Value(3.0), Value(2.0)
        for result in (a - b, a / b, a**b, mg.leaky_relu(a, b)):
            assert {"1", "2"} <= set(lines(drawn(result)["operation"][0]))
        for result in (a + b, a * b, mg.maximum(a, b), -a, a.relu()):
            assert lines(drawn(result)["operation"][0]) == [result._op]

    def test_numbered_arrows_end_where_their_number_is(self):
        a, b = Value(3.0, label="a"), Value(2.0, label="b")
        source = draw.draw_dot(a - b).source
        first, second = re.search(r"(\w+) -> \w+:1:w", source)[1], re.search(r"(\w+) -> \w+:2:w", source)[1]
        assert "<b>a</b>" in re.search(rf"{first} \[.*", source)[0]
        assert "<b>b</b>" in re.search(rf"{second} \[.*", source)[0]

    def test_operations_written_by_hand_show_their_symbol(self):
        a = Value(3.0)
        b = Value(9.0, (a,), "<square>")
        b._backward = lambda: None
        assert lines(drawn(b)["operation"][0]) == ["<square>"]
        assert lines(drawn(Value(9.0, (a,)))["operation"][0]) == ["hand-written"]

    def test_blue_is_positive_orange_is_negative_and_larger_is_stronger(self):
        a, b, c, d = (Value(1.0, label=name) for name in "abcd")
        f = a * 1000 + b * 10 - c * 1000 + d * 0
        f.backward()
        tints = {lines(leaf)[0]: tint(leaf) for leaf in drawn(f)["leaf"]}
        red, _, blue = zip(*(bytes.fromhex(tints[name][1:]) for name in "abc"), strict=True)
        assert blue[0] > red[0]
        assert red[2] > blue[2]
        assert red[0] < red[1]
        assert tints["d"] == "white"

    def test_gradients_of_any_size_are_drawn(self):
        values = [Value(1.0) for _ in range(6)]
        f = values[0] * values[1] + values[2] * values[3] + values[4] * values[5]
        f.backward()
        for value, gradient in zip(values, (math.nan, math.inf, -math.inf, 5e-324, -1e308, -0.0), strict=True):
            value.grad = gradient
        shown = {lines(leaf)[-1] for leaf in drawn(f)["leaf"]}
        assert shown == {"nan", "inf", "-inf", "5e-324", "-1e+308", "0"}

    def test_a_gradient_that_is_a_graph_itself_is_drawn_as_its_number(self):
        x = Value(3.0)
        y = x * x
        y.backward(create_graph=True)
        assert card(y) == ["data", "3", "grad", "6"]

    def test_top_to_bottom(self):
        def size(rankdir):
            picture = ElementTree.fromstring(draw.draw_dot(chain(5), rankdir=rankdir).pipe())
            return float(picture.get("width")[:-2]), float(picture.get("height")[:-2])

        assert size("LR")[0] > size("LR")[1]
        assert size("TB")[0] < size("TB")[1]

    def test_numbered_operands_stand_on_the_side_that_arrows_come_from(self):
        source = {rankdir: draw.draw_dot(Value(1.0) - Value(2.0), rankdir=rankdir).source for rankdir in ("LR", "TB")}
        assert [[f":{place}:{side}" in source["LR"] for side in "wn"] for place in (1, 2)] == [[True, False]] * 2
        assert [[f":{place}:{side}" in source["TB"] for side in "wn"] for place in (1, 2)] == [[False, True]] * 2
        assert 'rowspan="2"' in source["LR"]  # the symbol stands beside both numbers
        assert 'colspan="2">' in source["TB"]  # and below both
        assert len(ElementTree.fromstring(draw.draw_dot(Value(1.0) - Value(2.0), rankdir="TB").pipe()))

    def test_the_same_graph_is_drawn_the_same(self):
        assert draw.draw_dot(small()).source == draw.draw_dot(small()).source

    def test_numbers_in_full_are_in_the_tooltip(self):
        value = Value(1 / 3, label="a")
        (leaf,) = drawn(value)["leaf"]
        assert tooltip(leaf) == repr(value)

    def test_drawing_changes_no_number(self):
        f = small()
        before = [(node.data, node.grad) for node in draw.trace(f)[0]]
        draw.draw_dot(f).pipe()
        assert [(node.data, node.grad) for node in draw.trace(f)[0]] == before


class TestNumbers:
    @pytest.mark.parametrize(
        ("number", "shown"),
        [
            (0.0, "0"),
            (-3.0, "-3"),
            (-0.0, "0"),
            (0.1 + 0.2, "0.3000"),
            (0.99999, "1.000"),
            (24.7041, "24.70"),
            (1382.47, "1382.5"),
            (123456.0, "123456"),
            (1234567.0, "1.235e+06"),
            (1.23456e-300, "1.235e-300"),
            (5e-324, "5e-324"),
            (math.inf, "inf"),
            (-math.inf, "-inf"),
            (math.nan, "nan"),
        ],
    )
    def test_are_short_and_true(self, number, shown):
        assert card(Value(number))[1] == shown

    @given(st.floats(-1e308, 1e308))
    def test_are_right_to_four_digits_and_never_long(self, number):
        shown = readable(number)
        assert len(shown) <= 11
        assert float(shown) == pytest.approx(number, rel=6e-4, abs=5e-324)
        assert math.copysign(1, float(shown)) == math.copysign(1, number + 0.0)  # a zero has no sign


def is_shown_as_typed(character):
    return unicodedata.category(character) not in ("Cc", "Cs") and character not in "\ufffe\uffff"


class TestLabels:
    @pytest.mark.parametrize(
        "label",
        [
            "{a|b}<x>",
            'say "hi" it\'s',
            "\\",
            "\\N \\G \\L \\\\ \\",
            "<script>alert(1)</script>",
            "</td></tr>",
            "<b>bold</b>",
            "&amp; &lt; &#65; &",
            "😀 👩‍👩‍👧 é e\u0301",
            "שלום עולם \u202eabc",
            "a   b ",
            "  ",
            "]]> --> <!-- %d {}",
            "x" * 60,
        ],
    )
    def test_are_shown_as_typed(self, label):
        value = Value(2.0, label=label)
        assert card(value) == [label, "data", "2", "grad", "0"]
        assert label in " ".join(lines(drawn(Value(2.0, label=label, requires_grad=False))["constant"][0]))
        (leaf,) = drawn(value)["leaf"]
        assert tooltip(leaf) == repr(value)

    @pytest.mark.slow
    @settings(max_examples=12)
    @given(st.text(max_size=60).filter(bool))
    def test_of_any_text_are_shown(self, label):
        shown = "".join(c if c == "\n" or is_shown_as_typed(c) else repr(c)[1:-1] for c in label)
        visible = shown.replace("\xa0", " ")
        assert [line for line in card(Value(2.0, label=label))[:-4] if line] == [v for v in visible.split("\n") if v]

    @pytest.mark.slow
    @settings(max_examples=10)
    @given(st.text(max_size=20).filter(bool))
    def test_of_operations_are_shown(self, symbol):
        shown = lines(drawn(Value(1.0, (Value(2.0),), symbol))["operation"][0])
        if all(map(is_shown_as_typed, symbol)):
            assert shown == [symbol.replace("\xa0", " ")]

    def test_keep_their_lines(self):
        assert card(Value(2.0, label="two\nlines")) == ["two", "lines", "data", "2", "grad", "0"]

    def test_with_characters_that_xml_cannot_hold_show_their_escape(self):
        assert card(Value(2.0, label="a\x00b\x1b\t\r\x85\ud800\uffff"))[0] == r"a\x00b\x1b\t\r\x85\ud800\uffff"

    def test_that_are_long_are_cut_and_whole_in_the_tooltip(self):
        value = Value(2.0, label="x" * 61)
        assert card(value)[0] == "x" * 59 + "…"
        (leaf,) = drawn(value)["leaf"]
        assert tooltip(leaf) == repr(value)

    def test_need_not_be_strings(self):
        value = Value(2.0)
        value.label = 7
        assert card(value)[0] == "7"
        value.label = None
        assert card(value)[0] == "data"

    def test_are_no_markup_in_the_picture(self):
        picture = ElementTree.fromstring(draw.svg(Value(2.0, label="<script>alert(1)</script>")))
        assert not [element for element in picture.iter() if "script" in element.tag]


class TestNotes:
    def test_gradients_before_backward_are_no_zeros(self):
        f = Value(2.0) * Value(3.0)
        assert "backward() has not run" in texts(f)
        assert [lines(node)[-1] for kind in ("leaf", "result") for node in drawn(f)[kind]] == ["—"] * 3
        f.backward()
        assert "backward()" not in texts(f)

    def test_a_zero_beside_other_gradients_is_a_zero(self):
        x = Value(2.0)
        f = x * 0
        f.backward()
        assert card(f)[-1] == "0"

    def test_gradients_of_an_earlier_graph_are_told_from_those_of_this_one(self):
        x = Value(2.0)
        (x * 3).backward()
        f = x * 5
        assert "from another graph" in texts(f)
        assert card(f)[-1] == "3"

    def test_a_leaf_alone_needs_none(self):
        assert "backward" not in texts(Value(2.0))
        assert card(Value(2.0))[-1] == "0"


class TestDepth:
    def test_draws_what_is_within_so_many_operations(self):
        f = chain(10)
        for depth in (0, 1, 3):
            found = drawn(f, depth=depth)
            assert len(found["result"]) == depth + 1
            assert len(found["cut"]) == 1
            assert "not drawn" in texts(f, depth=depth)

    def test_marks_each_place_that_is_cut(self):
        a, b = Value(2.0), Value(3.0)
        assert len(drawn((a * b) + (a - b), depth=1)["cut"]) == 2

    def test_cuts_the_operand_that_is_not_drawn(self):
        a, b = Value(2.0), Value(3.0)
        source = draw.draw_dot((b - a) * a, depth=1).source
        assert len(re.findall(r"_cut -> \w+:1:w", source)) == 1
        assert len(re.findall(r"_cut -> \w+:2:w", source)) == 0

    def test_keeps_every_arrow_between_what_is_drawn(self):
        a = Value(2.0, label="a")
        f = (a * a).tanh() + a
        found = drawn(f, depth=1)
        assert sorted(map(len, map(lines, found["leaf"]))) == [5]
        assert len(found["cut"]) == 1  # tanh has its operand at distance 2

    def test_marks_nothing_where_all_is_drawn(self):
        assert drawn(small(), depth=100).keys() == drawn(small()).keys()
        assert "not drawn" not in texts(small(), depth=2)


class TestLimits:
    """Of pictures of all nodes."""

    def test_too_many_nodes_are_counted_and_a_way_out_given(self):
        with pytest.raises(ValueError, match=r"3,001 nodes.* 3,000\..*depth=5"):
            draw.draw_dot(chain(3000), fold=False)

    def test_plain_numbers_count_and_stay_plain_numbers(self, monkeypatch):
        monkeypatch.setattr(draw, "NODE_LIMIT", 40)
        x = Value(1.0)
        for _ in range(20):
            x = x + 1
        with pytest.raises(ValueError, match="41 nodes"):
            draw.draw_dot(x, fold=False)
        assert x._second.data == 0.0  # no Value was made of the 1

    @given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), max_size=20))
    def test_the_count_is_that_of_trace(self, steps):
        values = [Value(1.0), Value(0.5, requires_grad=False)]
        for kind, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append([a + b, a * 2.0, 1.0 - a, a.tanh(), mg.where(a, b, 3.0), mg.leaky_relu(a, 0.1)][kind])
        assert draw._count(values[-1]) == len(draw.trace(values[-1])[0])

    @pytest.mark.slow
    def test_a_chain_of_more_than_a_thousand_is_drawn_without_a_word(self, capsys):
        assert len(drawn(chain(1100), fold=False)["result"]) == 1100
        assert capsys.readouterr() == ("", "")

    def test_arrows_are_straight_where_curved_ones_would_take_too_long(self):
        def splines(steps):
            x = f = Value(0.9)
            for _ in range(steps):
                f = f * x
            return draw.draw_dot(f, fold=False).graph_attr.get("splines")

        assert splines(10) is None
        assert splines(120) == "line"

    def test_arrows_too_long_are_refused(self):
        x = f = Value(0.9)
        for _ in range(400):
            f = f * x
        with pytest.raises(ValueError, match=r"arrows .* pass [\d,]+ layers.*depth="):
            draw.draw_dot(f, fold=False)

    def test_a_chain_longer_than_pictures_can_be_is_refused_and_drawn_in_part(self, monkeypatch):
        monkeypatch.setattr(draw, "FOLD_LIMIT", 300)
        f = chain(300)
        with pytest.raises(ValueError, match=r"301 nodes, and a folded picture holds 300\..*depth=5"):
            draw.draw_dot(f)
        assert len(drawn(f, depth=3)["result"]) == 4

    def test_depth_may_be_too_much_too(self):
        with pytest.raises(ValueError, match=r"within 3000 operations .* more than 3,000 nodes.*depth=5"):
            draw.draw_dot(chain(4000), depth=3500)


class TestNamesOfWeights:
    """A parameter without a label is called by the way that leads to it from its module."""

    class Own(mg.nn.Module):
        def __init__(self):
            self.parts = {"body": [mg.nn.Layer(2, 2), mg.nn.Layer(2, 1)]}
            self.scale = (Value(2.0), [Value(3.0, label="named")])
            self.all_of_it, self.twice = self, self.scale[0] * 2

        def __call__(self, x):
            for layer in self.parts["body"]:
                x = layer.outputs(x)
            return x[0] * self.scale[0] * self.scale[1][0]

    def names(self, root, **options):
        return {tooltip(leaf).partition(": ")[0]: lines(leaf)[0] for leaf in drawn(root, **options)["leaf"]}

    def test_in_lists_dicts_and_attributes_of_a_class_of_ones_own(self):
        found = self.names(self.Own()([1.0, 2.0]), fold=False)
        assert found.pop("scale[1][0]") == "named"
        assert found.pop("scale[0]") == "scale[0]"
        expected = [
            f"parts['body'][{layer}].neurons[{neuron}].{name}"
            for layer, neurons in enumerate((2, 1))
            for neuron in range(neurons)
            for name in ("w[0]", "w[1]", "b")
        ]
        assert sorted(found) == sorted(expected)
        assert all(shown == name for name, shown in found.items())

    def test_of_a_layer_of_which_others_are_left_out(self):
        found = self.names(mg.nn.MLP(1, [2, 3])([1.0])[1], fold=False)
        assert {"layers[0].neurons[1].b", "layers[1].neurons[1].w[0]"} <= set(found)
        assert not [name for name in found if name.startswith("layers[1].neurons[0]")]

    def test_of_a_part_of_the_graph_they_are_those_of_the_whole(self):
        assert "layers[1].neurons[0].b" in self.names(mg.nn.MLP(1, [2, 1])([1.0]), depth=4)
        deep = mg.nn.Neuron(1)([chain(3000)])
        assert [tooltip(leaf)[:6] for leaf in drawn(deep, depth=2)["leaf"]] == ["Value("] * 1


class TestWrongArguments:
    def test_a_cycle_is_refused(self):
        a = Value(1.0)
        b = a + 1
        b._first = b
        for drawn in (draw.trace, draw.draw_dot, lambda root: draw.draw_dot(root, depth=3)):
            with pytest.raises(ValueError, match="cycle"):
                drawn(b)
        assert draw.svg_or_none(b) is None


class TestDigraph:
    """What notebooks and programs do with what draw_dot returns."""

    pytestmark = pytest.mark.usefixtures("no_program")

    def test_is_one_and_remembers_the_format(self):
        import graphviz

        picture = draw.draw_dot(small(), "png")
        assert isinstance(picture, graphviz.Digraph)
        assert picture.format == "png"
        assert picture.source.startswith("digraph")
        assert type(picture.copy()) is type(picture)

    def test_is_shown_by_a_notebook(self):
        bundle = draw.draw_dot(small())._repr_mimebundle_()
        assert ElementTree.fromstring(bundle["image/svg+xml"]).tag == f"{SVG}svg"

    @pytest.mark.parametrize(("format", "start"), [("svg", XML), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
    def test_pipe_gives_bytes(self, format, start):  # noqa: A002  # what is tested has this name
        assert draw.draw_dot(small(), format).pipe().startswith(start)
        assert draw.draw_dot(small()).pipe(format).startswith(start)
        assert draw.draw_dot(small(), format.upper()).pipe().startswith(start)

    def test_pipe_gives_text(self):
        assert draw.draw_dot(Value(1.0, label="é")).pipe(encoding="utf-8").count("é") == 2

    def test_one_thread_at_a_time_has_graphviz_lay_out(self, monkeypatch):
        import pygraphviz

        picture, answers, laid_out = draw.draw_dot(small()), [], pygraphviz.AGraph.draw

        def asking(*given, **options):
            answers.append(is_held(layout._lock))
            return laid_out(*given, **options)

        monkeypatch.setattr(pygraphviz.AGraph, "draw", asking)
        assert picture.pipe().startswith(XML)
        assert answers == [True]
        assert not is_held(layout._lock)

    def test_other_layouts_work(self):
        assert draw.draw_dot(small()).pipe(engine="neato").startswith(XML)

    def test_render_writes_the_picture_and_its_source(self, tmp_path):
        path = draw.draw_dot(small()).render("graph", directory=tmp_path / "new")
        assert Path(path) == tmp_path / "new" / "graph.svg"
        assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"
        assert (tmp_path / "new" / "graph").read_text(encoding="utf-8").startswith("digraph")

    @pytest.mark.parametrize("quiet", [False, True])
    def test_render_opens_the_picture_when_asked(self, tmp_path, monkeypatch, quiet):
        opened = []
        monkeypatch.setattr("graphviz.view", lambda path, quiet: opened.append((path, quiet)))
        path = draw.draw_dot(small()).render(tmp_path / "graph", **{"quiet_view" if quiet else "view": True})
        assert opened == [(path, quiet)]
        assert ElementTree.parse(path).getroot().tag == f"{SVG}svg"

    def test_render_goes_by_its_default_name(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert draw.draw_dot(small()).render(format="png", cleanup=True) == "micrograd.gv.png"
        assert [path.name for path in tmp_path.iterdir()] == ["micrograd.gv.png"]

    def test_render_to_an_outfile_takes_its_format(self, tmp_path):
        path = draw.draw_dot(small()).render(outfile=tmp_path / "graph.pdf")
        assert Path(path).read_bytes().startswith(b"%PDF")
        assert {path.name for path in tmp_path.iterdir()} == {"graph.pdf", "graph.gv"}

    def test_what_only_the_program_can_do_needs_the_program(self, tmp_path):
        with pytest.raises(ImportError, match="dot"):
            draw.draw_dot(small()).pipe(renderer="cairo")
        with pytest.raises(ImportError, match="dot"):
            draw.draw_dot(small()).render(tmp_path / "graph", renderer="cairo")


class TestSave:
    pytestmark = pytest.mark.usefixtures("no_program")

    @pytest.mark.parametrize(
        ("name", "start"), [("a.svg", XML), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.dot", b"digraph")]
    )
    def test_goes_by_the_suffix(self, tmp_path, name, start):
        draw.save(small(), tmp_path / name)
        draw.save(small(), str(tmp_path / name), "TB", depth=1)
        assert (tmp_path / name).read_bytes().startswith(start)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_leaves_the_old_picture_where_drawing_fails(self, tmp_path):
        (tmp_path / "a.svg").write_text("old")
        with pytest.raises(ValueError, match="nodes"):
            draw.save(chain(3000), tmp_path / "a.svg", fold=False)
        assert (tmp_path / "a.svg").read_text() == "old"

    def test_leaves_the_old_picture_where_laying_out_fails(self, tmp_path, monkeypatch):
        from micrograd.draw import layout

        def fails(*_):
            raise MemoryError

        path = tmp_path / "picture.svg"
        path.write_text("old")
        monkeypatch.setattr(layout, "_laid_out", fails)
        with pytest.raises(MemoryError):
            draw.save(small(), path)
        assert path.read_text() == "old"

    def test_odd_labels_are_saved_in_every_format(self, tmp_path):
        value = Value(2.0, label="{<😀>}\\\ud800\x00 שלום")
        for suffix in draw.SUFFIXES:
            draw.save(value, tmp_path / f"a{suffix}")
        assert len(list(tmp_path.iterdir())) == 4


class TestText:
    """What a .dot file says is the picture."""

    def test_it_is_the_same_picture(self, tmp_path):
        a, b = Value(2.0, label='a "b" \\N <c> & é\n>'), Value(-0.5)
        f = (a / b + 2).tanh() - Value(3.0, label="c", requires_grad=False) * a
        f.backward()
        for options in ({}, {"depth": 1}, {"rankdir": "TB"}, {"style": "micrograd"}):
            draw.save(f, tmp_path / "a.dot", **options)
            text = (tmp_path / "a.dot").read_text(encoding="utf-8")
            assert layout._laid_out(text, "svg", "dot") == draw.draw_dot(f, **options).pipe()

    def test_that_of_kernels_is_the_same_too(self, tmp_path):
        fast = mg.compile(lambda xs: mg.dot(xs, xs).tanh() * 2, backend="numpy")
        fast([Value(1.0), Value(2.0), Value(3.0)]).backward()
        fast.save(tmp_path / "a.dot")
        text = (tmp_path / "a.dot").read_text(encoding="utf-8")
        assert layout._laid_out(text, "svg", "dot") == fast.draw_dot().pipe()


class TestFonts:
    """What Fontconfig says of the machine's files, when it is first used, is no concern of who draws."""

    CODE = "import os, micrograd as mg; mg.draw_dot(mg.Value(1.0), format={!r}).pipe(); os.write(2, b'after')"

    @pytest.mark.slow
    @pytest.mark.parametrize("format", ["svg", "png"])
    def test_the_first_picture_says_nothing(self, format, tmp_path):  # noqa: A002
        environment = {**os.environ, "FONTCONFIG_FILE": str(tmp_path / "none")}
        run = subprocess.run(
            [sys.executable, "-c", self.CODE.format(format)], capture_output=True, env=environment, check=True
        )
        assert run.stderr == b"after"

    def test_what_others_write_meanwhile_comes_out(self, capfd, monkeypatch):
        monkeypatch.setattr(layout, "_fonts", [])
        with layout._without_the_word_of_fontconfig():
            os.write(2, b"Fontconfig warning: line 6\nanother line\n")
        with layout._without_the_word_of_fontconfig():
            os.write(2, b"Fontconfig warning: line 7\n")  # from now on nothing is held back
        assert capfd.readouterr().err == "another line\nFontconfig warning: line 7\n"

    def test_without_an_error_output_pictures_are_drawn(self, monkeypatch):
        def fails(_):
            raise OSError

        monkeypatch.setattr(layout, "_fonts", [])
        monkeypatch.setattr(os, "dup", fails)
        assert draw.svg(small())


class TestNotebook:
    def test_a_value_is_shown_as_svg(self):
        f = small()
        assert ElementTree.fromstring(draw.svg(f)).tag == f"{SVG}svg"
        assert draw.svg_or_none(f) == draw.svg(f)

    def test_a_large_graph_is_shown_folded_and_a_very_large_one_as_text(self, monkeypatch):
        assert "Step" in draw.svg_or_none(chain(998))
        monkeypatch.setattr(draw, "NOTEBOOK_LIMIT", 998)
        assert draw.svg_or_none(chain(998)) is None


@pytest.fixture
def without(monkeypatch):
    """Make a package look as if it were not installed."""

    def uninstall(name):
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, layout.__name__, raising=False)
        monkeypatch.delattr(layout.__name__, raising=False)  # the package has it, too

    return uninstall


class TestMissingExtra:
    @pytest.mark.usefixtures("no_program")
    @pytest.mark.parametrize("package", ["graphviz", "pygraphviz"])
    def test_it_is_named(self, without, package, tmp_path):
        without(package)
        for function in (draw.svg, lambda root: draw.save(root, tmp_path / "a.svg")):
            with pytest.raises(ImportError, match=r"pip install .*pygraphviz"):
                function(small())
        assert draw.svg_or_none(small()) is None
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.usefixtures("no_program")
    def test_an_old_pygraphviz_is_as_good_as_none(self, monkeypatch):
        import pygraphviz

        monkeypatch.setattr(pygraphviz, "__version__", "1.14")
        with pytest.raises(ImportError, match="pygraphviz 2"):
            draw.svg(small())

    def test_the_text_needs_nothing(self, without, tmp_path):
        without("graphviz")
        without("pygraphviz")
        draw.save(small(), tmp_path / "a.dot")
        assert (tmp_path / "a.dot").read_text(encoding="utf-8").startswith("digraph")
        fast = mg.compile(lambda x: x.tanh() * 2, backend="numpy")
        fast(Value(1.0))
        fast.save(tmp_path / "kernels.dot")
        assert "tanh" in (tmp_path / "kernels.dot").read_text(encoding="utf-8")

    @pytest.mark.skipif(os.name == "nt", reason="the stand-in for dot is a shell script")
    def test_a_dot_program_draws_and_writes_the_file_instead(self, without, monkeypatch, tmp_path):
        (program := tmp_path / "dot").touch(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        without("pygraphviz")
        program.write_text(f"#!/bin/sh\n{shutil.which('cat')} > /dev/null\necho '<svg/>'\n")
        assert draw.svg(small()) == "<svg/>\n"
        program.write_text('#!/bin/sh\nfor source; do :; done\necho "<svg/>" > "$source.svg"\n')
        path = draw.draw_dot(small()).render("graph", directory=tmp_path)
        assert Path(path) == tmp_path / "graph.svg"
        assert Path(path).read_text() == "<svg/>\n"
