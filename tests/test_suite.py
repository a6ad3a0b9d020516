"""The programs of the suite of benchmarks compute what they should, and its table says what was measured."""

import math
import shutil
from importlib import import_module
from itertools import islice

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import multivariate_normal

import micrograd as mg
from tests.folders import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _benchmarks_can_be_imported():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "tests" / "benchmarks")
        yield


SIZES = {
    "gmm": (3, 2, 5),
    "bundle": (2, 3, 4),
    "lstm": (2, 6, 3),
    "recurrent": (5, 4),
    "gaussian_process": (6,),
    "runge_kutta": (6,),
    "mlp": (3, (5, 4, 3)),
    "transformer": ("two layers", (2, 8, 2, 7), 3, 4),
    "parabola": (7,),
    "irregular": (150,),
}
NAMES = [*SIZES]


def tiny(name, sizes=None):
    """A program that takes milliseconds, unless it is told other sizes."""
    made, arguments = getattr(import_module(f"programs.{name}"), name), list(sizes or SIZES[name])
    if name == "transformer":
        arguments[1] = import_module("programs.transformer").Shape(*arguments[1])
    return made(*arguments)


def eager(program):
    """The value, and the gradient in the order of the parameters."""
    parts = import_module("programs.program")
    numbers, given = program.data()
    weights = {name: parts.mapped(mg.Value, nested) for name, nested in numbers.items()}
    output = program.scalars(weights, given)
    output.backward()
    return output.data, [leaf.grad for leaf in parts.flat(weights)]


def on_numpy(program):
    """What runs it on NumPy."""
    runner = import_module("runners").NumpyRunner()
    runner.load(program)
    return runner


