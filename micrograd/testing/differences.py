"""Derivatives computed from values of a function alone, each with an estimate of its error.

A two-sided difference ``(f(x + h) - f(x - h)) / 2h`` is off by a multiple of h**2 where h is large, and
by the rounding of f divided by h where h is small. No single h suits every function and every point.
So h runs from the scale of the point down to its last digits, in steps of a quarter, then of a half where
these do not tell enough, and Richardson extrapolation takes out the error in h**2, then the one in h**4,
and so on. How far neighbouring results lie apart says how exact each of them is; the most exact one wins
(C. J. F. Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", Advances in Engineering Software 4,
1982).

Four things would deceive that. The first is rounding that is larger than that of one operation. It is measured:
at the shortest steps nothing else makes slopes differ. At a kink, or as near to one as rounding lets
differences come, the two sides of f have two slopes, and their mean is no derivative: the second
difference ``f(x + h) - 2 f(x) + f(x - h)`` then shrinks as h does, and not as h**2. A kink too slight to show
in that shows in the slopes of the two sides, each extrapolated. And long steps may agree on a slope by
passing over what f does between them, as those of floor do: a slope must explain shorter differences too,
or is as far off as they say. Last, a function computed in 16 bits stands still at all short steps, as if it were
constant, and moves in coarse ones at long steps: there a line is fitted to f in windows that are many of its steps
wide, and no verdict on a derivative is ever "right".
"""

from __future__ import annotations

import math
from itertools import chain
from operator import sub
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_ROUNDING = 2.0**-52  # of a float, relative
_SINGLE = 2.0**-26  # relative to the largest value: if all values are multiples of this, 32 bits may have held them
_SIMPLE = 2.0**-20  # relative to the largest value: if they are multiples of more than this, it is no rounding
_LEVELS = 10  # f moves at least by so many times the least of its steps, if these are rounding
_COARSEST = 2.0**-7  # or by no more at a time, relative: a float of 16 bits may have 8 digits
_ALIKE = 2.0**-48  # values that differ by less, relative, may be the same but for the rounding of floats
_HALVINGS = 20  # lead from a step of f to where it is
_SLIGHT = 2.0**-20  # of a step, what a rounded f stands still over
_FEW = 2.0**12  # a float of 16 bits is less than that many times its last digit
_PARTS = [part / 17 for part in range(1, 17)]  # of a window, where f is fitted: nowhere as floats of few digits lie
_LEVERAGE = 4.0  # how many times what is left there, both ways, may lead a slope off, for the width of the window
_LAST_STEP = 2.0**-46  # relative to the scale of the point, or to 1 where that is less
_LAST_STEP_OF_SMALL = 2.0**-26  # relative to a point smaller than 1
_SHORTEST = 6  # at so many of the last steps slopes differ by rounding alone
_ORDERS = 6  # powers of h to take out; with more, rounding would grow
_EXACT = 1e-9  # a relative error that is small enough: no finer steps are tried
_A_DIGIT = 0.1  # the relative error at which one digit is right
_SAFETY = 4.0  # how much farther off than its estimated error a derivative may be
_RUN = 4  # so many steps in a row, from h to h / 64, show how a second difference shrinks
_CLEAR_OF_ROUNDING = 100.0  # a second difference must be so many times the rounding to show anything
_TELLING = 1e-6  # a jump must move a slope by this much, relative
_NEAR = 16.0  # steps so many times shorter than those that show a kink are clear of it


class Estimate(NamedTuple):
    """A derivative by differences.

    Args:
        slope: the derivative.
        error: how far off it may be.
        step: the shortest step that it comes from.
        corner: what f has within that step, "kink" or "jump"; "unclear" where f moves in coarse steps; empty
            where f is smooth. At a kink the slope is the middle between those of the two sides, and the
            error reaches to them; at a jump there is no slope, and the error is infinite.
    """

    slope: float
    error: float
    step: float
    corner: str = ""

    @property
    def relative_error(self) -> float:
        """The error relative to the slope: at 1e-6 six digits are right."""
        return self.error / abs(self.slope) if self.slope else math.inf

    def is_better_than(self, longer: Estimate) -> bool:
        """Whether it has more digits right than one of longer steps, or is less far off.

        From afar all slopes look small, so longer steps may not win by being less far off alone.
        """
        return self.relative_error < min(longer.relative_error, _A_DIGIT) or self.error < longer.error


