"""Plant small mistakes in the library, one at a time, and see whether the tests notice.

    python -m tests.campaigns.mutation --modules transforms losses
    python -m tests.campaigns.mutation --modules compiler --sample 200 --seed 1
    python -m tests.campaigns.mutation --only transforms:17              # shows one mutant and runs it
    python -m tests.campaigns.mutation --write docs/reliability.md       # all modules, and the table

The mistakes are those of Cosmic Ray's operators. No file is changed: a process that has pytest and the libraries
loaded forks for each mutant, and the import system of the fork hands out the module with the mistake in it. The tests
of a module run once with their coverage measured; of a mutant only those run that reach its line, the quickest first,
up to the first that fails. Hypothesis draws the same examples every time.

What was found is kept, so that a run can be interrupted: kills for as long as the function stays the same, survivors
for as long as the module's tests do too. Survivors that no test could kill are listed with the reason in
equivalent_mutants.txt; these are kept as kills are.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
import pickle
import random
import signal
import sys
import time
from datetime import date
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.plugins import get_operator
from tqdm import tqdm

from tests.campaigns.page import report
from tests.campaigns.planting import ROOT, Loader, Noticing, forked, load_libraries, path_of, run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
RESULTS = ROOT / ".mutation.json"
HEADING = "## Mutation testing"

# What most of the engine's modules are tested by
ENGINE = [
    f"engine/test_{name}"
    for name in ("numbers", "requires_grad", "backward", "failures", "by_hand", "depth_and_memory", "threads")
]
# The tests of each module; those that reach a mutant's line are found by measuring.
TESTS = {
    "transforms": ["test_transforms", "test_products", "compiler/test_compiled_derivatives", "engine/test_higher_order",
                   "test_wrong_calls", "engine/test_threads"],
    "functional": ["engine/test_float_operations", "test_axes", "engine/test_primitives", "test_losses",
                   "test_arrays", "test_nn", "test_wrong_calls",
                   "test_transforms", "compiler/test_trace", "compiler/test_against_eager"],
    "nn": ["test_nn", "training/test_fit", "support/test_saving", "test_wrong_calls",
           "explore/test_explore::TestGroups", "compiler/test_trace"],
    "loops": ["test_loops", "compiler/test_turns"],
    "losses": ["test_losses", "test_axes", "test_wrong_calls", "test_arrays", "compiler/test_trace",
               "compiler/test_against_eager",
               "compiler/test_training"],
    "optim": ["test_optim", "training/test_fit", "test_wrong_calls", "compiler/test_training"],
    "engine.floats": ["engine/test_primitives", "campaigns/test_accuracy", "engine/test_special_functions"],
    "engine.composites": ["engine/test_primitives", "campaigns/test_accuracy", "engine/test_composites",
                          "engine/test_higher_order", "engine/test_special_functions"],
    "engine.primitives": ["engine/test_composites", "engine/test_primitives", "campaigns/test_accuracy",
                          "engine/test_higher_order", "explore/test_explore::TestFormulas"],
    "engine.special_functions": ["engine/test_special_functions"],
    "engine.further_primitives": ["engine/test_float_operations", "engine/test_special_functions",
                                  "engine/test_primitives", "campaigns/test_accuracy", "engine/test_higher_order",
                                  "explore/test_explore::TestFormulas"],
    "engine.value": [*ENGINE, "contexts/test_no_grad", "contexts/test_anomaly", "test_arrays",
                     "engine/test_own_primitives", "test_wrong_calls", "engine/test_higher_order",
                     "engine/test_primitives", "compiler/test_trace"],
    "engine.node": [*ENGINE, "engine/test_own_attributes", "engine/test_float_operations", "contexts/test_no_grad",
                    "test_transforms", "engine/test_higher_order",
                    "contexts/test_anomaly", "engine/test_copying", "engine/test_own_primitives", "test_wrong_calls",
                    "compiler/test_trace"],
    "engine.recorder": [*ENGINE, "contexts/test_no_grad", "contexts/test_blocks_that_overlap",
                        "engine/test_all_or_nothing", "contexts/test_anomaly", "test_transforms",
                        "compiler/test_trace"],
    "contexts.no_grad": ["contexts/test_no_grad", "contexts/test_blocks_that_overlap", *ENGINE,
                         "contexts/test_anomaly", "test_transforms",
                         "compiler/test_trace", "engine/test_own_primitives", "test_nn",
                         "compiler/test_function"],
    "engine.backward": [*ENGINE, "contexts/test_no_grad", "engine/test_higher_order", "contexts/test_anomaly",
                        "engine/test_own_primitives", "test_transforms", "compiler/test_against_eager"],
    "engine.higher_order": [*ENGINE, "test_products", "engine/test_higher_order", "test_transforms",
                            "contexts/test_anomaly", "engine/test_own_primitives", "engine/test_threads"],
    "engine.primitive": ["engine/test_own_primitives", "testing/test_check_primitive", "engine/test_primitives",
                         *ENGINE, "contexts/test_no_grad", "test_wrong_calls", "engine/test_copying"],
    "engine.commit": ["engine/test_all_or_nothing", "engine/test_failures", "engine/test_threads", "engine/test_forks"],
    "engine.freeing": ["engine/test_freeing"],
    "engine.methods": ["engine/test_primitives", "test_arrays", "engine/test_numbers",
                       "engine/test_float_operations", "engine/test_special_functions"],
    "engine.calls": ["contexts/test_scope", "explore/test_explore::TestGroups"],
    "contexts.scope": ["contexts/test_scope"],
    "engine.order": [*ENGINE, "test_products", "test_wrong_calls", "explore/test_explore::TestGroups"],
    "_support.locks": ["engine/test_threads", "engine/test_forks"],
    "engine.closures": ["engine/test_own_primitives", *ENGINE, "contexts/test_no_grad", "engine/test_higher_order",
                        "contexts/test_anomaly"],
    "_support.checks": ["test_wrong_calls", *ENGINE, "contexts/test_no_grad", "engine/test_higher_order",
                        "engine/test_own_primitives", "test_losses", "test_optim", "test_nn", "test_transforms",
                        "training/test_fit", "compiler/test_trace"],
    "testing.differences": ["testing/test_gradcheck", "testing/test_gradcheck_bar", "testing/test_gradcheck_points",
                            "testing/test_gradcheck_low_precision"],
    "testing.gradcheck": ["testing/test_gradcheck", "testing/test_gradcheck_bar",
                          "testing/test_gradcheck_low_precision"],
    "testing.programs": ["testing/test_strategies"],
    "testing.check_primitive": ["testing/test_check_primitive"],
    "testing.strategies": ["testing/test_strategies"],
    "compiler.__init__": ["compiler/test_trace", "compiler/backends/test_backends"],
    "compiler.passes.adjoint": ["compiler/test_trace", "compiler/test_against_eager", "compiler/test_reroll",
                                "compiler/test_same_numbers", "compiler/test_several_results",
                                "compiler/test_vectors"],
    "compiler.passes.alike": ["compiler/test_alike", "compiler/test_reroll"],
    "compiler.backends.shared.backend": ["compiler/backends/test_backends"],
    "compiler.backends.shared.choice": ["compiler/backends/test_backends", "compiler/test_trace"],
    "compiler.backends.llvm.crew": ["compiler/backends/test_crew"],
    "compiler.backends.shared.executable": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                            "compiler/test_reroll"],
    "compiler.tracing.body": ["compiler/test_turns"],
    "compiler.calling.call": ["compiler/test_trace", "compiler/test_against_eager",
                              "compiler/test_several_results"],
    "compiler.passes.checks": ["compiler/test_same_numbers", "compiler/test_against_eager"],
    "compiler.ir.columns": ["compiler/test_trace", "compiler/test_vectors", "compiler/test_against_eager"],
    "compiler.guards.closed_over": ["compiler/test_what_is_closed_over", "compiler/test_closed_over_machine",
                                    "compiler/test_attributes_of_values", "compiler/test_trace"],
    "compiler.calling.function": ["compiler/test_function", "compiler/test_trace", "compiler/test_reroll",
                                  "compiler/test_against_eager", "compiler/backends/test_backends",
                                  "compiler/test_training", "compiler/test_several_results",
                                  "compiler/test_what_is_closed_over", "compiler/test_same_numbers",
                                  "compiler/test_kept"],
    "compiler.ir.graph": ["compiler/test_stages", "compiler/test_trace", "compiler/test_against_eager",
                          "compiler/test_reroll", "compiler/test_same_numbers", "compiler/test_vectors"],
    "compiler.ir.layout": ["compiler/test_reroll", "compiler/test_training"],
    "compiler.backends.llvm.llvm_backend": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                            "compiler/test_training", "compiler/backends/test_object_cache"],
    "compiler.backends.llvm.llvm_machine": ["compiler/backends/test_backends",
                                            "compiler/backends/test_object_cache"],
    "compiler.backends.llvm.llvm_runners": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                            "compiler/backends/test_crew"],
    "compiler.backends.llvm.llvm_batches": ["compiler/backends/test_kernels", "compiler/backends/test_crew"],
    "compiler.backends.llvm.llvm_functions": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                              "engine/test_composites", "compiler/test_against_eager",
                                              "engine/test_one_entry"],
    **{
        f"compiler.backends.llvm.llvm_{name}": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                           "compiler/test_same_numbers"]
        for name in ("codes", "kernels", "products", "writer")
    },
    "compiler.passes.normalise": ["compiler/test_trace", "compiler/test_against_eager", "compiler/test_reroll",
                                  "compiler/test_same_numbers", "compiler/test_vectors"],
    "compiler.backends.numpy.numpy_backend": ["compiler/backends/test_kernels", "compiler/backends/test_backends",
                                              "compiler/test_training", "compiler/test_against_eager",
                                              "engine/test_composites", "compiler/test_same_numbers"],
    "compiler.backends.llvm.object_cache": ["compiler/backends/test_object_cache",
                                            "compiler/backends/test_backends"],
    "compiler.calling.picture": ["compiler/backends/test_kernels", "compiler/test_trace"],
    "compiler.ir.program": ["compiler/backends/test_kernels", "compiler/test_reroll"],
    "compiler.calling.profile": ["compiler/test_profile"],
    "compiler.passes.placing": ["compiler/test_reroll", "compiler/test_vectors", "compiler/test_loops",
                                "compiler/test_against_eager", "compiler/test_same_numbers"],
    "compiler.ir.index_maps": ["compiler/test_reroll", "compiler/test_vectors", "compiler/test_loops",
                               "compiler/test_against_eager", "compiler/test_same_numbers"],
    "compiler.passes.reroll": ["compiler/test_reroll", "compiler/test_vectors", "compiler/test_loops",
                               "compiler/test_trace", "compiler/test_against_eager", "compiler/test_same_numbers",
                               "compiler/test_several_results"],
    "compiler.passes.sums": ["compiler/test_reroll", "compiler/test_vectors", "compiler/test_loops",
                             "compiler/test_against_eager", "compiler/test_same_numbers"],
    "compiler.ir.vectors": ["compiler/test_vectors"],
    "engine.value_arrays": ["test_numpy_functions", "test_arrays"],
    "engine.numpy_functions": ["test_numpy_functions", "compiler/test_arrays_inside"],
    "compiler.tracing.symbol_arrays": ["compiler/test_arrays_inside", "engine/test_special_functions"],
    "compiler.tracing.trace": ["compiler/test_trace", "compiler/test_reroll", "compiler/test_against_eager",
                               "compiler/backends/test_backends", "compiler/test_same_numbers",
                               "compiler/test_compiled_derivatives", "compiler/test_arrays_inside",
                               "compiler/test_attributes_of_values", "compiler/test_words", "test_products"],
    "compiler.calling.kept": ["compiler/test_kept", "test_statements"],
    "compiler.passes.progress": ["compiler/test_progress", "test_statements"],
    "compiler.guards.refusals": ["compiler/test_words", "compiler/test_trace"],
    "compiler.guards.words": ["compiler/test_words"],
    "compiler.calling.specialise": ["compiler/test_trace", "compiler/test_reroll", "compiler/test_against_eager",
                                    "compiler/backends/test_backends", "compiler/test_training",
                                    "compiler/test_what_is_closed_over", "compiler/test_kept"],
    "compiler.passes.effects": ["compiler/test_passes"],
    "compiler.passes.listing": ["compiler/test_passes"],
    "compiler.passes.lists": ["compiler/test_passes", "compiler/test_stages"],
    "compiler.passes.stages": ["compiler/test_stages", "compiler/test_reroll"],
    "compiler.training.steps": ["compiler/test_training"],
    "compiler.training.buffer_steps": ["compiler/test_training", "test_estimators"],
    "compiler.training.mesh_steps": ["compiler/test_training", "compiler/test_devices"],
    "compiler.backends.jax.jax_mesh": ["compiler/test_devices"],
    "compiler.backends.jax.jax_processes": ["compiler/test_devices"],
    "compiler.guards.structure": ["compiler/test_structure", "compiler/test_kept", "compiler/test_trace",
                                  "compiler/test_arrays_inside", "compiler/test_attributes_of_values"],
    "compiler.passes.transposing": ["compiler/test_transposing"],
    "compiler.tracing.turns": ["compiler/test_turns"],
    "compiler.training.update": ["compiler/test_training"],
    "compiler.ir.walks": ["compiler/test_walks", "compiler/test_reroll", "compiler/test_vectors"],
}  # fmt: skip
# What one test made, others find
REMEMBERING = {
    "compiler.backends.llvm.llvm_functions",
    "compiler.backends.llvm.llvm_codes",
    "compiler.backends.llvm.llvm_kernels",
    "compiler.backends.llvm.llvm_products",
    "compiler.backends.llvm.llvm_writer",
    "compiler.backends.llvm.llvm_backend",
    "testing.strategies",
}

# Of one operator's replacements by every other only some are asked for: they are what people mistype, and most of the
# others end in a TypeError that any test sees, which would make the figures better than the tests are.
PAIRS = {
    "ReplaceBinaryOperator": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Div FloorDiv_Mul Mod_FloorDiv Pow_Mul "
    "RShift_LShift LShift_RShift BitOr_BitAnd BitAnd_BitOr BitXor_BitOr",
    "ReplaceComparisonOperator": "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot "
    "IsNot_Is",
    "ReplaceUnaryOperator": "Delete_USub Delete_Not Delete_Invert",
}
OPERATORS = [f"{kind}_{pair}" for kind, pairs in PAIRS.items() for pair in pairs.split()] + [
    "AddNot", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "RemoveDecorator",
    "ZeroIterationForLoop",
]  # fmt: skip

SLOWEST = 5.0  # seconds; a test that takes more takes no part
PATIENCE = (5.0, 20.0)  # seconds and times its usual duration, after which a test is taken to hang


class Mutant(NamedTuple):
    """One mistake: where it is, and the module's source with it."""

    module: str
    number: int
    scope: str
    lines: range
    loading: bool
    context: str
    original: str
    mutated: str
    source: str

    def __str__(self) -> str:
        where = f"{self.module}:{self.number}  {self.scope}, line {self.lines.start}"
        return f"{where}\n  - {self.original}\n  + {self.mutated}"


