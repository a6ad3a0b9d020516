"""Functions of C for products of matrices: a block of results at a time, so that what is read serves several of them.

The sums of a block stay in registers. Compilers make vectors of the loops over lanes without being told that they may
reorder sums: the lanes are 16 columns, or eight terms. What no block covers comes last, one row after the other.
"""

from __future__ import annotations

ROWS, COLUMNS, LANES = 4, 16, 4  # of a block of columns; a block of terms has as many columns as LANES

PRODUCTS = {
    "multiply": """\
/* y = scale * a * b, or y += scale * a * b: blocks of 4 rows and 16 columns. */
static void NAME_multiply(int rows, int columns, int terms, int adds, double *restrict y, int y_row, double scale,
    const double *a, int a_row, int a_term, const double *b, int b_term)
{
    const int whole_rows = rows / 4 * 4, whole_columns = columns / 16 * 16;
    for (int column = 0; column < whole_columns; column += 16) {
        for (int row = 0; row < whole_rows; row += 4) {
            double *const y_0 = y + y_row * row + column;
            double *const y_1 = y_0 + y_row, *const y_2 = y_1 + y_row, *const y_3 = y_2 + y_row;
            const double *factors = a + a_row * row, *others = b + column;
            double sum_0[16], sum_1[16], sum_2[16], sum_3[16];
            for (int lane = 0; lane < 16; lane++) {
                sum_0[lane] = sum_1[lane] = sum_2[lane] = sum_3[lane] = -0.0;
            }
            for (int term = 0; term < terms; term++) {
                const double factor_0 = scale * factors[0], factor_1 = scale * factors[a_row];
                const double factor_2 = scale * factors[2 * a_row], factor_3 = scale * factors[3 * a_row];
                for (int lane = 0; lane < 16; lane++) {
                    sum_0[lane] += factor_0 * others[lane];
                    sum_1[lane] += factor_1 * others[lane];
                    sum_2[lane] += factor_2 * others[lane];
                    sum_3[lane] += factor_3 * others[lane];
                }
                factors += a_term;
                others += b_term;
            }
            for (int lane = 0; lane < 16; lane++) {
                y_0[lane] = adds ? y_0[lane] + sum_0[lane] : sum_0[lane];
                y_1[lane] = adds ? y_1[lane] + sum_1[lane] : sum_1[lane];
                y_2[lane] = adds ? y_2[lane] + sum_2[lane] : sum_2[lane];
                y_3[lane] = adds ? y_3[lane] + sum_3[lane] : sum_3[lane];
            }
        }
    }
    for (int row = 0; row < rows; row++) {
        const int first = row < whole_rows ? whole_columns : 0;
        double *const sums = y + y_row * row;
        for (int column = first; column < columns; column++) {
            sums[column] = adds ? sums[column] : -0.0;
        }
        for (int term = 0; term < terms; term++) {
            const double factor = scale * a[a_row * row + a_term * term];
            for (int column = first; column < columns; column++) {
                sums[column] += factor * b[b_term * term + column];
            }
        }
    }
}

""",
    "multiply_dots": """\
/* The same where the terms of a row of a, and of a column of b, lie side by side: blocks of 4 rows and 4 columns. */
static void NAME_multiply_dots(int rows, int columns, int terms, int adds, double *restrict y, int y_row, double scale,
    const double *a, int a_row, const double *b, int b_column)
{
    const int whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4, whole = terms / 8 * 8;
    for (int column = 0; column < whole_columns; column += 4) {
        const double *const b_0 = b + b_column * column;
        const double *const b_1 = b_0 + b_column, *const b_2 = b_1 + b_column, *const b_3 = b_2 + b_column;
        for (int row = 0; row < whole_rows; row += 4) {
            const double *const a_0 = a + a_row * row;
            const double *const a_1 = a_0 + a_row, *const a_2 = a_1 + a_row, *const a_3 = a_2 + a_row;
            double sum_00[8] = {0.0}, sum_01[8] = {0.0}, sum_02[8] = {0.0}, sum_03[8] = {0.0};
            double sum_10[8] = {0.0}, sum_11[8] = {0.0}, sum_12[8] = {0.0}, sum_13[8] = {0.0};
            double sum_20[8] = {0.0}, sum_21[8] = {0.0}, sum_22[8] = {0.0}, sum_23[8] = {0.0};
            double sum_30[8] = {0.0}, sum_31[8] = {0.0}, sum_32[8] = {0.0}, sum_33[8] = {0.0};
            for (int term = 0; term < whole; term += 8) {
                for (int lane = 0; lane < 8; lane++) {
                    sum_00[lane] += a_0[term + lane] * b_0[term + lane];
                    sum_01[lane] += a_0[term + lane] * b_1[term + lane];
                    sum_02[lane] += a_0[term + lane] * b_2[term + lane];
                    sum_03[lane] += a_0[term + lane] * b_3[term + lane];
                    sum_10[lane] += a_1[term + lane] * b_0[term + lane];
                    sum_11[lane] += a_1[term + lane] * b_1[term + lane];
                    sum_12[lane] += a_1[term + lane] * b_2[term + lane];
                    sum_13[lane] += a_1[term + lane] * b_3[term + lane];
                    sum_20[lane] += a_2[term + lane] * b_0[term + lane];
                    sum_21[lane] += a_2[term + lane] * b_1[term + lane];
                    sum_22[lane] += a_2[term + lane] * b_2[term + lane];
                    sum_23[lane] += a_2[term + lane] * b_3[term + lane];
                    sum_30[lane] += a_3[term + lane] * b_0[term + lane];
                    sum_31[lane] += a_3[term + lane] * b_1[term + lane];
                    sum_32[lane] += a_3[term + lane] * b_2[term + lane];
                    sum_33[lane] += a_3[term + lane] * b_3[term + lane];
                }
            }
            const double sums[4][4] = {
                {NAME_eight(sum_00), NAME_eight(sum_01), NAME_eight(sum_02), NAME_eight(sum_03)},
                {NAME_eight(sum_10), NAME_eight(sum_11), NAME_eight(sum_12), NAME_eight(sum_13)},
                {NAME_eight(sum_20), NAME_eight(sum_21), NAME_eight(sum_22), NAME_eight(sum_23)},
                {NAME_eight(sum_30), NAME_eight(sum_31), NAME_eight(sum_32), NAME_eight(sum_33)},
            };
            for (int place = 0; place < 16; place++) {
                const int of_row = row + place / 4, of_column = column + place % 4;
                double *const result = &y[y_row * of_row + of_column];
                double sum = sums[place / 4][place % 4];
                for (int term = whole; term < terms; term++) {
                    sum += a[a_row * of_row + term] * b[b_column * of_column + term];
                }
                *result = adds ? *result + scale * sum : scale * sum;
            }
        }
    }
    for (int row = 0; row < rows; row++) {
        for (int column = row < whole_rows ? whole_columns : 0; column < columns; column++) {
            const double sum = scale * NAME_dot(terms, &a[a_row * row], &b[b_column * column]);
            double *const result = &y[y_row * row + column];
            *result = adds ? *result + sum : sum;
        }
    }
}

""",
}
