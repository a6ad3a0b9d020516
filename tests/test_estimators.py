"""The estimators: scikit-learn's own checks, what they learn beside its own networks, and what is refused."""

import math
import pickle
import runpy
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn import neural_network
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import micrograd as mg
from micrograd import estimators
from micrograd.estimators import MLPClassifier, MLPRegressor
from micrograd.training import rows as training

pytestmark = pytest.mark.slow(together=True)

CHANCE = np.random.default_rng(0)
ROWS = CHANCE.normal(size=(96, 4))
TARGETS = {
    "three classes": CHANCE.integers(0, 3, 96),
    "two classes": np.where(ROWS[:, 0] > 0, "yes", "no"),
    "labels": CHANCE.integers(0, 2, (96, 3)),
    "number": CHANCE.normal(size=96),
    "numbers": CHANCE.normal(size=(96, 2)),
}
KINDS = TARGETS["two classes"]
# What scikit-learn skips for its own networks too: they have no decision_function, and take NumPy's arrays only.
SKIPPED = {"check_array_api_input", "check_classifiers_multilabel_output_format_decision_function"}
NO_NAMES = pytest.mark.skipif(
    sklearn.__version__.startswith("1.7."), reason="its own networks raise where classes have names"
)


def name_of(target):
    return "MLPRegressor" if "number" in target else "MLPClassifier"


def quick(target="two classes", **settings):
    usual = {"hidden_layer_sizes": (3,), "batch_size": 32, "max_iter": 3, "n_iter_no_change": math.inf}
    made = MLPRegressor if "number" in target else MLPClassifier
    return made(**{**usual, "random_state": 0, "learning_rate_init": 0.01, **settings})


def by_scikit_learn(estimator, target):
    """Its own network of the same settings, which learned the same rows."""
    made = getattr(neural_network, name_of(target))()
    settings = {name: value for name, value in estimator.get_params().items() if name in made.get_params()}
    return fitted(made.set_params(**settings), TARGETS[target])


def fitted(estimator, targets):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # theirs always warn after max_iter
        return estimator.fit(ROWS, targets)


def learned(estimator):
    return np.concatenate([part.ravel() for part in (*estimator.coefs_, *estimator.intercepts_)])


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [MLPClassifier, MLPRegressor])
def test_scikit_learns_own_checks_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so few epochs are not enough, and what the checks provoke
        results = check_estimator(estimator((16,), learning_rate_init=0.01, max_iter=100), on_fail=None, on_skip=None)
    assert len(results) > 50
    assert {result["check_name"] for result in results if result["status"] != "passed"} <= SKIPPED