class Measured(NamedTuple):
    """What running a module's tests on the module as it is has shown."""

    reached: dict[int, list[str]]
    seconds: dict[str, float]


def words_of(module: str) -> list[str]:
    """What pytest is told to run for a module; the module itself, whose docstrings have examples, is the first."""
    parts = [(*name.split("::", 1), "")[:2] for name in TESTS[module]]
    return [str(path_of(module)), *(f"{ROOT}/tests/{name}.py{'::' * bool(only)}{only}" for name, only in parts)]


def tests_of(module: str) -> list[Path]:
    """The files with a module's tests."""
    return [Path(word.split("::")[0]) for word in words_of(module)]


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


# The mutants


def ancestry(node: Any) -> Iterator[tuple[Any, Any]]:
    """Each ancestor with the child that the node is in, from the node upwards."""
    while node.parent is not None:
        yield node.parent, node
        node = node.parent


def is_left_out(operator: str, node: Any) -> bool:
    """Whether a mistake here is none: in an annotation, code for type checkers, an error's message, or an assertion.

    zip's ``strict=True`` is such an assertion: where lengths come from a user they have been compared before.
    """
    if operator == "AddNot":  # where a comparison is mutated, so is its negation
        condition = node.children[2 if node.type == "test" else 1]
        pairs = {"==", "!=", "<", "<=", ">", ">=", "is", "is not"}
        if condition.type == "comparison" and len(condition.children) == 3:
            return " ".join(condition.children[1].get_code().split()) in pairs
        return condition.get_code().strip() == "TYPE_CHECKING"
    if node.type == "operator" and node.parent.type == "parameters":  # the sign between kinds of parameters
        return True
    if node.type == "keyword" and node.parent.type == "argument" and node.parent.children[0].value == "strict":
        return True
    if node.type == "decorator":
        return node.get_code().strip() == "@overload"
    for parent, child in ancestry(node):
        if parent.type in ("raise_stmt", "fstring_format_spec"):
            return True
        if parent.type == "annassign" and child is parent.children[1]:
            return True
        if parent.type == "tfpdef" or (parent.type == "funcdef" and child is parent.annotation):
            return True
        if parent.type == "if_stmt" and parent.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
    return False


