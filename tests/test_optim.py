"""Optimisers against formulas in plain floats, learning rates, frozen parameters, errors and Ctrl-C."""

import copy
import math
import pickle

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.optim import SGD, Adam, AdamW, Optimizer, constant, cosine, linear, warmup

gradient_runs = st.lists(st.floats(-10, 10), min_size=1, max_size=60)
unit = st.floats(0, 0.99)


def trained(make, start, gradients):
    """A parameter's numbers after each step of an optimiser that is handed these gradients."""
    parameter = Value(start)
    optimizer = make([parameter])
    numbers = []
    for gradient in gradients:
        parameter.grad = gradient
        optimizer.step()
        numbers.append(parameter.data)
    return numbers


def expected_sgd(start, gradients, rate, momentum=0.0, nesterov=False, decay=0.0):
    """Gradient descent as its papers write it, the velocity being the sum of what momentum leaves."""
    number, seen, numbers = start, [], []
    for gradient in gradients:
        seen.append(gradient + decay * number)
        velocity = math.fsum(momentum**age * old for age, old in enumerate(reversed(seen)))
        number -= rate * (seen[-1] + momentum * velocity if nesterov else velocity)
        numbers.append(number)
    return numbers


def expected_adam(start, gradients, rate, betas=(0.9, 0.999), epsilon=1e-8, decay=0.0, decoupled=False):
    """Adam as its paper writes it, with the running means as weighted sums over all gradients so far."""
    number, seen, numbers = start, [], []
    for gradient in gradients:
        seen.append(gradient if decoupled else gradient + decay * number)
        means = []
        for beta, power in zip(betas, (1, 2), strict=True):
            weights = [(1 - beta) * beta**age for age in range(len(seen))]
            weighted = math.fsum(w * old**power for w, old in zip(weights, reversed(seen), strict=True))
            means.append(weighted / (1 - beta ** len(seen)))
        if decoupled:
            number -= rate * decay * number
        number -= rate * means[0] / (math.sqrt(means[1]) + epsilon)
        numbers.append(number)
    return numbers


class TestFormulas:
    @given(start=st.floats(-5, 5), gradients=gradient_runs, rate=st.floats(0, 0.5), decay=st.floats(0, 0.5))
    def test_sgd(self, start, gradients, rate, decay):
        made = trained(lambda leaves: SGD(leaves, rate, weight_decay=decay), start, gradients)
        assert made == pytest.approx(expected_sgd(start, gradients, rate, decay=decay), rel=1e-9, abs=1e-9)

    @given(
        start=st.floats(-5, 5),
        gradients=gradient_runs,
        momentum=st.floats(0.01, 0.99),
        nesterov=st.booleans(),
        decay=st.floats(0, 0.1),
    )
    def test_sgd_with_momentum_and_nesterov(self, start, gradients, momentum, nesterov, decay):
        made = trained(lambda leaves: SGD(leaves, 0.05, momentum, nesterov, decay), start, gradients)
        expected = expected_sgd(start, gradients, 0.05, momentum, nesterov, decay)
        assert made == pytest.approx(expected, rel=1e-8, abs=1e-8)

    @given(start=st.floats(-5, 5), gradients=gradient_runs, beta1=unit, beta2=unit, decay=st.floats(0, 0.5))
    def test_adam(self, start, gradients, beta1, beta2, decay):
        made = trained(lambda leaves: Adam(leaves, 0.05, (beta1, beta2), 1e-3, decay), start, gradients)
        expected = expected_adam(start, gradients, 0.05, (beta1, beta2), 1e-3, decay)
        assert made == pytest.approx(expected, rel=1e-8, abs=1e-8)

    @given(start=st.floats(-5, 5), gradients=gradient_runs, beta1=unit, beta2=unit, decay=st.floats(0, 0.5))
    def test_adamw(self, start, gradients, beta1, beta2, decay):
        made = trained(lambda leaves: AdamW(leaves, 0.05, (beta1, beta2), 1e-3, decay), start, gradients)
        expected = expected_adam(start, gradients, 0.05, (beta1, beta2), 1e-3, decay, decoupled=True)
        assert made == pytest.approx(expected, rel=1e-8, abs=1e-8)

    def test_defaults_are_the_usual_ones(self):
        gradients = [math.sin(step) for step in range(50)]
        assert trained(SGD, 1.0, gradients) == pytest.approx(expected_sgd(1.0, gradients, 0.01))
        assert trained(Adam, 1.0, gradients) == pytest.approx(expected_adam(1.0, gradients, 0.001))
        assert trained(AdamW, 1.0, gradients) == pytest.approx(
            expected_adam(1.0, gradients, 0.001, decay=0.01, decoupled=True)
        )

    @pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
    def test_the_first_step_of_adam_is_the_learning_rate_whatever_the_size_of_the_gradient(self, size):
        (number,) = trained(lambda leaves: Adam(leaves, 0.1, epsilon=1e-12), 1.0, [-size])
        assert number == pytest.approx(1.1, rel=1e-5)


