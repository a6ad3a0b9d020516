"""Pages with sliders: a picture for each position, in a file that asks for nothing and runs its own script only."""

import json
import re

import pytest

import micrograd as mg


def circle(radius, colour="red"):
    return f'<svg viewBox="0 0 9 9"><circle r="{radius}" fill="{colour}"/></svg>'


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return text, json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.DOTALL)[1])


def test_there_is_a_picture_for_each_position_and_the_last_slider_moves_fastest(tmp_path):
    path = tmp_path / "circles.html"
    mg.learn.sliders(path, "Circles < & >", circle, radius=[0.5, 2, 30.0], colour=["red", "blue"])
    text, data = data_of(path)
    assert data["sliders"] == [["radius", ["0.5", "2", "30"]], ["colour", ["red", "blue"]]]
    expected = [circle(radius, colour) for radius in (0.5, 2, 30.0) for colour in ("red", "blue")]
    assert data["pictures"] == expected
    assert "<title>Circles &lt; &amp; &gt;</title>" in text
    assert "default-src 'none'" in text
    assert "<circle" not in text  # nothing of a picture stands in the file as markup


def test_a_slider_may_be_called_as_an_argument_is(tmp_path):
    mg.learn.sliders(tmp_path / "a.html", "A", lambda title: f'<svg><g id="{title}"/></svg>', title=["one", "two"])
    assert data_of(tmp_path / "a.html")[1]["sliders"] == [["title", ["one", "two"]]]


@pytest.mark.parametrize(
    ("name", "choices", "message"),
    [
        ("a.svg", {"radius": [1]}, "a page's file must end in .html: "),
        ("a.html", {}, "sliders need from 1 to 2,000 pictures, not 0: name what each chooses from"),
        ("a.html", {"radius": [1], "colour": []}, "sliders need from 1 to 2,000 pictures, not 0"),
        ("a.html", {"radius": range(2_001)}, "sliders need from 1 to 2,000 pictures, not 2,001"),
    ],
)
def test_what_makes_no_page_is_refused_and_nothing_is_written(tmp_path, name, choices, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        mg.learn.sliders(tmp_path / name, "A circle", circle, **choices)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [None, "no picture", 3])
def test_what_is_no_picture_is_refused(tmp_path, given):
    with pytest.raises(TypeError, match="a picture is the text of an SVG element, not "):
        mg.learn.sliders(tmp_path / "a.html", "A circle", lambda radius: given, radius=[1, 2])