class TestBesideScikitLearn:
    @pytest.mark.slow
    @pytest.mark.parametrize("target", TARGETS)
    @pytest.mark.parametrize(
        "settings",
        [
            {"solver": "adam", "alpha": 0.3},
            {"solver": "sgd", "activation": "tanh", "alpha": 0.0},
            {"solver": "sgd", "activation": "logistic", "nesterovs_momentum": False, "momentum": 0.5},
            {"activation": "identity", "hidden_layer_sizes": [4, 3], "shuffle": False},
        ],
        ids=["adam", "sgd", "sgd without Nesterov", "linear"],
    )
    def test_the_same_seed_learns_the_same(self, target, settings):
        ours = quick(target, **settings).fit(ROWS, TARGETS[target])
        theirs = by_scikit_learn(ours, target)
        assert learned(ours) == pytest.approx(learned(theirs), abs=1e-12)
        for name in ("n_iter_", "t_", "n_outputs_", "out_activation_", "n_layers_", "n_features_in_"):
            assert getattr(ours, name) == getattr(theirs, name)
        if name_of(target) == "MLPRegressor":
            assert ours.predict(ROWS) == pytest.approx(theirs.predict(ROWS))
        else:
            assert list(ours.classes_) == list(theirs.classes_)
            assert ours.predict(ROWS).tolist() == theirs.predict(ROWS).tolist()
            assert ours.predict_proba(ROWS) == pytest.approx(theirs.predict_proba(ROWS))
            assert ours.predict_log_proba(ROWS) == pytest.approx(theirs.predict_log_proba(ROWS))

    @pytest.mark.parametrize("target", [pytest.param("two classes", marks=NO_NAMES), "number"])
    def test_early_stopping_ends_and_keeps_what_theirs_does(self, target):
        settings = {"early_stopping": True, "max_iter": 60, "n_iter_no_change": 3, "alpha": 0.0, "tol": 0.001}
        ours = quick(target, **settings, validation_fraction=1 / 3).fit(ROWS, TARGETS[target])
        theirs = by_scikit_learn(ours, target)
        assert ours.n_iter_ == theirs.n_iter_ < 60
        assert ours.validation_scores_ == pytest.approx(theirs.validation_scores_)
        assert ours.best_validation_score_ == pytest.approx(theirs.best_validation_score_)
        assert learned(ours) == pytest.approx(learned(theirs), abs=1e-12)
        assert ours.best_loss_ is theirs.best_loss_ is None

    def test_it_ends_when_the_loss_stops_falling_as_theirs_does(self):
        ours = quick(alpha=0.0, tol=0.01, n_iter_no_change=2, max_iter=200).fit(ROWS, KINDS)
        theirs = by_scikit_learn(ours, "two classes")
        assert ours.n_iter_ == theirs.n_iter_ < 200
        assert ours.loss_curve_ == pytest.approx(theirs.loss_curve_)
        assert (ours.loss_, ours.best_loss_) == pytest.approx((theirs.loss_, theirs.best_loss_))

    @pytest.mark.parametrize("target", ["three classes", "number"])
    def test_parts_learn_what_theirs_do(self, target):
        ours = quick(target)
        theirs = getattr(neural_network, name_of(target))(
            hidden_layer_sizes=(3,), batch_size=32, random_state=0, learning_rate_init=0.01
        )
        first = {"classes": [0, 1, 2]} if target == "three classes" else {}
        for part in (slice(0, 64), slice(64, 96)):
            for estimator in (ours, theirs):
                estimator.partial_fit(ROWS[part], TARGETS[target][part], **first)
        assert learned(ours) == pytest.approx(learned(theirs), abs=1e-12)
        assert (len(ours.loss_curve_), ours.t_) == (2, theirs.t_)

    def test_a_warm_start_goes_on_from_the_weights_as_theirs_does(self):
        ours = quick(warm_start=True).fit(ROWS, KINDS)
        theirs = fitted(by_scikit_learn(ours, "two classes"), KINDS)
        assert learned(ours.fit(ROWS, KINDS)) == pytest.approx(learned(theirs), abs=1e-12)
        assert len(ours.loss_curve_) == len(theirs.loss_curve_) == 6

    def test_digits_are_read_as_well(self):
        images, digits = load_digits(return_X_y=True)
        parts = train_test_split(images / 16, digits, stratify=digits, random_state=0)
        ours = quick(hidden_layer_sizes=(16,), max_iter=10).fit(parts[0], parts[2])
        assert ours.score(parts[1], parts[3]) > 0.9

    def test_the_rate_falls_along_a_cosine_where_that_is_asked_for(self):
        """From 0.01 to a hundredth of it, at the first and the last step: with one step each, SGD moves as much."""
        one, two = (
            quick(solver="sgd", momentum=0.0, batch_size=96, learning_rate=rate) for rate in ("constant", "cosine")
        )
        firsts = [estimator.partial_fit(ROWS, KINDS, classes=["no", "yes"]) for estimator in (one, two)]
        assert learned(firsts[0]).tolist() == learned(firsts[1]).tolist()
        before = learned(two)
        moves = []
        for _ in range(3):
            two.partial_fit(ROWS, KINDS)
            moves.append(np.abs(learned(two) - before).max())
            before = learned(two)
        assert moves[0] > 2 * moves[1] > 20 * moves[2]


