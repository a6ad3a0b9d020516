"""Derivatives inside a loss: what a transform gives is connected to the Values that its function closes over."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value

BACKENDS = [pytest.param("numpy", marks=pytest.mark.slow), pytest.param("llvm", marks=pytest.mark.slow), "jax"]
each_backend = pytest.mark.parametrize("backend", BACKENDS)


def cubic(w):
    return lambda x: w * x**3


def wave(w):
    return lambda x: mg.sin(w * x)


def of_two(w):
    return lambda p: w * p[0] ** 2 * p[1] ** 3


def step_of_maml(w, x):
    """The loss after a step of gradient descent from w, on the loss (w * x - 1)**2."""
    adapted = w - 0.1 * mg.grad(lambda v: (v * x - 1) ** 2 * w)(x)
    return (adapted * x - 2) ** 2


def pulled_back(f, x, cotangent=1.0):
    return mg.vjp(f, x)[1](cotangent)[0]


# Each form takes a Value w and a number x. Beside it is what it must be, in w and x, without a derivative inside.
FORMS = {
    "grad": (lambda w, x: mg.grad(cubic(w))(x), lambda w, x: 3 * w * x**2),
    "grad of a wave": (lambda w, x: mg.grad(wave(w))(x), lambda w, x: w * mg.cos(w * x)),
    "grad of grad": (lambda w, x: mg.grad(mg.grad(wave(w)))(x), lambda w, x: -w * w * mg.sin(w * x)),
    "third order": (lambda w, x: mg.grad(mg.grad(mg.grad(wave(w))))(x), lambda w, x: -(w**3) * mg.cos(w * x)),
    "grad of two arguments": (
        lambda w, x: sum(mg.grad(lambda a, b: w * a**2 * b**3, (0, 1))(x, x)),
        lambda w, x: 5 * w * x**4,
    ),
    "grad of a dict": (
        lambda w, x: mg.grad(lambda p: w * p["a"] ** 2 * p["b"][0])({"a": x, "b": [3.0]})["b"][0],
        lambda w, x: w * x**2,
    ),
    "value": (lambda w, x: mg.value_and_grad(wave(w))(x)[0], lambda w, x: mg.sin(w * x)),
    "value and grad": (
        lambda w, x: mg.dot(mg.value_and_grad(cubic(w))(x), [2.0, 3.0]),
        lambda w, x: 2 * w * x**3 + 9 * w * x**2,
    ),
    "jacobian of a list": (
        lambda w, x: mg.dot(mg.jacobian(lambda y: [w * y**2, w * w * y, 7.0])(x), [1.0, 10.0, 5.0]),
        lambda w, x: 2 * w * x + 10 * w * w,
    ),
    "jacobian of lists": (
        lambda w, x: mg.jacobian(lambda p: [w * p[0] * p[1], p[0] + w])([x, 3.0])[0][1],
        lambda w, x: w * x,
    ),
    "jacobian of grad": (lambda w, x: mg.jacobian(mg.grad(cubic(w)))(x), lambda w, x: 6 * w * x),
    "grad of jacobian": (
        lambda w, x: mg.grad(lambda y: mg.jacobian(lambda z: [w * z**3, w])(y)[0])(x),
        lambda w, x: 6 * w * x,
    ),
    "hessian": (lambda w, x: mg.hessian(cubic(w))(x), lambda w, x: 6 * w * x),
    "hessian of a list": (lambda w, x: mg.hessian(of_two(w))([x, 2.0])[0][1], lambda w, x: 24 * w * x),
    "grad of hessian": (
        lambda w, x: mg.grad(lambda y: mg.hessian(wave(w))(y))(x),
        lambda w, x: -(w**3) * mg.cos(w * x),
    ),
    "jacobian of hessian": (lambda w, x: mg.jacobian(mg.hessian(of_two(w)))([x, 2.0])[0][0][1], lambda w, x: 24 * w),
    "hvp": (lambda w, x: mg.hvp(cubic(w))(x, 2.0), lambda w, x: 12 * w * x),
    "hvp of a list": (lambda w, x: mg.hvp(of_two(w))([x, 2.0], [0.0, 1.0])[0], lambda w, x: 24 * w * x),
    "hvp along a Value": (lambda w, x: mg.hvp(lambda y: y**3)(x, w), lambda w, x: 6 * w * x),
    "grad of hvp": (lambda w, x: mg.grad(lambda y: mg.hvp(cubic(w))(y, 2.0))(x), lambda w, x: 12 * w),
    "value of jvp": (lambda w, x: mg.jvp(wave(w), (x,), (1.0,))[0], lambda w, x: mg.sin(w * x)),
    "jvp": (lambda w, x: mg.jvp(cubic(w), (x,), (2.0,))[1], lambda w, x: 6 * w * x**2),
    "jvp along a Value": (lambda w, x: mg.jvp(lambda y: y**3, (x,), (w,))[1], lambda w, x: 3 * w * x**2),
    "jvp of grad": (lambda w, x: mg.jvp(mg.grad(cubic(w)), (x,), (1.0,))[1], lambda w, x: 6 * w * x),
    "grad of jvp": (lambda w, x: mg.grad(lambda y: mg.jvp(cubic(w), (y,), (1.0,))[1])(x), lambda w, x: 6 * w * x),
    "value of vjp": (lambda w, x: mg.vjp(wave(w), x)[0], lambda w, x: mg.sin(w * x)),
    "vjp": (lambda w, x: pulled_back(cubic(w), x, 2.0), lambda w, x: 6 * w * x**2),
    "vjp of a Value": (lambda w, x: pulled_back(lambda y: y**3, x, w), lambda w, x: 3 * w * x**2),
    "grad of vjp": (lambda w, x: mg.grad(lambda y: pulled_back(cubic(w), y))(x), lambda w, x: 6 * w * x),
    "vjp of grad": (lambda w, x: pulled_back(mg.grad(cubic(w)), x), lambda w, x: 6 * w * x),
    "at a number inside of another": (
        lambda w, x: mg.grad(lambda y: y * mg.grad(lambda z: w * y * z**2)(3.0))(x),
        lambda w, x: 12 * w * x,
    ),
    "gradient inside": (
        lambda w, x: mg.grad(lambda y: mg.gradient(w * y**3, y, create_graph=True))(x),
        lambda w, x: 6 * w * x,
    ),
    "a step of MAML": (step_of_maml, lambda w, x: ((w - 0.1 * (2 * x * (x * x - 1) * w)) * x - 2) ** 2),
}
X, W = 0.75, 1.25
each_form = pytest.mark.parametrize(("form", "formula"), FORMS.values(), ids=FORMS.keys())


def expected(formula, xs=(X,)):
    """The loss, and its derivative by w: of (w + f(w, x)**2) summed over the xs."""
    w = Value(W)
    loss = sum(w + formula(w, x) ** 2 for x in xs)
    loss.backward()
    return pytest.approx((loss.data, w.grad), rel=1e-9)


def backpropagated(loss, w):
    w.grad = 0.0
    result = loss()
    result.backward()
    return result.data, w.grad


@each_form
class TestForms:
    def test_eagerly(self, form, formula):
        w = Value(W)
        assert backpropagated(lambda: w + form(w, X) ** 2, w) == expected(formula)

    def test_the_derivative_by_w_is_that_of_a_transform_around(self, form, formula):
        slope = mg.grad(lambda w: w + form(w, X) ** 2)(W)
        assert type(slope) is float
        assert (expected(formula).expected[0], slope) == expected(formula)

    def test_the_second_derivative_by_w(self, form, formula):
        found = mg.hessian(lambda w: form(w, X) ** 2)(W)
        assert found == pytest.approx(mg.hessian(lambda w: formula(w, X) ** 2)(W), rel=1e-9)

    def test_without_values_it_is_a_plain_number(self, form, formula):
        w, frozen = Value(W), Value(W, requires_grad=False)
        number = pytest.approx(formula(W, X), rel=1e-9)
        results = [form(W, X)]
        with mg.no_grad():
            results.append(form(w, X))
        if "Value" not in formula_name(form):
            results.append(form(frozen, X))
        for result in results:
            assert float(result) == number
            assert type(result) is float or not result.requires_grad

    @pytest.mark.unmeasured
    @each_backend
    @pytest.mark.parametrize("kind", ["closed over", "as arguments", "at a constant"])
    def test_compiled(self, form, formula, backend, kind):
        w = Value(W)
        if kind == "closed over":
            fast = mg.compile(lambda x: w + form(w, x) ** 2, backend=backend)
            calls = [lambda: fast(X)] * 2
        elif kind == "as arguments":
            fast = mg.compile(lambda w, x: w + form(w, x) ** 2, backend=backend)
            calls = [lambda: fast(w, X)] * 2
        else:
            fast = mg.compile(lambda: w + form(w, X) ** 2, backend=backend)
            calls = [fast]
        for call in calls:
            assert backpropagated(call, w) == expected(formula)

    @each_backend
    @pytest.mark.unmeasured
    def test_a_transform_of_a_compiled_loss(self, form, formula, backend):
        fast = mg.compile(lambda w, x: w + form(w, x) ** 2, backend=backend)
        assert mg.value_and_grad(fast)(W, X) == expected(formula)
        assert mg.compile(mg.value_and_grad(lambda w: w + form(w, X) ** 2), backend=backend)(W) == expected(formula)

    @pytest.mark.unmeasured
    @pytest.mark.parametrize("backend", [None, *BACKENDS])
    @pytest.mark.parametrize("loop", ["vmap", "scan"])
    def test_in_a_loop(self, form, formula, backend, loop):
        w, xs = Value(W), [0.25 + 0.125 * turn for turn in range(7)]

        def loss(xs):
            if loop == "vmap":
                return sum(mg.vmap(lambda x: w + form(w, x) ** 2)(xs))
            return mg.scan(lambda total, x: (total + w + form(w, x) ** 2, None), 0.0, xs)[0]

        fast = loss if backend is None else mg.compile(loss, backend=backend)
        assert backpropagated(lambda: fast(xs), w) == expected(formula, xs)

    @pytest.mark.parametrize("backend", [False, *BACKENDS])
    @pytest.mark.unmeasured
    def test_in_fit(self, form, formula, backend):
        w, xs = Value(W), [0.5, 0.75, 1.0]
        mg.fit(lambda x: w + form(w, x) ** 2, xs, mg.optim.SGD([w], 0.001), batch_size=3, compile=backend)
        slope = expected(formula, xs).expected[1] / 3
        assert w.data == pytest.approx(W - 0.001 * slope, rel=1e-9)


def formula_name(form):
    return next(name for name, (each, _) in FORMS.items() if each is form)


# Random nestings: expressions over the variables that are bound around them, with derivatives inside of one another


def expressions(bound=1, depth=3):
    """Programs that take the values of so many variables."""
    variables = st.integers(0, bound - 1).map(lambda index: lambda *given: given[index])
    constants = st.sampled_from([0.5, -1.0, 2.0]).map(lambda number: lambda *given: number)
    if depth == 0:
        return variables | constants
    smaller = st.deferred(lambda: expressions(bound, depth - 1))
    inner = st.deferred(lambda: expressions(bound + 1, depth - 1))
    return st.one_of(
        variables,
        st.builds(lambda f, g: lambda *given: f(*given) + g(*given), smaller, smaller),
        st.builds(lambda f, g: lambda *given: f(*given) * g(*given), smaller, smaller),
        st.builds(lambda f: lambda *given: mg.sin(f(*given)), smaller),
        st.builds(
            lambda transform, f, at: lambda *given: transform(lambda y: f(*given, y), at(*given)),
            st.sampled_from(TRANSFORMS),
            inner,
            smaller,
        ),
    )


TRANSFORMS = [
    lambda f, x: mg.grad(f)(x),
    lambda f, x: sum(mg.value_and_grad(f)(x)),
    lambda f, x: mg.hessian(f)(x),
    lambda f, x: mg.hvp(f)(x, 0.5),
    lambda f, x: mg.jacobian(lambda y: [f(y), y])(x)[0],
    lambda f, x: mg.jvp(f, (x,), (0.5,))[1],
    lambda f, x: pulled_back(f, x, 0.5),
    lambda f, x: mg.grad(lambda p: f(p[0]) * p[1])([x, 2.0])[0],
    lambda f, x: sum(mg.vmap(mg.grad(f))([x, 0.5])),
]


@pytest.mark.slow
@given(expressions())
@settings(max_examples=60)
def test_random_nestings_against_differences_of_the_outer_function(expression):
    assert mg.testing.gradcheck(lambda w: expression(w) + w, [0.75])
    w = Value(0.75)
    number = expression(0.75)
    assert not isinstance(number, Value)
    result = expression(w)
    assert float(result) == pytest.approx(number, rel=1e-9, abs=1e-9)
    with mg.no_grad():
        assert not getattr(expression(w) + 0.0, "requires_grad", False)


@pytest.mark.slow
@given(expressions())
@settings(max_examples=24)
def test_random_nestings_compiled(expression):
    w = Value(0.75)

    def loss(x):
        return expression(w) + w * x

    def by_float(x):
        return expression(x) + x

    eager = backpropagated(lambda: loss(0.5), w)
    fast = mg.compile(loss, backend="numpy")
    assert backpropagated(lambda: fast(0.5), w) == pytest.approx(eager, rel=1e-9, abs=1e-9)
    for transform in (mg.grad, mg.hessian):
        found = mg.compile(transform(by_float), backend="numpy")(0.75)
        assert type(found) is float
        assert found == pytest.approx(transform(by_float)(0.75), rel=1e-9, abs=1e-9)
