"""The JAX backend: how operands are read, loops that are scans, what JAX itself must be set to, and what it rounds."""

import math
import os
import random
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.jax import jax_backend, jax_checks, jax_functions, jax_reads
from micrograd.compiler.backends.jax.jax_reads import Positions, reader_of
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Loop, Map, Program, Reduction, Segment
from micrograd.engine import primitives
from micrograd.engine.primitive import composite

pytestmark = pytest.mark.slow

NOTHING = np.zeros(0, dtype=np.int64)


def jaxpr(program):
    """What XLA is handed for a program."""
    lowered = jax_backend.Lowered(program, program.inputs)
    given = jnp.zeros(len(program.inputs))
    return str(jax.make_jaxpr(lowered.function(program.outputs))(lowered.constants, given))


class TestReads:
    @settings(max_examples=24)
    @given(st.data())
    def test_what_is_read_is_what_numpy_reads(self, data):
        lengths = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
        arrays = [np.arange(length) + 100.0 * number for number, length in enumerate(lengths)]
        shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
        steps = [data.draw(st.integers(-4, 9)) for _ in shape]
        steady = sum(step * index for step, index in zip(steps, np.indices(shape), strict=True))
        steady = steady - steady.min()
        offset = steady % min(lengths) if data.draw(st.booleans()) else np.minimum(steady, min(lengths) - 1)
        if (steady < min(lengths)).all():
            offset = steady
        array = np.zeros(shape, dtype=np.int64)
        for axis in range(data.draw(st.integers(0, len(shape)))):
            pieces = [data.draw(st.integers(0, len(lengths) - 1)) for _ in range(shape[axis])]
            array = np.maximum(array, np.array(pieces).reshape([-1 if a == axis else 1 for a in range(len(shape))]))
        found = reader_of(array, offset, lengths)(list(map(jnp.asarray, arrays)))
        expected = np.array([arrays[a][o] for a, o in zip(array.flat, offset.flat, strict=True)]).reshape(shape)
        assert np.array_equal(np.broadcast_to(found, shape), expected)

    @pytest.mark.parametrize(
        ("positions", "operations"),
        [
            (np.arange(12).reshape(3, 4), {"slice"}),
            (np.arange(12).reshape(3, 4).T, {"transpose"}),
            (np.arange(24).reshape(4, 6)[:, 1:4], {"slice"}),
            (np.arange(20)[::-3], {"slice", "rev"}),
            (np.full((3, 4), 7), {"slice"}),
            (np.arange(4).repeat(3), {"broadcast_in_dim"}),
            (np.array([0, 1, 2, 10, 11, 12])[:, None] + [0, 5], {"slice"}),
            (np.array([7, 9, 5, 7, 3, 5]), {"gather"}),  # runs that overlap
            (np.array([0, 1, 3, 4, 9]), {"gather"}),
            (np.arange(3)[:, None] + np.arange(4), {"gather"}),  # the windows of a convolution
            (np.array([0, 9, 3])[:, None, None] + np.arange(4)[:, None] + [0, 11], {"gather"}),
        ],
    )
    @pytest.mark.unmeasured
    def test_what_lies_evenly_is_no_gather(self, positions, operations):
        layout = Positions(30)
        layout.add(np.arange(30))
        text = str(jax.make_jaxpr(lambda x: layout.reader(positions)([None, x]))(jnp.zeros(30)))
        found = set(re.findall(r"= (\w+)\[", text))
        assert np.array_equal(
            np.broadcast_to(layout.reader(positions)([None, jnp.arange(30)]), positions.shape), positions
        )
        assert operations <= found
        assert ("gather" in found) == ("gather" in operations)

    def test_rows_that_are_wider_than_what_is_left_of_the_array(self):
        for start in range(4):
            positions = start + 10 * np.arange(3)[:, None] + np.arange(7)
            for length in (start + 27, start + 40):
                found = reader_of(np.zeros_like(positions), positions, [length])([jnp.arange(float(length))])
                assert np.array_equal(found, positions)

    def test_a_few_pieces_are_concatenated_and_many_are_gathered(self):
        for pieces in (2, jax_reads._PIECES, jax_reads._PIECES + 1):
            layout = Positions(pieces)
            arrays = [jnp.zeros(1)]
            for position in range(pieces):
                layout.add(np.array([position]))
                arrays.append(jnp.array([float(position)]))
            read = layout.reader(np.arange(pieces))
            assert read(arrays).tolist() == list(range(pieces))
            assert ("gather" in str(jax.make_jaxpr(read)(arrays))) == (pieces > jax_reads._PIECES)

    def test_what_nothing_wrote_is_zero_and_what_is_empty_is_empty(self):
        layout = Positions(5)
        assert np.broadcast_to(layout.reader(np.arange(5))([jnp.zeros(1)]), 5).tolist() == [0.0] * 5
        assert layout.reader(NOTHING)([jnp.zeros(1)]).shape == (0,)


