"""Compiled functions as files of C: the numbers, what a reader finds in them, and what is refused."""

import math
import random
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import micrograd as mg
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.primitive import composite
from tests import strategies
from tests.compiler.c_files import STRICT, WATCHED, Built, needs_cc, shared_library
from tests.folders import ROOT
from tests.test_suite import NAMES, eager, tiny

pytestmark = [needs_cc, pytest.mark.slow]


@pytest.fixture
def built(tmp_path):
    """A function that exports a compiled function, and compiles the file."""

    def build(function, *arguments, flags=(), **options):
        fast = function if hasattr(function, "export") else mg.compile(function)
        name = options.pop("file", "f_0")
        return Built(fast.export(tmp_path / f"{name}.c", *arguments, **options), flags)

    return build


def of_values(function, *arguments):
    """The value and the gradients by the numbers of the arguments, eager."""
    given = [mg.Value(x) if np.ndim(x) == 0 else [mg.Value(number) for number in x] for x in arguments]
    result = function(*given)
    leaves = [leaf for item in given for leaf in (item if isinstance(item, list) else [item])]
    return result.data, list(mg.gradient(result, leaves))


def agrees(function, built, *arguments):
    file = built(function, *arguments)
    value, gradients = of_values(function, *arguments)
    found, slopes = file.both(*arguments)
    assert file.value(*arguments)[0] == pytest.approx(value, rel=1e-12, abs=1e-300)
    assert found[0] == pytest.approx(value, rel=1e-12, abs=1e-300)
    np.testing.assert_allclose(slopes, gradients, rtol=1e-12, atol=1e-13)
    return file


def test_the_value_and_the_gradients_of_an_expression(built):
    file = agrees(lambda x, y: mg.tanh(x * y) + mg.sigmoid(x) - y, built, 0.7, -0.4)
    assert file.macros == {"INPUTS": 2, "OUTPUTS": 1, "GRADIENTS": 2, "VALUE_WORK": 0, "WORK": 0}


def test_sums_whose_products_stand_elsewhere_are_computed_by_several_functions(built):
    """In the loop there are a product and then a number, thrice, and a number and then a product."""

    def f(w, x, y, z):
        h, c, total = [0.1] * 6, [0.2] * 6, 0.0
        for _ in range(20):
            h = [mg.tanh(a * state + b) for a, state, b in zip(x, h, y, strict=True)]
            c = [mg.sigmoid(a * new + state) for a, new, state in zip(y, h, c, strict=True)]
            p = [mg.sin(a * state + b) for a, state, b in zip(z, c, w, strict=True)]
            total += sum(mg.exp(a * state + b) for a, state, b in zip(w, p, z, strict=True))
        return total

    agrees(f, built, *(np.linspace(0.1, 0.5 + number, 6) for number in range(4)))


def test_passes_that_are_disabled_are_not_run(built):
    def loss(xs):
        return mg.mean([mg.sin(2.0 * x) * mg.cos(x) + x * x for x in xs])

    points = [0.25 * (number % 50) - 3.0 for number in range(3000)]
    fused, apart = (built(mg.compile(loss, disable=names), points, file=f"f_{len(names)}") for names in ([], ["fuse"]))
    assert fused.source.count("for (") < apart.source.count("for (")
    assert fused.value(points)[0] == pytest.approx(loss(points), rel=1e-12)
    assert apart.value(points)[0] == pytest.approx(loss(points), rel=1e-12)


POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.3, 2.5, -7.25, 1e-310, 1e-8, 30.0, 800.0, -800.0, 1e200]
ODD = [*POINTS, math.inf, -math.inf, math.nan]


@pytest.fixture(scope="module")
def primitives(tmp_path_factory):
    """A file for each primitive, all of which are compiled together."""
    folder = tmp_path_factory.mktemp("primitives")
    paths = {}
    for name, primitive in TABLE.items():
        operands = [0.75, 1.25, 0.5][: len(primitive.derivatives)]
        fast = mg.compile(lambda *operands, primitive=primitive: primitive(*operands))
        paths[name] = fast.export(folder / f"p_{name}_.c", *operands)
    (folder / "all.c").write_text("".join(f'#include "p_{name}_.c"\n' for name in TABLE))
    library = shared_library(str(folder / "all.c"))
    return {name: Built(of_name, library=library) for name, of_name in paths.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TABLE))
