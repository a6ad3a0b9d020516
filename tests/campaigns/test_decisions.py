"""The campaign on programs that decide on numbers runs, and finds what is wrong."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.campaigns import decisions

pytestmark = pytest.mark.slow


def test_eager_and_compiled_agree(capsys):
    assert decisions.main(["--count", "4", "--inputs", "20"]) == 0
    assert "4 programs at 20 inputs: 0 disagreements" in capsys.readouterr().out
    assert decisions.main(["--count", "4", "--minutes", "-1"]) == 0


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_any_program_agrees(number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not decisions.disagreements(1, number, 12)


def test_what_disagrees_is_named(capsys, monkeypatch):
    monkeypatch.setattr(decisions.mg, "compile", lambda function, backend: lambda *inputs: function(*inputs) + 1)
    assert decisions.main(["--only", "7", "--inputs", "3"]) == 1
    printed = capsys.readouterr().out
    assert "def f(x, y, z):" in printed
    assert "program 7, llvm, at [" in printed
    assert "1 programs at 3 inputs: 1 disagreements" in printed