class TestUpdateOnValues:
    CASES = (
        (lambda: SGD([Value(0.0)], weight_decay=0.1), (), 1e-6),
        (lambda: SGD([Value(0.0)], momentum=0.9, weight_decay=0.1), (0.3,), 1e-6),
        (lambda: SGD([Value(0.0)], momentum=0.9, nesterov=True), (0.3,), 1e-6),
        (lambda: Adam([Value(0.0)], epsilon=0.1, weight_decay=0.1), (0.3, 0.2, 3.0), 1e-6),
        (lambda: AdamW([Value(0.0)], epsilon=0.1, weight_decay=0.1), (0.3, 0.2, 3.0), 1e-6),
    )

    @pytest.mark.parametrize(("make", "state", "step"), CASES, ids=["SGD", "momentum", "Nesterov", "Adam", "AdamW"])
    def test_the_next_parameter_has_a_derivative_by_everything_it_is_made_of(self, make, state, step):
        optimizer = make()
        numbers = [1.5, -0.7, *state, 0.25]

        def following(parameter, gradient, *rest):
            return optimizer.update(parameter, gradient, tuple(rest[:-1]), rest[-1])[0]

        leaves = [Value(number) for number in numbers]
        result = following(*leaves)
        assert result.data == following(*numbers)
        result.backward()
        for index, leaf in enumerate(leaves):
            ahead, behind = (
                following(*(number + side * step * (position == index) for position, number in enumerate(numbers)))
                for side in (1, -1)
            )
            assert leaf.grad == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-9)

    def test_a_step_leaves_no_graph_in_the_parameter(self):
        parameter = Value(1.0)
        (parameter * parameter).backward()
        Adam([parameter]).step()
        assert (parameter.is_leaf, type(parameter.data)) == (True, float)


class TestSchedules:
    def test_steps_and_rate_say_what_was_done(self):
        parameter = Value(1.0)
        optimizer = SGD([parameter], linear(1.0, 0.0, 4))
        assert (optimizer.steps, optimizer.rate) == (0, None)
        seen = []
        for _ in range(6):
            optimizer.step()
            seen.append((optimizer.steps, optimizer.rate))
        assert seen == [(1, 1.0), (2, 0.75), (3, 0.5), (4, 0.25), (5, 0.0), (6, 0.0)]
        assert repr(optimizer) == "SGD(1 parameters, 6 steps)"

    @given(start=st.floats(0, 10), end=st.floats(0, 10), steps=st.integers(1, 50), step=st.integers(0, 100))
    def test_linear_and_cosine_go_from_start_to_end_and_stay(self, start, end, steps, step):
        share = min(step / steps, 1.0)
        assert linear(start, end, steps)(step) == pytest.approx((1 - share) * start + share * end, abs=1e-12)
        half_wave = math.sin(math.pi / 2 * share) ** 2
        assert cosine(start, end, steps)(step) == pytest.approx((1 - half_wave) * start + half_wave * end, abs=1e-12)
        for schedule in (linear(start, end, steps), cosine(start, end, steps)):
            assert schedule(0) == pytest.approx(start, abs=1e-12)
            assert schedule(steps + step) == pytest.approx(end, abs=1e-12)
            assert min(start, end) - 1e-12 <= schedule(step) <= max(start, end) + 1e-12

    def test_linear_ends_exactly_at_its_end(self):
        assert linear(1.0, 1e-20, 10)(10) == 1e-20

    def test_warmup_rises_and_hands_over(self):
        schedule = warmup(linear(1.0, 0.0, 10), 5)
        assert [schedule(step) for step in (0, 1, 4)] == pytest.approx([0.2, 0.4, 1.0])
        assert [schedule(step) for step in (5, 10, 15, 99)] == pytest.approx([1.0, 0.5, 0.0, 0.0])
        assert [warmup(0.5, 2)(step) for step in range(4)] == [0.25, 0.5, 0.5, 0.5]

    def test_constant_is_the_same_at_every_step(self):
        assert {constant(0.3)(step) for step in range(5)} == {0.3}

    @pytest.mark.parametrize("rate", [-0.1, math.nan, math.inf])
    def test_a_rate_out_of_range_is_refused_at_once_or_at_its_step_and_changes_nothing(self, rate):
        for make in (SGD, Adam, AdamW):
            with pytest.raises(ValueError, match="learning rate"):
                make([Value(1.0)], rate)
        parameter = Value(1.0)
        optimizer = SGD([parameter], lambda step: rate if step else 0.5)
        parameter.grad = 1.0
        optimizer.step()
        with pytest.raises(ValueError, match="learning rate of step 1"):
            optimizer.step()
        assert (parameter.data, optimizer.steps, optimizer.rate) == (0.5, 1, 0.5)


