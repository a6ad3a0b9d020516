"""Backends: the contract, which ones there are, the cache on disk, what may be missing, special numbers."""

import math
import re
import subprocess
import sys
from functools import cache
from types import ModuleType

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm import object_cache
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.backends.shared.choice import BACKENDS, Entry, _warn_without_llvmlite, backend_of
from micrograd.compiler.ir.entries import EQUAL, LESS, LESS_EQUAL
from micrograd.engine.primitive import CONSTANT, LEAF, PRIMITIVES
from tests.locks import is_held


def run(folder, program):
    """What a process of its own prints."""
    environment = {"MICROGRAD_CACHE": str(folder), "PATH": "/usr/bin", "PYTHONWARNINGS": "error"}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.slow
def test_the_library_comes_into_memory_when_the_passes_are_done(tmp_path):
    program = """
import sys, micrograd as mg

def f(x):
    print("llvmlite.binding" in sys.modules)
    return x * x

fast = mg.compile(f, backend="llvm")
fast(3.0)
print("llvmlite.binding" in sys.modules)
"""
    *before, after = run(tmp_path, program).split()
    assert before == ["False"]
    assert after == "True"


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/micrograd"),
        ("linux", {}, "/home/me/.cache/micrograd"),
        ("darwin", {}, "/home/me/Library/Caches/micrograd"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/micrograd/cache"),
    ],
)
def test_the_cache_is_where_caches_are(monkeypatch, platform, environment, expected):
    monkeypatch.delenv("MICROGRAD_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert object_cache.folder().as_posix() == expected


@pytest.fixture
def new_machine(tmp_path, monkeypatch):
    """What makes the compiler of this process forget what it has compiled; its cache is empty at first."""
    from micrograd.compiler.backends.llvm import llvm_machine

    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))
    return lambda: monkeypatch.setattr(llvm_machine, "_machine", None)


def gradient_of_several_kernels():
    w = Value(3.0)
    mg.compile(lambda x: mg.exp(w * x) + sum(w * i for i in range(9)), backend="llvm")(2.0).backward()
    assert w.grad == pytest.approx(2 * math.exp(6) + 36)


def test_a_processor_whose_features_are_not_known_is_compiled_for(monkeypatch, new_machine):
    def unknown():
        raise RuntimeError("no features")

    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", unknown)
    new_machine()
    gradient_of_several_kernels()


class TestLockOfLlvm:
    def test_it_is_held_while_a_kernel_is_looked_up_and_compiled(self, new_machine):
        from micrograd.compiler.backends.llvm import llvm_machine

        new_machine()
        machine, answers = llvm_machine.machine(), []

        def make():
            answers.append(is_held(llvm_machine._lock))
            raise KeyError("no such kernel")

        with pytest.raises(KeyError, match="no such kernel"):
            machine.addresses({"nothing": make})
        assert answers == [True]
        assert not is_held(llvm_machine._lock)


@pytest.fixture
def _without_llvmlite(monkeypatch):
    """As if llvmlite were not installed, and nothing had been said of it."""
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    for module in ("llvm_backend", "llvm_machine"):  # the one that is chosen, and the one that imports it
        monkeypatch.delitem(sys.modules, f"micrograd.compiler.backends.llvm.{module}", raising=False)
    _warn_without_llvmlite.cache_clear()
    yield
    _warn_without_llvmlite.cache_clear()


@pytest.mark.usefixtures("_without_llvmlite")
def test_without_llvmlite_auto_takes_numpy_and_says_so_once():
    w = Value(3.0)
    with pytest.warns(UserWarning, match="llvmlite is not installed, so compiled functions run on NumPy"):
        fast = mg.compile(lambda x: w * x)
    again = mg.compile(lambda x: w * x)  # a second warning would be an error here
    for function in (fast, again):
        function(2.0).backward()
    assert w.grad == 4.0


TRAINED = Value(1.0)