class _Sample(NamedTuple):
    """The values of f one step above and below the point, and the distance of these two positions after rounding."""

    step: float
    width: float
    above: float
    below: float

    @property
    def values(self) -> tuple[float, float]:
        return self.above, self.below

    @property
    def slope(self) -> float:
        return (self.above - self.below) / self.width


def differentiate(f: Callable[[float], float], x: float, middle: float) -> Estimate | None:
    """The derivative of f at x.

    Args:
        f: a function that gives NaN where it does not exist.
        x: the point.
        middle: f(x).

    Returns:
        The best estimate there is; None where f has no two neighbouring steps on both sides of x.
    """
    samples = list(_samples(f, x, 4.0))
    rounding = _rounding(samples, x, middle)
    noise = max(rounding, _noise(samples))
    estimates = _estimates(samples, noise, 4.0)
    best = _best(estimates)
    if best is None or best.relative_error > _EXACT:
        estimates += _estimates(list(_samples(f, x, 2.0)), noise, 2.0)
        best = _best(estimates)
    if best is None:
        return None
    if stairs := _stairs(f, x, middle, samples, best):
        return stairs
    best = _with_rivals(best, estimates)
    around = max(rounding, _scatter(samples))
    if corner := _corner(best, samples, middle, around) or _two_slopes(best, samples, middle, noise):
        return corner
    if best.relative_error > _A_DIGIT and _is_unresolved(samples, middle):
        return best._replace(error=math.inf)
    return best


def _estimates(samples: Sequence[_Sample], noise: float, factor: float, sides: int = 2) -> list[Estimate]:
    """For each step the most exact extrapolation, where each step is shorter than the one before by a factor.

    The error of two-sided slopes is a sum of even powers of the step, that of one-sided ones a sum of all powers.
    """
    rows: list[tuple[float, float, Estimate | None]] = []
    row: list[float] = []
    longer = math.nan
    for sample in samples:
        if longer != sample.step * factor:
            row = []  # the steps are no neighbours: one between them led out of the domain
        longer = sample.step
        before, row = row, _extrapolated(sample.slope, row, factor**sides)
        rounding = max(noise, _ROUNDING * max(map(abs, sample.values)))
        rows.append((sample.width, row[-1], _judged(row, before, rounding / sample.width, sample.step)))
    return [
        estimate._replace(error=estimate.error + 2 * _unexplained(estimate.slope, rows[index + 1 :]) / width)
        for index, (width, _, estimate) in enumerate(rows)
        if estimate
    ]


def _unexplained(slope: float, shorter: Sequence[tuple[float, float, object]]) -> float:
    """How far shorter steps move f beyond what this slope says: by noise, or by what longer steps passed over."""
    return max([abs(last - slope) * width for width, last, _ in shorter], default=0.0)


def _best(estimates: Sequence[Estimate]) -> Estimate | None:
    best = None
    for estimate in sorted(estimates, key=lambda estimate: -estimate.step):
        if best is None or estimate.is_better_than(best):
            best = estimate
    return best


