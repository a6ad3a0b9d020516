"""The command that measures the accuracy of the primitives, with few points."""

import random

import pytest

from tests.campaigns import accuracy
from tests.strategies import TABLE

pytestmark = pytest.mark.slow

# Their derivatives are exp(out**2), times the rounding of the square: 150 units at the edges of the domain
QUANTILES = ("ndtri", "erfinv")
# At numbers that are as small as floats come, no float may be as large as what the rules go through
GAPS = ("atan2", "betaln", "div", "hypot", "pow")


@pytest.mark.unmeasured
@pytest.mark.parametrize("primitive", TABLE, ids=lambda primitive: primitive.name)
def test_value_and_derivatives_are_right_to_a_few_units_in_the_last_position(primitive):
    for worst in accuracy.measure(primitive, 40, random.Random(1)):
        final = worst
    for one in final:
        assert one.ordinary < (1000 if primitive.name in QUANTILES else 8)
        assert primitive.name in GAPS or not one.missing


def test_a_wrong_digit_is_found_and_a_result_that_is_missing_counted():
    worst = accuracy.Worst()
    worst.add(1.0 + 2**-50, accuracy.mp.mpf(1), 0, (2.0,))
    assert (worst.ordinary, worst.ordinary_point) == (4.0, (2.0,))
    worst.add(1e-300, accuracy.mp.mpf(0), 0, (1e-200,))
    assert worst.anywhere > 1e15
    assert worst.point == (1e-200,)
    worst.add(float("nan"), accuracy.mp.mpf(1), 0, (3.0,))
    worst.add(None, accuracy.mp.mpf(1), 0, (4.0,))
    worst.add(None, accuracy.mp.mpf(10) ** 400, 0, (5.0,))
    assert (worst.count, worst.missing) == (5, [(3.0,), (4.0,)])


def test_it_writes_its_section_and_leaves_the_others(tmp_path, capsys):
    page = tmp_path / "reliability.md"
    command = ["--points", "5", "--primitive", "tanh", "--primitive", "pow", "--write", str(page)]
    accuracy.main(command)
    first = page.read_text()
    assert first.startswith("# Reliability\n\n## Accuracy of the primitives\n")
    assert "| tanh | " in first
    assert capsys.readouterr().out in first
    page.write_text("# Reliability\n\n## One\n\ntext\n\n## Accuracy of the primitives\n\nold\n\n## Two\n\nmore\n")
    accuracy.main(command)
    text = page.read_text()
    assert text.startswith("# Reliability\n\n## One\n\ntext\n\n## Accuracy of the primitives\n\nThe table shows")
    assert text.endswith("--write docs/reliability.md`.\n\n## Two\n\nmore\n")
    accuracy.main(command)
    assert page.read_text() == text


@pytest.mark.parametrize("words", [["--points", "0"], ["--primitive", "tahn"]])
def test_wrong_arguments_are_named(words, capsys):
    with pytest.raises(SystemExit):
        accuracy.main(words)
    assert words[1] in capsys.readouterr().err
