"""Losses against formulas with many digits, gradients against closed forms, shapes and errors."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.losses import binary_cross_entropy, cross_entropy, hinge, mean_squared_error

logit = st.floats(-50, 50)
huge_logit = st.floats(-1e4, 1e4)
rows = st.integers(1, 6).flatmap(
    lambda size: st.tuples(st.lists(huge_logit, min_size=size, max_size=size), st.integers(0, size - 1))
)


def exact(compute):
    """The float nearest to what a formula gives when no digit that matters is lost."""
    with mpmath.workdps(60):
        # exp(-20000) is far below what 60 digits beside 1 show, so differences use expm1 and log1p
        return float(compute())


def exact_softplus(x):
    x = mpmath.mpf(x)
    return mpmath.log1p(mpmath.exp(x)) if x < 0 else x + mpmath.log1p(mpmath.exp(-x))


def exact_cross_entropy(logits, target):
    others = [mpmath.exp(mpmath.mpf(other) - mpmath.mpf(logits[target])) for other in logits]
    del others[target]
    return mpmath.log1p(mpmath.fsum(others))


def exact_softmax(logits):
    return [1 / mpmath.fsum(mpmath.exp(mpmath.mpf(other) - mpmath.mpf(one)) for other in logits) for one in logits]


def gradients(loss, numbers, *targets):
    """A loss and its gradients by the numbers."""
    leaves = [Value(number) for number in numbers]
    result = loss(leaves, *targets)
    result.backward()
    return result.data, [leaf.grad for leaf in leaves]


def differences(loss, numbers, *targets, step=1e-6):
    """The derivatives of a loss of plain floats, by central differences."""
    slopes = []
    for index in range(len(numbers)):
        ahead, behind = list(numbers), list(numbers)
        ahead[index] += step
        behind[index] -= step
        slopes.append((loss(ahead, *targets) - loss(behind, *targets)) / (ahead[index] - behind[index]))
    return slopes


class TestMeanSquaredError:
    @given(pairs=st.lists(st.tuples(huge_logit, huge_logit), min_size=1, max_size=8))
    @pytest.mark.slow
    def test_value_and_gradient_are_those_of_the_formula(self, pairs):
        predictions, targets = map(list, zip(*pairs, strict=True))
        loss, slopes = gradients(mean_squared_error, predictions, targets)
        count = len(pairs)
        assert loss == pytest.approx(math.fsum((p - t) ** 2 for p, t in pairs) / count, rel=1e-12)
        assert slopes == pytest.approx([2 * (p - t) / count for p, t in pairs], rel=1e-12)
        assert mean_squared_error(predictions, targets) == loss

    def test_gradients_agree_with_differences(self):
        numbers, targets = [0.5, -1.5, 3.0], [1.0, 2.0, -0.5]
        _, slopes = gradients(mean_squared_error, numbers, targets)
        assert slopes == pytest.approx(differences(mean_squared_error, numbers, targets), rel=1e-6)

    def test_the_targets_get_gradients_too_where_they_are_values(self):
        prediction, target = Value(3.0), Value(1.0)
        mean_squared_error(prediction, target).backward()
        assert (prediction.grad, target.grad) == (4.0, -4.0)


class TestHinge:
    @given(pairs=st.lists(st.tuples(huge_logit, st.sampled_from([-1, 1])), min_size=1, max_size=8))
    @pytest.mark.slow
    def test_value_and_gradient_are_those_of_the_formula(self, pairs):
        scores, targets = map(list, zip(*pairs, strict=True))
        loss, slopes = gradients(hinge, scores, targets)
        count = len(pairs)
        assert loss == pytest.approx(math.fsum(max(0.0, 1 - t * s) for s, t in pairs) / count, rel=1e-12)
        assert slopes == pytest.approx([-t / count if 1 - t * s > 0 else 0.0 for s, t in pairs], rel=1e-12)

    def test_gradients_agree_with_differences(self):
        numbers, targets = [0.5, -1.5, 3.0], [1, 1, -1]
        _, slopes = gradients(hinge, numbers, targets)
        assert slopes == pytest.approx(differences(hinge, numbers, targets), abs=1e-8)

    def test_there_is_no_loss_and_no_gradient_on_and_beyond_the_margin(self):
        for score in (1.0, 1.5, 1e4):
            assert gradients(hinge, [score], [1]) == (0.0, [0.0])


class TestBinaryCrossEntropy:
    @given(z=huge_logit, target=st.sampled_from([0, 1]))
    def test_value_and_gradient_have_all_their_digits_for_certain_targets(self, z, target):
        loss, (slope,) = gradients(binary_cross_entropy, [z], [target])
        wrong = -z if target else z
        assert loss == pytest.approx(exact(lambda: exact_softplus(wrong)), rel=1e-13, abs=1e-307)
        sign = -1 if target else 1
        assert slope == pytest.approx(exact(lambda: sign / (1 + mpmath.exp(-mpmath.mpf(wrong)))), rel=1e-12, abs=1e-307)

    @given(z=huge_logit, target=st.floats(0, 1))
    def test_value_and_gradient_are_those_of_the_formula_for_probabilities(self, z, target):
        loss, (slope,) = gradients(binary_cross_entropy, [z], [target])
        p = mpmath.mpf(target)
        assert loss == pytest.approx(
            exact(lambda: p * exact_softplus(-z) + (1 - p) * exact_softplus(z)), rel=1e-12, abs=1e-300
        )
        assert slope == pytest.approx(exact(lambda: 1 / (1 + mpmath.exp(-mpmath.mpf(z))) - p), rel=1e-9, abs=1e-15)

    def test_gradients_agree_with_differences(self):
        numbers, targets = [0.5, -1.5, 3.0], [1, 0, 0.3]
        _, slopes = gradients(binary_cross_entropy, numbers, targets)
        assert slopes == pytest.approx(differences(binary_cross_entropy, numbers, targets), rel=1e-6)

    def test_logits_of_ten_thousand_neither_overflow_nor_vanish(self):
        assert gradients(binary_cross_entropy, [1e4], [0]) == (1e4, [1.0])
        assert gradients(binary_cross_entropy, [-1e4], [1]) == (1e4, [-1.0])
        assert gradients(binary_cross_entropy, [1e4], [1])[0] == 0.0
        assert gradients(binary_cross_entropy, [-1e4], [0.5]) == (5e3, [-0.5])

    def test_an_infinite_logit_on_the_right_side_costs_nothing(self):
        assert gradients(binary_cross_entropy, [math.inf], [1]) == (0.0, [0.0])
        assert gradients(binary_cross_entropy, [-math.inf], [0]) == (0.0, [0.0])

    def test_a_confident_prediction_keeps_its_digits(self):
        loss, (slope,) = gradients(binary_cross_entropy, [40.0], [1])
        assert (loss, slope) == pytest.approx((math.exp(-40), -math.exp(-40)), rel=1e-14)


class TestCrossEntropy:
    @given(row=rows)
    @pytest.mark.slow
    def test_value_and_gradient_are_those_of_the_formula(self, row):
        logits, target = row
        loss, slopes = gradients(cross_entropy, logits, target)
        # rounding moves the differences of the logits by this much
        shift = 4 * max(abs(number) for number in logits) * 2**-52
        expected = exact(lambda: exact_cross_entropy(logits, target))
        assert loss == pytest.approx(expected, rel=1e-13 + shift, abs=shift * min(1.0, expected) + 1e-300)
        expected_slopes = exact_softmax(logits)
        expected_slopes[target] -= 1
        assert slopes == pytest.approx([float(slope) for slope in expected_slopes], rel=1e-10, abs=1e-14)

    @given(logits=st.lists(logit, min_size=2, max_size=6), gap=st.floats(30, 700))
    def test_the_loss_of_a_confident_prediction_has_all_its_digits(self, logits, gap):
        logits = [max(logits) + gap, *logits]
        loss, slopes = gradients(cross_entropy, logits, 0)
        expected = exact(lambda: exact_cross_entropy(logits, 0))
        assert 0 < loss == pytest.approx(expected, rel=1e-10)
        assert slopes[0] == pytest.approx(-expected, rel=1e-10)

    def test_a_logit_forty_above_the_other_costs_e_to_the_minus_forty(self):
        loss, slopes = gradients(cross_entropy, [40.0, 0.0], 0)
        assert loss == pytest.approx(math.exp(-40), rel=1e-14)
        assert slopes == pytest.approx([-math.exp(-40), math.exp(-40)], rel=1e-14)

    def test_logits_of_ten_thousand_neither_overflow_nor_vanish(self):
        assert gradients(cross_entropy, [1e4, -1e4, 0.0], 1) == (2e4, [1.0, -1.0, 0.0])
        assert gradients(cross_entropy, [1e4, -1e4, 0.0], 0)[0] == 0.0
        loss, slopes = gradients(cross_entropy, [-1e4, -1e4], 0)
        assert (loss, slopes) == (pytest.approx(math.log(2)), pytest.approx([-0.5, 0.5]))

    def test_equal_logits_cost_the_logarithm_of_their_number(self):
        for count in (2, 3, 10, 100):
            assert cross_entropy([1.5] * count, count - 1) == pytest.approx(math.log(count))

    def test_adding_the_same_to_every_logit_changes_nothing_that_matters(self):
        logits = [0.5, -1.0, 2.0]
        assert cross_entropy([number + 1000 for number in logits], 1) == pytest.approx(
            cross_entropy(logits, 1), rel=1e-12
        )

    def test_gradients_agree_with_differences(self):
        numbers = [0.5, -1.5, 3.0, 0.0]
        for target in range(4):
            _, slopes = gradients(cross_entropy, numbers, target)
            assert slopes == pytest.approx(differences(cross_entropy, numbers, target), rel=1e-6)

    def test_the_only_class_there_is_costs_nothing(self):
        assert gradients(cross_entropy, [3.0], 0) == (0.0, [0.0])

    def test_rows_give_the_mean_over_them(self):
        table = [[0.5, -1.0, 2.0], [3.0, 0.0, 0.0]]
        separate = [cross_entropy(row, target) for row, target in zip(table, (2, 1), strict=True)]
        assert cross_entropy(table, [2, 1]) == pytest.approx(sum(separate) / 2)

    @pytest.mark.parametrize("kind", [int, np.int64, np.uint8], ids=lambda kind: kind.__name__)
    def test_targets_may_be_numpy_integers_and_arrays_of_them(self, kind):
        table = [[Value(0.5), Value(-1.0)], [Value(3.0), Value(0.0)]]
        expected = cross_entropy(table, [1, 0]).data
        targets = np.array([1, 0], dtype=kind)
        assert cross_entropy(table, targets).data == expected
        assert cross_entropy(np.array(table), targets).data == expected
        assert cross_entropy(table[0], targets[0]).data == cross_entropy(table[0], 1).data

    def test_a_masked_logit_has_probability_zero(self):
        assert cross_entropy([0.0, -math.inf], 0) == 0.0
        assert cross_entropy([0.0, -math.inf, -math.inf], 0) == 0.0

    def test_a_logit_that_is_nan_makes_the_loss_nan_whatever_the_target(self):
        for target in range(3):
            assert math.isnan(cross_entropy([math.nan, 800.0, 1.0], target))

    def test_a_masked_logit_beside_others_has_probability_zero(self):
        loss, slopes = gradients(cross_entropy, [1.0, -math.inf, 2.0], 2)
        assert loss == pytest.approx(math.log1p(math.exp(-1)))
        assert slopes[1] == 0.0


SEVERAL = [
    (mean_squared_error, [[0.5, -1.0], [2.0, 3.0], [0.0, 1.0]], [[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]),
    (hinge, [[0.5, -1.0], [2.0, 3.0], [0.0, 1.0]], [[1, -1], [1, 1], [-1, -1]]),
    (binary_cross_entropy, [[0.5, -1.0], [2.0, 3.0], [0.0, 1.0]], [[1, 0], [0.3, 1], [0, 0.9]]),
]


@pytest.mark.parametrize(("loss", "predictions", "targets"), SEVERAL, ids=[case[0].__name__ for case in SEVERAL])
class TestShapes:
    def test_nested_and_flat_and_array_give_the_same_mean(self, loss, predictions, targets):
        flat = [number for row in predictions for number in row], [number for row in targets for number in row]
        separate = [loss(prediction, target) for prediction, target in zip(*flat, strict=True)]
        expected = pytest.approx(sum(separate) / 6, rel=1e-12)
        values = [[Value(number) for number in row] for row in predictions]
        results = [
            loss(*flat),
            loss(predictions, targets),
            loss(tuple(map(tuple, predictions)), targets),
            loss(predictions, np.array(targets)),
            loss(np.array(predictions), np.array(targets)),
            loss(values, targets).data,
            loss(values, np.array(targets)).data,
            loss(np.array(values), np.array(targets)).data,
            loss(np.array(values), targets).data,
        ]
        assert results == [expected] * len(results)

    def test_one_prediction_gives_one_loss_of_its_kind(self, loss, predictions, targets):
        assert type(loss(0.5, 1)) is float
        prediction = Value(0.5)
        result = loss(prediction, 1)
        assert type(result) is Value
        result.backward()
        assert prediction.grad != 0.0
        assert loss([0.5], [1]) == loss(0.5, 1) == result.data


def test_take_gives_elements_and_rows_and_says_what_is_wrong():
    table = [[mg.Value(1.0), 2.0], [3.0, 4.0]]
    assert mg.take([5.0, 6.0], -1) == 6.0
    assert mg.take([5.0], 0) == 5.0
    assert mg.take(table, 1) == [3.0, 4.0]
    assert mg.take(table, 0)[0] is table[0][0]
    assert mg.take(table, 0) is not table[0]  # the row is a list of the caller's own
    for sequence, index, error, message in (
        ([1.0], 1, IndexError, "out of range"),
        ([], 0, IndexError, "empty"),
        ([1.0], 0.0, TypeError, "must be an int, not float: 0.0"),
        ([1.0], mg.Value(0.0), TypeError, "must be an int, not Value"),
        ([[1.0], [1.0, 2.0]], 0, ValueError, "equally long"),
    ):
        with pytest.raises(error, match=message):
            mg.take(sequence, index)


class TestWeights:
    """Weights of classes."""

    LOGITS = ((1.0, -2.0, 0.5), (0.0, 3.0, 1.0), (-1.0, 0.5, 2.0))

    @pytest.mark.parametrize("compiled", [False, True])
    def test_the_loss_of_each_row_is_multiplied_by_the_weight_of_its_class(self, compiled):
        logits, targets, weights = [list(row) for row in self.LOGITS], [2, 0, 2], [3.0, 1.0, 0.5]
        each = [mg.losses.cross_entropy(row, target) for row, target in zip(logits, targets, strict=True)]
        expected = (0.5 * each[0] + 3.0 * each[1] + 0.5 * each[2]) / 3

        def loss(logits, targets):
            return mg.losses.cross_entropy(logits, targets, weights=weights)

        found = (mg.compile(loss) if compiled else loss)([[Value(z) for z in row] for row in logits], targets)
        assert found.data == pytest.approx(expected, rel=1e-13)
        columns = np.array(logits).T
        assert mg.losses.cross_entropy(columns, targets, axis=0, weights=weights) == pytest.approx(expected, rel=1e-13)
        assert mg.losses.cross_entropy(logits[0], 2, weights=weights) == 0.5 * each[0]

    @pytest.mark.parametrize("compiled", [False, True])
    @pytest.mark.parametrize("target", [0, 1, 0.25])
    def test_those_of_0_and_1(self, compiled, target):
        of_0, of_1 = (mg.losses.binary_cross_entropy(0.75, t) for t in (0, 1))

        def loss(logit, target):
            return mg.losses.binary_cross_entropy(logit, target, weights=(2.0, 5.0))

        found = (mg.compile(loss) if compiled else loss)(Value(0.75), target)
        assert found.data == pytest.approx(5.0 * target * of_1 + 2.0 * (1 - target) * of_0, rel=1e-13)

    def test_along_an_axis(self):
        logits, targets = np.array([[0.5, -1.0], [2.0, 0.0]]), np.array([[0, 1], [1, 1]])
        found = mg.losses.binary_cross_entropy(logits, targets, axis=0, weights=(1.0, 4.0))
        plain = [
            [mg.losses.binary_cross_entropy(z, t) * (4.0 if t else 1.0) for z, t in zip(*rows, strict=True)]
            for rows in zip(logits.tolist(), targets.tolist(), strict=True)
        ]
        assert found == pytest.approx(np.mean(plain, axis=0), rel=1e-13)