def _stairs(
    f: Callable[[float], float], x: float, middle: float, samples: Sequence[_Sample], best: Estimate
) -> Estimate | None:
    """The slope of the line behind f, where f stands still and moves in coarse steps; None where it does not.

    The line is fitted in windows wider than the steps, and the best one taken. Rounding makes such steps; floor makes
    some of its own. Unless it is seen to be rounding, f may really be flat: any slope between 0 and the line will do.
    """
    flat = samples[-1].values
    if any(sample.values != flat for sample in samples[-_SHORTEST:]):
        return None
    steps = list(_steps(x, 2.0))
    positions = [(step, x + side * step) for step in reversed(steps) for side in (1, -1)]
    moved = [(step, at, f(at)) for step, at in positions if f(at) not in flat]
    moved = [(step, at, value) for step, at, value in moved if _ALIKE * abs(value) < abs(value - middle)]
    nearest = [(at, value, min(step, abs(at) or step) * _SLIGHT) for step, at, value in moved[:_RUN]]
    if not moved or any(value not in (f(at - away), f(at + away)) for at, value, away in nearest):
        return None  # f is constant, or moves as soon as it leaves the flat, as relu does
    first, beyond, _ = moved[0]
    after = f(_edge(f, x, beyond, flat))
    move, size = abs(after - middle), max(abs(after), abs(middle))
    if best.slope and flat[0] == flat[1] and (move < _SIMPLE * size or first < _SIMPLE * abs(x)):
        return None  # so fine that differences are not deceived
    windows = [step for step in steps if step >= first]
    pairs = [[(f(x + part * step), f(x - part * step)) for part in _PARTS] for step in windows]
    levels = sorted(value for value in {*chain(*chain(*pairs))} if math.isfinite(value))
    few = len(levels) < _RUN or levels[-1] - levels[0] < _LEVELS * min(map(sub, levels[1:], levels))
    if few and move > _COARSEST * size:
        return None  # f has a few steps of its own
    wide = max(next((step for step, at, _ in moved if (at > x) is right), first) for right in (True, False))
    line = Estimate(0.0, math.inf, first, "unclear")
    for index in range(len(windows)):
        found = _line(windows[index:], pairs[index:], middle, move, wide, line.error)
        if not index or found.error < line.error:
            line = found
    return line if _is_floating(levels) else line._replace(error=line.error + abs(line.slope))


def _edge(f: Callable[[float], float], x: float, beyond: float, flat: tuple[float, float]) -> float:
    """Where f leaves the flat around x: a point just outside."""
    for _ in range(_HALVINGS):
        between = (x + beyond) / 2
        x, beyond = (between, beyond) if f(between) in flat else (x, between)
    return beyond


def _line(
    windows: Sequence[float],
    pairs: Sequence[Sequence[tuple[float, float]]],
    middle: float,
    move: float,
    wide: float,
    limit: float,
) -> Estimate:
    """The slope of the cubic that fits f best in the first of windows, and how far off it may be, up to a limit.

    That follows from what the cubic leaves of f, in this window and in those inside of it, whose rounding is about one
    move; and from how far f turns where x is rounded by as much as a step is wide.
    """
    window = windows[0]
    halves = [[(above - below) / 2 for above, below in inside] for inside in pairs]
    if not all(map(math.isfinite, chain(*halves))):
        return Estimate(0.0, math.inf, window, "unclear")
    by_1, by_3 = (sum(part**power * half for part, half in zip(_PARTS, halves[0], strict=True)) for power in (1, 3))
    s2, s4, s6 = (sum(part**power for part in _PARTS) for power in (2, 4, 6))
    linear, cubic = ((by_1 * s6 - by_3 * s4) / (s2 * s6 - s4 * s4), (by_3 * s2 - by_1 * s4) / (s2 * s6 - s4 * s4))
    error = max(move, _ROUNDING * max(map(abs, chain(*pairs[0])))) / window
    for step, inside in zip(windows, halves, strict=True):
        parts = [part * step / window for part in _PARTS]
        left = max(abs(half - linear * at - cubic * at**3) for at, half in zip(parts, inside, strict=True))
        error = max(error, 2 * (left - move * (step < window)) / step)
        if _LEVERAGE * error >= limit:
            break  # there may be hundreds of windows, and it does not become less
    turn = max(abs(above - 2 * middle + below) for above, below in pairs[0]) / window / window  # its square may be 0
    return Estimate(linear / window, _LEVERAGE * error + turn * wide, window, "unclear")


def _is_floating(values: Sequence[float]) -> bool:
    """Whether values have few digits, and small ones finer steps, as floats of 16 bits have and integers have not."""
    largest = max(map(abs, values))
    digits = {value: _last_digit(value) for value in values if value}
    if any(abs(value) > _FEW * digit for value, digit in digits.items()):
        return False
    large = [digit for value, digit in digits.items() if abs(value) > largest / 2]
    small = [digit for value, digit in digits.items() if abs(value) <= largest / 4]
    return bool(small) and min(small) < min(large)


