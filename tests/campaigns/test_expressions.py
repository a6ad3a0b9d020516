"""The campaign of random expressions runs, says what it found, and finds what is planted."""

import subprocess
import sys
from pathlib import Path

import pytest

import micrograd as mg
from tests.campaigns import expressions

pytestmark = pytest.mark.slow

COMMAND = Path(expressions.__file__)


def test_expressions_as_a_command():
    words = [sys.executable, str(COMMAND), "--count", "8", "--seed", "3", "--rarely", "1000000"]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "8 expressions of" in run.stdout
    assert "| differences | 8 | 0 |" in run.stdout


@pytest.mark.usefixtures("own_registry")
@pytest.mark.unmeasured
def test_a_planted_bug_is_found_and_printed(capsys, monkeypatch):
    crooked = mg.primitive("crooked", "~", lambda x: x * x, lambda g, out, x: 2.00001 * g * x)
    monkeypatch.setattr(expressions, "TABLE", [*expressions.TABLE, crooked])
    monkeypatch.setattr(expressions, "engines", lambda rarely: [])
    assert expressions.main(["--count", "40", "--start", "40", "--minutes", "60"]) == 1
    said = capsys.readouterr().out
    assert "WRONG" in said
    assert {line.split()[1] for line in said.splitlines() if line.startswith("expression ")} <= {
        f"{number}," for number in range(40, 80)
    }
    assert "mg.engine.primitive.find('crooked')(" in said


def test_the_compiler_takes_part_with_both_backends(monkeypatch):
    """Here with a compiler that gives the function back, once as it is and once with a mistake."""

    def compiled(f, *, backend):
        return f if backend == "numpy" else lambda *operands: f(*operands) * 2

    monkeypatch.setattr(mg, "compile", compiled, raising=False)
    taking_part = [engine for engine in expressions.engines(1) if engine.name.startswith("compiled")]
    campaign = expressions.Campaign(taking_part)
    for number in range(10):
        campaign.check(number, expressions.expression(0, number, 12))
    campaign.finish()
    assert campaign.checked["compiled (numpy)"] == campaign.checked["compiled (llvm)"] == 10
    assert {failure.engine for failure in campaign.failures} == {"compiled (llvm)"}


def test_one_engine_agrees_with_itself_written_for_numpy():
    """The table of functions for other libraries, on floats: no other engine has to be installed."""
    import numpy as np
    from scipy import special

    table = expressions.functions(np, special)
    for number in range(150):
        program = expressions.expression(5, number, 12)
        other = program.run(program.inputs, lambda primitive, *inputs: table[primitive.name](*inputs))[-1]
        assert other == pytest.approx(program(*program.inputs), rel=1e-7, abs=1e-9)


def test_of_several_that_are_compared_together_the_one_that_disagrees_is_found():
    programs = [expressions.expression(0, number, 12) for number in range(5)]
    found = {repr(program): expressions.eager(program)[0] for program in programs}
    found[repr(programs[3])] = [gradient + 1.0 for gradient in found[repr(programs[3])]]
    asked = []

    def gradients(several):
        asked.append(len(several))
        return [found[repr(program)] for program in several]

    campaign = expressions.Campaign([expressions.Engine("other", gradients, together=4)])
    for number, program in enumerate(programs):
        campaign.check(number, program)
    campaign.finish()
    assert {failure.number for failure in campaign.failures} == {3}
    assert asked == [4, 1, 1, 1, 1, 1]
    assert "| other | 5 | 1 |" in campaign.table()
