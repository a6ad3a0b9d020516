"""The command: expressions in, values, gradients and pictures out."""

import errno
import json
import math
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.command.grammar import ExpressionError, evaluate
from micrograd.command.main import main
from tests.campaigns.parser import mutants, outcome, texts


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


def test_json_is_for_scripts(capsys):
    code, out, _ = run(capsys, "grad", "x*y*y", "x=1e200", "y=1e100", "--json")
    assert code == 0
    assert json.loads(out) == {"expression": "x*y*y", "value": None, "gradients": {"x": 1e200, "y": 2e300}}


def test_check_prints_both_gradients(capsys):
    code, out, _ = run(capsys, "check", "tanh(x*y + exp(x))", "x=0.7", "y=-0.4")
    header, x, y, verdict = out.splitlines()
    assert code == 0
    assert header.split() == ["input", "analytic", "numeric", "error", "allowed", "verdict"]
    slopes = 1 / math.cosh(0.7 * -0.4 + math.exp(0.7)) ** 2
    for line, name, at, slope in ((x, "x", 0.7, slopes * (math.exp(0.7) - 0.4)), (y, "y", -0.4, slopes * 0.7)):
        assert line.split()[0] == name
        assert [float(number) for number in line.split()[1:4]] == pytest.approx([at, slope, slope])
        assert line.split()[-1] == "right"
    assert verdict == "the gradients of tanh(x*y + exp(x)) agree with finite differences"


def test_a_check_that_fails_is_told_apart_from_one_that_cannot_be_made(capsys):
    code, out, _ = run(capsys, "check", "log(1 + exp(x))", "x=-40")  # has lost its digits, where softplus has not
    assert code == 1
    assert "do NOT agree" in out
    assert "WRONG" in out
    code, out, _ = run(capsys, "check", "relu(x)", "x=0")  # at a kink the differences are no derivative
    assert code == 0
    assert "kink" in out
    assert run(capsys, "check", "relu(x", "x=0")[0] == 2
    assert run(capsys, "check", "1 + 1")[0] == 2


def test_check_in_json(capsys):
    code, out, _ = run(capsys, "check", "log(1 + exp(x))", "x=-40", "--json")
    assert code == 1
    assert json.loads(out)["agree"] is False
    row = json.loads(out)["gradients"][0]
    assert (row["name"], row["at"], row["differences"], row["verdict"]) == ("x", -40.0, 0.0, "WRONG")
    assert row["backpropagation"] == pytest.approx(math.exp(-40))


def test_draw_writes_the_picture(capsys, tmp_path):
    path = tmp_path / "graph.svg"
    assert run(capsys, "draw", "x*y", "x=2", "y=-3", "-o", str(path))[0] == 0
    assert "<svg" in path.read_text(encoding="utf-8")


def test_draw_takes_the_style_of_the_lecture(capsys, tmp_path):
    path = tmp_path / "graph.dot"
    for style, symbol in (("written", ">/<"), ("micrograd", ">**-1<")):
        assert run(capsys, "draw", "x/y", "x=2", "y=-3", "-o", str(path), "--style", style)[0] == 0
        assert symbol in path.read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["draw", "x", "x=1", "--style", "other"])
    assert "invalid choice: 'other'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["x*y", "x=2"], "'y' is not known; give it a value: y=1\n  x*y\n    ^"),
        (["x*", "x=2"], "invalid syntax\n  x*\n    ^"),
        (["x", "x"], "'x' is not of the form name=number"),
        (["x", "lambda=1"], "'lambda=1' is not of the form name=number"),
        (["x", "sin=1"], "'sin' is a function: choose another name"),
        (["x", "x=two"], "'two', given for 'x', is not a number"),
        (["x", "x=1", "x=2"], "'x' is given twice"),
        (["2 + 1/x", "x=0"], "1.0 / (x = 0.0): float division by zero\n  2 + 1/x\n      ^^^"),
        (["log(x)", "x=-1"], "log(x = -1.0)"),
        (["sqrt(x)", "x=0"], "the derivative of sqrt(x = 0.0)"),
        (["x.data", "x=1"], "cannot stand in an expression"),
        (["__import__('os')"], "cannot stand in an expression"),
        (["foo(x)", "x=1"], "'foo' is no function here"),
        (["detach(x)", "x=1"], "'detach' is no function here"),
        (["sin(x, x)", "x=1"], "sin takes 1 operand"),
        (["sin(x=1)"], "sin takes 1 operand"),
        (["maximum(*x)", "x=1"], "cannot stand"),
        (["sin", "x=1"], "'sin' is a function: call it"),
        (["x" * 20_000, "x=1"], "20000 characters"),
        (["(" * 4000 + "x" + ")" * 4000, "x=1"], "nested"),
        (["-" * 9000 + "x", "x=1"], "nested"),
        (["1" + "0" * 400], "no float is as large"),
        (["(-8)**(1/3)"], "fractional exponent"),
        (["x if x else x", "x=1"], "cannot stand"),
        (["True"], "cannot stand"),
        (["1j"], "cannot stand"),
        (["'\\d'"], "cannot stand"),
        (["1is 2"], "cannot stand"),
        (["x; y"], "invalid syntax\n  x; y\n   ^"),
        ([" "], "the expression is empty"),
        (["x\0y", "x=1"], "no expression has the character '\\x00' in it"),
        (["\udc80", "x=1"], "no expression has the character '\\udc80' in it"),
    ],
)
def test_what_is_wrong_is_said_on_the_error_output(capsys, words, message):
    code, out, err = run(capsys, "grad", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_caret_points_at_the_culprit():
    with pytest.raises(ExpressionError) as caught:
        evaluate("é + x * wrong", {"é": Value(1.0), "x": Value(1.0)})
    _, line, carets = str(caught.value).splitlines()
    assert line[carets.index("^") :] == "wrong"
    assert carets.count("^") == len("wrong")


@pytest.mark.parametrize(
    ("text", "line", "carets"),
    [
        ("  x*wrong", "  x*wrong", "    ^^^^^"),
        ("(x +\n wrong)", " wrong)", " ^^^^^"),
        ("(x +\r\n\u2028 wrong)", "\ufffd wrong)", "^"),
        ("é x", "é x", "  ^"),
        ("変数*x", "変数*x", "^^^^"),  # each as wide as two
        ("x +", "x +", "   ^"),
        ("(x + 1\n*", "(x + 1", "^"),
    ],
)
def test_the_carets_stand_below_the_culprit(text, line, carets):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, {"x": Value(1.0), "é": Value(1.0)})
    assert str(caught.value).split("\n")[1:] == [f"  {line}", f"  {carets}"]


