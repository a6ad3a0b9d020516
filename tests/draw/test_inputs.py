"""Inputs are drawn as one box: those with a name, and those that are many and go into one layer."""

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.draw.folding.groups import Grouping
from micrograd.draw.folding.parameters import places_of_inputs
from micrograd.pages.passes import passes

MODEL = mg.nn.MLP(12, [3, 1])


def inputs(count=12, labels=True):
    return [Value(0.1 * number, label=f"x{number}" if labels else "") for number in range(count)]


def boxes(root, **named):
    groups = passes(root, inputs=named)[0]["groups"]
    return [(group["name"], tuple(group["shape"])) for group in groups if group["kind"] == "inputs"]


def test_many_that_go_into_one_layer_are_one_box():
    assert boxes(MODEL(inputs())) == [("Inputs", ())]


def test_few_and_those_that_are_used_in_one_place_are_not():
    assert boxes(mg.nn.MLP(8, [3, 1])(inputs(8))) == []
    assert boxes(mg.dot(inputs(), inputs())) == []


def test_those_with_a_shape_are_those_of_the_first_layer():
    assert boxes(MODEL(inputs()), image=(3, 4)) == [("image", (3, 4))]
    assert boxes(MODEL(inputs()), left=(2, 3), right=(6,)) == [("left", (2, 3)), ("right", (6,))]


def test_those_that_are_given_in_lists_or_arrays_have_their_places_there():
    xs = inputs()
    root = MODEL(xs)
    assert boxes(root, image=[[xs[0], None], [xs[2], 3.0]]) == [("image", (2, 1)), ("Inputs", ())]
    assert boxes(root, image=mg.array(xs).reshape(4, 3)) == [("image", (4, 3))]
    assert boxes(root, cube=[[[x] for x in xs]]) == [("cube", ())]
    places = places_of_inputs(mg.topological_order(root), {"image": [xs]})
    assert places[xs[3]].name == "image[0][3]"


def test_unlabelled_leaves_of_no_layer_are_still_one_box():
    values = [Value(0.5) for _ in range(9)]
    assert next(box.name for box in Grouping(mg.topological_order(sum(x * x for x in values))).groups) == "Leaves"


@pytest.mark.parametrize(
    ("root", "named", "error", "message"),
    [
        (MODEL(inputs()), {"image": (5, 5)}, ValueError, "takes 12 inputs, which have not the shape 5 x 5 of 'image'"),
        (MODEL([0.1] * 12), {"image": (3, 4)}, ValueError, "takes plain numbers"),
        (Value(1.0) * 2, {"image": (3, 4)}, ValueError, "no layer is in this graph; give the Values themselves"),
        (MODEL(inputs()), [(3, 4)], TypeError, r'inputs must be a dict like \{"image": \(8, 8\)\}, not \[\(3, 4\)\]'),
        (MODEL(inputs()), {1: (3, 4)}, TypeError, "inputs must be a dict"),
    ],
)
def test_other_inputs_are_refused(root, named, error, message, tmp_path):
    with pytest.raises(error, match=message):
        mg.explore(root, tmp_path / "page.html", inputs=named)
    assert not list(tmp_path.iterdir())
