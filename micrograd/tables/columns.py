"""Columns: which are numbers or categories, which tell nothing, and what makes inputs of them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_CATEGORIES = 50
LARGEST = 1e100  # of a number, whose square is still one
_NUMBER = r"[+-]?\d*[,.]?\d+(?:[eE][+-]?\d+)?"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"


class Columns(NamedTuple):
    """The columns to predict from.

    Attributes:
        numbers: the names of those of numbers, sorted, so that their order in the file does not matter.
        categories: those of text.
        left_out: the columns that are not used, and why.
    """

    numbers: list[str]
    categories: list[str]
    left_out: dict[str, str]

    @property
    def names(self) -> list[str]:
        """Those that are used."""
        return [*self.numbers, *self.categories]


def columns_of(table: pd.DataFrame, training: pd.DataFrame, names: Iterable[str]) -> Columns:
    """Which columns are used, and how.

    Args:
        table: all rows, which say whether a column holds numbers or text.
        training: those to learn from, which alone say whether a column tells something.
        names: of the columns that may be used.

    Raises:
        ValueError: if a number is infinite or too large, or numbers have commas in them.

    Example:
        >>> frame = pd.DataFrame({"size": [1.0, 2.5], "kind": ["a", "a"]}, [2, 3])
        >>> columns_of(frame, frame, ["size", "kind"])
        Columns(numbers=['size'], categories=[], left_out={'kind': "it is 'a' in every row"})
    """
    blank = dict.fromkeys(set(table.attrs.get("unnamed", ())) & {*names}, "its header is blank, as over row numbers")
    found = Columns([], [], blank)
    for name in sorted({*names} - blank.keys()):
        refuse_numbers(table[name])
        is_number = pd.api.types.is_float_dtype(table[name])
        if reason := _tells_nothing(training[name], is_number):
            found.left_out[name] = reason
        else:
            (found.numbers if is_number else found.categories).append(name)
    return found


def _tells_nothing(cells: pd.Series, is_number: bool) -> str:
    """Why a column is left out; "" where it is used."""
    different, present = cells.nunique(), cells.dropna()
    if not different:
        return "it has no value in the rows to learn from"
    if different == 1 and len(present) == len(cells):
        return f"it is {cells.iloc[0]:g} in every row" if is_number else f"it is {cells.iloc[0]!r} in every row"
    if is_number or not (different > MOST_CATEGORIES or different == len(cells) > 2):
        return ""
    if present.str.fullmatch(_DATE).all():
        return (
            f"it has dates, as {present.iloc[0]!r}: give what matters of them, such as the month, a column of its own"
        )
    return f"it is text with {different} different values in {len(cells)} rows"


def refuse_numbers(cells: pd.Series) -> None:
    """Refuse a column with a number that is infinite or too large, and numbers such as 1,5, which would pass for text.

    Raises:
        ValueError: naming the line, or saying how to read them.
    """
    if pd.api.types.is_float_dtype(cells):
        for line, number in cells[cells.abs() > LARGEST].items():
            what = "not finite; leave the cell empty if it is missing" if np.isinf(number) else "too large"
            raise ValueError(f"line {line}: {number} in {cells.name!r} is {what}")
    elif len(with_commas := (texts := cells.dropna())[texts.str.contains(",")]) and texts.str.fullmatch(_NUMBER).all():
        first = with_commas.iloc[0]
        raise ValueError(
            f"{cells.name!r} has numbers with commas, as {first!r}: if that is a decimal mark, give --decimal ,"
        )


def encoder(columns: Columns) -> ColumnTransformer:
    """What makes inputs of the columns: numbers standardised, an input for each category, and one that tells of gaps.

    Example:
        >>> frame = pd.DataFrame({"size": [1.0, 3.0, None], "kind": ["a", "b", "a"]})
        >>> encoder(Columns(["size"], ["kind"], {})).fit_transform(frame).columns.tolist()
        ['size', 'missingindicator_size', 'kind = a', 'kind = b']
    """
    numbers = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, feature_name_combiner=input_name)
    categories = make_pipeline(SimpleImputer(strategy="constant", fill_value=""), one_hot)
    parts = [("numbers", numbers, columns.numbers), ("categories", categories, columns.categories)]
    used = [part for part in parts if part[2]]
    return ColumnTransformer(used, verbose_feature_names_out=False).set_output(transform="pandas")


def input_name(column: str, category: Any) -> str:
    """The name of the input for a category; "" stands for a cell that is missing."""
    return f"{column} = {category}" if category else f"{column} missing"


def guessed(fitted: ColumnTransformer, inputs: pd.DataFrame) -> dict[str, int]:
    """For each column with cells that the rows learned from say nothing about, how many there are.

    These are cells that are missing where none was, and categories that were not there.
    """
    odd: dict[str, Any] = {}
    for kind, steps, names in fitted.transformers_:
        if kind == "numbers":
            known = steps[0].indicator_.features_
            odd |= {name: inputs[name].isna() for place, name in enumerate(names) if place not in known}
        else:
            found = zip(names, steps[1].categories_, strict=True)
            odd |= {name: ~inputs[name].fillna("").isin(categories) for name, categories in found}
    return {name: int(cells.sum()) for name, cells in odd.items() if cells.any()}


def check_column(name: str, table: pd.DataFrame) -> None:
    """Refuse the name of a column that is not there.

    Raises:
        ValueError: saying which is meant.
    """
    if name not in table:
        near = difflib.get_close_matches(name, table, 1, 0.5)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, table)):.300}"
        raise ValueError(f"there is no column {name!r}; {meant}")