def scope_of(node: Any) -> str:
    """The function or class that a node is in, by its dotted name."""
    names = [parent.name.value for parent, _ in ancestry(node) if parent.type in ("funcdef", "classdef")]
    return ".".join(reversed(names)) or "module"


def lines_of(node: Any, line: int) -> range:
    """The lines whose run may run the node: those of its statement, where that has no statements in it."""
    for parent, child in ancestry(node):
        if parent.type == "simple_stmt":
            return range(parent.start_pos[0], parent.end_pos[0] + 1)
        if parent.type in ("suite", "file_input") or child.type in ("funcdef", "classdef"):
            break
    return range(line, line + 1)


def context_of(node: Any) -> str:
    """A digest of the function that a node is in, or of the statement where it is in none."""
    outer = [parent for parent, _ in ancestry(node)]
    statement = next(parent for parent in [*outer[:-1], node] if parent.parent.type in ("suite", "file_input"))
    whole = next((parent for parent in outer if parent.type == "funcdef"), statement)
    return hashlib.sha256(whole.get_code().strip().encode()).hexdigest()[:16]


def runs_while_loading(node: Any) -> bool:
    """Whether importing the module runs the node: it is in no function's body."""
    return not any(
        parent.type in ("funcdef", "lambdef") and child is parent.children[-1] for parent, child in ancestry(node)
    )


