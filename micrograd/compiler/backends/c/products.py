"""Functions of C for sums of many products: of matrices, and of two rows of numbers.

A matrix product is computed in blocks of eight rows, so that what is read serves several sums, which stay in registers.
The lanes of a block are vectors where the compiler has a type for them, which gcc and clang do, and single numbers
elsewhere; so no compiler needs to find vectors by itself, or be told that it may reorder sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, COLUMNS, LANES = 4, 8, 4  # matrices that are worth a block: rows, and columns of either kind of product
_ROWS, _FOURTHS = 8, 4  # of a block

_LANES = """\
/* Numbers that are computed at once: as many as this processor has room for, if the compiler has a type for them. */
#if defined(__GNUC__) && defined(__AVX512F__)
#define LANES_BYTES 64
#elif defined(__GNUC__) && defined(__AVX__)
#define LANES_BYTES 32
#elif defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON) || defined(__wasm_simd128__))
#define LANES_BYTES 16
#endif
#ifdef LANES_BYTES
typedef double NAME_lanes __attribute__((vector_size(LANES_BYTES), aligned(sizeof(double)), may_alias));
#else
typedef double NAME_lanes;
#endif
#define LANES_COUNT ((int)(sizeof(NAME_lanes) / sizeof(double)))
#if defined(__GNUC__) && !defined(__clang__) /* in copies for some sizes, gcc warns of steps that are never made */
#define LANES_APART __attribute__((noinline, noclone))
#else
#define LANES_APART
#endif

"""


def _block(kind: str, count: int, width: str) -> list[str]:
    """The loop over blocks of eight rows, and of so many vectors of columns."""
    rows, vectors = range(_ROWS), range(count)
    sums = [(row, vector) for row in rows for vector in vectors]
    positions = {
        (row, vector): _element(kind, "y", f"y_row * row_{row} + column{_far(vector, width)}") for row, vector in sums
    }
    others = [f"b_{vector} = {_element(f'const {kind}', 'others', _far(vector, width)[3:])}" for vector in vectors]
    starts = ", ".join(f"sum_{row}{vector} = zero" for row, vector in sums)
    span = width if count == 1 else f"{count} * {width}"
    return [
        f"for (; column + {span} <= columns; column += {span}) {{",
        "    for (int row_0 = 0; row_0 < rows; row_0 += 8) {",
        *(f"        const int row_{row} = row_{row - 1} + (row_{row - 1} + 1 < rows);" for row in rows[1:]),
        *(f"        const double *const a_{row} = &a[a_row * row_{row}];" for row in rows),
        f"        const {kind} zero = -({kind}){{0.0}};" if kind != "double" else "        const double zero = -0.0;",
        f"        {kind} {starts};",
        "        for (int term = 0; term < terms; term++) {",
        "            const int at = a_term * (a_at ? a_at[term] : term);",
        "            const double *const others = &b[b_term * (b_at ? b_at[term] : term) + column];",
        f"            const {kind} {', '.join(others)};",
        *(f"            sum_{row}{vector} += a_{row}[at] * b_{vector};" for row, vector in sums),
        "        }",
        *(f"        sum_{row}{vector} *= scale;" for row, vector in sums),
        "        if (adds) {",
        *(f"            sum_{row}{vector} += {positions[row, vector]};" for row, vector in sums),
        "        }",
        *(f"        {positions[row, vector]} = sum_{row}{vector};" for row, vector in sums),
        "    }",
        "}",
    ]


def _far(vector: int, width: str) -> str:
    return f" + {width}" if vector else ""


def _row_block(kind: str, count: int, width: str) -> list[str]:
    """The loop over blocks of one row: each vector has a sum for every fourth term, as a sum waits for the last one."""
    vectors, fourths = range(count), range(_FOURTHS)
    sums = [(fourth, vector) for fourth in fourths for vector in vectors]
    positions = [_element(kind, "y", f"column{_far(vector, width)}") for vector in vectors]

    def added(fourth: int) -> list[str]:
        n = f"term + {fourth}" if fourth else "term"
        others = [_element(f"const {kind}", f"b_{fourth}", _far(vector, width)[3:]) for vector in vectors]
        return [
            f"const double a_{fourth} = a[a_term * (a_at ? a_at[{n}] : {n})];",
            f"const double *const b_{fourth} = &b[b_term * (b_at ? b_at[{n}] : {n}) + column];",
            *(f"sum_{fourth}{vector} += a_{fourth} * {other};" for vector, other in enumerate(others)),
        ]

    span = width if count == 1 else f"{count} * {width}"
    return [
        f"for (; column + {span} <= columns; column += {span}) {{",
        f"    const {kind} zero = -({kind}){{0.0}};" if kind != "double" else "    const double zero = -0.0;",
        f"    {kind} {', '.join(f'sum_{fourth}{vector} = zero' for fourth, vector in sums)};",
        f"    for (int term = 0; term < whole; term += {_FOURTHS}) {{",
        *(f"        {line}" for fourth in fourths for line in added(fourth)),
        "    }",
        "    for (int term = whole; term < terms; term++) {",
        *(f"        {line}" for line in added(0)),
        "    }",
        *(f"    sum_0{v} = scale * ((sum_0{v} + sum_1{v}) + (sum_2{v} + sum_3{v}));" for v in vectors),
        "    if (adds) {",
        *(f"        sum_0{v} += {position};" for v, position in enumerate(positions)),
        "    }",
        *(f"    {position} = sum_0{v};" for v, position in enumerate(positions)),
        "}",
    ]


def _element(kind: str, array: str, index: str) -> str:
    """A vector that begins at an element of an array, or the element."""
    if not index:
        return f"*{array}" if kind.endswith("double") else f"*({kind} *){array}"
    return f"{array}[{index}]" if kind.endswith("double") else f"*({kind} *)&{array}[{index}]"


def _with_blocks(text: str, block: Callable[[str, int, str], list[str]]) -> str:
    blocks = [("NAME_lanes", 2, "LANES_COUNT"), ("NAME_lanes", 1, "LANES_COUNT"), ("double", 1, "1")]
    return text.replace("BLOCKS", "\n".join(f"    {line}" for each in blocks for line in block(*each)))


_MULTIPLY = """\
/* y = scale * a * b, or y += scale * a * b: blocks of 8 rows, where rows after the last are the last once more.
   Terms are evenly apart, or where tables say: each number is so many steps. */