def looped(kernels, iterations, size, constants=()):
    """A program of one loop, whose inputs are the first 40 layout and whose outputs are all others."""
    outputs = np.arange(40, size)
    return Program(size, (Loop(iterations, tuple(kernels)),), np.arange(40), outputs, constants=constants)


def total(target, *terms, columns=3, iteration_step=3):
    """A sum of single terms, each an access or a product of two."""
    segments = tuple(Segment(1.0, 1, *(term if isinstance(term, tuple) else (term, None))) for term in terms)
    return Reduction(1, columns, Access(target, column_step=1, iteration_step=iteration_step), segments)


def moving(base, iteration_step, column_step=1):
    return Access(base, column_step=column_step, iteration_step=iteration_step)


FIXED, INPUT = Access(2, column_step=1), moving(7, 2)
LOOPS = {
    "fixed and moving": ([total(60, (FIXED, INPUT))], 9, True),
    "the iteration before": ([total(60, (FIXED, moving(57, 3)), INPUT)], 9, True),
    "five iterations before": ([total(60, (FIXED, moving(57, 3)), moving(45, 3))], 9, True),
    "only five iterations before": ([total(60, (FIXED, moving(45, 3)), INPUT)], 9, True),
    "as many iterations before as there are": ([total(60, moving(39, 3), INPUT)], 7, True),
    "the same iteration": (
        [total(60, INPUT, iteration_step=6), total(63, (moving(60, 6), FIXED), iteration_step=6)],
        6,
        True,
    ),
    "the same iteration and the one before": (
        [total(60, INPUT, moving(57, 6), iteration_step=6), total(63, moving(60, 6), moving(57, 6), iteration_step=6)],
        6,
        True,
    ),
    "beside numbers from outside": (
        [total(60, Access(table=np.array([[[57], [4], [59]]]), iteration_step=3), (FIXED, INPUT))],
        9,
        True,
    ),
    "in another order": ([total(60, moving(59, 3, -1), INPUT)], 9, True),
    "backwards": ([total(90, moving(93, -3), moving(38, -2), iteration_step=-3)], 9, True),
    "one iteration": ([total(60, moving(57, 3), INPUT)], 1, True),
    "in place": ([total(60, Access(60, column_step=1), INPUT, iteration_step=0)], 9, False),
    "what the iteration after writes": ([total(60, moving(63, 3), INPUT)], 9, False),
    "a kernel that comes after": (
        [total(60, moving(63, 6), iteration_step=6), total(63, INPUT, iteration_step=6)],
        9,
        False,
    ),
    "what one iteration wrote": ([total(60, Access(63, column_step=1), INPUT)], 9, False),
    "what another iteration wrote at each": ([total(60, moving(54, 2), INPUT)], 9, False),
    "the last iteration alone reads what the loop wrote": ([total(60, moving(36, 4), INPUT)], 7, False),
}


class TestLoops:
    @pytest.mark.parametrize("name", LOOPS)
    def test_a_loop_is_a_scan_where_it_can_be_and_computes_the_same(self, name):
        kernels, iterations, is_scan = LOOPS[name]
        program = looped(kernels, iterations, 120, constants=((45, np.linspace(-1, 1, 15)),))
        numbers = np.random.default_rng(0).uniform(-1, 1, 40)
        expected, _ = backend_of("numpy").run_of(program)(numbers)
        found, _ = backend_of("jax").run_of(program)(numbers)
        assert found == pytest.approx(expected, rel=1e-15, abs=1e-16)
        assert ("scan[" in jaxpr(program)) == is_scan


