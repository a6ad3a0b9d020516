"""The rest of the composites: sinc, the gamma function, Bessel functions, the normal distribution, powers and steps.

They use the same operations as those of composites.py, for all backends. Each is exact in pieces: near a root, near a
pole and far out, it has a separate form without cancellation. Each piece bounds its operand, so that a piece that is
not chosen stays finite:

    near = on.minimum(x, 9.5)
    on.where(x < 9.5, series(near), far_out(x))

Formulas of the gamma function: Abramowitz and Stegun, chapter 6; of spherical Bessel functions: chapter 10.1; of
modified Bessel functions: chapter 9.6; of the normal distribution: chapter 26.2, and Wichura (1988, algorithm AS 241).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from micrograd.engine.primitive import composite

_EULER = 0.5772156649015329
# zeta(k) - 1 for k = 2, 3, ...: the coefficients of the gamma function's series around 2 (6.1.33)
_ZETA_LESS_ONE = (
    *(0.6449340668482264, 0.2020569031595943, 0.08232323371113819, 0.03692775514336993, 0.01734306198444914),
    *(0.008349277381922827, 0.00407735619794434, 0.0020083928260822143, 0.0009945751278180853, 0.0004941886041194645),
    *(0.0002460865533080483, 0.00012271334757848915, 6.124813505870483e-05, 3.058823630702049e-05),
    *(1.528225940865187e-05, 7.637197637899763e-06, 3.81729326499984e-06, 1.908212716553939e-06, 9.539620338727962e-07),
    *(
        4.769329867878064e-07,
        2.38450502727733e-07,
        1.1921992596531106e-07,
        5.960818905125948e-08,
        2.980350351465228e-08,
    ),
)
_DIGAMMA_AT_2 = [1 - _EULER, *((-1) ** k * less_one for k, less_one in enumerate(_ZETA_LESS_ONE, 2))]
_LGAMMA_AT_2 = [slope / power for power, slope in enumerate(_DIGAMMA_AT_2, 1)]
# The root of digamma in two parts, and digamma around it, over the distance: a polynomial fitted with mpmath
_ROOT, _REST_OF_ROOT = 1.4616321449683622, 9.549995429965697e-17
_AROUND_ROOT = (
    *(0.9676722454476212, -0.4427631689835921, 0.2584997609556687, -0.16394270544241862, 0.10782405068533324),
    *(-0.07219956125239833, 0.048804288921354876, -0.03316112699288993, 0.02259760081602993, -0.015424733465408253),
    *(0.010540399993098224, -0.007205634748695976, 0.004896701614056688, -0.003349222735254419),
    *(0.0025946296942270975, -0.0017749988418890284),
)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # of even orders (table 23.2)
_NEAR = 9.5  # from here on, Stirling's series has all digits (6.1.41)
_STIRLING = [number / order / (order - 1) for order, number in zip(range(2, 18, 2), _BERNOULLI, strict=True)]
_STIRLING_SLOPES = [(2 * power + 1) * term for power, term in enumerate(_STIRLING)]
_FAR = 20  # from here on, what is left of the sum of a zeta function is that of Euler and Maclaurin (23.1.30)
_REST = [number / math.factorial(order) for order, number in zip(range(2, 18, 2), _BERNOULLI, strict=True)]
# sqrt(0.5), and a factor that halves the digits of a float
_HALF_ROOT = math.sqrt(0.5)
_SPLITTER = 134217729.0  # 2 ** 27 + 1


def _polynomial(coefficients: Any, x: Any) -> Any:
    """The first coefficient, plus x times the second, and so on."""
    *others, total = coefficients
    for coefficient in reversed(others):
        total = coefficient + x * total
    return total


def _from_whole(on: Any, x: Any) -> Any:
    """How far a positive x is above the nearest whole number, exactly."""
    above = x - on.floor(x)
    return on.where(above > 0.5, above - 1, above)


# sinc


def _half_turns(on: Any, x: Any) -> tuple[Any, Any]:
    """The sine and the cosine of pi * x for a positive x, which is made small before it is multiplied."""
    rest = _from_whole(on, x)
    whole = x - rest
    sign = 1 - 2 * (whole - 2 * on.floor(0.5 * whole))
    angle = math.pi * rest
    return sign * on.sin(angle), sign * on.cos(angle)


@composite
def sinc(on: Any, x: Any) -> Any:
    """sin(pi * x) / (pi * x), and 1 at 0."""
    size = on.abs(x)
    sine, _ = _half_turns(on, size)
    return on.where(size < 1e-9, 1.0, sine / (math.pi * on.maximum(size, 1e-9)))


@composite
def spherical_bessel(on: Any, x: Any, order: int = 1) -> Any:
    """The spherical Bessel function j of that order, at pi * x: what the slopes of sinc are made of."""
    edge = (order + 1) / math.pi
    size = on.abs(x)
    near = math.pi * on.minimum(size, edge)
    square = -0.5 * near * near
    series = 1.0
    for term in range(17 + order, 0, -1):  # (10.1.2)
        series = 1 + series * square / (term * (2 * order + 2 * term + 1))
    for factor in range(order):
        series = series * near / (2 * factor + 3)
    far = on.maximum(size, edge)
    sine, cosine = _half_turns(on, far)
    below, above = cosine / far / math.pi, sine / far / math.pi
    for step in range(order):  # (10.1.19)
        below, above = above, (2 * step + 1) / far / math.pi * above - below
    value = on.where(size < edge, series, above)
    return on.where(x < 0, -value, value) if order % 2 else value


# The gamma function


def _steps_to_2(on: Any, x: Any) -> tuple[Any, Any]:
    """How many whole numbers x is above the interval of length 1 around 2, and how far from 2 it is without them."""
    steps = on.floor(x - 1.5)
    return steps, x - (steps + 2)


@composite
def lgamma(on: Any, x: Any) -> Any:
    """The logarithm of the size of the gamma function; left of 0 by reflection (6.1.17)."""
    size = on.where(x < 0, 1 - x, x)
    near = on.minimum(size, _NEAR)
    steps, rest = _steps_to_2(on, near)
    product = 1.0
    for step in range(1, 8):
        product = product * on.where(steps >= step, near - step, 1.0)
    quotient = on.where(steps < 0, near, 1.0) * on.where(steps < -1, near + 1, 1.0)
    value = rest * _polynomial(_LGAMMA_AT_2, rest) + on.log(product) - on.log(quotient)
    far = on.maximum(size, _NEAR)
    inverse = 1 / far
    series = inverse * _polynomial(_STIRLING, inverse * inverse)
    stirling = (far - 0.5) * (on.log(far) - 1) + (0.5 * math.log(2 * math.pi) - 0.5) + series
    value = on.where(size >= _NEAR, stirling, value)
    if not on.somewhere(x < 0):
        return value
    sine = on.sin(math.pi * on.abs(_from_whole(on, on.where(x < 0, -x, 0.5))))  # 0 at a pole, whose logarithm raises
    return on.where(x < 0, math.log(math.pi) - on.log(sine) - value, value)


@composite
def digamma(on: Any, x: Any) -> Any:
    """The slope of lgamma; left of 0 by reflection (6.3.7)."""
    size = on.where(x < 0, 1 - x, x)
    near = on.minimum(size, _NEAR)
    steps, rest = _steps_to_2(on, near)
    value = _polynomial(_DIGAMMA_AT_2, rest)
    for step in range(1, 8):
        value = value + on.where(steps >= step, 1 / on.maximum(near - step, 1.0), 0.0)
    value = value - on.where(steps < 0, 1 / near, 0.0) - on.where(steps < -1, 1 / (near + 1), 0.0)
    distance = near - _ROOT - _REST_OF_ROOT
    around = distance * _polynomial(_AROUND_ROOT, distance)
    value = on.where(on.abs(near - _ROOT) < 0.25, around, value)
    far = on.maximum(size, _NEAR)
    inverse = 1 / far
    square = inverse * inverse
    stirling = on.log(far) - 0.5 * inverse - square * _polynomial(_STIRLING_SLOPES, square)
    value = on.where(size >= _NEAR, stirling, value)
    if not on.somewhere(x < 0):
        return value
    tangent = on.tan(math.pi * _from_whole(on, on.where(x < 0, -x, 0.25)))
    return on.where(x < 0, value + math.pi / tangent, value)


@composite
def hurwitz_zeta(on: Any, x: Any, power: Any) -> Any:
    """The sum of (x + n)**-power over n = 0, 1, 2, ..., for a positive x and a power above 1 (Euler and Maclaurin)."""
    total = 0.0
    count = on.maximum(on.ceil(_FAR - x), 0.0)  # x + n, rounded, may be _FAR a turn too early
    for n in range(_FAR):
        if not on.somewhere(count > n):
            break
        total = total + on.where(count > n, on.pow(on.minimum(x + n, _FAR), -power), 0.0)
    far = x + count
    square = 1 / far / far
    *others, rest = _REST
    for position, coefficient in reversed([*enumerate(others, 1)]):
        rest = coefficient + (power + 2 * position - 1) * (power + 2 * position) * square * rest
    return total + far ** (1 - power) * (1 / (power - 1) + 0.5 / far + power * square * rest)


@composite
def digamma_slope(on: Any, x: Any, order: int = 1) -> Any:
    """The derivative of digamma of that order, for a positive x; the logarithm refuses others."""
    sign = 1.0 if order % 2 else -1.0
    return sign * math.factorial(order) * on.hurwitz_zeta(x + 0.0 * on.log(on.minimum(x, 1.0)), order + 1.0)


@composite
def betaln(on: Any, x: Any, y: Any) -> Any:
    """The logarithm of the beta function of two positive numbers, without the cancellation of three lgammas."""
    small, large = on.minimum(x, y), on.maximum(x, y)
    near = on.minimum(large, _NEAR)
    value = on.lgamma(small) + on.lgamma(near) - on.lgamma(small + near)
    far = on.maximum(large, _NEAR)
    ratio = small / far
    total = far + small
    rest = _stirling_rest(far) - _stirling_rest(total)
    # lgamma(far) - lgamma(total) by Stirling's series, without the terms that cancel
    to_far = small - (far - 0.5) * on.log1p(ratio)
    mixed = on.lgamma(on.minimum(small, _NEAR)) - small * on.log(total) + to_far + rest
    both = on.maximum(small, _NEAR)
    halves = 0.5 * math.log(2 * math.pi) - 0.5 * on.log(both) + _stirling_rest(both)
    huge = halves - both * on.log1p(far / both) - (far - 0.5) * on.log1p(ratio) + rest
    return on.where(large < _NEAR, value, on.where(small < _NEAR, mixed, huge))


def _stirling_rest(x: Any) -> Any:
    """What Stirling's series adds to its leading terms, for a large x."""
    inverse = 1 / x
    return inverse * _polynomial(_STIRLING, inverse * inverse)