class TestParameters:
    @pytest.mark.parametrize(
        ("make", "error"),
        [(SGD, 0.0), (lambda leaves: SGD(leaves, momentum=0.9), 0.0), (Adam, 1e-9), (AdamW, 1e-9)],
        ids=["SGD", "momentum", "Adam", "AdamW"],
    )
    def test_a_parameter_freed_later_begins_as_a_fresh_one(self, make, error):
        late = Value(1.0, requires_grad=False)
        optimizer = make([late, Value(0.0)])
        for _ in range(10):
            optimizer.step()
        late.requires_grad = True
        late.grad = 2.0
        optimizer.step()
        assert late.data == pytest.approx(trained(make, 1.0, [2.0])[0], rel=error, abs=0.0)

    @pytest.mark.parametrize("make", [SGD, lambda leaves: SGD(leaves, momentum=0.9, weight_decay=0.5), Adam, AdamW])
    def test_a_parameter_that_is_frozen_for_a_while_goes_on_with_the_state_that_it_had(self, make):
        resting = Value(1.0)
        optimizer = make([resting, Value(0.0)])
        for gradient, frozen in [(1.0, False), (5.0, True), (5.0, True), (2.0, False), (-3.0, False)]:
            resting.requires_grad = not frozen
            resting.grad, before = gradient, resting.data
            optimizer.step()
            assert (resting.data == before) is frozen
        assert resting.data == trained(make, 1.0, [1.0, 2.0, -3.0])[-1]

    def test_a_subclass_that_says_only_how_to_update_works(self):
        class Signs(Optimizer):
            states = 1

            def update(self, parameter, gradient, state, rate):
                return parameter - rate * (gradient > 0) + rate * (gradient < 0), (state[0] + 1,)

        assert trained(lambda leaves: Signs(leaves, 0.5), 1.0, [3.0, -7.0, 0.0]) == [0.5, 1.0, 1.0]

    def test_a_subclass_that_names_no_number_of_states_has_none(self):
        class Plain(Optimizer):
            def update(self, parameter, gradient, state, rate):
                assert state == ()
                return parameter - rate * gradient, state

        assert trained(lambda leaves: Plain(leaves, 0.5), 1.0, [1.0, -2.0]) == [0.5, 1.5]


