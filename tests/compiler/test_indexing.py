"""``table[i]`` in a compiled function, with an index that is an argument: one program for all indices."""

import threading
from functools import partial
from types import FunctionType

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from tests.interrupts import interrupted_at

W = [Value(1.0), Value(2.0), Value(5.0)]
ROWS = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)], [Value(5.0), Value(6.0)]]
PAIRS = ((1.0, 2.0), (3.0, 4.0), (5.0, 7.0))
FOLLOWING = [1, 2, 0]


def weighted(x, i):
    return W[i] * x


def of_row(x, i):
    return sum(w * x for w in ROWS[i])


def of_a_nested_row(x, i):
    return ROWS[i][0] * x + ROWS[1][0]


def of_plain_rows(x, i):
    return PAIRS[i][1] * x


def of_results(x, i):
    return [x * x, mg.exp(x), -x][i]


def in_a_comprehension(x, i):
    return sum([W[j] * x for j in (i, 0, FOLLOWING[i])])


def in_a_lambda(x, i):
    return max([(lambda: W[i])() * x])


def by_a_comparison(x, i):
    return (x, 2.0 * x)[i > 1]


def annotated(x, i):
    table: dict[str, list[int]] = {"a": [3, 4, 5]}
    inner: int

    def chosen(items: list[Value], *, default: list[int] | None = None) -> list[Value]:
        return items[i]

    inner = table["a"][i]
    return chosen(W) * inner * x


def on_several_lines(x, i):
    return x * [1.0, 2.0, 7.0][i]


ALL = [weighted, of_row, of_a_nested_row, of_plain_rows, of_results, in_a_comprehension, in_a_lambda, by_a_comparison]
ALL += [annotated, on_several_lines]


def gradients(function, *arguments):
    """The result, and the gradients of all Values."""
    values = [*W, *(w for row in ROWS for w in row), *(x for x in arguments if isinstance(x, Value))]
    for value in values:
        value.grad = 0.0
    result = function(*arguments)
    result.backward()
    return [result.data, *(value.grad for value in values)]


@pytest.mark.slow
@pytest.mark.parametrize("function", ALL, ids=lambda each: each.__name__)
def test_one_program_serves_all_indices(function, backend):
    code = function.__code__
    fast = mg.compile(function, backend=backend)
    for i in (0, 1, 2):
        assert gradients(fast, Value(3.0), i) == pytest.approx(gradients(function, Value(3.0), i), rel=1e-14)
    assert fast.cache_info().traces == 1
    assert function.__code__ is code


def test_an_index_counts_from_the_end_and_raises_beyond_it(backend):
    fast = mg.compile(weighted, backend=backend)
    assert [fast(Value(2.0), i).data for i in (1, -1, -3)] == [4.0, 10.0, 2.0]
    for i in (3, -4):
        with pytest.raises(IndexError, match="list index out of range"):
            fast(Value(2.0), i)


def test_a_list_of_indices_and_a_table_among_the_arguments():
    def f(table, indices):
        return sum(table[i] * (n + 1.0) for n, i in enumerate(indices))

    fast, table = mg.compile(f, backend="numpy"), [Value(1.0), Value(10.0), Value(100.0)]
    for indices in ([0, 1], [2, 2], [1, 0]):
        assert fast(table, indices).data == f(table, indices).data
    assert fast.cache_info().traces == 1


def test_a_refusal_that_the_function_catches_does_not_decide():
    def f(x, i):
        try:
            return W[i] * x
        except TypeError:
            return x

    assert [mg.compile(f, backend="numpy")(Value(3.0), i).data for i in (0, 1)] == [3.0, 6.0]


def test_after_an_if_on_a_number():
    def f(x, i):
        return W[i] * x if x > 0 else W[0] * FOLLOWING[i]

    fast = mg.compile(f, backend="numpy")
    for x, i in [(1.0, 0), (2.0, 1), (-1.0, 2), (-2.0, 0), (3.0, 2)]:
        assert fast(x, i).data == f(x, i).data
    assert fast.cache_info().traces == 2


