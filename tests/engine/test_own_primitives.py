"""Primitives from outside the package, made in the three ways, under the checks that the table's own undergo."""

import copy
import functools
import math
import pickle
import weakref

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import micrograd as mg
from micrograd import Value
from micrograd.engine import primitive as registry
from micrograd.testing import GradientError, gradcheck, numerical_gradient
from tests.strategies import TABLE, programs

moderate = st.floats(-2.0, 2.0)


@pytest.fixture(autouse=True)
def registered():
    """The registry with the library's own primitives only, and afterwards as it was before."""
    names = {primitive.name for primitive in (*TABLE, registry.LEAF, registry.CONSTANT)}
    before = dict(registry.PRIMITIVES)
    for name in before.keys() - names:
        del registry.PRIMITIVES[name]
    yield registry.PRIMITIVES
    registry.PRIMITIVES.clear()
    registry.PRIMITIVES.update(before)


def numbers_of(operands):
    return [operand.data if isinstance(operand, Value) else float(operand) for operand in operands]


def by_rule(name, forward, rules):
    """The first way: an entry with its forward function and its derivative rules."""
    return mg.primitive(name, name, forward, *rules, replace=True)


def by_decorator(name, forward, rules):
    """The second way: a function that returns its value and how to backpropagate."""

    def function(*numbers):
        value = forward(*numbers)
        return value, lambda g: tuple(rule and rule(g, value, *numbers) for rule in rules)

    function.__name__ = name
    return mg.operation(function)


def by_hand(name, forward, rules):
    """The third way: a node of its own, and a closure assigned to its _backward."""

    def function(*operands):
        children = tuple(x if isinstance(x, Value) else Value(x, requires_grad=False) for x in operands)
        numbers = numbers_of(children)
        out = Value(forward(*numbers), children, name)

        def backpropagate():
            for child, rule in zip(children, rules, strict=True):
                if rule:
                    child.grad += rule(out.grad, out.data, *numbers)

        out._backward = backpropagate
        return out

    return function


WAYS = {"rule": by_rule, "decorator": by_decorator, "hand": by_hand}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
CLOSURES = {"decorator": by_decorator, "hand": by_hand}
each_closure = pytest.mark.parametrize("way", CLOSURES.values(), ids=CLOSURES.keys())

# Each with its rules: out = x * exp(y), out = sinh(x), out = x * y + z * z.
SCALED = (lambda x, y: x * math.exp(y), [lambda g, out, x, y: g * mg.exp(y), lambda g, out, x, y: g * out])
SINH = (math.sinh, [lambda g, out, x: g * mg.cosh(x)])
MIXED = (
    lambda x, y, z: x * y + z * z,
    [lambda g, out, x, y, z: g * y, lambda g, out, x, y, z: g * x, lambda g, out, x, y, z: 2 * g * z],
)
FUNCTIONS = {"two operands": SCALED, "one operand": SINH, "three operands": MIXED}
each_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def on_numbers_too(operation):
    """What gradcheck calls: with Values for the gradient, with numbers for the differences."""
    return lambda *operands: (
        operation(*map(Value, operands)).data if type(operands[0]) is float else operation(*operands)
    )


