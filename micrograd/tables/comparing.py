"""Comparing what a file of a model describes with what it must be; whatever differs is an error that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from micrograd.tables.schema import Described

if TYPE_CHECKING:
    from collections.abc import Mapping

# Fields that other versions of scikit-learn write, and that change nothing
FORMER = {"force_int_remainder_cols"}


def check(holds: bool, where: str, what: str) -> None:
    """Refuse what does not hold.

    Raises:
        ValueError: saying where what is wrong.
    """
    if not holds:
        raise ValueError(f"{where} {what}: `micrograd train` writes no such model")


def name_of(thing: Any) -> str:
    """The name of a class or a function, with its module."""
    return f"{thing.__module__}.{thing.__qualname__}"


def fitted_fields(found: Any, template: Any, where: str, *fitted: str) -> Mapping[str, Any]:
    """The fields of a step, which has the class and the settings of a template, and those that fit adds."""
    name = name_of(type(template))
    check(isinstance(found, Described) and found.loader == "ObjectNode", where, f"is no {name}")
    check(found.name == name, where, f"is a {found.name} and no {name}")
    fields, settings = found.fields, template.get_params(deep=False)
    version = fields.get("_sklearn_version", "an unknown version")
    check_names(fields, {*settings, *fitted, "_sklearn_version"}, f"{where}, of scikit-learn {version!s:.20},")
    check_fields(fields, {name: value for name, value in settings.items() if name not in fitted}, where)
    return fields


def check_names(fields: Mapping[str, Any], names: set[str], where: str) -> None:
    """An object must have fields of these names, and no others."""
    for name in fields:
        check(name in names or name in FORMER, where, f"has a field {name!r:.80}")
    for name in sorted(names):
        check(name in fields, where, f"has no field {name!r}")


def check_fields(fields: Mapping[str, Any], values: Mapping[str, Any], where: str) -> None:
    """What has these names must be the same."""
    for name, value in values.items():
        check_same(fields[name], value, f"{name} of {where}")


def check_same(found: Any, value: Any, where: str) -> None:
    """A setting must be what the pipeline of a study has, down to the settings of its steps."""
    if isinstance(value, BaseEstimator):
        fitted_fields(found, value, where)
    elif isinstance(value, (list, tuple)):
        check(type(found) is type(value) and len(found) == len(value), where, "is another one")
        for number, (one, other) in enumerate(zip(found, value, strict=True)):
            check_same(one, other, f"{where}, number {number},")
    elif isinstance(value, dict):
        check(type(found) is dict and found.keys() == value.keys(), where, "is another one")
        check_fields(found, value, where)
    elif callable(value):
        check(isinstance(found, Described) and found.name == name_of(value), where, f"is not {name_of(value)}")
    else:
        is_same = type(found) is type(value) and (found == value or (value != value and found != found))
        check(is_same, where, f"is {found!r:.80}, and not {value!r}")


def texts(found: Any, where: str) -> list[str]:
    """The texts of an array of objects."""
    is_right = isinstance(found, np.ndarray) and found.dtype == object and found.ndim == 1
    check(is_right and all(isinstance(text, str) for text in found.tolist()), where, "is no array of texts")
    found_texts: list[str] = found.tolist()
    return found_texts


def check_array(found: Any, kind: str, shape: tuple[int, ...], where: str) -> None:
    """An array must be of a kind of number, "f" or "i", of 64 bits each, and of a shape."""
    is_right = isinstance(found, np.ndarray) and found.dtype.kind == kind and found.dtype.itemsize == 8
    check(is_right, where, "is no array of floats or whole numbers, of 64 bits each")
    check(found.shape == shape, where, f"has the shape {found.shape!r:.80}, and not {shape!r:.80}")
