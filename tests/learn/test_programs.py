"""The small random programs: always the same, all of use, and simpler with every step of shrinking."""

import pytest

from micrograd.engine.primitive import find
from micrograd.learn.programs import Program, Step, programs, pruned, simpler

NAMES = ("add", "mul", "sub", "neg", "div", "pow", "tanh", "log", "exp")


def used(program):
    return {operand for step in program.steps for operand in step.operands}


def test_they_are_the_same_each_time_and_many():
    assert programs(NAMES, 60) == programs(NAMES, 60)
    assert len(programs(NAMES, 60)) == 60
    assert len(set(programs(NAMES, 60))) > 45


@pytest.mark.parametrize("plain", [False, True])
def test_everything_in_them_counts_and_can_be_computed(plain):
    found = programs(NAMES, 80, plain=plain)
    assert any(program.plain for program in found) is plain
    for program in found:
        last = len(program.inputs) + len(program.steps) - 1
        assert used(program) == set(range(last))
        places = program.run(float, lambda name, *operands: find(name)(*operands))
        assert all(abs(number) < 30 for number in places[len(program.inputs) :])


def test_the_first_ones_are_of_one_step():
    first = programs(("add", "tanh"), 10)
    assert [str(program) for program in first[:4]] == [
        "x = 2, y = 3; f = x + y", "x = 2; f = x + x", "x = 2; f = tanh(x)", "x = 2; f = tanh(x)",
    ]  # fmt: skip


def test_what_is_simpler_is_shorter_or_has_simpler_numbers_and_comes_to_an_end():
    for program in programs(NAMES, 40, plain=True):
        steps = 0
        while (nearer := next(simpler(program), None)) is not None:
            assert nearer != program
            assert len(nearer.steps) <= len(program.steps)
            program, steps = nearer, steps + 1
            assert steps < 40
        assert len(program.steps) == 1


def test_it_prints_as_it_would_be_written():
    program = Program((2.0, 3.0, 0.5), frozenset({1}), (Step("pow", (0, 1)), Step("neg", (3,)), Step("mul", (4, 2))))
    assert str(program) == "x = 2, y = 0.5; a = x ** 3; b = -a; f = b * y"
    assert str(Program((2.0,), frozenset(), ())) == "x = 2"


def test_what_the_output_does_not_need_is_left_out():
    program = Program((2.0, 3.0, 0.5), frozenset({2}), (Step("add", (0, 1)), Step("mul", (1, 2))))
    assert pruned(program) == Program((3.0, 0.5), frozenset({1}), (Step("mul", (0, 1)),))


def test_a_function_that_is_for_some_numbers_only_gets_these():
    found = programs(("atanh", "log"), 20)
    assert len(found) == 20
    assert "x = 2; f = atanh(x)" not in map(str, found)