def test_each_primitive(name, primitives):
    """At kinks and at numbers that are not finite, too: where Python raises, the number is not; else it is Python's."""
    primitive, file = TABLE[name], primitives[name]
    count = len(primitive.derivatives)
    points = ODD if count == 1 else POINTS[:9] + ODD[-3:]
    for operands in np.stack(np.meshgrid(*[points] * count), -1).reshape(-1, count).tolist()[:1500]:
        if name == "lower_power" and operands[0] == -math.inf:
            continue  # which no rule asks for; its formula on floats gives 0 there
        code, (found,) = file("value_checked", operands)
        try:
            expected = float(primitive.forward(*operands))
        except (ArithmeticError, ValueError, TypeError):  # lower_power gives a complex number
            assert not math.isfinite(found), operands
            assert code == 1
            continue
        if math.isfinite(expected):
            assert code == 0, operands
            assert found == pytest.approx(expected, rel=2e-15, abs=5e-324), operands
            assert math.copysign(1, found) == math.copysign(1, expected), operands
        else:
            assert (code, math.isfinite(found)) == (1, False), operands
    for operands in ([0.75, 1.25, 1.5], [1.5, 0.25, 2.5], [0.125, 3.0, 1.75]):
        try:
            value, gradients = of_values(primitive, *operands[:count])
        except ValueError:  # outside of its domain
            continue
        found, slopes = file.both(operands[:count])
        assert found[0] == pytest.approx(value, rel=1e-14)
        np.testing.assert_allclose(slopes, gradients, rtol=1e-13)


def swing(x, v, k):
    """A pendulum, by the midpoint rule."""
    h = 0.01
    for _ in range(300):
        middle, speed = x + 0.5 * h * v, v - 0.5 * h * k * mg.sin(x)
        x, v = x + h * speed, v - h * k * mg.sin(middle)
    return x * x + v * v


def test_a_loop_of_the_program_is_one_in_the_file(built):
    file = agrees(swing, built, 1.0, 0.5, 2.0)
    assert re.search(r"for \(int step = 0; step < (299|300); step\+\+\) \{", file.source)
    assert len(file.source) < 10_000


def register(x, y):
    """A number that goes through three positions, and what is read of them later."""
    a, b, c = x, y, x * y
    for _ in range(40):
        a, b, c = b, c, 0.5 * a + 0.25 * b + 0.125 * mg.cos(c)
    return a + 2.0 * b + 3.0 * c


def crossing(x, y):
    """A loop whose last state a second one begins with; the first one's start is read again."""
    a, b = x * 1.5, y * 0.5
    start = a
    for _ in range(30):
        a, b = mg.sin(b), a + 0.1 * b
    c, d = b, a
    for _ in range(30):
        c, d = d - 0.1 * c, mg.tanh(c) + 0.01 * start
    return c * d + a - b


def several_at_a_time(x, y):
    """A state of six numbers, which is the result."""
    state = [x * k + y for k in range(6)]
    for _ in range(25):
        state = [0.9 * mg.sin(state[k - 1]) + 0.05 * state[k] for k in range(6)]
    return sum(state)


@pytest.mark.parametrize("function", [register, crossing, several_at_a_time])
def test_the_state_of_a_loop(function, built):
    file = agrees(function, built, 0.7, -0.4)
    if function is crossing:  # each step reads single numbers of the one before; elsewhere they lie further back
        assert "double work" not in file.source[: file.source.index("int f_0_value_checked")]


def test_a_state_that_is_the_result(built):
    def f(x, y):
        for _ in range(50):
            x, y = x + 0.01 * y, y - 0.01 * mg.sin(x)
        return [x, y]

    file = built(f, 1.0, 0.5)
    assert "double work" not in file.source[: file.source.index("int f_0_value_checked")]
    assert file.value([1.0, 0.5]).tolist() == pytest.approx(f(1.0, 0.5), rel=1e-14)


def test_twenty_thousand_similar_numbers_are_a_loop(built):
    x = np.linspace(-1.0, 1.0, 20_000)
    file = built(lambda x: np.sum(np.tanh(x) * x), x)
    assert len(file.source) < 60_000
    assert file.value(x)[0] == pytest.approx(float((np.tanh(x) * x).sum()), rel=1e-12)


def irregular(x, operations=80):
    """Sums and products of numbers here and there, with hardly two alike."""
    pick, numbers = random.Random(5), list(x)
    for _ in range(operations):
        count = pick.choice([2, 2, 3, 12])
        terms = [pick.choice(numbers) * pick.choice(numbers) * pick.choice([1.0, -1.0, 0.5]) for _ in range(count)]
        total = sum(terms) if pick.random() < 0.5 else terms[0] - terms[1]
        function = pick.choice([mg.sin, mg.tanh, mg.cos, lambda n: mg.maximum(n, 0.25), lambda n: 0.3 * n])
        numbers.append(function(total / (1.0 + count)))
    return sum(numbers[-20:])


