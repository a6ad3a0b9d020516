"""What loses a gradient without saying so warns, once per line, and says what to write; what says so is silent."""

import fractions
import math
import sys
import warnings

import numpy as np
import pytest
import scipy.interpolate
import scipy.linalg

import micrograd as mg
from micrograd import GradientWarning, Value
from micrograd.engine import lost_gradients

V = Value(1.0, label="v")
VALUES = [Value(1.0), Value(2.0)]
VECTOR = mg.array([1.0, 2.0, 3.0])
MATRIX = mg.array([[1.0, 2.0], [3.0, 4.0]])
OF_SCIPY = "Calling expm with arguments of dtype=object"  # so SciPy 1.18 and later warn, too


def warnings_of(function):
    """What a function warns of, as a program with Python's usual filters shows it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", OF_SCIPY, DeprecationWarning)
        function()
    assert all(warning.category is GradientWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def assign(item):
    def assignment():
        numbers = np.zeros(3)
        numbers[:] = item

    return assignment


LOST = {
    "math.exp": (lambda: math.exp(V) * V, r"math\.exp .* write mg\.exp\."),
    "a function by its own name": (lambda exp=math.exp: exp(V), r"exp computes .* write mg\.exp\."),
    "math.pow": (lambda: math.pow(V, 2), r"write v \*\* n\."),
    "math.fsum": (lambda: math.fsum(VALUES), r"write sum\(values\)"),
    "math.dist": (lambda: math.dist(VALUES, VALUES), r"math\.dist .* operators and functions of mg"),
    "a function that is computed": (lambda: [math.exp][0](V), r"the function computes|math\.exp computes"),
    "a float inside of the call": (lambda: math.exp(float(V) * V), r"write mg\.exp"),
    "round": (lambda: round(V), r"round\(\) gives a plain number"),
    "round to digits": (lambda: round(V, 2), r"round\(\) gives a plain number"),
    "a float of an array": (assign(V * 2), r"write a = mg\.array\(a\)"),
    "floats of an array": (assign(VECTOR), r"write a = mg\.array\(a\)"),
    "np.gradient": (lambda: np.gradient(np.array(VALUES)), "numpy converts"),
    "scipy.linalg.expm": (lambda: scipy.linalg.expm(MATRIX), r"scipy converts .*: write mg\.expm\."),
    "scipy.linalg.qr": (lambda: scipy.linalg.qr(MATRIX), r"scipy converts .*: write np\.linalg\.qr\."),
    "interp1d": (lambda: scipy.interpolate.interp1d([0, 1, 2], VECTOR)(0.5), r"scipy converts .*: write np\.interp\."),
    "another class of SciPy": (
        lambda: scipy.interpolate.CubicSpline([0, 1, 2], VECTOR),
        "scipy converts .*: write the computation with",
    ),
    "unpacking": (lambda: [*map(math.exp, VALUES)], "its float is taken here|computes with its float"),
    "== a number": (lambda: V == 1.0, r"mg\.numbers\(p\) == y"),
    "a number ==": (lambda: 1 == V, r"mg\.numbers\(p\) == y"),  # noqa: SIM300
    "!= a fraction": (lambda: fractions.Fraction(1, 2) != V, "by identity"),
    "== pytest.approx": (lambda: pytest.approx(1.0) == V, r"v\.data == 1\.0"),
    "a list ==": (lambda: VALUES == [1.0, 2.0], "by identity"),
    "accuracy": (lambda: (np.array([1.0, 2.0, 3.0]) == VECTOR).mean(), r"mg\.numbers\(p\) == y"),
    "an array == a number": (lambda: VECTOR == 1, "by identity"),
    "an array != an array": (lambda: np.ones(3) != VECTOR, "by identity"),
    "NumPy's own array ==": (lambda: np.array(VALUES) == np.ones(2), "by identity"),
}


@pytest.mark.filterwarnings(f"ignore:{OF_SCIPY}:DeprecationWarning")
@pytest.mark.parametrize("name", LOST)
def test_what_loses_a_gradient_warns_once_and_says_what_to_write(name):
    function, message = LOST[name]
    with pytest.warns(GradientWarning, match=message) as caught:
        function()
    assert {warning.filename for warning in caught} == {__file__}
    assert len(warnings_of(function)) == 1


SILENT = {
    "round of a constant": lambda: round(Value(2.5, requires_grad=False)),
    "float": lambda: float(V),
    "int": lambda: int(V),
    "float of a choice": lambda: float(V if VALUES else 0.0),
    "floats in a comprehension": lambda: [float(value) for value in VALUES],
    "floats by map": lambda: list(map(float, VALUES)),
    "an array of floats": lambda: np.array(VALUES, dtype=float),
    "astype": lambda: VECTOR.astype(float),
    "np.float64": lambda: np.float64(V),
    "a function of a float": lambda: math.exp(float(V)),
    "a format string": lambda: f"{V:.2f} {V}",
    "format": lambda: "{:.2f}".format(V),  # noqa: UP032
    "%": lambda: "%.2f" % V,  # noqa: UP031
    "repr": lambda: repr([V, VECTOR]),
    "detach": lambda: math.exp(V.detach()),
    "a constant": lambda: math.exp(Value(1.0, requires_grad=False)),
    "a question": lambda: math.isnan(V) or math.isclose(V, 2.0) or math.floor(V),
    "a comparison": lambda: 0.5 < V < 2,
    "identity": lambda: V == V and VALUES[0] != V and V in [*VALUES, V],
    "no number": lambda: V is None or V == "1" or V == (1.0,),
    "arrays of Values": lambda: (VECTOR == VECTOR, VECTOR == V, np.array([]).reshape(0, 1) == VECTOR),
    "numbers": lambda: mg.numbers(VECTOR) == np.ones(3),
    "a test of NumPy's": lambda: np.testing.assert_allclose(np.array([V], dtype=object).astype(float), 1.0),
    "arithmetic with NumPy": lambda: (np.float64(2) * V, np.ones(3) * V, np.exp(VECTOR)),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_says_so_is_silent(name):
    assert warnings_of(SILENT[name]) == []


def test_under_no_grad_there_is_no_gradient_to_lose():
    with mg.no_grad():
        assert warnings_of(lambda: math.exp(V)) == []


def test_a_library_that_shows_numbers_is_silent(monkeypatch):
    scope = {"__name__": "matplotlib.ticks", "np": np}
    exec(compile("def show(values):\n    out = np.zeros(2)\n    out[:] = values\n", __file__, "exec"), scope)
    monkeypatch.setattr(lost_gradients, "_LIBRARIES", ("/none",))
    assert len(warnings_of(lambda: scope["show"](VALUES))) == 1  # a function of the user's own module
    path = "/library/matplotlib/ticks.py"
    exec(compile("def show(values):\n    out = np.zeros(2)\n    out[:] = values\n", path, "exec"), scope)
    monkeypatch.setattr(lost_gradients, "_LIBRARIES", ("/library/",))
    assert warnings_of(lambda: scope["show"](VALUES)) == []


def test_where_only_libraries_run_the_innermost_line_is_named(monkeypatch):
    monkeypatch.setattr(lost_gradients, "_LIBRARIES", ("", "/"))
    assert len(warnings_of(lambda: math.exp(V))) == 1


@pytest.fixture
def without_columns(monkeypatch):
    """Instructions as those of Python 3.10, or of ``python -X no_debug_ranges``: they do not say where they stand."""
    instructions = lost_gradients.get_instructions
    if sys.version_info >= (3, 11):
        monkeypatch.setattr(
            lost_gradients,
            "get_instructions",
            lambda code: [each._replace(positions=None) for each in instructions(code)],
        )


@pytest.mark.usefixtures("without_columns")
@pytest.mark.parametrize(
    "line", ["float(V) + 1", "float(V if V else 0.0)", "math.exp(1.0) + float(V)", "math.exp(float(V))"]
)
def test_without_columns_a_call_that_says_float_is_silent(line):
    assert warnings_of(lambda: eval(line, {"math": math, "V": V})) == []


@pytest.mark.usefixtures("without_columns")
@pytest.mark.parametrize(
    "line", ["math.exp(V)", "float(1) + math.exp(V)", "math.exp(V if V else 0.0)", "math.exp(V or 1)"]
)
def test_without_columns_the_function_that_loses_a_gradient_is_named(line):
    (message,) = warnings_of(lambda: eval(line, {"math": math, "V": V}))
    assert "math.exp computes with its float. To keep the gradient, write mg.exp." in message


def test_what_is_kept_of_instructions_is_bounded(monkeypatch):
    monkeypatch.setattr(lost_gradients, "_MOST_KEPT", 3)
    for index in range(8):
        scope = {"V": V}
        exec(f"def f():\n    return float(V) + {index}", scope)
        assert scope["f"]() == 1.0 + index
    assert len(lost_gradients._kept) <= 3


def test_values_are_keys_by_identity():
    twin = Value(1.0)
    assert len({V, twin, V}) == 2
    assert {V: 1, twin: 2}[twin] == 2