# The modified Bessel functions of the first kind


def _modified_bessel(on: Any, x: Any, order: int = 2) -> Any:
    """The modified Bessel function I of a whole order: its series (9.6.10), and far out its expansion (9.7.1)."""
    edge = 25.0 + order * order
    size = on.abs(x)
    half = 0.5 * on.minimum(size, edge)
    square = half * half
    series = 1.0
    for term in range(int(2 * edge), 0, -1):
        series = 1 + series * square / (term * (term + order))
    for factor in range(order):
        series = series * half / (factor + 1)
    far = on.maximum(size, edge)
    inverse = -0.125 / far
    tail = 1.0
    for term in range(24, 0, -1):
        tail = 1 + tail * inverse * (4 * order * order - (2 * term - 1) ** 2) / term
    growth = on.exp(0.5 * on.minimum(far, 1416.0))  # exp(x) itself overflows before the quotient does
    value = on.where(size < edge, series, growth / on.sqrt(2 * math.pi * far) * tail * growth)
    return on.where(x < 0, -value, value) if order % 2 else value


modified_bessel = composite(_modified_bessel)
i0, i1 = composite(partial(_modified_bessel, order=0)), composite(partial(_modified_bessel, order=1))


# The normal distribution

_CENTRE = (
    (
        *(3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946),
        *(45921.95393154987, 67265.7709270087, 33430.57558358813, 2509.0809287301227),
    ),
    (
        *(1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751),
        *(21213.794301586597, 39307.89580009271, 28729.085735721943, 5226.495278852854),
    ),
)
_SIDE = (
    (
        *(1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045),
        *(1.2704582524523684, 0.2417807251774506, 0.022723844989269184, 0.0007745450142783414),
    ),
    (
        *(1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851),
        *(0.14810397642748008, 0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-09),
    ),
)
_TAIL = (
    (
        *(6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487),
        *(0.026532189526576124, 0.0012426609473880784, 2.7115555687434876e-05, 2.0103343992922881e-07),
    ),
    (
        *(1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615),
        *(0.0007868691311456133, 1.8463183175100548e-05, 1.421511758316446e-07, 2.0442631033899397e-15),
    ),
)
_MILLS = 50  # steps of the continued fraction below, from 4 on


