"""Arrays and lists of many rows that a function closes over: traced for a few of them, and the same as eagerly."""

import contextlib
import logging

import numpy as np
import pytest

import micrograd as mg

ROWS = 450
WEIGHTS = mg.array([0.5, -0.25, 0.125])
SCALE = mg.Value(0.75)


pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


def numbers(*shape, seed=7):
    return np.random.default_rng(seed).uniform(0.1, 1.0, shape)


def slopes_of(result):
    """The result's number, and the gradients of all Values."""
    values = [*WEIGHTS, SCALE]
    for value in values:
        value.grad = 0.0
    if isinstance(result, mg.Value):
        result.backward()
        return [result.data, *(value.grad for value in values)]
    return result


def is_traced_in_full(caplog, fast, *arguments):
    """Whether a function is traced for all rows, after a look at its results: they are what eager gives, twice."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        found = slopes_of(fast(*arguments))
    check(found, slopes_of(fast.function(*arguments)))
    traces = fast.cache_info().traces
    check(slopes_of(fast(*arguments)), found)
    assert fast.cache_info().traces == traces
    return "is traced for all" in caplog.text


def check(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, part in expected.items():
            check(found[name], part)
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
    else:
        assert isinstance(expected, type(found))  # a float in the place of NumPy's
        found, expected = (
            [getattr(number, "data", number) for number in np.ravel(each).tolist()] for each in (found, expected)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def squares(row, target):
    return (mg.dot(row, WEIGHTS) - target) ** 2


ALIKE = {
    "least squares": lambda x, y: ((x @ WEIGHTS - y) ** 2).mean(),
    "logistic": lambda x, y: np.mean(np.log(1 + np.exp(-(2 * (y > 0.5) - 1) * (x @ WEIGHTS)))),
    "cross-entropy": lambda x, y: -(y * np.log(p := mg.sigmoid(x @ WEIGHTS)) + (1 - y) * np.log(1 - p)).mean(),
    "hinge": lambda x, y: np.maximum(0.0, 1 - np.sign(y - 0.5) * (x @ WEIGHTS)).sum(),
    "standardised": lambda x, y: ((((x - x.mean(axis=0)) / x.std(axis=0)) @ WEIGHTS - y) ** 2).sum() / len(x),
    "neighbours": lambda x, y: ((y[1:] - SCALE * y[:-1]) ** 2).sum() + (np.diff(y, n=2) * SCALE).sum(),
    "the same twice": lambda x, y: ((x @ WEIGHTS) * y + y * SCALE - y * SCALE * y).sum(),
    "transposed": lambda x, y: (x.T @ (x @ WEIGHTS - y)).sum() + (WEIGHTS @ x.T).max(),
    "a mask": lambda x, y: np.where(y > 0.5, x @ WEIGHTS, 0.0).sum() + ((y > 0.7) * (x @ WEIGHTS)).sum(),
    "joined": lambda x, y: np.concatenate([x @ WEIGHTS, y]).mean() + np.stack([y * SCALE, y]).sum(),
    "products so far": lambda x, y: np.cumprod(1 + y * SCALE * 0.01).sum() + np.maximum.reduce(y * SCALE),
    "largest so far": lambda x, y: np.maximum.accumulate(y * SCALE).sum(),
    "log-sums so far": lambda x, y: np.logaddexp.accumulate(x @ WEIGHTS)[-1],
    "between points": lambda x, y: np.interp(y, np.array([0.0, 0.5, 1.0]), WEIGHTS).sum() + np.sinc(y * SCALE).sum(),
    "windows": lambda x, y: (np.convolve(y, WEIGHTS, mode="valid") ** 2).sum() + np.ediff1d(y * SCALE).max(),
    "statistics": lambda x, y: np.cov((x * WEIGHTS).T).sum() + np.nanvar(x * WEIGHTS, axis=0).sum() + np.ptp(y * SCALE),
    "without NaN": lambda x, y: np.nansum(x * WEIGHTS) + np.nanmean(y * SCALE) + np.nanmax(x * WEIGHTS, axis=0).sum(),
    "turned": lambda x, y: (np.flipud(x * WEIGHTS) * x).sum() + (np.rot90(x * WEIGHTS)[0] * y).sum(),
    "powers": lambda x, y: np.polyval(WEIGHTS, y).sum() + np.vander(y * SCALE, 3).sum() + np.cross(x, WEIGHTS).max(),
    "other parts": lambda x, y: np.take(x * WEIGHTS, [0, 2], axis=1).sum() + np.append(y * SCALE, WEIGHTS).mean(),
    "blocks": lambda x, y: np.block([x * WEIGHTS, x]).sum() + (np.dstack([x * WEIGHTS, x]) ** 2).sum(),
    "outer": lambda x, y: (y[:, None] * WEIGHTS).sum() + np.outer(y, WEIGHTS)[0, 0],
    "primitive": lambda x, y: mg.maximum(y, x @ WEIGHTS).sum(),
    "single elements": lambda x, y: x[0, 0] * SCALE + x[-1, 1] * SCALE + (y * SCALE)[3] + x[417, 2] * SCALE,
    "rows": lambda x, y: mg.mean(mg.vmap(squares)(x, y)),
    "columns": lambda x, y: mg.mean(mg.vmap(squares, (1, 0))(np.ascontiguousarray(x.T), y)),
    "rows of numbers": lambda x, y: mg.mean(mg.vmap(lambda v: mg.sin(v) * SCALE)(y)),
    "scan": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + v * SCALE, s), SCALE, y)[0],
    "scan of rows": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + squares(*v), None), SCALE, (x, y), reverse=True)[0],
    "lists of rows": lambda x, y: mg.mean(mg.vmap(squares)(x.tolist(), y.tolist())),
    "scan of a list": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + v * SCALE, s), SCALE, y.tolist())[0],
    "a list of tuples": lambda x, y: mg.mean(mg.vmap(lambda r: r[0] * r[1] * SCALE)(list(map(tuple, x.tolist())))),
    "made inside": lambda x, y: (np.linspace(0.0, 1.0, len(x)) * SCALE + np.arange(len(y)) * SCALE).sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.unmeasured
def test_few_rows_are_traced(name, caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    function = ALIKE[name]
    assert not is_traced_in_full(caplog, mg.compile(lambda: function(x, y)))


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.unmeasured
def test_backends(backend, caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    for name in ("least squares", "rows", "scan of rows"):
        function = ALIKE[name]
        assert (
            not is_traced_in_full(caplog, mg.compile(lambda f=function: f(x, y), backend=backend)) or backend == "jax"
        )


@pytest.mark.parametrize("transform", [mg.value_and_grad, mg.hessian, mg.grad, lambda f: f])
@pytest.mark.unmeasured
def test_transforms(transform, caplog):
    x, y = numbers(ROWS, 2), numbers(ROWS)
    loss = mg.compile(transform(lambda v: np.mean((np.tanh(x @ v) - y) ** 2)))
    assert not is_traced_in_full(caplog, loss, np.array([0.5, -0.25]))
    assert not is_traced_in_full(caplog, loss, np.array([1.5, 0.25]))
    assert loss.cache_info().traces == 1


def test_a_gradient_that_is_0_before_others(caplog):
    y = numbers(ROWS)
    slopes = mg.compile(mg.grad(lambda v: (y * v[1] * v[2]).sum()))
    assert not is_traced_in_full(caplog, slopes, np.array([0.5, -0.25, 0.125]))


@pytest.mark.parametrize("name", ["least squares", "rows", "scan of rows", "hinge", "a mask"])
def test_the_same_as_of_arguments(name):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    assert slopes_of(mg.compile(lambda: ALIKE[name](x, y))()) == slopes_of(mg.compile(ALIKE[name])(x, y))


def test_beside_arguments_of_as_many_rows(caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    assert not is_traced_in_full(caplog, mg.compile(lambda z: ((x @ WEIGHTS - y) * z).sum()), numbers(ROWS, seed=1))
    assert is_traced_in_full(caplog, mg.compile(lambda z: (y * np.linspace(0, 1, len(z)) * z).sum()), numbers(ROWS))
    assert is_traced_in_full(caplog, mg.compile(lambda z: (y[: len(z)] * z).sum()), numbers(ROWS))


@pytest.mark.parametrize("rows", [400, 401, 415, 1024])
@pytest.mark.unmeasured
def test_numbers_of_rows(rows, caplog):
    x, y = numbers(rows, 3), numbers(rows)
    for name in ("least squares", "rows", "neighbours"):
        function = ALIKE[name]
        assert not is_traced_in_full(caplog, mg.compile(lambda f=function: f(x, y)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(9))
@pytest.mark.unmeasured
def test_dtypes(number, caplog):
    """Each dtype in two of the functions: all of these see several dtypes."""
    dtype = [int, np.int8, np.uint16, np.int64, bool, np.float32, np.float16, ">f8", "<i4"][number]
    x, y = (10 * numbers(ROWS, 3)).astype(dtype), (3 * numbers(ROWS)).astype(dtype)
    names = "least squares", "a mask", "rows", "the same twice", "primitive", "joined"
    for name in names[number % 3 :: 3]:
        function = ALIKE[name]
        assert not is_traced_in_full(caplog, mg.compile(lambda f=function: f(x, y)))


CHANGES = {
    "a number": lambda data: data["x"].__setitem__((420, 1), 7.0),
    "all numbers": lambda data: data["x"].__imul__(2.0),
    "the first": lambda data: data["y"].__setitem__(0, -1.0),
    "a sign": lambda data: data["y"].__setitem__(3, -0.0),
    "NaN": lambda data: data["y"].__setitem__(430, np.nan),
    "infinity": lambda data: data["y"].__setitem__(430, np.inf),
    "another array": lambda data: data.update(x=numbers(ROWS, 3, seed=1)),
    "an equal array": lambda data: data.update(x=data["x"].copy()),
    "another order": lambda data: data.update(x=np.asfortranarray(data["x"])),
    "more rows": lambda data: data.update(x=numbers(ROWS + 16, 3), y=numbers(ROWS + 16)),
    "fewer rows": lambda data: data.update(x=numbers(30, 3), y=numbers(30)),
    "one row": lambda data: data.update(x=numbers(1, 3), y=numbers(1)),
    "other rows": lambda data: data.update(x=data["x"][::-1], y=data["y"][::-1]),
    "integers": lambda data: data.update(x=np.arange(3 * ROWS).reshape(ROWS, 3)),
    "floats": lambda data: data.update(x=data["x"].astype(np.float32)),
    "its own shape": lambda data: data["y"].__setattr__("shape", (1, ROWS)),
    "a list": lambda data: data.update(y=list(data["y"])),
    "the same twice": lambda data: data.update(y=data["x"][:, 0]),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value|overflow|Setting the shape")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.unmeasured
def test_what_is_replaced(change):
    data = {"x": numbers(ROWS, 3), "y": numbers(ROWS)}
    fast = mg.compile(lambda: ((data["x"] @ WEIGHTS - data["y"]) ** 2).mean())
    check(slopes_of(fast()), slopes_of(fast.function()))
    for _ in range(2):
        CHANGES[change](data)
        try:
            expected = slopes_of(fast.function())
        except (ArithmeticError, ValueError) as error:
            with pytest.raises(type(error)):
                slopes_of(fast())
            return
        check(slopes_of(fast()), expected)
        check(slopes_of(fast()), expected)
    assert fast.cache_info().traces <= 4


def changes_rows(x, y):
    x[0] *= 0.5
    return (x @ WEIGHTS - y).sum()


def changes_a_list(x, y, table=[[0.0, 1.0] for _ in range(20)], kept=np.zeros(3)):  # noqa: B006, B008  # to be kept
    table[3][0] += 1.0
    kept += 2.0
    return (x @ WEIGHTS - y).sum() * table[3][0] * kept[1]


def counts(x, y, calls=[0]):  # noqa: B006  # it is to be kept
    calls[0] += 1
    return (x @ WEIGHTS - y).sum() * calls[0]


def fills(x, y):
    buffer = np.empty(len(y))
    buffer[:] = x[:, 0]
    first = (buffer * WEIGHTS[0]).sum()
    buffer[:] = x[:, 1]
    return first + (buffer * WEIGHTS[1]).sum()


def catches(x, y):
    try:
        return (x @ WEIGHTS - y).sum()
    except Exception:
        return SCALE * 2


def catches_refusals(x, y):
    def body(v):
        try:
            return v.hex()[0] * 0 or v * SCALE
        except TypeError:
            return v * SCALE * 2

    return mg.mean(mg.vmap(body)(y))


def suppresses_refusals(x, y):
    def body(v):
        with contextlib.suppress(TypeError):
            return len(v.hex()) * 0 + v * SCALE
        return v * SCALE * 2

    return mg.mean(mg.vmap(body)(y))


def writes_to(x, y):
    filled = np.zeros((len(y), 2))
    filled[:, 0], filled[:, 1] = y, np.sqrt(y)
    np.multiply(filled, 2.0, out=filled)
    return (filled * SCALE).sum() + filled[3, 1] * SCALE


def row_by_row(x, y):
    return sum(((row @ WEIGHTS - t) ** 2 for row, t in zip(x, y, strict=True)), 0.0 * SCALE)


def ends(x, y):
    errors = x @ WEIGHTS - y
    return errors[0] * 3 + errors[1:].sum() + errors[-1]


def of_rows_apart(x, y):
    return mg.mean(mg.vmap(lambda row, t: squares(row, t) if row[0] > 0.5 else t * SCALE)(x, y))


def remembers(x, y):
    seen = []

    def body(row):
        seen.append(1)
        return mg.dot(row, WEIGHTS) * (1 if len(seen) < 420 else 2)

    return mg.mean(mg.vmap(body)(x))


def where_by_length(x, y):
    return np.where(np.arange(len(x)) < 420, x @ WEIGHTS, 2 * (x @ WEIGHTS)).sum()


OTHERS = {
    "fills a buffer": fills,
    "catches": catches,
    "catches refusals": catches_refusals,
    "suppresses refusals": suppresses_refusals,
    "row by row": row_by_row,
    "ends": ends,
    "decides on numbers of rows": of_rows_apart,
    "remembers": remembers,
    "where": where_by_length,
    "half of the rows": lambda x, y: ((x @ WEIGHTS)[: len(x) // 2]).sum() + (x[:225] @ WEIGHTS).sum(),
    "a slice by a number": lambda x, y: (x @ WEIGHTS)[:420].sum(),
    "a slice of the known": lambda x, y: (x[:420] @ WEIGHTS).sum() * (x[30:] @ WEIGHTS).mean(),
    "the last rows": lambda x, y: (x @ WEIGHTS)[len(x) - 10 :].sum(),
    "rows chosen by numbers": lambda x, y: (x[y > 0.5] @ WEIGHTS).sum() + (x @ WEIGHTS)[y > 0.5].sum(),
    "a table of weights": lambda x, y: (WEIGHTS[(3 * y).astype(int)] * y).sum(),
    "another length": lambda x, y: (x @ WEIGHTS).mean() + (np.concatenate([y, y]) * SCALE).mean(),
    "a shape": lambda x, y: (x.reshape(-1) * SCALE).sum() + (x @ WEIGHTS).sum(),
    "strange arrays": lambda x, y: (np.ma.array(y) * 2.0).sum() * SCALE + (y.astype(object) * SCALE).sum(),
    "by mg.dot": lambda x, y: mg.dot(y, x @ WEIGHTS) + mg.dot(x @ WEIGHTS, y),
    "a dict of lists": lambda x, y: mg.vmap(lambda d: d["t"] * SCALE)({"t": y.tolist(), "r": x.tolist()})[7],
    "returns what it knows": lambda x, y: {"loss": (x @ WEIGHTS).sum(), "y": y, "rows": len(x)},
    "returns an array": lambda x, y: (x @ WEIGHTS) * 1.0,
    "no gradient": lambda x, y: mg.detach((x @ WEIGHTS).sum()) * SCALE,
    "powers": lambda x, y: (SCALE ** (4 * y)).sum() + ((4 * x[:, 0]) ** SCALE).sum() + (SCALE ** np.round(3 * y)).sum(),
    "zeros": lambda x, y: ((y > 2) * (x @ WEIGHTS)).sum() + (np.zeros_like(x) @ WEIGHTS).sum(),
    "an array to write to": writes_to,
    "linear algebra": lambda x, y: (np.linalg.solve((x * SCALE).T @ x, x.T @ y)).sum(),
    "einsum": lambda x, y: np.einsum("ij,j->i", x, WEIGHTS).sum(),
    "two lengths": lambda x, y: ((x @ WEIGHTS) ** 2).mean() + ((numbers(900, 3) @ WEIGHTS) ** 2).mean(),
    "a list of lists of lists": lambda x, y: mg.mean(mg.vmap(lambda r: r[0][0] * SCALE)(x.reshape(-1, 3, 1).tolist())),
    "columns of lists": lambda x, y: mg.mean(mg.vmap(squares, (1, 0))(x.T.tolist(), y.tolist())),
    "integers in lists": lambda x, y: mg.mean(mg.vmap(lambda k: SCALE**k)([int(3 * each) for each in y])),
    "ranges": lambda x, y: mg.mean(mg.vmap(lambda k: SCALE * k)(range(len(y)))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name, caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    function = OTHERS[name]
    is_traced_in_full(caplog, mg.compile(lambda: function(x, y)))


@pytest.mark.parametrize("function", [changes_rows, counts, changes_a_list])
def test_what_a_function_changes_is_changed_once(function):
    def run(compiled):
        counts.__defaults__[0][0] = 0
        table, kept = changes_a_list.__defaults__
        table[3][0], kept[:] = 0.0, 0.0
        x, y = numbers(ROWS, 3), numbers(ROWS)
        fast = compiled(lambda: function(x, y))
        return [slopes_of(fast()) for _ in range(3)], x.tolist(), counts.__defaults__[0][0], table[3][0], kept.tolist()

    found, expected = run(mg.compile), run(lambda f: f)
    check(found[0], expected[0])
    assert found[1:] == expected[1:]


OF_LISTS = {
    "rows": lambda x, y: mg.mean(mg.vmap(squares)(x, y)),
    "a scan": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + squares(*v), s), SCALE, (x, y))[0],
    "a scan backwards": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + v * SCALE, s), 1.0, y, reverse=True)[0],
    "parts": lambda x, y: mg.mean(mg.vmap(lambda a, b: (a - b * SCALE) ** 2)(y[1:], y[:-1])),
    "elements": lambda x, y: y[0] * SCALE + y[-1] + y[7] * len(y) + x[3][1] * x[-1][0],
    "rows by rows": lambda x, y: mg.mean(mg.vmap(lambda row: sum(a * a for a in row) * SCALE)(x)),
    "outputs of a scan": lambda x, y: mg.scan(lambda s, v: (s * 0.5 + squares(*v), s), SCALE, (x, y))[1][7],
    "a sum": lambda x, y: sum(y) * SCALE,
    "a mean": lambda x, y: mg.mean(y) * SCALE + mg.dot(y, y) + mg.logsumexp(y),
    "row by row": lambda x, y: sum(squares(row, t) for row, t in zip(x, y, strict=True)),
    "what is in it": lambda x, y: {"first": y[0] * SCALE, "rows": x[1]},
    "all that is in it": lambda x, y: {"y": y, "first": y[0] * SCALE, "rows": x[:2]},
}  # fmt: skip
OF_LISTS_IN_FULL = {
    "rows of tuples": lambda x, y: mg.mean(mg.vmap(lambda row: row[0] * row[1] + len(row))(list(map(tuple, x)))),
    "columns": lambda x, y: mg.vmap(lambda column: mg.mean(column) * SCALE, 1)(x)[1],
    "an array of it": lambda x, y: (mg.array(y) * SCALE).sum() + (np.array(x) @ WEIGHTS).sum(),
    "an element by a number": lambda x, y: y[min(len(y) - 1, 420)] * SCALE,
    "a part by a number": lambda x, y: mg.mean(mg.vmap(lambda a: a * SCALE)(y[:420])),
    "joined": lambda x, y: mg.mean(mg.vmap(lambda a: a * SCALE)(y + y)) + len([*y, *x]),
    "changed": lambda x, y: (y.append(1.0), mg.mean(y))[1] if len(y) < 0 else mg.mean(sorted(y, key=id)) * SCALE,
    "the largest": lambda x, y: max(y) * SCALE + y.index(y[3]),
    "the numbers of known rows": lambda x, y: mg.mean(mg.vmap(lambda a, b: a * b * SCALE)(y, [0.5] * len(y))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OF_LISTS, *OF_LISTS_IN_FULL])
def test_lists_among_the_arguments(name, caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    fast = mg.compile({**OF_LISTS, **OF_LISTS_IN_FULL}[name])
    assert is_traced_in_full(caplog, fast, x, y) is (name in OF_LISTS_IN_FULL)


def test_other_lists_among_the_arguments(caplog):
    fast = mg.compile(lambda y: mg.mean(mg.vmap(lambda a: a * SCALE)(y)))
    y = numbers(ROWS).tolist()
    assert not is_traced_in_full(caplog, fast, y)
    for other in (y[1:], y[:30], [*y[:200], SCALE, *y[200:]], [*y[:200], 1, *y[200:]], y[::-1]):
        is_traced_in_full(caplog, fast, other)


@pytest.mark.parametrize("name", ["least squares", "scan", "lists of rows"])
def test_the_program_itself(name, capsys):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    fast = mg.compile(lambda: ALIKE[name](x, y))
    result = fast()
    node, shapes = fast.last_call()
    assert (node.data, shapes) == (result.data, {})
    executable = fast.program()
    executable.run()
    assert executable.buffer[executable.program.outputs].tolist() == [result.data]
    assert len(fast.explain().splitlines()) < 40
    assert "kernel" in fast.profile()
    fast.show(after="normalise")
    assert "0.662586" in capsys.readouterr().out
    assert fast.cache_info().traces == 1


@pytest.mark.slow
@pytest.mark.unmeasured
def test_iterations_that_are_one_program(caplog):
    x, y = numbers(ROWS, 20), numbers(ROWS)

    def path(row, target):
        last, seen = mg.scan(lambda s, v: (s * mg.exp(0.01 * v * SCALE), s), 1.0, row)
        return (np.mean(seen) - target) * last

    fast = mg.compile(lambda: mg.mean(mg.vmap(path)(x, y)))
    assert not is_traced_in_full(caplog, fast)
    assert "450 iterations, of which one program computes" in fast.explain()
    y[3] = 2.0
    assert not is_traced_in_full(caplog, fast)
    several = mg.compile(lambda a: (mg.mean(mg.vmap(path)(x, y)), a * SCALE))
    found, expected = several(mg.Value(0.5)), several.function(mg.Value(0.5))
    assert slopes_of(sum(found)) == pytest.approx(slopes_of(sum(expected)))


def test_several_results(caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    fast = mg.compile(lambda a: [(x @ WEIGHTS) * a, y * SCALE])
    (first, second), expected = fast(np.array(0.5)), fast.function(0.5)
    check(slopes_of(first[7] * second[8]), slopes_of(expected[0][7] * expected[1][8]))


def test_under_no_grad():
    x, y = numbers(ROWS, 3), numbers(ROWS)
    fast = mg.compile(lambda: ((x @ WEIGHTS - y) ** 2).mean())
    with mg.no_grad():
        assert not fast().requires_grad
        assert fast().data == pytest.approx(fast.function().data)
    assert fast().requires_grad


def test_in_float32():
    x, y = numbers(ROWS, 3), numbers(ROWS)
    fast = mg.compile(lambda: ((x @ WEIGHTS - y) ** 2).mean(), precision="float32")
    assert slopes_of(fast()) == pytest.approx(slopes_of(fast.function()), rel=1e-4)


def test_integers_that_are_no_floats(caplog):
    x = np.arange(ROWS) + 2**53
    assert is_traced_in_full(caplog, mg.compile(lambda: (x * SCALE).sum() * 1e-20))


def matches_a_value(item):
    match item:
        case mg.Value():
            return True
    return False


ASKED = {
    "isinstance": lambda item: isinstance(item, mg.Value),
    "type": lambda item: type(item) not in (float, np.float64),
    "hasattr": lambda item: hasattr(item, "backward"),
    "match": matches_a_value,
}


@pytest.mark.parametrize(("name", "backend"), [*((name, "llvm") for name in ASKED), ("isinstance", "numpy")])
def test_items_are_asked_for_their_class(name, backend):
    is_value, array, rows = ASKED[name], numbers(ROWS), numbers(ROWS).tolist()

    def times(item, x):
        return item * x * (2.0 if is_value(item) else 3.0)

    for f in (
        lambda x: mg.scan(lambda state, item: (state + times(item, x), state), 0.0, array)[0],
        lambda x: mg.scan(lambda state, item: (state * 0.5 + times(item, x), state), 0.0, rows)[0],
        lambda x: mg.mean(mg.vmap(lambda item: times(item, x))(array)),
        lambda x: mg.mean(mg.vmap(lambda item: times(item, x))(rows)) * SCALE,
        lambda x: sum([times(item, x) for item in rows]) + sum(times(item, x) for item in array),
        lambda x: np.sum(array * x) * (2.0 if is_value(x) and not isinstance(x, float) else 3.0),
    ):
        fast = mg.compile(f, backend=backend)
        check(slopes_of(fast(2.0)), slopes_of(f(2.0)))


@pytest.mark.parametrize("largest", [2**31 + 3, 2**40])
def test_large_integers(largest, caplog):
    x = np.append(np.arange(ROWS - 1), largest)
    assert not is_traced_in_full(caplog, mg.compile(lambda a: (x * a).sum()), 0.5)
    fast = mg.compile(lambda k: (x * k + k).sum() * SCALE)
    for factor in (3, 2**22):  # the products of the latter are no floats
        check(slopes_of(fast(factor)), slopes_of(fast.function(factor)))


def test_another_number_of_rows_and_other_known_numbers(caplog):
    data = {"y": numbers(ROWS)}
    fast = mg.compile(lambda z: (data["y"] * z).sum() * SCALE)
    assert not is_traced_in_full(caplog, fast, numbers(ROWS))
    data["y"] = numbers(ROWS + 16)
    assert not is_traced_in_full(caplog, fast, numbers(ROWS + 16))
    data["y"] = numbers(ROWS, seed=3)
    assert not is_traced_in_full(caplog, fast, numbers(ROWS))


def test_arrays_that_are_empty_or_have_no_axes(caplog):
    nothing, one = np.zeros((0, ROWS)), np.array(2.0)
    fast = mg.compile(
        lambda: (nothing * SCALE).sum() + (one * WEIGHTS).sum() + (nothing.T @ np.zeros((0, 1)) * SCALE).sum()
    )
    check(slopes_of(fast()), slopes_of(fast.function()))


def test_an_exception_that_is_caught_does_not_hide_rows():
    x = numbers(ROWS, 3)

    def guarded():
        try:
            return (x @ WEIGHTS).sum()
        except BaseException:
            return SCALE * 1.0

    check(slopes_of(mg.compile(guarded)()), slopes_of(guarded()))


def test_errors_of_the_function():
    x = numbers(ROWS, 3)
    with pytest.raises(ValueError, match=r"matmul|mismatch|dimension"):
        mg.compile(lambda: (x @ WEIGHTS[:2]).sum())()
    with pytest.raises(ZeroDivisionError):
        mg.compile(lambda: (SCALE / (x - x)).sum())()


def test_other_known_numbers_than_in_the_outline(caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)

    def by_class():
        products = x @ WEIGHTS
        return (products * (y if hasattr(type(products), "position") else y + 1.0)).sum()

    assert is_traced_in_full(caplog, mg.compile(by_class))


def test_a_long_list_of_other_numbers_beside_rows(caplog):
    total = mg.compile(lambda x, others: x.sum() * sum(others[:3]))
    assert is_traced_in_full(caplog, total, numbers(ROWS), [1.0, 2] * 600)


def test_rows_that_a_learning_rate_changes():
    def trained(is_compiled):
        rows, weight = [[float(number), 1.0] for number in range(30)], mg.Value(0.0)
        row = rows[3]

        def rate(step):
            row[0] += 1.0
            return 0.25

        optimizer = mg.optim.SGD([weight], rate)
        mg.fit(lambda x: (weight - rows[3][0] * x) ** 2, [(1.0,)], optimizer, epochs=4, compile=is_compiled)
        return weight.data

    assert trained(True) == pytest.approx(trained(False))
