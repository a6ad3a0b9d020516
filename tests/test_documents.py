"""The code blocks of README and docs run, and print what their comments say."""

import linecache
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import micrograd
from micrograd.command.main import main
from micrograd.testing import GradientError
from tests.folders import DATA, ROOT
from tests.learn.chapters import CHAPTERS
from tests.pages import PAGES

pytestmark = pytest.mark.slow(together=True)

MADE_BY_RECIPES = ("contributing.md",)  # names in the text that micrograd does not have
TABLES = dict.fromkeys(("tests/data/penguins.csv", "penguins.csv", "data.csv", "more.csv"), DATA / "penguins.csv")
TAKE_SECONDS = ("api.md", "compiler.md", "export.md", "from-jax.md", "gallery.md", "scaling.md", "sparse.md",
                "testing.md")  # fmt: skip
RECIPES = "contributing.md"  # changes the package: test_contributing.py makes a copy for it


def blocks(page):
    """The Python blocks; one may be marked for the site, as in ```python {.recorded}."""
    marked = r"^```python(?: \{[^}\n]*\})?\n(.*?)^```"
    return re.findall(marked, page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def promised(code):
    """What the comments beside the prints of a block say is printed."""
    return re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)


def with_blocks():
    """The pages that have code. Chapters run in learn/test_chapters.py."""
    for page in PAGES:
        if blocks(page) and page.name != RECIPES and page not in CHAPTERS:
            marks = [pytest.mark.slow] if page.name in TAKE_SECONDS else []
            yield pytest.param(page, id=page.name, marks=marks)


@pytest.mark.parametrize("page", list(with_blocks()))
def test_every_code_block_runs_and_prints_what_it_promises(page, tmp_path, monkeypatch, capsys, own_registry):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, code in enumerate(blocks(page)):
        name = f"<block {number} of {page.name}>"  # whose source is there, as that of a cell of a notebook
        monkeypatch.setitem(linecache.cache, name, (len(code), None, code.splitlines(keepends=True), name))
        exec(compile(code, name, "exec"), names)
        assert capsys.readouterr().out.splitlines() == promised(code), code


def test_every_link_to_a_file_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_readme_has_the_three_commands_as_its_first_shell_blocks():
    shell = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert "demos/digits.py" in shell[0]
    assert "pytest" in shell[1]
    assert "docs/build.py" in shell[2]
    assert all("python3 -m venv" in command for command in shell[:2])


def lines(module):
    return len((ROOT / "micrograd" / "engine" / module).read_text(encoding="utf-8").splitlines())


def test_the_page_of_the_engine_lists_its_modules_with_their_lines():
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    listed = {name: int(count) for name, count in re.findall(r"^\| `(\w+\.py)` \| .* \| (\d+) \|$", text, re.MULTILINE)}
    assert set(listed) == {path.name for path in (ROOT / "micrograd" / "engine").glob("*.py")} - {"__init__.py"}
    assert {name: count for name, count in listed.items() if abs(count - lines(name)) > 15} == {}


TRACED = """
import os, sys
import micrograd
from micrograd import Value

files = set()

def trace(frame, event, argument):
    files.add(frame.f_code.co_filename)

def program():
    a, b = Value(2.0), Value(3.0)
    c = (a * b + a).tanh()
    c.backward()
    return a.grad

program()  # imports, and what is made once
sys.settrace(trace)
program()
sys.settrace(None)
package = os.path.dirname(micrograd.__file__)
print(*(os.path.relpath(name, package) for name in files if name.startswith(package)), sep="\\n")
"""


def test_the_reading_path_is_all_that_an_expression_and_its_backward_run():
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `(\w+\.py)` \|", text.partition("| read it for |")[2].partition("\n\n")[0], re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, check=True)
    assert f"engine{os.sep}backward.py" in (run := set(done.stdout.split()))
    assert run <= {os.path.join("engine", name) for name in names}
    assert sum(map(lines, names)) <= 900

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    ((count, listed),) = re.findall(r"seven modules, (\d+) lines together, in(.*?\.)\n- ", readme, re.DOTALL)
    assert re.findall(r"`(\w+\.py)`", listed) == names
    assert len(names) == 7
    assert int(count) - 20 < sum(map(lines, names)) <= int(count)