@pytest.mark.usefixtures("_without_llvmlite")
@pytest.mark.parametrize(
    "use",
    [
        lambda: mg.compile(lambda x: x),
        lambda: mg.compile()(lambda x: x),
        lambda: mg.fit(lambda x: TRAINED * x, [1.0], mg.optim.SGD([TRAINED], 0.1), compile=True),
    ],
)
def test_the_warning_is_about_the_users_own_line(use):
    with pytest.warns(UserWarning, match="llvmlite is not installed") as caught:
        use()
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, use.__code__.co_firstlineno)]


@pytest.mark.usefixtures("_without_llvmlite")
def test_without_llvmlite_its_backend_is_refused_and_says_what_to_install():
    with pytest.raises(ImportError, match=r"the llvm backend needs llvmlite: pip install llvmlite$"):
        mg.compile(lambda x: x, backend="llvm")
    with pytest.raises(ImportError, match="the llvm backend needs llvmlite"):
        mg.fit(lambda x: x, [1.0], mg.optim.SGD([Value(1.0)], 0.1), compile="llvm")


def test_without_numpy_or_64_bits_the_error_says_what_is_needed(monkeypatch):
    def compiled(said):
        with pytest.raises(ImportError, match=said):
            mg.compile(lambda x: x)
        with pytest.raises(ImportError, match=said):
            mg.fit(lambda x: x, [1.0], mg.optim.SGD([Value(1.0)], 0.1), compile=True)

    monkeypatch.delitem(sys.modules, "micrograd.compiler.calling.function", raising=False)
    monkeypatch.setattr(np, "intp", np.int32)  # as in Pyodide
    compiled("compiling needs a Python of 64 bits, and this one has 32: leave mg.compile and compile= out")
    monkeypatch.setitem(sys.modules, "numpy", None)
    compiled("compiling needs NumPy: pip install numpy llvmlite")


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -30.0, 30.0, 700.0, -740.0, 800.0, 1e-300, -1e-300, 5e-324, 1e300, -1e300]
SPECIAL += [math.inf, -math.inf, math.nan]
TABLE = [p for p in PRIMITIVES.values() if p not in (LEAF, CONSTANT) and p.domain]
TABLE += [LESS, LESS_EQUAL, EQUAL]


# Up to this number, a result may be another one
LEAST = {"numpy": 5e-324, "llvm": 5e-324, "jax": sys.float_info.min}


def forward(primitive, inputs):
    """What the primitive gives, or None where it raises."""
    try:
        return float(primitive.forward(*inputs))
    except (ArithmeticError, ValueError):
        return None


def special_operands(primitive, backend):
    """Columns of special numbers, as many rows as the primitive has operands."""
    arity = len(primitive.domain)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[SPECIAL] * min(arity, 2), indexing="ij")])
    operands = grid if arity < 3 else np.concatenate([np.arange(grid.shape[1])[None] % 2, grid])
    if backend == "jax":  # XLA takes numbers below the normal floats for 0
        operands = operands[:, ((operands == 0) | (np.abs(operands) >= sys.float_info.min)).all(axis=0)]
    return operands


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, None], ids=["one number", "a vector"])
def test_each_primitive_at_special_numbers(width, backend):
    """NaN where the primitive raises. On JAX one program has all primitives."""
    if backend == "jax" and width == 1:
        pytest.skip("XLA takes seconds, and its code for one number is that for a vector")
    groups = [TABLE] if backend == "jax" else [[primitive] for primitive in TABLE]
    for group in groups:
        operands = [special_operands(primitive, backend)[:, :width] for primitive in group]
        for primitive, inputs, outputs in zip(group, operands, results_of(group, operands, backend), strict=True):
            for numbers, found in zip(inputs.T.tolist(), outputs, strict=True):
                right, what = forward(primitive, numbers), (primitive.name, numbers)
                if right is None:  # what raises eagerly is infinite or NaN, which is found out
                    assert not math.isfinite(found), what
                    continue
                assert found == pytest.approx(right, rel=1e-13, abs=max(1e-320, LEAST[backend]), nan_ok=True), what
                if right == 0:
                    assert math.copysign(1, found) == math.copysign(1, right), what