def indices(node: Any) -> list[int]:
    """The way from the root of the tree to a node."""
    return [next(i for i, child in enumerate(parent.children) if child is below) for parent, below in ancestry(node)][
        ::-1
    ]


def planted(tree: bytes, way: list[int], operator: Any, index: int) -> str:
    """The source of a pickled tree, changed by an operator in one place."""
    root = parent = pickle.loads(tree)
    for step in way[:-1]:
        parent = parent.children[step]
    changed = operator.mutate(parent.children[way[-1]], index)
    parent.children[way[-1] : way[-1] + 1] = [] if changed is None else [changed]
    return str(root.get_code())


def alike(first: list[str], second: list[str]) -> int:
    """How many lines two texts have in common from the first one on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def difference(before: list[str], after: list[str]) -> tuple[str, str]:
    """The lines that differ, each side on one line."""
    start = alike(before, after)
    before, after = before[start:], after[start:]
    end = alike(before[::-1], after[::-1])
    sides = (side[: len(side) - end] for side in (before, after))
    return tuple(" ".join(" ".join(side).split()) for side in sides)  # type: ignore[return-value]


def mutants_of(module: str) -> list[Mutant]:
    """Every mutant of a module."""
    source = path_of(module).read_text(encoding="utf-8")
    root = parso.parse(source)
    tree = pickle.dumps(root, pickle.HIGHEST_PROTOCOL)
    found: list[Mutant] = []
    seen = {meaning_of(source)}
    operators = {name: get_operator(f"core/{name}")() for name in OPERATORS}
    for node in ast_nodes(root):
        for name, operator in operators.items():
            for index, ((line, _), _) in enumerate(operator.mutation_positions(node)):
                if is_left_out(name, node):
                    continue
                mutated = planted(tree, indices(node), operator, index)
                if not (meaning := meaning_of(mutated)) or meaning in seen:
                    continue
                seen.add(meaning)
                sides = difference(source.splitlines(), mutated.splitlines())
                place = scope_of(node), lines_of(node, line), runs_while_loading(node), context_of(node)
                found.append(Mutant(module, len(found), *place, *sides, mutated))
    return found


def meaning_of(source: str) -> str:
    """What Python reads in a source, without its layout; nothing where it is no Python."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError):
        return ""