@pytest.mark.slow
@pytest.mark.parametrize(("many", "precision"), [(100, "float64"), (100, "float32"), (30_000, "float64")])
def test_an_irregular_program_is_statements_or_a_table(many, precision, built, monkeypatch):
    """Thousands are in several functions; tens of thousands would keep a compiler busy for minutes."""
    monkeypatch.setattr("micrograd.compiler.backends.c.words._MANY", many)
    monkeypatch.setattr("micrograd.compiler.backends.c.words._MANY_BESIDE_LOOPS", 100)
    x = [0.3, -0.7, 1.1, 0.9, -1.3]
    file = built(irregular, x, precision=precision)
    value, slopes = of_values(irregular, x)
    single = precision == "float32"
    of_table = f"static void f_0_run(int count, const int *words, {'float' if single else 'double'} *numbers)"
    assert (of_table in file.source) == (many == 100)
    assert ("    f_0_part_2(" in file.source) == (many == 30_000)
    assert file.source.count("\n", file.source.index("\nvoid f_0_value")) < 600
    found, gradients = file.both(x)
    assert found[0] == pytest.approx(value, rel=1e-4 if single else 1e-12)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-3 if single else 1e-10, atol=1e-4 if single else 1e-12)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_what_an_irregular_program_repeats_is_in_its_table_once(precision, built, monkeypatch):
    """Ten products and their functions are an entry each, with steps."""
    monkeypatch.setattr("micrograd.compiler.backends.c.words._MANY", 10)
    monkeypatch.setattr("micrograd.compiler.backends.c.words._MANY_BESIDE_LOOPS", 10)

    def f(x):
        a, b = [mg.sin(x[k] * x[k + 1] + x[2 * k]) for k in range(10)], [x[5] * x[7], mg.tanh(x[6]) + x[0], x[1]]
        return sum(a) * b[0] - b[1] * mg.cos(b[2] * a[3]) + a[7] / x[9]

    x = [0.25 + 0.125 * k for k in range(20)]
    file = built(f, x, precision=precision)
    (words,) = re.findall(r"f_0_run\(\d+, (\w+), \w+\);", file.source[file.source.index("void f_0_value(") :])[:1]
    table = re.search(rf"const int {words}\[\d+\] = \{{(.*?)\}}", file.source, re.DOTALL)[1]
    assert re.search(r",0,10,-\d+,", "".join(table.split()))
    value, slopes = of_values(f, x)
    found, gradients = file.both(x)
    rel = 1e-4 if precision == "float32" else 1e-12
    assert found[0] == pytest.approx(value, rel=rel)
    np.testing.assert_allclose(gradients, slopes, rtol=rel, atol=rel)


@pytest.mark.slow
def test_a_loop_before_an_irregular_program(built, monkeypatch):
    """Where as many numbers are computed alone as in much larger programs."""
    monkeypatch.setattr("micrograd.compiler.backends.c.words._MANY_BESIDE_LOOPS", 100)
    monkeypatch.setattr("micrograd.compiler.passes.reroll._MANY", 100)

    def f(x):
        a, b = x[0], x[1]
        for _ in range(30):
            a, b = a + 0.1 * b, b - 0.1 * mg.sin(a)
        return irregular([a, b, *x[2:]])

    x = [0.3, -0.7, 1.1, 0.9, -1.3]
    file = built(f, x)
    value, slopes = of_values(f, x)
    found, gradients = file.both(x)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-10, atol=1e-12)
    assert "for (int step = 0" in file.source
    assert "f_0_run(" in file.source


@pytest.mark.parametrize("name", ["tanh", "log", "log1p"])
def test_functions_of_many_numbers(built, name):
    """Without calls, so that compilers make vectors of them: within three units in the last place."""
    small = [5e-324, 1e-310, 1e-100, 1e-16, 1e-8, 0.5**0.5, 1.0, 2.0**0.5, 19.1, 22.0, 1e22, 1.7e308]
    x = np.array([0.0173 * number + 1e-9 for number in range(1, 900)] + small)
    if name != "log":
        x = np.concatenate([x, -x[x < 1.0] if name == "log1p" else -x])
    file = built(lambda x: getattr(mg, name)(x), x)
    assert f"{name}_of_many(" in file.source
    expected = np.array([getattr(math, name)(number) for number in x.tolist()])
    assert (np.abs(file.value(x) - expected) <= 3 * np.spacing(np.abs(expected))).all()
    special = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, -1.0, -2.0, 1.0] * 4)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            built(lambda x: getattr(mg, name)(x), special, file="special").value(special), getattr(np, name)(special)
        )


def test_lines_are_short_and_indented(built):
    file = built(swing, 1.0, 0.5, 2.0)
    assert max(map(len, (file.source + file.header).splitlines())) <= 120
    depth = 0
    for line in file.source[file.source.index("void f_0_value") :].splitlines():
        depth -= line.strip().startswith("}")
        if line and not line.startswith(" " * (4 * depth + 1)):
            assert len(line) - len(line.lstrip()) == 4 * depth
        depth += line.rstrip().endswith("{")