class TestAllOrNothing:
    @pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
    @pytest.mark.parametrize(
        "make", [SGD, lambda leaves: SGD(leaves, momentum=0.5), Adam, AdamW], ids=["SGD", "momentum", "Adam", "AdamW"]
    )
    def test_a_step_that_is_not_finite_changes_nothing_and_names_the_parameter(self, make, bad):
        leaves = [Value(1.0), Value(2.0, label="culprit"), Value(3.0)]
        twins = [Value(1.0), Value(2.0), Value(3.0)]
        optimizer, twin = make(leaves), make(twins)

        def step(gradients, which, together):
            for leaf, gradient in zip(together, gradients, strict=True):
                leaf.grad = gradient
            which.step()

        step([0.5, 0.5, 0.5], optimizer, leaves)
        step([0.5, 0.5, 0.5], twin, twins)
        with pytest.raises(ArithmeticError, match=r"step 1 .*parameter 1.*culprit"):
            step([1.0, bad, 1.0], optimizer, leaves)
        assert [leaf.data for leaf in leaves] == [leaf.data for leaf in twins]
        assert optimizer.steps == 1
        step([-1.0, 2.0, 0.25], optimizer, leaves)  # neither did the failed step leave anything in the state
        step([-1.0, 2.0, 0.25], twin, twins)
        assert [leaf.data for leaf in leaves] == [leaf.data for leaf in twins]

    def test_a_step_that_overflows_changes_nothing(self):
        first, second = Value(1.0), Value(1e308)
        optimizer = SGD([first, second], 1.0)
        first.grad, second.grad = 1.0, -1.5e308
        with pytest.raises(ArithmeticError, match="parameter 1"):
            optimizer.step()
        assert (first.data, second.data, optimizer.steps) == (1.0, 1e308, 0)

    @pytest.mark.parametrize("make", [Adam, AdamW])
    def test_a_gradient_whose_square_overflows_is_an_error_or_does_no_lasting_harm(self, make):
        parameter = Value(1.0)
        optimizer = make([parameter], 0.1)
        parameter.grad = 1e160
        try:
            optimizer.step()
        except ArithmeticError:
            assert (parameter.data, optimizer.steps) == (1.0, 0)
        before = parameter.data
        for _ in range(50):
            parameter.grad = 1.0
            optimizer.step()
        assert before - parameter.data > 0.5

    @pytest.mark.parametrize("make", [SGD, lambda leaves: SGD(leaves, 0.01, momentum=0.9), Adam, AdamW])
    def test_gradients_that_have_graphs_make_the_same_step_and_leave_no_graph(self, make):
        leaves, twins = ([Value(1.0), Value(2.0)] for _ in range(2))
        optimizer, twin = make(leaves), make(twins)
        for _ in range(3):
            for (first, second), some in ((leaves, optimizer), (twins, twin)):
                some.zero_grad()
                first.grad = 0.5
                (second * second).backward(create_graph=some is optimizer)
                some.step()
        assert [leaf.data for leaf in leaves] == [leaf.data for leaf in twins]
        assert [type(leaf.data) for leaf in leaves] == [float, float]
        assert optimizer._state == twin._state

    def test_an_update_that_raises_names_the_parameter_and_changes_nothing(self):
        first, second = Value(1.0), Value(2.0, label="culprit")
        optimizer = Adam([first, second], epsilon=0.0)
        first.grad = 1.0
        with pytest.raises(ZeroDivisionError, match="culprit"):
            optimizer.step()
        assert (first.data, second.data, optimizer.steps) == (1.0, 2.0, 0)


class TestInterrupts:
    def test_an_interrupt_while_the_updates_are_computed_leaves_nothing_done(self):
        class Interrupted(SGD):
            calls = 0

            def update(self, parameter, gradient, state, rate):
                self.calls += 1
                if self.calls == 2:
                    raise KeyboardInterrupt
                return super().update(parameter, gradient, state, rate)

        leaves = [Value(1.0), Value(2.0), Value(3.0)]
        optimizer = Interrupted(leaves, 0.5)
        for leaf in leaves:
            leaf.grad = 1.0
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
        assert ([leaf.data for leaf in leaves], optimizer.steps) == ([1.0, 2.0, 3.0], 0)
        optimizer.step()
        assert ([leaf.data for leaf in leaves], optimizer.steps) == ([0.5, 1.5, 2.5], 1)


class TestModules:
    @pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
    def test_a_module_stands_for_its_parameters(self, kind):
        model = mg.nn.MLP(2, [2, 1])
        assert kind(model, 0.1).parameters == model.parameters()
        assert kind(model.layers[0].neurons[0], 0.1).parameters == model.layers[0].neurons[0].parameters()

    def test_training_one_is_training_its_parameters(self):
        found = []
        for compiled in (False, "numpy"):
            for of_model in (True, False):
                model = mg.nn.MLP(1, [2, 1], activation="tanh", initial=0.5)
                for number, parameter in enumerate(model.parameters()):
                    parameter.data = 0.1 * number
                optimizer = SGD(model if of_model else model.parameters(), 0.1, momentum=0.5)

                def loss(x, model=model):
                    return (model([x]) - x) ** 2

                mg.fit(loss, [0.5, -0.5], optimizer, epochs=3, seed=0, compile=compiled)
                found.append([parameter.data for parameter in model.parameters()])
        assert found[0] == found[1]
        assert found[2] == found[3] == pytest.approx(found[0], rel=1e-12)

    def test_whatever_has_parameters_will_do(self):
        class Line:
            def __init__(self):
                self.slope = Value(1.0)

            def parameters(self):
                yield self.slope

        line = Line()
        assert SGD(line).parameters == [line.slope]


