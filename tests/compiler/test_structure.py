"""What in the arguments is fixed in a program, and what may change from call to call."""

import gc
import inspect
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.structure import Structure
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow(together=True)

Point = namedtuple("Point", "x y")


def test_another_structure_is_traced_again_and_other_numbers_are_not():
    traces = Runs()

    @mg.compile
    def f(xs, name="a"):
        print(end="", file=traces)
        return sum(x * 2.0 for x in xs)

    assert [f([Value(1.0)]).data, f([Value(5.0)]).data] == [2.0, 10.0]
    assert traces.times == 1
    assert f([Value(1.0), Value(2.0)]).data == 6.0
    f([Value(1.0)], name="b")
    f((Value(1.0),))
    assert traces.times == 4
    f([Value(7.0)])
    assert traces.times == 4


@pytest.mark.parametrize("argument", [{1, 2}, object(), [[object()], []], bytearray(b"a")])
def test_arguments_that_are_neither_numbers_nor_static_are_refused(argument):
    try:
        hash(argument)
        hashable = True
    except TypeError:
        hashable = False
    fast = mg.compile(lambda a: 1.0)
    if hashable or isinstance(argument, list):
        assert fast(argument) == 1.0  # static: compared as an object
    else:
        with pytest.raises(TypeError, match="static arguments that are hashable"):
            fast(argument)


def test_numpy_numbers_and_static_arrays_as_arguments():
    w = Value(2.0)
    fast = mg.compile(lambda x, mask: sum(w * x for keep in mask if keep))
    assert fast(np.float32(1.5), np.array([True, False, True])).data == 6.0
    assert fast(np.int64(2), np.array([True, True, True])).data == 12.0


def test_objects_are_static_and_told_apart():
    class Same:
        def __init__(self, number):
            self.w = Value(number)

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    fast = mg.compile(lambda model, x: model.w * x)
    assert [fast(Same(2.0), 1.0).data, fast(Same(5.0), 1.0).data] == [2.0, 5.0]
    traces = Runs()
    counted = mg.compile(lambda model, x: (print(end="", file=traces), model.w * x)[1])
    models = [Same(2.0), Same(5.0)]
    assert [counted(model, x).data for x in (1.0, 3.0) for model in models] == [2.0, 5.0, 6.0, 15.0]
    assert traces.times == 2
    mixed = mg.compile(lambda xs: xs[1] * 2 if xs[0] == "double" else xs[1])
    assert mixed(np.array(["double", Value(3.0)], dtype=object)).data == 6.0


def test_the_arguments_of_a_call_are_not_kept():
    class Watched(Value):
        pass

    x = Watched(2.0)
    seen = weakref.ref(x)
    fast = mg.compile(lambda numbers: numbers[0] * numbers[1])
    assert fast([x, 3.0]).data == 6.0
    del x
    gc.collect()
    assert seen() is None
    assert fast([Value(2.0), 3.0]).data == 6.0


class AttrDict(dict):
    """A dict whose items are attributes too."""

    def __init__(self, *items, **named):
        super().__init__(*items, **named)
        self.__dict__ = self


class Scaled(dict):
    """A dict with an attribute of its own."""

    def __init__(self, scale, **items):
        super().__init__(**items)
        self.scale = scale


class Row(list):
    """A list that counts what is appended, and needs an argument."""

    def __init__(self, name, items=()):
        super().__init__(items)
        self.name = name

    def append(self, item):
        raise AssertionError


class Tagged(Point):
    """A named tuple with attributes."""


def _ordered(x):
    ordered = OrderedDict(b=x, a=2.0)
    ordered.move_to_end("b")
    return ordered


def _tagged(x):
    tagged = Tagged(x, 2.0)
    tagged.scale = 3.0
    return tagged


