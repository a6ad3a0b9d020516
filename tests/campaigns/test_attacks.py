"""The table of attacks: each has tests, and the command counts them."""

import pytest

from tests.campaigns import attacks
from tests.pages import section, tables


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_each_attack_has_tests(name):
    assert attacks.files_of(attacks.ATTACKS[name])


def test_each_attack_has_a_row_on_the_page_without_a_failure():
    (rows,) = tables(section("reliability.md", "Attacks"))
    assert [row[0] for row in rows] == list(attacks.ATTACKS)
    assert all(int(row[1].replace(",", "")) > 0 and row[2] == "0" for row in rows)


@pytest.mark.slow
def test_the_command_counts_what_failed_and_what_was_left_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "test_few.py").write_text(
        "import pytest\ndef test_one(): pass\ndef test_two(): assert False\ndef test_three(): pytest.skip('no')\n"
    )
    monkeypatch.setattr(attacks, "ROOT", tmp_path)
    monkeypatch.setitem(attacks.ATTACKS, "dtypes", attacks.Attack(("test_*.py",)))
    page = tmp_path / "page.md"
    attacks.main(["--only", "dtypes", "--write", str(page)])
    assert "| dtypes | 3 | 1 | 1 |" in page.read_text()
    assert capsys.readouterr().out in page.read_text()
    monkeypatch.setitem(attacks.ATTACKS, "dtypes", attacks.Attack(("test_*.py",), "one or three"))
    assert attacks.counted(attacks.ATTACKS["dtypes"]) == (2, 0, 1)
    monkeypatch.setitem(attacks.ATTACKS, "dtypes", attacks.Attack(("page.md",), "("))
    with pytest.raises(RuntimeError, match="pytest did not run"):
        attacks.counted(attacks.ATTACKS["dtypes"])
