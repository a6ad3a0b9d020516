/* A step of demos/names.py on one name, by hand: loss, gradients, Adam. Parameters are in the order of its model. */

#include <math.h>
#include <string.h>

enum { WIDTH = 16, HEADS = 4, HEAD = WIDTH / HEADS, WIDE = 4 * WIDTH, LONGEST = 32, TOKENS = 64 };

typedef struct {
    double x0[WIDTH], n1[WIDTH], q[WIDTH], k[WIDTH], v[WIDTH], taken[WIDTH], x1[WIDTH], n2[WIDTH], wide[WIDE], x2[WIDTH];
    double shares[HEADS][LONGEST], odds[TOKENS], scale1, scale2, dk[WIDTH], dv[WIDTH];
} Place;

static void times(const double *matrix, const double *x, double *y, int rows, int columns)
{
    for (int row = 0; row < rows; row++) {
        double sum = 0.0;
        for (int i = 0; i < columns; i++)
            sum += matrix[row * columns + i] * x[i];
        y[row] = sum;
    }
}

static void back(const double *matrix, double *slopes, const double *x, double *dx, const double *dy, int rows, int columns)
{
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++) {
            dx[i] += matrix[row * columns + i] * dy[row];
            slopes[row * columns + i] += dy[row] * x[i];
        }
}