@each_way
@each_function
class TestAllWays:
    @pytest.mark.slow
    @given(data=st.data())
    @settings(max_examples=5)
    def test_the_gradient_is_what_finite_differences_give(self, way, function, data):
        forward, rules = function
        point = data.draw(st.tuples(*[moderate] * len(rules)))
        assert gradcheck(on_numbers_too(way("own", forward, rules)), point)

    def test_a_wrong_rule_is_found_by_gradcheck(self, way, function):
        forward, rules = function
        wrong = [lambda *operands: 1.01 * rules[0](*operands), *rules[1:]]
        with pytest.raises(GradientError, match="WRONG"):
            gradcheck(on_numbers_too(way("own", forward, wrong)), [0.7] * len(rules))

    def test_backpropagating_twice_doubles_the_leaves(self, way, function):
        forward, rules = function
        leaves = [Value(0.5 + index) for index in range(len(rules))]
        root = mg.tanh(way("own", forward, rules)(*leaves) * 0.1) * leaves[0]
        root.backward()
        once = [leaf.grad for leaf in leaves]
        root.backward()
        assert [leaf.grad for leaf in leaves] == [2 * grad for grad in once]

    def test_the_result_is_the_number_of_the_forward_function(self, way, function):
        forward, rules = function
        numbers = [0.5 + index for index in range(len(rules))]
        result = way("own", forward, rules)(*map(Value, numbers))
        assert type(result) is Value
        assert result.data == forward(*numbers)
        assert result._op == "own"
        assert {operand.data for operand in result._prev} == set(numbers)

    def test_constants_get_no_gradient_and_make_constants(self, way, function):
        forward, rules = function
        operation = way("own", forward, rules)
        frozen = [Value(0.5, requires_grad=False) for _ in rules]
        assert not operation(*frozen).requires_grad
        free = Value(0.5)
        operation(free, *frozen[1:]).backward()
        assert free.grad == pytest.approx(numerical_gradient(forward, [0.5] * len(rules))[0], rel=1e-9)
        assert [leaf.grad for leaf in frozen] == [0.0] * len(rules)

    def test_plain_numbers_among_the_operands(self, way, function):
        forward, rules = function
        last = Value(0.5)
        way("own", forward, rules)(*[2] * (len(rules) - 1), last).backward()
        truth = numerical_gradient(forward, [2.0] * (len(rules) - 1) + [0.5])[-1]
        assert last.grad == pytest.approx(truth, rel=1e-9)

    def test_under_no_grad_nothing_is_recorded(self, way, function):
        forward, rules = function
        operation = way("own", forward, rules)
        with mg.no_grad():
            result = operation(*[Value(0.5) for _ in rules])
        assert not result.requires_grad
        assert result.data == forward(*[0.5] * len(rules))

    def test_errors_say_the_operation_the_numbers_and_the_labels(self, way, function):
        _, rules = function

        def rule(g, out, *operands):
            raise ZeroDivisionError("no derivative here")

        leaves = [Value(0.5, label="speed") for _ in rules]
        with pytest.raises(ZeroDivisionError, match=r"the derivative of .*own.*speed = 0\.5.*no derivative here"):
            way("own", lambda *numbers: numbers[0], [rule] * len(rules))(*leaves).backward()
        assert [leaf.grad for leaf in leaves] == [0.0] * len(rules)

    def test_a_rule_that_gives_no_number_is_an_error(self, way, function):
        forward, rules = function
        for wrong in ("x", [1.0], Value(2.0), 1j):
            leaves = [Value(0.5) for _ in rules]
            operation = way("own", forward, [lambda g, out, *operands, wrong=wrong: wrong, *rules[1:]])
            with pytest.raises(TypeError):
                operation(*leaves).backward()
            assert leaves[0].grad == 0.0

    def test_gradients_are_floats_even_if_the_rule_gives_numpy_scalars(self, way, function):
        forward, rules = function
        leaves = [Value(0.5) for _ in rules]
        way("own", forward, [lambda g, out, *operands: np.float64(2.0) * g] * len(rules))(*leaves).backward()
        assert [type(leaf.grad) for leaf in leaves] == [float] * len(rules)
        assert leaves[0].grad == 2.0

    def test_a_picture_shows_the_symbol(self, way, function):
        forward, rules = function
        result = way("own_function", forward, rules)(*[Value(0.5, label="x") for _ in rules])
        assert "own_function" in mg.draw_dot(result).source


@each_way
class TestOperands:
    def test_one_operand_in_three_positions(self, way):
        x = Value(2.0)
        way("own", *MIXED)(x, x, x).backward()
        assert x.grad == 8.0

    @pytest.mark.parametrize("flows", [(True, False), (False, True)])
    def test_an_operand_without_a_rule_gets_no_gradient(self, way, flows):
        forward, rules = SCALED
        x, y = Value(0.5), Value(0.25)
        chosen = [rule if flow else None for rule, flow in zip(rules, flows, strict=True)]
        way("own", forward, chosen)(x, y).backward()
        expected = [math.exp(0.25), 0.5 * math.exp(0.25)]
        assert [x.grad, y.grad] == [slope if flow else 0.0 for slope, flow in zip(expected, flows, strict=True)]

    def test_without_any_rule_it_passes_nothing_on(self, way):
        x = Value(0.5)
        root = way("own", math.floor, [None])(x) + x
        root.backward()
        assert x.grad == 1.0


