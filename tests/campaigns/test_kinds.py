"""The campaign on kinds of numbers runs, and finds what is wrong."""

import pytest

from tests.campaigns import kinds

pytestmark = pytest.mark.slow


@pytest.mark.unmeasured
def test_compiled_agrees_or_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(kinds, "EXPRESSIONS", ["a*3", "np.sqrt(a)", "a.sum()*2"])
    assert kinds.main(["--backend", "numpy"]) == 0
    assert "216 agree, or are refused" in capsys.readouterr().out


def test_what_differs_is_named(capsys, monkeypatch):
    monkeypatch.setattr(kinds, "EXPRESSIONS", ["a"])
    monkeypatch.setattr(kinds.mg, "compile", lambda function, backend: lambda *inputs: function(*inputs)[0])
    assert kinds.main([]) == 72
    assert "vector a of int8 [3, 1, 2]: ('given', " in capsys.readouterr().out