def test_a_function_that_changes_something_before_it_is_refused_does_not_run_again():
    counts = {"calls": 0}

    def f(x, i):
        counts["calls"] += 1
        return W[i] * x

    with pytest.raises(TraceError, match=r"mg\.take"):
        mg.compile(f, backend="numpy")(Value(3.0), 1)
    assert counts["calls"] == 1


def test_a_row_that_is_changed_in_place_is_refused():
    def f(x, i):
        ROWS[i][0] = x
        return ROWS[0][0] * x

    before = [row[:] for row in ROWS]
    with pytest.raises(TraceError, match="a row that was taken from a table is changed in place"):
        mg.compile(f, backend="numpy")(Value(3.0), 0)
    assert before == ROWS


@pytest.mark.parametrize("use", [lambda w: {W[0]: 1.0}.get(w, 0.0), lambda w: float(w == W[0])], ids=["key", "equal"])
def test_which_value_was_taken_is_not_known(use):
    with pytest.raises(TraceError, match="would freeze a number"):
        mg.compile(lambda x, i: use(W[i]) * x, backend="numpy")(Value(3.0), 0)


def test_a_value_with_attributes_of_the_user_is_not_taken():
    table = [Value(1.0), Value(2.0)]
    table[0].scale = 3.0
    with pytest.raises(TraceError, match=r"mg\.take"):
        mg.compile(lambda x, i: table[i] * x, backend="numpy")(Value(3.0), 0)


@pytest.mark.parametrize("table", [[1.0, W[0]], [[1.0], [1.0, 2.0]], ["a", "b"], [], {0: 1.0}], ids=repr)
def test_other_tables_are_refused(table):
    with pytest.raises((TraceError, IndexError)):
        mg.compile(lambda x, i: table[i] * x, backend="numpy")(Value(3.0), 0)


@pytest.mark.parametrize("source", ["f = lambda x, i: W[i] * x", "def f(x, i):\n    return W[i] * x"])
def test_code_without_its_source_is_refused(source):
    variables = {"W": W}
    exec(source, variables)
    with pytest.raises(TraceError, match=r"mg\.take"):
        mg.compile(variables["f"], backend="numpy")(Value(3.0), 1)


@pytest.mark.parametrize(
    "text", ["def f(x, i):\n    return W[i] * x * 3.0\n", "def f(:\n", ""], ids=["edited", "bad", "no"]
)
def test_code_that_is_not_that_of_its_source_is_refused(text, tmp_path):
    path = tmp_path / "changed.py"
    path.write_text(text)
    variables = {"W": W}
    exec(compile("def f(x, i):\n    return W[i] * x * 2.0\n", path, "exec"), variables)
    with pytest.raises(TraceError, match=r"mg\.take"):
        mg.compile(variables["f"], backend="numpy")(Value(3.0), 1)


def test_a_function_that_is_made_again_in_each_call_by_code_that_is_not_in_its_source(tmp_path):
    path = tmp_path / "made.py"
    text = "def f(x, i):\n    def g():\n        return W[i] * x\n    return g() * {}\n"
    path.write_text(text.format("2.0"))
    variables = {"W": W}
    exec(compile(text.format("3.0"), path, "exec"), variables)
    with pytest.raises(TraceError, match=r"mg\.take"):
        mg.compile(variables["f"], backend="numpy")(Value(3.0), 1)


def test_other_threads_see_the_same_function_meanwhile():
    def g(x, i):
        return W[i] * x

    fast = [mg.compile(partial(lambda n, x, i: g(x, i) + n, n), backend="numpy") for n in map(float, range(4))]
    found, code = {}, g.__code__

    def run(n):
        found[n] = [fast[n](Value(2.0), i).data for i in (0, 1, 2)], g(Value(2.0), 1).data

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == {n: ([2.0 + n, 4.0 + n, 10.0 + n], 4.0) for n in range(4)}
    assert g.__code__ is code
    assert isinstance(g, FunctionType)


