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
from micrograd.command.grammar import ExpressionError, ParsedExpression
from micrograd.command.main import main
from tests.campaigns.parser import mutants, outcome, texts

pytestmark = pytest.mark.slow(together=True)


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
    assert "the gradients of relu(x) cannot be compared with finite differences at this point" in out
    code, out, _ = run(capsys, "check", "x*abs(y)", "x=1", "y=0")
    assert code == 0
    assert out.rstrip().endswith("except for what cannot be compared at this point: y (kink)")
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
        (["x*", "x=2"], "at the end a number, a name or a bracket is missing\n  x*\n    ^"),
        (["x + * 2", "x=2"], "before '*' a number, a name or a bracket is missing\n  x + * 2\n      ^"),
        (["()"], "before ')' a number, a name or a bracket is missing"),
        (["2 3"], "before '3' an operator is missing\n  2 3\n    ^"),
        (["x, y", "x=2"], "a comma stands only between the operands of a function\n  x, y\n  ^^^^"),
        (["(x, y)", "x=2"], "a comma stands only between"),
        (["x)", "x=2"], "no bracket is open here\n  x)\n   ^"),
        (["sin((x + 1)", "x=2"], "this bracket is never closed\n  sin((x + 1)\n     ^"),
        (["x", "x"], "'x' is not of the form name=number"),
        (["x", "lambda=1"], "'lambda=1' is not of the form name=number"),
        (["x", "sin=1"], "'sin' is a function: choose another name"),
        (["x", "x=two"], "'two', given for 'x', is not a number"),
        (["x", "x=1,5"], "'1,5', given for 'x', is not a number, as in x=1.5"),
        (["x", "x=1", "x=2"], "'x' is given twice"),
        (["x·", "x=1"], "'x·' cannot stand in an expression"),
        (["2 + 1/x", "x=0"], "1.0 / (x = 0.0): float division by zero\n  2 + 1/x\n      ^^^"),
        (["log(x)", "x=-1"], "log(x = -1.0)"),
        (["sqrt(x)", "x=0"], "the derivative of sqrt(x = 0.0)"),
        (["x.data", "x=1"], "cannot stand in an expression"),
        (["__import__('os')"], "cannot stand in an expression"),
        (["__import__(os)"], "'__import__' is no function here"),
        (["'os'"], "cannot stand in an expression"),
        (["foo(x)", "x=1"], "'foo' is no function here"),
        (["detach(x)", "x=1"], "'detach' is no function here"),
        (["sin(x, x)", "x=1"], "sin takes 1 operand"),
        (["sin()"], "before ')' a number, a name or a bracket is missing\n  sin()\n      ^"),
        (["2 + sin(x, x)"], "sin takes 1 operand\n  2 + sin(x, x)\n      ^^^^^^^^^"),
        (["2 + 007"], "leading zeros in decimal integer literals are not permitted"),
        (["sin(x,)", "x=1"], "before ')' a number"),
        (["maximum(x)", "x=1"], "maximum takes 2 operands"),
        (["sin(x=1)"], "'=' cannot stand"),
        (["maximum(*x)", "x=1"], "before '*' a number"),
        (["sin", "x=1"], "'sin' is a function: call it"),
        (["x" * 20_000, "x=1"], "20000 characters"),
        (["1" + "0" * 400], "no float is as large"),
        (["0x" + "f" * 400], "no float is as large"),
        (["1e400"], "no float is as large"),
        (["(-8)**(1/3)"], "fractional exponent"),
        (["x if x else x", "x=1"], "cannot stand"),
        (["True"], "cannot stand"),
        (["1j"], "did you mean `1*j`?"),
        (["'\\d'"], "cannot stand"),
        (["1is 2"], "cannot stand"),
        (
            ["x; y"],
            "';' cannot stand in an expression; there are numbers, names, + - * / **, parentheses and functions",
        ),
        ([" "], "the expression is empty"),
        (["x\0y", "x=1"], "'\\x00' cannot stand in an expression"),
        (["\udc80", "x=1"], "'\\udc80' cannot stand in an expression"),
    ],
)
def test_what_is_wrong_is_said_on_the_error_output(capsys, words, message):
    code, out, err = run(capsys, "grad", *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_numbers_may_stand_behind_options(capsys, tmp_path):
    code, out, _ = run(capsys, "grad", "x*y", "x=2", "--json", "y=3")
    assert (code, json.loads(out)["gradients"]) == (0, {"x": 3.0, "y": 2.0})
    path = tmp_path / "graph.dot"
    assert run(capsys, "draw", "x*y", "-o", str(path), "x=2", "y=1")[0] == 0
    assert path.exists()


@pytest.mark.parametrize(
    "words", [["grad", "x", "--json", "x=1", "--foo"], ["train", "a.csv", "b.csv", "--target", "x"]]
)
def test_words_that_mean_nothing_are_refused(capsys, words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert f"unrecognized arguments: {words[2] if words[0] == 'train' else 'x=1 --foo'}" in capsys.readouterr().err


def test_a_caret_points_at_the_culprit():
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression("é + x * wrong")({"é": Value(1.0), "x": Value(1.0)})
    _, line, carets = str(caught.value).splitlines()
    assert line[carets.index("^") :] == "wrong"
    assert carets.count("^") == len("wrong")


@pytest.mark.parametrize(
    ("text", "line", "carets"),
    [
        ("  x*wrong", "  x*wrong", "    ^^^^^"),
        ("(x +\n wrong)", " wrong)", " ^^^^^"),
        ("(x +\r\n\u2028 wrong)", "\ufffd wrong)", "^"),
        ("é 2 3", "é 2 3", "  ^"),
        ("変数*x", "変数*x", "^^^^"),  # each as wide as two
        ("x +", "x +", "   ^"),
        ("(x + 1\n*", "(x + 1", "^"),
    ],
)
def test_the_carets_stand_below_the_culprit(text, line, carets):
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression(text)({"x": Value(1.0), "é": Value(1.0)})
    assert str(caught.value).split("\n")[1:] == [f"  {line}", f"  {carets}"]


def test_of_a_long_line_the_part_around_the_culprit_is_shown():
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression("x + " * 500 + "wrong" + " + x" * 400)({"x": Value(1.0)})
    _, line, carets = str(caught.value).splitlines()
    assert len(line) < 80
    assert line[carets.index("^") :].startswith("wrong")


def test_a_sum_of_1_000_terms_is_read(capsys):
    text = "+".join(["x"] * 1_000)
    x = Value(0.5)
    ParsedExpression(text)({"x": x}).backward()
    assert x.grad == 1_000
    code, out, _ = run(capsys, "grad", text, "x=1")
    assert (code, out.splitlines()[-1]) == (0, "gradient of x = 1000.0")


@pytest.mark.parametrize(
    ("text", "meant", "position"),
    [
        ("x^2", "x**2", 1),
        ("x²", "x**2", 1),
        ("2x + y³", "2*x + y**3", 1),
        ("x·y − 1", "x*y - 1", 1),
        ("2√(x + 1) ÷ y × x", "2*sqrt(x + 1) / y * x", 1),
        ("√x", "sqrt(x)", 0),
        ("x ^ 2 + y ^ -1", "x ** 2 + y ** -1", 2),
        ("ln(x)", "log(x)", 0),
        ("max(x, 1)", "maximum(x, 1)", 0),
        ("min(x, max(y, 2))", "minimum(x, maximum(y, 2))", 0),
        ("2x", "2*x", 1),
        ("2 x", "2*x", 2),
        ("1 + 2.5e3x", "1 + 2.5e3*x", 9),
        ("3(x + 1)", "3*(x + 1)", 1),
        ("(x + 1)(y - 1)", "(x + 1)*(y - 1)", 7),
        ("(x + 1) y", "(x + 1)*y", 8),
        ("x(y + 1)", "x*(y + 1)", 1),
        ("x y", "x*y", 2),
        ("sin x", "sin(x)", 0),
        ("sin x + y", "sin(x) + y", 0),
        ("sin 2x * y", "sin(2*x) * y", 0),
        ("sin x^2", "sin(x**2)", 0),
        ("2sin x cos y", "2*sin(x)*cos(y)", 1),
        ("sin cos x", "sin(cos(x))", 0),
        ("exp (sin x)", "exp (sin(x))", 5),
        ("maximum(sin x, y) ", "maximum(sin(x), y)", 8),
        ("ln x", "log(x)", 0),
        ("e^x", "e**x", 1),
        ("2pi x", "2*pi*x", 1),
        ("Sin(x)", "sin(x)", 0),
        ("arctan(x)", "atan(x)", 0),
        ("sigmod(x)", "sigmoid(x)", 0),
        ("(x^2\n + 1)", "(x**2 + 1)", 2),
    ],
)
def test_who_writes_as_in_mathematics_is_asked(text, meant, position):
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression(text)
    message, line, carets = str(caught.value).split("\n")
    assert message == f"did you mean `{meant}`?"
    assert line == f"  {text.splitlines()[0]}"
    assert carets == f"  {' ' * position}^"
    ParsedExpression(meant)


@pytest.mark.parametrize(
    "text", ["2 3", "2x +", "foo(2x)", "foo(x)", "log3(x)", "sin^2 x", "x^", "x^2 = 1", "2" + "x" * 9_999 + "^"]
)
def test_nothing_is_guessed_that_would_be_no_expression_either(text):
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression(text)
    assert "did you mean" not in str(caught.value)


def test_of_a_long_text_the_part_around_the_first_correction_is_shown():
    with pytest.raises(ExpressionError) as caught:
        ParsedExpression("x + " * 200 + "x^2" + " + x" * 200)
    message, line, carets = str(caught.value).split("\n")
    assert message.startswith("did you mean `... ")
    assert message.endswith(" ...`?")
    assert "x + x**2 + x" in message
    assert len(message) < 110
    assert line[carets.index("^")] == "^"


def test_e_and_pi_are_known(capsys):
    assert ParsedExpression("pi*x + e")({"x": Value(2.0)}).data == math.pi * 2 + math.e
    assert ParsedExpression("pi*x + e").names == ("x",)
    assert run(capsys, "grad", "e**x", "x=0")[1].splitlines() == ["e**x = 1.0", "gradient of x = 1.0"]
    assert run(capsys, "grad", "e*2", "e=3")[1].splitlines() == ["e*2 = 6.0", "gradient of e = 2.0"]


def test_numbers_are_those_of_python():
    for text in ("1_000", "0x1f", "0b101", "0o17", "1.", ".5", "1e-3", "2E+2", "12345678901234567890", "1_0.0_1e1_0"):
        assert ParsedExpression(text)({}).data == float(eval(text))


def test_operators_bind_as_in_python():
    values = {"a": 1.5, "b": 2.0, "c": 3.0}
    for text in (
        "-a**2", "a**-b", "a**b**c", "a-b-c", "a/b/c", "-a*b", "a*-b**2", "a**-b**c", "-(a-b)", "2**-b*c", "+a--b",
        "a-b*c+a/b", "(a-b)*c", "a-(b-c)", "--a", "-a/b", "a*b**-c-1",
    ):  # fmt: skip
        assert ParsedExpression(text)({name: Value(x) for name, x in values.items()}).data == eval(
            text, dict(values)
        ), text


def test_names_are_python_names_in_every_script(capsys):
    micro = "\u00b5"  # Python reads the micro sign as the Greek letter
    assert run(capsys, "grad", f"{micro}**2", f"{micro}=3")[0] == 0


def test_a_file_and_a_title_may_begin_with_a_minus_sign(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "draw", "-x", "x=1", "-o", "-a.dot")[:2] == (0, "wrote -a.dot\n")
    assert run(capsys, "explore", "-x", "x=1", "--title", "-- what --", "-o", "-b.html")[:2] == (0, "wrote -b.html\n")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["-a.dot", "-b.html"]
    assert "<title>-- what --</title>" in Path("-b.html").read_text(encoding="utf-8")
    assert run(capsys, "draw", "x", "x=1", "-o", "-")[2].endswith(": '-'\n")


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


def test_a_pipe_that_nobody_reads_ends_it_without_a_word():
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


def test_an_output_that_was_closed_before_takes_nothing():
    result = shell("micrograd grad x x=1 >&-; echo $? >&2")
    assert (result.stdout, result.stderr) == ("", "0\n")


def test_main_prints_nothing_where_there_is_no_output(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["grad", "x", "x=1"]) == 0
    assert capsys.readouterr() == ("", "")


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


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"micrograd {mg.__version__}\n")


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
    assert ParsedExpression(text)({"x": Value(x), "y": Value(y)}).data == expected


def test_the_module_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["micrograd", "grad", "x*x", "x=3"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("micrograd", run_name="__main__")
    assert not ended.value.code
    assert "6" in capsys.readouterr().out
