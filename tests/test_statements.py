"""The numbers, the lists and the names that README and docs state are those of the library."""

import argparse
import ast
import inspect
import math
import re
import shlex
from collections import Counter

import numpy as np
import pytest

import micrograd as mg
from micrograd import estimators
from micrograd.command import grammar, output
from micrograd.command import tables as command_tables
from micrograd.command.words import parser, with_minus_signs
from micrograd.compiler.backends.llvm import llvm_functions
from micrograd.compiler.backends.numpy import numpy_backend
from micrograd.compiler.calling import function, kept
from micrograd.compiler.calling.function import CompiledFunction
from micrograd.compiler.ir import program
from micrograd.compiler.passes import progress
from micrograd.compiler.passes.lists import NATIVE
from micrograd.draw.folding import groups, patterns
from micrograd.engine.further_primitives import TABLE
from micrograd.pages import NODE_LIMIT, laboratory
from micrograd.tables import reading, study
from micrograd.testing import differences, strategies
from tests.campaigns import accuracy, expressions
from tests.folders import ROOT
from tests.pages import PAGES, on_one_line, page_of, section, spans, tables
from tests.test_wrong_calls import WRONG_CALLS
from tests.testing import test_gradcheck_bar as bar
from tests.testing import test_gradcheck_low_precision as low
from tests.testing import test_gradcheck_points as points

MADE_BY_RECIPES = ("contributing.md",)  # test_contributing.py looks at the files there
PAGE_NAMES = [page.name for page in PAGES]
WORDS = {"two": 2, "five": 5, "six": 6, "eight": 8, "ten": 10, "forty": 40, "fifty": 50, "seventy": 70, "fifth": 0.2}


def number(text):
    return WORDS.get(text) or float(text.replace(",", ""))


def default(function, name):
    return inspect.signature(function).parameters[name].default


def written_in(path, name):
    """The number that a name has in a file that is no module."""
    return int(re.search(rf"\b{name} ?= ?(\d+)\b", (ROOT / path).read_text(encoding="utf-8"))[1])


