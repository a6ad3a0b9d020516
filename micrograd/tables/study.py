"""A study: the columns that tell something, the rows to learn from and to test on, and the pipeline that learns."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from micrograd.tables.reading import CURRENCIES, plain_numbers

if TYPE_CHECKING:
    from collections.abc import Collection

FEWEST = 5  # rows with a target
IDS = frozenset(
    ("guid", "id", "ids", "idx", "index", "key", "nr", "row", "uid", "uuid")
)  # what the name of an id may end with
LARGEST = 1e100  # of a number, whose square is still one
MOST_CATEGORIES = 50
MOST_COLUMNS = 100_000  # whose names a saved model may hold, and still be loaded
SIMILAR = 0.8  # how much of a name another must have, to be suggested
MOST_WHOLE_NUMBERS = 20  # a target with more of them is a quantity, not a class
_NUMBER = rf"(?=.*\d)[+-]?[{CURRENCIES}]?\s?\d*(?:[,.]\d+)*(?:[eE][+-]?\d+)?\s?[{CURRENCIES}%]?"
_ID = "it looks like an id: each row has another whole number"
_DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*"


class Study(NamedTuple):
    """What a pipeline learns from and is tested on.

    Attributes:
        training: the rows to learn from, the target among their columns: text for classes, else a number.
        test: those to test on.
        target: the name of the column to predict.
        of_classes: whether it is a class; else it is a number.
        columns: those to predict from, numbers first and each kind sorted: their order in the file does not matter.
        left_out: the columns that are not used, and why.
        as_numbers: the columns of the file whose numbers were written with a sign or marks between thousands, with an
            example.
        without_target: how many rows are left out because their target is missing.
    """

    training: pd.DataFrame
    test: pd.DataFrame
    target: str
    of_classes: bool
    columns: list[str]
    left_out: dict[str, str]
    as_numbers: dict[str, str]
    without_target: int

    @property
    def rows(self) -> pd.DataFrame:
        """All of them, in the order of the file."""
        return pd.concat([self.training, self.test]).sort_index()

    def parts(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
        """The columns to predict from, and the target."""
        return rows[self.columns], rows[self.target]

    def described(self) -> pd.DataFrame:
        """For each column to predict from its "kind", and how many of its cells are "missing"."""
        cells, _ = self.parts(self.rows)
        kinds = ["number" if pd.api.types.is_float_dtype(kind) else "category" for kind in cells.dtypes]
        return pd.DataFrame({"kind": kinds, "missing": cells.isna().sum()})

    def pipeline(self, estimator: Any) -> Pipeline:
        """An estimator behind what encodes the columns; numbers that it is to predict are standardised.

        Numbers are standardised too, each category becomes an input, and an input tells of the gaps in a column.
        """
        count = len(self.training[self.columns].select_dtypes(float).columns)
        return pipeline_of(estimator, count, len(self.columns), of_classes=self.of_classes)


def pipeline_of(estimator: Any, numbers: int, columns: int, *, of_classes: bool) -> Pipeline:
    """The pipeline of a study, given how many of its columns are numbers; these come first."""
    encoded = make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, feature_name_combiner=input_name)
    categories = make_pipeline(SimpleImputer(strategy="constant", fill_value=""), one_hot)
    parts = [("numbers", encoded, slice(0, numbers)), ("categories", categories, slice(numbers, columns))]
    given = [part for part in parts if part[2].start < part[2].stop]
    encoder = ColumnTransformer(given, verbose_feature_names_out="{feature_name}")
    if not of_classes:
        estimator = TransformedTargetRegressor(estimator, transformer=StandardScaler())
    return Pipeline([("encoder", encoder), ("estimator", estimator)])


def input_name(column: str, category: Any) -> str:
    """The name of the input for a category; "" stands for a cell that is missing."""
    return f"{column} = {category}" if category else f"{column} missing"


def network_of(pipeline: Pipeline) -> Any:
    """The estimator itself of a fitted pipeline."""
    return getattr(pipeline[-1], "regressor_", pipeline[-1])


def prepare(
    table: pd.DataFrame,
    target: str,
    *,
    task: str | None = None,
    ignored: Collection[str] = (),
    kept: Collection[str] = (),
    share: float = 0.2,
    seed: int = 1,
) -> Study:
    """Split the rows of a table, and find out what its columns are.

    Args:
        table: as read_table gives it, with the target as text.
        target: the name of the column to predict.
        task: "classification" or "regression"; None for what the target looks like.
        ignored: the names of columns that are not to be used.
        kept: the names of columns that are to be used, though they look like ids.
        share: of the rows to test on, from above 0 to 0.5; of each class alike.
        seed: the same seed draws the same rows.

    Raises:
        ValueError: if the table has no such columns, or too little in them to learn from.

    Example:
        >>> frame = pd.DataFrame({"size": [float(x) for x in range(12)], "kind": ["small", "large"] * 6})
        >>> study = prepare(frame, "kind", share=1 / 3)
        >>> study.of_classes, len(study.training), len(study.test)
        (True, 8, 4)
    """
    check_columns([target, *ignored, *kept], table)
    if target in ignored:
        raise ValueError(f"{target!r} is the target, and cannot be ignored")
    if not 0 < share <= 0.5:
        raise ValueError(f"the fraction of rows to test on must be above 0 and at most 0.5, not {share}")
    present = table[table[target].notna()]
    if len(present) < FEWEST:
        raise ValueError(f"{target!r} has a value in {len(present)} rows only: too few to learn from and to test on")
    unnamed = {*table.attrs.get("unnamed", ())} - {target, *ignored}
    columns = sorted({*table} - {target, *ignored} - unnamed, key=lambda name: (table[name].dtype != float, name))
    if len(columns) > MOST_COLUMNS:
        raise ValueError(f"there are {len(columns):,} columns to predict from, and {MOST_COLUMNS:,} are the most")
    as_numbers, cells = table.attrs.get("as numbers", {}), present[target]
    if target in as_numbers:
        cells = plain_numbers(cells, table.attrs["decimal"])
    _refuse_odd_numbers(present[columns].assign(**{target: cells}))
    quantities = pd.to_numeric(cells, errors="coerce").astype(float)
    if task is None:  # text, and up to 20 whole numbers, are classes
        few = quantities.nunique() <= MOST_WHOLE_NUMBERS and (quantities % 1 == 0).all()
        task = "classification" if few or quantities.isna().any() else "regression"
    of_classes = task == "classification"
    if not of_classes:
        for line, cell in present[target][quantities.isna()].items():
            raise ValueError(f"line {line}: {cell!r} in {target!r} is no number, as the target of a regression is")
        present = present.assign(**{target: quantities})
        _refuse_odd_numbers(present[[target]])
    if (different := present[target].nunique()) < 2:
        raise ValueError(f"there is nothing to learn: {target!r} is {present[target].iloc[0]!r} in every row")
    if of_classes and different > MOST_CATEGORIES:
        raise ValueError(f"{target!r} has {different} different values, and at most {MOST_CATEGORIES} can be classes")
    is_test = _drawn(present[target] if of_classes else pd.Series("", present.index), share, seed)
    training = present[~is_test]
    left_out = dict.fromkeys(sorted(unnamed), "its header is blank, as over row numbers")
    if of_classes:
        as_numbers = {name: example for name, example in as_numbers.items() if name != target}
    left_out |= {name: f"{_ID} (--keep uses it)" for name in columns if name not in kept and _is_id(present[name])}
    left_out |= _tell_nothing(training[[name for name in columns if name not in left_out]])
    columns = [name for name in columns if name not in left_out]
    if not columns:
        reasons = "".join(f"\n  {name!r}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"no column is left to predict {target!r} from{reasons}")
    without_target = len(table) - len(present)
    return Study(training, present[is_test], target, of_classes, columns, left_out, as_numbers, without_target)


def check_columns(names: Collection[str], table: pd.DataFrame) -> None:
    """Refuse the name of a column that is not there.

    Raises:
        ValueError: saying which is meant.
    """
    for name in names:
        if name not in table:
            others = {other.casefold(): other for other in table if other not in names}
            near = difflib.get_close_matches(name.casefold(), others, 1, SIMILAR)
            meant = f"did you mean {others[near[0]]!r}?" if near else f"there are {', '.join(map(repr, table)):.300}"
            raise ValueError(f"there is no column {name!r}; {meant}")


def tells_rows_apart(cells: pd.Series) -> bool:
    """Whether each row has a cell, a text or a whole number, that no other row has."""
    numbers = pd.to_numeric(cells, errors="coerce")
    is_measured = bool(numbers.notna().all() and (numbers % 1 != 0).any())
    return cells.is_unique and bool(cells.notna().all()) and not is_measured


def _is_id(cells: pd.Series) -> bool:
    """Whether whole numbers tell rows apart, and their name says that it is what they are for."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", str(cells.name))
    is_named = bool(words) and words[-1].lower() in IDS
    return cells.dtype == float and (is_named or cells.name == "Unnamed: 0") and tells_rows_apart(cells)


