"""The code blocks of README and docs run, and print what their comments say."""

import re

import pytest

from tests.folders import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RECIPES = "contributing.md"  # changes the package: test_contributing.py makes a copy for it


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def promised(code):
    """What the comments beside the prints of a block say is printed."""
    return re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page) and page.name != RECIPES], ids=lambda page: page.name
)
def test_every_code_block_runs_and_prints_what_it_promises(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for code in blocks(page):
        exec(compile(code, page.name, "exec"), names)
        assert capsys.readouterr().out.splitlines() == promised(code), code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_readme_has_the_two_commands_as_its_first_shell_blocks():
    shell = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert "demos/digits.py" in shell[0]
    assert "pytest" in shell[1]
    assert all("python3 -m venv" in command for command in shell[:2])


def lines(module):
    return len((ROOT / "micrograd" / "engine" / module).read_text(encoding="utf-8").splitlines())


def test_the_page_of_the_engine_lists_its_modules_with_their_lines():
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    listed = {name: int(count) for name, count in re.findall(r"^\| `(\w+\.py)` \| .* \| (\d+) \|$", text, re.MULTILINE)}
    assert set(listed) == {path.name for path in (ROOT / "micrograd" / "engine").glob("*.py")} - {"__init__.py"}
    assert {name: count for name, count in listed.items() if abs(count - lines(name)) > 15} == {}


def test_readme_says_how_many_lines_there_are_to_read():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ((modules, count),) = re.findall(r"modules: ([^:]*), (\d+) lines together", text.replace("\n", " "))
    names = re.findall(r"`(\w+\.py)`", modules)
    assert len(names) == 3
    assert int(count) - 20 < sum(map(lines, names)) <= int(count)