# Running the tests


class Measuring:
    """The plugin of the first run: which lines does each test reach, and how long does it take?"""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        self.seconds[nodeid] = -time.perf_counter()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.seconds[nodeid] += time.perf_counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def measured(module: str) -> Measured:
    """Run a module's tests on the module as it is."""
    path = str(path_of(module))

    def work(pipe: Any) -> None:
        from coverage import Coverage

        coverage = Coverage(data_file=None, include=[path], config_file=False, messages=False)
        plugin = Measuring(coverage)
        coverage.start()
        status = run_pytest(words_of(module), plugin)
        coverage.stop()
        reached = coverage.get_data().contexts_by_lineno(path)
        json.dump([status, plugin.failed, reached, plugin.seconds], pipe)

    sent, _ = forked(work)
    if sent is None or sent[0] != 0:
        failed = ", ".join(sent[1]) if sent else ""
        raise SystemExit(f"the tests of {module} fail without any mutant: {failed or 'they do not even start'}")
    seconds = {test: time for test, time in sent[3].items() if time < SLOWEST}
    return Measured({int(line): tests for line, tests in sent[2].items()}, seconds)


def chosen_tests(mutant: Mutant, known: Measured) -> list[str]:
    """The tests to run on a mutant, in their order; all where importing runs the line, or one test does for others."""
    tests = {test for line in mutant.lines for test in known.reached.get(line, ())}
    ordered = sorted(tests & known.seconds.keys(), key=known.seconds.__getitem__)
    before_the_first = "" in tests  # by a function that importing calls
    if mutant.loading or before_the_first or (tests and mutant.module in REMEMBERING):
        ordered += sorted(known.seconds.keys() - tests, key=known.seconds.__getitem__)
    return ordered


