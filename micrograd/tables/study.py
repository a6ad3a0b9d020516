"""A study: the rows to learn from, those to test on, and the pipeline that learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from micrograd.tables.columns import MOST_CATEGORIES, Columns, check_column, columns_of, encoder, refuse_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 5  # rows with a target
MOST_WHOLE_NUMBERS = 20  # a target with more of them is a quantity, not a class


class Study(NamedTuple):
    """What a pipeline learns from and is tested on.

    Attributes:
        training: the rows to learn from, the target among their columns: text for classes, else a number.
        test: those to test on.
        target: the name of the column to predict.
        task: "classification" or "regression".
        columns: those to predict from.
        without_target: how many rows are left out because their target is missing.
    """

    training: pd.DataFrame
    test: pd.DataFrame
    target: str
    task: str
    columns: Columns
    without_target: int

    @property
    def of_classes(self) -> bool:
        """Whether the target is a class."""
        return self.task == "classification"

    @property
    def rows(self) -> pd.DataFrame:
        """All of them, in the order of the file."""
        return pd.concat([self.training, self.test]).sort_index()

    def described(self) -> dict[str, dict[str, Any]]:
        """For each column to predict from its ``kind``, and how many of its cells are ``missing``."""
        missing, numbers = self.rows.isna().sum(), self.columns.numbers
        kinds = {name: "number" if name in numbers else "category" for name in self.columns.names}
        return {name: {"kind": kind, "missing": int(missing[name])} for name, kind in kinds.items()}

    def most_inputs(self) -> int:
        """How many inputs there are at most: two of a number, and one of each category and of its gaps."""
        return 2 * len(self.columns.numbers) + int((self.training[self.columns.categories].nunique() + 1).sum())

    def pipeline(self, estimator: Any) -> Pipeline:
        """An estimator behind what encodes the columns; numbers that it is to predict are standardised."""
        if not self.of_classes:
            estimator = TransformedTargetRegressor(estimator, transformer=StandardScaler())
        return Pipeline([("encoder", encoder(self.columns)), ("estimator", estimator)])

    def parts(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
        """The columns to predict from, and the target."""
        return rows[self.columns.names], rows[self.target]


def network_of(pipeline: Pipeline) -> Any:
    """The estimator itself of a fitted pipeline."""
    return getattr(pipeline[-1], "regressor_", pipeline[-1])


def prepare(
    table: pd.DataFrame,
    target: str,
    *,
    task: str | None = None,
    ignored: Sequence[str] = (),
    share: float = 0.2,
    seed: int = 1,
) -> Study:
    """Split the rows of a table, and find out what its columns are.

    Args:
        table: as read_table gives it, with the target as text.
        target: the name of the column to predict.
        task: "classification" or "regression"; None for what the target looks like.
        ignored: the names of columns that are not to be used.
        share: of the rows to test on, from above 0 to 0.5; of each class alike.
        seed: the same seed draws the same rows.

    Raises:
        ValueError: if the table has no such columns, or too little in them to learn from.

    Example:
        >>> frame = pd.DataFrame({"size": [float(x) for x in range(12)], "kind": ["small", "large"] * 6})
        >>> study = prepare(frame, "kind", share=1 / 3)
        >>> study.task, len(study.training), len(study.test)
        ('classification', 8, 4)
    """
    for name in (target, *ignored):
        check_column(name, table)
    if target in ignored:
        raise ValueError(f"{target!r} is the target, and cannot be ignored")
    if not 0 < share <= 0.5:
        raise ValueError(f"the share of rows to test on must be above 0 and at most 0.5, not {share}")
    present = table[table[target].notna()].copy()
    if len(present) < FEWEST:
        raise ValueError(f"{target!r} has a value in {len(present)} rows only: too few to learn from and to test on")
    refuse_numbers(present[target])
    task = task or likely_task(present[target])
    if task == "regression":
        present[target] = _numbers(present[target])
    if (different := present[target].nunique()) < 2:
        raise ValueError(f"there is nothing to learn: {target!r} is {present[target].iloc[0]!r} in every row")
    if task == "classification" and different > MOST_CATEGORIES:
        raise ValueError(f"{target!r} has {different} different values, and at most {MOST_CATEGORIES} can be classes")
    is_test = _drawn(present[target], share, seed, stratified=task == "classification")
    training, test = present[~is_test], present[is_test]
    columns = columns_of(present, training, [name for name in table if name not in {target, *ignored}])
    if not columns.names:
        reasons = "".join(f"\n  {name!r}: {reason}" for name, reason in columns.left_out.items())
        raise ValueError(f"no column is left to predict {target!r} from{reasons}")
    return Study(training, test, target, task, columns, len(table) - len(present))


def likely_task(cells: pd.Series) -> str:
    """Whether a target is a class, as text and up to 20 whole numbers are, or a quantity.

    Example:
        >>> [likely_task(pd.Series(cells)) for cells in (["0", "1"], ["0.5", "1.25"], ["yes", "no"])]
        ['classification', 'regression', 'classification']
    """
    numbers = pd.to_numeric(cells, errors="coerce")
    few = numbers.nunique() <= MOST_WHOLE_NUMBERS and (numbers % 1 == 0).all()
    return "classification" if few or numbers.isna().any() else "regression"


def _numbers(cells: pd.Series) -> pd.Series:
    """The target of a regression as numbers."""
    numbers = pd.to_numeric(cells, errors="coerce").astype(float)
    for line, cell in cells[numbers.isna()].items():
        raise ValueError(f"line {line}: {cell!r} in {cells.name!r} is no number, as the target of a regression is")
    refuse_numbers(numbers)
    return numbers


def _drawn(targets: pd.Series, share: float, seed: int, *, stratified: bool) -> Any:
    """Which rows to test on; the only row of a class is not among them."""
    kinds = targets if stratified else pd.Series("", targets.index)
    several = kinds[kinds.map(kinds.value_counts()) > 1]
    try:
        _, test = train_test_split(several.index, test_size=share, random_state=seed, stratify=several)
    except ValueError as error:
        raise ValueError(f"{share:g} of {len(several)} rows cannot be drawn to test on: {error}") from None
    return targets.index.isin(test)
