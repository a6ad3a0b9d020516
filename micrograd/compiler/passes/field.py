"""Field: exact arithmetic modulo the prime 2**61 - 1, on arrays of uint64.

Floats become elements of the field such that sums and products of small integers and powers of two agree with floats:
0.5 is the inverse of 2, and -1 is the prime less 1.

    >>> half = element_of(0.5)
    >>> int(plus(half, half)), int(times(half, element_of(6.0))), int(times(half, inverse(half)))
    (1, 3, 1)
"""

from __future__ import annotations

import random
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from micrograd.compiler.numbers import Integers

Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

_BITS = 61
PRIME = (1 << _BITS) - 1
_P, _SHIFT, _LOW, _HALF = np.uint64(PRIME), np.uint64(_BITS), np.uint64((1 << 31) - 1), np.uint64(31)
_ONE, _THIRTY, _LOWER = np.uint64(1), np.uint64(30), np.uint64((1 << 30) - 1)
_POWERS = np.array([1 << exponent for exponent in range(_BITS)], dtype=np.uint64)  # 2**61 is 1


def _reduced(numbers: Elements) -> Elements:
    """Remainders of any 64-bit numbers."""
    folded = (numbers & _P) + (numbers >> _SHIFT)
    return folded - _P * (folded >= _P)


def plus(x: Elements, y: Elements) -> Elements:
    """Sums."""
    return _reduced(x + y)


def minus(x: Elements) -> Elements:
    """Negatives."""
    return _reduced(_P - x)


def times(x: Elements, y: Elements) -> Elements:
    """Products. Both factors are split into 30 and 31 bits, so that no partial product overflows."""
    x_high, x_low, y_high, y_low = x >> _HALF, x & _LOW, y >> _HALF, y & _LOW
    middle = x_high * y_low + x_low * y_high
    upper = (x_high * y_high << _ONE) + (middle >> _THIRTY)
    return _reduced(upper + ((middle & _LOWER) << _HALF) + x_low * y_low)


def inverse(x: Elements) -> Elements:
    """Reciprocals; of 0 it is 0."""
    return np.array([number and pow(number, -1, PRIME) for number in x.ravel().tolist()], np.uint64).reshape(x.shape)


def total(values: Elements, owners: Integers, size: int) -> Elements:
    """The sum of the values of each of so many owners."""
    low, high = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
    np.add.at(low, owners, values & _LOW)  # so that 2**33 values can be added
    np.add.at(high, owners, values >> _HALF)
    return _together(low, high)


def summed(values: Elements) -> Elements:
    """The sums along the last axis."""
    return _together((values & _LOW).sum(axis=-1), (values >> _HALF).sum(axis=-1))


def _together(low: Elements, high: Elements) -> Elements:
    return _reduced(_reduced(low) + ((high & _LOWER) << _HALF) + (high >> _THIRTY))  # 2**31 * 2**30 is 1


def element_of(numbers: Any) -> Elements:
    """The elements for floats; infinity and NaN have random ones."""
    floats = np.asarray(numbers, dtype=np.float64)
    finite = np.isfinite(floats)
    mantissa, exponent = np.frexp(np.where(finite, floats, 0.0))
    digits = np.abs(np.ldexp(mantissa, 53)).astype(np.uint64)
    found = times(digits, _POWERS[(exponent - 53) % _BITS])
    found = np.where(floats < 0, minus(found), found)
    return found if finite.all() else np.where(finite, found, keyed("not finite", floats.view(np.uint64)))


# The constants of SplitMix64 (Steele, Lea and Flood 2014), which mixes the bits of a number
_STEP, _LAST_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(31)
_ROUNDS = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))


@cache
def _key(name: str) -> np.uint64:
    return np.uint64(random.Random(name).getrandbits(64))


def keyed(name: str, *operands: Elements) -> Elements:
    """A pseudorandom function of the operands, which stands for a primitive; the name is its key."""
    state: Any = _key(name)
    with np.errstate(over="ignore"):  # of single numbers, NumPy warns
        for operand in operands:
            state = state * _STEP + operand
            for shift, factor in _ROUNDS:
                state = (state ^ (state >> shift)) * factor
            state = state ^ (state >> _LAST_SHIFT)
        return _reduced(state)
