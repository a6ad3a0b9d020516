"""What the tests of the demos share."""

import runpy
import sys

import pytest

from tests.folders import DEMOS


@pytest.fixture
def refusal(tmp_path, monkeypatch, capsys):
    """The exit code of a demo that refuses to run, and what it says; in this process, which is faster."""

    def refusal(demo, *options):
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(DEMOS))
        monkeypatch.setattr(sys, "argv", [demo, *options])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(DEMOS / demo), run_name="__main__")
        if isinstance(end.value.code, str):  # Python prints it and exits with 1
            return 1, end.value.code
        return end.value.code, capsys.readouterr().err

    return refusal