SHAPES = {
    "sgd": lambda leaves: SGD(leaves, 0.05),
    "momentum": lambda leaves: SGD(leaves, 0.05, momentum=0.9, nesterov=True),
    "adam": lambda leaves: Adam(leaves, 0.05),
    "adamw": lambda leaves: AdamW(leaves, mg.optim.cosine(0.05, 0.0, 8)),
}


def steps_of(optimizer, count):
    for _ in range(count):
        for parameter in optimizer.parameters:
            parameter.grad = math.sin(parameter.data + optimizer.steps)
        optimizer.step()


class TestLearningRate:
    def test_it_reads_as_the_rate_of_the_next_step(self):
        assert SGD([Value(1.0)], 0.25).learning_rate == 0.25
        optimizer = SGD([Value(1.0)], mg.optim.linear(1.0, 0.0, 4))
        steps_of(optimizer, 3)
        assert (optimizer.rate, optimizer.learning_rate) == (0.5, 0.25)

    def test_it_can_be_set_between_steps(self):
        x = Value(1.0)
        optimizer = SGD([x], 0.5)
        optimizer.learning_rate = 0.125
        x.grad = 4.0
        optimizer.step()
        assert (x.data, optimizer.rate) == (0.5, 0.125)
        optimizer.learning_rate = lambda step: 0.25 * step
        optimizer.step()
        assert (x.data, optimizer.learning_rate) == (-0.5, 0.5)

    @pytest.mark.parametrize(("rate", "kind"), [("0.1", TypeError), (-1.0, ValueError), (math.nan, ValueError)])
    def test_what_is_no_rate_is_refused_and_the_rate_stays(self, rate, kind):
        optimizer = Adam([Value(1.0)], 0.5)
        with pytest.raises(kind, match="learning rate"):
            optimizer.learning_rate = rate
        assert optimizer.learning_rate == 0.5

    @pytest.mark.parametrize("compiled", [False, True])
    def test_a_callback_of_fit_may_set_it(self, compiled):
        def halve(history):
            optimizer.learning_rate /= 2

        x = Value(1.0)
        optimizer = SGD([x], 1.0)
        mg.fit(lambda example: x * example, [1.0], optimizer, epochs=3, callback=halve, compile=compiled)
        assert x.data == 1.0 - 1.0 - 0.5 - 0.25

    @pytest.mark.parametrize("make", [SGD, Adam, AdamW])
    def test_the_name_of_other_libraries_is_answered_with_ours(self, make):
        with pytest.raises(TypeError, match="takes learning_rate, not lr"):
            make([Value(1.0)], lr=0.1)
        optimizer = make([Value(1.0)])
        with pytest.raises(AttributeError, match="its learning rate is learning_rate"):
            optimizer.lr  # noqa: B018  # reading it is what is tested
        with pytest.raises(AttributeError, match="has no lr: set learning_rate"):
            optimizer.lr = 0.1
        assert not hasattr(optimizer, "lr")

    def test_a_custom_optimiser_may_use_that_name(self):
        class Mine(SGD):
            def __init__(self, parameters, lr):
                super().__init__(parameters, lr)
                self.lr = lr

        assert Mine([Value(1.0)], lr=0.5).lr == 0.5