@pytest.mark.parametrize(
    ("make", "f"),
    [
        (lambda x: np.matrix([[x, 2.0], [3.0, 4.0]]), lambda m: (m * m)[0, 0]),
        (lambda x: Counter(a=x, b=2), lambda c: c["a"] * c["b"] + c["missing"]),
        (lambda x: AttrDict(a=x, b=2.0), lambda d: d.a * d.b),
        (lambda x: Scaled(x, a=2.0), lambda d: d.scale * d["a"]),
        (lambda x: defaultdict(lambda: 5.0, a=x), lambda d: d["a"] * d["missing"]),
        (_ordered, lambda d: d.copy().popitem(last=False)[1] + 10 * d["b"]),
        (lambda x: Point(x, 2.0), lambda p: p.x * p.y),
        (_tagged, lambda p: p.x * p.scale),
        (lambda x: Row("a", [x, 2.0]), lambda r: r[0] * r[1] if r.name == "a" else None),
    ],
)
@pytest.mark.parametrize("kind", [float, Value])
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_containers_keep_their_class_and_what_belongs_to_it(make, f, kind, backend):
    kinds = []

    def watching(argument):
        kinds.append(type(argument))
        result = f(argument)
        return result, make(result)

    fast = mg.compile(watching, backend=backend)
    for number in (3.0, 5.0):
        for function in (fast, watching):
            result, container = function(make(kind(number)))
            expected = f(make(number))
            assert (result.data if kind is Value else result) == expected
            assert type(container) is type(make(number))
            again = f(container)
            assert (again.data if kind is Value else again) == f(make(expected))
    assert set(kinds) == {type(make(1.0))}


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: (x for x in [1.0, 2.0]), TypeError, "no iterators, as they are used up: give a list, not a generator"),
        (lambda: map(float, [1, 2]), TypeError, "give a list, not a map"),
        (lambda: [1.0, {"a": iter([1.0])}], TypeError, "give a list, not a list_iterator"),
        (lambda: np.ma.masked_array([1.0, 2.0], [True, False]), TypeError, "not a MaskedArray with a mask: fill it"),
        (lambda: np.zeros(2, dtype=[("a", float)]), TypeError, "with named fields"),
        (lambda: _deep(3000), ValueError, "must not be nested this deep, or contain itself"),
        (lambda: _within_itself(), ValueError, "must not be nested this deep, or contain itself"),
    ],
)
def test_arguments_and_results_that_cannot_be_passed_on_are_refused(make, error, words, backend):
    argument = make()
    with pytest.raises(error, match=words):
        mg.compile(lambda items: 1.0, backend=backend)(argument)
    with pytest.raises(error, match=words):
        mg.compile(lambda: argument, backend=backend)()


def test_a_generator_that_is_refused_is_not_used_up():
    numbers = (x for x in [1.0, 2.0])
    with pytest.raises(TypeError, match="iterators"):
        mg.compile(sum)(numbers)
    assert sum(numbers) == 3.0


def _deep(levels, *innermost):
    nested = list(innermost)
    for _ in range(levels):
        nested = [nested]
    return nested


def _within_itself():
    nested = {}
    nested["self"] = nested
    return nested


def _set(position):
    def change(container):
        container[position] = container[position] * 2.0

    return change


def _scale(container):
    container.scale = 7.0


def _reshape(array):
    array.shape = (1, 2)


@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array")  # since NumPy 2.5
@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda x: [x, 2.0], _set(0)),
        (lambda x: [x, 2.0], lambda xs: xs.append(1.0)),
        (lambda x: [x, 2.0], lambda xs: xs.append("text")),
        (lambda x: [x, 2.0], list.pop),
        (lambda x: [x, 2.0], list.reverse),
        (lambda x: [[x], []], lambda xs: xs[1].append(xs[0].pop())),
        (lambda x: {"a": [x, 2.0]}, lambda d: _set(1)(d["a"])),
        (lambda x: {"a": x}, _set("a")),
        (lambda x: {"a": x}, lambda d: d.update(b=1.0)),
        (lambda x: {"a": x}, dict.clear),
        (lambda x: {"a": x}, lambda d: d.update(a="text")),
        (lambda x: Scaled(x), _scale),
        (lambda x: Scaled(x), lambda d: vars(d).update(other=7.0)),
        (lambda x: defaultdict(list, a=x), lambda d: d["new"].append(d["a"])),
        (lambda x: np.array([x, 2.0]), _set(0)),
        (lambda x: np.array([x, 2.0]), lambda a: np.add(a, 1.0, out=a)),
        (lambda x: np.array([[x], [2.0]]), _reshape),
    ],
)
@pytest.mark.parametrize("kind", [float, Value])
def test_a_container_among_the_arguments_that_is_changed_in_position_is_refused(make, change, kind):
    """The change would be lost: a trace is given a copy."""
    with pytest.raises(mg.TraceError, match=r"an argument is changed in place.*Change a copy"):
        mg.compile(lambda container: (change(container), 1.0)[1])(make(kind(3.0)))
    with pytest.raises(mg.TraceError, match="an argument is changed in place"):
        mg.compile(lambda *, container: (change(container), 1.0)[1])(container=make(kind(3.0)))


