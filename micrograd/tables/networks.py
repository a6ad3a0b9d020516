"""What a file of a model must describe of a network: its settings, what it learned, and layers that fit together."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.tables.comparing import check, check_array, check_fields, check_names, texts
from micrograd.tables.schema import Described
from micrograd.tables.study import MOST_CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ESTIMATORS = {True: "micrograd.estimators.MLPClassifier", False: "micrograd.estimators.MLPRegressor"}
ACTIVATIONS = frozenset(
    ("elu", "gelu", "identity", "leaky_relu", "logistic", "relu", "sigmoid", "silu", "softplus", "tanh")
)


def _is_int(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**63


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_int(value)


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def _one_of(*values: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in values


def _or_none(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or test(value)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(map(_is_number, values))


SETTINGS: dict[str, Callable[[Any], bool]] = {
    "activation": _one_of(*ACTIVATIONS),
    "solver": _one_of("adam", "sgd"),
    "batch_size": lambda value: value == "auto" or _is_int(value),
    "learning_rate": _one_of("constant", "cosine"),
    "random_state": _or_none(_is_int),
    "verbose": _or_none(_is_flag),
    "max_iter": _is_int,
    **dict.fromkeys(("shuffle", "warm_start", "nesterovs_momentum", "early_stopping", "record"), _is_flag),
    **dict.fromkeys(("alpha", "learning_rate_init", "tol", "momentum", "validation_fraction"), _is_number),
    **dict.fromkeys(("beta_1", "beta_2", "epsilon", "n_iter_no_change"), _is_number),
}
LEARNED: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("t_", "_steps", "n_iter_"), _is_int),
    "loss_": _is_number,
    "loss_curve_": _are_numbers,
    "best_loss_": _or_none(_is_number),
    "best_validation_score_": _or_none(_is_number),
    "validation_scores_": _or_none(_are_numbers),
    "interrupted_": _is_flag,
    "_recorded": lambda value: value is None,
    "record_": lambda value: value is None,
}


def check_network(found: Any, inputs: int, of_classes: bool, where: str) -> None:
    """Check a network, given how many inputs it has."""
    check(
        isinstance(found, Described) and found.name == ESTIMATORS[of_classes], where, f"is no {ESTIMATORS[of_classes]}"
    )
    fields, tests = found.fields, SETTINGS | LEARNED
    shapes = {
        "hidden_layer_sizes",
        "n_features_in_",
        "n_outputs_",
        "n_layers_",
        "coefs_",
        "intercepts_",
        "_solver_state",
    }
    kinds = {"_several", "out_activation_", *(["classes_"] if of_classes else [])}
    check_names(fields, {*tests, *shapes, *kinds}, where)
    for name, holds in tests.items():
        check(holds(fields[name]), f"{name} of {where}", f"is {fields[name]!r:.80}")
    outputs, activation = 1, "identity"
    if of_classes:
        classes = texts(fields["classes_"], f"classes_ of {where}")
        is_right = 2 <= len(classes) <= MOST_CATEGORIES and classes == sorted(set(classes))
        check(is_right, f"classes_ of {where}", "are too few, too many or in disorder")
        outputs, activation = (len(classes), "softmax") if len(classes) > 2 else (1, "logistic")
    sizes = [inputs, *_hidden(fields["hidden_layer_sizes"], where), outputs]
    expected = {"n_features_in_": inputs, "n_outputs_": outputs, "n_layers_": len(sizes), "_several": False}
    check_fields(fields, expected | {"out_activation_": activation}, where)
    _check_layers(fields, sizes, where)


def _hidden(sizes: Any, where: str) -> list[int]:
    """The sizes of the hidden layers, of which there are as many as weights say."""
    listed = [sizes] if type(sizes) is int else sizes
    is_right = isinstance(listed, (list, tuple)) and all(_is_int(size) and size > 0 for size in listed)
    check(is_right, f"hidden_layer_sizes of {where}", f"is {sizes!r:.80}")
    return [*listed]


def _check_layers(fields: Mapping[str, Any], sizes: list[int], where: str) -> None:
    """Check the weights: the shapes of those of one layer fit those of the next."""
    pairs = [*itertools.pairwise(sizes)]
    shapes: dict[str, list[tuple[int, ...]]] = {"coefs_": [*pairs], "intercepts_": [(size,) for size in sizes[1:]]}
    for name, expected in shapes.items():
        arrays = fields[name]
        check(isinstance(arrays, list) and len(arrays) == len(expected), f"{name} of {where}", "has other layers")
        for array, shape in zip(arrays, expected, strict=True):
            check_array(array, "f", shape, f"{name} of {where}")
    count = sum((one + 1) * other for one, other in pairs)
    state = fields["_solver_state"]  # a row for each parameter
    columns = state.shape[1] if isinstance(state, np.ndarray) and state.ndim == 2 else 0
    check_array(state, "f", (count, columns), f"_solver_state of {where}")
