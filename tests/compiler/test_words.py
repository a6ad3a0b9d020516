"""What a refusal says: the user's own expression, and what to write in its place."""

import itertools
import linecache
import re
import statistics
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.guards import words

W = [Value(1.0), Value(2.0)]
FLOATS, VALUES = np.array([1.0, 2.0]), mg.array([1.0, 2.0])
TABLE = mg.array([[1.0, 2.0], [3.0, 4.0]])
NAMED = {0: Value(1.0), 1: Value(2.0)}

quoted = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not say which expression is running")

INDICES = {
    "several lines": (
        lambda x, i: x * [1.0, x][
            i
        ],
        "[1.0, x][ i ]",
        "Write mg.take([1.0, x], i).",
    ),
    "of several kinds": (lambda x, i: [1.0, x][i] * x, "[1.0, x][i]", "Write mg.take([1.0, x], i)."),
    "a part": (lambda x, i: sum(W[:i]) * x, "W[:i]", "The length of a slice is static: write mg.where(position < "),
    "an element that is set": (
        lambda x, i: list(W).__setitem__(0, x) or VALUES.copy().__setitem__(i, x),
        "the int of a number, in VALUES.copy().__setitem__(i, x),",
        "For an index write mg.take(sequence, index).",
    ),
    "pop": (lambda x, i: list(W).pop(i) * x, "the int of a number, in list(W).pop(i),", "For an index write mg.take"),
}  # fmt: skip


@quoted
@pytest.mark.parametrize("name", INDICES)
def test_an_index_that_is_a_number_is_refused_in_words_of_the_program(name):
    f, what, instead = INDICES[name]
    with pytest.raises(TraceError) as error:
        mg.compile(f)(Value(3.0), 1)
    assert f"{what} would freeze a number" in str(error.value)
    assert instead in str(error.value)


@pytest.mark.parametrize("given", [FLOATS, VALUES], ids=["array", "array of Values"])
def test_what_is_indexed_may_be_an_argument_too(given):
    with pytest.raises(TraceError, match=r"mg\.take") as error:
        mg.compile(lambda w, i: [*w, "a"][i] * 2)(given, 1)
    assert f"{__file__}:{sys._getframe().f_lineno - 1}" in str(error.value)
    assert (sys.version_info < (3, 11)) != ('[*w, "a"][i] would freeze a number' in str(error.value))
    with pytest.raises(TraceError, match="an index that depends on numbers"):
        mg.compile(lambda w, mask: w[mask > 0])(FLOATS, FLOATS)


@pytest.mark.parametrize("given", [W, (1.0, 2.0), FLOATS, VALUES], ids=["list", "tuple", "array", "array of Values"])
@pytest.mark.unmeasured
def test_what_the_refusal_says_to_write_works(given, backend):
    fast = mg.compile(lambda x, w, i: mg.take(w, i) * x, backend=backend)
    assert [fast(Value(3.0), given, i).data for i in (0, 1, -1)] == [3.0, 6.0, 6.0]
    fast = mg.compile(lambda x, i, j: mg.take(mg.take(TABLE, i), j) * x, backend=backend)
    assert [fast(Value(2.0), i, j).data for i in (0, 1) for j in (0, 1)] == [2.0, 4.0, 6.0, 8.0]
    fast = mg.compile(lambda x, i: [mg.where(i == position, x, old) for position, old in enumerate(W)], backend=backend)
    assert [node.data for node in fast(Value(7.0), 1)] == [1.0, 7.0]
    fast = mg.compile(
        lambda x, n: sum(mg.where(position < n, w, 0.0) for position, w in enumerate(W)) * x, backend=backend
    )
    assert [fast(Value(1.0), n).data for n in (0, 1, 2)] == [0.0, 1.0, 3.0]


@quoted
def test_setting_an_element_says_what_to_make_instead():
    def f(x, i):
        w = list(W)
        w[i] = x
        return w[0]

    with pytest.raises(
        TraceError, match=r"w\[i\] would freeze .* Make another w, of mg\.where\(i == position, new, old\)"
    ):
        mg.compile(f)(Value(3.0), 1)