USUAL = parser().parse_args(["train", "table.csv", "--target", "y"])
NUMBERS = [
    ("command.md", r"at most ([\d,]+) characters", grammar.LONGEST),
    ("command.md", r"([\d,]+) operators and commas", grammar.MOST_OPERATORS),
    ("command.md", r"(\d+) brackets in one", grammar.DEEPEST),
    ("command.md", r"text with more than (\d+) different values", study.MOST_CATEGORIES),
    ("command.md", r"up to (\d+) different whole numbers", study.MOST_WHOLE_NUMBERS),
    ("command.md", r"A (\w+) of the rows \(`--test`\)", USUAL.test),
    ("command.md", r"in batches of (\d+)", USUAL.batch_size),
    ("command.md", r"epochs enough for some ([\d,]+) rows", command_tables.EXAMPLES),
    ("command.md", r"rows, from (\d+) to \d+", command_tables.FEWEST_EPOCHS),
    ("command.md", r"rows, from \d+ to (\d+)", command_tables.MOST_EPOCHS),
    ("command.md", r"`--folds` parts of all rows, (\d+) if it is not given", command_tables.FOLDS),
    ("command.md", r"Tables of more than ([\d,]+) cells", command_tables.LARGE),
    ("command.md", r"If a network has more than ([\d,]+) parameters", estimators.MOST_SHOWN),
    ("command.md", r"only the (\d+) inputs of largest weight", estimators.PART),
    ("compiler.md", r"longer than (\w+) seconds", progress.DELAY),
    ("compiler.md", r"the last (\d+) are kept", kept.ROOM),
    ("compiler.md", r"more than (\d+) alternate", kept.ROOM),
    ("compiler.md", r"After (\w+) in a row", function.TOO_OFTEN),
    ("compiler.md", r"A sum of up to (\w+) terms", program.IN_ORDER),
    ("compiler.md", r"A sum of more than (\w+) terms", program.IN_ORDER),
    ("compiler.md", r"In sums of up to (\w+), each", program.IN_ORDER),
    ("explore.md", r"[Ww]here more than (\d+) would stand", groups.LARGEST),
    ("explore.md", r"dot products of (\d+) terms", patterns.LEAST_TERMS),
    ("explore.md", r"done to (\d+) Values", patterns.LEAST_ELEMENTS),
    ("explore.md", r"of more than ([\d,]+) Values no button", written_in("micrograd/pages/page.js", "SMOOTH")),
    ("explore.md", r"at most (\d+) of them \(`frames=`\)", default(mg.Recording, "frames")),
    ("explore.md", r"more than ([\d,]+) numbers in the examples", laboratory.MOST_NUMBERS),
    ("explore.md", r"or ([\d,]+) nodes in all their losses", laboratory.MOST_WORK),
    ("explore.md", r"A page holds ([\d,]+) Values", NODE_LIMIT),
    ("testing.md", r"`tolerance`, a relative ([\de-]+),", default(mg.testing.gradcheck, "tolerance")),
    ("reliability.md", r"holds it to (\w+) smooth functions", len(bar.FUNCTIONS)),
    ("reliability.md", r"holds it to (\w+) functions \(sine", len(low.FUNCTIONS)),
    ("reliability.md", r"at (\d+) points from 0.1 to 6", len(low.POINTS)),
    ("reliability.md", r"test_gradcheck_points.py` has (\d+) points", len(points.POINTS)),
    ("reliability.md", r"with (\d+) programs at a time", expressions.TOGETHER),
    ("reliability.md", r"Gradients may differ by ([\de-]+) of", expressions.ALLOWED),
    ("reliability.md", r"an error of ([\de-]+) in a local", expressions.ALLOWED * expressions.LEAST),
    ("reliability.md", r"Fewer than (\w+) steps", differences._LEVELS),
    ("reliability.md", r"more than 1/(\d+) of the value", 1 / differences._COARSEST),
    ("reliability.md", r"mpmath's at (\d+) digits", accuracy.mp.dps),
    ("reliability.md", r"(\d+) of them across the public API", len(WRONG_CALLS)),
    ("reliability.md", r"`.ci/run` fails below (\d+)%", written_in(".ci/run", "cov-fail-under")),
    ("contributing.md", r"lines have at most (\d+) characters", written_in(".ruff.toml", "line-length")),
]


@pytest.mark.parametrize(("name", "says", "so"), NUMBERS, ids=[says for _, says, _ in NUMBERS])
def test_a_number_is_that_of_the_library(name, says, so):
    found = re.findall(says, on_one_line(name))
    assert found
    assert {number(text) for text in found} == {so}


def public(module):
    for name, found in vars(module).items():
        home = getattr(found, "__module__", None)
        if callable(found) and not name.startswith("_") and (home == module.__name__ or module is mg):
            yield name


COUNTS = [
    ("README.md", r"operators, more than (\w+) functions", len(list(public(mg.functional)))),
    ("primitives.md", r"knows more than (\w+) operations", len(TABLE)),
    ("compiler.md", r"knows more than (\w+) base operations", len(numpy_backend.FUNCTIONS)),
    ("compiler.md", r"knows more than (\w+) base operations", len(llvm_functions.FUNCTIONS)),
]


@pytest.mark.parametrize(("name", "says", "so"), COUNTS)
def test_there_are_about_as_many_as_a_page_says(name, says, so):
    (found,) = re.findall(says, on_one_line(name))
    assert number(found) < so < 1.4 * number(found)


@pytest.mark.slow
def test_jax_has_about_as_many_base_operations_as_a_page_says():
    functions = pytest.importorskip("micrograd.compiler.backends.jax.jax_functions").FUNCTIONS
    test_there_are_about_as_many_as_a_page_says("compiler.md", COUNTS[-1][1], len(functions))


# Names and lists

NAMESPACES = (mg.nn, mg.nn.Module, mg.losses, mg.optim, mg.testing, strategies, mg, mg.Value)
OBJECTS = {"mg": mg, "v": mg.Value, "fast": CompiledFunction}
ELSEWHERE = ("articles.md",)  # half of what it calls belongs to the articles


