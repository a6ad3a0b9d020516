"""The strategies for Hypothesis: what they draw is as promised, shrinks well, and prints as Python that runs."""

import importlib
import math
import random
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd.testing import Expression, Program, gradcheck
from micrograd.testing.programs import MODERATE, grow, is_tame, registered
from micrograd.testing.strategies import datasets, expressions, network, networks, numbers, operands
from tests.campaigns.expressions import RandomChoices
from tests.strategies import KINKS, TABLE

pytestmark = pytest.mark.slow

quickly = settings(max_examples=400, database=None, derandomize=True, deadline=None, phases=tuple(Phase))


def own(**wanted):
    return expressions(primitives=TABLE, **wanted)


def drawn(strategy, count=1000):
    """What a strategy draws, the same each time."""
    found = []

    @settings(quickly, max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(example):
        found.append(example)

    draw()
    return found


@given(own())
def test_what_is_printed_runs_and_gives_the_same(expression):
    pasted = eval(repr(expression), {"mg": mg})
    assert pasted.inputs == expression.inputs
    assert pasted(*pasted.inputs) == expression(*expression.inputs)
    ours, theirs = ([mg.Value(number) for number in expression.inputs] for _ in range(2))
    expression(*ours).backward()
    pasted(*theirs).backward()
    assert [leaf.grad for leaf in theirs] == pytest.approx([leaf.grad for leaf in ours], rel=1e-12, abs=1e-12)


@given(own(size=(3, 5), inputs=2, smooth=False))
def test_size_and_inputs_are_as_asked_for(expression):
    assert len(expression.inputs) == 2
    gathering = [primitive for primitive, _ in expression.steps[5:]]
    assert len(expression.steps) >= 3
    assert {primitive.name for primitive in gathering} <= {"add"}


@given(own(smooth=False))
def test_every_result_is_moderate_and_used(expression):
    results = expression.run(expression.inputs)
    used = {position for _, positions in expression.steps for position in positions}
    assert used == set(range(len(results) - 1))
    assert all(abs(result) < 20 * MODERATE for result in results)  # additions that gather the rest may exceed it
    assert abs(results[len(expression.inputs)]) < MODERATE


@given(expressions(primitives=[mg.engine.primitives.sin]))
def test_primitives_are_those_asked_for(expression):
    assert {primitive.name for primitive, _ in expression.steps} <= {"sin", "neg", "add", "mul"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_primitive_of_ones_own_takes_part_and_prints(own_registry, data):
    cube = mg.primitive("own_cube", "³", lambda x: x**3, lambda g, out, x: 3 * g * x * x, replace=True)
    expression = data.draw(expressions(size=1, inputs=1, primitives=[cube.with_settings()]))
    assert eval(repr(expression), {"mg": mg})(0.5) == expression(0.5)


def test_settings_are_printed(own_registry):
    scaled = mg.primitive("scaled", "s", lambda x, by: by * x, lambda g, out, x, by: by * g)
    program = Program([2.0], [(scaled.with_settings(by=3.0), (0,))])
    assert repr(program) == "mg.testing.Expression(lambda x: mg.engine.primitive.find('scaled')(x, by=3.0), [2.0])"
    assert eval(repr(program), {"mg": mg})(2.0) == 6.0


@pytest.mark.parametrize(
    ("condition", "part"),
    [(lambda e: any(p.name == "sin" for p, _ in e.steps), "mg.sin("), (lambda e: len(e.inputs) == 2, "lambda x, y: ")],
)
def test_programs_shrink_to_readable_ones(condition, part):
    smallest = find(own(), condition, settings=settings(quickly, max_examples=100))
    assert part in repr(smallest)
    assert len(smallest.inputs) <= 2
    assert all(number in (-1.0, -0.5, 0.0, 0.5, 1.0) for number in smallest.inputs)
    assert len(smallest.steps) <= 3


def test_a_planted_bug_shrinks_to_a_program_of_few_primitives(own_registry):
    wrong = mg.primitive("wrong_sinh", "sinh", math.sinh, lambda g, out, x: g * mg.cosh(x) * 1.001)

    def fails(expression):
        try:
            return not gradcheck(expression, expression.inputs)
        except AssertionError:
            return True

    found = find(expressions(primitives=[wrong, *TABLE]), fails, settings=quickly)
    assert len(found.steps) <= 4
    assert "mg.engine.primitive.find('wrong_sinh')(" in repr(found)


def test_sharing_gets_a_name_and_depth_does_not_matter():
    sin, mul = mg.engine.primitives.sin, mg.engine.primitives.mul
    steps = [(sin, (position,)) if position % 2 else (mul, (position, position - 1)) for position in range(1, 400)]
    program = Program([0.5], [(sin, (0,)), *steps])
    assert eval(repr(program), {"mg": mg})(0.5) == program(0.5)
    deep = Program([0.5], [(sin, (position,)) for position in range(2000)])
    assert eval(repr(deep), {"mg": mg})(0.5) == deep(0.5)


def test_up_to_three_inputs_are_called_x_y_and_z():
    add, mul = mg.engine.primitives.add, mg.engine.primitives.mul
    three = Program([0.5, 2.0, 3.0], [(add, (0, 1)), (mul, (3, 2))])
    assert repr(three) == "mg.testing.Expression(lambda x, y, z: (x + y) * z, [0.5, 2.0, 3.0])"
    four = Program([0.5, 2.0, 3.0, 4.0], [(add, (0, 3)), (mul, (4, 2))])
    assert repr(four) == "mg.testing.Expression(lambda x0, x1, x2, x3: (x0 + x3) * x2, [0.5, 2.0, 3.0, 4.0])"


def test_a_step_that_nothing_uses_is_not_printed():
    program = Program([0.5, 2.0], [(mg.engine.primitives.exp, (0,)), (mg.engine.primitives.sin, (1,))])
    assert repr(program) == "mg.testing.Expression(lambda x, y: mg.sin(y), [0.5, 2.0])"


def test_the_number_of_operands_is_checked():
    with pytest.raises(TypeError, match="takes 1 operands, not 2"):
        Program([0.5], [(mg.engine.primitives.exp, (0,))])(1.0, 2.0)


def test_an_expression_of_ones_own():
    expression = Expression(lambda x: x * x, (3.0,))
    assert expression.inputs == [3.0]
    assert gradcheck(expression, expression.inputs)
    assert repr(Expression(math.sin, [3])) == "mg.testing.Expression(<built-in function sin>, [3.0])"


def test_a_primitive_that_fails_or_lacks_its_settings_has_no_part_in_a_program(own_registry):
    def picky(x):
        raise ValueError("never")

    own = [
        mg.primitive("picky", "p", picky, lambda g, out, x: g),
        mg.primitive("scaled", "s", lambda x, by: by * x, lambda g, out, x, by: by * g),
        mg.primitive("doubled", "d", lambda x: 2 * x, lambda g, out, x: 2 * g),
    ]
    drawn = [grow(RandomChoices(random.Random(seed)), own, (1, 2), (6, 6)) for seed in range(20)]
    assert {primitive.name for program in drawn for primitive, _ in program.steps} == {"doubled", "add", "neg", "mul"}


def test_the_random_generator_alone_gives_the_same_for_a_seed():
    first, second = (grow(RandomChoices(random.Random(7)), TABLE, (1, 4), (1, 12)) for _ in range(2))
    assert repr(first) == repr(second)
    assert repr(first) != repr(grow(RandomChoices(random.Random(8)), TABLE, (1, 4), (1, 12)))


def test_the_random_generator_alone_gives_numbers_of_three_decimals_between_minus_three_and_three():
    choices = RandomChoices(random.Random(0))
    drawn = [choices.number() for _ in range(2000)]
    assert drawn == [round(number, 3) for number in drawn]
    assert drawn != [round(number, 2) for number in drawn]
    assert -3 <= min(drawn) < -2.9
    assert 2.9 < max(drawn) <= 3


@pytest.mark.parametrize(
    ("name", "operands", "tame"),
    [
        ("log", [0.5], True),
        ("sqrt", [0.005], False),  # beside the edge of its domain
        ("sqrt", [0.01], False),
        ("sqrt", [0.02], True),
        ("asin", [0.5], True),
        ("asin", [0.995], False),
        ("asin", [0.99], False),
        ("asin", [0.98], True),
        ("relu", [0.5], True),
        ("relu", [0.05], True),
        ("relu", [0.04], False),  # beside a kink
        ("relu", [-0.04], False),
        ("maximum", [1.0, -1.0], True),
        ("maximum", [1.0, 1.02], False),
        ("minimum", [1.0, -1.0], True),
        ("minimum", [1.0, 1.02], False),
        *[(name, [1.0, -1.0], True) for name in ("equal", "less", "less_equal")],
        *[(name, [1.0, 1.02], False) for name in ("equal", "less", "less_equal")],
        ("where", [1.0, 0.0, 0.0], True),
        ("where", [0.0, 1.0, 2.0], False),
        ("identity", [29.5], True),
        ("identity", [30.0], False),  # too large
        ("identity", [-30.5], False),
        ("log", [0.02], False),  # too steep
        ("log", [0.04], True),
        ("div", [1.0, 0.0], False),
    ],
)
def test_a_primitive_is_tame_away_from_edges_and_kinks_where_it_is_neither_large_nor_steep(name, operands, tame):
    assert is_tame(mg.engine.primitive.find(name), operands) is tame


def test_a_primitive_that_raises_is_not_tame(own_registry):
    below = mg.primitive("below", "b", math.log, lambda g, out, x: g / x)
    scaled = mg.primitive("scaled", "s", lambda x, by: by * x, lambda g, out, x, by: by * g)
    assert is_tame(below, [2.0])
    assert not is_tame(below, [-2.0])
    assert not is_tame(scaled, [2.0])  # its setting is missing
    assert is_tame(scaled.with_settings(by=2.0), [2.0])


def test_what_is_registered_has_operands_and_rules(own_registry):
    own = mg.primitive("own", "o", lambda x: 2 * x, lambda g, out, x: 2 * g)
    without_rules = mg.primitive("without_rules", "w", lambda x: x)
    assert own in registered()
    assert {without_rules, mg.engine.primitive.LEAF, mg.engine.primitive.CONSTANT}.isdisjoint(registered())


@pytest.mark.parametrize("interval", [(0.0, math.inf), (-1.0, 1.0), (-math.inf, math.inf), (1e300, math.inf)])
@given(data=st.data())
def test_numbers_lie_strictly_inside(interval, data):
    assert interval[0] < data.draw(numbers(interval)) < interval[1]


def test_numbers_come_as_near_the_ends_as_floats_do():
    assert find(numbers((0.0, math.inf)), lambda x: x < 1e-300, settings=quickly) > 0
    assert find(numbers((-1.0, 1.0)), lambda x: x > 0.999999, settings=quickly) < 1


@pytest.mark.unmeasured
def test_numbers_are_ordinary_and_extreme_and_of_all_magnitudes():
    found = drawn(numbers((-math.inf, math.inf)), 600)
    for extreme in (0.0, 5e-324, -5e-324, 2.0**-1022, -(2.0**-1022), 1.0, -1.0):
        assert extreme in found
    assert {1.7976931348623157e308, -1.7976931348623157e308} <= set(found)
    assert {math.copysign(1.0, x) for x in found if x == 0} == {1.0, -1.0}
    for sign in (1, -1):
        assert len({round(math.log10(x * sign)) for x in found if x * sign > 0}) > 105
        assert sum(1.5 < x * sign < 10 for x in found) > 10
        assert sum(10 < x * sign < 800 for x in found) > 10
        assert sum(0 < x * sign < 1e-100 for x in found) > 10
        assert sum(x * sign > 1e100 for x in found) > 10


@pytest.mark.parametrize(("low", "high", "least"), [(0.0, 1.0, 40), (2.0, 5.0, 80), (-3.0, 700.0, 5)])
def test_numbers_come_from_the_middle_of_an_interval_too(low, high, least):
    middle, width = (low + high) / 2, high - low
    assert sum(abs(x - middle) < 0.4 * width for x in drawn(numbers((low, high)), 300)) > least


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("low", "high"), [(0.0, math.inf), (-math.inf, 0.0), (-1.0, 1.0), (2.0, 3.0), (-math.inf, 2.0), (1e4, math.inf)]
)
def test_numbers_come_near_the_ends_at_every_distance(low, high):
    found = drawn(numbers((low, high)), 1000)
    assert all(low < x < high for x in found)
    assert max(found) == math.nextafter(high, -math.inf)
    assert min(found) == math.nextafter(low, math.inf)
    for end in (low, high):
        if math.isfinite(end):
            for least, most in ((1e-2, 1e-1), (1e-5, 1e-2), (1e-8, 1e-5), (1e-11, 1e-8)):
                assert sum(least <= abs(x - end) <= most for x in found) >= 1
            assert sum(0.1 < abs(x - end) < 1 for x in found) >= 1


def test_an_interval_with_a_single_float_gives_that_one():
    assert set(drawn(numbers((0.0, 1e-323)), 2)) == {5e-324}
    assert set(drawn(numbers((1.0, 1.0 + 2**-51)), 2)) == {1.0 + 2**-52}


@pytest.mark.unmeasured
def test_programs_are_as_large_as_they_are_by_default():
    found = drawn(own(), 240)
    assert {len(program.inputs) for program in found} == {1, 2, 3, 4}
    inputs = [number for program in found for number in program.inputs]
    assert all(-3 <= number <= 3 and number == round(number, 3) for number in inputs)
    assert min(inputs) < -2.5
    assert max(inputs) > 2.5
    assert any(number != round(number, 2) for number in inputs)
    steps = [len(program.steps) for program in found]
    assert min(steps) == 1
    assert max(steps) >= 10
    both = drawn(own(size=[2, 3], inputs=[2, 3]), 50)
    assert {len(program.inputs) for program in both} == {2, 3}


def test_smooth_programs_leave_out_what_no_gradient_flows_through():
    table = [mg.engine.primitives.sin, mg.engine.primitives.detach]
    for smooth in (True, False):
        found = drawn(expressions(primitives=table, smooth=smooth), 20)
        assert any(name == "detach" for e in found for name in [p.name for p, _ in e.steps]) is not smooth
    assert not any(p.name == "detach" for e in drawn(expressions(primitives=table), 20) for p, _ in e.steps)


@pytest.mark.unmeasured
def test_networks_are_of_all_small_sizes_by_default():
    found = drawn(networks(), 60)
    sizes = [[len(layer.neurons) for layer in model.layers] for model in found]
    assert {len(layers) for layers in sizes} == {1, 2, 3}
    assert {size for layers in sizes for size in layers} == {1, 2, 3, 4}
    assert {len(model.layers[0].neurons[0].w) for model in found} == {1, 2, 3}
    parameters = [parameter.data for model in found for parameter in model.parameters()]
    assert all(-2 <= number <= 2 and number == round(number, 3) for number in parameters)
    assert min(parameters) < -1.9
    assert max(parameters) > 1.9
    assert any(number != round(number, 2) for number in parameters)
    assert len({repr(model.layers[0].neurons[0]) for model in found}) > 5


def test_datasets_are_small_by_default():
    found = drawn(datasets(), 50)
    assert {1, 8} <= {len(data) for data in found} <= set(range(1, 9))
    assert {(len(inputs), len(targets)) for data in found for inputs, targets in data} == {(2, 1)}
    larger = drawn(datasets(inputs=3, outputs=2, size=4), 20)
    assert {(len(x), len(y)) for data in larger for x, y in data} == {(3, 2)}
    assert {len(data) for data in larger} == {4}


@given(st.data())
def test_operands_are_in_the_domain(data):
    primitive = data.draw(st.sampled_from(TABLE))
    drawn = data.draw(operands(primitive))
    assert all(low < x < high for (low, high), x in zip(primitive.domain, drawn, strict=True))


@settings(max_examples=30)
@given(networks(nin=2, nouts=[3, 1]), datasets(inputs=2, outputs=1))
def test_networks_and_data_go_together(model, data):
    for inputs, targets in data:
        assert len(inputs) == 2
        assert len(targets) == 1
        assert math.isfinite(model(inputs).data)
    assert len(model.parameters()) == 13
    assert all(abs(parameter.data) <= 2 for parameter in model.parameters())


@settings(max_examples=30)
@given(networks(nouts=[3, 1], activations=["tanh", "gelu", "relu"]))
def test_gradients_of_networks_agree_with_differences(model):
    assert gradcheck(lambda *x: model(x), [0.3] * len(model.layers[0].neurons[0].w))


def test_a_network_prints_as_a_call_and_leaves_random_alone():
    random.seed(3)
    expected = random.random()
    random.seed(3)
    assert network(1, [1], "tanh", [0.5, -1.0])([3.0]).data == 0.5
    assert random.random() == expected

    @settings(max_examples=5, database=None, phases=[Phase.generate, Phase.shrink])
    @given(networks(nin=1, nouts=[1], activations=["tanh"]))
    def fails(model):
        assert model.parameters() == []

    with pytest.raises(AssertionError) as raised:
        fails()
    assert "model=network(1, [1], 'tanh', [0.0, 0.0])" in "".join(raised.value.__notes__)


def test_hypothesis_is_loaded_by_the_strategies_alone_and_named_where_it_is_missing():
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import micrograd as mg\n"
        "mg.testing.gradcheck(mg.sin, [1.0])\n"
        "try:\n    mg.testing.strategies\n"
        "except ImportError as error:\n    print(error)\n"
        "try:\n    mg.testing.nothing\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = run.stdout.splitlines()
    assert said[0] == "these strategies need Hypothesis: pip install hypothesis"
    assert "nothing" in said[1]


def test_without_hypothesis_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "micrograd.testing.strategies")
    with pytest.raises(ImportError, match=r"these strategies need Hypothesis: pip install hypothesis"):
        importlib.import_module("micrograd.testing.strategies")


@pytest.mark.parametrize(
    ("name", "inputs", "distance"),
    [
        *(("atan2", inputs, distance) for inputs, distance in [((0.0, -1.0), 0), ((0.0, 0.0), 0), ((0.1, -0.5), 0.1)]),
        *(
            ("atan2", inputs, distance)
            for inputs, distance in [((0.5, 0.0), 0.5), ((0.0, 0.5), 0.5), ((-0.2, 0.0), 0.2)]
        ),
        *(("hypot", inputs, distance) for inputs, distance in [((0.0, 0.0), 0), ((1.0, -1.0), 2.0)]),
        *((name, (6.0, 3.0), 0) for name in ("remainder", "floor_divide")),
        *((name, (x, y), 0.1) for name in ("remainder", "floor_divide") for x in (-6.1, 5.9, 6.1) for y in (-3.0, 3.0)),
        *((name, (x,), 0.1) for name in ("floor", "ceil") for x in (-3.1, -2.9, -0.1, 0.1, 2.9, 3.1)),
        ("sign", (-0.1,), 0.1),
    ],
)
def test_how_far_a_kink_or_a_jump_is(name, inputs, distance):
    """Random programs keep clear of them."""
    assert abs(KINKS[name](*inputs)) == pytest.approx(distance)
