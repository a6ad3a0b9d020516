"""The forward functions of primitives as LLVM code, on numbers and on vectors of them.

A Number stands for what an instruction of the code gives, and its operators write the next instruction. So the base
operations are written here with operators, and composites follow from the formulas that they have for everybody:

    softplus(on, x)    ->    instructions for fabs, fneg, exp, log1p, a comparison, a choice and a sum

Nothing is assumed of the numbers, and no product and sum are taken in one rounding, but for those inside of exp.
"""

from __future__ import annotations

import hashlib
import math
from functools import partial, reduce
from struct import pack
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from llvmlite import ir

from micrograd.compiler.backends.shared.written import OF_THE_LIBRARY, WITH_OPERATORS, Written, built_in
from micrograd.engine import further_primitives, primitives
from micrograd.engine.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive

DOUBLE, FLOAT, INTEGER = ir.DoubleType(), ir.FloatType(), ir.IntType(64)
_FUSED = ("contract",)


def native_name(primitive: Primitive) -> str | None:
    """A name for a primitive's code, another one for other code; None where there is none, and it is called in Python.

    Example:
        >>> native_name(primitives.sin)
        'sin'
        >>> native_name(further_primitives.silu)[:5]
        'silu_'
    """
    if primitive in FUNCTIONS:
        return primitive.name
    if not primitive.composite:
        return None
    if primitive not in _names:
        module = ir.Module()
        kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(primitive.derivatives))
        builder = ir.IRBuilder(function := ir.Function(module, kind, "f").append_basic_block())
        try:
            builder.ret(forward(primitive, builder, module, function.parent.args))
        except NotImplementedError:
            _names[primitive] = None
        else:
            _names[primitive] = f"{primitive.name}_{hashlib.sha256(str(module).encode()).hexdigest()[:16]}"
    return _names[primitive]


_names: WeakKeyDictionary[Primitive, str | None] = WeakKeyDictionary()


def forward(primitive: Primitive, builder: Any, module: Any, operands: Any) -> Any:
    """Write the code of a primitive that has some; of numbers in float32, it is computed in float64 and rounded."""
    first, *_ = operands
    if element_of(first.type) == FLOAT:
        wide = [builder.fpext(operand, like(first.type, DOUBLE)) for operand in operands]
        return builder.fptrunc(forward(primitive, builder, module, wide), first.type)
    code = _Code(builder, module, first.type)
    return code.function(primitive)(*(Number(code, operand) for operand in operands)).value


class _Code:
    """Where the instructions of a forward function go.

    Attributes:
        builder: writes them.
        module: has the functions that they call.
        kind: the type of all numbers: DOUBLE, or a vector of them.
    """

    def __init__(self, builder: Any, module: Any, kind: Any) -> None:
        self.builder, self.module, self.kind = builder, module, kind
        self.lanes = kind.count if isinstance(kind, ir.VectorType) else 1

    def function(self, primitive: Primitive) -> Callable[..., Number]:
        """A primitive as a function of Numbers and of floats."""
        if primitive in FUNCTIONS:
            return lambda *operands: FUNCTIONS[primitive](*map(self.number, operands))
        if primitive.composite:
            formula = partial(primitive.composite, Operations(self.function))
            return lambda *operands: self.number(formula(*map(self.number, operands)))
        raise NotImplementedError(f"there is no code for {primitive.name}")

    def number(self, x: Any) -> Number:
        """A Number, or a constant in all positions of a vector."""
        return x if isinstance(x, Number) else Number(self, constant(self.kind, float(x)))

    def each(self, kind: Any) -> Any:
        """That type, as many of it as there are numbers."""
        return ir.VectorType(kind, self.lanes) if self.kind is not DOUBLE else kind


_INSTRUCTIONS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}