def called(name):
    """What a name stands for where a page calls it; None where it is no name of the library."""
    first, *rest = name.split(".")
    if rest:
        found = OBJECTS.get(first)
        for part in rest if found else ():
            found = getattr(found, part)
        return found
    return next((getattr(space, name) for space in NAMESPACES if hasattr(space, name)), None)


def calls(text):
    """The calls of the library in spans of code: the function and what is handed to it."""
    for span in text:
        if (match := re.fullmatch(r"(?:\w+ = )?([a-zA-Z_][\w.]*)\((.*)\)", span)) and (found := called(match[1])):
            yield span, found, re.findall(r"(?:[^,(\[]|\([^()]*\)|\[[^\]]*\])+", match[2])


def wrong_arguments(function, arguments, defaults=False):
    """What a function is handed on a page and does not take; with defaults, also what is not its default."""
    parameters = inspect.signature(function).parameters
    kinds = Counter(parameter.kind for parameter in parameters.values())
    given = 0
    for argument in map(str.strip, arguments):
        name, sign, value = argument.partition("=")
        if argument == "..." or (argument.startswith("*") and kinds[inspect.Parameter.VAR_POSITIONAL]):
            continue
        if not (sign and name.isidentifier()):
            given += 1
        elif name not in parameters:
            if not kinds[inspect.Parameter.VAR_KEYWORD]:
                yield argument
        elif defaults and value not in ("", "...") and parameters[name].default != ast.literal_eval(value):
            yield argument
    if given > len(parameters) and not kinds[inspect.Parameter.VAR_POSITIONAL]:
        yield f"{given} arguments"


def test_what_is_called_in_the_text_takes_what_it_is_given_there():
    found = calls(span for name in PAGE_NAMES if name not in ELSEWHERE for span in spans(page_of(name)))
    assert [(span, wrong) for span, *call in found for wrong in wrong_arguments(*call)] == []


USED = ("v.backward(create_graph=True)",)  # and no default


def test_the_tables_of_the_overview_show_the_defaults():
    first = [span for table in tables(page_of("api.md")) for cell, *_ in table for span in spans(cell)]
    found = list(calls(span for span in first if span not in USED))
    assert len(found) > 40
    assert [(span, wrong) for span, *call in found for wrong in wrong_arguments(*call, defaults=True)] == []


@pytest.mark.parametrize("module", [mg, mg.nn, mg.losses, mg.optim], ids=lambda module: module.__name__)
def test_whatever_is_public_is_in_the_overview(module):
    words = set(re.findall(r"\w+", " ".join(spans(page_of("api.md")))))
    assert [name for name in public(module) if name not in words] == []


def test_what_is_said_of_numpy_is_about_what_numpy_has():
    names = set(re.findall(r"\bnp\.((?:random\.)?[a-zA-Z_]\w*)", " ".join(map(page_of, PAGE_NAMES))))
    known = {*dir(np), *(f"random.{name}" for name in dir(np.random))}
    assert sorted(names - known) == []


def test_the_functions_that_are_listed_are_there():
    for kind, names in tables(section("api.md", "Functions"))[0]:
        for span in re.findall(r"`([a-z][\w ]*)`", names):
            assert [name for name in span.split() if not hasattr(mg, name)] == [], kind


def test_the_activations_and_initial_weights_are_all_that_there_are():
    text = section("api.md", "Networks: `mg.nn`")
    _, activations, initial = re.split("Activations: |Initial weights: ", text)
    assert re.findall(r'"(\w+)"', activations) == list(mg.nn.ACTIVATIONS)
    assert re.findall(r'"(\w+)"', initial) == list(mg.nn.INITIAL_WEIGHTS)


SPOKEN = {"torch": "pytorch", "cosmic-ray": "cosmic ray", "axe-playwright-python": "axe-core"}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
# Plugins of pytest, and what others bring or stand for
NOT_SPOKEN = {"pytest-cov", "pytest-xdist", "numpy", "pandas", "skops", "cffi"}


def lists_of(heading):
    """The lists under a heading of pyproject.toml: their names, and what is in each."""
    content = PROJECT.partition(f"\n[{heading}]")[2].partition("\n[")[0]
    return dict(re.findall(r"^(\w+) = (\[.*?\])(?:  #[^\n]*)?$", content, re.DOTALL | re.MULTILINE))