COUNTS = {
    "range": (lambda x, n: sum(x for _ in range(n)), "range(n)"),
    "np.arange": (lambda x, n: (x * np.arange(n)).sum(), "np.arange(n)"),
    "np.arange from a start": (lambda x, n: (x * np.arange(0, n)).sum(), "np.arange(0, n)"),
    "np.zeros": (lambda x, n: (x + np.zeros(n)).sum(), "np.zeros(n)"),
    "np.ones of a shape": (lambda x, n: (x * np.ones((n, n))).sum(), "np.ones((n, n))"),
    "np.linspace": (lambda x, n: (x * np.linspace(0, 1, num=n)).sum(), "np.linspace(0, 1, num=n)"),
    "islice": (lambda x, n: x * sum(itertools.islice(W, n)), "itertools.islice(W, n)"),
    "a list": (lambda x, n: x * len([0] * n), "[0] * n"),
    "reshape": (lambda x, n: x * VALUES.reshape(n, 1), "VALUES.reshape(n, 1)"),
}


@quoted
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_is_a_number_is_refused_and_said_to_be_static(name):
    f, what = COUNTS[name]
    with pytest.raises(TraceError) as error:
        mg.compile(f)(Value(3.0), 2)
    assert f"{what} would freeze a number" in str(error.value)
    assert "How many elements there are is static" in str(error.value)
    assert "A number in the arguments is read at each call" in str(error.value)
    assert "write len(n); or let the function close over n" in str(error.value) or name == "islice"


@quoted
def test_the_name_of_the_count_is_that_of_the_program():
    with pytest.raises(TraceError, match=r"where steps is to be static, give range\(steps\) in its place"):
        mg.compile(lambda x, steps: (x * np.arange(steps + 1)).sum())(Value(3.0), 2)
    with pytest.raises(TraceError, match=r"where n is to be static"):
        mg.compile(lambda x, rows, columns: (x * np.zeros((rows, columns))).sum())(Value(3.0), 2, 3)


def test_a_range_in_the_position_of_a_count_is_static(backend):
    fast = mg.compile(lambda x, n: (x * np.arange(len(n))).sum() + len(np.zeros(len(n))), backend=backend)
    assert [fast(Value(2.0), range(n)).data for n in (1, 3, 1)] == [1.0, 9.0, 1.0]


@quoted
def test_an_expression_of_sixty_characters_is_whole():
    expression = f"np.zeros(n + {'1' * 46})"
    assert len(expression) == 60
    linecache.cache["<sixty>"] = (0, None, [f"lambda n: {expression}\n"], "<sixty>")
    f = eval(compile(f"lambda n: {expression}", "<sixty>", "eval"), {"np": np})
    with pytest.raises(TraceError, match=re.escape(f"{expression} would freeze")):
        mg.compile(f)(2)


@quoted
def test_long_expressions_are_cut():
    start = re.escape("[Value(1.0), Value(2.0), Value(3.0), Value(4.0), Value(5.0),... would freeze")
    with pytest.raises(TraceError, match=rf"^{start} .* mg\.take\(sequence, index\)\.$"):
        mg.compile(lambda i: [Value(1.0), Value(2.0), Value(3.0), Value(4.0), Value(5.0), 6.0][i] * 2)(1)


def test_other_expressions_that_ask_for_an_int_are_not_quoted():
    def repeated(n):
        zeros = [0.0]
        zeros *= n
        return zeros

    with pytest.raises(TraceError, match=r"^the int of a number, or its use as an index, would freeze"):
        mg.compile(repeated)(2)
    with pytest.raises(TraceError, match=r"^the int of a number, or its use as an index, would freeze"):
        mg.compile(lambda i: len("%c" % i))(65)  # noqa: UP031  # what a user writes


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: NAMED[i] * x,
        lambda x, i: NAMED.get(i, 7.0) * x,
        lambda x, i: x if i in NAMED else -x,
        lambda x, i: x if i in {0, 1} else -x,
        lambda x, i: x * len({i, 1}),
        lambda x, i: {x: 1.0}.get(x, 2.0) * x if i is None else {float(1): 2.0}.get(i / 1, 3.0) * x,
    ],
)
def test_a_number_is_not_looked_up_by_what_stands_for_it(f):
    """It would never be found, and a default be taken in its place."""
    with pytest.raises(TraceError, match=r"a number as a key, or in a set, would freeze .* mg\.take\(list, index\)"):
        mg.compile(f)(Value(3.0), 1)


