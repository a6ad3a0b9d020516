"""Texts made to crash a parser, to hang it or to fill the memory: each gives a number or a message."""

import sys

import pytest

from micrograd import Value
from micrograd.command.grammar import LONGEST, ExpressionError, ParsedExpression
from micrograd.command.main import main

pytestmark = pytest.mark.slow(together=True)

DEPTHS = (99, 100, 101, 1_900, 4_999)
HOSTILE = {
    "one piece again and again": [
        piece * (LONGEST // len(piece))
        for piece in (
            *"()-+*x1.,_^\n\\'\"[{#\0~=:\ud800\u0301", "9 ", "x ", "x,", "x+", "x*", "x**", "x**-", "x.", "x[", "1.",
            "1e", "0x", "(x)", "(x,", "x(", "abs(", "maximum(x,", "sin ", "2x", "lnx(", "not ", "lambda x:",
            "x if x else ", "x for x in ", "True", "None ", "await ", "f'{", ":=", "\u200b", "e\u0301",
            "\U0001d431", "\u5909",
        )
    ],
    "nested": [
        opening * depth + "x" + closing * depth
        for depth in DEPTHS
        for opening, closing in (
            ("(", ")"), ("-(", ")"), ("abs(", ")"), ("x**-(", ")"), ("(x,", ")"), ("maximum(x+1,", ")"), ("x(", ")"),
            ("2(", ")"), ("sin (", ")"), ("(x)(", ")"), ("[", "]"), ("{x:", "}"), ("f'{", "}'"),
        )
    ],
    "nested, with a fault": [
        opening * depth + "x" + closing * depth
        for depth in DEPTHS
        for opening, closing in (("abs(", ""), ("", ")"), ("-(", "+)"), ("x**(", "+1)+"), ("maximum(", ",x"),
                                 ("(x,", "=)"))
    ],
    "many different names": [
        " + ".join(f"logs{chr(letter)}(x)" for letter in range(0x4E00, 0x4E00 + 900)),  # each nearly a function
        " + ".join(f"x{number}" for number in range(900)),
        "maximum(" + "x, " * 3_000 + "x)",
    ],
    "numbers": [
        "1" * 9_999, "0x" + "f" * 9_998, "1e" + "9" * 9_990, "9" * 4_000 + "**" + "9" * 4_000, "9**9**9**9**9**9", "1j",
        "0b12", "007", "1__0", "1_", "1e", "0x", "1..2", "1is 2", "1if 2else 3", "0x1for x", "\u0663", "x\u00b2",
    ],
    "code": [
        "__import__('os').system('true')", "().__class__.__bases__[0]", "x.__class__", "(lambda: x)()", "b'x'", "'\\d'",
        "x if x else y", "[x for x in y]", "x := 1", "x = 1", "f'{x}'", "...", "x @ y", "x // y", "x % y", "x < y",
        "~x", "not x", "*x", "**x", "abs(*x)", "abs(**x)", "abs(x=x)", "x\\\ny", "print x", "exec x", "x;y", "x\ny",
        "(x\n,y)", "\ufeffx", "x\u2028+", "x\u00a0+ x", "\U0001d413rue", "\U0001d422\U0001d41f + 1", "yield",
        "(yield x)", "# x",
    ],
}  # fmt: skip


LONG = ("one piece again and again", "nested, with a fault")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow) if kind in LONG else kind for kind in HOSTILE]
)
def test_a_hostile_text_gives_a_number_or_a_short_message(kind):
    assert all(0 < len(_answer(text)) < 1_000 for text in HOSTILE[kind])


def _answer(text):
    try:
        return str(ParsedExpression(text)({"x": Value(1.0)}).data)
    except ExpressionError as error:
        return str(error)


def test_the_command_says_what_is_wrong_with_a_hostile_text(capsys):
    for text in ("(" * 5_000, "-" * 5_000 + "x", "x**-" * 2_000 + "x", "x." * 5_000, "\ud800", "9" * 5_000):
        assert main(["grad", text, "x=1"]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("micrograd: ")
        assert "Traceback" not in printed.err


def test_code_is_refused():
    for text in HOSTILE["code"]:
        with pytest.raises(ExpressionError):
            ParsedExpression(text)({"x": Value(1.0)})


@pytest.mark.unmeasured
def test_an_expression_is_refused_where_the_stack_is_nearly_full():
    text = "+".join(["x"] * 1_000)

    def answer_below(calls):
        return answer_below(calls - 1) if calls else _answer(text)

    def answer(calls):
        try:
            return answer_below(calls).splitlines()[0]
        except RecursionError:  # there was no room for the calls themselves
            return "no answer"

    answers = [answer(calls) for calls in range(0, sys.getrecursionlimit(), 50)]
    assert answers[0] == "1000.0"
    assert set(answers) <= {"1000.0", "the expression is nested too deep to be read here", "no answer"}