@pytest.mark.slow
@each_way
@given(programs(), st.randoms(use_true_random=False))
@settings(max_examples=16)
def test_inside_random_graphs_own_operations_do_what_the_tables_own_do(way, program, random):
    """Some operations of a program are replaced by ones of the user's making, of the same formula."""
    own = {
        index: way(f"own_{step.name}_{index}", step.forward, list(step.derivatives))
        for index, (step, _) in enumerate(program.steps)
        if random.random() < 0.5
    }
    counter = iter(range(len(program.steps)))

    def apply(primitive, *operands):
        return own.get(next(counter), primitive)(*operands)

    leaves, truths = ([Value(number) for number in program.inputs] for _ in range(2))
    root, truth = program.run(leaves, apply)[-1], program(*truths)
    assert root.data == truth.data
    if truth.requires_grad:
        root.backward()
        truth.backward()
    assert [leaf.grad for leaf in leaves] == pytest.approx([leaf.grad for leaf in truths], rel=1e-12, abs=1e-12)


class TestSecondOrder:
    @pytest.mark.parametrize(("name", "point"), [("two operands", [0.5, -0.25]), ("three operands", [0.5, 2.0, -1.0])])
    def test_a_rule_can_be_differentiated_again(self, name, point):
        forward, rules = FUNCTIONS[name]
        own = by_rule("own", forward, rules)
        hessian = mg.hessian(lambda p: own(*p))(point)
        for i, row in enumerate(hessian):
            differences = numerical_gradient(lambda *p, i=i: mg.grad(lambda q: own(*q))(list(p))[i], point)
            assert row == pytest.approx(differences, rel=1e-8, abs=1e-10)

    @given(programs())
    @settings(max_examples=12)
    def test_own_rules_inside_random_graphs_have_second_derivatives(self, program):
        own = {
            step.name: by_rule(f"own_{step.name}", step.forward, list(step.derivatives)) for step, _ in program.steps
        }
        hessian = mg.hessian(lambda p: program.run(p, lambda step, *operands: own[step.name](*operands))[-1])
        truth = mg.hessian(lambda p: program(*p))(program.inputs)
        for row, true_row in zip(hessian(program.inputs), truth, strict=True):
            assert row == pytest.approx(true_row, rel=1e-12, abs=1e-12)

    def test_third_order(self):
        own = by_rule("own", *SINH)
        assert mg.grad(mg.grad(mg.grad(own)))(0.5) == pytest.approx(math.cosh(0.5), rel=1e-15)

    def test_a_duplicated_operand(self):
        own = by_rule("own", *MIXED)
        assert mg.grad(mg.grad(lambda x: own(x, x, x)))(3.0) == 4.0

    @each_closure
    @pytest.mark.parametrize("ask", ["create_graph", "gradient", "grad of grad", "hessian"])
    def test_a_closure_cannot_and_the_error_says_which_way_can(self, way, ask):
        own = way("own", *SINH)
        x = Value(0.5, label="speed")
        questions = {
            "create_graph": lambda: own(x).backward(create_graph=True),
            "gradient": lambda: mg.gradient(own(x), x, create_graph=True),
            "grad of grad": lambda: mg.grad(mg.grad(own))(0.5),
            "hessian": lambda: mg.hessian(own)(0.5),
        }
        with pytest.raises(ValueError, match=r"own\(.*0\.5.*make it a primitive, with a rule"):
            questions[ask]()
        assert x.grad == 0.0

    @pytest.mark.parametrize(
        "rule",
        [
            lambda g, out, x: g * math.cosh(x),
            lambda g, out, x: g * float(x),
            lambda g, out, x: g * math.sqrt(1 + out * out),
            lambda g, out, x: g * special.ellipk(x),
        ],
        ids=["math of an operand", "float of an operand", "math of the output", "SciPy of an operand"],
    )
    def test_a_rule_that_only_works_on_floats_is_an_error_at_second_order_not_a_wrong_number(self, rule):
        own = by_rule("own", math.sinh, [rule])
        assert type(mg.grad(own)(0.5)) is float
        with pytest.raises(TypeError, match=r"the derivative of own\(0\.5\)"):
            mg.grad(mg.grad(own))(0.5)


