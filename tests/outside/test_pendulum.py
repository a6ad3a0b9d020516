"""A pendulum with friction, fitted through the steps of a Runge-Kutta method.

It stands for programs that simulate: a loop in time whose parameters are found from what was seen. The equation
theta'' = -(g / length) sin(theta) - damping theta': Strogatz, Nonlinear Dynamics and Chaos (1994), section 6.7. The
classical method of the fourth order: Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I (1993),
section II.1. Its error is checked by halving the step, and the period of small swings, 2 pi sqrt(length / g), by the
zeros of the motion. Least squares by Levenberg and Marquardt: Nocedal and Wright, Numerical Optimization (2006),
section 10.3. Gradients are compared with central differences.
"""

import math

import numpy as np
import pytest
from scipy import integrate, optimize

import micrograd as mg
from tests.outside.ways import WAYS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

G = 9.81
LENGTH, DAMPING = 1.3, 0.25
START = (1.0, 0.0)  # angle and speed
STEP, STEPS = 0.1, 16


def slope(state, length, damping):
    angle, speed = state
    return speed, -G / length * mg.sin(angle) - damping * speed


def along(state, slopes, step):
    return tuple(x + step * dx for x, dx in zip(state, slopes, strict=True))


def runge_kutta(state, step, *parameters):
    first = slope(state, *parameters)
    second = slope(along(state, first, step / 2), *parameters)
    third = slope(along(state, second, step / 2), *parameters)
    fourth = slope(along(state, third, step), *parameters)
    mixed = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(first, second, third, fourth, strict=True)]
    return along(state, mixed, step)


def swing(length, damping, steps=STEPS, step=STEP, start=START):
    state, angles = start, []
    for _ in range(steps):
        state = runge_kutta(state, step, length, damping)
        angles.append(state[0])
    return angles


def seen():
    """What SciPy's own solver says, which is exact to its tolerance."""
    solution = integrate.solve_ivp(
        lambda _, state: [state[1], -G / LENGTH * math.sin(state[0]) - DAMPING * state[1]],
        (0.0, STEP * STEPS),
        START,
        t_eval=STEP * np.arange(1, STEPS + 1),
        rtol=1e-12,
        atol=1e-12,
        method="DOP853",
    )
    return solution.y[0].tolist()


SEEN = seen()


def residuals(parameters):
    return [angle - truth for angle, truth in zip(swing(*parameters), SEEN, strict=True)]


def loss(parameters):
    return mg.mean([residual**2 for residual in residuals(parameters)])


def test_the_method_is_of_the_fourth_order():
    ends = [swing(LENGTH, DAMPING, STEPS * 2**n, STEP / 2**n)[-1] for n in range(3)]
    ratio = (ends[0] - SEEN[-1]) / (ends[1] - SEEN[-1])
    assert 13.0 < ratio < 19.0  # 2**4, and terms of higher order


def test_small_swings_have_the_period_of_the_book():
    angles = [1e-3, *swing(LENGTH, 0.0, steps=200, step=0.02, start=(1e-3, 0.0))]
    falls = [n + angles[n] / (angles[n] - angles[n + 1]) for n in range(200) if angles[n] > 0 >= angles[n + 1]]
    assert math.isclose((falls[1] - falls[0]) * 0.02, 2 * math.pi * math.sqrt(LENGTH / G), rel_tol=1e-4)


SLOWLY = ["eager", *(pytest.param(way, marks=pytest.mark.slow) for way in ("numpy", "llvm"))]


@pytest.mark.parametrize("way", SLOWLY)
def test_gradients_are_those_of_differences(way):
    both = WAYS[way](mg.value_and_grad(loss))
    for parameters in ([1.0, 0.1], [1.3, 0.25], [2.0, 0.0]):
        value, gradient = both(parameters)
        assert math.isclose(value, loss(parameters), rel_tol=1e-11)
        for place in range(2):
            step = 1e-5
            above, below = list(parameters), list(parameters)
            above[place] += step
            below[place] -= step
            difference = (loss(above) - loss(below)) / (2 * step)
            assert math.isclose(gradient[place], difference, rel_tol=1e-6, abs_tol=1e-8)


@pytest.mark.parametrize("way", SLOWLY)
@pytest.mark.unmeasured
def test_the_jacobian_recovers_length_and_damping(way):
    found = optimize.least_squares(
        WAYS[way](residuals), [1.0, 0.1], jac=WAYS[way](mg.jacobian(residuals)), method="lm", xtol=1e-12
    )
    assert found.success
    np.testing.assert_allclose(found.x, [LENGTH, DAMPING], rtol=1e-4)  # the error of the steps is left
    assert found.njev < 20


@pytest.mark.parametrize("way", SLOWLY)
@pytest.mark.unmeasured
def test_gradient_descent_recovers_them_as_parameters(way):
    """As a loop over backward() and an optimiser, with Values that the loss closes over."""
    length, damping = mg.Value(1.1, label="length"), mg.Value(0.1, label="damping")
    f = WAYS[way](lambda: loss([length, damping]))
    optimizer = mg.optim.Adam([length, damping], learning_rate=lambda step: 0.03 * 0.97**step)
    first = f().data
    for _ in range(120):
        optimizer.zero_grad()
        f().backward()
        optimizer.step()
    assert f().data < 1e-4 * first
    assert abs(length.data - LENGTH) < 0.01
    assert abs(damping.data - DAMPING) < 0.02


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_number_of_steps_is_static(backend):
    """As a range, it has a program for each length; as an int it is refused, with what to write."""
    fast = mg.compile(lambda length, steps: swing(length, DAMPING, len(steps))[-1], backend=backend)
    for steps in (5, 10, 5):
        assert math.isclose(fast(LENGTH, range(steps)), swing(LENGTH, DAMPING, steps)[-1], rel_tol=1e-12)
    with pytest.raises(mg.TraceError, match=r"static.* give range\("):
        mg.compile(lambda length, steps: swing(length, DAMPING, steps)[-1], backend=backend)(LENGTH, 5)
