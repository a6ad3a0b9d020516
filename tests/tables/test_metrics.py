"""Rows split for a test, and predictions measured, beside scikit-learn."""

import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from micrograd.tables import metrics
from micrograd.tables.predictor import split


@given(st.lists(st.sampled_from("aaaabbbc"), min_size=12, max_size=80), st.floats(0.1, 0.5), st.integers(0, 9))
def test_a_stratified_split_takes_the_share_of_each_class(cells, share, seed):
    rows = split(cells, share, seed, stratified=True)
    assert rows == split(cells, share, seed, stratified=True)
    counts, taken = Counter(cells), Counter(cells[row] for row in rows)
    for name, count in counts.items():
        assert abs(taken[name] - share * count) <= 1
        assert taken[name] < count  # some of each class are left to learn from


@given(st.integers(10, 100), st.floats(0.1, 0.5), st.integers(0, 9))
def test_a_split_takes_the_share(rows, share, seed):
    assert len(split(["1.5"] * rows, share, seed, stratified=False)) == int(rows * share)


def test_predictions_far_off_have_no_share_of_the_variance():
    assert metrics.regression([0.0, 1.0], [1e200, -1e200], 0.5)["r2"] is None


def test_different_seeds_split_differently():
    assert len({frozenset(split(["x"] * 50, 0.2, seed, stratified=False)) for seed in range(10)}) == 10


@pytest.mark.slow
@settings(max_examples=30)  # scikit-learn takes its time
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_the_measures_of_classes_are_scikit_learns(pairs):
    reference = pytest.importorskip("sklearn.metrics")
    wanted, guesses = zip(*pairs, strict=True)
    ours = metrics.classification("abc", wanted, guesses, "a")
    assert ours["accuracy"] == pytest.approx(reference.accuracy_score(wanted, guesses))
    assert ours["guessing"] == pytest.approx(reference.accuracy_score(wanted, ["a"] * len(wanted)))
    assert ours["confusion"] == reference.confusion_matrix(wanted, guesses, labels=list("abc")).tolist()
    theirs = reference.precision_recall_fscore_support(wanted, guesses, labels=list("abc"), zero_division=0)
    for name, scores in zip(("precision", "recall", "f1", "rows"), theirs, strict=True):
        assert [entry[name] or 0 for entry in ours["classes"]] == pytest.approx(scores.tolist())


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2))
def test_the_measures_of_quantities_are_scikit_learns(pairs):
    reference = pytest.importorskip("sklearn.metrics")
    wanted, predicted = zip(*pairs, strict=True)
    ours = metrics.regression(wanted, predicted, 5.0)
    assert ours["rmse"] == pytest.approx(reference.mean_squared_error(wanted, predicted) ** 0.5)
    assert ours["mae"] == pytest.approx(reference.mean_absolute_error(wanted, predicted))
    assert ours["guessing"] == pytest.approx(reference.mean_squared_error(wanted, [5.0] * len(wanted)) ** 0.5)
    if statistics.pstdev(wanted) > 1e-6:
        assert ours["r2"] == pytest.approx(reference.r2_score(wanted, predicted), rel=1e-6, abs=1e-6)
