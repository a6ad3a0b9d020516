"""mg.cond and mg.while_loop in exported files: the program in C decides, and its gradients follow."""

import math
import random
import re

import numpy as np
import pytest

import micrograd as mg
from tests.compiler.c_files import Built, needs_cc

pytestmark = [needs_cc, pytest.mark.slow]


@pytest.fixture
def built(tmp_path):
    """A function that exports a function, and compiles the file."""

    def build(function, *arguments, file="f_0", flags=(), **options):
        return Built(mg.compile(function).export(tmp_path / f"{file}.c", *arguments, **options), flags)

    return build


def eager(function, arguments, others=()):
    """The value and the gradients by the arguments, and by other Values."""
    given = [mg.Value(x) for x in arguments]
    result = function(*given)
    return result.data, [*mg.gradient(result, [*given, *others])]


def agrees(file, function, points, others=()):
    for point in points:
        value, slopes = eager(function, point, others)
        found, gradients = file.both(point)
        assert file.value(point)[0] == found[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradients, slopes, rtol=1e-12, atol=1e-14)
        assert file("checked", point)[0] == file("value_checked", point)[0] == 0


def test_each_branch_of_a_choice(built):
    scale = mg.Value(1.5, label="scale")

    def f(x, y):
        z = mg.exp(y) * scale
        return mg.cond(x > 0, lambda x: mg.log(x) * z, lambda x: x * x + y * z, x) ** 2 + x

    file = built(f, 1.0, 1.0)
    agrees(file, f, [(0.7, 0.3), (-0.7, 0.3), (2.5, -1.0)], [scale])
    assert re.search(r"if \(numbers\[\d+\] != 0\.0\) \{\n        f_0_then_1\(", file.source)
    given = built(f, 1.0, 1.0, parameters="argument", file="given")
    assert given.both([0.7, 0.3], parameters=[3.0])[0][0] == pytest.approx(4 * (f(0.7, 0.3).data - 0.7) + 0.7)
    assert [file("checked", point)[0] for point in ([0.7, 800.0], [-0.7, math.nan], [math.nan, 1.0])] == [1, 1, 1]


def root(a, start):
    """The square root, by Newton's method, and how many iterations that took."""
    x, count = mg.while_loop(
        lambda state: abs(state[0] * state[0] - a) > 1e-12 * a,
        lambda state: ((state[0] + a / state[0]) * 0.5, state[1] + 1),
        (start, 0),
        limit=50,
    )
    return x + 0.5 * count


def test_a_loop_until_a_number_is_small_enough(built):
    file = built(root, 2.0, 1.0)
    agrees(file, root, [(2.0, 1.0), (9.0, 5.0), (1e6, 0.1), (4.0, 2.0)])
    assert "for (;;) {" in file.source
    assert len(file.source) < 10_000
    single = built(root, 2.0, 1.0, precision="float32", file="single", gradients=False)
    assert "double" not in single.source


def test_a_loop_with_too_many_iterations_is_an_error(built):
    def f(x):
        return mg.where(x > 0, 1.0, mg.while_loop(lambda y: y < 100.0, lambda y: y * 2.0 + x, x * x, limit=5))

    file = built(f, -4.0)
    assert file("checked", [-20.0])[0] == 0
    assert file("checked", [1.0])[0] == 1  # even if nobody needs the number
    assert math.isnan(file.value([1.0])[0])
    with pytest.raises(ValueError, match="still holds after 5 iterations"):
        f(1.0)


@pytest.mark.parametrize("limit", [None, 9])
def test_what_is_not_finite_in_an_iteration_is_an_error_although_the_next_one_is_well(limit, built):
    def f(x):
        def body(s):
            inverse = 1.0 / mg.where(s < 0.5, x, 1.0)
            return mg.where(inverse > 100.0, 0.75, inverse)

        return mg.while_loop(lambda s: mg.where(s >= 1.0, 0.0, 1.0) > 0.5, body, x - x, limit=limit)

    file = built(f, 0.5)
    assert file.value([0.5])[0] == f(0.5) == 2.0
    assert [file("value_checked", [x])[0] for x in (0.5, 0.0)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        f(0.0)


def test_gradients_of_a_loop_without_a_limit(built):
    def f(x):
        return mg.cond(x > 0, lambda: mg.while_loop(lambda y: y < 9.0, lambda y: y * x + 1.0, 1.0), lambda: x)

    agrees(built(f, 0.5), f, [(2.0,), (3.5,), (-1.0,)])

    def decaying(x, rate):  # from a few iterations to thousands, of which the file keeps 64
        return mg.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] - rate * s[0], s[1] + mg.sin(s[0])), (x, x))[1]

    file = built(decaying, 2.0, 0.1, file="decaying")
    agrees(file, decaying, [(0.5, 0.1), (2.0, 0.1), (8.0, 0.1), (9.0, 0.033), (9.0, 0.01), (9.0, 0.001), (9.0, 0.0001)])
    assert file.macros["WORK"] < 300


def nested(x, y, w):
    def body(s):
        t = mg.cond(s > 2.0, lambda s: s * 0.9, lambda s: s + y * w, s)
        return mg.while_loop(lambda u: u < 1.0, lambda u: u * 1.25 + x, t, limit=20) + 1.1

    return mg.while_loop(lambda s: s < 4.0, body, x, limit=30) * y