def test_short_sums_are_those_of_the_compiled_function_bit_for_bit(built):
    def f(x):
        terms = [x[i] * x[i + 1] - x[i] / 3.0 for i in range(4)]  # sum() compensates from Python 3.12 on
        return terms[0] + terms[1] + terms[2] + terms[3] + (x[0] - (x[1] - x[2]))

    file = built(f, [0.1, 0.7, 1.3, 2.9, -0.3])
    fast = mg.compile(f)
    for seed in range(200):
        x = np.random.default_rng(seed).normal(size=5).tolist()
        assert file.value(x)[0] == fast(x) == f(x)


def test_a_network_has_its_parameters_in_a_table_or_as_an_argument(built):
    random.seed(2)
    net = mg.nn.MLP(3, [5, 1])
    fast = mg.compile(lambda x: net(x))
    x = [mg.Value(0.3), mg.Value(-0.2), mg.Value(0.9)]
    result = fast(x)
    file = built(fast, x)
    assert file.value([0.3, -0.2, 0.9])[0] == pytest.approx(result.data, rel=1e-14)
    assert "layers.0.neurons.0.w to layers.0.neurons.4.w, 5 x 3" in file.source
    given = built(fast, x, parameters="argument", file="given")
    assert given.macros["PARAMETERS"] == len(net.parameters())
    table = re.search(r"f_0_parameters\[\d+\] = \{(.*?)\}", file.source, re.DOTALL)[1]
    numbers = [float(text) for text in table.replace("\n", " ").split(",") if text.strip()]
    value, slopes = given.both([0.3, -0.2, 0.9], parameters=numbers)
    assert value[0] == pytest.approx(result.data, rel=1e-14)
    assert sorted(slopes[3:]) == pytest.approx(sorted(mg.gradient(fast(x), net.parameters())), rel=1e-12)
    np.testing.assert_array_equal(slopes, file.both([0.3, -0.2, 0.9])[1])
    doubled, _ = given.both([0.3, -0.2, 0.9], parameters=[2 * number for number in numbers])
    assert doubled[0] != value[0]


def test_a_parameter_that_no_result_depends_on(built):
    w = mg.Value(0.5)
    file = built(lambda x: mg.scan(lambda s, t: (mg.tanh(x), s * t), x, [x, w, 0.1])[0], 0.5)
    assert file.value(0.25) == pytest.approx([math.tanh(0.25)])


def test_gradients_stand_in_the_order_that_the_comment_says(built):
    scale, shift = mg.Value(3.0), mg.Value(0.25)
    x, y = [mg.Value(2.0), mg.Value(5.0)], mg.Value(7.0)
    fast = mg.compile(lambda x, y: scale * x[0] * x[1] + shift * y)
    file = built(fast, x, y)
    _, slopes = file.both([2.0, 5.0, 7.0])
    said = re.findall(r"^       \[([\d.]+)\] +by (\w+)", file.source, re.MULTILINE)
    expected = {"x": [15.0, 6.0], "y": [0.25], "scale": [10.0], "shift": [7.0]}
    for positions, name in said:
        first, _, last = positions.partition("..")
        assert slopes[int(first) : int(last or first) + 1].tolist() == expected.pop(name)
    assert not expected


def test_several_results_take_their_gradients_as_seeds(built):
    file = built(lambda x, y: [x * y, mg.sin(x), y], mg.Value(0.5), mg.Value(2.0))
    found, slopes = file.both([0.5, 2.0], seeds=[1.0, 10.0, 100.0])
    np.testing.assert_allclose(found, [1.0, math.sin(0.5), 2.0], rtol=1e-15)
    np.testing.assert_allclose(slopes, [2.0 + 10 * math.cos(0.5), 0.5 + 100.0], rtol=1e-15)


def test_a_hessian(built):
    fast = mg.compile(mg.hessian(lambda x: sum(x[i] ** 2 * mg.exp(x[i + 1]) for i in range(4))))
    x = np.array([0.3, -0.2, 0.5, 1.1, 0.7])
    file = built(fast, x)
    np.testing.assert_allclose(file.value(x).reshape(5, 5), fast(x), rtol=1e-12, atol=1e-15)


def test_float32(built):
    file = built(swing, 1.0, 0.5, 2.0, precision="float32")
    assert "double" not in file.source
    fast = mg.compile(swing, precision="float32")
    assert file.value([1.0, 0.5, 2.0])[0] == pytest.approx(fast(1.0, 0.5, 2.0), rel=1e-4)
    other = built(
        lambda x: sum([mg.gelu(n) * mg.sigmoid(n) ** 2.5 for n in x]), [0.1] * 9, precision="float32", file="g"
    )
    assert other.value([0.25] * 9)[0] == pytest.approx(9 * mg.gelu(0.25) * mg.sigmoid(0.25) ** 2.5, rel=1e-6)