def results_of(primitives, operands, backend):
    """What one program makes of the operands of each primitive."""
    from micrograd.compiler.ir.program import Access, Map, Program

    kernels, numbers, outputs, nothing = [], [], [], np.zeros(0, dtype=np.int64)
    for primitive, rows in zip(primitives, operands, strict=True):
        start, (arity, count) = sum(map(len, numbers)), rows.shape
        accesses = [Access(start + index * count, column_step=1) for index in range(arity + 1)]
        kernels.append(Map(primitive, 1, count, accesses[-1], tuple(accesses[:-1])))
        numbers += [rows.ravel(), np.zeros(count)]
        outputs.append(slice(start + arity * count, start + (arity + 1) * count))
    buffer = np.concatenate(numbers)
    executable = backend_of(backend).run_of(
        Program(len(buffer), tuple(kernels), nothing, nothing, nothing, slice(0, 0), ())
    )
    executable.buffer[:] = buffer
    executable.run()
    return [executable.buffer[output] for output in outputs]


def applied(primitive, numbers, backend):
    """What a kernel makes of numbers."""
    return results_of([primitive], [np.array([numbers])], backend)[0].tolist()


def test_exp_is_that_of_python_to_a_unit_in_the_last_position(backend):
    numbers = [index * 0.0123 for index in range(-800, 800)] + [-700.3, 333.3, 709.7, 1e-9, -1e-300]
    for edge in (-0.4999, 0.4999):  # half-way between two powers of 2 a polynomial is least exact
        numbers += [(power + edge) * math.log(2) + 1e-5 * index for power in range(-9, 9) for index in range(99)]
    for x, found in zip(numbers, applied(PRIMITIVES["exp"], numbers, backend), strict=True):
        assert abs(found - math.exp(x)) <= math.ulp(math.exp(x)), x


def test_exp_underflows_to_nothing_and_overflows_to_infinity(backend):
    exp = PRIMITIVES["exp"]
    assert applied(exp, [-746.0, -800.0, -1e300, -math.inf], backend) == [0.0] * 4
    assert applied(exp, [709.79, 710.0, 1e300, math.inf], backend) == [math.inf] * 4
    denormal = [-744.4, -740.0, -710.0]
    expected = pytest.approx(list(map(math.exp, denormal)), rel=1e-12, abs=LEAST[backend])
    assert applied(exp, denormal, backend) == expected


_SMALL = [5e-324, 1e-310, 2.3e-308, 1e-160, 1e-16, 1e-8, 1e-4, 0.01]
_LARGE = [19.0, 19.1, 22.0, 300.0, 1e5, 99_999.0, 1e5 + 0.1, 1e22, 1e300, 1.7e308]
_GRID = [0.0173 * number + 1e-9 for number in range(1, 1200)]
# Half-way between powers of two, and near multiples of pi / 2, the formulas are least exact
_EDGES = [(number + 0.5) * math.log(2) * (1 + 1e-15 * more) / 2 for number in range(30) for more in range(-9, 9)]
_EDGES += [number * math.pi / 2 * (1 + 1e-15 * more) for number in range(1, 200) for more in range(-3, 4)]
_EDGES += [1.0, *(1.0 + sign * 2.0**-power for power in range(1, 53) for sign in (-1.0, 1.0)), 0.5**0.5, 2.0**0.5]


