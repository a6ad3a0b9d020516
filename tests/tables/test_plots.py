"""The plots of a report: what stands beside their axes."""

import math
from xml.etree import ElementTree

import pytest

from micrograd.tables import plots

pytest.importorskip("matplotlib")

SVG = "{http://www.w3.org/2000/svg}"


def labels(losses, guessing):
    """What stands beside the axis of the losses, from the bottom up."""
    picture = ElementTree.fromstring(plots.loss(losses, guessing, "cross-entropy"))
    (axis,) = (group for group in picture.iter(f"{SVG}g") if group.get("id") == "matplotlib.axis_2")
    return [text.text for text in axis.iter(f"{SVG}text")][:-1]  # the last is the name


def falling(most, least, count=200):
    return [most * (least / most) ** (step / (count - 1)) for step in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("losses", "guessing", "shown"),
    [
        (falling(2.0, 0.003), 1.1, {"0.01", "0.1", "1"}),
        (falling(2.0, 1e-6), 1.1, {"10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"}),
        (falling(1e9, 1e6), 2e9, {"10⁶", "10⁷", "10⁸", "10⁹"}),
        (falling(2.0, 1.2), 1.1, {"1.2", "1.6", "2"}),
        (falling(6e7, 2e7), 5e7, {"2·10⁷", "3·10⁷", "4·10⁷"}),
    ],
)
def test_an_axis_has_one_way_of_writing_numbers(losses, guessing, shown):
    found = labels(losses, guessing)
    assert shown <= set(found)
    assert not any("e" in label or "$" in label for label in found)
    assert len({bool(set("⁰¹²³⁴⁵⁶⁷⁸⁹") & set(label)) for label in found if label}) == 1


@pytest.mark.slow
def test_a_loss_that_gets_to_0_has_an_ordinary_axis():
    found = [label.replace("\N{MINUS SIGN}", "-") for label in labels([1.0, 0.5, 0.0], 0.7)]
    assert math.isclose(float(found[1]) - float(found[0]), float(found[2]) - float(found[1]))