class TestNumbers:
    def test_a_product_and_a_sum_are_rounded_one_after_the_other(self):
        rng = random.Random(0)
        x, y, z = ([rng.gauss(0, 1) for _ in range(3000)] for _ in range(3))
        fast = mg.compile(lambda x, y, z: [a * b + c for a, b, c in zip(x, y, z, strict=True)], backend="jax")
        assert fast(x, y, z) == [a * b + c for a, b, c in zip(x, y, z, strict=True)]

    def test_a_quotient_by_one_number_is_a_quotient(self):
        x = [float(number) for number in range(1, 300)]
        fast = mg.compile(lambda x, y: [a / y for a in x], backend="jax")
        for y in (3.0, 49.0, 0.1):
            assert fast(x, y) == [a / y for a in x]

    @pytest.mark.parametrize("name", ["log1p", "atanh", "sinh", "cosh", "exp2", "expm1", "tanh", "exp", "log"])
    def test_digits_that_functions_of_xla_lose(self, name):
        primitive = mg.engine.primitive.PRIMITIVES[name]
        low, high = primitive.domain[0]
        numbers = np.linspace(max(low, -700) + 1e-3, min(high, 700) - 1e-3, 4001)
        numbers = np.concatenate([numbers, np.clip(np.linspace(-0.999, 0.999, 4001), numbers[0], numbers[-1])])
        found = np.asarray(jax.jit(jax_functions.forward(primitive))(numbers)).tolist()
        expected = [primitive.forward(number) for number in numbers.tolist()]
        worst = max(abs(a - b) / math.ulp(b) for a, b in zip(found, expected, strict=True))
        assert worst <= 8

    @pytest.mark.unmeasured
    def test_sinc_is_curved_at_zero_though_its_formula_is_flat_there(self):
        sinc = jax_functions.differentiable(mg.engine.further_primitives.sinc)
        assert jax.grad(jax.grad(sinc))(0.0) == pytest.approx(-(math.pi**2) / 3, rel=1e-15)
        assert jax.grad(jax.grad(jax_functions.forward(mg.engine.further_primitives.sinc)))(0.0) == 0.0
        assert jax.grad(jax_functions.differentiable(primitives.abs))(0.0) == 0.0

    @pytest.mark.unmeasured
    @pytest.mark.filterwarnings("ignore:JAX calls primitive")  # said once in a process, perhaps in another test
    @pytest.mark.parametrize("primitive", mg.engine.further_primitives.TABLE.values(), ids=lambda p: p.name)
    def test_derivatives_are_those_of_the_table(self, primitive):
        """To second order, against micrograd's own; at kinks, too, and where an operand needs none."""
        points = np.array([[0.0, 0.0, 1.0], [0.75, -1.25, 2.0], [1.5, 1.5, 3.0]])[:, : len(primitive.derivatives)]
        function = jax_functions.differentiable(primitive)
        for operand, rule in enumerate(primitive.derivatives):
            both = jax.vmap(jax.value_and_grad(jax.grad(function, argnums=operand), argnums=operand))(*points.T)
            for point, *found in zip(points.tolist(), *both, strict=True):
                try:
                    values = [Value(number) for number in point]
                    first = mg.gradient(primitive(*values), values[operand], create_graph=True)
                    second = mg.gradient(first, values[operand]) if isinstance(first, Value) else 0.0
                except (ArithmeticError, ValueError):
                    continue
                expected = [float(getattr(first, "data", first)), second]
                assert list(map(float, found)) == pytest.approx(expected, rel=1e-11, abs=1e-13), (point, rule)

    def test_numbers_with_the_operators_of_the_table(self):
        x, y = (jax_functions.Number(jnp.array([number])) for number in (2.0, -3.0))
        results = [x + y, 1 - x, x * 2, y / x, 1 / x, -y, abs(y), x**2, 2**x, x < y, x > y, x <= 2, x >= 3, x == 2]
        expected = [-1, -1, 4, -1.5, 0.5, 3, 3, 4, 4, 0, 1, 1, 0, 1]
        assert [result.array.item() for result in results] == expected


@pytest.fixture
def doubled(own_registry):
    """A primitive that JAX cannot compute; what it is called with is in its list."""
    calls = []

    def forward(x):
        calls.append(x)
        if x == 3.0:
            raise LookupError("no three")
        if x < 0:
            raise ValueError("negative")
        return 2 * x

    made = mg.primitive("doubled_on_jax", "d", forward, lambda g, out, x: 2.0 * g)
    return made, calls


class TestPrimitivesOfOnesOwn:
    def test_one_without_a_formula_is_called_back_and_a_warning_says_so_once(self, doubled):
        primitive, calls = doubled
        x = Value(4.0)
        fast = mg.compile(lambda: primitive(x) * primitive(x + 1), backend="jax")
        with pytest.warns(RuntimeWarning, match="JAX calls primitive doubled_on_jax back in Python") as caught:
            assert mg.gradient(fast(), x) == 2 * 10.0 + 8.0 * 2
        assert [warning.filename for warning in caught] == [__file__]
        assert sorted(calls) == [4.0, 5.0]
        again = mg.compile(lambda: primitive(x) + 1, backend="jax")
        assert again().data == 9.0  # a second warning would be an error here

    @pytest.mark.filterwarnings("ignore:JAX calls primitive")
    def test_what_it_raises_comes_through_or_is_nan(self, doubled):
        primitive, _ = doubled
        fast = mg.compile(lambda x: primitive(x) + 1, backend="jax")
        assert fast(1.0) == 3.0
        with pytest.raises(LookupError, match="no three"):
            fast(3.0)
        with pytest.raises(ValueError, match="negative"):
            fast(-1.0)
        assert fast(2.0) == 5.0

    def test_one_with_a_formula_is_compiled(self, own_registry):
        made = mg.primitive(
            "soft_on_jax", "s", composite(lambda on, x: x / (1 + on.abs(x))), lambda g, out, x: g / (1 + abs(x)) ** 2
        )
        fast = mg.compile(lambda x: made(x) * 2, backend="jax")  # a warning would be an error here
        x = Value(-3.0)
        assert mg.gradient(fast(x), x) == 2 / 16


