"""The command: expressions in, values, gradients and pictures out."""

import math
import runpy
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.cli import main
from micrograd.expressions import ExpressionError, evaluate


def run(capsys, *words):
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_grad_prints_the_value_and_each_gradient(capsys):
    code, out, _ = run(capsys, "grad", "x*y + z", "x=2", "y=-3", "z=10")
    assert code == 0
    assert out.splitlines() == ["x*y + z = 4.0", "gradient of x = -3.0", "gradient of y = 2.0", "gradient of z = 1.0"]


def test_grad_of_numbers_alone_prints_the_value(capsys):
    assert run(capsys, "grad", "2*3 + sqrt(16)")[:2] == (0, "2*3 + sqrt(16) = 10.0\n")


def test_check_agrees_with_finite_differences(capsys):
    code, out, _ = run(capsys, "check", "tanh(x*y + exp(x))", "x=0.7", "y=-0.4")
    assert code == 0
    assert "agree" in out


def test_draw_writes_the_picture(capsys, tmp_path):
    path = tmp_path / "graph.svg"
    assert run(capsys, "draw", "x*y", "x=2", "y=-3", "-o", str(path))[0] == 0
    assert "<svg" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x*y", "x=2"], "'y' is not known; give it a value: y=1"),
        (["x*", "x=2"], "invalid syntax"),
        (["x", "x"], "'x' is not of the form name=number"),
        (["x", "x=two"], "'two', given for 'x', is not a number"),
        (["x", "x=1", "x=2"], "'x' is given twice"),
        (["1/x", "x=0"], "1.0 / (x = 0.0): float division by zero"),
        (["log(x)", "x=-1"], "log(x = -1.0)"),
        (["x.data", "x=1"], "cannot stand in an expression"),
        (["__import__('os')"], "cannot stand in an expression"),
        (["sin(x, x)", "x=1"], "sin takes 1 operand"),
        (["sin", "x=1"], "it is a function: call it"),
        (["x" * 20_000, "x=1"], "20000 characters"),
        (["(" * 5000 + "x" + ")" * 5000, "x=1"], ""),
        (["1" + "0" * 400], "no float is as large"),
        (["(-8)**(1/3)"], "fractional exponent"),
        (["x if x else x", "x=1"], "cannot stand"),
        (["True"], "cannot stand"),
        (["1j"], "cannot stand"),
        (["'a'"], "cannot stand"),
        ([""], "invalid syntax"),
        (["x\0y", "x=1"], "null"),
    ],
)
def test_what_is_wrong_is_said_on_the_error_output(capsys, words, message):
    code, out, err = run(capsys, "grad", *words)
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_a_caret_points_at_the_culprit():
    with pytest.raises(ExpressionError) as caught:
        evaluate("é + x * wrong", {"é": Value(1.0), "x": Value(1.0)})
    _, line, caret = str(caught.value).splitlines()
    assert line[caret.index("^") :] == "wrong"


def test_the_module_runs_as_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "micrograd", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == f"micrograd {mg.__version__}"


@given(st.text(max_size=60) | st.text("x0.+-*/()e sinlog,=[]'", max_size=60))
def test_any_text_gives_a_value_or_an_error_of_the_documented_kinds(text):
    try:
        result = evaluate(text, {"x": Value(0.5, label="x")})
    except (ExpressionError, ArithmeticError, ValueError):
        return
    assert isinstance(result, Value)


@given(st.floats(-5, 5), st.floats(0.1, 5))
def test_an_expression_means_what_it_means_in_python(x, y):
    text = "2*x**2 - x/y + exp(-x) * (y - 3)"
    expected = eval(text, {"x": x, "y": y, "exp": math.exp})
    assert evaluate(text, {"x": Value(x), "y": Value(y)}).data == expected


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["micrograd", "grad", "x*x", "x=3"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("micrograd", run_name="__main__")
    assert not ended.value.code
    assert "6" in capsys.readouterr().out
