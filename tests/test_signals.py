"""Interpolation with a period, Fourier transforms, fits of polynomials and convolution of arrays of Values."""

import numpy as np
import pytest
import scipy.signal

import micrograd as mg
from micrograd import Value
from tests.test_linear_algebra import differences, of_one_point

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("own_cache")]

RANDOM = np.random.default_rng(3)
POINTS, HEIGHTS, BETWEEN = np.array([0.0, 1.0, 2.5, 4.0]), RANDOM.normal(size=4), np.array([0.3, 1.7, 3.9, -1.0, 7.0])
SIGNAL, PICTURE, KERNEL = RANDOM.normal(size=6), RANDOM.normal(size=(4, 3)), RANDOM.normal(size=(2, 3))


def both(parts):
    """The real and the imaginary part, one after the other."""
    return np.concatenate([parts.real, parts.imag])


EVERY = {
    "interp with a period": (lambda x, fp: np.interp(x, POINTS, fp, period=5.0), BETWEEN + 0.05, HEIGHTS),
    "fft": (lambda x: both(np.fft.fft(x)), SIGNAL),
    "fft of fewer along an axis": (lambda x: both(np.fft.fft(x, 3, axis=0, norm="ortho")), PICTURE),
    "fft of more": (lambda x: both(np.fft.fft(x, 8, norm="forward")), SIGNAL),
    "ifft": (lambda x: both(np.fft.ifft(x)), SIGNAL),
    "rfft": (lambda x: both(np.fft.rfft(x)), SIGNAL),
    "irfft": (lambda x: np.fft.irfft(np.fft.rfft(x)), SIGNAL),
    "irfft of an odd number": (lambda x: np.fft.irfft(x, 5), SIGNAL[:3]),
    "fft2": (lambda x: both(np.fft.fft2(x)), PICTURE),
    "there and back": (lambda x: np.fft.ifft2(np.fft.fft2(x, s=(4, 5))).real, PICTURE),
    "the size of a spectrum": (lambda x: abs(np.fft.rfft(x)), SIGNAL),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), BETWEEN, SIGNAL[:5]),
    "polyfit of heights": (lambda y: np.polyfit(BETWEEN, y, 2), SIGNAL[:5]),
    "polyfit with weights": (lambda x, y: np.polyfit(x, y, 1, w=[1.0, 2.0, 3.0, 4.0, 5.0]), BETWEEN, SIGNAL[:5]),
}


@pytest.mark.parametrize("name", EVERY)
class TestOfEach:
    @pytest.mark.unmeasured
    def test_values_are_numpys_and_derivatives_those_of_differences(self, name):
        function, *operands = EVERY[name]
        result, expected = function(*map(mg.array, operands)), function(*operands)
        assert np.shape(result) == np.shape(expected)
        assert mg.numbers(result) == pytest.approx(expected, rel=1e-11, abs=1e-12)
        f, point = of_one_point(function, operands)
        slopes = mg.grad(f)(point)
        assert slopes == pytest.approx(differences(f, point), rel=1e-6, abs=1e-7)
        hessian = np.array(mg.hessian(f)(point))
        assert hessian == pytest.approx(differences(lambda x: np.array(mg.grad(f)(x)), point), rel=1e-5, abs=1e-5)

    def test_compiled_as_eagerly(self, name):
        function, *operands = EVERY[name]
        f, point = of_one_point(function, operands)
        values, others = [*map(Value, point)], [*map(Value, point)]
        result, expected = mg.compile(f, backend="numpy")(values), f(others)
        assert result.data == pytest.approx(expected.data, rel=1e-11)
        assert mg.gradient(result, values) == pytest.approx(mg.gradient(expected, others), rel=1e-8, abs=1e-10)


class TestFourier:
    def test_parts(self):
        spectrum = np.fft.fft(mg.array(SIGNAL))
        real, imag = spectrum
        assert (len(spectrum), spectrum.shape) == (6, (6,))
        assert spectrum[1].real is real[1]
        assert spectrum[1].imag is imag[1]
        assert repr(spectrum[0]).startswith("Parts(real=Value(")
        with pytest.raises(TypeError, match=r"no complex Values: compute with f\.real and f\.imag"):
            spectrum * 2.0
        with pytest.raises(TypeError, match="no complex Values"):
            np.exp(spectrum)
        with pytest.raises(TypeError, match="no complex Values"):
            np.concatenate([spectrum, spectrum])
        with pytest.raises(TypeError, match="no complex Values"):
            np.array([1.0]) * spectrum

    def test_of_parts_beside_numbers_that_are_complex(self):
        a = np.array([1.0 + 2.0j, 3.0 - 1.0j])
        constants = np.fft.fft(np.array([Value(0.0)], dtype=object).view(type(mg.array([1.0]))))
        back = np.fft.ifft(np.fft.fft(mg.array([1.0, 2.0])))
        assert mg.numbers(back.real) == pytest.approx([1.0, 2.0])
        assert constants.real[0].data == 0.0
        from micrograd.engine import signals

        found = signals.fft(a)
        assert found.real + 1j * found.imag == pytest.approx(np.fft.fft(a))

    def test_a_long_one_in_a_compiled_function(self):
        x = RANDOM.normal(size=300)
        f = mg.value_and_grad(lambda x: (abs(np.fft.rfft(x)[1:100]) ** 3).sum())
        (found, slopes), (expected, others) = mg.compile(f, backend="numpy")(x), f(x)
        assert found == pytest.approx(expected, rel=1e-12)
        assert slopes == pytest.approx(others, rel=1e-9, abs=1e-9 * np.abs(others).max())


class TestConvolution:
    @pytest.mark.parametrize("mode", ["full", "same", "valid"])
    def test_as_scipy_and_with_gradients(self, mode):
        for kernel in (KERNEL, KERNEL[:1, :2], RANDOM.normal(size=(3, 2))):
            expected = scipy.signal.convolve2d(PICTURE, kernel, mode)
            result = mg.convolve2d(mg.array(PICTURE), mg.array(kernel), mode)
            assert mg.numbers(result) == pytest.approx(expected)
            assert mg.convolve2d(PICTURE, kernel, mode) == pytest.approx(expected)
        f, point = of_one_point(lambda a, k: mg.convolve2d(a, k, mode), [PICTURE, KERNEL])
        assert mg.grad(f)(point) == pytest.approx(differences(f, point), rel=1e-6, abs=1e-7)
        values, others = [*map(Value, point)], [*map(Value, point)]
        result, expected = mg.compile(f, backend="numpy")(values), f(others)
        assert result.data == pytest.approx(expected.data)
        assert mg.gradient(result, values) == pytest.approx(mg.gradient(expected, others))


def test_a_transform_of_plain_numbers_is_refused_under_no_grad_too():
    def f(x):
        with mg.no_grad():
            return np.fft.fft(x).real * 1.0

    with pytest.raises(mg.TraceError, match=r"a Fourier transform of numbers"):
        mg.compile(f, backend="numpy")(np.ones(4))