def _quotient(coefficients: Any, x: Any) -> Any:
    above, below = coefficients
    return _polynomial(above, x) / _polynomial(below, x)


def _quantile(on: Any, centred: Any, tail: Any) -> Any:
    """Where the normal distribution function is centred + 0.5, tail being what is left on the nearer side."""
    inside = on.maximum(on.minimum(centred, 0.425), -0.425)
    centre = inside * _quotient(_CENTRE, 0.180625 - inside * inside)
    root = on.sqrt(-on.log(tail))
    far = on.where(root <= 5, _quotient(_SIDE, root - 1.6), _quotient(_TAIL, root - 5.0))
    return on.where(on.abs(centred) <= 0.425, centre, on.where(centred < 0, -far, far))


@composite
def ndtri(on: Any, x: Any) -> Any:
    """Where the normal distribution function is x."""
    return _quantile(on, x - 0.5, on.minimum(x, 1 - x))


@composite
def erfinv(on: Any, x: Any) -> Any:
    """Where the error function is x."""
    return _quantile(on, 0.5 * x, 0.5 * (1 - on.abs(x))) * math.sqrt(0.5)


def _gap_of_tail(x: Any) -> Any:
    """The density over the upper tail of the normal distribution, less x, for an x of 4 or more (26.2.14)."""
    fraction = 0.0
    for step in range(_MILLS, 0, -1):
        fraction = step / (x + fraction)
    return fraction


