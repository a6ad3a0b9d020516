"""The campaign on small integers runs, and finds what is wrong."""

import pytest

from tests.campaigns import integers

pytestmark = pytest.mark.slow


def test_eager_and_compiled_agree(capsys):
    assert integers.main(["--count", "20", "--together", "10"]) == 0
    assert "20 programs with 2 backends: 0 disagreements" in capsys.readouterr().out
    assert integers.main(["--only", "7"]) == 0
    assert integers.program_of(0, 7) == integers.program_of(0, 7) != integers.program_of(1, 7)


def test_what_disagrees_is_named(capsys, monkeypatch):
    monkeypatch.setattr(integers.mg, "compile", lambda function, backend: lambda *inputs: function(*inputs) + 1)
    assert integers.main(["--only", "7"]) == 1
    printed = capsys.readouterr().out
    assert "program 7, numpy: eager" in printed
    assert "1 programs with 2 backends: 2 disagreements" in printed