static LANES_APART void NAME_multiply(int rows, int columns, int terms, int adds, double *y, int y_row, \
double scale, const double *a, int a_row, int a_term, \
const int *a_at, const double *b, int b_term, const int *b_at)
{
    int column = 0;
BLOCKS
}

"""

_MULTIPLY_ROW = """\
/* The same for one row. */
static LANES_APART void NAME_multiply_row(int columns, int terms, int adds, double *y, \
double scale, const double *a, int a_term, \
const int *a_at, const double *b, int b_term, const int *b_at)
{
    const int whole = terms / 4 * 4;
    int column = 0;
BLOCKS
}

"""

PRODUCTS = {
    "lanes": _LANES,
    "multiply": _with_blocks(_MULTIPLY, _block),
    "dot": """\
/* The sum of a * b, where terms lie side by side. */
static double NAME_dot(int count, const double *a, const double *b)
{
    const NAME_lanes zero = {0.0};
    NAME_lanes sum_0 = zero, sum_1 = zero, sum_2 = zero, sum_3 = zero;
    int n = 0;
    for (; n + 4 * LANES_COUNT <= count; n += 4 * LANES_COUNT) {
        sum_0 += *(const NAME_lanes *)&a[n] * *(const NAME_lanes *)&b[n];
        sum_1 += *(const NAME_lanes *)&a[n + LANES_COUNT] * *(const NAME_lanes *)&b[n + LANES_COUNT];
        sum_2 += *(const NAME_lanes *)&a[n + 2 * LANES_COUNT] * *(const NAME_lanes *)&b[n + 2 * LANES_COUNT];
        sum_3 += *(const NAME_lanes *)&a[n + 3 * LANES_COUNT] * *(const NAME_lanes *)&b[n + 3 * LANES_COUNT];
    }
    for (; n + LANES_COUNT <= count; n += LANES_COUNT) {
        sum_0 += *(const NAME_lanes *)&a[n] * *(const NAME_lanes *)&b[n];
    }
    double sums[LANES_COUNT];
    *(NAME_lanes *)sums = (sum_0 + sum_1) + (sum_2 + sum_3);
    for (int half = LANES_COUNT / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; lane++) {
            sums[lane] += sums[lane + half];
        }
    }
    double sum = sums[0];
    for (; n < count; n++) {
        sum += a[n] * b[n];
    }
    return sum;
}

""",
    "multiply_row": _with_blocks(_MULTIPLY_ROW, _row_block),
    "multiply_dots": """\
/* The same where the terms of a column of b lie side by side: some columns and terms of b are made rows first. */
static LANES_APART void NAME_multiply_dots(int rows, int columns, int terms, int adds, double *y, int y_row, \
double scale, const double *a, int a_row, const double *b, int b_column)
{
    double part[16 * 16];
    for (int column = 0; column < columns; column += 16) {
        const int wide = columns - column < 16 ? columns - column : 16;
        for (int term = 0; term < terms; term += 16) {
            const int few = terms - term < 16 ? terms - term : 16;
            for (int lane = 0; lane < wide; lane++) {
                const double *const of_column = &b[b_column * (column + lane) + term];
                for (int position = 0; position < few; position++) {
                    part[16 * position + lane] = of_column[position];
                }
            }
            NAME_multiply(rows, wide, few, adds || term > 0, &y[column], y_row, scale, \
&a[term], a_row, 1, 0, part, 16, 0);
        }
    }
}

""",
}