def residuals(x):
    return [x[i] * x[i + 1] - mg.cos(x[i]) for i in range(len(x) - 1)] + [x[0] ** 2]


def table_of(source, name):
    text = re.search(rf"^const int {name}\[\d+\] = \{{(.*?)\}}", source, re.DOTALL | re.MULTILINE)[1]
    return [int(number) for number in text.replace("\n", " ").split(",") if number.strip()]


def test_a_sparse_jacobian_has_its_pattern_as_tables(built):
    x = np.linspace(0.5, 1.5, 7)
    fast = mg.compile(mg.sparse_jacobian(residuals))
    file = built(fast, x)
    expected = fast(x)
    assert table_of(file.source, "f_0_row_starts") == expected.indptr.tolist()
    assert table_of(file.source, "f_0_columns") == expected.indices.tolist()
    assert "outputs[0..12], the result, a sparse matrix of 7 x 7: row r has" in file.header
    np.testing.assert_allclose(file.value(x), expected.data, rtol=1e-13)


def test_a_value_and_two_sparse_matrices(built):
    def energy(x):
        return sum(x[i] ** 2 * mg.exp(x[i + 1]) for i in range(len(x) - 1))

    def f(x):
        return energy(x), mg.sparse_jacobian(residuals)(x), mg.sparse_hessian(energy, triangle="lower")(x)

    x = np.linspace(0.5, 1.5, 5)
    fast = mg.compile(f)
    file = built(fast, x)
    value, jacobian, hessian = fast(x)
    np.testing.assert_allclose(file.value(x), [value, *jacobian.data, *hessian.data], rtol=1e-12)
    assert table_of(file.source, "f_0_2_columns") == hessian.indices.tolist()


def test_a_primitive_with_c_code_of_its_own(built, own_registry):
    cube = mg.primitive("cube", "cube", lambda x: x * x * x, lambda g, out, x: g * 3 * x * x, c="x * x * x")
    steps = mg.primitive(
        "steps", "steps", lambda low, high: high - low, None, None, c="double size = high - low;\nreturn size;"
    )
    file = agrees(lambda x, y: cube(x) * y + steps(x, y), built, 1.5, 2.0)
    assert "return x * x * x;" in file.source
    assert "static double f_0_steps(double low, double high)" in file.source
    single = built(lambda x: cube(x), 1.5, precision="float32", file="g")
    assert single.value([1.5])[0] == 1.5**3


def test_a_primitive_of_python_alone_is_refused_by_its_name(tmp_path, own_registry):
    odd = mg.primitive("odd_one", "odd", lambda x: x + 1.0, lambda g, out, x: g)
    fast = mg.compile(lambda x: odd(x) * 2.0)
    with pytest.raises(ValueError, match=r'the primitive odd_one is Python code only.*c="x \* x \* x"'):
        fast.export(tmp_path / "f_0.c", 1.0)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="the C code of primitive q must be a str, not int: 3"):
        mg.primitive("q", "q", lambda x: x, c=3)


def test_formulas_and_primitives_of_c_functions(built, own_registry):
    mg.primitive("cube", "cube", lambda x: x * x * x, lambda g, out, x: g * 3 * x * x, c="x * x * x")
    both = mg.primitive("both", "both", composite(lambda on, x: 2.0**x + on.cube(x)), None)
    length = mg.primitive("length", "length", math.hypot, None, None, c="sqrt(x * x + y * y)")
    file = built(lambda x, y: both(x) + length(x, y), 1.5, 2.0)
    assert file.value([1.5, 2.0])[0] == 2.0**1.5 + 1.5**3 + 2.5


def test_a_large_program_names_the_primitive_too(tmp_path, own_registry):
    odd = mg.primitive("odd_one", "odd", lambda x: x + 1.0, lambda g, out, x: g)
    fast = mg.compile(lambda x: mg.mean([odd(n * 2.0) for n in x]))
    with pytest.raises(ValueError, match="the primitive odd_one is Python code only"):
        fast.export(tmp_path / "f_0.c", np.ones(20_000), gradients=False)


def test_constants_of_all_kinds(built):
    def f(x):
        return [mg.where(x < 0, math.nan, x), mg.maximum(x, -math.inf), mg.minimum(x, 1e300) * 0.1]

    for precision in ("float64", "float32"):
        file = built(f, 1.5, precision=precision, file=f"g_{precision}")
        np.testing.assert_allclose(file.value([2.5]), [2.5, 2.5, 0.25], rtol=1e-6)
        assert math.isnan(file.value([-2.5])[0])