class Number(Written):
    """A number of the code, or a vector of them."""

    def __init__(self, code: _Code, value: Any) -> None:
        self.code, self.value = code, value

    @property
    def truth(self) -> Any:
        """Whether it is not 0, for a choice."""
        return self.code.builder.fcmp_unordered("!=", self.value, self.code.number(0.0).value)

    def __neg__(self) -> Number:
        return Number(self.code, self.code.builder.fneg(self.value))

    def operation(self, sign: str, x: Any, y: Any) -> Number:
        """The instruction of an operator, or the code of a power."""
        x, y = self.code.number(x), self.code.number(y)
        if sign == "**":
            return _power(x, y)
        return Number(self.code, getattr(self.code.builder, _INSTRUCTIONS[sign])(x.value, y.value))

    def comparison(self, sign: str, other: Any) -> Condition:
        """The instruction of a comparison, which holds for no NaN."""
        return Condition(self.code, self.code.builder.fcmp_ordered(sign, self.value, self.code.number(other).value))


class Condition(Number):
    """What a comparison gives: 1 where it holds, else 0."""

    def __init__(self, code: _Code, truth: Any) -> None:
        self.code, self._truth = code, truth

    @property
    def truth(self) -> Any:
        """Whether it holds."""
        return self._truth

    @property
    def value(self) -> Any:
        """The same as a number."""
        return _where(self, self.code.number(1.0), self.code.number(0.0)).value


def constant(kind: Any, value: Any) -> Any:
    """A constant of that type, in all positions of a vector."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def element_of(kind: Any) -> Any:
    """The type of the elements of a vector, or of a number itself."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def like(kind: Any, element: Any) -> Any:
    """That type for a number, or a vector of as many of it."""
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def bytes_in(kind: Any) -> int:
    """The bytes of a number, or of an element of a vector."""
    return 4 if element_of(kind) == FLOAT else 8


def new_function(name: str, kind: Any) -> Any:
    """A function of that type, which raises nothing, in a module of its own."""
    function = ir.Function(ir.Module(name=name), kind, name)
    function.attributes.add("nounwind")
    return function


def integer(value: int) -> Any:
    """An integer of the code."""
    return ir.Constant(INTEGER, value)


def _where(condition: Number, x: Number, y: Number) -> Number:
    return Number(x.code, x.code.builder.select(condition.truth, x.value, y.value))


def _intrinsic(name: str, *operands: Number) -> Number:
    """A function that LLVM knows, on vectors too."""
    code, kind = operands[0].code, operands[0].code.kind
    full = f"llvm.{name}.{'' if kind is DOUBLE else f'v{code.lanes}'}f64"
    of_kind = ir.FunctionType(kind, [kind] * len(operands))
    function = code.module.globals.get(full) or ir.Function(code.module, of_kind, full)
    return Number(code, code.builder.call(function, [operand.value for operand in operands]))


def _library(name: str, *operands: Number) -> Number:
    """A function of the C library, for one element after the other."""
    x, *_ = operands
    code, builder, values = x.code, x.code.builder, [operand.value for operand in operands]
    kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(operands))
    function = code.module.globals.get(name) or ir.Function(code.module, kind, name)
    if code.kind is DOUBLE:
        return Number(code, builder.call(function, values))
    result = ir.Constant(code.kind, ir.Undefined)
    for index in range(code.lanes):
        position = integer(index)
        element = builder.call(function, [builder.extract_element(value, position) for value in values])
        result = builder.insert_element(result, element, position)
    return Number(code, result)


def larger(builder: Any, x: Any, y: Any, sign: str = ">=") -> Any:
    """The larger of two values; NaN where one is NaN."""
    first = builder.or_(builder.fcmp_ordered(sign, x, y), builder.fcmp_unordered("uno", x, x))
    return builder.select(first, x, y)


