"""A layout of one's own: pictures, files and pages all ask the function that was handed in."""

import re
import sys

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.draw import layout
from micrograd.draw.layout import Picture, set_layout


@pytest.fixture
def asked():
    """What the function was asked for; it lays out as Graphviz inside of Python does."""
    questions, given = [], layout._laid_out

    def lay_out(source, kind, engine):
        questions.append((kind, engine))
        set_layout(None)
        try:
            return given(source, kind, engine).decode()
        finally:
            set_layout(lay_out)

    set_layout(lay_out)
    yield questions
    set_layout(None)


@pytest.fixture
def own():
    """Sets a layout, which is gone after the test."""
    yield set_layout
    set_layout(None)


def product():
    return Value(2.0, label="x") * Value(-3.0, label="y")


def test_pictures_files_and_notebooks_ask_it(asked, tmp_path):
    f = product()
    assert mg.draw_dot(f).pipe().endswith(b"</svg>\n")
    mg.save(f, tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_bytes() == mg.draw_dot(f).pipe()
    assert f._repr_svg_().endswith("</svg>\n")
    mg.draw_dot(f).render("f", directory=tmp_path / "rendered", engine="neato")
    assert asked == [("svg", "dot")] * 4 + [("svg", "neato")]


def test_pages_ask_it_for_places(asked, tmp_path):
    mg.explore(product(), tmp_path / "page.html")
    assert asked == [("plain", "dot")]
    set_layout(None)
    mg.explore(product(), tmp_path / "usual.html")
    assert (tmp_path / "page.html").read_text() == (tmp_path / "usual.html").read_text()


def test_pictures_of_kernels_ask_it(asked):
    fast = mg.compile(lambda x, y: x * y + x, backend="numpy")
    fast(Value(2.0), Value(3.0))
    fast.draw_dot().pipe()
    assert asked == [("svg", "dot")]


def test_graphviz_inside_of_python_need_not_be_there(own, monkeypatch):
    monkeypatch.setitem(sys.modules, "pygraphviz", None)
    monkeypatch.setenv("PATH", "")
    own(lambda source, kind, engine: f"{kind} of {source.partition(' ')[0]}")
    assert mg.draw_dot(product()).pipe() == b"svg of digraph"
    assert mg.draw_dot(product(), format="png").pipe() == b"png of digraph"
    own(None)
    with pytest.raises(ImportError, match="pygraphviz"):
        mg.draw_dot(product()).pipe()


def test_bytes_are_taken_as_they_are(own):
    own(lambda source, kind, engine: b"\x89PNG")
    assert mg.draw_dot(product(), format="png").pipe() == b"\x89PNG"


def test_what_it_raises_comes_through_and_no_file_is_written(own, tmp_path):
    def lay_out(source, kind, engine):
        raise ValueError(f"there is no {kind} in a browser")

    own(lay_out)
    with pytest.raises(ValueError, match="no png in a browser"):
        mg.save(product(), tmp_path / "f.png")
    assert list(tmp_path.iterdir()) == []
    assert product()._repr_svg_() is None  # a notebook shows the text instead


@pytest.mark.parametrize("wrong", [None, 3, ["<svg>"]])
def test_what_it_gives_must_be_bytes_or_text(own, wrong, tmp_path):
    own(lambda source, kind, engine: wrong)
    with pytest.raises(TypeError, match=re.escape(f"must give bytes or text, not {type(wrong).__name__}: {wrong!r}")):
        mg.save(product(), tmp_path / "f.svg")
    assert list(tmp_path.iterdir()) == []


def test_it_is_not_asked_for_what_graphviz_has_not(own):
    own(lambda source, kind, engine: "drawn all the same")
    with pytest.raises(ValueError, match="'nope'"):
        mg.draw_dot(product()).pipe("nope")


@pytest.mark.parametrize("wrong", ["dot", 0, ()])
def test_it_must_be_a_function(own, wrong):
    own(lambda source, kind, engine: "the one before")
    with pytest.raises(TypeError, match=re.escape(f"a function or None, not {type(wrong).__name__}")):
        set_layout(wrong)
    assert Picture().pipe() == b"the one before"


def test_it_may_draw_itself(own):
    """It is asked without the lock of Graphviz: a layout that draws another picture waits for nobody."""

    def lay_out(source, kind, engine):
        set_layout(None)
        inner = mg.draw_dot(product()).pipe()
        set_layout(lay_out)
        return inner

    own(lay_out)
    assert mg.draw_dot(Value(1.0)).pipe().count(b'class="edge"') == 3