class TestState:
    @pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
    @pytest.mark.parametrize("way", ["dict", "file", "pickle", "copy"])
    def test_resumed_training_is_uninterrupted_training(self, make, way, tmp_path):
        whole = make([Value(1.0), Value(-2.0)])
        steps_of(whole, 7)
        first = make([Value(1.0), Value(-2.0)])
        steps_of(first, 3)
        second = make([Value(parameter.data) for parameter in first.parameters])
        if way == "dict":
            second.load_state_dict(first.state_dict())
        elif way == "file":
            first.save(tmp_path / "state.json")
            second.load(tmp_path / "state.json")
        else:
            second = pickle.loads(pickle.dumps(first)) if way == "pickle" else copy.deepcopy(first)
        steps_of(second, 4)
        assert [p.data for p in second.parameters] == [p.data for p in whole.parameters]
        assert second.state_dict() == whole.state_dict()
        assert (second.steps, second.rate) == (7, whole.rate)

    def test_it_names_what_it_holds(self):
        optimizer = Adam([Value(1.0)], 0.5)
        steps_of(optimizer, 2)
        assert list(optimizer.state_dict()) == ["steps", "learning_rate", *(f"parameters.0.{k}" for k in "mvt")]
        assert list(AdamW([Value(1.0)], lambda step: 0.1).state_dict()) == [
            "steps",
            *(f"parameters.0.{k}" for k in "mvt"),
        ]

    def test_a_custom_optimiser_without_names_has_numbers(self):
        class Two(Optimizer):
            states = 2

        assert list(Two([Value(1.0)], 0.1).state_dict())[2:] == ["parameters.0.0", "parameters.0.1"]

    @pytest.mark.parametrize(
        ("state", "kind", "message"),
        [
            ({"steps": 1.0}, ValueError, "'parameters.0.velocity' missing"),
            ({"steps": 1.5, "parameters.0.velocity": 0.0}, ValueError, "steps must be a whole number, not 1.5"),
            ({"steps": -1.0, "parameters.0.velocity": 0.0}, ValueError, "steps must be a whole number, not -1.0"),
            ({"steps": 1.0, "parameters.0.velocity": math.nan}, ValueError, "'parameters.0.velocity' is nan"),
            ({"steps": 1.0, "parameters.0.velocity": "1"}, TypeError, "velocity"),
            ({"steps": 1.0, "parameters.0.velocity": 0.0, "learning_rate": -1.0}, ValueError, "learning rate"),
            ([], TypeError, "a state must be a dict"),
        ],
    )
    def test_a_wrong_state_is_refused_and_changes_nothing(self, state, kind, message):
        optimizer = SGD([Value(1.0)], 0.5, momentum=0.5)
        steps_of(optimizer, 2)
        before = optimizer.state_dict()
        with pytest.raises(kind, match=message):
            optimizer.load_state_dict(state)
        assert optimizer.state_dict() == before

    def test_a_rate_that_is_a_number_does_not_replace_a_schedule(self):
        state = SGD([Value(1.0)], 0.5).state_dict()
        with pytest.raises(ValueError, match="a number as learning_rate, and this SGD a schedule"):
            SGD([Value(1.0)], lambda step: 0.5).load_state_dict(state)

    def test_a_file_of_another_optimiser_is_refused_by_name(self, tmp_path):
        path = tmp_path / "state.json"
        Adam([Value(1.0)]).save(path)
        with pytest.raises(ValueError, match=r"cannot load .*state.json: the state does not fit"):
            SGD([Value(1.0)]).load(path)


class TestArraysOfParameters:
    def test_arrays_of_any_shape_are_taken_apart(self):
        weights, bias = mg.array([[1.0, 2.0], [3.0, 4.0]]), Value(5.0)
        for parameters in (weights, [weights, bias], (bias, weights)):
            assert set(SGD(parameters).parameters) >= set(weights.ravel())
        optimizer = SGD([weights, bias], 1.0)
        (weights @ weights).sum().backward()
        optimizer.step()
        assert len(optimizer.parameters) == 5
        assert weights[0, 0].data == 1.0 - weights[0, 0].grad