def _exp(x: Number) -> Number:
    """exp(x), within a unit or two in the last place.

    x is n * log(2) + r with an integer n and a small r; exp(r) is its Taylor polynomial to the 13th
    degree, and 2 ** n is made of bits, in two factors, as the result may be denormal.
    """
    number = x.code.number
    # 2 ** -2046 is 0 * 0 below; of less small ones two factors give a denormal, which takes a hundred times as long
    low, high = number(-1418.0), number(710.0)
    bounded = _where(x > low, x, low)  # NaN too, as it has no n: it is put back in the end
    bounded = _where(bounded < high, bounded, high)
    n, r = _reduced(bounded)
    even, odd = _polynomials(r * r, [1 / math.factorial(power) for power in range(13, 0, -1)])
    total = _fused(_fused(even, r, odd), r, number(1.0))
    half = _intrinsic("floor", n * 0.5)
    result = total * _power_of_two(half) * _power_of_two(n - half)
    return _where(x == x, result, x)  # NaN is not


def _tanh(x: Number) -> Number:
    """The hyperbolic tangent, within two or three units in the last place: m / (m + 2), where m is exp(2 |x|) - 1.

    2 |x| is n * log(2) + r, as in exp. With p = exp(r) - 1, by its Taylor polynomial, m is 2 ** n * p + (2 ** n - 1):
    for a small x, that is p, which has all digits.
    """
    number = x.code.number
    size = _intrinsic("fabs", x)
    double = _where(size < 40.0, size + size, number(80.0))  # from 20 on, the result is 1
    n, r = _reduced(double)
    square = r * r
    even, odd = _polynomials(square, [1 / math.factorial(power) for power in range(13, 1, -1)])
    p = _fused(square, _fused(even, r, odd), r)
    power = _power_of_two(n)
    m = _fused(power, p, power - 1.0)
    result = _intrinsic("copysign", m / (m + 2.0), x)
    return _where(x == x, result, x)  # NaN is not


def _log1p(x: Number) -> Number:
    """The natural logarithm of 1 + x, within two units or three: of the rounded sum, with what it lacks."""
    total = x + 1.0
    other = total - 1.0
    rest = (1.0 - (total - other)) + (x - other)
    result = _log_of_sum(total, _where(_intrinsic("fabs", total) < math.inf, rest, x.code.number(0.0)))
    return _where(total == 1.0, x, result)  # a small x, with its sign


def _log_of_sum(x: Number, rest: Number) -> Number:
    """The natural logarithm of x + rest, which is so small that it does not change x.

    x is 2 ** n * (1 + f), with 1 + f between the roots of 1/2 and of 2. With s = f / (2 + f), the logarithm of 1 + f is
    2 * (s + s ** 3 / 3 + s ** 5 / 5 + ...), which begins with f - f ** 2 / 2.
    """
    code, builder, number = x.code, x.code.builder, x.code.number
    kind = code.each(INTEGER)
    tiny = x < 2.0**-1022  # of a denormal, the exponent is not in its bits
    scaled = _where(tiny, x * 2.0**54, x)
    bits = builder.bitcast(scaled.value, kind)
    of_root = int.from_bytes(pack("<d", math.sqrt(0.5)), "little")
    exponent = builder.ashr(builder.sub(bits, constant(kind, of_root)), constant(kind, 52))
    fraction = builder.sub(bits, builder.shl(exponent, constant(kind, 52)))
    f = Number(code, builder.bitcast(fraction, code.kind)) - 1.0
    n = Number(code, builder.sitofp(exponent, code.kind)) - _where(tiny, number(54.0), number(0.0))
    s = f / (f + 2.0)
    square = s * s
    even, odd = _polynomials(square * square, [2 / power for power in range(23, 1, -2)])
    half = f * f * 0.5
    series = square * _fused(even, square, odd)
    correction = _fused(s, half + series, _fused(n, number(_LOG_2[1]), rest / x))
    result = _fused(n, number(_LOG_2[0]), f - (half - correction))
    result = _where(x == math.inf, x, result)
    result = _where(x > 0.0, result, _where(x == 0.0, number(-math.inf), number(math.nan)))
    return _where(x == x, result, x)  # NaN is not