def test_results_that_are_constants_or_the_arguments(built):
    def f(x, mode):
        return [x[1], 1.0, x[0], *[0.0] * 20, 3.0, x[1], mg.sin(x[0])]

    file = built(f, [1.0, 2.0], "a text, which is no number")
    assert file.value([0.5, 0.75]).tolist() == f([0.5, 0.75], "")
    few = built(lambda x: [x, 7.5, np.float64(2.5), mg.Value(1.5), x * 2.0], 1.0, file="g")
    assert few.value([0.5]).tolist() == [0.5, 7.5, 2.5, 1.5, 1.0]
    of_class = built(mg.compile(dict), file="h", a=1.0, b=2.0)
    assert of_class.value([0.5, 0.75]).tolist() == [0.5, 0.75]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2x", "letters of English"),
        ("a-b", "letters of English"),
        ("_a", "letters of English"),
        ("über", "letters of English"),
        ("while", "no word of the language"),
        ("class", "no word of the language"),
        ("sinf", "no name that math.h has"),
        ("y0", "no name that math.h has"),
        ("outputs", "no name that the file has for something else"),
    ],
)
def test_a_name_that_c_cannot_have_is_refused(name, reason, tmp_path):
    fast = mg.compile(lambda x: x * 2.0)
    with pytest.raises(ValueError, match=f"a function of C cannot be called '{name}': it takes {reason}"):
        fast.export(tmp_path / f"{name}.c", 1.0)
    with pytest.raises(ValueError, match=reason):
        fast.export(tmp_path / "fine.c", 1.0, name=name)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(ValueError, match=r"a file of C, whose name ends in \.c, not .*fine\.h"):
        mg.compile(lambda x: x * 2.0).export(tmp_path / "fine.h", 1.0)
    with pytest.raises(ValueError, match="computes nothing from its arguments"):
        mg.compile(lambda x: "text").export(tmp_path / "fine.c", 1.0)
    with pytest.raises(mg.TraceError):
        mg.compile(lambda x: x if x > 0 else -x).export(tmp_path / "fine.c", 1.0)
    with pytest.raises(FileNotFoundError):
        mg.compile(lambda x: x * 2.0).export(tmp_path / "missing" / "fine.c", 1.0)
    assert list(tmp_path.iterdir()) == []


def test_only_files_of_its_own_are_overwritten(tmp_path):
    fast, path = mg.compile(lambda x: x * 2.0), tmp_path / "fine.c"
    assert fast.export(path, 1.0) == [str(path), str(tmp_path / "fine.h")]
    fast.export(path, 1.0)
    header = tmp_path / "fine.h"
    before = path.read_text()
    header.write_text("int mine;")
    with pytest.raises(ValueError, match=r"fine\.h was not written by export.*overwrite=True"):
        mg.compile(lambda x: x * 3.0).export(path, 1.0)
    assert (header.read_text(), path.read_text()) == ("int mine;", before)
    fast.export(path, 1.0, overwrite=True)
    assert "int mine" not in header.read_text()


@pytest.mark.parametrize("there_before", [False, True])
def test_both_files_are_written_or_neither(there_before, tmp_path):
    fast, path = mg.compile(lambda x: x * 2.0), tmp_path / "fine.c"
    if there_before:
        (tmp_path / "fine.h").write_text("/* Written by micrograd: fine.h, an old one */")
    path.mkdir()  # which no file can replace
    with pytest.raises(OSError, match="fine"):
        fast.export(path, 1.0)
    assert (tmp_path / "fine.h").exists() is there_before
    if there_before:
        assert "an old one" in (tmp_path / "fine.h").read_text()


def test_labels_stay_in_comments(built):
    evil = '*/ int main(void) { system("rm"); } /* ??/ \\\n*/ é'
    w = mg.Value(2.0, label=evil, requires_grad=False)
    box = {evil: [mg.Value(1.0), mg.Value(3.0)], "int": mg.Value(0.5), "sin": mg.Value(0.25)}
    f = mg.compile(
        lambda double, row, f_0_power: w * double * sum(box[evil]) ** row + box["int"] * f_0_power - box["sin"]
    )
    file = built(f, 1.5, 2.0, 0.5)
    assert file.value([1.5, 2.0, 0.5])[0] == 2.0 * 1.5 * 16.0 + 0.25 - 0.25
    assert 'system("' not in re.sub(r"/\*.*?\*/", "", file.source, flags=re.DOTALL)


def test_arguments_of_many_kinds(built):
    def f(points, *, scale, offset):
        return scale * sum(a * b for a, b in points) + offset["low"] * offset["high"]

    fast = mg.compile(f)
    points, offset = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], {"low": 0.5, "high": 2}
    file = built(fast, points, scale=np.float64(3.0), offset=offset)
    assert re.search(r"\[0\.\.5\] +points, 3 x 2$", file.source, re.MULTILINE)
    assert file.value(points, [3.0, 0.5, 2.0])[0] == f(points, scale=3.0, offset=offset)
    plain = built(mg.compile(max_of), 1.0, 2.0, file="g")
    assert plain.value([1.0, 2.0])[0] == 2.0


