"""The campaign on nested loops runs, and finds what is wrong."""

import pytest

from tests.campaigns import nested_loops

pytestmark = pytest.mark.slow


@pytest.mark.unmeasured
def test_all_ways_agree(capsys):
    assert nested_loops.main(["--count", "3"]) == 0
    assert "3 programs: 0 disagree" in capsys.readouterr().out
    assert nested_loops.main(["--count", "3", "--minutes", "-1"]) == 0


@pytest.mark.unmeasured
def test_what_disagrees_is_named(capsys, monkeypatch):
    monkeypatch.setattr(nested_loops, "agree", lambda one, other: False)
    monkeypatch.setattr(nested_loops, "is_chaotic", lambda *given: False)
    assert nested_loops.main(["--only", "1"]) == 1
    printed = capsys.readouterr().out
    assert "def f(given):" in printed
    assert "program 1, stated, llvm, call 1" in printed
    assert "1 programs: 1 disagree" in printed


@pytest.mark.unmeasured
def test_what_depends_on_the_last_digits_of_its_inputs_cannot_be_compared(capsys):
    assert nested_loops.main(["--only", "2", "--seed", "101"]) == 0
    assert "1 programs: 0 disagree, 1 cannot be compared" in capsys.readouterr().out
