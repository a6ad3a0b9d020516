"""Training holds memory flat while the garbage collector is off."""

import pytest

from tests.campaigns import memory

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", memory.PROGRAMS.values(), ids=memory.PROGRAMS)
@pytest.mark.unmeasured
def test_steps_leave_nothing_behind(program):
    held = [containers for containers, _ in memory.measure(program, 15)]
    assert max(held) <= 1  # the list that they are counted in


def test_what_only_the_collector_frees_is_seen():
    """A step that leaves a cycle behind grows."""

    def cyclic():
        def step():
            node = [0.0] * 100
            node.append(node)

        return step

    assert [containers for containers, _ in memory.measure(cyclic, 40)][-1] >= 40


@pytest.mark.unmeasured
def test_the_command_writes_its_section(tmp_path, capsys):
    page = tmp_path / "page.md"
    memory.main(["--steps", "3", "--write", str(page)])
    assert capsys.readouterr().out in page.read_text()
    assert "| penalised | " in page.read_text()