def test_what_a_function_makes_of_its_arguments_may_be_changed(backend):
    def f(xs, *more, table, array, **others):
        copied, others["new"] = [*xs, *more], others.pop("scale")
        copied[0], copied[1:] = copied[1] * others["new"], copied[::-1]
        array = array + 1.0
        array[0] = table["missing"]
        return sum(copied) * array.sum()

    fast = mg.compile(f, backend=backend)
    for x in (2.0, 3.0):
        given = {"table": defaultdict(lambda: 5.0), "array": np.array([x, 1.0]), "scale": x}
        assert fast([Value(x), 1.0], 4.0, **given).data == f([x, 1.0], 4.0, **given)


def test_static_arguments_of_one_equality_are_told_apart(backend):
    class Mode:
        def __init__(self, factor):
            self.factor = factor

        def __eq__(self, other):
            return isinstance(other, Mode)

        def __hash__(self):
            return 1

    fast = mg.compile(lambda x, mode: x * mode.factor, backend=backend)
    double, triple = Mode(2.0), Mode(3.0)
    assert [fast(1.0, double), fast(1.0, triple), fast(1.0, double)] == [2.0, 3.0, 2.0]
    double.factor = 5.0
    assert [fast(1.0, triple), fast(1.0, double)] == [3.0, 5.0]


def test_an_argument_that_requires_no_gradient_has_a_program_of_its_own(backend):
    fast = mg.compile(lambda x, y: x * x * y, backend=backend)
    fast(Value(2.0), Value(3.0)).backward()
    x, y = Value(2.0, requires_grad=False), Value(3.0)
    fast(x, y).backward()
    assert (x.grad, y.grad) == (0.0, 4.0)


def test_static_arrays_of_the_same_bytes_and_another_type_are_told_apart():
    fast = mg.compile(lambda x, array: x * (2.0 if array.dtype.kind == "S" else 3.0))
    texts = np.array(["a"])
    assert fast(1.0, texts.view("S4")) == 2.0
    assert fast(1.0, texts) == 3.0


@pytest.mark.parametrize("dtype", ["datetime64[D]", "U1", "complex128", "bool"])
def test_arrays_of_what_is_no_number_are_static_by_what_is_in_them(dtype):
    traces = Runs()
    fast = mg.compile(lambda x, array: (print(end="", file=traces), x * len(array))[1])
    array = np.array([0, 1]).astype(dtype)
    assert fast(2.0, array) == fast(2.0, array.copy()) == 4.0
    assert traces.times == 1
    fast(2.0, array[::-1])
    assert traces.times == 2


def test_what_is_too_deep_for_the_rest_of_the_stack_cannot_be_rebuilt():
    structure = Structure(_deep(100, 1.0))

    def rebuilt_at(frames):
        return rebuilt_at(frames - 1) if frames else structure.rebuilt([2.0])

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 400)
    try:
        assert rebuilt_at(5) == _deep(100, 2.0)
        with pytest.raises(ValueError, match="must not be nested this deep"):
            rebuilt_at(330)
    finally:
        sys.setrecursionlimit(limit)