class Judging(Noticing):
    """The plugin of a mutant's run: runs the tests chosen, in their order, and names the one that fails."""

    def __init__(self, loader: Loader, tests: list[str], seconds: dict[str, float], pipe: Any) -> None:
        super().__init__(loader)
        self.places = {test: place for place, test in enumerate(tests)}
        self.seconds = seconds
        self.pipe = pipe

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.places), key=lambda item: self.places[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        print(json.dumps(nodeid), file=self.pipe, flush=True)  # who hangs is the last to have said something
        least, times = PATIENCE
        signal.setitimer(signal.ITIMER_REAL, least + times * self.seconds[nodeid])


def outcome(mutant: Mutant, known: Measured) -> dict[str, str]:
    """What happens to a mutant: what killed it, or that it survived."""
    tests = chosen_tests(mutant, known)
    if not tests:
        return {"outcome": "survived", "by": "no test runs the line"}
    needed = {test.split("::")[0] for test in tests}
    files = [
        word
        for word, path in zip(words_of(mutant.module), tests_of(mutant.module), strict=True)
        if path.relative_to(ROOT).as_posix() in needed
    ]

    def work(pipe: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 60)  # for loading
        judging = Judging(Loader(mutant.module, mutant.source), tests, known.seconds, pipe)
        status = run_pytest(files, judging)
        by = judging.failed or ("" if status == 0 else "loading")
        print(json.dumps({"outcome": "killed" if status else "survived", "by": by}), file=pipe)

    sent, ended_by = forked(work)
    if isinstance(sent, dict):
        return sent
    return {"outcome": "killed", "by": f"{sent or 'loading'} ({'hung' if ended_by == signal.SIGALRM else 'crashed'})"}


# What was found


def keys_of(mutants: list[Mutant]) -> list[str]:
    """A name for each mutant that stays when other lines change."""
    counts: dict[tuple[str, ...], int] = {}
    keys = []
    for mutant in mutants:
        texts = (mutant.module, mutant.scope, mutant.original, mutant.mutated)
        counts[texts] = counts.get(texts, 0) + 1
        keys.append("\n".join((*texts, str(counts[texts]))))
    return keys


def without_spaces(line: str) -> str:
    """A line as it is compared with others: versions of Cosmic Ray differ in the spaces that they leave."""
    return "".join(line.split())


def explanations(text: str) -> dict[tuple[str, str, str, str], str]:
    """The reasons why mutants are equivalent, by module, scope, original and mutated line, both without spaces."""
    found = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().splitlines() if not line.startswith("#")]
        if not lines:
            continue
        module, scope = lines[0].split()
        reason = " ".join(line for line in lines[1:] if line[:1] not in "-+")
        original = ""
        for line in lines[1:]:
            if line.startswith("-"):
                original = without_spaces(line[1:])
            elif line.startswith("+"):
                found[module, scope, original, without_spaces(line[1:])] = reason
    return found