def test_of_a_long_line_the_part_around_the_culprit_is_shown():
    with pytest.raises(ExpressionError) as caught:
        evaluate("x + " * 2000 + "wrong" + " + x" * 400, {"x": Value(1.0)})
    _, line, carets = str(caught.value).splitlines()
    assert len(line) < 80
    assert line[carets.index("^") :].startswith("wrong")


def test_a_long_sum_is_read():
    x = Value(0.5)
    evaluate("x" + " + x" * 2000, {"x": x}).backward()
    assert x.grad == 2001


def test_names_are_python_names_in_every_script(capsys):
    micro = "\u00b5"  # Python reads the micro sign as the Greek letter
    assert run(capsys, "grad", f"{micro}**2", f"{micro}=3")[0] == 0


def test_an_expression_may_begin_with_a_minus_sign(capsys):
    assert run(capsys, "grad", "-x*y", "x=2", "y=3")[1].splitlines()[0] == "-x*y = -6.0"


def test_draw_says_in_json_what_it_wrote(capsys, tmp_path):
    path = str(tmp_path / "graph.dot")
    assert json.loads(run(capsys, "draw", "x", "x=2", "-o", path, "--json")[1]) == {"wrote": path}


def test_a_picture_that_cannot_be_written_is_an_error(capsys, tmp_path):
    code, out, err = run(capsys, "draw", "x", "x=2", "-o", str(tmp_path / "none" / "graph.svg"))
    assert (code, out) == (2, "")
    assert "No such file or directory" in err


def test_explore_writes_the_page(capsys, tmp_path):
    path = tmp_path / "page.html"
    assert run(capsys, "explore", "x*y", "x=2", "y=-3", "-o", str(path), "--title", "a product")[0] == 0
    page = path.read_text(encoding="utf-8")
    assert "<title>a product" in page
    assert "-6" in page


@pytest.mark.parametrize("words", [[], ["frobnicate"], ["grad"], ["train", "x.csv"], ["grad", "x", "--frobnicate"]])
def test_unknown_words_are_refused_with_the_usage(capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert "usage: micrograd" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["", "grad", "check", "draw", "explore", "train", "predict"])
def test_help_is_there_for_every_command(capsys, command):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"] if command else ["--help"])
    assert caught.value.code == 0
    assert "usage: micrograd" in capsys.readouterr().out


def shell(script, **options):
    """What a shell makes of a script in which $micrograd is the command."""
    command = f'micrograd() {{ "{sys.executable}" -W error -m micrograd "$@"; }}\n{script}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=600, **options)


def test_a_pipe_that_nobody_reads_ends_it_quietly():
    result = shell("micrograd grad x x=1 | true; echo ${PIPESTATUS[0]}; micrograd --help | true; echo ${PIPESTATUS[0]}")
    assert set(result.stdout.split()) <= {"0", "141"}
    assert result.stderr == ""


def test_a_pipe_that_was_closed_before_is_a_broken_one():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-W", "error", "-m", "micrograd", "grad", "x", "x=1"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_behind_the_output_is_an_error():
    result = shell("micrograd grad x x=1 > /dev/full")
    assert result.returncode == 2
    assert result.stderr == f"micrograd: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.parametrize("buffering", [1, -1])  # the first line finds the pipe closed, or the flush at the end does
def test_main_ends_with_the_code_of_a_broken_pipe(monkeypatch, capsys, buffering):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering) as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["grad", "x", "x=1"]) == 141
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_main_ends_with_the_code_of_an_error_where_the_disk_is_full(monkeypatch, capsys):
    with open("/dev/full", "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["grad", "x", "x=1"]) == 2
    assert capsys.readouterr().err == f"micrograd: {os.strerror(errno.ENOSPC)}\n"


def test_the_module_runs_as_the_command():
    result = subprocess.run(
        [sys.executable, "-m", "micrograd", "--version"], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == f"micrograd {mg.__version__}"


@pytest.mark.slow
@settings(deadline=None)
@given(texts | mutants)
def test_any_text_gives_a_value_or_an_expression_error_soon(text):
    assert outcome(text) in {"computed", "refused"}


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
