"""The planted mistakes fit the modules as they are, and the campaign tells those that are noticed from the others."""

import os
import subprocess
import sys

import pytest

from tests.campaigns.mistakes import MISTAKES, check_quotes, planted, read
from tests.folders import ROOT

ALL = read(MISTAKES.read_text("utf-8"))
LIKE = """lib
The sum is a difference.
noticed by test_package
- return x + y
+ return x - y
"""


def test_each_mistake_is_there_once_and_says_what_is_wrong_in_a_sentence():
    assert len(ALL) >= 105
    assert len({mistake.what for mistake in ALL}) == len(ALL)
    assert all(mistake.what.endswith(".") for mistake in ALL)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def add(x, y):\n    return x * y\n", 0),
        ("def add(x, y):\n    return x + y\n\n\ndef twice(x, y):\n        return x + y\n", 2),
        ("x = 1\nreturn x + y + z\n", 0),
    ],
)
def test_a_text_that_is_not_there_once_is_refused_by_name(source, count):
    (mistake,) = read(LIKE)
    with pytest.raises(
        ValueError, match=f"^1  lib: The sum is a difference.\n  its original .* once, not {count} times"
    ):
        planted(mistake, source)


def test_indentation_is_that_of_the_module():
    (mistake,) = read(
        "# of two lines\n\nlib\nIt is\nwrong.\nnoticed by a b\n- if x:\n-     go()\n-\n+ if y:\n+\n+     go()\n"
    )
    assert (mistake.what, mistake.tests) == ("It is wrong.", ("a", "b"))
    assert planted(mistake, "def f():\n    if x:\n        go()\n\n    end()") == (
        "def f():\n    if y:\n\n        go()\n    end()"
    )


@pytest.mark.parametrize(
    "text", ["lib\nIt is wrong.\n- x\n+ y", "lib\nnoticed by a\n- x", "lib\nIt is.\nnoticed by a\n+ x"]
)
def test_a_block_without_a_sentence_or_tests_or_lines_is_refused(text):
    with pytest.raises(ValueError, match=r"^1  lib: .*\n  needs a sentence, the tests that must notice, and original"):
        read(text)


def test_all_mistakes_that_quote_lines_that_have_changed_are_named():
    mistakes = read(f"engine.node{LIKE[3:]}\nengine.order{LIKE[3:]}")
    with pytest.raises(SystemExit, match=r"1  engine.node: (?s:.*)2  engine.order: (?s:.*)\n2 mistakes quote lines"):
        check_quotes(mistakes)


PLANTED = """engine.node
requires_grad of a result may be set.
noticed by engine/test_requires_grad
- if not self.is_leaf:
-     raise ValueError(f"{self!r} is the result of {self._op!r}: set requires_grad of its leaves")

engine.node
It is said in other words, which changes nothing.
noticed by engine/test_requires_grad
- return self._primitive is not CONSTANT
+ return not self._primitive is CONSTANT
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_the_campaign_says_which_mistakes_are_noticed_and_by_what(tmp_path):
    (tmp_path / "planted.txt").write_text(PLANTED)
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}  # not as ours run
    words = [sys.executable, "-m", "tests.campaigns.mistakes", "--file", str(tmp_path / "planted.txt")]
    run = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 1, run.stderr
    assert "test_requires_grad.py::TestRequiresGrad::test_requires_grad_of_a_result_cannot_be_set" in run.stdout
    assert "changes nothing.\n    SURVIVES" in run.stdout
    assert "| all | 2 | 1 |" in run.stdout
