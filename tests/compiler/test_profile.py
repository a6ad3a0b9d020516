"""What profile() tells of a compiled function."""

import re

import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow


def rows_of(text):
    """The kernels of a profile: the name and the cells of each, by its number."""
    lines = re.findall(
        r"^(\d+) (\w[\w -]*?)  +(\S+(?: iterations)?)  +([\d.]+)  +(\d+)%  +([\d.]+)$", text, re.MULTILINE
    )
    return {int(number): cells for number, *cells in lines}


def remarks_of(text):
    """What is said below the table: the numbers of kernels, and what keeps them."""
    found = re.findall(r"^([\d, ]+): (.*)$", text, re.MULTILINE)
    return {remark: [int(number) for number in numbers.split(", ")] for numbers, remark in found}


def matrix(rows, columns):
    return [[Value((3.0 * i + j) % 7 - 3) for j in range(columns)] for i in range(rows)]


def test_the_kernels_that_take_most_of_the_time_come_first(backend):
    w, v, x = matrix(40, 30), matrix(40, 40), [Value(0.1 * i) for i in range(30)]

    @mg.compile(backend=backend)
    def f():
        h = [mg.tanh(mg.dot(row, x)) for row in w]
        return sum(mg.tanh(mg.dot(row, h)) for row in v)

    text = f.profile()
    rows = rows_of(text)
    assert list(rows) == list(range(1, len(rows) + 1))
    seconds = [float(row[2]) for row in rows.values()]
    assert seconds == sorted(seconds, reverse=True)
    assert "matrix-vector" in {name for name, *_ in rows.values()}
    heading = text.splitlines()[0]
    assert re.fullmatch(r"(\d+) kernels take [\d.]+ us one by one, [\d.]+ us together", heading)
    assert heading.startswith(f"{len(f.program().program.kernels)} ")
    assert sum(int(row[3]) for row in rows.values()) > 60  # of 100: the others are named only in number
    assert repr(text) == str(text)


@pytest.mark.unmeasured
def test_numbers_in_the_buffer_stay_as_they_were(backend):
    w, x = matrix(4, 3), [0.5, -1.0, 2.0]
    f = mg.compile(lambda x: sum(mg.tanh(mg.dot(row, x)) for row in w), backend=backend)
    before = f(x).data
    program = f.program(x)
    program.run()
    buffer = program.buffer.copy()
    f.profile(x)
    assert (program.buffer == buffer).all()
    assert f(x).data == before


def test_it_tells_a_primitive_in_python_from_others(backend):
    slow = mg.primitive("profiled", "p", lambda x: x * x, lambda g, out, x: 2 * g * x, replace=True)
    xs = [Value(float(i)) for i in range(50)]
    f = mg.compile(lambda: mg.dot([slow(x) for x in xs], xs), backend=backend)
    text = f.profile()
    (remark,) = [remark for remark in remarks_of(text) if "Python" in remark]
    assert remark.startswith("profiled is Python")
    (number,) = remarks_of(text)[remark]
    assert rows_of(text)[number][0] == "profiled"


def test_it_says_what_is_gathered(backend, monkeypatch):
    monkeypatch.setattr("micrograd.compiler.calling.profile._SHOWN", 100)  # all: which of them are slowest is chance
    order = [(7 * i * i + 3 * i) % 61 for i in range(40)]
    xs, ys = [Value(0.1 * i) for i in range(61)], [Value(0.2 * i) for i in range(40)]
    f = mg.compile(
        lambda: mg.dot([mg.sin(x) for x in xs][:40], ys) + sum(ys[i % 40] * xs[i] for i in order), backend=backend
    )
    assert any("no order" in remark for remark in remarks_of(f.profile()))


@pytest.mark.parametrize(("count", "remark"), [(3, "too few numbers"), (30, "one by one")])
def test_it_says_what_is_computed_one_by_one(count, remark):
    """What lies apart is a column of a matrix, which lies in the buffer row by row."""
    f = mg.compile(lambda rows: [mg.sin(row[1]) for row in rows], backend="llvm")
    assert any(found.startswith(remark) for found in remarks_of(f.profile(matrix(count, 3))))


@pytest.mark.unmeasured
def test_a_loop_is_one_line(backend):
    w = Value(0.5)

    def f(x):
        for _ in range(40):
            x = mg.sin(w * x)
        return x

    text = mg.compile(f, backend=backend).profile(0.3)
    loops = [row for row in rows_of(text).values() if row[0].startswith("loop of")]
    assert {int(row[1].removesuffix(" iterations")) > 30 for row in loops} == {True}


def test_what_has_not_been_called_and_needs_arguments_is_an_error():
    f = mg.compile(lambda x: x * x)
    with pytest.raises(ValueError, match="has not been called"):
        f.profile()
