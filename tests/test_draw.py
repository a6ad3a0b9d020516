"""Pictures: what they show, for which graphs, in which formats, and without what."""

import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value, draw_dot, layout, save, trace
from micrograd.draw import svg, svg_or_none

SVG = "{http://www.w3.org/2000/svg}"


def shown(root, **options):
    """The texts of a picture in order."""
    tree = ET.fromstring(draw_dot(root, **options).pipe("svg"))
    return ["".join(element.itertext()) for element in tree.iter(f"{SVG}text")]


def groups(root, kind, **options):
    tree = ET.fromstring(draw_dot(root, **options).pipe("svg"))
    return [group for group in tree.iter(f"{SVG}g") if kind in group.get("class", "").split()]


def chain(length):
    x = Value(1.0)
    result = x
    for _ in range(length):
        result = result + x
    return result


class TestTrace:
    def test_nodes_stand_after_their_operands_and_each_use_is_an_edge(self):
        a = Value(3.0)
        square = a * a
        assert trace(square) == ([a, square], [(a, square), (a, square)])

    def test_what_is_no_value_is_refused(self):
        with pytest.raises(TypeError, match=r"float: 3\.0"):
            trace(3.0)


class TestPicture:
    def test_it_shows_labels_numbers_gradients_and_operations(self):
        x, y = Value(2.0, label="x"), Value(-3.0, label="y")
        product = x * y
        product.backward()
        texts = shown(product)
        for text in ("x", "y", "2", "-3", "-6", "*"):
            assert text in texts
        assert texts.count("grad") == 3

    def test_a_square_has_two_edges_from_its_operand(self):
        assert len(groups(Value(3.0) * 1 * 0, "edge")) == 6
        a = Value(3.0)
        assert len(groups(a * a, "edge")) == 3

    def test_before_backward_it_says_that_there_are_no_gradients(self):
        root = Value(2.0) * 3
        assert any("backward" in text for text in shown(root))
        root.backward()
        assert not any("backward" in text for text in shown(root))

    def test_a_constant_has_no_gradient(self):
        root = Value(2.0) * 5.0
        root.backward()
        assert shown(root).count("grad") == 2

    def test_the_colour_of_a_gradient_is_that_of_its_sign(self):
        def fills(gradient):
            root = Value(1.0)
            root.backward(gradient)
            return {element.get("fill") for element in ET.fromstring(svg(root)).iter(f"{SVG}polygon")}

        assert fills(1.0) != fills(-1.0)
        assert fills(1.0) == fills(5.0)

    @pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e-300, 123456789.0, -0.5])
    def test_any_number_is_shown(self, number):
        assert any(text.strip() for text in shown(Value(number)))

    @given(st.text(min_size=1, max_size=20))
    @settings(max_examples=60)
    def test_any_label_gives_well_formed_svg(self, label):
        root = Value(1.0, label=label) * 2
        ET.fromstring(draw_dot(root).pipe("svg"))

    @pytest.mark.parametrize(
        "label",
        ["<script>alert(1)</script>", "{a|b}", 'quote"', "back\\N\\G", "&amp;", "日本", "🎉", "שלום", "a  b", "%s"],
    )
    def test_a_label_is_shown_as_it_was_typed(self, label):
        texts = [text.replace("\xa0", " ") for text in shown(Value(1.0, label=label) * 2)]
        assert label in texts
        assert "<script" not in svg(Value(1.0, label=label) * 2)

    def test_depth_draws_the_part_next_to_the_result(self):
        root = chain(50)
        assert len(groups(root, "node", depth=2)) < 12
        assert len(groups(root, "node", depth=2)) > 4

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"rankdir": "sideways"}, ValueError),
            ({"depth": -1}, ValueError),
            ({"depth": "deep"}, TypeError),
        ],
    )
    def test_wrong_options_are_refused(self, arguments, error):
        with pytest.raises(error, match=str(next(iter(arguments.values())))):
            draw_dot(Value(1.0), **arguments)

    def test_a_format_that_graphviz_lacks_is_refused(self):
        with pytest.raises(ValueError, match="nonsense"):
            draw_dot(Value(1.0), "nonsense").pipe()

    @pytest.mark.parametrize("length", [5_000, 200_000])
    def test_a_graph_too_large_says_how_large_it_is_and_how_to_draw_a_part(self, length):
        root = chain(length)
        with pytest.raises(ValueError, match=f"{length + 1:,} nodes.*depth="):
            draw_dot(root)
        assert groups(root, "node", depth=3)

    def test_a_graph_too_wide_within_the_depth_is_refused_too(self):
        root = sum((Value(1.0) * Value(2.0) for _ in range(5_000)), Value(0.0))
        with pytest.raises(ValueError, match="depth"):
            draw_dot(root, depth=50_000)