class TestSettings:
    def powers(self):
        return mg.primitive(
            "own_power", "pow", lambda x, *, n: x**n, lambda g, out, x, *, n: g * n * (x ** (n - 1)), domain=((0, 9),)
        )

    def test_of_a_primitive_reach_the_forward_function_and_the_rules(self):
        own, x = self.powers(), Value(2.0)
        (own(x, n=3) + own(x, n=2)).backward()
        assert x.grad == 16.0
        assert own(2.0, n=3) == 8.0
        assert mg.grad(mg.grad(lambda x: own(x, n=4)))(2.0) == 48.0

    def test_of_an_operation_are_keywords_of_the_function(self):
        @mg.operation
        def scaled(x, y, *, factor=2.0):
            return factor * x * y, lambda g: (g * factor * y, g * factor * x)

        x, y = Value(3.0), Value(4.0)
        (scaled(x, y) + scaled(x, y, factor=10.0)).backward()
        assert (x.grad, y.grad) == (48.0, 36.0)

    def test_are_kept_apart_even_where_they_compare_equal(self):
        own = mg.primitive("own", "own", lambda x, *, by: math.copysign(x, by), lambda g, out, x, *, by: g)
        plus, minus = own(Value(2.0), by=0.0), own(Value(2.0), by=-0.0)
        assert (plus.data, minus.data) == (2.0, -2.0)
        kind = mg.primitive("kind", "kind", lambda x, *, n: x + isinstance(n, bool), lambda g, out, x, *, n: g)
        number, truth = kind(Value(2.0), n=1), kind(Value(2.0), n=True)
        assert (number.data, truth.data) == (2.0, 3.0)

    def test_are_shown_by_pictures_and_errors(self):
        own = self.powers()
        result = own(Value(2.0), n=3)
        assert "n=3" in result._op
        assert "n=3" in mg.draw_dot(result).source
        with pytest.raises(OverflowError, match="n=2000"):
            own(Value(1e10), n=2000)

    def test_that_are_missing_or_unknown_are_an_error(self):
        own = self.powers()
        with pytest.raises(TypeError, match="'n'"):
            own(Value(2.0))
        with pytest.raises(TypeError, match="'m'"):
            own(Value(2.0), n=2, m=3)

    def test_must_be_hashable(self):
        with pytest.raises(TypeError, match="static parameters of own_power must be hashable"):
            self.powers()(Value(2.0), n=[2])

    @pytest.mark.parametrize("setting", [Value(2.0), np.array([1.0])], ids=["Value", "array"])
    def test_a_value_is_no_setting_because_no_gradient_would_flow_to_it(self, setting):
        @mg.operation
        def scaled(x, *, n):
            return x * n, lambda g: g * n

        for own in (self.powers(), scaled):
            with pytest.raises(TypeError, match=r"n is a static parameter of .*without a gradient"):
                own(Value(2.0), n=setting)

    def test_nodes_with_settings_can_be_pickled(self):
        own, x = self.powers(), Value(2.0)
        result, leaf = pickle.loads(pickle.dumps((own(x, n=3), x)))
        result.backward()
        assert leaf.grad == 12.0


class TestWithoutADerivative:
    def test_backpropagation_that_reaches_it_raises_and_names_it(self):
        digits = mg.primitive("digits", "digits", lambda x: float(len(str(x))))
        x = Value(314.0, label="x")
        root = digits(x) * x
        assert root.data == 5 * 314.0
        with pytest.raises(ValueError, match=r"digits\(\(?x = 314\.0\)*: this primitive has no derivative"):
            root.backward()
        with pytest.raises(ValueError, match="no derivative"):
            mg.gradient(root, x, create_graph=True)
        assert x.grad == 0.0

    def test_on_constants_and_behind_detach_it_does_no_harm(self):
        digits = mg.primitive("digits", "digits", lambda x: float(len(str(x))))
        x = Value(314.0)
        (mg.detach(digits(x)) * x + digits(2.5)).backward()
        assert x.grad == 5.0
        assert not digits(Value(1.0, requires_grad=False)).requires_grad

    def test_a_rule_of_a_rule_that_has_none_raises_at_second_order_only(self):
        digamma = mg.primitive("own_digamma", "digamma", special.digamma)
        lgamma = mg.primitive("own_lgamma", "lgamma", math.lgamma, lambda g, out, x: g * digamma(x))
        assert mg.grad(lgamma)(2.5) == pytest.approx(special.digamma(2.5), rel=1e-15)
        with pytest.raises(ValueError, match=r"digamma\(2\.5\): this primitive has no derivative"):
            mg.grad(mg.grad(lgamma))(2.5)

    def test_a_rule_that_leaves_the_graph_is_refused_where_it_is_differentiated_again(self):
        growth = mg.primitive("growth", "growth", math.exp, lambda g, out, x: g * math.exp(x))
        x = Value(1.0)
        growth(x).backward()
        assert x.grad == math.e
        with pytest.raises(TypeError, match=r"a rule must be written with operators and mg\.exp, not math\.exp"):
            growth(x).backward(create_graph=True)


