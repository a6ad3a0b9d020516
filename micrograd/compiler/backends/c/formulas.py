"""Primitives as expressions of C.

A Term stands for a number of the C code, and its operators make larger ones. So the base operations are written here
with operators and functions of math.h, and composites follow from the formulas that they have for everybody:

    softplus(on, x)    ->    maximum(x, 0.0) + log1p(exp(-fabs(x)))

A primitive with C code of its own brings the body of its function.
"""

from __future__ import annotations

import ctypes
import math
import re
from inspect import signature
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from micrograd.compiler.backends.c.products import PRODUCTS
from micrograd.compiler.backends.shared.written import OF_THE_LIBRARY, WITH_OPERATORS, Written, built_in
from micrograd.engine import primitives
from micrograd.engine.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.primitive import Primitive

# Functions that others need, by name: what math.h does not have, or does in another way than Python.
HELPERS = {
    "maximum": ("x, y", "return x >= y || x != x ? x : y;"),
    "minimum": ("x, y", "return x <= y || x != x ? x : y;"),
    "power": ("x, y", "return x == -INFINITY && y != floor(y) ? NAN : pow(x, y);"),
    "relu": ("x", "return x <= 0.0 ? 0.0 : x;"),
    "remainder": (
        "x, y",
        "double rest = fmod(x, y);",
        "if (rest == 0.0) {",
        "    return y < 0.0 ? -0.0 : 0.0;",
        "}",
        "return (rest < 0.0) != (y < 0.0) ? rest + y : rest;",
    ),
    "floor_divide": (
        "x, y",
        "double rest = fmod(x, y);",
        "double quotient = (x - rest) / y;",
        "if (rest != 0.0 && (rest < 0.0) != (y < 0.0)) {",
        "    quotient -= 1.0;",
        "}",
        "if (quotient == 0.0) {",
        "    return x / y * 0.0;",
        "}",
        "double whole = floor(quotient);",
        "return quotient - whole > 0.5 ? whole + 1.0 : whole;",
    ),
}
_SERIES = (  # of the exponential, from the square on: of even and of odd powers
    f"double even = {1 / math.factorial(12)}, odd = {1 / math.factorial(13)};",
    *(
        f"{name} = {name} * square + {1 / math.factorial(power)};"
        for power in range(11, 1, -1)
        for name in ["odd" if power % 2 else "even"]
    ),
)
_UNION = "union {", "    double number;", "    unsigned long long bits;"
HELPERS["exp_of_many"] = (
    "x",
    "/* Without branches, so that compilers make vectors of a loop over it: within a unit in the last place. */",
    "const double low = x > -1418.0 ? x : -1418.0, bounded = low < 710.0 ? low : 710.0, round = 6755399441055744.0;",
    f"const double n = (bounded * {1 / math.log(2)} + round) - round, half = (n * 0.5 + round) - round;",
    "const double r = (bounded - n * 0.6931471803691238) - n * 1.9082149292705877e-10, square = r * r;",
    *_SERIES,
    "even = even * square + (odd * square * r + r) + 1.0;",
    *_UNION,
    "} first, second; /* 2 to the power of n, in two factors */",
    "first.number = half + (round + 1023.0);",
    "second.number = (n - half) + (round + 1023.0);",
    "first.bits <<= 52;",
    "second.bits <<= 52;",
    "return x == x ? even * first.number * second.number : x;",
)
HELPERS["tanh_of_many"] = (
    "x",
    "/* m / (m + 2), where m is exp(2 |x|) - 1: within two or three units in the last place. */",
    "const double size = fabs(x), y = size < 40.0 ? size + size : 80.0, round = 6755399441055744.0;",
    f"const double n = (y * {1 / math.log(2)} + round) - round;",
    "const double r = (y - n * 0.6931471803691238) - n * 1.9082149292705877e-10, square = r * r;",
    *_SERIES,
    "const double p = square * (odd * r + even) + r;",
    *_UNION,
    "} power; /* 2 to the power of n */",
    "power.number = n + (round + 1023.0);",
    "power.bits <<= 52;",
    "const double m = power.number * p + (power.number - 1.0);",
    "return x == x ? copysign(m / (m + 2.0), x) : x;",
)
HELPERS["log_of_sum"] = (
    "x, rest",
    "/* The logarithm of x and a rest that does not change it; x is 2^n * (1 + f), and s is f / (2 + f). */",
    "const int tiny = x < 2.2250738585072014e-308;",
    *_UNION,
    "} scaled, power, part;",
    "scaled.number = tiny ? x * 18014398509481984.0 : x;",
    "scaled.bits += 0x00095F619980C433ULL; /* from the root of 1/2 to 1 */",
    "power.bits = (scaled.bits >> 52) | 0x4330000000000000ULL;",
    "part.bits = (scaled.bits & 0x000FFFFFFFFFFFFFULL) + 0x3FE6A09E667F3BCDULL;",
    "const double n = power.number - (tiny ? 4503599627371573.0 : 4503599627371519.0), f = part.number - 1.0;",
    "const double s = f / (f + 2.0), square = s * s, fourth = square * square;",
    f"double even = {2 / 23}, odd = {2 / 21};",
    *(
        f"{name} = {name} * fourth + {2 / power};"
        for power in range(19, 1, -2)
        for name in ["even" if power % 4 == 3 else "odd"]
    ),
    "const double half = f * f * 0.5, series = square * (even + square * odd);",
    "const double correction = s * (half + series) + (n * 1.9082149292705877e-10 + rest / x);",
    "const double found = n * 0.6931471803691238 + (f - (half - correction));",
    "return x > 0.0 ? (x < INFINITY ? found : x) : (x == 0.0 ? -INFINITY : NAN);",
)
HELPERS["log_of_many"] = "x", "return FILE_log_of_sum(x, 0.0);"
HELPERS["log1p_of_many"] = (
    "x",
    "/* The logarithm of the rounded sum, with what that lacks. */",
    "const double sum = x + 1.0, other = sum - 1.0, rest = (1.0 - (sum - other)) + (x - other);",
    "return sum == 1.0 ? x : FILE_log_of_sum(sum, sum < INFINITY ? rest : 0.0);",
)
_EIGHT = (
    "double sums[8] = {0.0};",
    "const int whole = count / 8 * 8;",
    "for (int n = 0; n < whole; n += 8) {",
    "    for (int lane = 0; lane < 8; lane++) {",
    "        sums[lane] += TERM(n + lane);",
    "    }",
    "}",
    "for (int n = whole; n < count; n++) {",
    "    sums[0] += TERM(n);",
    "}",
    "return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));",
)
_FIRST, _SECOND = "const double *a", "const double *b"
for _name, _given, _term in (
    ("dot_apart", (_FIRST, "int a_step", _SECOND, "int b_step"), r"a[(\1) * a_step] * b[(\1) * b_step]"),
    ("sum", (_FIRST, "int a_step"), r"a[(\1) * a_step]"),
):
    _lines = (re.sub(r"TERM\((.*)\)", _term, line).replace("(n)", "n") for line in _EIGHT)
    HELPERS[_name] = ", ".join(["int count", *_given]), *_lines
