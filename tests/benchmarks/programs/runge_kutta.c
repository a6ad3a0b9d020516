/* The program of runge_kutta.py and its gradient, by hand: the states are kept, the stages computed twice. */

#include <stdlib.h>

#define STEP 0.01

typedef struct { double a, b, c, d; } Rates;

static void change(Rates w, double x, double y, double *dx, double *dy) {
    double met = x * y;
    *dx = w.a * x - w.b * met;
    *dy = w.d * met - w.c * y;
}

/* The states before each of the four stages, and the state after the step. */
static void step(Rates w, double x, double y, double at[4][2], double *x_after, double *y_after) {
    double k[4][2];
    const double reach[4] = {0, STEP / 2, STEP / 2, STEP};
    for (int s = 0; s < 4; s++) {
        at[s][0] = s ? x + reach[s] * k[s - 1][0] : x;
        at[s][1] = s ? y + reach[s] * k[s - 1][1] : y;
        change(w, at[s][0], at[s][1], &k[s][0], &k[s][1]);
    }
    *x_after = x + STEP / 6 * (k[0][0] + 2 * k[1][0] + 2 * k[2][0] + k[3][0]);
    *y_after = y + STEP / 6 * (k[0][1] + 2 * k[1][1] + 2 * k[2][1] + k[3][1]);
}

static double forward(const double *p, const double *counted, int steps, double *states) {
    Rates w = {p[0], p[1], p[2], p[3]};
    double at[4][2], x = p[4], y = p[5], total = 0;
    for (int t = 0; t < steps; t++) {
        if (states) { states[2 * t] = x; states[2 * t + 1] = y; }
        step(w, x, y, at, &x, &y);
        double ex = x - counted[2 * t], ey = y - counted[2 * t + 1];
        total += ex * ex + ey * ey;
    }
    if (states) { states[2 * steps] = x; states[2 * steps + 1] = y; }
    return total / steps;
}

double value(const double *p, const double *counted, int steps) {
    return forward(p, counted, steps, 0);
}

/* p and gradient: a, b, c, d, prey, predators. */
double value_and_gradient(const double *p, const double *counted, int steps, double *gradient) {
    Rates w = {p[0], p[1], p[2], p[3]};
    double *states = malloc((2 * (size_t)steps + 2) * sizeof(double));
    double total = forward(p, counted, steps, states);
    double ga = 0, gb = 0, gc = 0, gd = 0, gx = 0, gy = 0;
    const double reach[4] = {0, STEP / 2, STEP / 2, STEP}, share[4] = {STEP / 6, STEP / 3, STEP / 3, STEP / 6};
    for (int t = steps - 1; t >= 0; t--) {
        double at[4][2], x_after, y_after;
        step(w, states[2 * t], states[2 * t + 1], at, &x_after, &y_after);
        gx += 2.0 / steps * (states[2 * t + 2] - counted[2 * t]);
        gy += 2.0 / steps * (states[2 * t + 3] - counted[2 * t + 1]);
        double before_x = gx, before_y = gy, sx = 0, sy = 0;
        for (int s = 3; s >= 0; s--) {
            double kx = share[s] * gx, ky = share[s] * gy;
            if (s < 3) { kx += reach[s + 1] * sx; ky += reach[s + 1] * sy; }
            double x = at[s][0], y = at[s][1];
            ga += kx * x;
            gb -= kx * x * y;
            gc -= ky * y;
            gd += ky * x * y;
            sx = kx * (w.a - w.b * y) + ky * w.d * y;
            sy = ky * (w.d * x - w.c) - kx * w.b * x;
            before_x += sx;
            before_y += sy;
        }
        gx = before_x;
        gy = before_y;
    }
    free(states);
    gradient[0] = ga; gradient[1] = gb; gradient[2] = gc; gradient[3] = gd; gradient[4] = gx; gradient[5] = gy;
    return total;
}