def max_of(*numbers):
    return mg.maximum(*numbers)


def test_a_number_that_is_taken_by_its_index(built):
    table = [mg.Value(1.5), mg.Value(-2.0), mg.Value(0.25)]
    file = built(lambda i, x: mg.take(table, i) * x, 1, 2.0)
    assert [file.value([float(i), 2.0])[0] for i in (-3, -1, 0, 2)] == [3.0, 0.5, 3.0, 0.5]
    assert [file("value_checked", [i, 2.0])[0] for i in (-4.0, 3.0, 0.5, math.nan)] == [1, 1, 1, 1]


def test_a_large_program_takes_its_work_array_from_the_caller(built):
    x = np.linspace(-1.0, 1.0, 400)
    file = built(lambda x: mg.exp(mg.mean(np.tanh(x) ** 2)), x)
    assert file.macros["VALUE_WORK"] >= 400
    assert "double *work)" in file.header
    assert file.value(x)[0] == pytest.approx(math.exp((np.tanh(x) ** 2).mean()), rel=1e-13)
    small = built(lambda x: mg.exp(mg.mean(np.tanh(x) ** 2)), x[:40], work="argument", file="small")
    assert small.macros["VALUE_WORK"] >= 40
    assert small.value(x[:40])[0] == pytest.approx(math.exp((np.tanh(x[:40]) ** 2).mean()), rel=1e-13)


