"""Native functions by their address: for SciPy, Numba, Cython, ctypes and cffi, from threads, and what is refused."""

import ctypes
import gc
import importlib.util
import math
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import LowLevelCallable
from scipy.integrate import nquad, quad
from scipy.ndimage import generic_filter

import micrograd as mg
from tests.compiler.c_files import needs_cc

ARRAYS = "void (double *, double *, double *)"


def called(native, inputs, outputs, gradients=0):
    """What a function of arrays gives."""
    given, results, slopes = (np.array(inputs, dtype=float), np.zeros(outputs), np.zeros(gradients))
    native.pointer(*(array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for array in (given, results, slopes)))
    return results.tolist(), slopes.tolist()


def test_quad_and_nquad_call_it():
    scale = mg.Value(2.0)
    one = mg.compile(lambda x: mg.exp(-x * x) * scale).address(0.0)
    assert (one.signature, int(one)) == ("double (double)", one.address)
    assert repr(one) == f"<native double (double) at {one.address:#x}>"
    assert quad(LowLevelCallable(one.pointer), -9.0, 9.0)[0] == pytest.approx(2 * math.sqrt(math.pi), rel=1e-10)
    two = mg.compile(lambda x, y: x * y**2 + mg.sin(x)).address(1.0, 2.0)
    assert two.signature == "double (int, double *)"
    found = nquad(LowLevelCallable(two.pointer), [[0.0, 1.0], [0.0, 3.0]])[0]
    assert found == pytest.approx(9 / 2 + 3 * (1 - math.cos(1.0)), rel=1e-10)


def test_a_filter_of_images_calls_it():
    native = mg.compile(lambda x: mg.tanh(x[0]) + x[1] * x[2]).address(
        [1.0, 2.0, 3.0], signature="int (double *, intptr_t, double *, void *)"
    )
    image = np.random.default_rng(0).normal(size=(6, 7))
    found = generic_filter(image, LowLevelCallable(native.pointer), size=(1, 3))
    expected = generic_filter(image, lambda x: math.tanh(x[0]) + x[1] * x[2], size=(1, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_arrays_with_gradients_by_the_inputs_and_by_what_is_read():
    w = mg.Value(3.0)
    native = mg.compile(lambda x: w * x[0] * x[1]).address([1.0, 1.0], signature=ARRAYS)
    values, slopes = called(native, [2.0, 5.0], 1, 3)
    assert values == [30.0]
    assert sorted(slopes) == [6.0, 10.0, 15.0]
    several = mg.compile(lambda x, y: [x + y, x * y, x]).address(1.0, 2.0)
    assert several.signature == ARRAYS
    assert called(several, [2.0, 5.0], 3) == ([7.0, 10.0, 2.0], [])


@pytest.mark.parametrize("size", [50, 5000])
def test_threads_may_call_at_the_same_time(size):
    native = mg.compile(lambda x: mg.mean(np.tanh(x) * x)).address(np.zeros(size))
    rows = np.random.default_rng(1).normal(size=(16, size))

    def run(row):
        pointer = row.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        return [native.pointer(size, pointer) for _ in range(100)]

    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(run, rows)]
    expected = (np.tanh(rows) * rows).mean(axis=1)
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 100, axis=1), rtol=1e-12)


def test_the_pointer_keeps_it_alive():
    pointer = mg.compile(lambda x: mg.exp(x) * 2.0).address(0.5).pointer
    gc.collect()
    assert pointer(1.0) == pytest.approx(2 * math.e, rel=1e-15)


def test_a_solver_calls_it_by_cffi():
    cffi = pytest.importorskip("cffi")
    native = mg.compile(lambda x: mg.cos(x) - x).address(1.0)
    ffi = cffi.FFI()
    function = ffi.cast("double (*)(double)", native.address)
    x, before = 1.0, 0.0
    while abs(x - before) > 1e-15:  # the secant method
        x, before = x - function(x) * (x - before) / (function(x) - function(before)), x
    assert x == pytest.approx(0.7390851332151607, rel=1e-14)


def test_a_loop_of_numba_calls_it():
    numba = pytest.importorskip("numba")
    bell = mg.compile(lambda x: mg.exp(-x * x)).address(0.5).pointer
    pair = mg.compile(lambda x: [x[0] * x[1], mg.sin(x[0])]).address([0.5, 1.0]).pointer

    @numba.njit
    def mean(count):
        total = 0.0
        for n in range(count):
            total += bell(n / count)
        return total / count

    @numba.njit
    def filled(x, outputs, slopes):
        pair(x.ctypes, outputs.ctypes, slopes.ctypes)
        return outputs

    assert mean(1000) == pytest.approx(np.exp(-((np.arange(1000) / 1000) ** 2)).mean(), rel=1e-14)
    found = filled(np.array([2.0, 3.0]), np.zeros(2), np.zeros(1))
    np.testing.assert_allclose(found, [6.0, math.sin(2.0)], rtol=1e-15)


LOOP = """
ctypedef double (*Function)(double) noexcept nogil

def mean(size_t address, int count):
    cdef Function function = <Function><void *>address
    cdef double total = 0.0
    cdef int n
    with nogil:
        for n in range(count):
            total += function(n / <double>count)
    return total / count
"""


@needs_cc
def test_a_loop_of_cython_calls_it(tmp_path):
    pytest.importorskip("Cython")
    (tmp_path / "loop.pyx").write_text(LOOP)
    include = sysconfig.get_path("include")
    for command in (
        [sys.executable, "-m", "cython", "-3", "loop.pyx"],
        ["cc", "-O2", "-fPIC", "-shared", f"-I{include}", "loop.c", "-o", "loop.so"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location("loop", tmp_path / "loop.so")
    loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loop)
    bell = mg.compile(lambda x: mg.exp(-x * x)).address(0.5)
    assert loop.mean(int(bell), 1000) == pytest.approx(np.exp(-((np.arange(1000) / 1000) ** 2)).mean(), rel=1e-14)


def test_what_has_no_native_function(own_registry):
    odd = mg.primitive("odd_one", "odd", lambda x: x + 1.0, lambda g, out, x: g)
    refused = [
        (lambda x: x * 2.0, {"signature": "double f(double)"}, "signature must be one of 'double \\(double\\)'"),
        (lambda x: [x, x * 2.0], {"signature": "double (double)"}, "is for one number, and <lambda> gives 2"),
        (lambda x: [x, 3.0], {}, "must compute numbers, and nothing else"),
        (lambda x: odd(x), {}, "uses a primitive that is Python code"),
    ]
    for function, options, message in refused:
        with pytest.raises(ValueError, match=message):
            mg.compile(function).address(1.0, **options)
    with pytest.raises(ValueError, match="is for one argument, and <lambda> takes 2 numbers"):
        mg.compile(lambda x, y: x * y).address(1.0, 2.0, signature="double (double)")
