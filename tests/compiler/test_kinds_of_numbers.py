"""Numbers of other kinds than float among the arguments: compiled is eager, or is refused by a message that says what
to convert.
"""

import enum
import re
import warnings
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from tests.campaigns.kinds import DTYPES, EXPRESSIONS, NUMBERS, is_same, outcome, what_differs

pytestmark = pytest.mark.slow(together=True)

CHOSEN = EXPRESSIONS[:: len(EXPRESSIONS) // 20]


@pytest.mark.slow
@pytest.mark.parametrize("expression", CHOSEN)
def test_compiled_equals_eager_or_is_refused_whatever_the_dtype(expression):
    for dtype in DTYPES:
        for name in ("vector", "matrix", "no axes"):
            assert not what_differs(expression, dtype, NUMBERS[name], "numpy")


def agree(f, *arguments, backend="numpy"):
    """Assert that a function gives the same compiled and eagerly: numbers, classes and dtypes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where integers of NumPy's wrap around
        expected, found = f(*arguments), mg.compile(f, backend=backend)(*arguments)
    assert is_same(outcome(lambda: found), outcome(lambda: expected)), f"{found}, eagerly {expected}"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.unmeasured
def test_integers_of_numpy_wrap_around(dtype, backend):
    info = np.iinfo(dtype)
    few = np.array([3, 1, 100], dtype=dtype)
    fast = mg.compile(lambda a, b: (a * b, a + b, (a * 2).sum(), a[0] * b[2]), backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for other in (few, few[::-1], np.array([info.max // 2, 7, 3], dtype=np.int64).clip(0, 2**40).astype(dtype)):
            found, expected = fast(few, other), fast.function(few, other)
            assert outcome(lambda found=found: found) == outcome(lambda expected=expected: expected)
    assert fast.cache_info().traces <= 2


def test_a_call_whose_integers_are_in_range_is_compiled():
    runs = []
    fast = mg.compile(lambda a, x: (runs.append(1), (a * a).sum() * x)[1] if not runs else (a * a).sum() * x)
    assert fast(np.array([3, 2], dtype=np.uint8), 2.0) == 26.0
    assert fast(np.array([15, 2], dtype=np.uint8), 2.0) == 458.0


@pytest.mark.parametrize(
    "f",
    [
        lambda n: n + 1,
        lambda n: n * n * n,
        lambda n: (n * 2**40, n - 1),
        lambda n: n**5,
        lambda n: n**2 - 2 * n,
        lambda n: -n // 3 % 7,
        lambda n: sum([n] * 5),
        lambda n: abs(-n) * 3,
        lambda n: (n**0, n**-1, n / 7),
        lambda n: mg.dot([n, n], [n, 2]),
        lambda n: mg.take([n, 5], 0) * n,
        lambda n: np.array([n, 2]) * 3,
    ],
)
def test_pythons_ints_have_all_their_digits(f, backend):
    fast = mg.compile(f, backend=backend)
    for n in (3, -7, 2**26, 2**31 + 1, 2**52 + 1):
        found, expected = fast(n), f(n)
        assert outcome(lambda found=found: found) == outcome(lambda expected=expected: expected)


@pytest.mark.parametrize("numbers", [[1, 0, 3], [0.5, 0.0, 3.0]], ids=["int", "float"])
def test_what_iterations_over_an_array_give_is_an_array_of_floats(numbers):
    positive, tripled = mg.vmap(lambda t: t > 0), mg.vmap(lambda t: t * 3 if t > 2 else 1)
    agree(lambda x: positive(x) + positive(x), np.array(numbers))
    agree(lambda x: (tripled(x), mg.scan(lambda s, t: (s, -t), 0, x)), np.array(numbers))
    agree(lambda x: mg.vmap(lambda t: t * 2)(x) ** -1, np.array([1, 2, 4]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, others, n: mg.cond(x > 0, lambda: n * 3, lambda: n),
        lambda x, others, n: mg.cond(x > 0, lambda: abs(n) * 3, lambda: n) + n,
        lambda x, others, n: mg.while_loop(lambda s: s[1] < 2, lambda s: (s[0] + n * 3, s[1] + 1), (0, x))[0],
        lambda x, others, n: mg.scan(lambda s, _: (s + n * 3, None), 0, length=30, checkpoint=5)[0],
    ],
    ids=["cond", "abs", "while_loop", "checkpoint"],
)
def test_ints_in_a_part_of_a_program(f):
    fast, others = mg.compile(f), [1.0] * 30
    for n in (2, 3002399751580331, -3002399751580331):  # three times these need more digits than a float has
        assert is_same(fast(0.5, others, n), f(0.5, others, n))


def test_under_no_grad_ints_are_ints():
    fast = mg.compile(lambda n: n + 1)
    with mg.no_grad():
        assert [(fast(n), type(fast(n))) for n in (1, 2**52)] == [(2, int), (2**52 + 1, int)]


@pytest.mark.parametrize(
    "argument", [2**53, -(2**60), 10**400, [1, 2**53], np.array([2**60]), np.int64(2**60), [1.0, 2**53]]
)
def test_an_integer_that_may_be_no_float_is_refused(argument):
    fast = mg.compile(lambda n: 1.0)
    with pytest.raises(TraceError, match=r"an integer of 2\*\*53 or more .* give float\(n\), or n.astype"):
        fast(argument)
    assert fast(np.zeros(0, dtype=np.int64)) == 1.0


def test_powers_of_integers():
    with pytest.raises(ValueError, match="negative integer powers are not allowed"):
        mg.compile(lambda a: a**-2)(np.array([2, 3], dtype=np.int16))
    with pytest.raises(TraceError, match=r"whose exponent is an argument .* 2\.0"):
        mg.compile(lambda n: 2**n)(3)
    assert mg.compile(lambda n: 2.0**n)(3) == 8.0


def test_an_int_too_long_for_integers_of_numpy_is_refused_as_numpy_does():
    a = np.array([1, 2], dtype=np.int8)
    for f in (lambda a: a * 300, lambda a: np.maximum(a, 300)):
        for function in (f, mg.compile(f)):
            with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
                function(a)
    fast = mg.compile(lambda a, n: np.maximum(a, n))
    assert fast(a, 2).tolist() == [2, 2]
    with pytest.raises(OverflowError):
        fast(a, 300)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(
    "f",
    [
        lambda a: a * 0.1,
        lambda a: a.sum(),
        lambda a: a[0] + a[1],
        lambda a: np.exp(a),
        lambda a: a.mean(),
        lambda a: a.std(),
        lambda a: sum(a),
        lambda a: mg.dot(list(a), list(a)),
        lambda a: a[0] ** 2,
    ],
)
def test_arithmetic_of_narrow_floats_is_refused(f, dtype):
    with pytest.raises(TraceError, match=r"in float(16|32) .*would differ: write x.astype\(float\)"):
        mg.compile(f)(np.array([0.1, 0.2], dtype=dtype))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_may_be_given(dtype, backend):
    w, a = Value(0.3), np.array([0.1, 0.25, -3.0], dtype=dtype)
    agree(lambda a: (a, a[::2], -a, abs(a), np.maximum(a, 0.1), a.max(), np.clip(a, 0, 1)), a, backend=backend)
    agree(lambda a: (a > 0.1, a <= 0.25, a == 0.1, np.where(a > 0, a, 0.1), np.floor(a), np.sign(a)), a)
    agree(lambda a: (a.astype(float) * 0.1, a * np.array([0.1, 0.2, 0.3]), mg.exp(a[0]), a.tolist()[0] * 0.1), a)
    agree(lambda x: (x, -x, x > 0.1, mg.exp(x), x.astype(float) * 0.1, x.item() * 0.1), dtype(0.1))
    agree(lambda a: (a * w).sum() + w * a[0], a, backend=backend)
    with pytest.raises(TraceError, match=r"write x\.astype"):
        mg.compile(lambda a, t: np.where(a > 0, a, t))(a, 0.1)
    with pytest.raises(TraceError, match=r"write x\.astype"):
        mg.compile(lambda a, t: a > t)(a, 0.1)
    with pytest.raises(TraceError, match=r"write x\.astype"):
        mg.compile(lambda t: t > dtype(0.5))(0.1)
    with pytest.raises(TraceError, match=r"write x\.astype"):
        mg.compile(lambda t: t * a)(0.1)


def test_numbers_of_other_classes():
    class Modulo(int):
        def __mul__(self, other):
            return Modulo(int(self) * int(other) % 7)

    class Metres(float):
        pass

    with pytest.raises(TypeError, match=r"would lose the `__mul__` of Modulo: give int\(x\)"):
        mg.compile(lambda n: n * n)(Modulo(5))
    length = Metres(2.0)
    agree(lambda x: x * x, length)
    length.unit = "m"
    with pytest.raises(TypeError, match=r"would lose the `unit` of Metres: give float\(x\)"):
        mg.compile(lambda x: x * x)(length)
    agree(lambda x: (x * 0.5, x * Value(2.0)), Fraction(1, 3))
    for number in (Fraction(1, 3), Decimal("0.1")):
        with pytest.raises(TraceError, match=r"numbers of the class \w+ are computed with .* give float\(x\)"):
            mg.compile(lambda x: x * x)(number)
    if np.dtype(np.longdouble).itemsize > 8:
        for given in (np.longdouble(1), np.ones(2, dtype=np.longdouble)):
            with pytest.raises(TypeError, match=r"computes in float64, and takes no \w+: give x.astype\(float\)"):
                mg.compile(lambda x: x)(given)


def test_members_of_an_enum_and_bools_of_numpy_are_static():
    class Mode(enum.IntEnum):
        FAST = 1
        SLOW = 2

    fast = mg.compile(lambda x, mode: x * 2.0 if mode is Mode.FAST else x * 3.0)
    assert [fast(1.0, Mode.FAST), fast(1.0, Mode.SLOW)] == [2.0, 3.0]
    fast = mg.compile(lambda x, flag: x * 2.0 if flag else x * 3.0)
    assert [fast(1.0, np.True_), fast(1.0, np.False_)] == [2.0, 3.0]


def test_the_factory_of_a_defaultdict_counts():
    fast = mg.compile(lambda d, x: d["missing"] * x)
    two, three = (lambda: 2.0), (lambda: 3.0)
    assert [fast(defaultdict(two), 5.0), fast(defaultdict(three), 5.0), fast(defaultdict(two), 1.0)] == [
        10.0,
        15.0,
        2.0,
    ]


def test_how_an_array_lies_in_memory_is_part_of_the_key():
    fast = mg.compile(lambda a, x: a.ravel(order="K") * x)
    for array in (np.array([[1.0, 2.0], [3.0, 4.0]]), np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 3)).T):
        assert fast(array, 2.0).tolist() == (array.ravel(order="K") * 2.0).tolist()
    for name in ("flags", "strides", "data", "ctypes"):
        with pytest.raises(TraceError, match=f"the {name} of an array .* outside of the function"):
            mg.compile(lambda a, name=name: (getattr(a, name), a * 2.0)[1])(np.ones(2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_an_array_says_its_dtype(dtype):
    agree(
        lambda a, x: (str(a.dtype), a.itemsize, a.nbytes, (a > 1).dtype == bool, a[0].dtype.kind, x * 2.0),
        np.ones(3, dtype),
        1.0,
    )
    agree(
        lambda a, x: (a.dtype.kind, (a * x).dtype.kind, np.zeros(2, dtype=a.dtype), x * 2.0),
        np.ones(3, dtype),
        Value(1.0),
    )


def test_the_name_of_the_class_of_a_number():
    names = lambda a, b, c, d, v: (v * 2.0, *[type(x).__name__ for x in (a, b, c, d > 1, v)])  # noqa: E731
    assert mg.compile(names)(1.0, 2, np.float32(3), 4.0, Value(1.0))[1:] == ("float", "int", "float32", "bool", "Value")
    with pytest.raises(AttributeError, match="'float' object has no attribute 'sum'"):
        mg.compile(lambda x: x.sum())(1.0)


@pytest.mark.parametrize("number", [2.0, 3, np.float32(0.5), np.uint8(7)])
def test_arrays_of_no_axes(number):
    if not isinstance(number, np.float32):  # a sum of these is rounded to their width, and refused
        agree(lambda a, x: (a.sum(), a.max(), x * 2.0), np.array(number), 1.0)
        agree(
            lambda a, x: (a * 2, a.std(), a.var(), a.mean(), (a > 1).sum(), a.sum().shape, x * 2.0),
            np.array(number),
            1.0,
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_empty_arrays_are_numpys_own(dtype):
    agree(
        lambda a, x: (a * 2, a.sum(), a.prod(), a.std(), a.var(), a.mean(), a.reshape(0, 3), x * 2.0),
        np.zeros(0, dtype),
        1.0,
    )


@pytest.mark.parametrize("dtype", [np.bool_, np.float64, np.float32, np.int8])
def test_empty_arrays_beside_numbers(dtype):
    empty, one = np.zeros(0, dtype), np.array([0.5])
    agree(lambda a, t, n, b: (a * n, a + t, np.maximum(a, t), a * b, b + a, t * 2.0), empty, 0.1, 3, one)
    agree(lambda a, x: ((a * x).shape, a.mean if a.size else 0, x * 2.0), empty, Value(1.0))
    agree(lambda a, t: (np.full_like(a, t).shape, t * 2.0), empty, 0.1)


def test_choices_between_numbers_of_numpy_and_of_python():
    numbers = np.array([0.5, 2.0])
    agree(lambda a, t: (np.where(a > t, a, t), np.maximum(a, t), a.mean(), a.std()), numbers, 1.0)
    agree(lambda a: (a.mean(), a.var(), a.round(), a.sum()), mg.array(numbers))
    agree(lambda a, t: (np.floor(np.concatenate([a, [2.5]])), np.multiply(t, 2.0), np.add(1.0, t)), numbers, 3.0)


def test_an_array_with_numbers_of_three_classes():
    known = np.array([2.5, 1.5])
    agree(lambda x, y: np.stack([x * 2, np.where(y > 1.0, known, 2), known]).sum(axis=0), np.array([0.5, 2.0]), 1.0)


def test_what_is_known_keeps_its_dtype_beside_numbers_of_numpy():
    few = np.array([1, 2, 3], dtype=np.int8)
    agree(lambda a: (a * few, few * a, a + np.int8(100), np.int8(100) + a, a * [1, 2, 3], a * np.array([1, 2, 3])), few)
    agree(lambda a: (few > a, np.where(a > 1, a, few), np.maximum(few, a), a.round(), np.float_power(a, 2)), few)
    agree(lambda n: (n * np.int8(2), np.int8(2) * n, n + np.float64(0.5)), 3)
    agree(lambda a, b: (a * b, np.maximum(a, b), np.where(a > b, a, b)), few, few.astype(np.int64))
    agree(lambda a, b: mg.take([a[0], 3], 0) * b, few, 2)
    agree(lambda a, x: mg.take([a[0], 0.5], 1) * x, few, 2.0)
    agree(lambda a: (a + True, (a > 1) * a, (a > 1) * 3, np.outer(a, a), a @ a, np.concatenate([a, a]) * 2), few)
    agree(lambda a: (a.tolist()[0] * 100, a.item(1) * 100, (a > 1).tolist(), a.max(), a.min() - 2), few)
    for f in (lambda a: np.reciprocal(a), lambda a: a.round(-1), lambda a: np.sqrt(a)):
        with pytest.raises(TraceError):
            mg.compile(f)(few)
    agree(lambda a, x: (a.tolist(), (a * mg.array([x] * 3)).tolist(), (a * mg.array([x] * 3)).item(0)), few, Value(1.0))


def test_an_element_of_several_kinds():
    """Which it is, is not known while a function is traced: the int8 of 0.5 is 0."""
    few = np.array([3, 1, 100], dtype=np.int8)
    for index in (0, 1):
        agree(lambda a, b, i: mg.take([a, b], i) * 2.5, 3, 2.5, index)
        agree(lambda a, i: mg.take([a[0], 300], i) * 2.5, few.astype(np.int64), index)
        agree(lambda a, i: mg.take([a[0], a[1]], i), few, index)
        fast = mg.compile(lambda a, i: mg.take([a[0], 0.5], i))
        assert fast(few.astype(np.int64), index) == [3.0, 0.5][index]
        for other in (0.5, 300, np.int16(7)):
            with pytest.raises(TraceError, match=r"of int(8|16) or of another kind.*x\.astype\(float\)"):
                mg.compile(lambda a, i, other=other: mg.take([a[0], other], i))(few, index)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_square_that_is_0_times_a_large_number(backend):
    """The derivative of x**2 * y by x is 0 at (0, 1e308), though 2 * y is infinite."""
    for f, point in ((lambda x, y: x**2 * y, (0.0, 1e308)), (lambda x, y: x**3 * y, (0.0, 1e308))):
        for derivative in (mg.grad(f, argnums=(0, 1)), mg.value_and_grad(f, argnums=(0, 1))):
            eager = derivative(*point)
            assert eager == mg.compile(derivative, backend=backend)(*point)
            assert np.allclose(np.hstack(eager), 0.0)
        for function in (f, mg.compile(f, backend=backend)):
            x, y = map(Value, point)
            function(x, y).backward()
            assert [x.grad, y.grad] == [0.0, 0.0]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.float32, float])
def test_padding_and_conjugates_keep_the_dtype(dtype):
    numbers = np.array([100, 120, 7], dtype=dtype)
    agree(lambda a: (np.pad(a, 1), np.pad(a, (1, 2), constant_values=(3, 4)), np.pad(a, 1).tolist()), numbers)
    agree(lambda a: (np.pad(a, 1, constant_values=2.5), np.pad(a, 1, "edge"), np.pad(a[0:1].max(), 1)), numbers)
    agree(lambda a: (a.conj(), a.conjugate(), np.conj(a)), numbers)
    agree(lambda a: (a.conj(), np.pad(a, 1)), np.array(5, dtype=dtype))


def test_padding_with_numbers_that_are_not_known():
    floats = np.array([1.5, 2.5])
    agree(lambda a, t: np.pad(a, 1, constant_values=t) * 2.0, floats, 3.5)
    agree(lambda a, x: np.pad(a, 1, constant_values=x) * 2.0, mg.array(floats), Value(3.5))
    agree(lambda a: np.pad(a, 1, mode="mean"), floats)
    agree(lambda a: (np.pad([a, 3.0], 1), mg.array([a]).conj()), Value(1.5))
    for a, constant in ((np.array([1, 2]), 2.5), (floats, Value(2.5))):
        with pytest.raises(TraceError, match=r"Write np\.pad\(x\.astype\(float\), \.\.\.\)"):
            mg.compile(lambda a, t: np.pad(a, 1, constant_values=t))(a, constant)
    with pytest.raises(TraceError, match=r"np\.pad of numbers with others"):
        mg.compile(lambda a: np.pad(a, 1, mode="mean"))(np.array([1, 2]))


def test_functions_with_two_results():
    few = np.array([100, 120, 7], dtype=np.int8)
    agree(lambda a, b: (np.divmod(a, 3), divmod(a, b), np.divmod(7, a)), few, few)
    agree(lambda a, t: (np.divmod(a, t), divmod(a, 2.0), np.divmod(t, 2.0)), np.array([5.5, -2.0]), 2.5)
    agree(lambda a: np.divmod(a, 2.0), mg.array([1.5]))
    agree(lambda a: np.modf(a), np.array([1.5, -2.5]))
    for f in (np.frexp, np.spacing):
        with pytest.raises(TraceError, match="Compute it outside of the function, and pass the result in"):
            mg.compile(f)(np.array([1.5, 2.5]))


def test_the_remainder_of_c_of_integers():
    with pytest.raises(TraceError, match=r"np\.fmod of integers"):
        mg.compile(lambda a: np.fmod(a, 2))(np.array([3, 4]))
    agree(lambda a: np.fmod(a, 2), np.array([3.5, -4.5]))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "asked", [float, int, np.generic, np.number, np.integer, np.floating, np.float64, Real, Integral, Rational]
)
def test_isinstance_of_a_number_of_numpy_says_what_it_says_eagerly(dtype, asked):
    element = lambda x: [x[0], np.exp(float(isinstance(x[0], asked)))]  # noqa: E731
    single = lambda x: [x, np.exp(float(isinstance(x, asked)))]  # noqa: E731
    few = np.array([1, 0, 1], dtype)
    for function, argument in ((element, few), (single, few[0])):
        assert mg.compile(function, backend="numpy")(argument) == function(argument)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float32, np.float64])
def test_derivatives_by_numbers_of_numpy_are_plain_numbers_as_eagerly(dtype, backend):
    x = np.array([3, 4], dtype)
    agree(lambda x: mg.grad(lambda z: z * z * 1.0)(x[0]), x, backend=backend)
    agree(lambda x: mg.grad(lambda z: (z * z).sum() * 1.0)(x), x, backend=backend)
    agree(lambda x: mg.value_and_grad(lambda z: z * z * 1.0)(x[1]), x, backend=backend)


INTEGERS = [np.array([1, 2, 3]), np.array([1, 2, 3], dtype=np.int8)]


def with_item(make, index, item):
    """A function that puts something into an array that it makes of another."""

    def function(a):
        made = make(a)
        made[index] = item(a)
        return made

    return function


@pytest.mark.parametrize("a", [*INTEGERS, np.array([1.0, 2.0, 3.0]), np.array([True, False, True])], ids=str)
@pytest.mark.parametrize("index", [0, [0, 2], slice(1, None)], ids=str)
@pytest.mark.parametrize("item", [1.5, -2.0, 2, True], ids=str)
@pytest.mark.parametrize("make", [np.copy, np.zeros_like, np.ones_like, lambda a: np.full_like(a, 7), lambda a: a * a])
def test_numbers_are_put_into_an_array_as_its_dtype_has_them(make, item, index, a):
    function = with_item(make if make is not np.copy else lambda a: a.copy(), index, lambda a: item)
    expected, found = function(a), mg.compile(function, backend="numpy")(a)
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("a", INTEGERS, ids=lambda a: a.dtype.name)
@pytest.mark.parametrize(
    "change",
    [
        lambda a, b: b.__setitem__(0, a[0] * 1.5),
        lambda a, b: b.__setitem__([0, 1], [a[0] / 2, 1]),
        lambda a, b: b.__setitem__(slice(1), a[:1] * 1.5),
        lambda a, b: b.fill(a[0] / 2),
        lambda a, b: np.add.at(b, [0, 0], 1.5),
        lambda a, b: np.put(b, [0], 1.5),
        lambda a, b: np.full_like(b, a[0] / 2),
    ],
)
def test_a_float_that_an_array_of_integers_would_cut_is_refused(change, a):
    for make in (lambda a: a.copy(), np.zeros_like, np.empty_like):
        fast = mg.compile(lambda a, make=make: [b := make(a), change(a, b)][:1], backend="numpy")
        with pytest.raises(TraceError, match=r"a float put into an array of integers .*Write x.astype\(float\)"):
            fast(a)
        assert fast(a.astype(float))[0].dtype == float


@pytest.mark.parametrize("change", ["b *= 1.5", "b /= b", "b[1:] += 0.5", "b **= 0.5", "np.multiply(b, 0.5, out=b)"])
def test_results_that_an_array_of_integers_has_no_room_for_raise_as_eagerly(change):
    def function(a):
        b = a.copy()
        exec(change, {"b": b, "np": np})
        return b

    fast = mg.compile(function, backend="numpy")
    for a in INTEGERS:
        with pytest.raises(TypeError) as expected:
            function(a)
        with pytest.raises(type(expected.value), match=re.escape(str(expected.value))):
            fast(a)
    assert fast(np.array([1.0, 4.0])).tolist() == function(np.array([1.0, 4.0])).tolist()


def test_arrays_that_are_made_like_others_have_their_dtype():
    function = lambda a: [a * 2, np.full_like(a, 7.5), np.ones_like(a), np.zeros_like(a, dtype=float)]  # noqa: E731
    for a in (*INTEGERS, np.array([0.5, 1.5])):
        expected, found = function(a), mg.compile(function, backend="numpy")(a)
        assert [(x.dtype, x.tolist()) for x in found] == [(x.dtype, x.tolist()) for x in expected]
    halves = mg.compile(lambda a: np.full_like(a, 7) / 2 + a, backend="numpy")(np.array([0.5]))
    assert halves.tolist() == [4.0]
    of_values = mg.compile(lambda a: with_item(np.zeros_like, 0, lambda a: 1.5)(a) + a, backend="numpy")
    assert mg.numbers(of_values(mg.array([1.0, 2.0]))).tolist() == [2.5, 2.0]


def test_a_number_beside_arrays_of_another_shape_raises_as_eagerly():
    for join in (np.concatenate, np.stack, np.vstack):
        function = lambda a, b, join=join: join([a, b])  # noqa: E731
        with pytest.raises(ValueError, match="must") as expected:
            function(np.eye(3), np.float64(2.0))
        with pytest.raises(ValueError, match=re.escape(str(expected.value))):
            mg.compile(function, backend="numpy")(np.eye(3), np.float64(2.0))
