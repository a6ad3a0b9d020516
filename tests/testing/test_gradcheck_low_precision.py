"""What gradcheck says of functions that are computed in few digits, or with noise: never right of a wrong derivative.

The functions are rounded by hand, so nothing here depends on how a library rounds.
"""

import math
import random
from collections import Counter
from functools import cache

import pytest

from micrograd.testing import GradientError, gradcheck, numerical_gradient
from micrograd.testing.checking import _estimates, _row
from tests.pages import section, tables
from tests.rounding import brain, half, single

pytestmark = pytest.mark.slow


def rounded(rounding):
    """Makes a function of numbers of such a kind out of one of floats."""
    return lambda f: lambda x: rounding(f(rounding(x)))


def noisy(size):
    """Makes a function off by a relative error, which looks random and is the same whenever x is."""
    return lambda f: lambda x: f(x) * (1 + size * random.Random(repr(x)).uniform(-1, 1))


FUNCTIONS = {
    "sin": (math.sin, math.cos),
    "exp": (math.exp, math.exp),
    "cube": (lambda x: x**3, lambda x: 3 * x * x),
    "log": (math.log, lambda x: 1 / x),
    "root of a shifted square": (lambda x: math.sqrt(1 + x * x), lambda x: x / math.sqrt(1 + x * x)),
}
POINTS = [0.1123 + 0.1 * index for index in range(60)]
FORMATS = {
    "float64": lambda f: f,
    "float32": rounded(single),
    "float16": rounded(half),
    "bfloat16": rounded(brain),
    "noise of 1e-6": noisy(1e-6),
}
PLANTED = {"right": 1.0, "0": 0.0, "sign flipped": -1.0, "twice": 2.0, "off by 1e-2": 1.01}


def verdict(f, x, slope, **settings):
    try:
        (row,) = gradcheck(f, [x], gradient=lambda x: slope, **settings).rows
    except GradientError as error:
        (row,) = error.report.rows
    return row.verdict


def verdicts_of(f, x, slopes):
    """The verdicts on several slopes: the differences are the same for all."""
    ((estimate,),) = _estimates(lambda x: [f(x)], [x], [f(x)])
    return [_row("0", x, slope, 0.0, estimate, 1e-7).verdict for slope in slopes]


# How many of 300 wrong derivatives are accused at least: 0, sign flipped, twice, and off by 1e-2.
ACCUSED = {
    "float64": (300, 300, 300, 300),
    "float32": (300, 300, 300, 295),
    "float16": (225, 290, 225, 100),
    "bfloat16": (225, 285, 225, 0),
    "noise of 1e-6": (300, 300, 300, 290),
}


@pytest.mark.unmeasured
@pytest.mark.parametrize("kind", FORMATS)
def test_no_right_derivative_is_accused_no_wrong_one_called_right_and_the_page_on_reliability_has_the_counts(kind):
    """But for a few points, where the functions of another system round in another way."""
    found = {planted: Counter() for planted in PLANTED}
    for f, slope in FUNCTIONS.values():
        computed = cache(FORMATS[kind](f))
        for x in POINTS:
            verdicts = verdicts_of(computed, x, [times * slope(x) for times in PLANTED.values()])
            for planted, said in zip(PLANTED, verdicts, strict=True):
                found[planted][said] += 1
        assert verdict(computed, x, slope(x)) == verdicts[0]
    right, *wrong = found.values()
    assert right["WRONG"] == 0
    assert right["right"] == (0 if kind.endswith("float16") else pytest.approx(300, abs=5))
    assert [verdicts["right"] for verdicts in wrong] == [0] * 4
    assert all(verdicts["WRONG"] >= least for verdicts, least in zip(wrong, ACCUSED[kind], strict=True))
    assert not any(verdicts["kink"] + verdicts["jump"] for verdicts in found.values())

    (rows,) = [rows for rows in tables(section("reliability.md", "`gradcheck` itself")) if rows[0][0] == "float64"]
    (start,) = [number for number, (name, *_) in enumerate(rows) if name == kind]
    compared = []
    for name, planted, *counts in rows[start:]:
        if name not in ("", kind):
            break
        for what in planted.split(", "):
            shown = [int(count.removesuffix(" each")) for count in counts]
            assert shown == pytest.approx([found[what][said] for said in ("WRONG", "right", "unclear")], abs=5), what
            compared.append(what)
    assert sorted(compared) == sorted(PLANTED)