def _refuse_odd_numbers(table: pd.DataFrame) -> None:
    """Refuse numbers that are infinite or too large, and such as 1,5, which would pass for text."""
    large = table.select_dtypes(float).abs() > LARGEST
    for name in large.columns[large.any()]:
        line = large[name].idxmax()
        what = "not finite; leave the cell empty if it is missing" if np.isinf(table.at[line, name]) else "too large"
        raise ValueError(f"line {line}: {table.at[line, name]} in {name!r} is {what}")
    for name, cells in table.select_dtypes(exclude=float).items():
        texts = cells.dropna()
        if len(with_commas := texts[texts.str.contains(",")]) and texts.str.fullmatch(_NUMBER).all():
            example = with_commas.iloc[0]
            raise ValueError(
                f"{name!r} has numbers with commas, as {example!r}: if that is a decimal mark, give --decimal , and "
                "if it parts thousands, --decimal ."
            )


def _tell_nothing(training: pd.DataFrame) -> dict[str, str]:
    """The columns that tell nothing in the rows to learn from, and why."""
    found, numbers = {}, training.select_dtypes(float)
    constant = numbers.columns[(numbers == numbers.iloc[0]).all() | numbers.isna().all()]
    for name in [*constant, *training.columns.difference(numbers.columns)]:
        cells = training[name].dropna()
        different = cells.unique().tolist()
        if not different:
            found[name] = "it has no value in the rows to learn from"
        elif len(different) == 1 and len(cells) == len(training):
            found[name] = f"it is {different[0]!r} in every row"
        elif len(different) > MOST_CATEGORIES or len(different) == len(training) > 2:
            found[name] = f"it is text with {len(different)} different values in {len(training)} rows"
            if cells.str.fullmatch(_DATE).all():
                advice = "give what matters of them, such as the month, a column of its own"
                found[name] = f"it has dates, as {different[0]!r}: {advice}"
    return found


def _drawn(kinds: pd.Series, share: float, seed: int) -> Any:
    """Which rows to test on, of each kind alike; the only row of a kind is not among them."""
    several = kinds[kinds.duplicated(keep=False)]
    try:
        _, test = train_test_split(several.index, test_size=share, random_state=seed, stratify=several)
    except ValueError as error:
        raise ValueError(f"{share:g} of {len(several)} rows cannot be drawn to test on: {error}") from None
    return kinds.index.isin(test)