class Results:
    """The outcomes so far, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def known(self, key: str, mutant: Mutant, explained: bool) -> dict[str, str] | None:
        """The outcome for a mutant, where it still holds."""
        result = self.found.get(key)
        if result is None or result["context"] != mutant.context:
            return None
        lasting = explained or result["outcome"] == "killed" or result["tests"] == digest(*tests_of(mutant.module))
        return result if lasting else None

    def add(self, key: str, mutant: Mutant, result: dict[str, str]) -> None:
        """Keep an outcome."""
        self.found[key] = {**result, "context": mutant.context, "tests": digest(*tests_of(mutant.module))}

    def save(self) -> None:
        """Write the file, whole or not at all."""
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.found, indent=1), encoding="utf-8")
        beside.replace(self.path)


class Row(NamedTuple):
    """The figures of one module."""

    module: str
    all: int
    run: int
    killed: int
    explained: int

    def __str__(self) -> str:
        mutants = f"{self.run:,}" if self.run == self.all else f"{self.run:,} of {self.all:,}"
        surviving = self.run - self.killed - self.explained
        score, of_all = (
            f"{100 * self.killed / count:.1f}" if count else "" for count in (self.run - self.explained, self.run)
        )
        return f"| {self.module} | {mutants} | {self.killed:,} | {self.explained} | {surviving} | {score} | {of_all} |"


def run(module: str, sample: int | None, seed: int, results: Results) -> Row:
    """Run the mutants of a module, or a sample of them; say which survive."""
    mutants = mutants_of(module)
    keys = keys_of(mutants)
    numbers = range(len(mutants))
    if sample is not None and sample < len(mutants):
        numbers = sorted(random.Random(f"{seed} {module}").sample(numbers, sample))  # type: ignore[assignment]
    reasons = explanations(EQUIVALENT.read_text("utf-8")) if EQUIVALENT.exists() else {}
    all_texts = [
        (module, mutant.scope, without_spaces(mutant.original), without_spaces(mutant.mutated)) for mutant in mutants
    ]

    def found_before(number: int) -> dict[str, str] | None:
        return results.known(keys[number], mutants[number], all_texts[number] in reasons)

    known = measured(module) if any(found_before(number) is None for number in numbers) else None
    killed = explained = 0
    used = set()
    with tqdm(numbers, module, unit="mutant") as bar:
        for done, number in enumerate(bar, 1):
            mutant, key = mutants[number], keys[number]
            result = found_before(number)
            if result is None:
                assert known is not None
                result = outcome(mutant, known)
                results.add(key, mutant, result)
                if done % 20 == 0:
                    results.save()
            used.add(texts := all_texts[number])
            if result["outcome"] == "killed":
                killed += 1
                if texts in reasons:
                    tqdm.write(f"{mutant}\n  is explained, but killed by {result['by']}\n")
            elif texts in reasons:
                explained += 1
            else:
                tqdm.write(f"{mutant}\n  {result['by']}\n")
            bar.set_postfix_str(f"{done - killed - explained} survive")
    results.save()
    if len(numbers) == len(mutants):
        for texts in reasons.keys() - used:
            if texts[0] == module:
                tqdm.write(f"explained, but no mutant of {module}, {texts[1]}:\n  - {texts[2]}\n  + {texts[3]}\n")
    return Row(module, len(mutants), len(numbers), killed, explained)


def section(rows: list[Row], words: str) -> str:
    """The section of docs/reliability.md."""
    run, killed, explained = (sum(getattr(row, name) for row in rows) for name in ("run", "killed", "explained"))
    total = Row("all", sum(row.all for row in rows), run, killed, explained)
    return f"""{HEADING}

