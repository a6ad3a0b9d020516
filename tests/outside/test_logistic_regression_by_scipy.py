"""Logistic regression by SciPy's L-BFGS: a program whose optimiser is somebody else's.

SciPy asks for a function that gives the loss and its gradient as a float and an array, and calls it with arrays of its
own. That is what mg.value_and_grad(loss) is, as it stands and compiled.

Model, gradient X^T (y - t) and the iteratively reweighted least squares that give the truth: Bishop, Pattern
Recognition and Machine Learning (2006), sections 4.3.2 and 4.3.3, with a quadratic penalty. The penalty makes the loss
strongly convex, so the distance from the optimum is at most the length of the gradient, divided by the penalty (Boyd
and Vandenberghe, Convex Optimization (2004), section 9.1.2). L-BFGS: Nocedal and Wright, Numerical Optimization (2006),
section 7.2.
"""

import math

import numpy as np
import pytest
from scipy import optimize

import micrograd as mg
from tests.outside.ways import WAYS

PENALTY = 0.05
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


def table():
    """Rows with a 1 in front, and the class of each: 1 or 0."""
    random = np.random.default_rng(7)
    rows = np.hstack([np.ones((60, 1)), random.normal(size=(60, 3)) * [1.0, 2.0, 0.5]])
    classes = (random.random(60) < 1 / (1 + np.exp(-rows @ [0.3, 1.0, -0.7, 2.0]))).astype(float)
    return rows, classes


ROWS, CLASSES = table()


def loss(weights):
    """The mean cross-entropy, as a loop over the rows, and the penalty."""
    total = 0.0
    for row, target in zip(ROWS, CLASSES, strict=True):
        score = mg.dot(weights, row)
        total += mg.softplus(score) - target * score
    return total / len(ROWS) + PENALTY / 2 * mg.dot(weights, weights)


def loss_of_arrays(weights):
    """The same as whoever thinks in arrays writes it."""
    scores = ROWS @ weights
    return mg.mean([mg.softplus(s) - t * s for s, t in zip(scores, CLASSES, strict=True)]) + PENALTY / 2 * (
        weights @ weights
    )


def true_loss(weights):
    scores = ROWS @ weights
    return np.mean(np.logaddexp(0.0, scores) - CLASSES * scores) + PENALTY / 2 * weights @ weights


def true_gradient(weights):
    return ROWS.T @ (1 / (1 + np.exp(-ROWS @ weights)) - CLASSES) / len(ROWS) + PENALTY * weights


def optimum():
    """Where the gradient is 0: Newton's method on the closed form."""
    weights = np.zeros(4)
    for _ in range(30):
        slopes = 1 / (1 + np.exp(-ROWS @ weights))
        curvature = (ROWS.T * (slopes * (1 - slopes))) @ ROWS / len(ROWS) + PENALTY * np.eye(4)
        weights = weights - np.linalg.solve(curvature, true_gradient(weights))
    return weights


@pytest.mark.parametrize("f", [loss, loss_of_arrays])
@pytest.mark.parametrize("way", WAYS)
def test_value_and_gradient_are_those_of_the_closed_form(way, f):
    both = WAYS[way](mg.value_and_grad(f))
    for weights in np.random.default_rng(1).normal(size=(5, 4)):
        value, gradient = both(weights)
        assert math.isclose(value, true_loss(weights), rel_tol=1e-13)
        assert type(gradient) is np.ndarray
        assert gradient.dtype == float
        np.testing.assert_allclose(gradient, true_gradient(weights), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("f", [loss, loss_of_arrays])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.unmeasured
def test_scipy_finds_the_optimum(way, f):
    both = WAYS[way](mg.value_and_grad(f))
    found = optimize.minimize(both, np.zeros(4), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 1e-16})
    slope = np.linalg.norm(true_gradient(found.x))
    assert slope < 1e-6
    assert np.linalg.norm(found.x - optimum()) <= slope / PENALTY + 1e-12
    assert math.isclose(found.fun, true_loss(found.x), rel_tol=1e-12)
    assert found.nit < 50


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.unmeasured
def test_scipy_takes_the_hessian_too(way):
    """Newton's method with conjugate gradients in a trust region: Nocedal and Wright, section 7.1."""
    hessian = WAYS[way](mg.hessian(loss))
    found = optimize.minimize(
        WAYS[way](mg.value_and_grad(loss)),
        np.zeros(4),
        jac=True,
        hess=hessian,
        method="trust-ncg",
        options={"gtol": 1e-9},
    )
    np.testing.assert_allclose(found.x, optimum(), atol=1e-5)
    assert found.nit < 10


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.unmeasured
def test_the_whole_search_needs_one_trace(backend):
    traces = []

    def counted(weights):
        kept = traces.append
        kept(None)
        return loss(weights)

    eager = optimize.minimize(mg.value_and_grad(counted), np.zeros(4), jac=True, method="L-BFGS-B")
    assert len(traces) == eager.nfev
    both = mg.compile(mg.value_and_grad(loss), backend=backend)
    compiled = optimize.minimize(both, np.zeros(4), jac=True, method="L-BFGS-B")
    assert (compiled.nit, compiled.nfev) == (eager.nit, eager.nfev)
    np.testing.assert_allclose(compiled.x, eager.x, atol=1e-9)
    assert len(both._kept.programs) == 1
