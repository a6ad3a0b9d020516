"""Mutants are planted where they mean something, and the reasons for those that survive are read."""

import pytest


def test_mutants_are_planted_in_what_runs_and_nowhere_else(monkeypatch, tmp_path):
    mutation = pytest.importorskip("tests.campaigns.mutation", exc_type=ImportError)
    source = """
from typing import TYPE_CHECKING, overload
if TYPE_CHECKING:
    limit = 7
def clipped(x: int | None, *, most: int = 3) -> int | None:
    kept: list[int | None] = [x for x, _ in zip([x], [x], strict=True)]
    if x < 0 and kept:
        raise ValueError(f"{x - 1:.80} is below {0}")
    return -x
"""
    (tmp_path / "clipped.py").write_text(source)
    monkeypatch.setattr(mutation, "path_of", lambda module: tmp_path / f"{module}.py")
    mutants = mutation.mutants_of("clipped")
    assert [(mutant.original, mutant.mutated) for mutant in mutants] == [
        (line, line.replace(*change))
        for line, *changes in (
            ("def clipped(x: int | None, *, most: int = 3) -> int | None:", ("= 3", "= 4"), ("= 3", "= 2")),
            (
                "if x < 0 and kept:",
                ("x <", "not x <"),
                ("<", "<="),
                ("<", ">="),
                ("0", "1"),
                ("0", "-1"),
                ("and", "or"),
            ),
            ("return -x", ("-x", "x")),
        )
        for change in changes
    ]
    assert {mutant.scope for mutant in mutants} == {"clipped"}
    assert all(mutant.source.count("\n") == source.count("\n") for mutant in mutants)


def test_all_tests_are_run_for_a_line_that_importing_runs(monkeypatch, tmp_path):
    mutation = pytest.importorskip("tests.campaigns.mutation", exc_type=ImportError)
    (tmp_path / "doubled.py").write_text(
        "def doubled(x):\n    return 2 * x\ndef used(x):\n    return x + 1\nFOUR = doubled(2)\n"
    )
    monkeypatch.setattr(mutation, "path_of", lambda module: tmp_path / f"{module}.py")
    known = mutation.Measured({2: [""], 4: ["quick"]}, {"slow": 2.0, "quick": 1.0})
    chosen = {mutant.lines.start: mutation.chosen_tests(mutant, known) for mutant in mutation.mutants_of("doubled")}
    assert chosen == {2: ["quick", "slow"], 4: ["quick"], 5: ["quick", "slow"]}


def test_the_modules_and_the_tests_of_the_campaign_are_there():
    mutation = pytest.importorskip("tests.campaigns.mutation", exc_type=ImportError)
    for module in mutation.TESTS:
        assert mutation.path_of(module).exists()
        for path in mutation.tests_of(module):
            assert path.exists(), path


def test_reasons_why_mutants_are_equivalent_are_read_by_their_lines():
    mutation = pytest.importorskip("tests.campaigns.mutation", exc_type=ImportError)
    text = "# a comment\n\noptim SGD.update\n- a = 1\n+ a = 2\n+ a = 0\n- @cache\n+\nit is never\nread\n"
    assert mutation.explanations(text) == {
        ("optim", "SGD.update", "a=1", "a=2"): "it is never read",
        ("optim", "SGD.update", "a=1", "a=0"): "it is never read",
        ("optim", "SGD.update", "@cache", ""): "it is never read",
    }
    mutation.explanations(mutation.EQUIVALENT.read_text("utf-8"))
