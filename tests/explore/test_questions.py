"""Compiled functions that decide, on pages: the path that was taken, and each question as a closed box."""

import re
import sys

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.pages import kernels
from tests.explore.test_explore import explored
from tests.explore.test_kernels import assert_as_eager, gradients

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 does not say which expression is running"
)


def leaky(x, w):
    y = x * w
    if y < 0:
        y = 0.1 * y
    if y > 5 * w:
        return mg.tanh(y)
    return y * y


def halved(x, w):
    steps = 0
    while x * w > 1:
        x = x / 2
        steps += 1
    return x * w + float(steps)


def ball(x, w):
    height, speed = x, 0.0 * x
    for _ in range(9):
        speed = speed - 0.98 * w
        height = height + 0.1 * speed
        if height < 0:
            height, speed = -0.9 * height, -0.9 * speed
    return height


def chosen(x, w):
    return mg.cond(x > 0, lambda: mg.exp(x) * w, lambda: x * x * w) * 2.0


def converging(x, w):
    return w * mg.while_loop(lambda y: abs(y * y - x * x) > 1e-9, lambda y: 0.5 * (y + x * x / y), x + 3.0)


def whole(x, w):
    return x * w if int(x * 1.5) == 3 else x + round(w) * w


def truth(x, w):
    return x * w if x else w * w


def twice(x, w):
    return (x if x > w else w) * (x if x > w else 2 * w)


def elements(x, w):
    return np.maximum(np.array([x, w]), 1.0).sum() * x


FUNCTIONS = {
    leaky: ["x * w < 0", "y < 0", "y > 5 * w"],
    halved: ["x * w > 1"],
    ball: ["height < 0"],
    chosen: ["x > 0"],
    converging: ["abs(y * y - x * x) > 1e-09"],
    whole: ["int(x * 1.5)", "int(x * 1.5) == 3", "round(w)"],
    truth: ["x"],
    twice: ["x > w"],
    elements: ["np.maximum(np.array([x, w]), 1.0)"],
}


def questions(data):
    """The boxes of questions, each with its name and what is said of the answer."""
    asked = {node["group"]: node["asked"] for node in data["nodes"] if node["asked"]}
    return [(group["name"], group["kernel"], asked[n]) for n, group in enumerate(data["groups"]) if n in asked]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the gradient of a Value is lost")
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_the_path_that_was_taken_is_shown_with_its_questions(function, backend, tmp_path):
    fast = mg.compile(function, backend=backend)
    for number in (2.0, -2.5, 5.0):
        arguments = Value(number, label="x"), Value(1.25, label="w")
        result = fast(*arguments)
        data = explored(result * 2.0, tmp_path)
        assert_as_eager(data, function, arguments)
        found = questions(data)
        assert found
        assert all(
            re.sub(r" \d+$", "", name) in FUNCTIONS[function] or name in FUNCTIONS[function] for name, _, _ in found
        )
        assert all(line.startswith("test_questions.py:") for _, line, _ in found)
        of_call = explored(fast, tmp_path)
        assert of_call["nodes"][of_call["root"]]["data"] == pytest.approx(result.data)
        assert [each[2] for each in questions(of_call)] == [each[2] for each in found]


def test_a_box_has_what_only_the_question_needs(tmp_path):
    fast = mg.compile(leaky, backend="numpy")
    fast(Value(-2.0, label="x"), Value(1.5, label="w"))
    data = explored(fast, tmp_path)
    assert [(name, asked) for name, _, asked in questions(data)] == [
        ("y < 0", {"answer": 1.0, "isTruth": True}),
        ("y > 5 * w", {"answer": 0.0, "isTruth": True}),
    ]
    inside = {}
    for node in data["nodes"]:
        if node["group"] is not None and node["primitive"] is not None:
            inside.setdefault(data["groups"][node["group"]]["name"], []).append(
                data["primitives"][node["primitive"]]["name"]
            )
    assert inside["y < 0"] == ["less"]
    assert inside["y > 5 * w"] == ["mul", "less"]
    assert [name for name in inside if name[0].isdigit()] == ["1: product", "2: product", "3: product"]