@composite
def log_ndtr(on: Any, x: Any) -> Any:
    """The logarithm of the normal distribution function."""
    inside = on.maximum(on.minimum(x, 40.0), -4.0)
    lower, upper = on.normal_cdf(on.minimum(inside, 0.0)), on.normal_cdf(-on.maximum(inside, 0.0))
    body = on.where(inside < 0, on.log(lower), on.log1p(-upper))
    if not on.somewhere(x < -4):
        return body
    far = on.maximum(-x, 4.0)
    tail = -0.5 * far * far - 0.5 * math.log(2 * math.pi) - on.log(far + _gap_of_tail(far))
    return on.where(x < -4, tail, body)


@composite
def normal_hazard(on: Any, x: Any) -> Any:
    """The slope of log_ndtr: the density over the distribution function."""
    inside = on.maximum(x, -4.0)
    far = on.maximum(-x, 4.0)
    return on.where(x < -4, far + _gap_of_tail(far), on.normal_pdf(inside) / on.normal_cdf(inside))


@composite
def hazard_gap(on: Any, x: Any) -> Any:
    """X plus its hazard: small where x is far below 0, and the two cancel."""
    inside = on.maximum(x, -4.0)
    far = _gap_of_tail(on.maximum(-x, 4.0))
    return on.where(x < -4, far, inside + on.normal_pdf(inside) / on.normal_cdf(inside))


# Logarithms of probabilities


@composite
def logit(on: Any, x: Any) -> Any:
    """The logarithm of x / (1 - x), with all its digits around 0.5."""
    near = on.maximum(on.minimum(x, 0.75), 0.25)
    return on.where(on.abs(x - 0.5) <= 0.25, on.log1p((2 * near - 1) / (1 - near)), on.log(x) - on.log1p(-x))


@composite
def xlogy(on: Any, x: Any, y: Any) -> Any:
    """X * log(y), and 0 where x is 0, unless y is NaN."""
    return x * on.log(on.where(on.is_zero(x), on.where(y <= 0, 1.0, on.where(y >= 0, 1.0, y)), y))


