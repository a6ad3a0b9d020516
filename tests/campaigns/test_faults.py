"""The campaign of faults counts all that the tests let fail, and writes its section."""

import re

import pytest

from tests.campaigns import faults


def test_each_case_of_the_tests_is_in_one_row():
    assert sorted(case for cases in faults.ACTIONS.values() for case in cases) == sorted(faults.CASES)


@pytest.mark.slow
@pytest.mark.unmeasured
def test_it_writes_how_many_faults_there_were(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(faults, "ACTIONS", {"a step": ("momentum",), "a step, again": ("momentum", "momentum")})
    page = tmp_path / "page.md"
    faults.main(["--write", str(page)])
    once, twice = (
        [int(cell) for cell in line.split("|")[2:-1]] for line in page.read_text().splitlines() if "a step" in line
    )
    assert all(once)
    assert twice == [2 * number for number in once]
    capsys.readouterr()
    faults.main(["--only", "momentum"])
    calls, signals, _ = map(int, re.findall(r"\d+", capsys.readouterr().out))
    assert calls == once[0]
    assert abs(signals - once[1]) <= 2  # a function that has run often may look for signals once less


def test_what_is_torn_ends_it(monkeypatch):
    def torn():
        numbers = [1.0]
        return lambda: numbers.extend([float("2"), float("3")]) or numbers.append(4.0), lambda: len(numbers)

    monkeypatch.setattr(faults.faults, "is_library", lambda frame: True)
    monkeypatch.setitem(faults.CASES, "torn", torn)
    with pytest.raises(AssertionError, match="torn: 3"):
        faults.count("torn", "call")