def test_the_same_question_many_times_is_a_stack(tmp_path):
    fast = mg.compile(ball, backend="numpy")
    fast(Value(2.0), Value(1.0))
    data = explored(fast, tmp_path)
    stacks = [group for group in data["groups"] if group["kind"] == "stack" and group["name"] == "height < 0"]
    assert len(stacks) == 1
    assert stacks[0]["kernel"].startswith("test_questions.py:")
    assert [name for name, _, _ in questions(data)] == [f"height < 0 {number}" for number in range(1, 10)]


def test_without_source_the_numbers_are_the_name(tmp_path):
    names = {}
    exec("def f(x):\n    if x > 1:\n        return x * x\n    return -x", names)
    fast = mg.compile(names["f"], backend="numpy")
    fast(Value(3.0))
    assert [(name, line) for name, line, _ in questions(explored(fast, tmp_path))] == [("1 < 3", "<string>:2")]


def test_what_only_decides_is_shown_too(tmp_path):
    fast = mg.compile(lambda x: x if x > 0 else -x, backend="numpy")
    assert fast(2.0) == 2.0
    data = explored(fast, tmp_path)
    assert data["nodes"][data["root"]]["data"] == 2.0
    assert [name for name, _, _ in questions(data)] == ["x > 0"]


def test_a_call_that_was_eager_cannot_be_opened(tmp_path):
    fast = mg.compile(lambda x: mg.log(x) if x > 0 else x, backend="numpy")
    fast(2.0)
    assert explored(fast, tmp_path)["groups"]
    with pytest.raises(ValueError, match="log"):
        mg.compile(lambda x: mg.log(x) if x < 9 else x, backend="numpy")(-1.0)
    near = mg.compile(lambda x: x + 1 if 0.1 * x + 0.2 * x + 0.3 * x > 0.6 else x, backend="numpy")
    near(2.0)
    near(1.0)
    with pytest.raises(ValueError, match="it ran without the compiler"):
        mg.explore(near, tmp_path / "near.html")


def test_where_the_path_cannot_be_found_again_the_call_stays_closed(tmp_path):
    limit = Value(1.0, requires_grad=False)
    fast = mg.compile(lambda x: mg.cond(x > limit, lambda: 1 / (limit - 1.5), lambda: x) * x, backend="numpy")
    result = fast(Value(3.0)) * 2.0
    assert questions(explored(result, tmp_path))
    limit.data = 1.5  # now that path divides by zero
    closed = explored(result, tmp_path)
    assert not questions(closed)
    assert closed["nodes"][closed["root"]]["data"] == result.data
    limit.data = 4.0  # and now another one is taken
    assert not questions(explored(result, tmp_path))
    limit.data = 1.0
    asking = mg.compile(lambda x: mg.cond(mg.log(limit) < x, lambda: x * x, lambda: x), backend="numpy")
    result = asking(Value(3.0)) * 2.0
    assert questions(explored(result, tmp_path))
    limit.data = -1.0  # now nobody can tell which one would be
    assert not questions(explored(result, tmp_path))


def test_the_numbers_of_a_path_are_those_of_the_call(tmp_path):
    x, w = Value(2.0, label="x"), Value(1.5, label="w")
    result = mg.compile(lambda x: mg.cond(x > w, lambda: x * w, lambda: x), backend="numpy")(x) * 2.0
    x.data, w.data = -7.0, 5.0
    data = explored(result, tmp_path)
    assert data["nodes"][data["root"]]["data"] == 6.0
    assert dict(gradients(data)) == {"x": 3.0, "w": 4.0}
    assert [(name, asked["answer"]) for name, _, asked in questions(data)] == [("x > w", 1.0)]
    assert (x.data, w.data) == (-7.0, 5.0)


def test_a_program_of_many_terms_asks_too(tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "MOST_TERMS", 10)
    w = [[Value(0.1 * (row - column)) for column in range(6)] for row in range(6)]

    def layer(xs):
        total = sum(mg.dot(row, xs) for row in w)
        return total * total if total > 1e9 else mg.tanh(total)

    fast = mg.compile(layer, backend="numpy")
    result = fast([0.1] * 6)
    data = explored(fast, tmp_path)
    assert data["nodes"][data["root"]]["data"] == pytest.approx(result.data)
    assert "terms" in [node["terms"][-5:] for node in data["nodes"]]
    assert [name for name, _, _ in questions(data)] == ["total > 1e9"]
