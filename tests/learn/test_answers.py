"""Answers as learners write them: at least four right ones and six wrong ones for every exercise.

The tables are in answers/, one for each chapter. A paragraph of a table has answers under `== 2.3 right` or
`== 2.3 wrong`: an expression, a function or a class each. `old ==> new` is the solution with a part replaced. The
engines in answers/engines.txt are right answers to every step of chapter 3.
"""

import ast
import bisect
import collections
import dataclasses
import decimal
import fractions
import functools
import itertools
import math
import operator
import random
import re
import statistics
import types
from pathlib import Path

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.learn.catalogue import EXERCISES
from micrograd.learn.kinds.functions import Same

FOLDER = Path(__file__).parent / "answers"
ENGINES = (FOLDER / "engines.txt").read_text(encoding="utf-8").split("\n%%\n")
MODULES = (bisect, collections, dataclasses, itertools, math, operator, random, statistics, types)


def answer_of(source):
    """What a piece of Python answers: the value of an expression, or the last function or class."""
    names = {module.__name__: module for module in MODULES}
    names |= {
        "__name__": "answer",
        "mg": mg,
        "np": np,
        "Value": Value,
        "Fraction": fractions.Fraction,
        "Decimal": decimal.Decimal,
    }
    last = ast.parse(source).body[-1]
    if isinstance(last, ast.Expr):
        return eval(source, names)
    exec(source, names)
    return names[last.name]


def split(number, section):
    """The sources in a section of a table."""
    lines = section.splitlines()
    if " ==> " in lines[0]:
        solution = str(mg.learn.solution(number))
        for line in lines:
            old, new = line.split(" ==> ")
            assert old in solution, line
            yield solution.replace(old, new.replace("\\n", "\n"), 1)
    else:
        for statement in ast.parse(section).body:
            yield ast.unparse(statement)


@functools.cache
def answers():
    """For each exercise, its right answers and its wrong ones."""
    sources = {(number, kind): [] for number in EXERCISES for kind in ("right", "wrong")}
    for path in sorted(FOLDER.glob("chapter_*.txt")):
        for section in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, rest = section.partition("\n")
            number, kind = head.split()
            sources[number, kind] += split(number, rest.strip("\n"))
    for number in EXERCISES:
        if number.startswith("3.") and number != "3.7":
            sources[number, "right"] += ENGINES
    return sources


def test_every_exercise_has_at_least_four_right_answers_and_six_wrong_ones():
    assert [key for key, sources in answers().items() if len(sources) < {"right": 4, "wrong": 6}[key[1]]] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["right", "wrong"])
@pytest.mark.parametrize("number", EXERCISES)
def test_answers_are_judged_rightly(number, kind):
    verdicts = [(mg.learn.check(number, answer_of(source)), source) for source in answers()[number, kind]]
    assert [source for verdict, source in verdicts if bool(verdict) is not (kind == "right")] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [n for n, exercise in EXERCISES.items() if isinstance(exercise.kind, Same)])
def test_an_answer_that_knows_only_what_was_asked_before_is_wrong(number):
    right, known = answer_of(str(mg.learn.solution(number))), {}

    def asked(*arguments):
        key = shown(arguments)
        known[key] = right(*arguments)
        return known[key]

    assert mg.learn.check(number, asked)
    assert not mg.learn.check(number, lambda *arguments: known.get(shown(arguments)))


def shown(arguments):
    return repr([getattr(argument, "__name__", argument) for argument in arguments])
