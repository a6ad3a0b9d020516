"""Signals: Fourier transforms, fits of polynomials and convolution, for arrays of Values.

A Fourier transform has complex results, and there are no complex Values: it gives the real and the imaginary parts.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from micrograd._support.checks import is_unknown, is_value
from micrograd.engine.array_calls import ArrayFunction
from micrograd.engine.linear_algebra import PRODUCT, pinv
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Parts:
    """The real and the imaginary part of what is complex, as arrays of Values.

    Args:
        real: the one.
        imag: the other one.
    """

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any) -> None:
        self.real, self.imag = real, imag

    @property
    def shape(self) -> tuple[int, ...]:
        """That of each part."""
        return np.shape(self.real)

    def __len__(self) -> int:
        return len(self.real)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.real, self.imag))

    def __getitem__(self, index: Any) -> Parts:
        return Parts(self.real[index], self.imag[index])

    def __abs__(self) -> Any:
        return np.hypot(self.real, self.imag)

    def __repr__(self) -> str:
        return f"Parts(real={self.real!r}, imag={self.imag!r})"

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        """What a Fourier transform gives; other functions have none for what is complex."""
        if function not in OF_NUMPY:
            self._refuse()
        found = OF_NUMPY[function](*arguments, **settings)
        kind = type(self.real)  # in whose arrays the parts have come
        return Parts(found.real.view(kind), found.imag.view(kind)) if isinstance(found, Parts) else found.view(kind)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("there are no complex Values: compute with f.real and f.imag, or with abs(f)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __pow__ = _refuse
    __neg__ = __matmul__ = __rmatmul__ = __array_ufunc__ = __array__ = _refuse


# Fourier transforms


def _rule_of_fourier(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    real, imag = FOURIER(gradients[0], -gradients[1])
    return [real, -imag]


def _forward_of_fourier(real: Any, imag: Any) -> tuple[Any, Any]:
    found = np.fft.fft(real + 1j * imag)
    return found.real, found.imag


def _steps_of_fourier(real: Any, imag: Any) -> tuple[Any, Any]:
    count = real.shape[-1]
    angles = -2 * math.pi / count * (np.outer(np.arange(count), np.arange(count)) % count)
    cosines, sines = np.cos(angles), np.sin(angles)
    return real @ cosines - imag @ sines, real @ sines + imag @ cosines


FOURIER = ArrayFunction(
    "fft", _forward_of_fourier, _rule_of_fourier, lambda real, imag: [real, real], _steps_of_fourier, largest=256
)
_SCALES: dict[Any, Callable[[int, bool], float]] = {  # for how many elements, and whether it is the inverse
    None: lambda count, inverse: 1.0 / count if inverse else 1.0,
    "backward": lambda count, inverse: 1.0 / count if inverse else 1.0,
    "ortho": lambda count, inverse: 1.0 / math.sqrt(count),
    "forward": lambda count, inverse: 1.0 if inverse else 1.0 / count,
}


def _parts(a: Any) -> tuple[Any, Any]:
    if isinstance(a, Parts):
        return np.asarray(a.real), np.asarray(a.imag)
    a = np.asarray(a)
    return (a.real, a.imag) if a.dtype.kind == "c" else (a, np.zeros(a.shape))


def _resized(a: Any, count: int) -> Any:
    """The last axis cut, or filled up with zeros, to so many elements."""
    a = a[..., :count]
    return a if a.shape[-1] == count else np.concatenate([a, np.zeros((*a.shape[:-1], count - a.shape[-1]))], axis=-1)


def _check_count(n: Any) -> None:
    """Refuse a number of elements that is no int."""
    if np.ndim(n):
        raise ValueError(f"the number of elements of a Fourier transform must be one int, not {n!r:.80}")
    if n is not None:
        operator.index(n[()] if isinstance(n, np.ndarray) else n)


def _transformed(a: Any, n: Any, axis: int, norm: Any, inverse: bool) -> Parts:
    if norm not in _SCALES:
        raise ValueError(f'norm must be "backward", "ortho" or "forward", not {norm!r:.80}')
    _check_count(n)
    real, imag = (np.moveaxis(part, axis, -1) for part in _parts(a))
    if (tracer := tracer_on_top()) is not None and not any(is_value(x) for part in (real, imag) for x in part.flat):
        tracer.refused("a Fourier transform of numbers", "Call it outside of the function, and pass its parts in.")
    count = real.shape[-1] if n is None else n
    if count < 1:
        raise ValueError(f"a Fourier transform takes one element or more, not {count}")
    rows = [_resized(part, count)[..., None, :] for part in (real, imag)]
    sign, scale = (-1.0 if inverse else 1.0), _SCALES[norm](count, inverse)
    real, imag = FOURIER(rows[0], sign * rows[1])
    return Parts(*(np.moveaxis(f * part[..., 0, :], -1, axis) for f, part in ((scale, real), (sign * scale, imag))))


def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Parts:
    """The Fourier transform; see np.fft.fft."""
    return _transformed(a, n, axis, norm, inverse=False)


def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Parts:
    """The inverse of fft; see np.fft.ifft."""
    return _transformed(a, n, axis, norm, inverse=True)


def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Parts:
    """The Fourier transform of what is real, without the half that repeats; see np.fft.rfft."""
    found = _transformed(a, n, axis, norm, inverse=False)
    count = found.shape[axis] // 2 + 1
    return Parts(*(np.moveaxis(np.moveaxis(part, axis, -1)[..., :count], -1, axis) for part in found))


def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    """The inverse of rfft; see np.fft.irfft."""
    _check_count(n)
    real, imag = (np.moveaxis(part, axis, -1) for part in _parts(a))
    count = 2 * (real.shape[-1] - 1) if n is None else n
    half = count // 2 + 1
    real, imag = _resized(real, half), _resized(imag, half) * (np.arange(half) * 2 % max(count, 1) != 0).astype(float)
    rest = slice(count - half, 0, -1)
    whole = Parts(np.concatenate([real, real[..., rest]], axis=-1), np.concatenate([imag, -imag[..., rest]], axis=-1))
    return np.moveaxis(_transformed(whole, count, -1, norm, inverse=True).real, -1, axis)


def _along_axes(transform: Callable[..., Parts]) -> Callable[..., Parts]:
    def transformed(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Parts:
        found = Parts(*_parts(a))
        for axis, count in zip(axes, s or [None] * len(axes), strict=True):
            found = transform(found, count, axis, norm)
        return found

    return transformed


# Polynomials


def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: bool = False) -> Any:
    """The polynomial of least squares, its highest power first; see np.polyfit.

    Raises:
        TypeError: for ``full`` and ``cov``, and an array with axes.
    """
    x, y = np.asarray(x), np.asarray(y)
    if full or cov:
        raise TypeError("micrograd has no np.polyfit of Values with full=True or cov=True: leave them out")
    if x.ndim != 1 or y.ndim != 1 or len(x) != len(y) or not len(x) > deg >= 0:
        raise TypeError(f"np.polyfit takes more points than its degree {deg}: not {x.shape} and {y.shape}")
    powers = [np.ones(len(x))]
    for _ in range(deg):
        powers.append(powers[-1] * x)
    matrix = np.stack(powers[::-1], axis=1)
    weights = np.ones(len(x)) if w is None else np.asarray(w)
    scales = np.array([math.sqrt(sum(_size(e) ** 2 for e in column)) or 1.0 for column in matrix.T])
    rows = matrix / scales * weights[:, None]
    return PRODUCT(pinv(rows), (y * weights)[:, None])[0][:, 0] / scales


def _size(x: Any) -> float:
    """The number of an element, for scales that change nothing but the rounding; 1 where it is not known yet."""
    return 1.0 if is_unknown(x) else float(x._data if is_value(x) else x)


# Convolution


def convolve2d(a: Any, kernel: Any, mode: str = "full") -> Any:
    """The convolution of two matrices, which a product of windows with the kernel is."""
    a, kernel = np.asarray(a), np.asarray(kernel)
    if a.ndim != 2 or kernel.ndim != 2 or not kernel.size:
        raise ValueError(f"convolve2d takes two matrices with elements, not arrays of shape {a.shape}, {kernel.shape}")
    rows, columns = kernel.shape
    margins = {"full": (rows - 1, rows - 1, columns - 1, columns - 1), "valid": (0, 0, 0, 0)}
    margins["same"] = (
        rows - 1 - (rows - 1) // 2,
        (rows - 1) // 2,
        columns - 1 - (columns - 1) // 2,
        (columns - 1) // 2,
    )
    if mode not in margins:
        raise ValueError(f'mode must be "full", "same" or "valid", not {mode!r:.80}')
    top, bottom, before, after = margins[mode]
    shape = (a.shape[0] + top + bottom, a.shape[1] + before + after)
    if shape[0] < rows or shape[1] < columns:
        raise ValueError(f"the kernel, {kernel.shape}, is larger than the matrix, {a.shape}")
    padded = np.zeros(shape).astype(object if a.dtype == object else float)
    padded[top : top + a.shape[0], before : before + a.shape[1]] = a
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel.shape)
    found = PRODUCT(windows.reshape(-1, kernel.size), kernel[::-1, ::-1].reshape(-1, 1))[0]
    return found.reshape(windows.shape[:2])


OF_NUMPY: dict[Any, Callable[..., Any]] = {
    np.fft.fft: fft,
    np.fft.ifft: ifft,
    np.fft.rfft: rfft,
    np.fft.irfft: irfft,
    np.fft.fft2: _along_axes(fft),
    np.fft.ifft2: _along_axes(ifft),
    np.polyfit: polyfit,
}