def _with_rivals(best: Estimate, estimates: Sequence[Estimate]) -> Estimate:
    """The estimate, with an error that reaches to what shorter steps say, where these clearly contradict it.

    They do where a ripple on a slope is too fine for the scale of the point, but not for its last digits.
    """
    reach = 0.0
    for rival in estimates:
        apart = abs(rival.slope - best.slope)
        known = max(abs(rival.slope), _A_DIGIT * abs(best.slope))
        clear = rival.step < best.step and rival.slope and rival.error < known  # 0 may be a standstill
        if clear and apart > best.error + rival.error:
            reach = max(reach, apart + rival.error)
    return best._replace(error=best.error + reach)


def _is_unresolved(samples: Sequence[_Sample], middle: float) -> bool:
    """Whether even the shortest steps cross the whole range of f, as those of sin do where floats are 10 apart."""
    values = [value for sample in samples for value in sample.values]
    moved = max(abs(value - middle) for sample in samples[-_SHORTEST:] for value in sample.values)
    return moved > _SIMPLE * max(map(abs, values)) and moved > _A_DIGIT * (max(values) - min(values))


def _samples(f: Callable[[float], float], x: float, factor: float) -> Iterator[_Sample]:
    """The values of f above and below x, as far as there are any, from the longest step to the shortest."""
    for step in _steps(x, factor):
        sample = _Sample(step, (x + step) - (x - step), f(x + step), f(x - step))
        if sample.width and all(map(math.isfinite, (*sample.values, sample.slope))):
            yield sample


def _steps(x: float, factor: float) -> Iterator[float]:
    """Steps from the scale of x down. Powers of two: added to x, they leave its last digits alone."""
    scale = max(1.0, abs(x))
    last = min(scale * _LAST_STEP, abs(x) * _LAST_STEP_OF_SMALL or math.inf)
    step = math.ldexp(1.0, math.frexp(scale)[1] - 1)
    while step >= last and step:
        yield step
        step /= factor


def _rounding(samples: Sequence[_Sample], x: float, middle: float) -> float:
    """The error of the values of f from being rounded once."""
    size = max([abs(middle), *(abs(value) for sample in samples[-_SHORTEST:] for value in sample.values)])
    return max(_ROUNDING * size, _coarseness(samples, x, middle))


def _noise(samples: Sequence[_Sample]) -> float:
    """The error of the values of f from all the rounding in f, which moves the slopes at the shortest steps."""
    shortest = samples[-_SHORTEST:]
    noise = 0.0
    row: list[float] = []
    for sample in shortest:
        before, row = row, _extrapolated(sample.slope, row[:2], 16.0)  # whatever f is, h**2 and h**4 are taken out
        if len(before) == 3:
            noise = max(noise, abs(row[2] - before[2]) * sample.width)
    return noise


def _scatter(samples: Sequence[_Sample]) -> float:
    """How far off the values on one side are that the shortest steps lead to: a line leaves nothing, a jump little."""
    left: list[float] = []
    for side in zip(*(sample.values for sample in samples[-_SHORTEST - 2 :]), strict=True):
        left += [abs((b - c) - (a - b) / 4) for a, b, c in zip(side, side[1:], side[2:], strict=False)]
    return median(left) if left else 0.0


def _coarseness(samples: Sequence[_Sample], x: float, middle: float) -> float:
    """The error of the values of f where they have been rounded more coarsely than a float of their size.

    It can be seen: they differ by multiples of what they were rounded to. It is so after a computation in 32
    bits, where ``(x + 1e8) - 1e8`` has lost digits, and where large terms of a sum cancel.
    """
    moves = [value - middle for sample in reversed(samples) for value in sample.values]
    moves = [move for move in moves if move and math.isfinite(move)]
    if not moves:
        return 0.0  # f is constant
    digits = [_last_digit(move) for move in moves[: 2 * _SHORTEST]]
    unit = min(digits)
    largest = max(abs(value) for sample in samples for value in sample.values)
    if unit > _SIMPLE * largest:
        return 0.0  # f has a step
    if middle not in samples[-1].values and digits[-1] * 8 > abs(moves[len(digits) - 1]):
        return 0.0  # f moves even at the shortest steps, by a simple multiple: it was not rounded
    if unit < _SINGLE * largest:
        return 2 * unit
    # With as few digits as 32 bits have, the point is rounded too, and moves f by the slope times as much.
    return 16 * unit * max(1.0, abs(x) * median(abs(sample.slope) for sample in samples) / largest)