@pytest.mark.parametrize("flags", [(), ("-fsanitize=undefined", "-fno-sanitize-recover")])
def test_decisions_inside_of_decisions(flags, built):
    file = built(nested, 0.3, 0.2, 1.5, flags=flags, work="argument")
    agrees(file, nested, [(0.3, 0.2, 1.5), (0.1, 0.9, 1.5), (3.5, 0.5, -0.25), (5.0, 2.0, 1.0)])


def test_two_decisions_that_read_the_same_number(built):
    def f(x):
        y = mg.exp(x) * x
        a = mg.cond(y > 1.0, lambda: y * y, lambda: mg.sin(y))
        b = mg.cond(y > 2.0, lambda: mg.sqrt(y), lambda: y * a)
        return a * b + y

    agrees(built(f, 0.5), f, [(0.1,), (0.7,), (1.5,)])


def test_results_of_several_kinds(built):
    def f(x, y):
        return [*mg.cond(x < y, lambda: [x, 2.0, mg.sin(x)], lambda: [y, x, 1.0]), x * y, 7.0]

    file = built(f, mg.Value(0.5), mg.Value(2.0))
    found, slopes = file.both([0.5, 2.0], seeds=[1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(found, [0.5, 2.0, math.sin(0.5), 1.0, 7.0])
    np.testing.assert_allclose(slopes, [1.0 + 100.0 * math.cos(0.5) + 2000.0, 500.0])
    found, slopes = file.both([2.0, 0.5], seeds=[1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(found, [0.5, 2.0, 1.0, 1.0, 7.0])
    np.testing.assert_allclose(slopes, [10.0 + 500.0, 1.0 + 2000.0])


def test_arrays_and_networks_in_decisions(built):
    random.seed(4)
    net = mg.nn.MLP(2, [3, 2], activation="tanh")

    def f(x):
        x = mg.while_loop(lambda x: np.sum(x * x) > 0.5, lambda x: np.array(net([x[0], x[1]])) * 0.5, x, limit=8)
        return np.sum(x * np.array([1.0, 3.0]))

    file = built(f, np.array([0.5, 0.25]))
    for point in ([0.1, 0.2], [1.5, -2.0]):
        values = np.array([mg.Value(number) for number in point])
        result = f(values)
        found, slopes = file.both(point)
        assert found[0] == pytest.approx(result.data, rel=1e-12)
        expected = mg.gradient(result, [*values, *net.parameters()])
        np.testing.assert_allclose(sorted(slopes), sorted(expected), rtol=1e-11, atol=1e-15)


def test_decisions_in_the_iterations_of_a_scan_and_the_other_way_round(built):
    def f(x, y):
        total, _ = mg.scan(
            lambda s, k: (mg.cond(s > 1.0, lambda s: s * 0.5, lambda s: s + k * y, s), None), x, [1.0] * 6
        )
        return mg.while_loop(
            lambda u: u < 3.0, lambda u: mg.scan(lambda v, _: (v + x * y, None), u, length=7)[0], total, 9
        )

    agrees(built(f, 0.5, 0.7), f, [(0.5, 0.7), (1.5, 0.3)])


def test_what_python_knows_is_decided_by_python(built):
    def f(x):
        y, _ = mg.while_loop(lambda s: s[1] < 3, lambda s: (s[0] * x, s[1] + 1), (1.0, 0))
        return mg.cond(True, lambda: y, lambda: x) + len(mg.cond(x > 0, lambda: (), lambda: ()))

    file = built(f, 2.0)
    assert file.value([2.0])[0] == 8.0
    assert "if (" not in file.source[file.source.index("void f_0_value") :]


def test_derivatives_around_decisions(built):
    def slope(x, y):
        found = mg.grad(lambda x: mg.cond(x > 0, lambda: x * x * y, lambda: mg.while_loop(halved, half, -x * y)))(x)
        return found * x

    def halved(z):
        return z > 1.0

    def half(z):
        return 0.5 * z * z / (z + 0.1)

    agrees(built(slope, mg.Value(1.0), mg.Value(2.0)), slope, [(1.0, 2.0), (-3.0, 2.0), (-8.0, 1.0)])

    def curvature(x, y):
        return mg.hessian(lambda p: mg.while_loop(lambda s: s < 9.0, lambda s: s * p[0] + p[1] ** 2, p[1]))([x, y])[0][
            1
        ]

    file = built(curvature, mg.Value(1.5), mg.Value(0.5), file="curvature")
    agrees(file, curvature, [(1.5, 0.5), (1.1, 2.0), (1.5, 10.0)])


def test_what_cannot_be_decided_in_c(built):
    refused = [
        (lambda x: mg.cond(x > 0, lambda: [x], lambda: x), mg.TraceError, "a choice between results of two structures"),
        (lambda x: max(mg.cond(x > 0, lambda: x, lambda: 2 * x), x), mg.TraceError, "the truth of a number"),
        (lambda x: mg.while_loop(lambda y: [y, y][0] < 1.0, lambda y: [y], x, 3), ValueError, "keep its structure"),
        (lambda x: mg.while_loop(lambda _: x < 1.0, lambda _: (), (), 3), mg.TraceError, "whose state has no numbers"),
        (
            lambda x: mg.while_loop(lambda y: y < 1.0 if y is x else [y, y], lambda y: y + 1.0, x, 3),
            mg.TraceError,
            "a condition that is no number",
        ),
    ]
    for function, kind, message in refused:
        with pytest.raises(kind, match=message):
            built(function, 0.5)