class TestFiles:
    @pytest.mark.parametrize(
        ("suffix", "start"),
        [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF"), (".dot", b""), (".SVG", b"<?xml")],
    )
    def test_the_suffix_says_the_format(self, tmp_path, suffix, start):
        path = tmp_path / f"graph{suffix}"
        save(Value(2.0) * 3, path)
        content = path.read_bytes()
        assert content.startswith(start)
        assert suffix != ".dot" or b"digraph" in content

    @pytest.mark.parametrize("name", ["graph", "graph.txt", "graph.svgz"])
    def test_another_suffix_is_refused(self, tmp_path, name):
        with pytest.raises(ValueError, match=r"\.svg.*\.png.*\.pdf.*\.dot"):
            save(Value(2.0), tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    def test_render_writes_the_picture_beside_its_source(self, tmp_path):
        path = draw_dot(Value(2.0) * 3).render("graph", directory=tmp_path)
        assert path == str(tmp_path / "graph.svg")
        assert (tmp_path / "graph").exists()

    def test_render_to_a_named_file_cleans_its_source_up(self, tmp_path):
        draw_dot(Value(2.0) * 3).render(outfile=tmp_path / "picture.png", cleanup=True)
        assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]

    def test_render_opens_a_viewer_when_asked(self, tmp_path, monkeypatch):
        opened = []
        monkeypatch.setattr(layout.graphviz, "view", lambda path, quiet: opened.append((path, quiet)))
        path = draw_dot(Value(2.0)).render("graph", directory=tmp_path, view=True)
        assert opened == [(path, False)]


class TestNotebook:
    def test_a_value_shows_itself_as_svg(self):
        assert (Value(2.0) * 3)._repr_svg_().lstrip().startswith("<?xml")

    def test_a_large_graph_is_left_to_its_text(self):
        assert svg_or_none(chain(5_000)) is None

    def test_without_the_extra_the_text_must_do(self, monkeypatch):
        for module in ("graphviz", "micrograd.layout"):
            monkeypatch.setitem(sys.modules, module, None)
        assert Value(2.0)._repr_svg_() is None


class TestWithoutExtras:
    def test_without_graphviz_the_extra_is_named(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "micrograd.layout")
        monkeypatch.setitem(sys.modules, "graphviz", None)
        with pytest.raises(ImportError, match=r"micrograd\[draw\]"):
            draw_dot(Value(1.0))

    def test_without_a_layout_library_and_a_dot_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pygraphviz", None)
        monkeypatch.setenv("PATH", "")
        with pytest.raises(ImportError, match=r"micrograd\[draw\]"):
            draw_dot(Value(1.0)).pipe()
        with pytest.raises(ImportError, match=r"micrograd\[draw\]"):
            draw_dot(Value(1.0)).render("nowhere")

    def test_without_the_library_a_dot_on_the_path_draws(self, monkeypatch, tmp_path):
        dot = tmp_path / "dot"
        dot.write_text("#!/bin/sh\ncat > /dev/null\necho '<svg/>'\n")
        dot.chmod(0o755)
        monkeypatch.setitem(sys.modules, "pygraphviz", None)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert draw_dot(Value(1.0)).pipe(encoding="utf-8") == "<svg/>\n"
        draw_dot(Value(1.0)).render("graph", directory=tmp_path)


def test_drawing_loads_nothing_before_it_is_used():
    assert mg.draw_dot is draw_dot