def fenced(page):
    """The language and the text of each block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def commands(text):
    """The words of each line of a block that is the command, without its name."""
    lines = text.replace("\\\n", "").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("micrograd ")]


def with_commands(page):
    """The blocks in which the command runs, each with the block after it."""
    return [
        (text, after)
        for (language, text), after in pairwise([*fenced(page), ("", "")])
        if language == "sh" and commands(text)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if with_commands(page) and page.name != RECIPES], ids=lambda page: page.name
)
@pytest.mark.unmeasured
def test_every_shell_block_of_the_command_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests" / "data").mkdir(parents=True)  # as in a checkout
    for name, path in TABLES.items():
        shutil.copy(path, tmp_path / name)
    for text, after in with_commands(page):
        printed = ""
        for words in commands(text):
            more = ["--overwrite"] if (tmp_path / "report").exists() and words[0] == "train" else []
            if words[0] == "train" and after[0] != "text":  # what it prints is not shown: it may learn less
                more += ["--epochs", "3", "--folds", "2", "--no-pictures", "--quiet"]
            assert main([word.replace("column", "species") for word in words] + more) == 0
            printed += capsys.readouterr().out
        if after[0] == "text":
            assert matches(printed.splitlines(), after[1].splitlines())


def matches(printed, shown):
    """Whether lines are as the page shows them: timings apart, and to where a line is cut off."""
    if len(printed) != len(shown):
        return False
    for line, promise in zip(map(untimed, printed), map(untimed, shown), strict=True):
        if line[: len(promise) - 3] + "..." != promise and line != promise:
            return False
    return True


def untimed(line):
    return re.sub(r" in [\d.]+ s\b", " in some s", line)


def test_what_a_page_says_of_a_wrong_command_is_what_it_prints(capsys):
    shown = [text for page in PAGES for language, text in fenced(page) if language == "text" and text.startswith("$ ")]
    assert len(shown) == 2
    for text in shown:
        command, *promise = text.splitlines()
        assert main(shlex.split(command)[2:]) == 2
        assert capsys.readouterr().err.splitlines() == promise


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_property_of_the_page_on_testing_prints_a_program_that_fails_where_it_is_pasted(tmp_path, own_registry):
    page = ROOT / "docs" / "testing.md"
    (typed,) = [code for code in blocks(page) if "LN2_TYPED" in code]
    told = page.read_text(encoding="utf-8").partition("In a test file")[2].partition("\n```")[0]
    test, shown = "\n".join(re.findall(r"^    (.*)$", told, re.MULTILINE)).split("Failing test case: ")
    code = """
import math
import micrograd as mg
from hypothesis import given, settings
from micrograd.testing import gradcheck
from micrograd.testing.strategies import expressions

settings.register_profile("on a busy machine", deadline=None)
settings.load_profile("on a busy machine")
"""
    (tmp_path / "test_it.py").write_text(code + typed + test, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-rN",
        "--hypothesis-seed=0",
        "test_it.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    names = {}
    exec(code + typed, names)
    for text in (shown, run.stdout):
        (program,) = re.findall(r"test_binary_log_in_any_program\(\n\W*\w*\W*expression=(mg.*),$", text, re.MULTILINE)
        expression = eval(program, names)
        with pytest.raises(GradientError):
            names["gradcheck"](expression, expression.inputs)


def ten_lines():
    return blocks(ROOT / "README.md")[0]


def test_readmes_lines_need_nothing_or_say_what(tmp_path):
    """In a Python with its standard library only."""
    environment = {"PYTHONPATH": str(ROOT), "PATH": os.defpath}

    def run(code):
        command = [sys.executable, "-S", "-c", code]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    free = [line for line in ten_lines().splitlines() if "it needs pip install" not in line]
    result = run("\n".join(free))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == promised(ten_lines())
    whole = run(ten_lines())
    said = whole.stderr.splitlines()[-1].partition(": pip install ")[2]
    assert said
    assert f"it needs pip install {said}" in ten_lines()
    dot = run("from micrograd.command.main import main; main(['draw', 'x*y', 'x=2', 'y=-3', '-o', 'g.dot'])")
    assert (dot.stdout, dot.stderr) == ("wrote g.dot\n", "")


def texts(path):
    return sorted(text for element in ElementTree.parse(path).iter() if (text := (element.text or "").strip()))


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_picture_on_the_page_is_the_one_that_its_lines_draw(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks(ROOT / page):
        exec(compile(code, page, "exec"), names)
        if "expression.svg" in code:
            break
    shown = ROOT / "docs" / "images" / "expression.svg"
    assert shown.name in (ROOT / page).read_text(encoding="utf-8")
    assert texts(tmp_path / "expression.svg") == texts(shown)


def test_the_pictures_of_the_compiler_have_as_many_boxes_as_their_texts_say():
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    found = re.findall(r"!\[the graph of (\w+): (\d+) (?:nodes|boxes)\]\((images/\w+\.svg)\)", text)
    assert len(found) == 2
    for kind, count, path in found:
        boxes = nodes(ROOT / "docs" / path)
        assert len([title for title in boxes if kind == "scalars" or title.isdecimal()]) == int(count)


def nodes(path):
    """The title of each node in a picture; that of a kernel is its number."""
    groups = [group for group in ElementTree.parse(path).iter() if (group.get("class") or "").startswith("node")]
    return [next(element.text for element in group) for group in groups]


def test_every_name_of_micrograd_on_a_page_is_there():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name not in MADE_BY_RECIPES)
    for name in set(re.findall(r"\b(?:mg|micrograd)\.([a-zA-Z_]\w*(?:\.\w+)*)", text)) - {"key"}:
        found, path = micrograd, micrograd.__name__
        for part in name.split("."):
            path = f"{path}.{part}"
            found = getattr(found, part) if hasattr(found, part) else import_module(path)


MEASURED = re.compile(
    r"\d (?:s|ms|us|ns|MB|seconds|milliseconds|microseconds|minutes) (?!of no)|times as long|\d to \d+%|adds \d+%"
)


def test_seconds_and_ratios_come_with_the_day_on_which_they_were_measured():
    """In the paragraph, or in the section, as under a table."""
    for page in PAGES:
        for section in re.split(r"^#+ ", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if MEASURED.search(section):
                assert re.search(r"\b20\d\d-\d\d-\d\d\b", section), (page.name, section[:200])