@pytest.mark.parametrize("rounding", [half, brain])
@pytest.mark.parametrize(
    ("operations", "slope"),
    [
        (lambda r, x: r(r(r(math.cos(x)) - 1)), lambda x: -math.sin(x)),
        (lambda r, x: r(r(r(r(x * x) * x) - r(2 * x)) + 5), lambda x: 3 * x * x - 2),
        (lambda r, x: r(1 / r(1 + r(math.exp(-x)))), lambda x: math.exp(-x) / (1 + math.exp(-x)) ** 2),
        (lambda r, x: r(100 + r(math.sin(x))), math.cos),
        (lambda r, x: 0.7 * r(math.sin(x)), lambda x: 0.7 * math.cos(x)),
        (lambda r, x: r(1 / x), lambda x: -1 / x**2),
        (lambda r, x: r(math.cos(r(3 * x))), lambda x: -3 * math.sin(3 * x)),
    ],
)
@pytest.mark.unmeasured
def test_nor_where_every_operation_is_rounded(operations, slope, rounding):
    for index in range(40):
        x = 0.0321 * (1 + index) ** 1.3
        f = cache(lambda x: operations(rounding, rounding(x)))
        right, rounded_too, *wrong = verdicts_of(f, x, [slope(x), rounding(slope(rounding(x))), 0.0, -slope(x)])
        assert (right, rounded_too) == ("unclear", "unclear")
        assert "right" not in wrong


@pytest.mark.parametrize("x", [1 + 2.0**-8, 1 - 2.0**-9, 3 + 2.0**-7, -0.5 - 2.0**-9])
def test_a_point_between_two_numbers_of_few_digits(x):
    """The function jumps there, by one of its steps."""
    assert verdict(rounded(brain)(math.exp), x, math.exp(x)) == "unclear"
    assert verdict(rounded(brain)(math.exp), x, 0.0) == "WRONG"
    assert verdict(rounded(brain)(math.exp), x, -math.exp(x)) == "WRONG"


def test_the_line_behind_the_steps_is_what_is_shown():
    for name, digits in (("float16", 0.01), ("bfloat16", 0.04)):
        for x in (0.7, 1.3, 2.9):
            assert numerical_gradient(FORMATS[name](math.exp), [x]) == pytest.approx([math.exp(x)], rel=digits)


@pytest.mark.parametrize("rounding", [half, brain])
def test_a_flat_that_is_more_than_rounding_is_one(rounding):
    def f(x):
        return rounding(max(0.0, rounding(x) - 1.0))

    for x in (-3.0, -0.7):
        assert verdict(f, x, 0.0) == "right"
        assert verdict(f, x, 1.0) == "WRONG"
    for x in (1.7, 2.3):
        assert verdict(f, x, 1.0) == "unclear"
        assert verdict(f, x, -1.0) == "WRONG"


@pytest.mark.parametrize("x", [5.3, 9.7])
def test_where_few_digits_level_off_a_small_slope_is_not_accused(x):
    for f, slope in [
        (math.tanh, lambda x: 1 - math.tanh(x) ** 2),
        (lambda x: 1 / (1 + math.exp(-x)), lambda x: math.exp(-x) / (1 + math.exp(-x)) ** 2),
    ]:
        assert verdict(rounded(brain)(f), x, slope(x)) == "unclear"
        assert verdict(rounded(brain)(f), x, 1.0) == "WRONG"


@pytest.mark.parametrize("x", [5812.3, 12345.6, 35000.4, 54321.0])
def test_a_point_of_32_bits_so_far_out_that_the_function_moves_in_steps(x):
    f = rounded(single)(math.sin)
    assert verdict(f, x, math.cos(single(x))) in ("right", "unclear")
    assert verdict(f, x, 0.0) in ("WRONG", "unclear")
    assert verdict(f, x, -math.cos(single(x))) == "WRONG"