@pytest.mark.parametrize("activation", training.FUNCTIONS)
def test_predictions_are_those_of_the_network_of_values(activation):
    estimator = quick("number", activation=activation, max_iter=1).fit(ROWS, TARGETS["number"])
    network = estimator._model(range(4), ROWS[0])
    assert estimator.predict(ROWS) == pytest.approx([network(row).data for row in ROWS.tolist()], rel=1e-12)


class TestAmongScikitLearnsTools:
    def test_it_stands_in_pipelines_searches_and_validations_several_at_a_time_too(self):
        pipeline = make_pipeline(StandardScaler(), quick())
        with joblib.parallel_config(backend="threading", n_jobs=2):
            search = GridSearchCV(pipeline, {"mlpclassifier__alpha": [0.0, 1.0]}, cv=2).fit(ROWS, KINDS)
        alone = cross_val_score(pipeline.set_params(mlpclassifier__alpha=1.0), ROWS, KINDS, cv=2)
        assert search.cv_results_["mean_test_score"][1] == alone.mean()

    def test_a_clone_is_not_fitted_and_a_pickle_predicts_the_same(self):
        estimator = quick(record=True).fit(ROWS, KINDS)
        copied = pickle.loads(pickle.dumps(estimator))
        assert (copied.predict_proba(ROWS) == estimator.predict_proba(ROWS)).all()
        assert copied.record_ is None
        with pytest.raises(NotFittedError):
            clone(estimator).predict(ROWS)

    @pytest.mark.parametrize("mean", [1, 2])
    def test_a_weight_counts_as_often_as_a_row_is_there(self, mean):
        weights = mean * (np.arange(96) % 3)
        weighted = quick(batch_size=200, alpha=1.0).fit(ROWS, KINDS, weights)
        repeated = quick(batch_size=200, alpha=1.0).fit(ROWS.repeat(weights, 0), KINDS.repeat(weights))
        assert learned(weighted) == pytest.approx(learned(repeated), abs=1e-9)
        assert weighted.loss_curve_ == pytest.approx(repeated.loss_curve_)

    def test_networks_of_the_same_shape_share_one_program_and_few_are_kept(self, monkeypatch):
        monkeypatch.setattr(training, "_networks", type(training._networks)())
        made, real = [], training._Network
        monkeypatch.setattr(training, "_Network", lambda *given: made.append(given) or real(*given))
        first = learned(quick().fit(ROWS, KINDS))
        quick(alpha=0.5, random_state=4, max_iter=1).fit(2 * ROWS[:50], KINDS[:50])
        assert learned(quick().fit(ROWS, KINDS)).tolist() == first.tolist()
        assert len(made) == 1
        monkeypatch.setattr(training, "KEPT", 1)
        quick(hidden_layer_sizes=4, max_iter=1).fit(ROWS, KINDS)
        assert len(training._networks) == 1

    def test_without_scikit_learn_the_message_names_the_packages(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        with pytest.raises(ImportError, match="needs scikit-learn: pip install scikit-learn pandas skops"):
            runpy.run_path(estimators.__file__)


class TestExplore:
    @pytest.mark.parametrize("target", ["three classes", "two classes", "labels", "number"])
    def test_a_page_is_about_the_answer_for_one_row(self, tmp_path, monkeypatch, target):
        shown = []
        monkeypatch.setattr("micrograd.estimators.explore", lambda *given: shown.append(given[:3]))
        estimator = quick(target).fit(ROWS, TARGETS[target])
        for row in ROWS[:8]:
            estimator.explore(row, tmp_path / "why.html")
            root, path, title = shown.pop()
            assert (path, title) == (tmp_path / "why.html", f"Why {root.label}")
            if target == "number":
                answer, label = estimator.predict([row])[0], "prediction"
            else:
                answer = estimator.predict_proba([row])[0]
                label = f"probability of {estimator.classes_[answer.argmax()]}"
            assert root.label == label
            assert root.data == pytest.approx(np.max(answer))
            leaves = {value.label: value.data for value in mg.topological_order(root)}
            assert [leaves[f"x{number}"] for number in range(4)] == row.tolist()

    @pytest.mark.parametrize("named", [True, False])
    def test_inputs_are_called_as_in_the_table_that_was_learned_from_or_that_is_asked_about(
        self, tmp_path, monkeypatch, named
    ):
        shown = []
        monkeypatch.setattr("micrograd.estimators.explore", lambda root, *_: shown.append(root))
        rows = pd.DataFrame(ROWS, columns=["width", "depth", "height", "weight"])
        quick(max_iter=1).fit(rows if named else ROWS, KINDS).explore(rows[5:6], tmp_path / "why.html")
        leaves = {value.label: value.data for value in mg.topological_order(shown[0])}
        assert [leaves[name] for name in rows] == ROWS[5].tolist()

    def test_the_page_has_the_title_that_is_given(self, tmp_path):
        quick(max_iter=1).fit(ROWS, KINDS).explore(ROWS[:1], tmp_path / "why.html", "Why not")
        assert "<title>Why not" in (tmp_path / "why.html").read_text(encoding="utf-8")

    def test_columns_are_shown_as_one_box_under_a_name(self, tmp_path, monkeypatch):
        shown = []
        monkeypatch.setattr("micrograd.estimators.explore", lambda *given: shown.append(given))
        estimator = quick(max_iter=1).fit(pd.DataFrame(ROWS, columns=list("abcd")), KINDS)
        row = pd.DataFrame(ROWS[:1], columns=list("abcd"))
        estimator.explore(row, tmp_path / "why.html", inputs={"image": [["a", "b"], ["c", "missing"]]})
        ((first, second), (third, missing)) = shown[0][3]["image"]
        assert [value.label for value in (first, second, third)] == ["a", "b", "c"]
        assert missing is None

    @pytest.mark.parametrize("target", ["three classes", "number"])
    def test_of_a_large_network_the_page_and_the_recording_show_what_weighs_most(self, tmp_path, monkeypatch, target):
        estimator = quick(target, record=True).fit(ROWS, TARGETS[target])
        shown, whole = [], estimator.record_
        monkeypatch.setattr("micrograd.estimators.explore", lambda *given: shown.append(given))
        monkeypatch.setattr(estimators, "MOST_SHOWN", 5)
        monkeypatch.setattr(estimators, "PART", 2)
        estimator.explore(ROWS[0], tmp_path / "why.html")
        root, _, title, _ = shown[0]
        answer = estimator.predict(ROWS[:1]) if target == "number" else estimator.predict_proba(ROWS[:1])
        assert root.data == pytest.approx(answer.max(), rel=1e-12)
        assert title == f"Why {root.label} (2 inputs that weigh less are not shown)"
        weights = np.abs(ROWS[0]) * np.abs(estimator.coefs_[0]).sum(axis=1)
        labels = {value.label for value in mg.topological_order(root)}
        assert {f"x{position}" for position in weights.argsort()[2:]} == {
            label for label in labels if label.startswith("x")
        }
        part = quick(target, record=True).fit(ROWS, TARGETS[target]).record_
        assert part.losses == whole.losses
        for record in (part, whole):
            record.last = record.frames()[-1]
            mg.engine.commit.commit(mg.engine.commit.setting(record.model.parameters(), "_data", record.last[1]))
            record.outputs = [output.data for output in np.atleast_1d(record.model(record.inputs[0]))]
        assert part.last[0] == whole.last[0]
        assert part.outputs == pytest.approx(whole.outputs, rel=1e-12)
        assert len(part.inputs[0]) == 2

    @pytest.mark.parametrize(
        ("target", "sides"), [("two classes", {-1.0, 1.0}), ("three classes", {0.0, 1.0, 2.0}), ("labels", None)]
    )
    def test_a_recording_of_the_training_is_kept_where_it_is_asked_for(self, target, sides):
        rows, targets = ROWS[:, :2], TARGETS[target]
        estimator = quick(target, record=True, verbose=None).fit(rows, targets)
        record, network = estimator.record_, estimator._model(range(2), rows[0])
        assert record.losses == pytest.approx([loss for loss in record.losses if loss > 0])
        assert np.reshape(record.losses, (3, 3)).mean(axis=1) == pytest.approx(estimator.loss_curve_)
        assert record.frames()[-1][1] == [parameter.data for parameter in network.parameters()]
        assert record.targets is None if sides is None else set(record.targets) == sides
        assert len(record.inputs) == 96
        if target != "labels":
            stages = list(estimator.staged_predict_proba(rows))
            assert len(stages) == len(record.frames())
            assert (stages[-1] == estimator.predict_proba(rows)).all()
            before = quick(target, learning_rate_init=1e-300).fit(rows, targets)
            assert (stages[0] == before.predict_proba(rows)).all()

    def test_stages_of_numbers_end_with_the_prediction_and_need_a_recording(self):
        estimator = quick("number", record=True).fit(ROWS, TARGETS["number"])
        *_, last = estimator.staged_predict(ROWS)
        assert (last == estimator.predict(ROWS)).all()
        with pytest.raises(ValueError, match="set record=True before fit"):
            next(quick("number").fit(ROWS, TARGETS["number"]).staged_predict(ROWS))


class TestRunning:
    def test_the_seed_draws_the_batches_and_without_shuffling_they_are_in_order(self, monkeypatch):
        orders, real = [], estimators.train
        monkeypatch.setattr(estimators, "train", lambda *given: orders.append(given[3].order()) or real(*given))
        for settings in ({"random_state": 0}, {"random_state": 0}, {"random_state": 1}, {"shuffle": False}):
            quick(max_iter=1, **settings).fit(ROWS, KINDS)
        assert orders[0] == orders[1] != orders[2]
        assert sorted(orders[0]) == sorted(orders[2]) == orders[3] == list(range(96))

    def test_a_bar_shows_the_progress(self, capsys):
        quick(verbose=True).fit(ROWS, KINDS)
        assert "9/9" in capsys.readouterr().err

    def test_ctrl_c_ends_the_training_and_keeps_what_was_learned(self, monkeypatch):
        step, done = training.BufferSteps.step, []

        def interrupted(self, batch, epoch, noise=None):
            if epoch == 1:
                raise KeyboardInterrupt
            done.append(epoch)
            return step(self, batch, epoch, noise)

        monkeypatch.setattr(training.BufferSteps, "step", interrupted)
        with pytest.warns(UserWarning, match="Training interrupted by user"):
            estimator = quick(max_iter=9).fit(ROWS, KINDS)
        monkeypatch.undo()
        assert done == [0, 0, 0]
        assert learned(estimator).tolist() == learned(quick(max_iter=1).fit(ROWS, KINDS)).tolist()

    def test_a_training_that_has_not_ended_by_itself_warns(self):
        with pytest.warns(ConvergenceWarning, match="max_iter=3 epochs"):
            quick(n_iter_no_change=10).fit(ROWS, KINDS)

    @pytest.mark.parametrize("scale", [1e155, 1e300])
    def test_a_training_that_diverges_names_the_epoch_and_the_next_one_is_well(self, scale):
        with pytest.raises(ArithmeticError, match=r"not finite in epoch 1: scale the columns"):
            quick("number", activation="identity").fit(scale * ROWS, TARGETS["number"])
        assert quick("number", activation="identity").fit(ROWS, TARGETS["number"]).loss_ < 2


def refused_settings(message, error=ValueError, **settings):
    """A case of settings that no targets can be learned with."""
    return lambda: quick(**settings).fit(ROWS, TARGETS["labels"]), error, message


class TestRefused:
    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            refused_settings("'solver' parameter of MLPClassifier must be", solver="lbfgs"),
            refused_settings("each of hidden_layer_sizes must be at least 1, not 0", hidden_layer_sizes=(3, 0)),
            refused_settings(r"must be an int, not float: 2\.7", TypeError, hidden_layer_sizes=(2.7,)),
            refused_settings("has 799,999,995 parameters, and 2,000,000 are the most", hidden_layer_sizes=99_999_999),
            refused_settings("larger validation_fraction", early_stopping=True, validation_fraction=0.001),
            (lambda: quick().fit(ROWS, np.zeros(96)), ValueError, "there is one class only, 0.0: there is nothing"),
            (lambda: quick().fit(ROWS, ["kind"] * 96), ValueError, "there is one class only, 'kind': there is nothing"),
            (lambda: quick().fit(ROWS, TARGETS["number"]), ValueError, "Unknown label type: continuous"),
            (lambda: quick().fit(ROWS, KINDS[:9]), ValueError, "inconsistent numbers of samples"),
            (lambda: quick().fit(ROWS, KINDS, np.zeros(96)), ValueError, "at least one non-zero|nothing but zeros"),
            (lambda: quick().fit(ROWS, KINDS, -np.ones(96)), ValueError, "Negative values in data passed to `sample_w"),
            (lambda: quick().fit(csr_array(ROWS), KINDS), TypeError, "Sparse data was passed for X, but dense data is"),
            (lambda: quick().fit(ROWS, KINDS).explore(ROWS[:2], "a.html"), ValueError, "is about one row, not 2"),
            (lambda: quick().partial_fit(ROWS, KINDS), ValueError, "classes must be passed on the first call"),
        ],
    )
    def test_a_wrong_call_is_answered_in_plain_words(self, call, error, message):
        with pytest.raises(error, match=message):
            call()

    @pytest.mark.parametrize("target", ["two classes", "number"])
    def test_parts_that_do_not_fit(self, target):
        with pytest.raises(ValueError, match="takes no early_stopping=True"):
            quick(target, early_stopping=True).partial_fit(ROWS, TARGETS[target])

    def test_parts_of_other_classes_or_targets(self):
        begun = quick().partial_fit(ROWS, KINDS, classes=["no", "yes"])
        with pytest.raises(ValueError, match="y has classes that the first call did not know"):
            begun.partial_fit(ROWS, np.repeat(["no", "maybe"], 48))
        with pytest.raises(ValueError, match="y has 2 columns, and had 1 at the first call"):
            quick("number").partial_fit(ROWS, TARGETS["number"]).partial_fit(ROWS, TARGETS["numbers"])

    @pytest.mark.parametrize(
        ("settings", "fit", "error"),
        [
            ({}, lambda model: model.fit(ROWS, np.zeros(96)), ValueError),
            ({}, lambda model: model.fit(ROWS[:, :2], TARGETS["three classes"], -np.ones(96)), ValueError),
            ({}, lambda model: model.fit(1e300 * ROWS, KINDS == "yes"), ArithmeticError),
            ({}, lambda model: model.partial_fit(ROWS[:, :3], KINDS), ValueError),
            ({"hidden_layer_sizes": (3, 0)}, lambda model: model.fit(ROWS, TARGETS["labels"]), ValueError),
            ({"early_stopping": True, "validation_fraction": 0.001}, lambda model: model.fit(ROWS, KINDS), ValueError),
        ],
    )
    def test_a_fit_that_fails_changes_nothing_that_was_learned(self, settings, fit, error):
        model = quick().fit(ROWS, KINDS).set_params(**settings)
        before, predictions = vars(model).copy(), model.predict(ROWS).tolist()
        with pytest.raises(error):
            fit(model)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is part for name, part in before.items())
        assert model.predict(ROWS).tolist() == predictions