class TestSettingsOfJax:
    def test_without_float64_the_error_says_what_to_write(self):
        fast = mg.compile(lambda x: mg.sin(x), backend="jax")
        assert fast(1.0) == pytest.approx(math.sin(1.0), rel=1e-15)
        expected = re.escape('jax.config.update("jax_enable_x64", True)')
        jax.config.update("jax_enable_x64", False)
        try:
            for use in (lambda: fast(1.0), lambda: mg.compile(mg.sin, backend="jax")(1.0)):
                with pytest.raises(RuntimeError, match=expected):
                    use()
            assert not jax.config.jax_enable_x64  # nobody set it
        finally:
            jax.config.update("jax_enable_x64", True)
        assert fast(1.0) == pytest.approx(math.sin(1.0), rel=1e-15)

    def test_jax_with_its_own_settings_is_refused(self):
        program = "import micrograd as mg; mg.compile(lambda x: x * x, backend='jax')(3.0)"
        environment = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert run.returncode == 1
        assert "RuntimeError: micrograd computes in float64, which JAX has switched off" in run.stderr

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
    def test_a_forked_child_is_refused_and_does_not_hang(self):
        program = """
import os, warnings
import micrograd as mg
warnings.simplefilter("ignore")
fast = mg.compile(lambda x: x * x, backend="jax")
print(fast(3.0), flush=True)
if not (child := os.fork()):
    try:
        fast(3.0)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(fast(4.0))
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
        first, refused, last = run.stdout.splitlines()
        assert (first, last) == ("9.0", "16.0")
        assert refused.startswith("JAX does not work in a process that was forked")

    def test_a_process_that_is_not_the_one_that_loaded_jax_is_told_by_its_number(self, monkeypatch):
        monkeypatch.setattr(jax_checks, "_process", -1)
        with pytest.raises(RuntimeError, match="JAX does not work in a process that was forked from one that has loa"):
            mg.compile(mg.sin, backend="jax")(1.0)

    def test_without_jax_the_error_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jax", None)
        monkeypatch.delitem(sys.modules, "micrograd.compiler.backends.jax.jax_backend")
        with pytest.raises(ImportError, match=r"^the jax backend needs jax: pip install jax$"):
            mg.compile(mg.sin, backend="jax")


class TestRuns:
    def test_a_program_runs_in_its_buffer_and_writes_nothing_else(self):
        sin = Map(primitives.sin, 1, 2, Access(4, column_step=1), (Access(0, column_step=1),))
        executable = backend_of("jax").run_of(Program(8, (sin,), constants=((2, np.array([7.0])),)))
        executable.buffer[:] = [0.5, 1.0, 7.0, 3.0, 0.0, 0.0, 9.0, 10.0]
        executable.run()
        assert executable.buffer.tolist() == pytest.approx([0.5, 1, 7, 3, math.sin(0.5), math.sin(1), 9, 10])

    def test_with_the_buffer_of_others_it_is_compiled_when_it_is_called(self):
        square = Reduction(1, 1, Access(1), (Segment(1.0, 1, Access(0), Access(0)),))
        program = Program(2, (square,), inputs=np.array([0]), outputs=np.array([1]))
        executable = backend_of("jax").run_of(program, np.zeros(9))
        assert executable(np.array([3.0]))[0].tolist() == [9.0]

    def test_constants_are_an_argument_of_what_is_compiled(self):
        weights = np.random.default_rng(0).normal(size=(40, 30))
        fast = mg.compile(lambda x: (weights @ np.asarray(x)).sum(), backend="jax")
        x = [Value(float(number)) for number in range(30)]
        assert fast(x).data == pytest.approx((weights @ np.arange(30.0)).sum(), rel=1e-12)
        lowered = jax_backend.Lowered(fast.program(x).program, np.arange(30))
        assert lowered.constants.size >= 1200