Small mistakes are planted in the library, one at a time, and the tests run: do they notice? The mistakes are those of
Cosmic Ray's operators: another arithmetic operator, another comparison, a condition negated, `and` for `or`, `True`
for `False`, a number one more or one less, `break` for `continue`, a loop that does not run, an exception that is not
caught, a decorator removed. Left out are annotations and other code for type checkers, the texts of errors, and
`zip`'s `strict=True`. What survives though no test could tell it from the original is explained, line by line, in
`tests/campaigns/equivalent_mutants.txt`. The first percentage is that of the killed among those that are not
explained, the second among all.

| module | mutants | killed | explained | surviving | % killed | % of all |
|---|---|---|---|---|---|---|
{chr(10).join(map(str, [*rows, total]))}

The last run ended on {date.today()}. To run them again: `{words}`.

What was killed once is not run again while its function stays the same, so that the table may join several runs; with
`--fresh` all are run. Not among them are the modules for pictures, pages, tables, files and commands.
"""


def modules_named(names: list[str]) -> list[str]:
    """The modules of a list where packages stand for all they hold."""
    chosen = []
    for name in names:
        found = [module for module in TESTS if module == name or module.startswith(f"{name}.")]
        if not found:
            raise SystemExit(f"no module of the campaign is named {name}: there are {', '.join(TESTS)}")
        chosen += found
    return chosen


def main(words: list[str] | None = None) -> None:
    """Run the campaign and print its table, or one mutant."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--modules", nargs="+", default=list(TESTS), help="of micrograd; a package stands for all in it"
    )
    parser.add_argument("--sample", type=int, help="so many mutants of each module, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", metavar="MODULE:NUMBER", help="show one mutant and run it")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs have found")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file that outcomes are kept in")
    parser.add_argument("--write", type=Path, help="the Markdown page to put the table into")
    arguments = parser.parse_args(words)
    load_libraries()
    if arguments.only:
        module, _, number = arguments.only.rpartition(":")
        mutant = mutants_of(*modules_named([module]))[int(number)]
        before = path_of(module).read_text("utf-8").splitlines()
        for line in difflib.unified_diff(before, mutant.source.splitlines(), module, f"mutant {number}", lineterm=""):
            sys.stdout.write(f"{line}\n")
        result = outcome(mutant, measured(module))
        sys.stdout.write(f"{result['outcome']}: {result['by']}\n")
        return
    results = Results(arguments.results)
    modules = modules_named(arguments.modules)
    if arguments.fresh:
        results.found = {key: kept for key, kept in results.found.items() if key.split("\n")[0] not in modules}
    try:
        rows = [run(module, arguments.sample, arguments.seed, results) for module in modules]
    finally:
        results.save()
    given = sys.argv[1:] if words is None else words
    text = section(rows, " ".join(["python -m tests.campaigns.mutation", *given]))
    report(text, HEADING, arguments.write)


if __name__ == "__main__":
    main()