def test_where_it_ends():
    assert verdict(rounded(brain)(math.tanh), 12.0, 0.0) == "right"
    assert [verdict(math.floor, x, slope) for x in (7.5, 1e6 + 0.5) for slope in (0.0, 1.0)] == [
        *("right", "WRONG"),
        *("WRONG", "right"),
    ]
    of_the_rest, of_all = rounded(half)(math.sin)(0.7), math.sin(0.7) + 0.7 * math.cos(0.7)
    assert verdict(lambda x: x * rounded(half)(math.sin)(x), 0.7, of_the_rest) == "right"
    assert verdict(lambda x: x * rounded(half)(math.sin)(x), 0.7, of_all) == "WRONG"
    for x, expected in ((300.0, "right"), (4e4, "unclear"), (1e6, "unclear"), (1e8, "WRONG")):
        positions = [x * times for times in (1.0137, 1.037, 1.137)]
        assert [verdict(rounded(single)(math.sin), x, math.cos(single(x))) for x in positions] == [expected] * 3


def test_a_pole_or_a_turn_within_reach_does_not_lead_the_line_astray():
    for rounding in (half, brain):
        for x in (0.0061, 0.0087, 0.013):
            assert verdict(rounded(rounding)(lambda x: 1 / x), x, -1 / x**2) == "unclear"
        for x in (5.211199175955528, 5.2270995365152775):
            assert verdict(rounded(rounding)(lambda x: math.cos(3 * x)), x, -3 * math.sin(3 * x)) == "unclear"


def test_noise_is_no_jump_and_a_jump_under_noise_is_one():
    def f(x):
        return noisy(1e-6)(math.exp)(x) + (x >= 0.7)

    assert verdict(f, 0.7, math.exp(0.7)) == "jump"
    assert verdict(f, 0.4, -math.exp(0.4)) == "WRONG"


class TestStrict:
    @pytest.mark.parametrize(
        ("f", "x", "slope", "expected"),
        [
            (abs, 0.0, 0.5, "kink"),
            (math.floor, 2.0, 0.0, "jump"),
            (lambda x: 1e20 + x, 1.0, 1.0, "unclear"),
            (rounded(half)(math.sin), 0.7, math.cos(0.7), "unclear"),
        ],
    )
    def test_it_fails_on_every_verdict_but_right(self, f, x, slope, expected):
        assert gradcheck(f, [x], gradient=lambda x: slope)
        with pytest.raises(GradientError, match=r"^finite differences do not confirm the gradient:\n") as raised:
            gradcheck(f, [x], gradient=lambda x: slope, strict=True)
        (row,) = raised.value.report.rows
        assert row.verdict == expected

    def test_it_passes_what_is_right(self):
        report = gradcheck(
            lambda x, y: math.sin(x) * y, [0.5, 2.0], gradient=lambda x, y: (math.cos(x) * y, math.sin(x))
        )
        again = gradcheck(
            lambda x, y: math.sin(x) * y, [0.5, 2.0], gradient=lambda x, y: (math.cos(x) * y, math.sin(x)), strict=True
        )
        assert again == report

    def test_what_is_wrong_it_calls_so(self):
        with pytest.raises(GradientError, match=r"^the gradient and finite differences disagree:\n"):
            gradcheck(math.sin, [0.5], gradient=lambda x: 2.0, strict=True)

    def test_one_doubt_among_several_inputs_and_second_derivatives(self):
        with pytest.raises(GradientError, match="kink"):
            gradcheck(lambda x: x * abs(x) / 2, [0.0], 2, gradient=abs, hessian=lambda x: 0.0, strict=True)
        with pytest.raises(GradientError, match="kink"):
            gradcheck(lambda x, y: x + abs(y), [1.0, 0.0], gradient=lambda x, y: (1.0, 0.0), strict=True)