@cache
def _right(name, x):
    """The true result, rounded once."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(150 if abs(x) < 1e9 else 1200):  # multiples of pi are taken away from 1e308
        return float(getattr(mpmath, name)(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tanh", "log", "log1p", "sin", "cos"])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])  # XLA has others
@pytest.mark.unmeasured
def test_functions_are_those_of_python_to_three_units_in_the_last_position(name, backend):
    numbers = [*_SMALL, *_LARGE, *_GRID, *_EDGES]
    if name != "log":
        numbers += [-x for x in numbers if name != "log1p" or x < 1.0]
    for x, found in zip(numbers, applied(PRIMITIVES[name], numbers, backend), strict=True):
        right = _right(name, x)
        assert abs(found - right) <= 3 * math.ulp(right), x


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_functions_at_zeros_and_at_what_is_not_finite(backend):
    inf, nan = math.inf, math.nan
    expected = {
        "tanh": ([0.0, -0.0, inf, -inf, nan], [0.0, -0.0, 1.0, -1.0, nan]),
        "log": ([1.0, 0.0, -0.0, inf, -inf, -1.0, nan], [0.0, -inf, -inf, inf, nan, nan, nan]),
        "log1p": ([0.0, -0.0, -1.0, -2.0, inf, -inf, nan], [0.0, -0.0, -inf, nan, inf, nan, nan]),
        "sin": ([0.0, -0.0, inf, -inf, nan], [0.0, -0.0, nan, nan, nan]),
        "cos": ([0.0, -0.0, inf, -inf, nan], [1.0, 1.0, nan, nan, nan]),
    }
    for name, (numbers, right) in expected.items():
        for count in (1, 9):  # alone, and in a vector
            with np.errstate(all="ignore"):
                found = applied(PRIMITIVES[name], numbers * count, backend)
            assert list(map(repr, found)) == list(map(repr, right * count)), name


@pytest.mark.parametrize("exponent", [-0.5, -1.5, -2.5, 1.7, 4.0])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])  # XLA has a pow of its own
def test_powers_of_one_exponent(exponent, backend):
    """Those of squares are Python's, and others within two units in the last place; and so alone as among others."""
    from micrograd.compiler.ir.program import Access, Map, Program

    power = PRIMITIVES["pow"]
    squares = [float(root**2) for root in range(1, 30)]
    others = [math.exp(0.37 * number) for number in range(-150, 150)]
    special = [0.0, -0.0, -2.0, -4.0, math.inf, -math.inf, math.nan, 1e-320, 1e-250, 1e250, 1e300]

    def powers(numbers):
        count = len(numbers)
        operands = Access(0, column_step=1), Access(count)
        kernel = Map(power, 1, count, Access(count + 1, column_step=1), operands)
        executable = backend_of(backend).run_of(Program(2 * count + 1, (kernel,)))
        executable.buffer[: count + 1] = [*numbers, exponent]
        executable.run()
        return executable.buffer[count + 1 :].tolist()

    if exponent in (-0.5, -1.5):  # so exact that they are the same
        assert powers(squares) == [power.forward(x, exponent) for x in squares]
    for x, found in zip(others, powers(others), strict=True):
        right = power.forward(x, exponent)
        assert abs(found - right) <= 2 * math.ulp(right), x
    for x in special:
        (alone,), (*_, among) = powers([x]), powers([*others[:11], x])
        assert among == pytest.approx(alone, rel=1e-15, nan_ok=True)
        try:
            right = power.forward(x, exponent)
        except (ArithmeticError, ValueError):
            assert not math.isfinite(alone)
        else:
            assert alone == pytest.approx(right, rel=1e-15, nan_ok=True)


def test_a_lorentzian_far_out(backend):
    numbers = [0.9e150, 1e150, 1.1e150, -1e155, 1e161]
    found = applied(PRIMITIVES["lorentzian"], numbers, backend)
    assert found == pytest.approx([1 / x / x for x in numbers], rel=1e-9, abs=LEAST[backend])


def sum_of_logs(x, y):
    """A function with an output, and with gradients that are known."""
    return mg.log(x) * 3 + mg.log(y)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_makes_runs_from_numbers_to_outputs_and_gradients(name):
    program = mg.compile(sum_of_logs, backend="numpy").program(Value(1.0), Value(2.0)).program
    run = backend_of(name).run_of(program)
    for x, y in ((2.0, 0.5), (0.25, 8.0)):
        outputs, gradients = run(np.array([x, y]))
        assert (outputs.dtype, gradients.dtype) == (float, float)
        assert outputs.tolist() == pytest.approx([3 * math.log(x) + math.log(y)], rel=1e-14)
        assert gradients.tolist() == pytest.approx([3 / x, 1 / y], rel=1e-14)
    outputs, gradients = run(np.array([-1.0, 1.0]))
    assert not np.isfinite(outputs).all()  # and nothing is raised