_OF_MATH_H = ("exp", "sqrt", "floor", "fma", *OF_THE_LIBRARY)
MATH_H = frozenset([*_OF_MATH_H, "fabs", "pow", "fmod", "isfinite"])


def literal(number: float, single: bool = False) -> str:
    """A number as C writes it: the shortest that is read as the same.

    >>> literal(0.5), literal(-math.inf), literal(0.1, single=True)
    ('0.5', '-INFINITY', '0.1f')
    """
    if math.isnan(number):
        return "NAN"
    if single:
        number = ctypes.c_float(number).value  # infinite, if it is too large
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if not single:
        return repr(number)
    digits = next(text for count in range(1, 10) if _in_single(text := f"{number:.{count}g}") == number)
    return f"{digits}f" if set(digits) & set(".e") else f"{digits}.0f"


def _in_single(text: str) -> float:
    return ctypes.c_float(float(text)).value


class NoCodeError(ValueError):
    """There is no code in C for a primitive."""


class Term(Written):
    """A number of the C code: an operation on others, or a name.

    Args:
        code: of which function body it is a part.
        template: of its expression, with {} for each operand.
        operands: the terms in it.
        truth: the template of the condition that it is 1 for, where it is a comparison.
    """

    def __init__(self, code: Code, template: str, *operands: Term, truth: str = "") -> None:
        self.code, self.template, self.operands, self.truth = code, template, operands, truth
        self.text, self.uses = "", 0

    def __neg__(self) -> Term:
        return Term(self.code, "-{}", self)

    def operation(self, sign: str, x: Any, y: Any) -> Term:
        """The expression of an operator, or the call of the function for powers."""
        if sign == "**":
            return self.code.call("power", x, y)
        return Term(self.code, f"{{}} {sign} {{}}", self.code.term(x), self.code.term(y))

    def comparison(self, sign: str, other: Any) -> Term:
        """The expression of a comparison."""
        truth = f"{{}} {sign} {{}}"
        return Term(self.code, f"{truth} ? 1.0 : 0.0", self, self.code.term(other), truth=truth)