def _last_digit(number: float) -> float:
    """The largest power of two that this is a multiple of."""
    numerator, denominator = number.as_integer_ratio()
    return (numerator & -numerator) / denominator


def _extrapolated(slope: float, before: list[float], ratio: float) -> list[float]:
    """The slope of one step, then with h**2 taken out, then h**4 ..., given that list for the step before."""
    row = [slope]
    for order, coarser in enumerate(before[:_ORDERS], start=1):
        row.append(row[-1] + (row[-1] - coarser) / (ratio**order - 1))
    return row


def _judged(row: list[float], before: list[float], rounding: float, step: float) -> Estimate | None:
    """The extrapolation of least error: how far it is from what the step before gave, to this order and one less."""
    around = zip(row[1:], before, [*before[1:], math.nan], strict=False)  # NaN is no larger than any number
    errors = [_SAFETY * max(abs(slope - lower), abs(slope - same)) + 2 * rounding for slope, lower, same in around]
    least = min(errors, default=None)
    return None if least is None else Estimate(row[1 + errors.index(least)], least, step)


def _corner(estimate: Estimate, samples: Sequence[_Sample], middle: float, rounding: float) -> Estimate | None:
    """The estimate at a corner of f, if there is one between its differences; else None."""
    clear = [sample for sample in samples if _CLEAR_OF_ROUNDING * rounding < abs(_bend(sample, middle)) < math.inf]
    for corner, shrinking in (("kink", 1 / 4), ("jump", 1.0)):
        run = _longest_run(clear, middle, shrinking)
        if not run or estimate.step * _NEAR <= run[-1].step:
            continue
        if sum(sample.step < run[-1].step for sample in clear) >= _RUN:
            continue  # shorter steps show that f is smooth here
        if corner == "kink":
            slopes = [half.slope for sample in run for half in _halves(sample, middle)]
            low, high = min(slopes), max(slopes)
            return estimate._replace(slope=(low + high) / 2, error=0.51 * (high - low), corner=corner)
        if abs(_bend(run[-1], middle)) > _TELLING * abs(estimate.slope) * estimate.step:
            return estimate._replace(error=math.inf, corner=corner)  # a lower jump does not change the slope
    return None


def _two_slopes(best: Estimate, samples: Sequence[_Sample], middle: float, noise: float) -> Estimate | None:
    """The estimate at a kink at x itself, if the slopes to the left and to the right clearly differ; else None."""
    sides = zip(*(_halves(sample, middle) for sample in samples), strict=True)
    left, right = (_best(_estimates(side, noise, 4.0, sides=1)) for side in sides)
    if left is None or right is None:
        return None  # on one side there are no two neighbouring steps
    low, high = sorted((left, right))
    gap = high.slope - low.slope
    between = (low.slope + high.slope) / 2
    if gap > best.error + low.error + high.error and abs(best.slope - between) < gap / 4:
        return best._replace(slope=between, error=gap / 2 + low.error + high.error, corner="kink")
    return None  # also where the gap is NaN, because differences overflow


def _longest_run(samples: Sequence[_Sample], middle: float, shrinking: float) -> list[_Sample]:
    """The steps, one after another, over which the second difference shrinks as a corner makes it shrink.

    From one step to the next, a quarter of it, it shrinks to a quarter at a kink and not at all at a
    jump; where f is smooth, to a sixteenth.
    """
    longest: list[_Sample] = []
    run: list[_Sample] = []
    for sample in samples:
        if run:
            expected = shrinking * _bend(run[-1], middle)
            low, high = sorted((0.8 * expected, 1.25 * expected))
            if run[-1].step != sample.step * 4 or not low < _bend(sample, middle) < high:
                run = []
        run.append(sample)
        if len(run) >= max(_RUN, len(longest)):
            longest = list(run)
    return longest


def _bend(sample: _Sample, middle: float) -> float:
    """The second difference."""
    return sample.above - 2 * middle + sample.below


def _halves(sample: _Sample, middle: float) -> tuple[_Sample, _Sample]:
    """What is to the left of the point, and what is to the right."""
    width = sample.width / 2
    return sample._replace(width=width, above=middle), sample._replace(width=width, below=middle)