@composite
def log_ratio(on: Any, x: Any, y: Any) -> Any:
    """log(x / y) of positive numbers, with all its digits where they are nearly equal or their quotient overflows."""
    ratio = x / y
    is_near, is_far = on.abs(ratio - 1) <= 0.5, on.abs(on.log(ratio + 5e-324)) > 700
    near = on.log1p(on.where(is_near, (x - y) / y, 0.0))
    far = on.log(on.where(is_far, x, 1.0)) - on.log(on.where(is_far, y, 1.0))
    return on.where(is_near, near, on.where(is_far, far, on.log(on.where(is_far, 1.0, ratio))))


@composite
def rel_entr(on: Any, x: Any, y: Any) -> Any:
    """X * log(x / y), and 0 where x is 0."""
    return x * on.log_ratio(on.where(on.is_zero(x), on.where(y <= 0, 1.0, on.where(y >= 0, 1.0, y)), x), y)


# The normal distribution function, bells, and powers


def _high_half(x: Any) -> Any:
    """The leading half of the digits of x, whose square is exact (Dekker 1971)."""
    large = _SPLITTER * x
    return large - (large - x)


_HIGH_ROOT = _high_half(_HALF_ROOT)
_LOW_ROOT = _HALF_ROOT - _HIGH_ROOT - 4.833646656726457e-17  # with the next digits of sqrt(0.5)


@composite
def normal_cdf(on: Any, x: Any) -> Any:
    """The probability that a normal variable is below x."""
    near = on.maximum(x, -40.0)
    scaled = near * _HALF_ROOT
    body = 0.5 * on.erfc(-scaled)
    if not on.somewhere(x <= -1):
        return body
    # In the tail an error of one unit in the last place of scaled is one of x**2 units here: take it out.
    high = _high_half(near)
    lost = (high * _HIGH_ROOT - scaled) + (near - high) * _HIGH_ROOT + near * _LOW_ROOT
    rest = lost * on.exp(-scaled * scaled) / math.sqrt(math.pi)
    return body + on.where(x <= -1, rest, 0.0)


def _bell(on: Any, x: Any, factor: float) -> Any:
    """exp(-factor * x**2), for a factor that is a power of two; rounding the square would cost x**2 digits."""
    near = on.minimum(on.abs(x), 40.0)
    high = _high_half(near)
    return on.exp(-factor * high * high) * on.exp(-factor * (near - high) * (near + high))


@composite
def gaussian(on: Any, x: Any) -> Any:
    """exp(-x**2)."""
    return _bell(on, x, 1.0)


@composite
def normal_pdf(on: Any, x: Any) -> Any:
    """The density of the normal distribution."""
    return math.sqrt(0.5 / math.pi) * _bell(on, x, 0.5)


@composite
def lorentzian(on: Any, x: Any) -> Any:
    """1 / (1 + x**2), for large x too."""
    size = on.abs(x)
    near = 1 / (1 + x * x)
    if not on.somewhere(size > 1e150):
        return near
    far = on.maximum(size, 1.0)
    return on.where(size > 1e150, 1 / far / far, near)


@composite
def lower_power(on: Any, x: Any, y: Any, k: Any) -> Any:
    """X ** (y - k), the power in the k-th derivative of x ** y; the factors y, y - 1 ... y - k + 1 stand beside it.

    Where y - k is rounded, the power is off by log(x) times that. Where the last of those factors is 0, and x as well
    (or so close to it that 1 / x overflows), the power does not exist, and 1 takes the place of the base.
    """
    lower = y - k
    size = on.abs(x)
    base = x
    if on.somewhere(size < 1e-307):
        base = on.where(size < 1e-307, on.where(on.equal(y, k - 1), 1.0, x), x)
    power = on.pow(base, lower)
    lost = y - (lower + k)  # it is NaN where y is infinite
    rounded = on.abs(lost) > 0
    if on.somewhere(rounded):
        power = power * on.where(rounded, 1 + lost * on.log(on.minimum(size, 1e308) + 2.3e-308), 1.0)
    return power


# Steps


@composite
def sign(on: Any, x: Any) -> Any:
    """1 above 0, -1 below; 0 and NaN are themselves."""
    return on.where(x > 0, 1.0, on.where(x < 0, -1.0, x))


@composite
def ceil(on: Any, x: Any) -> Any:
    """The lowest whole number that is not below x."""
    return -on.floor(-x)