class Code:
    """The body of a C function of numbers.

    Args:
        functions: those of the file, which gets what the body calls.
        single: whether its numbers are floats.
        many: whether it is computed for many numbers, in a loop.
    """

    def __init__(self, functions: Functions, single: bool, many: bool = False) -> None:
        self.functions, self.single, self.many, self.has_others = functions, single, many, False

    def term(self, x: Any) -> Term:
        """A Term, or a constant as one."""
        return x if isinstance(x, Term) else Term(self, literal(float(x)))

    def call(self, name: str, *operands: Any) -> Term:
        """A call of a function of math.h, or of a helper."""
        if (of_many := f"{name}_of_many") in HELPERS:
            name, self.has_others = (of_many if self.many else name), True
        name = self.functions.helper(name, self.single) if name in HELPERS else name
        return Term(self, f"{name}({', '.join(['{}'] * len(operands))})", *map(self.term, operands))

    def function(self, primitive: Primitive) -> Callable[..., Term]:
        """A primitive as a function of Terms."""
        if primitive in BASE:
            return lambda *operands: BASE[primitive](*map(self.term, operands))
        if primitive.composite and not primitive.c:
            formula, on = primitive.composite, Operations(self.function)
            return lambda *operands: self.term(formula(on, *map(self.term, operands)))
        return lambda *operands: Term(
            self,
            f"{self.functions.of(primitive, len(operands))}({', '.join(['{}'] * len(operands))})",
            *map(self.term, operands),
        )

    def lines(self, result: Term) -> list[str]:
        """The statements that return a term: what is used twice is a variable."""
        order = _in_order(result)
        lines, count = [], 0
        for term in order:
            term.text = term.template.format(*(_grouped(operand) for operand in term.operands))
            if term is not result and term.uses > 1 and term.operands:
                count += 1
                lines.append(f"const double t{count} = {term.text};")
                term.text = f"t{count}"
        return [*lines, f"return {result.text};"]


def _in_order(result: Term) -> list[Term]:
    """All terms, operands first, with how often each is used."""
    order: list[Term] = []
    seen: set[int] = set()
    stack = [(result, False)]
    while stack:
        term, done = stack.pop()
        if done:
            order.append(term)
        elif id(term) not in seen:
            seen.add(id(term))
            stack.append((term, True))
            stack += [(operand, False) for operand in reversed(term.operands)]
    for term in order:
        for operand in term.operands:
            operand.uses += 1
    return order


def _grouped(term: Term) -> str:
    """The text of an operand, in parentheses unless it stands for itself."""
    text = term.text
    return text if text.isidentifier() or _is_atom(text) else f"({text})"


def _is_atom(text: str) -> bool:
    """Whether a text is a number without a sign, or one call."""
    if " " not in text:
        return not text.startswith("-")
    name, opening, rest = text.partition("(")
    if not (opening and name.isidentifier() and rest.endswith(")")):
        return False
    depths = accumulate((sign == "(") - (sign == ")") for sign in rest)
    return next(position for position, depth in enumerate(depths, 1) if depth < 0) == len(rest)


def _where(condition: Term, x: Term, y: Term) -> Term:
    truth = condition.truth
    if truth:
        return Term(x.code, f"{truth} ? {{}} : {{}}", *condition.operands, x, y)
    return Term(x.code, "{} != 0.0 ? {} : {}", condition, x, y)


def _calling(name: str) -> Callable[..., Term]:
    return lambda x, *others: x.code.call(name, x, *others)


BASE: dict[Any, Callable[..., Term]] = {
    **WITH_OPERATORS,
    primitives.where: _where,
    primitives.abs: _calling("fabs"),
    **{built_in(name): _calling(name) for name in ("maximum", "minimum", "relu", "remainder", "floor_divide")},
    **{built_in(name): _calling(name) for name in _OF_MATH_H},
}


