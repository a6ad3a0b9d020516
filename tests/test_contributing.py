"""The page for contributors: its recipes, applied to a copy of the package, do what they say."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tokenize
from typing import NamedTuple

import pytest

from tests.folders import ROOT
from tests.test_documents import promised

pytestmark = pytest.mark.slow(together=True)

TEXT = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
COPIED = ("micrograd", "tests", "docs", "pyproject.toml")
WRITTEN = re.compile(r"Write `(?P<file>[^`]+)`:")
CHANGED = re.compile(
    r"In `(?P<file>[^`]+)`, (?P<how>below|in place of|at the end)(?: `(?P<line>[^`]+)`)?, (?:add|write):"
)


class Block(NamedTuple):
    """A fenced block, and the last line of text before it."""

    before: str
    language: str
    text: str


def blocks(text):
    found = re.findall(r"^(\S[^\n]*)\n+^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(found) == len(re.findall(r"^```\w+$", text, re.MULTILINE))
    return [Block(*block) for block in found]


RECIPES = {
    heading: blocks(section)
    for heading, section in re.findall(r"^## Recipe: ([^\n]+)\n(.*?)(?=^## )", TEXT, re.M | re.S)
}


def copy_to(folder):
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)  # with what is compiled: it goes by the times of files
        else:
            shutil.copy(ROOT / name, folder / name)


def apply(block, folder):
    """Change a file as the text before the block says; False where it says nothing of a file."""
    if written := WRITTEN.fullmatch(block.before):
        assert not (folder / written["file"]).exists()
        (folder / written["file"]).write_text(block.text, encoding="utf-8")
    elif changed := CHANGED.fullmatch(block.before):
        path = folder / changed["file"]
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        if changed["how"] == "at the end":
            position = len(lines)
        else:
            (position,) = [number for number, line in enumerate(lines) if changed["line"] in line]
        lines[position + (changed["how"] == "below") : position + 1] = [block.text]
        path.write_text("".join(lines), encoding="utf-8")
    return written or changed


@pytest.fixture
def run(tmp_path):
    """What a command prints that runs in the copy; it must succeed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment = {**kept, "PYTHONPATH": str(tmp_path), "MICROGRAD_CACHE": str(tmp_path / "cache")}

    def run(*arguments):
        command = [sys.executable, *arguments]
        made = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made.stdout

    return run


def follow(recipe, folder, run):
    """Do in a copy what a recipe says; return the files that it changes."""
    copy_to(folder)
    edited, printed = set(), ""
    for block in RECIPES[recipe]:
        if found := apply(block, folder):
            edited.add(found["file"])
        elif block.language == "python":
            assert run("-c", block.text).splitlines() == promised(block.text)
        elif block.language == "text":
            assert block.text == printed
        else:
            commands = [shlex.split(line) for line in block.text.splitlines()]
            printed = "".join(run("-m", *words[2 * (words[0] == "python") :]) for words in commands)
    return edited


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["a pass", "a backend", "a command"])
def test_a_recipe_does_what_it_says(recipe, tmp_path, run):
    assert follow(recipe, tmp_path, run)


USES_SECH = """
import micrograd as mg
from typing_extensions import assert_type

x = mg.Value(0.0)
print(assert_type(mg.sech(x), mg.Value).data, assert_type(x.sech(), mg.Value).data, assert_type(mg.sech(0.0), float))
"""


@pytest.mark.slow
def test_a_primitive_is_declared_in_one_file_and_documented_in_another(tmp_path, run):
    """Its function, method, public names, types and docstring follow; the file of types is written by a command."""
    edited = follow("a primitive", tmp_path, run)
    assert edited == {"micrograd/engine/primitives.py", "docs/api.md"}
    files = [path for name in COPIED for path in (tmp_path / name).rglob("*.*") if "__pycache__" not in path.parts]
    names = [path.relative_to(tmp_path).as_posix() for path in files if path.is_file()]
    changed = {name for name in names if (tmp_path / name).read_bytes() != (ROOT / name).read_bytes()}
    assert changed == {*edited, "micrograd/engine/functions.pyi"}
    if importlib.util.find_spec("mypy"):
        (tmp_path / "program.py").write_text(USES_SECH)
        assert run("program.py") == "1.0 1.0 1.0\n"
        run("-m", "mypy", "program.py")


def test_there_are_four_recipes():
    assert list(RECIPES) == ["a primitive", "a pass", "a backend", "a command"]


def test_the_set_up_is_the_one_of_readme():
    readme = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)[1]
    first, second, *_ = readme.splitlines()
    assert blocks(TEXT)[0].text.startswith(f"{first}\n{second}\n")


def test_each_check_is_one_that_is_made_before_a_change_lands():
    made = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for words in ("ruff format", "ruff check", "mypy", "--cov --cov-report=term-missing:skip-covered",
                  "MICROGRAD_BROWSER_TESTS=required"):  # fmt: skip
        assert words in made
        assert words in TEXT


