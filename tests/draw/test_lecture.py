"""The picture in the style of micrograd's lecture: which operations it has, and that the added gradients are right."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.draw.test_draw import drawn, lines, texts, tooltip


def operations(root, **options):
    """The symbols in the boxes, sorted."""
    found = drawn(root, style="micrograd", **options).get("operation", [])
    return sorted(line for element in found for line in lines(element) if not line.isdigit())  # those are places


def cards(root, **options):
    """Data and gradient of each result in a picture, sorted."""
    found = drawn(root, **options).get("result", [])
    return sorted((float(shown[-3]), float(shown[-1])) for shown in map(lines, found))


def constants(root):
    return sorted(line for element in drawn(root, style="micrograd").get("constant", []) for line in lines(element))


def leaves():
    return Value(5.0, label="a"), Value(3.0, label="b")


@pytest.mark.parametrize(
    ("operate", "shown", "numbers", "written"),
    [
        (lambda a, b: a - b, ["*", "+"], [(-4.0, 2.0), (1.0, 2.0)], ["-1"]),  # b * -1, and the sum
        (lambda a, b: a / b, ["*", "**-1"], [(0.25, 10.0), (1.25, 2.0)], []),  # b**-1, with the gradient 2 * a
    ],
    ids=["a difference", "a quotient"],
)
def test_what_is_a_sum_with_a_product_or_a_product_with_a_power(operate, shown, numbers, written):
    f = operate(Value(5.0, label="a"), Value(4.0, label="b"))
    f.backward(2.0)
    assert operations(f) == shown
    assert cards(f, style="micrograd") == numbers
    assert constants(f) == written


def test_a_minus_sign_is_a_product():
    a, _ = leaves()
    assert operations(-a) == ["*"]
    assert constants(-a) == ["-1"]


def test_a_plain_number_is_negated_and_inverted_at_once():
    a, _ = leaves()
    assert (operations(a - 2), constants(a - 2)) == (["+"], ["-2"])
    assert (operations(a / 2), constants(a / 2)) == (["*"], ["0.5"])
    assert (operations(2 - a), constants(2 - a)) == (["*", "+"], ["-1", "2"])
    assert (operations(2 / a), constants(2 / a)) == (["*", "**-1"], ["2"])


def test_a_number_in_the_exponent_belongs_to_the_symbol():
    a, b = leaves()
    assert (operations(a**2), constants(a**2)) == (["**2"], [])
    assert operations(a**-0.5) == ["**-0.5"]
    assert operations(a**b) == ["**"]  # the lecture has no such power: it is drawn as it is


def test_other_operations_are_drawn_as_they_are():
    a, b = leaves()
    assert operations(a.tanh() + b.exp()) == ["+", "exp", "tanh"]
    assert operations((a * b).relu()) == ["*", "ReLU"]
    assert operations(mg.maximum(a, b)) == ["maximum"]
    assert operations(a) == []


def test_operations_written_by_hand_and_of_many_operands_keep_their_operands():
    a, b = leaves()
    made = Value(15.0, (a, b), "product")
    assert operations(made - a) == ["*", "+", "product"]
    assert len(drawn(made - a, style="micrograd")["leaf"]) == 2
    fast = mg.compile(lambda x, y: x * y + x, backend="numpy")
    assert len(drawn(fast(a, b) - a, style="micrograd")["leaf"]) == 2


def test_a_constant_that_has_a_label_keeps_it():
    a, _ = leaves()
    c = Value(4.0, label="c", requires_grad=False)
    assert constants(a - c) == ["-c = -4"]
    assert constants(a / c) == ["c**-1 = 0.25"]
    assert constants(a**c) == ["c = 4"]


def test_what_is_used_twice_is_drawn_once():
    a, b = leaves()
    shared = a * b
    f = (shared - a) / shared
    assert operations(f) == sorted(["*", "*", "+", "*", "**-1"])


def test_labels_and_numbers_of_results_are_those_of_the_graph():
    a, b = leaves()
    f = a / b
    f.label = "the ratio"
    (result,) = [shown for shown in map(lines, drawn(f, style="micrograd")["result"]) if shown[0] == "the ratio"]
    assert result[2] == "1.667"
    found = drawn(f, style="micrograd")["result"]
    assert any(repr(5.0 / 3.0) in tooltip(element) for element in found)


def test_the_numbers_are_those_of_the_forward_pass():
    a, b = leaves()
    f = a / b - a / 8
    f.backward()
    a.data, b.data = 0.0, 0.0
    f.grad = 1.0
    assert (0.3333, 5.0) in [(round(x, 4), gradient) for x, gradient in cards(f, style="micrograd")]


def test_the_graph_itself_stays_as_it_is():
    a, b = leaves()
    f = a / b - 2
    f.backward()
    before = [(node, node.data, node.grad, node._op) for node in mg.trace(f)[0]]
    mg.draw_dot(f, style="micrograd")
    assert [(node, node.data, node.grad, node._op) for node in mg.trace(f)[0]] == before


def test_an_infinite_operand_gets_no_gradient_out_of_nothing():
    a, b = leaves()
    a.data = float("inf")
    assert "nan" not in texts(a / b, style="micrograd")
    b.data = 5e-324
    assert "inf" in texts(1 / b, style="micrograd")


def test_gradients_that_are_graphs_are_drawn_as_numbers():
    a, b = leaves()
    f = a / b
    f.backward(create_graph=True)
    assert (0.3333, 5.0) in cards(f, style="micrograd")


def test_inside_of_no_grad_the_picture_is_the_same():
    a, b = leaves()
    f = a / b - 1
    with mg.no_grad():
        inside = mg.draw_dot(f, style="micrograd").source
    assert inside == mg.draw_dot(f, style="micrograd").source


def test_depth_counts_the_operations_that_are_drawn():
    a, b = leaves()
    f = a * b - a / b
    assert operations(f, depth=0) == ["+"]
    assert len(drawn(f, style="micrograd", depth=1)["result"]) == 3
    assert "⋯" in texts(f, style="micrograd", depth=1)
    assert "⋯" not in texts(f, style="micrograd", depth=4)
    assert drawn(f, style="micrograd", depth=4).keys() == drawn(f, style="micrograd").keys()


def test_the_nodes_that_are_added_count(monkeypatch):
    a, _ = leaves()
    f = a
    for _ in range(30):
        f = a - f
    monkeypatch.setattr("micrograd.draw.graph.NODE_LIMIT", 70)
    mg.draw_dot(f)
    with pytest.raises(ValueError, match=r"this graph has 91 nodes, .* depth=5"):
        mg.draw_dot(f, style="micrograd")


def test_saving_takes_the_style(tmp_path):
    a, b = leaves()
    mg.save(a - b, tmp_path / "picture.svg", style="micrograd")
    picture = ElementTree.parse(tmp_path / "picture.svg")
    assert "-1" in "".join(picture.getroot().itertext())


OPERATORS = st.sampled_from(["+", "-", "*", "/", "neg", "square", "less one", "half", "one less", "inverse"])


def combined(operator, x, y, lecture):
    """An operation as it is written, or as the lecture's engine makes it of others."""
    match operator:
        case "+":
            return x + y
        case "*":
            return x * y
        case "square":
            return x**2
        case "-":
            return x + y * -1.0 if lecture else x - y
        case "/":
            return x * y**-1.0 if lecture else x / y
        case "neg":
            return x * -1.0 if lecture else -x
        case "less one":
            return x + -1.0 if lecture else x - 1.0
        case "half":
            return x * 0.5 if lecture else x / 2.0
        case "one less":
            return 1.0 + x * -1.0 if lecture else 1.0 - x
        case "inverse":
            return 1.0 * x**-1.0 if lecture else 1.0 / x


@given(st.lists(st.tuples(OPERATORS, st.integers(0, 9)), min_size=1, max_size=5))
def test_it_is_the_picture_of_the_graph_that_the_lecture_makes(steps):
    def built(lecture):
        values = [Value(1.5), Value(-2.0), Value(0.75)]
        for operator, place in steps:
            values.append(combined(operator, values[-1], values[place % len(values)], lecture))
        values[-1].backward()
        return values[-1]

    try:
        written, lecture = built(False), built(True)
    except ArithmeticError:
        return
    ours = [(node.data, node.grad) for node in drawn_nodes(written)]
    theirs = [(node.data, node.grad) for node in mg.trace(lecture)[0] if node.requires_grad]
    assert sorted(map(rounded, ours)) == sorted(map(rounded, theirs))


def rounded(numbers):
    return tuple(float(f"{number:.9g}") for number in numbers)


def drawn_nodes(root):
    """The Values of the picture that gradients flow to."""
    from micrograd.draw.lecture import as_in_lecture

    return [node for node in mg.trace(as_in_lecture(mg.trace(root)[0]))[0] if node.requires_grad]
