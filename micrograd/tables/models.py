"""Pipelines saved so that loading them runs nothing, and takes no more memory than a model does."""

from __future__ import annotations

import copy
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import skops.io

from micrograd.tables.columns import check_column, guessed
from micrograd.tables.study import network_of

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from micrograd._support.files import StrPath

FORMAT = "micrograd model 2"
TRUSTED = [
    "micrograd.estimators.MLPClassifier",
    "micrograd.estimators.MLPRegressor",
    "micrograd.tables.columns.input_name",
    "numpy.dtype",  # of the cells that SimpleImputer saw
]
LARGEST = 256 * 1024 * 1024  # bytes of a model, unpacked


class Model(NamedTuple):
    """A fitted pipeline, and the name of the column that it predicts."""

    pipeline: Pipeline
    target: str

    def predict(self, table: pd.DataFrame) -> tuple[list[Any], pd.DataFrame | None]:
        """What it says of each row of a table, whose columns may stand in any order, with others among them.

        Returns:
            The likeliest class or the number of each row; and for classes the probability of each, else None.

        Raises:
            ValueError: if a column is missing, or a cell that is to be a number is none, naming its line.
        """
        inputs = self._inputs(table)
        predicted = self.pipeline.predict(inputs).tolist()
        if not hasattr(self.pipeline, "classes_"):
            return predicted, None
        return predicted, pd.DataFrame(self.pipeline.predict_proba(inputs), columns=self.pipeline.classes_)

    def guessed(self, table: pd.DataFrame) -> dict[str, int]:
        """For each column with cells that the rows learned from say nothing about, how many there are."""
        return guessed(self.pipeline[0], self._inputs(table))

    def _inputs(self, table: pd.DataFrame) -> pd.DataFrame:
        kinds = {name: kind for kind, _, names in self.pipeline[0].transformers_ for name in names}
        inputs = {}
        for name in self.pipeline.feature_names_in_:
            check_column(name, table)
            if kinds[name] == "categories":  # those that happen to be numbers here, or all missing, too
                inputs[name] = (
                    table[name]
                    .astype(object)
                    .map(lambda cell: f"{cell:g}" if isinstance(cell, float) else cell, na_action="ignore")
                )
                continue
            inputs[name] = numbers = pd.to_numeric(table[name], errors="coerce").astype(float)
            for line, cell in table[name][(numbers.isna() & table[name].notna()) | np.isinf(numbers)].items():
                raise ValueError(f"line {line}, column {name!r}: {cell!r} is no finite number")
        return pd.DataFrame(inputs)

    def dumped(self) -> bytes:
        """The file of the model; the film of its training is not in it."""
        pipeline = copy.deepcopy(self.pipeline)
        network_of(pipeline).record_ = None
        data: bytes = skops.io.dumps({"format": FORMAT, "target": self.target, "pipeline": pipeline})
        return data


def load(path: StrPath) -> Model:
    """Read a model that `micrograd train` saved. Nothing in the file is run.

    Raises:
        ValueError: if the file is damaged, of another kind, too large, or holds types that are not trusted, which are
            named.
        OSError: if it cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        _check_size(data)
        if odd := sorted({*skops.io.get_untrusted_types(data=data)}.difference(TRUSTED)):
            raise ValueError(f"it holds types that are not trusted: {', '.join(odd)}")
        content = skops.io.loads(data, trusted=TRUSTED)
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
        return Model(content["pipeline"], content["target"])
    except Exception as error:  # a damaged file may raise anything while it is read
        raise ValueError(f"{path} is no saved model, or damaged: {error}") from error


def _check_size(data: bytes) -> None:
    """Refuse a file that unpacks to more than a model does, or whose arrays claim more than there is."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
        if (total := sum(part.file_size for part in parts)) > LARGEST:
            raise ValueError(f"it unpacks to {total:,} bytes, and {LARGEST:,} are the most")
        for part in parts:
            if part.filename.endswith(".npy"):
                with archive.open(part) as file:
                    np.lib.format.read_magic(file)
                    shape, _, kind = np.lib.format.read_array_header_1_0(file)
                if int(np.prod(shape, dtype=object)) * kind.itemsize > part.file_size:
                    raise ValueError(f"an array of shape {shape} is more than there is in {part.filename}")
