"""Pipelines saved so that loading them runs nothing, and takes no more memory than a model does."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from micrograd._support.archives import most_unpacked, read_at_most
from micrograd.tables.schema import read_schema
from micrograd.tables.study import check_columns, input_name, pipeline_of

if TYPE_CHECKING:
    from micrograd._support.files import StrPath

FORMAT = "micrograd model 3"
# What skops trusts only if it is told
_TOLD = [
    "micrograd.estimators.MLPClassifier",
    "micrograd.estimators.MLPRegressor",
    "micrograd.tables.study.input_name",
    "numpy.dtype",
]
_PARTS = (ColumnTransformer, TransformedTargetRegressor, Pipeline, SimpleImputer, MissingIndicator, OneHotEncoder,
          StandardScaler, input_name)  # fmt: skip
# The classes and functions that may be in a file
TRUSTED = frozenset(
    (*(f"{part.__module__}.{part.__qualname__}" for part in _PARTS), *_TOLD[:2], "builtins.str", "numpy.float64")
)
_LONGEST = 1_000_000  # characters of the settings of a pipeline


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
            if not isinstance(described, dict) or described.get("format") != FORMAT:
                said = described.get("format") if isinstance(described, dict) else None
                raise ValueError(f"its format is {said!r:.80}, not {FORMAT!r}")
            content = skops.io.loads(data, trusted=_TOLD)
            model = Model(content["pipeline"], content["target"])
            _check(model)
            return model
        except Exception as error:  # a damaged file may raise anything while it is read
            raise ValueError(f"{path} is no saved model, or damaged: {error}") from error


def _check(model: Model) -> None:
    """Refuse a model whose settings are not those of a study, or that cannot predict.

    Raises:
        ValueError: saying what is wrong.
    """
    names = model.pipeline.feature_names_in_.tolist()
    if not all(isinstance(name, str) for name in (model.target, *names)):
        raise ValueError("it has no names of columns")
    template = pipeline_of(
        None, len(model.columns["numbers"]), len(names), of_classes=hasattr(model.pipeline[-1], "classes_")
    )
    encoder, expected = model.pipeline[0], template[0]
    parts, wanted = (
        [(name, _shown(part), place) for name, part, place in each]
        for each in (encoder.transformers_, expected.transformers)
    )
    if [_shown(encoder), *parts] != [_shown(expected), *wanted]:
        raise ValueError("it encodes columns in another way than `micrograd train`")
    numbers = {*model.columns["numbers"]}
    for count in (1, 2):  # an array of the wrong shape may fit by chance to one number of rows
        cells = {name: ([0.0] if name in numbers else [""]) * count + [None] for name in names}
        inputs = model.inputs(pd.DataFrame(cells))
        model.guessed(inputs)
        if np.shape(model.pipeline.predict(inputs)) != (count + 1,):
            raise ValueError("it does not predict a cell for each row")


def _shown(estimator: Any) -> str:
    """The settings of an estimator, and of those in it."""
    return str(estimator.__repr__(N_CHAR_MAX=_LONGEST))