def test_in_fit_examples_of_all_indices_run_in_one_program():
    def trained(is_compiled):
        vectors = [[Value(0.1 * i + 0.01 * j) for j in range(3)] for i in range(4)]
        examples = [(n % 4, float(n % 3)) for n in range(12)]
        parameters = [w for row in vectors for w in row]

        def loss(token, y):
            return (sum(w * w for w in vectors[token]) - y) ** 2

        mg.fit(loss, examples, mg.optim.SGD(parameters, 0.05), epochs=3, seed=0, compile=is_compiled)
        return [w.data for w in parameters]

    assert trained(True) == pytest.approx(trained(False), rel=1e-12)


def by_vmap(x, tokens):
    return sum(mg.vmap(lambda token: W[token] * x)(tokens))


def by_scan(x, tokens):
    return mg.scan(lambda total, token: (total + W[token] * x, None), 0.0 * x, tokens)[0]


def with_a_gradient_inside(x, tokens):
    return mg.grad(lambda y: y * y * W[tokens[0]])(x) * W[tokens[1]]


def under_no_grad(x, tokens):
    with mg.no_grad():
        weight = W[tokens[0]]
    return weight * x + W[tokens[2]]


@pytest.mark.parametrize(
    "function", [by_vmap, by_scan, with_a_gradient_inside, under_no_grad], ids=lambda f: f.__name__
)
@pytest.mark.unmeasured
def test_inside_of_loops_and_transforms(function, backend):
    fast = mg.compile(function, backend=backend)
    for tokens in ([0, 1, 2], [2, 2, 0]):
        assert gradients(fast, Value(3.0), tokens) == pytest.approx(gradients(function, Value(3.0), tokens), rel=1e-14)
    assert fast.cache_info().traces == 1


@pytest.mark.slow
def test_ctrl_c_at_any_time_leaves_functions_their_code():
    code, count, interrupted = of_row.__code__, 1, 0
    while True:
        try:
            interrupted_at(count, partial(mg.compile(of_row, backend="numpy"), Value(3.0), 1))
        except KeyboardInterrupt:
            interrupted += 1
        else:
            break
        finally:
            assert of_row.__code__ is code
        count += 401
    assert interrupted > 9


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("steps", [3, 16, 40])
@pytest.mark.parametrize("axis", [0, 1])
def test_elements_at_indices_beside_a_loop(steps, axis, backend):
    """What is taken at all indices comes before the loop; and so do the elements that it is taken from."""

    def last(table, rows, x):
        return mg.scan(lambda s, at: (np.tanh(s + (table[at[0], 1] if axis else table.T[1, at[0]]) * at[1]), None), 0.0,
                       (rows, x))[0]  # fmt: skip

    random = np.random.default_rng(steps)
    fast = mg.compile(mg.value_and_grad(last), backend=backend, verify=backend == "numpy")
    for _ in range(2):
        given = random.normal(size=(4, 3)), random.integers(0, 4, steps), random.normal(size=steps)
        (value, slopes), (expected, by_hand) = fast(*given), mg.value_and_grad(last)(*given)
        assert float(value) == pytest.approx(float(expected), rel=1e-12)
        assert np.asarray(slopes, float) == pytest.approx(np.asarray(by_hand, float), rel=1e-9, abs=1e-14)


def test_adding_at_indices_that_are_arguments():
    def added(x, indices):
        out = mg.array(np.zeros(4))
        np.add.at(out, indices, x)
        return (out**2).sum()

    x, indices = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1])
    with pytest.raises(mg.TraceError, match=r"np.add.at with indices that are arguments .* == indices\) @ x"):
        mg.compile(added)(x, indices)
    fast = mg.compile(lambda x, indices: (((np.arange(4)[:, None] == indices) @ x) ** 2).sum())
    assert fast(x, indices) == added(x, indices).data
    assert mg.compile(lambda x: added(x, indices))(x).data == added(x, indices).data