def test_the_linters_run_before_each_commit_and_the_fast_tests_before_each_push():
    config = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    first, *hooks = re.split(r"^ +- id: ", config, flags=re.MULTILINE)
    assert "default_stages: [pre-commit]" in first
    entries = {False: "", True: ""}
    for hook in hooks:
        entries["stages: [pre-push]" in hook] += re.search("entry: (.*)", hook)[1] + "\n"
    assert all(linter in entries[False] for linter in ("ruff format", "ruff check", "mypy"))
    assert entries[True] == 'python -m pytest --quiet -m "not slow"\n'


def test_each_path_extra_and_group_that_is_named_is_there():
    written = {written["file"] for written in WRITTEN.finditer(TEXT)}
    for path in set(re.findall(r"`((?:micrograd|tests|docs|\.ci)/[^` ]*)`", TEXT)) - written:
        assert (ROOT / path).exists(), path
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras, _, groups = project.partition("\n[dependency-groups]")
    named = {name for names in re.findall(r"'\.\[([\w,]+)\]'", TEXT) for name in names.split(",")}
    assert {"all"} <= named <= set(re.findall(r"^(\w+) = \[", extras, re.MULTILINE))
    named = set(re.findall(r"--group (\w+)", TEXT))
    assert {"test", "lint", "campaigns"} <= named <= set(re.findall(r"^(\w+) = \[", groups, re.MULTILINE))


def test_a_block_goes_where_the_text_says(tmp_path):
    path = tmp_path / "file"
    path.write_text("one\ntwo\n")
    for before in (
        "In `file`, below `one`, add:",
        "In `file`, at the end, add:",
        "In `file`, in place of `two`, write:",
    ):
        apply(Block(before, "text", f"{before[:20]}\n"), tmp_path)
    assert path.read_text().split("\n") == [
        "one",
        "In `file`, below `on",
        "In `file`, in place ",
        "In `file`, at the en",
        "",
    ]
    assert not apply(Block("Then:", "text", ""), tmp_path)


def test_names_are_the_field_s_terms_and_not_those_that_they_replaced():
    gone = {"turn", "turns", "place", "places", "wide", "house", "houses", "anew", "aloud", "quietly"}
    idioms = {"in_place_of_others", "_put_in_place", "free_in_turns", "_half_turns"}
    found = set()
    for folder in ("engine", "contexts", "training", "pages", "compiler/guards", "compiler/ir", "compiler/passes"):
        known = {"place", "places"} if folder == "pages" else set()
        for path in (ROOT / "micrograd" / folder).glob("*.py"):
            with path.open("rb") as file:
                names = {token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME}
            found |= {
                (path.name, name) for name in names - idioms if (gone - known).intersection(name.lower().split("_"))
            }
    assert found - {("alike.py", "is_wide"), ("numpy_functions.py", "place")} == set()


def test_the_textbook_calls_contributions_and_visits_by_these_names():
    """Values may share an operand, and numbers take turns; a gradient is a sum of contributions, not of shares."""
    gone = r"(?:an?|the|its|each|one|two|three|several|other|second|wrong|of) shares?|shares (?:add|are|arrive)"
    gone = rf"\b(?:{gone}|(?:whose|its|their|each|one) turn|their turns)\b"
    texts = [*(ROOT / "docs" / "learn").glob("*.md"), ROOT / "docs" / "teach.md"]
    texts += (ROOT / "micrograd" / "learn").rglob("*.py")
    found = [(path.name, re.findall(gone, path.read_text(encoding="utf-8"), re.IGNORECASE)) for path in texts]
    assert len(found) > 40
    assert [entry for entry in found if entry[1]] == []


def test_the_scripts_of_pages_use_the_field_s_words_too():
    """Names and texts: page data has the scripts' names, and what Python writes for pages is in these scripts."""
    suffixes = {".js", ".css", ".html"}
    scripts = [path for path in (ROOT / "micrograd").rglob("*") if path.suffix in suffixes]
    assert len(scripts) > 50
    for path in [*scripts, ROOT / "micrograd" / "pages" / "page.py", ROOT / "micrograd" / "pages" / "passes.py"]:
        text = path.read_text(encoding="utf-8")
        gone = r"(?i)films?(?![a-z])|(?<![a-z])shares?(?![a-z])|Shares?(?-i:[A-Z])|\bmoments\b|\bcourse\b"
        assert re.findall(gone, text) == [], path.name


def test_the_pages_use_the_field_s_words_and_not_those_that_they_replaced():
    """Outside of code: in the textbook a valley has walks, and exercises have titles."""
    gone = r"anew|aloud|quietly|films?|one's own|whoever|walk(?:s|ed)?|box|boxes|handed (?:to|over)|gives? back"
    kept = {"| box |", "![the graph of kernels: 9 boxes]", "box is a package"}
    found = []
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        lines = [line for line in text.splitlines() if not any(words.removesuffix("]") in line for words in kept)]
        found += [(page.name, line) for line in lines if re.search(rf"\b(?:{gone})\b", line, re.IGNORECASE)]
    assert found == []