def test_the_extras_bring_what_the_overview_says():
    listed = dict(tables(section("api.md", "Extras"))[0])
    extras = lists_of("project.optional-dependencies")
    names = [name for cell in listed for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(names) == sorted(extras)
    (four,) = re.findall(r"micrograd\[([\w,]*)\]", extras["all"])
    assert sorted(four.split(",")) == sorted(names[: names.index("all")])
    for name in set(extras) - {"all"}:
        for package in re.findall(r'"([\w-]+)[><=]', extras[name]):
            assert SPOKEN.get(package, package) in listed[f"`{name}`"].lower(), (name, package)


def test_the_groups_bring_what_the_page_for_contributors_says():
    listed = dict(tables(section("contributing.md", "Set up"))[0])
    groups = lists_of("dependency-groups")
    assert sorted(listed) == sorted(f"`{name}`" for name in groups)
    for name, content in groups.items():
        for package in {*re.findall(r'"([\w-]+)["\[><=]', content)} - NOT_SPOKEN:
            assert SPOKEN.get(package, package) in listed[f"`{name}`"].lower(), (name, package)


def test_the_classifiers_name_the_pythons_that_tests_were_run_on():
    (rows, *_) = tables(section("contributing.md", "Which versions"))
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    assert classified == sorted((python for python, *_ in rows if "," not in python), key=lambda name: int(name[2:]))


def test_the_overview_lists_the_functions_and_those_that_the_command_calls():
    first, *_ = tables(section("api.md", "Functions"))
    listed = {name for row in first for span in spans(" ".join(row)) for name in re.findall(r"\w+", span)}
    assert {name for name in grammar.functions() if hasattr(mg, name)} <= set(mg.functional.__all__) <= listed


def subcommands():
    (found,) = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return found.choices


def test_the_commands_in_the_text_can_be_typed():
    options = {option for command in subcommands().values() for option in command._option_string_actions}
    for name, span in ((each, span) for each in PAGE_NAMES for span in spans(page_of(each))):
        if span.startswith("micrograd "):
            _, command, *words = shlex.split(span)
            if words and words != ["--help"]:
                parser().parse_args(with_minus_signs([command, *words]))
            else:
                assert command in {"--help", "--version", *subcommands()}
        elif span.startswith("--") and name == "command.md":
            assert span.split()[0] in options


def test_each_command_takes_json():
    assert [name for name, command in subcommands().items() if "--json" not in command._option_string_actions] == []


def test_missing_values_are_those_that_the_page_of_the_command_lists():
    (listed,) = re.findall(r"are empty cells, (.*?), and what follows `--missing`", on_one_line("command.md"))
    assert {"", *spans(listed)} == reading.MISSING


@pytest.mark.slow  # it loads much
def test_the_files_of_a_report_are_those_that_the_page_of_the_command_lists():
    from micrograd.reports import page

    (files,) = tables(section("command.md", "Learning from a table").partition("### Beside")[0])
    listed = [name for cell, _ in files for name in spans(cell)]
    assert sorted(listed) == sorted(page.FILES)


def test_the_exit_codes_are_those_that_the_page_of_the_command_lists():
    codes = [output.OK, output.FAILED, output.WRONG, output.INTERRUPTED, output.BROKEN_PIPE]
    assert [int(code) for code, _ in tables(section("command.md", "In scripts"))[0]] == codes


def test_the_passes_are_those_that_the_page_of_the_compiler_lists():
    listed = [row[0] for row in tables(section("compiler.md", "Where it is written"))[0]]
    assert listed == [*(each.name for each in NATIVE), "compile"]


def test_the_verdicts_and_columns_are_those_that_the_page_on_testing_lists():
    columns, verdicts = tables(section("testing.md", "One point: `gradcheck`"))
    header, line = str(mg.testing.gradcheck(lambda x: x * x, [1.0])).splitlines()
    assert [row[0] for row in columns] == header.split()
    assert [row[0] for row in verdicts] == ["`kink`", "`jump`", "`unclear`"]
    assert line.split()[-1] == "right"


# Files and commands

COMMAND = re.compile(r"(?:[A-Z_]+=\w+ )?(?:\.venv/bin/)?(python|pytest) (.*)", re.DOTALL)


def commands_of(page):
    """What a page tells to run: the files, and the options."""
    shell = re.findall(r"^```sh\n(.*?)^```", page_of(page), re.DOTALL | re.MULTILINE)
    for line in [*spans(page_of(page)), *"".join(shell).splitlines()]:
        if match := COMMAND.fullmatch(line):
            words = shlex.split(
                re.sub(r"-m (tests[.\w]+)", lambda module: module[1].replace(".", "/") + ".py", match[2])
            )
            paths = [word for word in words if word.startswith(("tests/", "demos/"))]
            yield match[1], paths, [word for word in words if word.startswith("--")]


def test_a_command_names_files_that_are_there_and_options_that_they_have():
    for what, paths, options in (command for name in PAGE_NAMES for command in commands_of(name)):
        assert [path for path in paths if not (ROOT / path).exists()] == []
        if what == "python" and paths:
            text = (ROOT / paths[0]).read_text(encoding="utf-8")
            assert [option for option in options if f'"{option}"' not in text] == [], paths


def test_a_file_of_the_repository_that_is_named_is_there():
    for span in {span for name in PAGE_NAMES if name not in MADE_BY_RECIPES for span in spans(page_of(name))}:
        if re.fullmatch(r"[\w./]+\.(?:py|txt|js)|(?:\w+/)*(?:backends|contexts|engine|tests|demos|docs)/", span):
            assert (ROOT / span).exists() or [*(ROOT / "micrograd").rglob(span)], span


def test_what_measures_is_in_the_table_of_what_measures():
    (rows,) = tables(section("contributing.md", "Campaigns and benchmarks"))
    files = [path for name in ("campaigns", "benchmarks") for path in (ROOT / "tests" / name).glob("*.py")]
    run = [path.stem for path in files if "__main__" in path.read_text(encoding="utf-8")]
    assert sorted(re.search(r"tests[./]\w+[./](\w+)", row[0])[1] for row in rows) == sorted(run)


def test_what_the_compiler_says_to_write_is_needed_and_works():
    """Each row of its table: what is on the left is refused, what is on the right is compiled."""
    table = next(rows for rows in tables(section("compiler.md", "The rules")) if "`x.data`" in rows[-1][0])
    names = {"mg": mg, "np": np, "math": math, "list": [1.0, 2.0, 3.0], "table": [1.0, 2.0, 3.0]}

    def compiled(text):
        x = mg.array([1.0, -2.0]) if {"np", "max", ">"} & {*re.findall(r"\w+|>", text)} else mg.Value(2.0)
        function = eval(f"lambda x, a, b, i, n, xs: {text}", names)
        return mg.compile(function, backend="numpy")(x, x, 0.5, 1, 2, [mg.Value(1.0)])

    for left, right in table:
        refused = [text for text in re.findall(r"`([^`]+)`", left.split("but for")[0]) if text not in ("i", "n")]
        assert refused
        for text in refused:
            with pytest.raises(mg.TraceError):
                compiled(text if text != "range(n)" else "x * sum(range(n))")
        for text in re.findall(r"`([^`]+)`", " ".join(left.split("but for")[1:]) + right):
            if text not in ("i", "n", "range(n)", "len(n)"):
                compiled(text)


HEADINGS = re.findall(r"^## (.*)$", page_of("reliability.md"), re.MULTILINE)
FIGURES = [name for name in HEADINGS if tables(section("reliability.md", name))]


@pytest.mark.parametrize("heading", FIGURES)
def test_figures_come_with_their_day_and_their_command(heading):
    text = section("reliability.md", heading)
    assert re.search(r"\b20\d\d-\d\d-\d\d\b", text)
    assert re.search(r"`(?:python|pytest) ", text)


def test_each_primitive_has_a_row_in_the_table_of_their_accuracy():
    listed = {row[0] for row in tables(section("reliability.md", "Accuracy of the primitives"))[0]}
    assert listed == {primitive.name for primitive in accuracy.TABLE}