# log(2) in two parts: the product of the first with the exponent of a float has no rounding error
_LOG_2 = 0.693147180369123816490, 1.90821492927058770002e-10


def _sine(quarters: int, name: str, x: Number) -> Number:
    """The sine of x and so many quarters of a circle, within two units in the last place; of a huge x, that of C.

    x is n * pi / 2 + r. The sine or the cosine of r is its Taylor polynomial, and n says which of them, and the sign.
    """
    code, builder, number = x.code, x.code.builder, x.code.number

    def in_vectors() -> Number:
        n = _intrinsic("rint", x * (2 / math.pi))
        r = x
        for part in _QUARTER:
            r = _fused(n, number(-part), r)
        square = r * r
        sine, cosine = (
            reduce(
                lambda total, factor: _fused(total, square, factor),
                [number((-1) ** (power // 2) / math.factorial(power)) for power in range(first, last, -2)],
            )
            for first, last in ((17, 1), (16, 2))
        )
        sine = _fused(r * square, sine, r)
        half = square * 0.5
        most = 1.0 - half
        cosine = most + _fused(square * square, cosine, (1.0 - most) - half)
        quadrant = n + float(quarters)
        quadrant = quadrant - 4.0 * _intrinsic("floor", quadrant * 0.25)
        is_odd = Condition(code, builder.or_((quadrant == 1.0).truth, (quadrant == 3.0).truth))
        found = _where(is_odd, cosine, sine)
        found = _where(quadrant >= 2.0, -found, found)
        return found if quarters else _where(x == 0.0, x, found)

    is_moderate = _intrinsic("fabs", x) < 1e5  # n has 16 bits then, and its products with parts of pi no rounding error
    return _chosen(is_moderate.truth, code, in_vectors, lambda: _library(name, x))


# pi / 2 in parts: of 33 bits, of 33 more, and what is left
_QUARTER = 1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21


def _chosen(condition: Any, code: _Code, quick: Callable[[], Number], slow: Callable[[], Number]) -> Number:
    """What is quick, if the condition holds for all elements of a vector; else all of them by what is slow."""
    builder = code.builder
    if code.kind is not DOUBLE:
        bits = ir.IntType(code.lanes)
        condition = builder.icmp_unsigned("==", builder.bitcast(condition, bits), ir.Constant(bits, -1))
    ways = []
    with builder.if_else(condition) as branches:
        for branch, way in zip(branches, (quick, slow), strict=True):
            with branch:
                ways.append((way().value, builder.block))
    result = builder.phi(code.kind)
    for value, block in ways:
        result.add_incoming(value, block)
    return Number(code, result)


def _reduced(x: Number) -> tuple[Number, Number]:
    """N and r, such that x is n * log(2) + r, n is whole, and r small."""
    number = x.code.number
    n = _intrinsic("rint", x * (1 / math.log(2)))
    r = _fused(n, number(-_LOG_2[0]), x)
    return n, _fused(n, number(-_LOG_2[1]), r)


def _polynomials(x: Number, factors: list[float]) -> tuple[Number, Number]:
    """Two polynomials of x, so that neither waits for the other: of every second factor; the last one is in the second.

    The factor of the largest power comes first.
    """
    even, odd, *others = map(x.code.number, factors)
    for factor in others:
        even, odd = odd, _fused(even, x, factor)
    return even, odd


def _fused(x: Number, y: Number, z: Number) -> Number:
    """X * y + z, in one rounding where the processor can."""
    builder = x.code.builder
    return Number(x.code, builder.fadd(builder.fmul(x.value, y.value, flags=_FUSED), z.value, flags=_FUSED))


def _power_of_two(n: Number) -> Number:
    """2 ** n of whole numbers: n + 1023 are the bits of the exponent, and 2 ** 52 moves them to the end of a float."""
    code, kind = n.code, n.code.each(INTEGER)
    last = code.builder.bitcast((n + (1.5 * 2.0**52 + 1023.0)).value, kind)
    return Number(code, code.builder.bitcast(code.builder.shl(last, constant(kind, 52)), code.kind))


def _power(x: Number, y: Number) -> Number:
    """X to the power of y: of C, but for the powers of a root mean square and of its derivative, in vectors.

    Those are x ** -0.5 = 1 / sqrt(x) and x ** -1.5 = 1 / (x * sqrt(x)), of numbers that are neither tiny nor huge.
    """
    code, builder = x.code, x.code.builder
    is_root, is_next = (y == -0.5).truth, (y == -1.5).truth
    is_moderate = builder.and_((x > 1e-200).truth, (x < 1e200).truth)

    def of_root() -> Number:
        root = _intrinsic("sqrt", x)
        return 1.0 / _where(Condition(code, is_root), root, x * root)

    apply = builder.and_(is_moderate, builder.or_(is_root, is_next))
    return _chosen(apply, code, of_root, lambda: _power_of_library(x, y))


def _power_of_library(x: Number, y: Number) -> Number:
    # C has a power of minus infinity with any exponent
    whole = y == _intrinsic("rint", y)
    none = x.code.builder.and_((x == -math.inf).truth, x.code.builder.not_(whole.truth))
    return _where(Condition(x.code, none), x.code.number(math.nan), _library("pow", x, y))


def _whole_divisor(x: Number, y: Number) -> tuple[Number, Number]:
    """What is left of x, with the sign of y; and the quotient without it, still to be rounded: as Python does it."""
    left = _library("fmod", x, y)
    builder = x.code.builder
    other_sign = Condition(x.code, builder.xor((left < 0.0).truth, (y < 0.0).truth))
    moved = Condition(x.code, builder.and_(other_sign.truth, builder.not_((left == 0.0).truth)))
    quotient = (x - left) / y
    return _where(moved, left + y, left), _where(moved, quotient - 1.0, quotient)


def _remainder(x: Number, y: Number) -> Number:
    left, _ = _whole_divisor(x, y)
    zero = _where(y < 0.0, x.code.number(-0.0), x.code.number(0.0))
    return _where(left == 0.0, zero, left)


def _floor_divide(x: Number, y: Number) -> Number:
    _, quotient = _whole_divisor(x, y)
    whole = _intrinsic("floor", quotient)
    whole = _where(quotient - whole > 0.5, whole + 1.0, whole)
    return _where(quotient == 0.0, (x / y) * 0.0, whole)


# The base operations as code. What is made of them follows, and any other primitive is called back in Python.
FUNCTIONS: dict[Any, Callable[..., Number]] = {
    **WITH_OPERATORS,
    primitives.where: _where,
    primitives.exp: _exp,
    primitives.relu: lambda x: _where(x <= 0.0, x.code.number(0.0), x),
    further_primitives.floor_divide: _floor_divide,
    further_primitives.remainder: _remainder,
    further_primitives.floor: partial(_intrinsic, "floor"),
    further_primitives.fma: partial(_intrinsic, "fma"),
    primitives.sqrt: partial(_intrinsic, "sqrt"),
    primitives.abs: partial(_intrinsic, "fabs"),
    primitives.maximum: lambda x, y: Number(x.code, larger(x.code.builder, x.value, y.value)),
    primitives.minimum: lambda x, y: Number(x.code, larger(x.code.builder, x.value, y.value, "<=")),
    **{built_in(name): partial(_library, name) for name in OF_THE_LIBRARY},
    primitives.tanh: _tanh,
    primitives.log: lambda x: _log_of_sum(x, x.code.number(0.0)),  # within a unit or two in the last place
    primitives.log1p: _log1p,
    primitives.sin: partial(_sine, 0, "sin"),
    primitives.cos: partial(_sine, 1, "cos"),
}