def test_each_program_of_the_suite_is_tested_here():
    programs = import_module("programs").PROGRAMS.values()
    modules = {getattr(program.scalars, "func", program.scalars).__module__ for program in programs}
    assert modules == {f"programs.{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_scalars_and_arrays_have_the_same_value(name):
    program = tiny(name)
    runner = on_numpy(program)
    assert float(runner.loss(runner.weights)) == pytest.approx(eager(program)[0], rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_the_slope_of_the_program_in_arrays(name):
    program = tiny(name)
    runner, rng = on_numpy(program), np.random.default_rng(3)
    direction = {name: rng.normal(size=np.shape(weight)) for name, weight in runner.weights.items()}

    def along(way):
        return float(runner.loss({name: weight + way * direction[name] for name, weight in runner.weights.items()}))

    slope = (8 * (along(1e-6) - along(-1e-6)) - (along(2e-6) - along(-2e-6))) / 12e-6
    numbers = np.concatenate([np.ravel(part) for part in direction.values()])
    gradient = np.array(eager(program)[1])
    assert slope == pytest.approx(gradient @ numbers, rel=1e-7, abs=1e-9 * np.linalg.norm(gradient))


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", NAMES)
def test_compiled_is_what_eager_is(name):
    program = tiny(name)
    value, gradient = eager(program)
    parts = import_module("programs.program")
    numbers, given = program.data()
    weights = {name: parts.mapped(mg.Value, nested) for name, nested in numbers.items()}
    output = mg.compile(lambda: program.scalars(weights, given), backend="numpy")()
    output.backward()
    found = output.data, [leaf.grad for leaf in parts.flat(weights)]
    assert import_module("turns").differs(found, (value, gradient)) is None


@pytest.mark.parametrize("name", ["mlp", "transformer"])
@pytest.mark.unmeasured
def test_what_is_given_can_be_the_arguments(name):
    program = tiny(name)
    numbers, given = program.data()
    parts = import_module("programs.program")
    weights = {name: parts.mapped(mg.Value, nested) for name, nested in numbers.items()}
    fast = mg.compile(lambda given: program.scalars(weights, given), backend="numpy")
    assert fast(given).data == pytest.approx(eager(program)[0], rel=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "irregular"])
def test_matrices_of_casadi_have_the_same_value_and_gradient(name, monkeypatch):
    casadi = pytest.importorskip("casadi")
    program = tiny(name)
    value, gradient = eager(program)
    functions = import_module("array_libraries").casadi_functions()
    monkeypatch.setitem(import_module("programs.bundle").projected.__globals__, "mg", functions)
    matrices = import_module("programs.in_matrices")
    numbers, given = program.data()
    start = np.array(import_module("programs.program").flat(numbers))
    vector = casadi.MX.sym("p", len(start))
    shape = program.scalars.args if name == "transformer" else ()
    loss = getattr(matrices, name)(*shape, matrices.parameters(numbers, vector), given)
    found, slopes = casadi.Function("f", [vector], [loss, casadi.gradient(loss, vector)])(start)
    assert import_module("turns").differs((float(found), np.array(slopes).ravel().tolist()), (value, gradient)) is None


def test_runge_kutta_with_scan_is_the_plain_loop():
    module = import_module("programs.runge_kutta")
    value, gradient = eager(module.runge_kutta(6, scan=True))
    expected, slopes = eager(module.runge_kutta(6))
    assert (value, gradient) == (pytest.approx(expected, rel=1e-13), pytest.approx(slopes, rel=1e-11))


def test_a_point_more_adds_its_log_likelihood_to_the_mixture():
    module = import_module("programs.gmm")
    w, given = module.data(3, 2, 4)
    fewer = module.scalars(w, {"points": given["points"][:-1]})
    density = 0.0
    for weight, mean, logs, numbers in zip(np.exp(w["weights"]), w["means"], w["diagonals"], w["below"], strict=True):
        lower = np.diag(np.exp(logs))
        lower[[1, 2, 2], [0, 0, 1]] = numbers
        component = multivariate_normal(mean, np.linalg.inv(lower.T @ lower))
        density += weight / np.exp(w["weights"]).sum() * component.pdf(given["points"][-1])
    assert module.scalars(w, given) - fewer == pytest.approx(math.log(density), rel=1e-9)


def test_the_numbers_of_a_gaussian_process_have_a_normal_distribution():
    module = import_module("programs.gaussian_process")
    w, given = module.data(6)
    covariances, _ = module.covariance(
        np, {name: np.array(part) for name, part in w.items()}, np.array(given["points"])
    )
    assert -module.scalars(w, given) == pytest.approx(
        multivariate_normal(cov=covariances).logpdf(given["numbers"]), rel=1e-12
    )


def test_cameras_turn_as_scipy_turns():
    axis, point = [0.3, -1.2, 0.7], [1.0, 2.0, -0.5]
    turned = import_module("programs.bundle").rotated(axis, point)
    assert turned == pytest.approx(Rotation.from_rotvec(axis).apply(point), rel=1e-12)


def test_the_transformer_for_one_word_is_that_of_the_other_benchmarks():
    module, older = import_module("programs.transformer"), import_module("transformer")
    weights = older.parameters(mg.Value)
    ours = {name if name in ("letter", "position", "output") else f"{name} 0": rows for name, rows in weights.items()}
    words = [[older.END, *older.WORD, older.END]]
    value = module.scalars(module.SMALL, ours, {"words": words}).data
    assert value == pytest.approx(older.loss(weights, mg.Value).data, rel=1e-12)


# What is measured, and the table


def test_what_differs_is_named():
    differs = import_module("turns").differs
    expected = 2.0, [1.0, -3.0]
    assert differs((2.0, [1.0, -3.0]), expected) is None
    assert differs((2.0, []), expected) is None
    assert differs((2.1, [1.0, -3.0]), expected) == "value"
    assert differs((2.0, [1.0 + 1e-7, -3.0]), expected) == "gradient"
    assert differs((2.0, [1.0]), expected) == "gradient"


def test_a_runner_takes_its_first_step_and_then_turns():
    runners, turns = (import_module(name) for name in ("runners", "turns"))
    made = {name: tiny(name) for name in ("recurrent", "gaussian_process", "mlp", "runge_kutta")}
    for name, program in made.items():  # their gradients are written by hand, one of them in C
        if name == "runge_kutta" and shutil.which("cc") is None:
            continue
        runner = runners.CRunner() if name == "runge_kutta" else runners.NumpyRunner()
        answers = islice(turns.serve(runner, program, turns.Limits(gigabytes=math.inf)), 5)
        loaded, first, kinds, *rounds = answers
        assert loaded
        assert turns.differs(first.result, eager(program)) is None
        assert kinds == ["gradient", "primal", "plain"]
        assert all(0 < turn[kind] < 1 for turn in rounds for kind in kinds)


def rows():
    Row = import_module("turns").Row  # noqa: N806  # it is a class
    ours = Row(
        "a | b", "ours", (1.0, [1.0]), 0.5, 0.25, 2_000_000, {"gradient": [2e-3], "primal": [1e-3], "plain": [6e-3]}
    )
    peer = Row("a | b", "peer", (1.0, [1.0]), 1.5, 0.5, 3_000_000, {"gradient": [3e-3], "primal": [0.5e-3]})
    return [
        ours,
        peer,
        Row("a | b", "slow", failure="over 120 s"),
        Row("a | b", "wrong", (2.0, []), 1.0, 0.5, 0, {}, "value"),
    ]


def test_the_table_has_a_line_for_each_runner():
    suite = import_module("suite")
    assert suite.lines(rows()) == [
        ["a | b", "ours", "0.50", "0.75", "2", "6.00", "2.00", "1.00", "1.00", "2.0", "4.0"],
        ["", "peer", "1.50", "2.00", "3", "-", "3.00", "1.50", "0.500", "6.0", "6.0"],
        ["", "slow", "over 120 s", "-", "-", "-", "-", "-", "-", "-", "-"],
        ["", "wrong", "1.00", "1.50", "0", "value", "-", "-", "-", "-", "-"],
    ]
    assert suite.markdown([["x"], ["a | b"]]) == ["| x |", "|---|", "| a \\| b |"]


def test_the_page_has_a_position_for_the_table():
    suite = import_module("suite")
    page = suite.PAGE.read_text(encoding="utf-8")
    once = suite.with_report(page, "what was measured")
    assert suite.with_report(once, "what was measured") == once
    assert once.startswith(page.partition(suite.START)[0])
    assert once.endswith(page.partition(suite.END)[2])