static double dot(const double *x, const double *y, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

static double normalised(const double *x, double *y)
{
    double scale = 1.0 / sqrt(dot(x, x, WIDTH) / WIDTH + 1e-5);
    for (int i = 0; i < WIDTH; i++)
        y[i] = x[i] * scale;
    return scale;
}

static void normalised_back(const double *x, double scale, const double *dy, double *dx)
{
    double along = dot(x, dy, WIDTH) * scale * scale * scale / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        dx[i] += scale * dy[i] - along * x[i];
}

static double softmax(const double *scores, double *shares, int count)
{
    double largest = scores[0], sum = 0.0;
    for (int i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    for (int i = 0; i < count; i++)
        sum += shares[i] = exp(scores[i] - largest);
    for (int i = 0; i < count; i++)
        shares[i] /= sum;
    return largest + log(sum);
}

/* state: the parameters, their gradients, and Adam's two means, each of count numbers; the loss before the step. */
double names_step(double *state, long count, const long *name, long length, long tokens, long places, long step, double rate)
{
    static Place all[LONGEST];
    double *at = state, *letter = at, *place, *query, *key, *value, *mix, *widen, *narrow, *output, loss = 0.0;
    place = letter + tokens * WIDTH, query = place + places * WIDTH, key = query + WIDTH * WIDTH;
    value = key + WIDTH * WIDTH, mix = value + WIDTH * WIDTH, widen = mix + WIDTH * WIDTH;
    narrow = widen + WIDE * WIDTH, output = narrow + WIDE * WIDTH;
#define SLOPES(matrix) ((matrix) + count)
    memset(state + count, 0, count * sizeof(double));
    long last = length - 1;
    for (long p = 0; p < last; p++) {
        Place *here = &all[p];
        double scores[TOKENS], sums[WIDE];
        for (int i = 0; i < WIDTH; i++)
            here->x0[i] = letter[name[p] * WIDTH + i] + place[p * WIDTH + i];
        here->scale1 = normalised(here->x0, here->n1);
        times(query, here->n1, here->q, WIDTH, WIDTH);
        times(key, here->n1, here->k, WIDTH, WIDTH);
        times(value, here->n1, here->v, WIDTH, WIDTH);
        memset(here->taken, 0, sizeof here->taken);
        for (int h = 0; h < HEADS; h++) {
            for (long j = 0; j <= p; j++)
                scores[j] = dot(here->q + h * HEAD, all[j].k + h * HEAD, HEAD) / 2.0;
            softmax(scores, here->shares[h], (int)p + 1);
            for (long j = 0; j <= p; j++)
                for (int i = h * HEAD; i < (h + 1) * HEAD; i++)
                    here->taken[i] += here->shares[h][j] * all[j].v[i];
        }
        times(mix, here->taken, sums, WIDTH, WIDTH);
        for (int i = 0; i < WIDTH; i++)
            here->x1[i] = here->x0[i] + sums[i];
        here->scale2 = normalised(here->x1, here->n2);
        times(widen, here->n2, here->wide, WIDE, WIDTH);
        for (int i = 0; i < WIDE; i++)
            here->wide[i] = here->wide[i] > 0.0 ? here->wide[i] : 0.0;
        times(narrow, here->wide, sums, WIDTH, WIDE);
        for (int i = 0; i < WIDTH; i++)
            here->x2[i] = here->x1[i] + sums[i];
        times(output, here->x2, scores, (int)tokens, WIDTH);
        loss += softmax(scores, here->odds, (int)tokens) - scores[name[p + 1]];
        memset(here->dk, 0, sizeof here->dk);
        memset(here->dv, 0, sizeof here->dv);
    }
    for (long p = last - 1; p >= 0; p--) {
        Place *here = &all[p];
        double dx[WIDTH] = {0}, dn[WIDTH] = {0}, dwide[WIDE] = {0}, dtaken[WIDTH] = {0}, dq[WIDTH] = {0};
        here->odds[name[p + 1]] -= 1.0;
        for (long i = 0; i < tokens; i++)
            here->odds[i] /= last;
        back(output, SLOPES(output), here->x2, dx, here->odds, (int)tokens, WIDTH);
        back(narrow, SLOPES(narrow), here->wide, dwide, dx, WIDTH, WIDE);
        for (int i = 0; i < WIDE; i++)
            dwide[i] = here->wide[i] > 0.0 ? dwide[i] : 0.0;
        back(widen, SLOPES(widen), here->n2, dn, dwide, WIDE, WIDTH);
        normalised_back(here->x1, here->scale2, dn, dx);
        back(mix, SLOPES(mix), here->taken, dtaken, dx, WIDTH, WIDTH);
        for (int h = 0; h < HEADS; h++) {
            double given[LONGEST], sum = 0.0;
            for (long j = 0; j <= p; j++) {
                given[j] = dot(dtaken + h * HEAD, all[j].v + h * HEAD, HEAD);
                sum += here->shares[h][j] * given[j];
            }
            for (long j = 0; j <= p; j++) {
                double share = here->shares[h][j], slope = share * (given[j] - sum) / 2.0;
                for (int i = h * HEAD; i < (h + 1) * HEAD; i++) {
                    all[j].dv[i] += share * dtaken[i];
                    all[j].dk[i] += slope * here->q[i];
                    dq[i] += slope * all[j].k[i];
                }
            }
        }
        memset(dn, 0, sizeof dn);
        back(query, SLOPES(query), here->n1, dn, dq, WIDTH, WIDTH);
        back(key, SLOPES(key), here->n1, dn, here->dk, WIDTH, WIDTH);
        back(value, SLOPES(value), here->n1, dn, here->dv, WIDTH, WIDTH);
        normalised_back(here->x0, here->scale1, dn, dx);
        for (int i = 0; i < WIDTH; i++) {
            SLOPES(letter)[name[p] * WIDTH + i] += dx[i];
            SLOPES(place)[p * WIDTH + i] += dx[i];
        }
    }
    double *slopes = state + count, *mean = slopes + count, *square = mean + count;
    double first = 1.0 - pow(0.9, step + 1.0), second = 1.0 - pow(0.999, step + 1.0);
    for (long i = 0; i < count; i++) {
        mean[i] = 0.9 * mean[i] + (1 - 0.9) * slopes[i];
        square[i] = 0.999 * square[i] + (1 - 0.999) * (slopes[i] * slopes[i]);
        state[i] -= rate * (mean[i] / first) / (sqrt(square[i] / second) + 1e-8);
    }
    return loss / last;
}