def test_a_value_is_looked_up_as_the_object_that_it_is(backend):
    names = {W[0]: 2.0}
    assert mg.compile(lambda x: x * names[W[0]] * {x: 5.0}[x], backend=backend)(Value(3.0)).data == 30.0


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (lambda n: {"3": 2.0}.get(str(n), 1.0), "the text of a number"),
        (lambda n: 1 << n, "the bits of a number"),
        (lambda n: n & 1, "the bits of a number"),
        (lambda n: ~n, "the bits of a number"),
        (lambda n: mg.gradient(W[0] * n, n), "a gradient by a result, or by a plain number,"),
    ],
)
def test_what_ints_can_do_and_symbols_cannot_is_refused_in_plain_words(f, what):
    with pytest.raises(TraceError, match=f"^{re.escape(what)} would freeze a number"):
        mg.compile(f)(3)


def test_an_error_of_the_program_itself_stays_what_it_is():
    def caught_before(x):
        try:
            return float(x)
        except TraceError:
            return FLOATS[7] * x

    def in_an_error(x):
        raise KeyError("mine")

    for f, error in ((caught_before, IndexError), (in_an_error, KeyError)):
        with pytest.raises(error) as raised:
            mg.compile(f)(Value(1.0))
        assert not isinstance(raised.value, TraceError)


def test_where_the_expression_cannot_be_told_the_general_words_are_used(monkeypatch):
    functions = {}
    exec(compile("def f(w, i):\n    return w[i]", "no such file", "exec"), functions)
    with pytest.raises(
        TraceError, match=r"the int of a number, or its use as an index, .*no such file:2.* mg\.take\(seq"
    ):
        mg.compile(functions["f"])([1.0], 0)
    code = type("Code", (), {})()
    assert words.running_expression(SimpleNamespace(f_code=code, f_lasti=0)) == ""  # as in Python 3.10
    code.co_positions = lambda: iter([(None, None, None, None)])  # as where Python was told to forget them
    assert words.running_expression(SimpleNamespace(f_code=code, f_lasti=0)) == ""


@dataclass
class Pair:
    first: object
    second: object = 1.0


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda x: {x}, "set"),
        (lambda x: {1.0, 2.0}, "set"),
        (lambda x: deque([x]), "deque"),
        (lambda x: SimpleNamespace(first=x), "SimpleNamespace"),
        (lambda x: {"a": x}.keys(), "dict_keys"),
    ],
)
def test_what_cannot_be_returned_is_not_spoken_of_as_an_argument(make, kind):
    with pytest.raises(
        TypeError, match=f"returns numbers, .*; not a {kind}: .* make the {kind} of it outside"
    ) as error:
        mg.compile(lambda x: (make(x), x * 2))(Value(3.0))
    assert "argument" not in str(error.value)


@pytest.mark.parametrize("make", [Pair, lambda x: frozenset([x]), lambda x: frozenset([(x, 1)])])
def test_a_number_in_an_object_that_is_returned_is_refused(make):
    for given in (Value(3.0), 3.0):
        with pytest.raises(TraceError) as error:
            mg.compile(lambda x: (make(x), x * 2))(given)
        assert "argument" not in str(error.value)
        assert "compiled function returns" in str(error.value) or "as a key, or in a set" in str(error.value)


def test_lines_of_pythons_library_do_not_count():
    fast = mg.compile(lambda xs: statistics.fmean(xs), backend="numpy")
    with pytest.raises(mg.TraceError, match=r"test_words\.py:\d+"):
        fast([1.0, 2.0])
    with ThreadPoolExecutor(1) as pool:  # in which no line is the user's
        error = pool.submit(mg.compile(statistics.fmean, backend="numpy"), [1.0, 2.0]).exception()
    assert "statistics.py:" in str(error)