class TestGroups:
    """Groups of parameters with settings of their own: as an optimiser for each group."""

    KINDS = pytest.mark.parametrize(
        ("kind", "settings"),
        [
            (SGD, {}),
            (SGD, {"momentum": 0.9}),
            (SGD, {"momentum": 0.5, "nesterov": True, "weight_decay": 0.2}),
            (Adam, {}),
            (Adam, {"weight_decay": 0.1}),
            (AdamW, {}),
        ],
    )

    def values(self, count):
        return [Value(0.1 * number - 0.3) for number in range(count)]

    def targets(self, values):
        return sum((value - 1.0) ** 2 * (index + 1) for index, value in enumerate(values))

    @KINDS
    @pytest.mark.parametrize("count", [3, 40])  # one by one, and as arrays
    def test_they_are_as_an_optimiser_for_each(self, kind, settings, count):
        values, twins = self.values(2 * count), self.values(2 * count)
        groups = [
            {"parameters": values[:count]},
            {"parameters": values[count:], "learning_rate": 0.001, "weight_decay": 0.3},
        ]
        optimizer = kind(groups, 0.01, **settings)
        others = kind(twins[:count], 0.01, **settings), kind(twins[count:], 0.001, **settings | {"weight_decay": 0.3})
        for _ in range(5):
            optimizer.zero_grad()
            self.targets(values).backward()
            optimizer.step()
            for other in others:
                other.zero_grad()
            self.targets(twins).backward()
            for other in others:
                other.step()
        expected = [value.data for value in twins]
        assert [value.data for value in values] == pytest.approx(expected, rel=1e-13)

    @pytest.mark.unmeasured
    @KINDS
    @pytest.mark.parametrize("mode", ["numpy", "llvm", "jax"])
    def test_they_are_the_same_in_a_compiled_fit(self, kind, settings, mode):
        results = []
        for compiled in (False, mode):
            values = self.values(6)
            groups = [{"parameters": values[:2], "scale": 0.5}, {"parameters": values[2:], "weight_decay": 0.3}]
            optimizer = kind(groups, cosine(0.1, 0.01, 10), **settings)
            mg.fit(lambda x: self.targets(values) * x, [1.0, 0.5], optimizer, epochs=4, seed=0, compile=compiled)  # noqa: B023
            results.append([value.data for value in values])
        assert results[0] == pytest.approx(results[1], rel=1e-10)

    def test_the_learning_rate_of_the_optimiser_scales_all(self):
        values = self.values(2)
        optimizer = SGD([{"parameters": values[:1]}, {"parameters": values[1:], "scale": 3.0}], 1.0)
        optimizer.learning_rate = 0.5
        for value in values:
            value.grad = 1.0
        before = [value.data for value in values]
        optimizer.step()
        assert [value.data for value in values] == [before[0] - 0.5, before[1] - 1.5]

    def test_state_and_pickles_keep_them(self, tmp_path):
        def made(scale):
            values = self.values(3)
            return values, Adam([{"parameters": values[:1], "scale": scale}, {"parameters": values[1:]}], 0.1)

        (values, optimizer), (others, loaded) = made(0.25), made(1.0)
        optimizer.save(tmp_path / "state.json")
        loaded.load(tmp_path / "state.json")
        again, again_values = pickle.loads(pickle.dumps((optimizer, values)))
        for each, step in ((values, optimizer), (others, loaded), (again_values, again)):
            step.zero_grad()
            self.targets(each).backward()
            step.step()
        assert [v.data for v in values] == [v.data for v in others] == [v.data for v in again_values]

    def test_modules_arrays_and_frozen_parameters(self):
        model, array = mg.nn.MLP(2, [2, 1]), numpy.array([[Value(1.0), Value(2.0)]])
        array[0, 0].requires_grad = False
        optimizer = SGD([{"parameters": model}, {"parameters": array, "scale": 0.5}], 1.0)
        assert len(optimizer.parameters) == 11
        for value in optimizer.parameters:
            value.grad = 1.0
        optimizer.step()
        assert [value.data for value in array[0]] == [1.0, 1.5]

    def test_a_recording_of_them_can_be_opened(self, tmp_path):
        model = mg.nn.MLP(1, [2, 1])
        groups = [{"parameters": model.layers[0]}, {"parameters": model.layers[1], "scale": 0.1}]
        record = mg.Recording(model, [[0.5]])
        mg.fit(lambda x, y: (model([x]) - y) ** 2, [(0.5, 1.0)], SGD(groups, 0.1), epochs=3, record=record)
        mg.explore(record, tmp_path / "recording.html")
        assert (tmp_path / "recording.html").stat().st_size > 1000

    def test_an_update_of_ones_own_takes_none(self):
        class Own(SGD):
            def update(self, parameter, gradient, state, rate):
                return parameter, state

        with pytest.raises(TypeError, match="Own defines its own update"):
            Own([{"parameters": [Value(1.0)]}])