def test_a_primitive_with_settings_goes_with_what_used_it(own_registry):
    scaled = mg.primitive("scaled", "scaled", lambda x, factor: x * factor, lambda g, out, x, factor: g * factor)
    x = Value(2.0)
    y = scaled(x, factor=3.0)
    fixed = weakref.ref(y._primitive)
    assert fixed() is scaled.with_settings(factor=3.0)
    del y
    assert fixed() is None


class TestRegistering:
    def test_a_taken_name_is_refused_and_replace_takes_its_position(self, registered):
        first = mg.primitive("own", "own", math.sin, lambda g, out, x: g * mg.cos(x))
        with pytest.raises(ValueError, match="'own' is registered already"):
            mg.primitive("own", "own", math.cos, lambda g, out, x: -g * mg.sin(x))
        with pytest.raises(ValueError, match="'exp' is registered already"):
            mg.primitive("exp", "exp", math.exp, lambda g, out, x: g * out)
        assert registered["own"] is first
        second = mg.primitive("own", "own", math.cos, lambda g, out, x: -g * mg.sin(x), replace=True)
        assert registered["own"] is second
        assert (first(0.0), second(0.0)) == (0.0, 1.0)

    def test_what_replace_replaces_keeps_its_settings_to_itself(self):
        first = mg.primitive("own", "own", lambda x, *, n: x * n, lambda g, out, x, *, n: g * n)
        assert first(Value(2.0), n=3).data == 6.0
        second = mg.primitive("own", "own", lambda x, *, n: x + n, lambda g, out, x, *, n: g, replace=True)
        assert (second(Value(2.0), n=3).data, first(Value(2.0), n=3).data) == (5.0, 6.0)

    def test_what_it_makes_of_plain_numbers_is_a_float_and_of_numbers_of_numpy_too(self):
        own = mg.primitive("own", "own", special.erfinv, lambda g, out, x: g)
        assert [type(own(number)) for number in (0.5, np.float64(0.5), 0)] == [float] * 3
        assert type(own(Value(0.5)).data) is float


class TestDecorator:
    def test_it_keeps_the_name_and_the_docstring(self):
        @mg.operation
        def product(x, y):
            """The product."""
            return x * y, lambda g: (g * y, g * x)

        assert (product.__name__, product.__doc__) == ("product", "The product.")
        assert product(Value(2.0), 3.0)._op == "product"
        assert product(2.0, 3.0) == 6.0

    def test_any_number_of_operands(self):
        @mg.operation
        def total(*xs, weight=1.0):
            return weight * sum(xs), lambda g: [g * weight] * len(xs)

        for count in (1, 2, 5):
            leaves = [Value(float(index)) for index in range(count)]
            total(*leaves, weight=2.0).backward()
            assert [leaf.grad for leaf in leaves] == [2.0] * count

    def test_partial_functions_and_objects_are_functions_too(self):
        class Scale:
            def __call__(self, x):
                return 3 * x, lambda g: 3 * g

        for function in (Scale(), functools.partial(lambda factor, x: (factor * x, lambda g: g * factor), 3.0)):
            x = Value(2.0)
            mg.operation(function)(x).backward()
            assert x.grad == 3.0

    def test_each_element_of_an_array_has_its_own_backpropagate_function(self):
        square = mg.operation(lambda x: (x * x, lambda g: 2 * g * x))
        array = mg.array([[1.0, 2.0], [3.0, -4.0]])
        square(array).sum().backward()
        assert mg.gradients(array).tolist() == [[2.0, 4.0], [6.0, -8.0]]
        of_floats = square(np.array([1.0, 2.0]))
        assert (of_floats.dtype, of_floats.tolist()) == (float, [1.0, 4.0])

    def test_arrays_are_broadcast_against_values(self):
        product = mg.operation(lambda x, y: (x * y, lambda g: (g * y, g * x)))
        x, array = Value(2.0), mg.array([3.0, 4.0])
        (product(x, array) + product(array, x)).sum().backward()
        assert x.grad == 14.0
        assert mg.gradients(array).tolist() == [4.0, 4.0]


