"""Numbers that loops hand on for several iterations, as in delay lines, and lists that are changed after loops."""

import ctypes
import functools
import threading
from array import array
from contextvars import ContextVar

import numpy as np
import pytest

import micrograd as mg
from tests.compiler.test_known_rows import check, is_traced_in_full, numbers, slopes_of

ROWS = 451
SCALE = mg.Value(0.75)

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


def delay_line(length, x):
    line = [SCALE * x[i] for i in range(length)]
    for v in x:
        line = [*line[1:], mg.tanh(v + SCALE * line[0])]
    return line[-1] + 2.0 * line[0]


def scanned_delay_line(length, x):
    def step(line, v):
        return [*line[1:], mg.tanh(v + SCALE * line[0])], line[length // 2]

    line, given = mg.scan(step, [SCALE * i for i in range(length)], x)
    return line[0] + np.sum(given * given)


def taking_turns(length, x):
    heads, total = [SCALE * (i + 1) for i in range(length)], 0.0
    for v in x:
        total = total * 0.5 + v * heads[0]
        heads = heads[1:] + heads[:1]
    return total + 3.0 * heads[-1]


def taking_turns_in_a_scan(length, x):
    heads, given = mg.scan(lambda s, v: (s[1:] + s[:1], s[0] * v), [SCALE * (i + 1) for i in range(length)], x)
    return heads[0] + np.sum(given)


def rotated_dict(length, x):
    items, total = {i: SCALE * (i + 1) for i in range(length)}, 0.0
    for v in x:
        first = items[0]
        for i in range(length - 1):
            items[i] = items[i + 1]
        items[length - 1] = first
        total = total + v * items[1]
    return total


def rolled(length, x):
    heads, total = np.array([SCALE * (i + 1) for i in range(length)]), 0.0
    for v in x:
        heads = np.roll(heads, 1)
        total = total * 0.5 + v
    return total + heads[0]


def rolled_in_a_scan(length, x):
    start = np.array([SCALE * (i + 1) for i in range(length)])
    heads, given = mg.scan(lambda s, v: (np.roll(s, -1), s[0] * v), start, x)
    return heads[0] + np.sum(given)


def delay_line_in_an_array(length, x):
    line = x[:length] * SCALE
    for v in x:
        line = np.concatenate([line[1:], np.tanh(v + SCALE * line[:1])])
    return np.sum(line)


class Echo:
    __slots__ = ("line", "other")

    def __init__(self, line):
        self.line = line

    def push(self, v):
        self.line = (*self.line[1:], mg.tanh(v + SCALE * self.line[0]))
        return self.line[-1]


def delay_line_in_an_object(length, x):
    echo, total = Echo(tuple([SCALE * x[i] for i in range(length)])), 0.0
    for v in x:
        total = total + echo.push(v)
    return total


def taking_turns_in_an_object(length, x):
    turns, total = Turns([SCALE * (i + 1) for i in range(length)]), 0.0
    take = turns.take
    del turns
    for v in x:
        total = total * 0.5 + v * take()
    return total + take()


def doubled_in_turns(length, x):
    """Each number is a sum of one with itself, and the loop runs twice."""
    heads = [SCALE * (i + 1) for i in range(length)]
    for _ in range(2):
        for v in x:
            heads = [0.5 * (heads[-1] + heads[-1]) + 0.0 * v, *[each + each - each for each in heads[:-1]]]
    return heads[0]


class Turns:
    def __init__(self, heads):
        self.heads = heads

    def take(self):
        self.heads = [*self.heads[1:], self.heads[0]]
        return self.heads[0]


def turned(heads, x):
    for _ in x:
        heads = heads[1:] + heads[:1]
    return heads


def a_loop_that_runs_twice(length, x):
    """The second time with other numbers, which take turns otherwise."""
    ones, heads = turned([SCALE, SCALE + 1.0], x), [SCALE * (i + 1) for i in range(length)]
    return ones[0] + turned(heads, x)[0] * sum(heads)


def functions_in_turns(length, x):
    heads = [SCALE * (i + 1) for i in range(length)]
    for v in x:
        heads = [mg.sin(each + v) for each in heads[1:] + heads[:1]]
    return heads[0]


def functions_in_turns_in_a_scan(length, x):
    start = [SCALE * (i + 1) for i in range(length)]
    return mg.scan(lambda s, v: ([mg.dot([each, v], [SCALE, 1.0]) for each in s[1:] + s[:1]], 0.0), start, x)[0][0]


def seasons(length, x):
    """Of which only the last one is wanted, so that all others are left out."""
    line = [SCALE * (i + 1) for i in range(length)]
    for v in x:
        line = [*line[1:], mg.tanh(SCALE * line[0] + v)]
    return line[-1]


def stages(length, x):
    line = [SCALE * x[0] * (i + 1) for i in range(length)]
    for v in x:
        line = [v * SCALE, *[0.99 * each for each in line[:-1]]]
    return line[-1]


def turns_and_a_constant(length, x):
    heads, more = [SCALE * (i + 1) for i in range(length)], mg.exp(SCALE)
    for _ in x:
        heads = [each + more for each in heads[1:] + heads[:1]]
    return heads[0]


def two_items_a_row(length, x):
    both, total, heads = [], 0.0, [SCALE * (i + 1) for i in range(length)]
    for v in x:
        both.append(v * SCALE)
        both.append(v * 0.5)
    for each in both:
        total = total * 0.5 + each
        heads = heads[1:] + heads[:1]
    return total + heads[0] * sum(heads)


def in_a_closure(line):
    def push(v):
        nonlocal line
        out, line = line[0], [*line[1:], v]
        return out

    return push


def in_a_default(line):
    def push(v, line=line):
        line.append(v)
        return line.pop(0)

    return push


def in_an_argument(line):
    def push(line, v):
        line.append(v)
        return line.pop(0)

    return functools.partial(push, line)


class OneSlot:
    __slots__ = "line"

    def __init__(self, line):
        self.line = line

    def push(self, v):
        out, self.line = self.line[0], [*self.line[1:], v]
        return out


class HiddenSlot:
    __slots__ = ("__line",)

    def __init__(self, line):
        self.__line = line

    def push(self, v):
        out, self.__line = self.__line[0], [*self.__line[1:], v]
        return out


KEEPERS = {
    "a closure": in_a_closure,
    "a default": in_a_default,
    "an argument": in_an_argument,
    "a slot": lambda line: OneSlot(line).push,
    "a hidden slot": lambda line: HiddenSlot(line).push,
}


@pytest.mark.parametrize("name", KEEPERS)
def test_delay_lines_that_are_kept_elsewhere(name):
    def function(x):
        push, total = KEEPERS[name]([SCALE * x[0] * (i + 1) for i in range(70)]), 0.0
        for v in x:
            total = total + push(v * SCALE)
        return total

    for rows in ROWS, ROWS + 3:
        check(slopes_of(mg.compile(function)(numbers(rows))), slopes_of(function(numbers(rows))))


IN_ARRAYS = [rolled, rolled_in_a_scan, delay_line_in_an_array]
PROGRAMS = [
    *IN_ARRAYS,
    delay_line_in_an_object,
    taking_turns_in_an_object,
    doubled_in_turns,
    delay_line,
    scanned_delay_line,
    taking_turns,
    taking_turns_in_a_scan,
    rotated_dict,
    functions_in_turns,
    functions_in_turns_in_a_scan,
    seasons,
    stages,
    turns_and_a_constant,
    two_items_a_row,
]


@pytest.mark.parametrize(("length", "stays"), [(2, True), (3, False), (9, False), (30, False)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_handed_on_for_several_iterations(program, length, stays, caplog):
    fast = mg.compile(lambda x: program(length, x))
    in_full = is_traced_in_full(caplog, fast, numbers(ROWS))
    assert not (stays and in_full)
    check(slopes_of(fast(numbers(ROWS + 5))), slopes_of(program(length, numbers(ROWS + 5))))


@pytest.mark.parametrize("length", [2, 3])
def test_a_loop_that_runs_twice(length):
    for rows in ROWS, ROWS + 3:
        found = mg.compile(lambda x: a_loop_that_runs_twice(length, x))(numbers(rows))
        check(slopes_of(found), slopes_of(a_loop_that_runs_twice(length, numbers(rows))))


def test_turns_of_a_choice():
    def function(heads, x):
        for v in x:
            heads = mg.cond(v > 0.3, lambda s: [mg.sin(each) for each in s], lambda s: s[:], heads[1:] + heads[:1])
        return heads[0]

    heads, x = [0.25, 0.5], numbers(ROWS)
    assert mg.compile(function)(heads, x) == pytest.approx(function(heads, x), rel=1e-12)


def iterations_inside(w, x, indices):
    total = 0.0
    for v in x:
        total = total * 0.5 + np.sum(mg.vmap(lambda k, v=v: mg.sin(k * w[0]) * v)(np.arange(40.0)))
    return total


def iterators_beside(w, x, indices):
    spare, twice, total = iter([w[0], w[1]]), [[w[2]]] * 2, 0.0
    for v in x:
        total = total * 0.5 + v * w[0]
    return total + next(spare) + twice[1][0]


def elements_of_a_table(w, x, indices):
    return mg.scan(lambda total, row: (np.tanh(0.5 * total + w[row[0]] * row[1]), 0.0), 0.0, (indices, x))[0]


@pytest.mark.parametrize("function", [iterations_inside, iterators_beside, elements_of_a_table])
def test_what_iterations_read(function, caplog):
    given = np.array([0.5, 0.75, 1.25]), np.array(numbers(ROWS)), np.arange(ROWS) % 3
    with caplog.at_level("DEBUG", logger="micrograd"):
        assert float(mg.compile(function)(*given)) == pytest.approx(float(function(*given)), rel=1e-12)
    assert "is traced for all" not in caplog.text


def line_of_zeros(length, at):
    """Its first numbers are known, until others have come to them."""

    def function(w, x):
        def step(line, v):
            return np.concatenate([line[1:], np.array([mg.tanh(v + w * line[0])])]), 0.0

        return mg.scan(step, np.zeros(length), x)[0][at]

    return function


def through_neighbours(w, x):
    """It takes 70 iterations until w comes to the first number."""
    heat = x[:70] * 1.0
    for v in x:
        heat = 0.5 * heat + 0.5 * np.concatenate([heat[1:], np.array([w * v])])
    return heat[0] + mg.detach(np.sum(heat))


def few_neighbours(w, x):
    heat = x[:30] * 1.0
    for v in x:
        heat = 0.5 * heat + 0.5 * np.concatenate([heat[1:], np.array([w * v])])
    return heat[0] + mg.detach(np.sum(heat))


def counted_in_a_state(w, x):
    def step(state, v):
        count, total = state
        return (count + 1, total * 0.9 + v * w * np.minimum(count[0], 100.0)), 0.0

    return mg.scan(step, (np.zeros(1), w * 1.0), x)[0][1]


def counted_beside_others(w, x):
    state, total = np.concatenate([x[:1], np.zeros(1)]), w
    for v in x:
        state = state * np.array([0.9, 1.0]) + np.array([v * w, 1.0])
        total = total * 0.9 + state[0] * np.minimum(state, 150.0)[1]
    return total


def counted_in_a_list(w, x):
    ones, total = [], w
    for v in x:
        total = total * 0.9 + v * w
        ones.append(1.0)
    return total * np.minimum(np.sum(np.array(ones)), 99.0)


LATE = {
    "a line of 20": line_of_zeros(20, -1),
    "a line of 63": line_of_zeros(63, 0),
    "neighbours": through_neighbours,
    "few neighbours": few_neighbours,
    "a count in a state": counted_in_a_state,
    "a count beside others": counted_beside_others,
    "a count in a list": counted_in_a_list,
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.unmeasured) if "neighbours" in name else name for name in LATE]
)
def test_what_few_iterations_do_not_show(name):
    function = mg.value_and_grad(LATE[name])
    for rows in (ROWS,) if "neighbours" in name else (ROWS, ROWS + 3):
        x = 0.2 + 0.8 * np.abs(np.array(numbers(rows)))
        found, expected = mg.compile(function)(0.7, x), function(0.7, x)
        assert tuple(map(float, found)) == pytest.approx(tuple(map(float, expected)), rel=1e-11)


def test_neighbours_that_more_iterations_show_stay_a_loop(caplog):
    fast, x = mg.compile(lambda w, x: few_neighbours(w, x)), np.abs(np.array(numbers(ROWS)))
    with caplog.at_level("DEBUG", logger="micrograd"):
        assert float(fast(0.7, x)) == pytest.approx(float(few_neighbours(0.7, x)), rel=1e-12)
    assert "is traced for all" not in caplog.text


COPIES = {
    "a copy": lambda each: +each,
    "negated": lambda each: -each,
    "a sum": lambda each: each + 0.25,
    "a difference": lambda each: 0.5 - each,
    "a product by 1": lambda each: 1.0 * each,
    "a product": lambda each: 0.9 * each,
    "a function": mg.sin,
}


@pytest.mark.parametrize("name", COPIES)
def test_a_delay_line_of_copies(name):
    """To the loop, each number of it is another one in each iteration."""

    def function(x):
        line = [SCALE * x[i] for i in range(9)]
        for v in x:
            line = [*[COPIES[name](each) for each in line[1:]], mg.tanh(v + SCALE * line[0])]
        return line[-1] + 2.0 * line[0]

    check(slopes_of(mg.compile(function)(numbers(ROWS))), slopes_of(function(numbers(ROWS))))


PARTS = {
    "every second": (1024, lambda x: x[::2]),
    "every eighth": (1024, lambda x: x[::8]),
    "frames": (1100, lambda x: np.sum(x.reshape(-1, 4), axis=1)),
    "without the first": (1024, lambda x: x[12:]),
    "without the ends": (1032, lambda x: x[15:-5]),
    "smooth": (1024, lambda x: np.convolve(x, np.ones(50) / 50)[49:-49]),
}


@pytest.mark.parametrize("is_scan", [True, False])
@pytest.mark.parametrize("name", PARTS)
def test_delays_and_turns_in_a_part_of_the_rows(name, is_scan):
    rows, part_of = PARTS[name]

    def function(w, x):
        def step(state, v):
            line, heads = state
            return ([*line[1:], mg.tanh(v + w * line[0])], [*heads[1:], heads[0]]), None

        state = [w] * 12, [w * (i + 1.0) for i in range(11)]
        if is_scan:
            state, _ = mg.scan(step, state, part_of(x))
        else:
            for v in part_of(x):
                state, _ = step(state, v)
        return state[0][0] + state[1][0] * np.sum(x)

    derivative, x = mg.value_and_grad(function), np.sin(np.arange(float(rows)))
    found, expected = mg.compile(derivative)(0.6, x), derivative(0.6, x)
    assert tuple(map(float, found)) == pytest.approx(tuple(map(float, expected)), rel=1e-11)


@pytest.mark.parametrize("count", [lambda x: len(x) // 4, lambda x: len(x) - 100], ids=["a quarter", "100 fewer"])
def test_delays_in_a_scan_of_a_length(count):
    def function(w, x):
        line, _ = mg.scan(lambda h, _: ([*h[1:], mg.tanh(h[0] * w + h[1])], None), [w] * 12, length=count(x))
        return line[0] + np.sum(x)

    x = np.sin(np.arange(1024.0))
    assert mg.compile(function)(0.6, x) == pytest.approx(function(0.6, x), rel=1e-12)


def test_delays_in_each_of_two_channels():
    def function(w, x):
        def one(channel):
            return mg.scan(lambda h, v: ([*h[1:], mg.tanh(v + w * h[0])], None), [w] * 12, channel)[0][0]

        return np.sum(mg.vmap(one, 1)(x.reshape(-1, 2)))

    x = np.sin(np.arange(1024.0))
    assert mg.compile(function)(0.6, x) == pytest.approx(function(0.6, x), rel=1e-12)


def test_programs_that_would_read_what_is_not_written_yet_or_not_there(monkeypatch):
    """They are found out even where nobody looks at what is handed on."""
    monkeypatch.setattr("micrograd.compiler.tracing.delays.iterations_needed", lambda *_: 0)

    def delayed(x):
        line = [SCALE * x[i] for i in range(50)]
        for v in x:
            line = [*line[1:], mg.tanh(v + SCALE * line[0])]
        return sum(line)

    def squared(heads, x):
        total = 0.0
        for v in x:
            heads = heads[1:] + heads[:1]
            total = total + v * v
        return total * heads[0]

    x = numbers(ROWS)
    check(slopes_of(mg.compile(delayed)(x)), slopes_of(delayed(x)))
    assert mg.compile(squared)([1.0, 2.0, 3.0], x) == pytest.approx(squared([1.0, 2.0, 3.0], x), rel=1e-12)


@pytest.mark.parametrize("limit", ["_MOST", "_MOST_BITS", "_MOST_PAIRS", "_MOST_ITERATIONS"])
def test_where_there_is_too_much_to_look_at_all_rows_are_traced(limit, monkeypatch, caplog):
    monkeypatch.setattr(f"micrograd.compiler.tracing.delays.{limit}", 0)
    assert is_traced_in_full(caplog, mg.compile(lambda x: taking_turns(2, x)), numbers(ROWS))


def test_sums_of_unlike_parts_of_states():
    def function(x):
        h, total = np.zeros(9), 0.0
        states = []
        for v in x[:40]:
            h = np.tanh(v + SCALE * h)
            states.append(h)
        for number, state in enumerate(states):
            total = total + np.sum(state[: 5 + number % 3])
        return total

    check(slopes_of(mg.compile(function)(numbers(ROWS))), slopes_of(function(numbers(ROWS))))


def test_turns_of_an_argument():
    def function(heads, x):
        for _ in x:
            heads = heads[1:] + heads[:1]
        return heads[0] * x[0]

    x, fast = numbers(ROWS), mg.compile(function)
    for length in 3, 5, 7, 100:
        heads = [float(i) for i in range(length)]
        assert fast(heads, x) == function(heads, x)


def with_a_third_set(a):
    a[len(a) // 3] = 0.0


def with_the_last_set(a):
    if len(a) > 400:
        a[-1] = 1.0


def reversed_if_long(a):
    if len(a) > 400:
        a.reverse()


def with_one_more(a):
    a.append(SCALE)
    a.insert(1, 0.25)


def with_some_more(a):
    a.extend([0.5, SCALE])
    a += (0.125,)


def with_none_at_the_ends(a):
    a.append(a.pop(0) * a.pop())


def without_some(a):
    del a[2:5]


def with_parts_of_itself(a):
    a[:2] = a[5:8]


def with_another_kind(a):
    if len(a) > 9999:
        a.append([SCALE])
    a.append(3.0)


def with_a_list_for_a_moment(a):
    a.append([SCALE])
    a.pop()


def with_what_a_generator_gives(a):
    a.extend(SCALE * number for number in range(3))


CHANGES = [
    with_a_list_for_a_moment,
    with_what_a_generator_gives,
    with_a_third_set,
    with_the_last_set,
    reversed_if_long,
    with_one_more,
    with_some_more,
    with_none_at_the_ends,
    without_some,
    with_parts_of_itself,
    with_another_kind,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("makes", [lambda x: [SCALE * v for v in x], lambda x: x.tolist()[:], lambda x: x.tolist() * 1])
def test_lists_that_are_changed_after_a_loop(makes, change, caplog):
    def function(x):
        a = makes(x)
        change(a)
        return sum([v * SCALE for v in a]) + a[0] - 3.0 * a[-1] + len(a)

    is_traced_in_full(caplog, mg.compile(function), numbers(ROWS))  # it compares the numbers


def test_lists_that_are_changed_alike_stay_loops(caplog):
    def function(x):
        a = [SCALE * v for v in x]
        with_one_more(a)
        with_none_at_the_ends(a)
        return sum([v * v for v in a]) + a[-1]

    assert not is_traced_in_full(caplog, mg.compile(function), numbers(ROWS))


def test_lists_of_rows_that_are_changed():
    def function(x):
        rows = [[SCALE * v, v * v] for v in x]
        rows.append([1.0, SCALE])
        rows[len(rows) // 2] = [SCALE, 2.0]
        return sum([a * b for a, b in rows])

    x = numbers(ROWS)
    check(slopes_of(mg.compile(function)(x)), slopes_of(function(x)))


def test_methods_that_are_taken_from_list_itself():
    def function(x):
        out, total = [], 0.0
        for v in x:
            list.append(out, SCALE * v)
            total = total + (v if list.__len__(out) > 100 else SCALE)
        list.reverse(out)
        return total + out[0]

    check(slopes_of(mg.compile(function)(numbers(ROWS))), slopes_of(function(numbers(ROWS))))


def counters():
    numbered, data = array("d"), bytearray()
    local, error, variable = threading.local(), ValueError("first"), ContextVar("variable", default=0)
    memory = (ctypes.c_double * 2)(1.0, 2.0)
    kept = functools.cache(lambda number: number)

    def count_in_memory():
        memory[1] += 1.0

    def keep():
        kept(kept.cache_info().currsize)

    def count_in_this_thread():
        local.count = getattr(local, "count", 0) + 1

    def count_arguments():
        error.args = (*error.args, 1)

    return {
        "an array": (lambda: numbered.append(1.0), lambda: len(numbered)),
        "bytes": (lambda: data.append(1), lambda: len(data)),
        "a thread": (count_in_this_thread, lambda: getattr(local, "count", 0)),
        "an error": (count_arguments, lambda: error.args),
        "a context": (lambda: variable.set(variable.get() + 1), variable.get),
        "memory": (count_in_memory, lambda: list(memory)),
        "a cache": (keep, lambda: kept.cache_info().currsize > ROWS - 9),  # which keeps one more
    }


@pytest.mark.parametrize("name", counters())
def test_a_trace_leaves_what_others_see_as_eager_does(name):
    """A look at the loop comes before the trace. What it changed is put back."""

    def function(x, count):
        total = 0.0
        for v in x:
            count()
            total = total + SCALE * v
        return total

    (count, read), (others, expected) = counters()[name], counters()[name]
    x = numbers(ROWS)
    found = mg.compile(lambda x: function(x, count))(x)
    assert found.data == pytest.approx(function(x, others).data, rel=1e-12)
    assert read() == expected()
