"""Pipelines saved so that loading them runs nothing, and takes no more memory than a model does."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import skops.io

from micrograd._support.archives import most_unpacked, read_at_most
from micrograd.tables.expected import TRUSTED, check_model
from micrograd.tables.schema import read_schema
from micrograd.tables.study import check_columns

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from micrograd._support.files import StrPath

FORMAT = "micrograd model 3"
# What skops trusts only if it is told
_TOLD = [
    "micrograd.estimators.MLPClassifier",
    "micrograd.estimators.MLPRegressor",
    "micrograd.tables.study.input_name",
    "numpy.dtype",
]


class Model(NamedTuple):
    """A fitted pipeline, and the name of the column that it predicts."""

    pipeline: Pipeline
    target: str

    @property
    def columns(self) -> dict[str, list[str]]:
        """The columns that it predicts from: the "numbers" and the "categories"."""
        names = self.pipeline.feature_names_in_.tolist()
        return {"numbers": [], "categories": []} | {
            kind: names[part] for kind, _, part in self.pipeline[0].transformers_
        }

    def inputs(self, table: pd.DataFrame) -> pd.DataFrame:
        """What it predicts from in a table, whose columns may stand in any order, with others among them.

        Args:
            table: as read_table gives it, with the categories as text.

        Raises:
            ValueError: if a column is missing, or a cell that is to be a number is none, naming its line.
        """
        check_columns(self.pipeline.feature_names_in_, table)
        given, numbers = table[self.pipeline.feature_names_in_], self.columns["numbers"]
        inputs, texts = given.copy(), given[numbers].select_dtypes(exclude=float).columns
        if len(texts):
            inputs[texts] = given[texts].apply(pd.to_numeric, errors="coerce").astype(float)
        wrong = (inputs[numbers].isna() & given[numbers].notna()) | np.isinf(inputs[numbers])
        for name in wrong.columns[wrong.any()]:
            line, cell = next(given[name][wrong[name]].items())
            raise ValueError(f"line {line}, column {name!r}: {cell!r} is no finite number")
        return inputs

    def guessed(self, inputs: pd.DataFrame) -> dict[str, int]:
        """For each column with cells that the rows learned from say nothing about, how many there are.

        These are cells that are missing where none was, and categories that were not there.
        """
        encoder, counts = self.pipeline[0].named_transformers_, inputs.isna().sum()
        if numbers := self.columns["numbers"]:
            counts[np.take(numbers, encoder["numbers"][0].indicator_.features_)] = 0
        if names := self.columns["categories"]:
            for name, known in zip(names, encoder["categories"][1].categories_, strict=True):
                counts[name] = (~inputs[name].fillna("").isin(known)).sum()
        return {name: int(count) for name, count in counts.items() if count}

    def dumped(self) -> bytes:
        """The file of the model."""
        data: bytes = skops.io.dumps({"format": FORMAT, **self._asdict()}, compression=zipfile.ZIP_DEFLATED)
        return data


def load(path: StrPath) -> Model:
    """Read a model that `micrograd train` saved. Nothing in the file is run, and nothing else than that is read.

    Raises:
        ValueError: if the file is damaged, of another kind, too large, or describes anything else than such a model,
            which is named.
        OSError: if it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            described, data = read_schema(read_at_most(file.read, most_unpacked()), TRUSTED)
            check_model(described, FORMAT)
            content = skops.io.loads(data, trusted=_TOLD)
            return Model(content["pipeline"], content["target"])
        except Exception as error:  # a damaged file may raise anything while it is read
            raise ValueError(f"{path} is no saved model, or damaged: {error}") from error