@pytest.fixture
def _third(monkeypatch):
    """A backend that is one function, and has no buffer that stays."""
    numpy = backend_of("numpy")
    module = ModuleType("third_backend")
    module.BACKEND = Backend("third", lambda program: lambda numbers: numpy.run_of(program)(numbers))
    monkeypatch.setitem(sys.modules, "third_backend", module)
    monkeypatch.setitem(BACKENDS, "third", Entry("third_backend", "third"))


@pytest.mark.usefixtures("_third")
def test_a_backend_that_is_one_function_runs_compiled_functions():
    x, y = Value(2.0), Value(0.5)
    fast = mg.compile(sum_of_logs, backend="third")
    fast(x, y).backward()
    assert (x.grad, y.grad) == (1.5, 2.0)
    assert "compile" in fast.explain()
    assert fast.values() == []
    several = mg.compile(lambda x: [x * x, x * 3], backend="third")
    assert mg.gradient(several(x)[1], x) == 3.0
    with mg.no_grad():
        assert fast(1.0, 1.0) == 0.0


@pytest.mark.usefixtures("_third")
def test_a_backend_without_a_buffer_says_so_where_one_is_needed():
    no_buffer = "keeps numbers in the buffer of a program, and the third backend has none"
    with pytest.raises(ValueError, match=rf"^program\(\) {no_buffer}"):
        mg.compile(sum_of_logs, backend="third").program(1.0, 2.0)
    with pytest.raises(ValueError, match=f"^fit {no_buffer}"):
        mg.fit(mg.exp, [1.0], mg.optim.SGD([Value(1.0)], 0.1), compile="third")


@pytest.mark.usefixtures("_third")
@pytest.mark.parametrize("name", ["cuda", "", None, ["numpy"]])
def test_an_unknown_name_is_answered_with_those_there_are(name):
    *others, third = map(repr, ["auto", *BACKENDS])
    expected = re.escape(f"backend must be {', '.join(others)} or {third}, not {name!r}")
    with pytest.raises(ValueError, match=expected):
        mg.compile(sum_of_logs, backend=name)


def test_a_backend_whose_package_is_missing_names_it(monkeypatch):
    monkeypatch.setitem(BACKENDS, "third", Entry("no_such_package_of_a_backend", "third-package"))
    with pytest.raises(ImportError, match=r"^the third backend needs third-package: pip install third-package$"):
        mg.compile(sum_of_logs, backend="third")


def test_the_names_of_backends_are_those_they_are_listed_by():
    assert [backend_of(name).name for name in BACKENDS] == list(BACKENDS)
    assert backend_of("auto") is backend_of("llvm")


REPLACED = """
import micrograd as mg
tan = mg.primitive("tan", "tan", lambda x: 2.0 * x, lambda gradient, out, x: 2.0 * gradient, replace=True)
for backend in ("numpy", "llvm"):
    fast = mg.compile(mg.value_and_grad(tan), backend=backend)
    print(mg.compile(tan, backend=backend)(mg.Value(3.0)).data, fast(3.0))
try:
    mg.compile(tan, backend="llvm").export("never_written.c", mg.Value(3.0))
except ValueError as error:
    print("Python code only" in str(error))
"""


@pytest.mark.slow
def test_a_primitive_that_takes_the_place_of_one_of_the_library_keeps_its_own_function(tmp_path):
    """Before a backend is loaded: it finds its functions by names."""
    assert run(tmp_path, REPLACED).splitlines() == ["6.0 (6.0, 2.0)"] * 2 + ["True"]