def run(folder, *sources, flags=(), given=""):
    """What a program of these sources prints."""
    command = ["cc", *STRICT, *flags, *sources, "-o", "program", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run(["./program"], cwd=folder, input=given, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_program_of_the_page_reads_lines_and_prints_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    code, main, promised = (
        re.search(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
        for language in ("python", "c", "text")
    )
    exec(compile(code, "export.md", "exec"), {"__name__": "__main__"})
    (tmp_path / "main.c").write_text(main)
    given = re.search(r"printf '(.*?)' \|", text)[1].replace("\\n", "\n")
    assert run(tmp_path, "main.c", "product.c", given=given) == promised


MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "g.h"
int main(void)
{
    REAL *inputs = malloc(sizeof(REAL) * G_INPUTS), *outputs = malloc(sizeof(REAL) * G_OUTPUTS);
    GRADIENTS
    for (int i = 0; i < G_INPUTS; i++) {
        inputs[i] = 0.25 * (i + 1);
    }
    CALLS
    for (int i = 0; i < G_OUTPUTS; i++) {
        printf("%.9g\\n", outputs[i]);
    }
    free(inputs);
    free(outputs);
    return 0;
}
"""


def products(x):
    """Products of nine rows with eleven others."""
    return mg.mean([mg.sin(mg.dot(a, b) * 1e-6) for a in x[:9] for b in x[9:]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        *(
            (name, "float64")
            for name in ("swing", "crossing", "register", "network", "hessian", "sparse", "large", "products")
        ),
        *((name, "float32") for name in ("swing", "large", "products")),
    ],
)
def test_sanitizers_find_nothing(name, precision, tmp_path, monkeypatch):
    """Each array is just as long as the header says, and the compiler watches each access."""
    random.seed(3)
    net = mg.nn.MLP(3, [20, 20, 1], activation="tanh")
    numbers = [0.25, 0.5, 0.75]
    functions = {
        "swing": (swing, numbers),
        "crossing": (crossing, numbers[:2]),
        "register": (register, numbers[:2]),
        "network": (lambda *x: net(x), numbers),
        "hessian": (mg.hessian(lambda x: mg.exp(x[0] * x[1]) * x[2] ** 2), [numbers]),
        "sparse": (mg.sparse_jacobian(residuals), [numbers]),
        "large": (lambda x: mg.exp(mg.mean(np.tanh(x) ** 2)), [[0.25 * (k + 1) for k in range(400)]]),
        "products": (products, [[[0.25 * (19 * row + k + 1) for k in range(19)] for row in range(20)]]),
    }
    function, arguments = functions[name]
    paths = mg.compile(function).export(tmp_path / "g.c", *arguments, precision=precision)
    header = Path(paths[1]).read_text()
    real = "float" if precision == "float32" else "double"
    main = MAIN.replace("REAL", real)
    work = {
        kind: f", malloc(sizeof({real}) * {kind})" if re.search(rf"{kind} [1-9]", header) else ""
        for kind in ("G_WORK", "G_VALUE_WORK")
    }
    calls = f"g_value(inputs, outputs{work['G_VALUE_WORK']});"
    if "void g(" in header:
        main = main.replace("GRADIENTS\n", f"{real} *gradients = malloc(sizeof({real}) * G_GRADIENTS);\n")
        calls += f" if (g_checked(inputs, outputs, gradients{work['G_WORK']})) return 1; free(gradients);"
    (tmp_path / "main.c").write_text(main.replace("GRADIENTS\n", "\n").replace("CALLS", calls))
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    watched = *WATCHED, "-fsanitize=address", "-g", "-fno-omit-frame-pointer"
    printed = [float(line) for line in run(tmp_path, "main.c", "g.c", flags=watched).split()]
    expected = function(*(np.array(x) if isinstance(x, list) else x for x in arguments))
    expected = (
        expected.data
        if name == "sparse"
        else [getattr(expected, "data", expected)]
        if np.ndim(expected) == 0
        else expected
    )
    np.testing.assert_allclose(
        printed, np.ravel(np.asarray(expected, dtype=float)), rtol=1e-4 if real == "float" else 1e-8
    )


def test_threads_call_it_at_the_same_time(built):
    """It has no numbers of its own but constants, and no memory but what is on the stack, or the caller's."""
    file = built(swing, 1.0, 0.5, 2.0, work="argument")
    kept = re.findall(r"^ *static (?!const |inline |double f_0_|int f_0_|void f_0_).*", file.source, re.MULTILINE)
    assert not kept
    assert "alloc" not in file.source
    points = [(1.0 + number / 8, 0.5, 2.0) for number in range(16)]
    expected = [file.both(point) for point in points]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            np.testing.assert_array_equal(
                [*pool.map(lambda point: file.both(point)[1], points)], [e[1] for e in expected]
            )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sizes"), [("runge_kutta", (300,)), ("lstm", (2, 128, 4))])
def test_many_steps_have_60_kb(name, sizes, tmp_path, monkeypatch):
    """Three hundred of Runge and Kutta's; and a network that reads 128 letters, which are in the file."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "benchmarks")
    program = tiny(name, sizes)
    numbers, given = program.data()
    fast = mg.compile(lambda weights: program.scalars(weights, given))
    source, _ = fast.export(tmp_path / "steps.c", mapped(mg.Value, numbers))
    assert Path(source).stat().st_size < 60_000


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_programs_of_the_suite(name, tmp_path, monkeypatch):
    """Their numbers, also where the compiler watches each access, and a page of the stack at most."""
    monkeypatch.syspath_prepend(ROOT / "tests" / "benchmarks")
    monkeypatch.chdir(tmp_path)  # where some compilers write how large the stack is
    program = tiny(name)
    numbers, given = program.data()
    fast = mg.compile(lambda weights: program.scalars(weights, given))
    paths = fast.export(tmp_path / "f_0.c", mapped(mg.Value, numbers))
    inputs = flat(numbers)
    expected, slopes = eager(program)
    for flags in (WATCHED, ("-fstack-usage",)):
        file = Built(paths, flags)
        value, gradients = file.both(inputs)
        assert file.value(inputs)[0] == pytest.approx(expected, rel=1e-12)
        assert value[0] == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradients, slopes, rtol=1e-11, atol=1e-12)
    lines = [line for path in tmp_path.glob("*.su") for line in path.read_text().splitlines()]
    if not lines:
        pytest.skip("this C compiler does not measure stacks")
    sizes = {line.split()[0].rpartition(":")[2]: int(line.split()[1]) for line in lines}
    called = max(sizes.pop("f_0"), sizes.pop("f_0_value"))
    assert 0 < called + sum(sorted(sizes.values())[-3:]) <= 4096  # one function calls another, which may call two more


def mapped(function, nested):
    if isinstance(nested, dict):
        return {name: mapped(function, part) for name, part in nested.items()}
    return [mapped(function, part) for part in nested] if isinstance(nested, list) else function(nested)


def flat(nested):
    if isinstance(nested, dict):
        nested = list(nested.values())
    if not isinstance(nested, (list, tuple, np.ndarray)):
        return [float(nested)]
    return [number for part in nested for number in flat(part)]


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=strategies.programs())
def test_any_program(program, tmp_path):
    file = Built(mg.compile(program).export(tmp_path / "f_0.c", *program.inputs))
    inputs = [mg.Value(number) for number in program.inputs]
    result = program(*inputs)
    value, slopes = file.both(program.inputs)
    assert file.value(program.inputs)[0] == value[0]
    assert value[0] == pytest.approx(float(getattr(result, "data", result)), rel=1e-12, abs=1e-300)
    expected = list(mg.gradient(result, inputs)) if isinstance(result, mg.Value) else [0.0] * len(inputs)
    compiled = mg.compile(program)(*inputs)
    of_program = list(mg.gradient(compiled, inputs)) if isinstance(compiled, mg.Value) else expected
    np.testing.assert_allclose(slopes, of_program, rtol=1e-12, atol=1e-14 * max(map(abs, [1.0, *expected])))
