"""What a file of a model must describe: the pipeline of a study, fitted, with one of our estimators at its end.

Each step has its class, the settings that `pipeline_of` gives it, and the fields that fit adds: their types, and arrays
of the shapes that follow from the columns, the categories and the layers. What differs is refused by its name, before
anything is made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from micrograd.tables.comparing import check, check_array, check_fields, check_same, fitted_fields, name_of, texts
from micrograd.tables.networks import ESTIMATORS, SETTINGS, check_network
from micrograd.tables.schema import Described
from micrograd.tables.study import MOST_CATEGORIES, MOST_COLUMNS, input_name, pipeline_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_STEPS = (ColumnTransformer, TransformedTargetRegressor, Pipeline, SimpleImputer, OneHotEncoder, StandardScaler)


# scikit-learn fits them to an imputer: the last one from 1.8 on
_DTYPES = tuple(name for name in ("_fit_dtype", "_fill_dtype") if hasattr(SimpleImputer().fit([[0.0]]), name))
TRUSTED = frozenset(
    (*map(name_of, (*_STEPS, MissingIndicator, input_name)), *ESTIMATORS.values(), "builtins.str", "numpy.float64")
)


def check_model(content: Any, kind: str) -> None:
    """Refuse what a file describes, unless it is a model that `micrograd train` could have written.

    Args:
        content: as read_schema gives it.
        kind: the format that the file must say that it has.

    Raises:
        ValueError: naming what is wrong.
    """
    if not isinstance(content, dict) or content.get("format") != kind:
        said = content.get("format") if isinstance(content, dict) else None
        raise ValueError(f"its format is {said!r:.80}, not {kind!r}")
    if content.keys() != {"format", "pipeline", "target"} or not isinstance(content["target"], str):
        raise ValueError("it has no pipeline and the name of a target alone")
    pipeline = content["pipeline"]
    encoder, estimator = _steps(pipeline, "the pipeline", "encoder", "estimator")
    check(isinstance(estimator, Described), "the pipeline", "has no estimator")
    of_classes = estimator.name == ESTIMATORS[True]
    numbers, columns = _counts(encoder)
    template = pipeline_of(None, numbers, columns, of_classes=of_classes)
    fitted_fields(pipeline, template, "the pipeline", "steps")
    width = _check_encoder(encoder, template[0])
    if of_classes:
        check_network(estimator, width, True, "the estimator")
    else:
        _check_regressor(estimator, template[1], width)


def _steps(found: Any, where: str, *names: str) -> list[Any]:
    """The steps of a pipeline, which must have these names."""
    check(isinstance(found, Described) and found.name == name_of(Pipeline), where, "is no Pipeline")
    steps = found.fields.get("steps")
    pairs = steps if isinstance(steps, list) else []
    is_right = len(pairs) == len(names) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
    check(is_right and [pair[0] for pair in pairs] == [*names], where, f"has other steps than {' and '.join(names)}")
    return [pair[1] for pair in pairs]


def _counts(encoder: Any) -> tuple[int, int]:
    """How many of the columns are numbers, and how many columns there are, as an encoder says."""
    fields = encoder.fields if isinstance(encoder, Described) else {}
    columns = texts(fields.get("feature_names_in_"), "feature_names_in_ of the encoder")
    check(0 < len(set(columns)) == len(columns) <= MOST_COLUMNS, "the encoder", "has no, too many or equal columns")
    parts = fields.get("transformers")
    first: Any = parts[0] if isinstance(parts, list) and parts else None
    is_part = isinstance(first, tuple) and len(first) == 3 and isinstance(first[2], slice)
    check(is_part, "the encoder", "has transformers of another kind")
    numbers = first[2].stop if first[0] == "numbers" else 0
    check(0 <= numbers <= len(columns), "the encoder", "has columns of numbers that are not there")
    return numbers, len(columns)


def _check_encoder(found: Any, template: Any) -> int:
    """Check the step that encodes columns; how many inputs it makes of them."""
    names = [name for name, _, _ in template.transformers]
    where, fitted = "the encoder", ("feature_names_in_", "n_features_in_", "transformers_", "output_indices_")
    private = ("_columns", "_transformer_to_input_indices", "_remainder", "sparse_output_")
    fields = fitted_fields(found, template, where, *fitted, *private)
    columns = fields["feature_names_in_"].tolist()
    slices = [part for _, _, part in template.transformers]
    positions = {name: [*range(part.start, part.stop)] for name, part in zip(names, slices, strict=True)}
    known = {"n_features_in_": len(columns), "_columns": slices, "_remainder": ("remainder", "drop", [])}
    known |= {"sparse_output_": False, "_transformer_to_input_indices": positions | {"remainder": []}}
    check_fields(fields, known, where)

    parts = fields["transformers_"]
    is_right = isinstance(parts, list) and all(isinstance(part, tuple) and len(part) == 3 for part in parts)
    check(is_right, f"transformers_ of {where}", "is no list of triples")
    check_same(
        [(name, position) for name, _, position in parts],
        [*zip(names, slices, strict=True)],
        f"transformers_ of {where}",
    )
    widths, ends = [], {}
    for (name, part, position), (_, expected, _) in zip(parts, template.transformers, strict=True):
        checked = _check_numbers if name == "numbers" else _check_categories
        widths.append(checked(part, expected, columns[position]))
        ends[name] = slice(sum(widths[:-1]), sum(widths))
    check_same(fields["output_indices_"], ends | {"remainder": slice(0, 0)}, f"output_indices_ of {where}")
    return sum(widths)


def _check_numbers(found: Any, template: Any, columns: list[str]) -> int:
    """Check the steps that encode numbers: an input for each column, and one for each with gaps."""
    where, count = "the imputer of numbers", len(columns)
    imputer, scaler = _steps(found, "the pipeline of numbers", *(name for name, _ in template.steps))
    fitted_fields(found, template, "the pipeline of numbers", "steps")
    fields = _imputed(imputer, template[0], where, columns, "float64")
    check_array(fields["statistics_"], "f", (count,), f"statistics_ of {where}")
    where = "the indicator of gaps"
    precomputed = ("_precomputed", "n_features_in_", "_n_features", "features_")
    indicator = MissingIndicator(error_on_new=False)
    fields = fitted_fields(fields["indicator_"], indicator, where, *precomputed)
    check_fields(fields, dict(zip(precomputed, (True, count, count), strict=False)), where)
    gaps = fields["features_"]
    check(isinstance(gaps, np.ndarray) and gaps.ndim == 1, f"features_ of {where}", "is no vector")
    check_array(gaps, "i", (len(gaps),), f"features_ of {where}")
    is_sorted = bool((np.diff(gaps, prepend=-1, append=count) > 0).all())
    check(is_sorted, f"features_ of {where}", "names columns that are not there")
    _check_scaler(scaler, template[1], count + len(gaps), "the scaler of numbers")
    return count + len(gaps)


def _check_categories(found: Any, template: Any, columns: list[str]) -> int:
    """Check the steps that encode categories: an input for each."""
    where, count = "the imputer of categories", len(columns)
    imputer, encoder = _steps(found, "the pipeline of categories", *(name for name, _ in template.steps))
    fitted_fields(found, template, "the pipeline of categories", "steps")
    fields = _imputed(imputer, template[0], where, columns, "object")
    check_same(fields["indicator_"], None, f"indicator_ of {where}")
    check_same(texts(fields["statistics_"], f"statistics_ of {where}"), [""] * count, f"statistics_ of {where}")
    where = "the encoder of categories"
    nothing = {"_infrequent_enabled": False, "_drop_idx_after_grouping": None, "drop_idx_": None}
    fields = fitted_fields(encoder, template[1], where, *nothing, "n_features_in_", "categories_", "_n_features_outs")
    found_categories = fields["categories_"]
    check(isinstance(found_categories, list), f"categories_ of {where}", "is no list")
    categories = [texts(each, f"categories_ of {where}") for each in found_categories]
    for each in categories:
        check(0 < len(each) <= MOST_CATEGORIES + 1, f"categories_ of {where}", "are none or too many")
        check(each == sorted(set(each)), f"categories_ of {where}", "are in disorder")
    widths = list(map(len, categories))
    check_fields(fields, nothing | {"n_features_in_": count, "_n_features_outs": widths}, where)
    check(len(categories) == count, f"categories_ of {where}", "are those of other columns")
    return sum(widths)


def _imputed(found: Any, template: Any, where: str, columns: list[str], kind: str) -> Mapping[str, Any]:
    """The fields of what fills gaps."""
    fields = fitted_fields(
        found, template, where, *_DTYPES, "feature_names_in_", "n_features_in_", "indicator_", "statistics_"
    )
    names = texts(fields["feature_names_in_"], f"feature_names_in_ of {where}")
    check_same(names, columns, f"feature_names_in_ of {where}")
    check_same(fields["n_features_in_"], len(columns), f"n_features_in_ of {where}")
    for name in _DTYPES:
        check(fields[name] == Described(kind, {}, "DTypeNode"), f"{name} of {where}", f"is not {kind}")
    return fields


def _check_scaler(found: Any, template: Any, count: int, where: str) -> None:
    fields = fitted_fields(found, template, where, "n_features_in_", "n_samples_seen_", "mean_", "var_", "scale_")
    check_same(fields["n_features_in_"], count, f"n_features_in_ of {where}")
    for name in ("mean_", "var_", "scale_"):
        check_array(fields[name], "f", (count,), f"{name} of {where}")
    seen = fields["n_samples_seen_"]
    check_array(seen, getattr(getattr(seen, "dtype", None), "kind", "f"), (), f"n_samples_seen_ of {where}")


def _check_regressor(found: Any, template: Any, inputs: int) -> None:
    """Check the estimator of numbers, which are standardised."""
    where = "the estimator"
    fields = fitted_fields(found, template, where, "regressor", "regressor_", "transformer_", "_training_dim")
    check_same(fields["_training_dim"], 1, f"_training_dim of {where}")
    _check_scaler(fields["transformer_"], StandardScaler(), 1, "the scaler of the target")
    check_network(fields["regressor_"], inputs, False, "the network")
    regressor = fields["regressor"]
    is_one = isinstance(regressor, Described) and regressor.name == ESTIMATORS[False]
    check(is_one, f"regressor of {where}", f"is no {ESTIMATORS[False]}")
    learned = {name: fields["regressor_"].fields[name] for name in ("hidden_layer_sizes", *SETTINGS)}
    check(regressor.fields == learned, f"regressor of {where}", "has other settings than the network")