def has_c(primitive: Primitive) -> bool:
    """Whether a primitive can be written in C."""
    try:
        Functions("").of(primitive, len(primitive.derivatives))
    except NoCodeError:
        return False
    return True


class Functions:
    """The functions of numbers in a file, each written once.

    Args:
        prefix: of their names.
        single: whether numbers are floats.

    Attributes:
        lines: the functions so far, callees first.
    """

    def __init__(self, prefix: str, single: bool = False) -> None:
        self.prefix, self.single = prefix, single
        self.lines: list[str] = []
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()
        self._numbers: dict[Primitive, int] = {}

    def call(self, primitive: Primitive, operands: Sequence[str], many: bool = False) -> str:
        """The expression of a primitive of operands, which are names or elements of arrays; many is for a loop."""
        many = many and not self.single
        if primitive not in BASE:
            return f"{self.of(primitive, len(operands), many)}({', '.join(operands)})"
        code = Code(self, self.single, many)
        (line,) = code.lines(BASE[primitive](*(Term(code, f"<{number}>") for number in range(len(operands)))))
        text = line[len("return ") : -1]
        text = in_single(text) if self.single else text
        for number, operand in enumerate(operands):
            text = text.replace(f"<{number}>", f"({operand})" if operand.startswith("-") else operand)
        return text

    def of(self, primitive: Primitive, count: int, many: bool = False) -> str:
        """The name of the function of a primitive of so many operands.

        Raises:
            NoCodeError: if there is no code in C for it.
        """
        if (primitive, many) not in self._names:
            names = ["x", "y", "z", *(f"x{number}" for number in range(3, count))][:count]
            single = self.single and primitive.name in _SAFE_IN_SINGLE
            code = Code(self, single, many)
            if primitive.c:
                names = _parameters(primitive.forward, names)
                body = primitive.c.strip("\n").split("\n")
                body = body if "return" in primitive.c else [f"return {primitive.c};"]
            elif primitive in BASE or primitive.composite:
                body = code.lines(code.function(primitive)(*(Term(code, name) for name in names)))
            else:
                raise NoCodeError(
                    f"the primitive {primitive.name} is Python code only: give it C code of its own, as in "
                    'mg.primitive(..., c="x * x * x"), or write it with other functions of micrograd'
                )
            known = self._names.get((primitive, not many)) if not code.has_others else None
            self._names[primitive, many] = known or self._written(primitive.name, names, body, single)
        return self._names[primitive, many]

    def helper(self, name: str, single: bool) -> str:
        """The name of a helper function of doubles or, in a file of floats, of floats."""
        if (name, single) not in self._names:
            parameters, *lines = HELPERS[name]
            body = [re.sub(r"FILE_(\w+)", lambda other: self.helper(other[1], single), line) for line in lines]
            shown = name if single is self.single else f"{name}_of_doubles"
            self._names[name, single] = self._written(shown, parameters.split(", "), body, single)
        return self._names[name, single]

    def product(self, name: str) -> str:
        """The name of a function for sums of products, or of the type of numbers that are computed at once."""
        if (name, self.single) not in self._names:
            self._names[name, self.single] = self._name(name)
            text = PRODUCTS[name].replace("LANES", f"{self.prefix.upper()}_LANES")
            text = re.sub(r"NAME_(\w+)", lambda used: self.product(used[1]), text)
            self.lines += (in_single(text) if self.single else text).splitlines()
        return self._names[name, self.single]

    def procedure(self, key: Any, name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
        """The name of a function that fills arrays; there is one for each key."""
        if key not in self._names:
            self._names[key] = full = self._name(name)
            self.lines += [f"static {self.apart()} void {full}({', '.join(parameters)})", "{", *body, "}", ""]
        return self._names[key]

    def apart(self) -> str:
        """The name of what keeps a function apart from its callers."""
        name = f"{self.prefix.upper()}_APART"
        if name not in self._taken:
            self._taken.add(name)
            self.lines += _APART.replace("NAME", name).splitlines()
        return name

    def number(self, primitive: Primitive) -> int:
        """The number of a function in words, from 1 on."""
        return self._numbers.setdefault(primitive, len(self._numbers) + 1)

    def of_words(self) -> list[str]:
        """The function that goes through words, if there are any; see words.py."""
        if not self._numbers:
            return []
        text = _OF_WORDS.replace("NAME", self.prefix)
        before, after = (in_single(text) if self.single else text).split("CASES")
        lines = before.splitlines()
        for primitive, number in self._numbers.items():
            count = len(primitive.derivatives)
            result = self.call(primitive, [f"NUMBER({position})" for position in range(1, count + 1)])
            lines += [f"                case -{number}:", f"                    NUMBER(0) = {result};"]
            lines += [f"                    size = {count + 1};", "                    break;"]
        element = re.compile(r"NUMBER\((.*?)\)")
        return [
            element.sub(r"numbers[at[\1] + (item ? item * at[size + \1] : 0)]", line)
            for line in [*lines, *after.splitlines()]
        ]

    def _written(self, name: str, names: Sequence[str], body: Sequence[str], single: bool) -> str:
        full = self._name(name)
        parameters = ", ".join(name if " " in name else f"double {name}" for name in names)
        # Or no loop over it is made of vectors
        inline = "inline " if re.search("_of_(many|sum)", f"{name} {body}") else ""
        lines = [
            f"static {inline}double {full}({parameters})",
            "{",
            *(f"    {line}".rstrip() for line in body),
            "}",
            "",
        ]
        self.lines += [in_single(line) for line in lines] if single else lines
        return full

    def _name(self, name: str) -> str:
        """A name that the file does not have yet."""
        full, count = f"{self.prefix}_{name}", 1
        while full in self._taken:
            count += 1
            full = f"{self.prefix}_{name}_{count}"
        self._taken.add(full)
        return full


_APART = """\
/* Functions of loops stay apart: compilers that copy each into all of its callers take minutes over a large file. */
#ifdef __GNUC__
#define NAME __attribute__((noinline))
#else
#define NAME
#endif

"""
_OF_WORDS = """\
/* Computes what a table says, one number after the other, in an array of numbers: a sum of products in n runs is n, the
   position of the result, and for each run how many products it has, the position of their coefficient, and those of
   two factors for each; a function is its number below 0, and the positions of the result and the operands. After 0
   there is how often one of these is repeated; after it, how far its positions move each time. */
static void NAME_run(int count, const int *words, double *numbers)
{
    const int *const end = words + count;
    while (words < end) {
        const int times = words[0] == 0 ? words[1] : 1;
        words += words[0] == 0 ? 2 : 0;
        const int runs = words[0], *const at = words + 1;
        int size = 1;
        for (int run = 0; run < runs; run++) {
            size += 2 + 2 * at[size];
        }
        for (int item = 0; item < times; item++) {
            if (runs > 0) {
                double sum = -0.0;
                for (int term = 1; term < size;) {
                    const int end_of_run = term + 2 + 2 * at[term];
                    const double coefficient = NUMBER(term + 1);
                    for (term += 2; term < end_of_run; term += 2) {
                        sum += NUMBER(term) * NUMBER(term + 1) * coefficient;
                    }
                }
                NUMBER(0) = sum;
            } else {
                switch (runs) {
CASES                }
            }
        }
        words = at + size * (times > 1 ? 2 : 1);
    }
}

"""


def _parameters(forward: Callable[..., float], names: list[str]) -> list[str]:
    """The names of the operands of a forward function; these where it does not say."""
    try:
        found = [*signature(forward).parameters]
    except ValueError:  # some functions written in C do not
        return names
    return found[: len(names)] if len(found) >= len(names) else names


# Composites that lose nothing where they are computed in float; others are computed in double, and rounded.
_SAFE_IN_SINGLE = frozenset(["sigmoid", "softplus", "leaky_relu", "elu", "silu", "logistic_pdf", "sign", "ceil"])
_FUNCTION = re.compile(rf"\b({'|'.join(sorted(MATH_H - {'isfinite'}))})\(")
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


def in_single(line: str) -> str:
    """A line of C on doubles as one on floats.

    >>> in_single("return exp(-0.5 * x) + 1e-05;")
    'return expf(-0.5f * x) + 1e-05f;'
    """
    line = re.sub(r"\bdouble\b", "float", line)
    return _NUMBER.sub(r"\1f", _FUNCTION.sub(r"\1f(", line))