def test_arrays_of_plain_numbers_that_are_returned_are_those_of_numpy(backend):
    numbers, counts = np.array([1.0, 2.0]), np.array([1, 2])
    functions = [
        lambda a, n: (a * 2.0, n * 2, n * 2.0, a > 1, a.reshape(2, 1) + n),
        lambda a, n: np.array([a[0] + 1.0, a[1]]),
        lambda a, n: (np.array([n[0], a[0]]), np.array([n[0], a[0] > 0]), np.array([a[0] > 0, 2.0 * a[0]])),
        lambda a, n: mg.grad(lambda b: (b * b).sum())(a),
        lambda a, n: mg.hessian(lambda b: (b**3).sum())(a),
        lambda a, n: np.where(n > 1, n, 0),
        lambda a, n: (a[:0] * 2.0, (a * n).reshape(2, 1)[:, :0]),
        lambda a, n: {"two": a, "one": float(len(n))},
    ]
    for f in functions:
        _assert_alike(f(numbers, counts), mg.compile(f, backend=backend)(numbers, counts))
    w = Value(2.0)
    for f in (lambda a: a * w, lambda a: np.array([a[0], w]), lambda a: np.array([a[0], None])):
        assert mg.compile(f, backend=backend)(numbers).dtype == object
    long = np.array([2**52, 1])
    for f in (lambda n: n * 4, lambda n: n * 4096):  # beyond 2**53 it runs eagerly, where NumPy's integers wrap around
        assert mg.compile(f, backend=backend)(long).tolist() == f(long).tolist()


def _assert_alike(eager, compiled):
    assert type(eager) is type(compiled)
    if isinstance(eager, tuple):
        for one, other in zip(eager, compiled, strict=True):
            _assert_alike(one, other)
    elif isinstance(eager, dict):
        _assert_alike(tuple(eager.values()), tuple(compiled.values()))
    elif isinstance(eager, np.ndarray):
        assert (eager.dtype, eager.tolist()) == (compiled.dtype, compiled.tolist())
    else:
        assert eager == compiled


def test_freezing_one_of_many_values_in_an_argument_takes_effect(backend):
    weights = [Value(float(number)) for number in range(20)]
    f = mg.compile(lambda w: mg.dot(w, w), backend=backend)
    f(weights).backward()
    weights[7].requires_grad = False
    for weight in weights:
        weight.grad = 0.0
    f(weights).backward()
    assert [weight.grad for weight in weights] == [0.0 if n == 7 else 2.0 * n for n in range(20)]


ROWS_OF_FLOATS = {
    "floats of NumPy": (lambda rows: sum(x * x for x in rows), list),
    "tuples of them": (lambda rows: sum(x * y for x, y in rows), lambda xs: list(zip(xs, xs[::-1], strict=True))),
    "dicts": (lambda rows: sum(r["x"] * r["y"] for r in rows), lambda xs: [{"x": x, "y": 2.0} for x in xs.tolist()]),
    "dicts of floats of NumPy": (lambda rows: sum(row["x"] ** 2 for row in rows), lambda xs: [{"x": x} for x in xs]),
    "dicts with other names": (
        lambda rows: sum(sum(row.values()) * len(row) for row in rows),
        lambda xs: [{"x": 1.5}, {"x": 2.5, "y": float(xs[0])}],
    ),
    "dicts with numbers for names": (lambda rows: sum(r[0] for r in rows), lambda xs: [{0: x} for x in xs.tolist()]),
    "dicts of integers": (lambda rows: sum(row["x"] for row in rows), lambda xs: [{"x": int(2 * x)} for x in xs]),
    "empty dicts": (len, lambda xs: [{}, {}]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS_OF_FLOATS)
def test_lists_of_rows_of_floats_mean_what_they_mean_eagerly(kind):
    function, rows_of = ROWS_OF_FLOATS[kind]
    fast = mg.compile(function)
    for numbers in ([0.5, -1.5, 2.5], [4.0, 0.25, -2.0]):
        rows = rows_of(np.array(numbers))
        assert fast(rows) == function(rows)
    assert fast.cache_info().traces == 1


def test_rows_of_floats_and_of_floats_of_numpy_have_a_trace_each():
    fast = mg.compile(lambda rows: [isinstance(x, np.float64) for row in rows for x in row])
    assert fast([(1.0, 2.0)]) == [False, False]
    assert fast([(np.float64(1.0), np.float64(2.0))]) == [True, True]
    assert fast([(np.float64(1.0), 2.0)]) == [True, False]


def test_dicts_in_another_order_have_a_trace_of_their_own():
    fast = mg.compile(lambda rows: [next(iter(row.values())) for row in rows])
    assert fast([{"x": 1.0, "y": 2.0}]) == [1.0]
    assert fast([{"y": 3.0, "x": 4.0}]) == [3.0]
    assert fast([{"x": 1.0, "y": 2.0}, {"y": 3.0, "x": 4.0}]) == [1.0, 3.0]