@each_closure
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_closures_cannot_be_copied_and_the_error_says_which_way_can(way, copied):
    with pytest.raises(TypeError, match=r"'own'.* cannot be copied or pickled.*make it a primitive"):
        copied(way("own", *SINH)(Value(1.0)) + 1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_graphs_with_a_registered_primitive_can_be_copied(copied):
    own, x, y = by_rule("own", *SCALED), Value(0.5), Value(0.25)
    result, x_copy, y_copy = copied((own(x, y), x, y))
    result.backward()
    assert (x_copy.grad, y_copy.grad) == (math.exp(0.25), 0.5 * math.exp(0.25))
    assert x.grad == 0.0
    assert copied(own) is own or copied(own)(2.0, 0.0) == 2.0


def test_a_pickle_of_a_primitive_that_is_not_registered_names_it(registered):
    text = pickle.dumps(by_rule("own", *SINH)(Value(1.0)))
    del registered["own"]
    with pytest.raises(ValueError, match="no primitive named 'own' is registered; import the module"):
        pickle.loads(text)


class TestStrangers:
    def test_erfinv(self):
        """In a few lines, with all that the library's own primitives have."""
        erfinv = mg.primitive(
            "own_erfinv",
            "erf⁻¹",
            special.erfinv,
            lambda g, out, x: g * math.sqrt(math.pi) / 2 * mg.exp(out * out),
            domain=((-1.0, 1.0),),
        )
        assert gradcheck(erfinv, [0.3])
        with mpmath.workdps(30):
            for order, slope in enumerate([mg.grad(erfinv), mg.grad(mg.grad(erfinv))], start=1):
                assert slope(0.3) == pytest.approx(float(mpmath.diff(mpmath.erfinv, 0.3, order)), rel=1e-12)
        array = mg.array([-0.5, 0.0, 0.5])
        erfinv(mg.erf(array)).sum().backward()
        assert mg.gradients(array) == pytest.approx(np.ones(3), rel=1e-14)
        x = Value(0.3, label="x")
        assert "erf⁻¹" in mg.draw_dot(erfinv(x)).source

    def test_lgamma_at_every_order(self):
        """Its derivative is a primitive whose derivative is that primitive, with another setting."""
        polygamma = mg.primitive(
            "polygamma",
            "ψ",
            lambda x, *, n: float(special.polygamma(n, x)),
            lambda g, out, x, *, n: g * polygamma(x, n=n + 1),
            domain=((0.0, math.inf),),
        )
        lgamma = mg.primitive(
            "own_lgamma", "log Γ", math.lgamma, lambda g, out, x: g * polygamma(x, n=0), domain=((0.0, math.inf),)
        )
        assert gradcheck(lgamma, [2.5])
        derivative = lgamma
        for order in range(4):
            derivative = mg.grad(derivative)
            assert derivative(2.5) == pytest.approx(float(special.polygamma(order, 2.5)), rel=1e-13)
        slope = mg.gradient(lgamma(Value(2.5)), x := Value(1.0), create_graph=True)
        assert (slope.data, x.grad) == (0.0, 0.0)


def test_a_primitive_shows_its_name():
    assert repr(registry.PRIMITIVES["mul"]) == "<primitive mul>"


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize(("symbol", "shown"), [("ratio", r"ratio\(x = 1.0, 0.0\)"), (":", r"\(x = 1.0\) : 0.0")])
def test_errors_show_words_as_calls_and_signs_between_their_operands(symbol, shown):
    ratio = mg.primitive("ratio", symbol, lambda x, y: x / y)
    with pytest.raises(ZeroDivisionError, match=f"^{shown}: "):
        ratio(Value(1.0, label="x"), 0.0)
