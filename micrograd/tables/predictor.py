"""A network that predicts a column of a table from the others: trained, saved, loaded, used.

study = prepare(read_table("penguins.csv"), "species")
history = train(study)
study.predictor.save("model.json")
load("model.json").predict(read_table("more.csv"))
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd._support.files import checksum, write_atomically
from micrograd.nn import MLP
from micrograd.optim import AdamW, cosine
from micrograd.tables.encoding import from_json, inputs_of, likely_task, refuse_commas, target_of, to_json
from micrograd.training.fit import fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd._support.files import StrPath
    from micrograd.tables.encoding import Category, Classes, Number, Quantity
    from micrograd.tables.table import Table
    from micrograd.training.fit import History

FORMAT = "micrograd predictor 1"
FEWEST = 5  # rows with a target
EXAMPLES = 6_000  # that the network is shown where nobody says how many epochs


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes:
        task: "classification" or "regression"; None for what the target looks like.
        hidden: the number of neurons in each hidden layer; () for a linear model.
        activation: of the hidden neurons.
        epochs: how often to go through the training rows; None for as many as show the network some
            6,000 rows, from 3 to 60.
        batch_size: the rows of each step.
        learning_rate: of AdamW at the start; it falls along a cosine to a hundredth.
        weight_decay: of AdamW.
        test: the share of the rows to test on, from above 0 to 0.5.
        seed: of the split, the first weights and the order of the rows.
        compile: whether to compile the training; None for where that can be done.
        progress: whether to show a bar; None for on a terminal, if tqdm is there.

    Raises:
        ValueError: for a setting that is out of range.

    Example:
        >>> Settings(hidden=(16, 16)).epochs_for(120)
        50
    """

    task: str | None = None
    hidden: tuple[int, ...] = (16,)
    activation: str = "tanh"
    epochs: int | None = None
    batch_size: int = 16
    learning_rate: float = 0.01
    weight_decay: float = 0.01
    test: float = 0.2
    seed: int = 1
    compile: bool | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        if self.task not in {None, "classification", "regression"}:
            raise ValueError(f"the task is 'classification' or 'regression', not {self.task!r}")
        if not 0 < self.test <= 0.5:
            raise ValueError(f"the share of rows to test on must be above 0 and at most 0.5, not {self.test}")

    def epochs_for(self, rows: int) -> int:
        """How often to go through so many training rows."""
        return self.epochs if self.epochs is not None else min(max(round(EXAMPLES / rows), 3), 60)


class Predictor:
    """A network and what its inputs and outputs stand for.

    Args:
        columns: what the inputs are made from.
        target: what the outputs stand for.
        hidden: the number of neurons in each hidden layer.
        activation: of the hidden neurons.
    """

    def __init__(
        self,
        columns: Sequence[Number | Category],
        target: Classes | Quantity,
        hidden: Sequence[int],
        activation: str,
    ) -> None:
        self.columns, self.target = list(columns), target
        self.hidden, self.activation = list(hidden), activation
        self.inputs = [name for column in self.columns for name in column.inputs]
        self.model = self._network()

    def encoded(self, table: Table) -> list[list[float]]:
        """The inputs for each row of a table, whose columns may stand in any order, with others among them.

        Raises:
            ValueError: if a column is missing, or a cell that is to be a number is none, naming its line.
        """
        places = [(column, table.position(column.name)) for column in self.columns]

        def inputs(row: list[str], line: int) -> list[float]:
            encoded: list[float] = []
            try:
                for column, place in places:
                    encoded += column.encode(row[place])
            except ValueError as error:
                raise ValueError(f"line {line}, column {column.name!r}: {error}") from None
            return encoded

        return [inputs(row, line) for row, line in zip(table.rows, table.lines, strict=True)]

    def outputs(self, table: Table) -> list[Any]:
        """What the network gives for each row, in plain numbers: a list for classes, a bare number for a quantity.

        Raises:
            ValueError: as encoded does.
        """
        network = _of_plain_numbers(self.model, self._network())
        return [network(inputs) for inputs in self.encoded(table)]

    def predict(self, table: Table) -> list[Any]:
        """What the network says of each row: the probability of each class, or the quantity.

        Raises:
            ValueError: if the table does not suit the network, or the result for a row is not finite.
        """
        predictions = [self.target.decode(outputs) for outputs in self.outputs(table)]
        for prediction, line in zip(predictions, table.lines, strict=True):
            if not all(map(math.isfinite, prediction if isinstance(prediction, list) else [prediction])):
                raise ValueError(f"line {line}: the numbers are too large for this network")
        return predictions

    def guessed(self, table: Table) -> dict[str, int]:
        """For each column with cells that the training rows say nothing about, how many there are."""
        counts = {
            column.name: sum(not column.knows(cell) for cell in table.column(column.name)) for column in self.columns
        }
        return {name: count for name, count in counts.items() if count}

    def save(self, path: StrPath) -> None:
        """Write everything that load needs to a JSON file, all of it or nothing.

        Raises:
            OSError: if the file cannot be written.
        """
        content = {
            "format": FORMAT,
            "target": to_json(self.target),
            "columns": [to_json(column) for column in self.columns],
            "hidden": self.hidden,
            "activation": self.activation,
            "state": self.model.state_dict(),
        }
        content["checksum"] = _checksum(content)
        write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())

    def _network(self) -> MLP:
        return MLP(len(self.inputs), [*self.hidden, self.target.outputs], self.activation, "glorot")

    def __repr__(self) -> str:
        return f"Predictor({self.target.name!r} from {', '.join(repr(column.name) for column in self.columns)})"


class Study(NamedTuple):
    """What a predictor is trained and tested on.

    Attributes:
        predictor: untrained, until train is called.
        training: the rows to train on.
        test: those to test on.
        left_out: the columns that are not used, and why.
        without_target: how many rows are left out because their target is missing.
        settings: how to train.
    """

    predictor: Predictor
    training: Table
    test: Table
    left_out: dict[str, str]
    without_target: int
    settings: Settings

    @property
    def epochs(self) -> int:
        """How often to go through the training rows."""
        return self.settings.epochs_for(len(self.training.rows))


def prepare(table: Table, target: str, settings: Settings | None = None, ignored: Sequence[str] = ()) -> Study:
    """Split the rows of a table, and make a network that suits its columns.

    Args:
        table: the rows, those to test on among them.
        target: the name of the column to predict.
        settings: how to train; the defaults of Settings if left out.
        ignored: the names of columns that are not to be used.

    Raises:
        ValueError: if the table has no such columns, or too little in them to learn from.

    Example:
        >>> from micrograd.tables.table import Table
        >>> rows = [[str(size), "small" if size < 6 else "large"] for size in range(12)]
        >>> prepare(Table(("size", "kind"), rows, list(range(2, 14))), "kind").predictor
        Predictor('kind' from 'size')
    """
    settings = settings or Settings()
    for name in (target, *ignored):
        table.position(name)
    if target in ignored:
        raise ValueError(f"{target!r} is the target, and cannot be ignored")
    present = table.without(row for row, cell in enumerate(table.column(target)) if not cell)
    if len(present.rows) < FEWEST:
        raise ValueError(f"{target!r} has a value in {len(present.rows)} rows only: too few to train and to test on")
    refuse_commas(present, target)
    task = settings.task or likely_task(present.column(target))
    test_rows = split(present.column(target), settings.test, settings.seed, stratified=task == "classification")
    training, test = present.without(test_rows), present.without(set(range(len(present.rows))) - test_rows)

    encoded_target = target_of(present, training, target, task)
    names = [name for name in table.columns if name not in {target, *ignored, *table.unnamed}]
    columns, left_out = inputs_of(present, training, names)
    left_out |= dict.fromkeys(sorted(table.unnamed - {target, *ignored}), "its header is blank, as over row numbers")
    if not columns:
        reasons = "".join(f"\n  {name!r}: {reason}" for name, reason in left_out.items())
        raise ValueError(f"no column is left to predict {target!r} from{reasons}")

    before = random.getstate()
    random.seed(settings.seed)
    predictor = Predictor(columns, encoded_target, settings.hidden, settings.activation)
    random.setstate(before)
    return Study(predictor, training, test, left_out, len(table.rows) - len(present.rows), settings)


def train(study: Study) -> History:
    """Train the predictor of a study. Ctrl-C ends it early, as in fit.

    Raises:
        ArithmeticError: if the training diverges.
        ImportError: if the settings ask for a compiler or a progress bar that is not there.
    """
    predictor, settings = study.predictor, study.settings
    model, target = predictor.model, predictor.target
    targets = [target.encode(cell) for cell in study.training.column(target.name)]
    examples = list(zip(predictor.encoded(study.training), targets, strict=True))
    steps = study.epochs * math.ceil(len(examples) / settings.batch_size)
    rate = cosine(settings.learning_rate, settings.learning_rate / 100, steps)
    options: dict[str, Any] = {"compile": True} if is_compiled(settings) else {}
    return fit(
        lambda inputs, wanted: target.loss(model(inputs), wanted),
        examples,
        AdamW(model.parameters(), rate, weight_decay=settings.weight_decay),
        epochs=study.epochs,
        batch_size=settings.batch_size,
        seed=settings.seed,
        progress=settings.progress,
        **options,
    )


def is_compiled(settings: Settings) -> bool:
    """Whether the training will be compiled.

    Raises:
        ImportError: if the settings ask for it and NumPy is not there.
    """
    there = find_spec("numpy") is not None
    if settings.compile and not there:
        raise ImportError("compiling needs NumPy: pip install numpy llvmlite")
    return there if settings.compile is None else settings.compile


def split(cells: Sequence[str], share: float, seed: int, *, stratified: bool) -> set[int]:
    """Which rows to test on: a share of them, drawn at random, and if stratified that share of each class.

    The only row of a class is not among them.

    Args:
        cells: the target of each row.
        share: from above 0 to 0.5.
        seed: the same seed draws the same rows.
        stratified: whether equal cells are a class.

    Raises:
        ValueError: if there are too few rows for one to be among them.

    Example:
        >>> cells = ["a"] * 6 + ["b"] * 3 + ["c"]
        >>> sorted(cells[row] for row in split(cells, 1 / 3, seed=0, stratified=True))
        ['a', 'a', 'b']
    """
    rows = random.Random(seed).sample(range(len(cells)), len(cells))
    if stratified:
        counts = Counter(cells)
        rows = sorted((row for row in rows if counts[cells[row]] > 1), key=lambda row: cells[row])
        if not rows:
            raise ValueError("each row has a class of its own: there is nothing to learn")
    # Of rows in order of their class, every fifth, for a share of 0.2: as evenly from all classes as can be.
    chosen = {row for place, row in enumerate(rows) if int((place + 1) * share) > int(place * share)}
    if not chosen:
        raise ValueError(f"{share:g} of {len(rows)} rows is less than one row to test on")
    return chosen


def load(path: StrPath) -> Predictor:
    """Read a predictor that save wrote.

    Raises:
        ValueError: if the file is cut off, damaged or of another kind.
        OSError: if it cannot be read.
    """
    try:
        content = json.loads(Path(path).read_bytes().decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no saved model: it is cut off or damaged, no valid JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is no model that `micrograd train` saved: its format is not {FORMAT!r}")
    if content.pop("checksum", None) != _checksum(content):
        raise ValueError(f"{path} is damaged or was edited: its checksum does not fit")
    try:
        columns, target = [from_json(column) for column in content["columns"]], from_json(content["target"])
        predictor = Predictor(columns, target, content["hidden"], content["activation"])
        predictor.model.load_state_dict(content["state"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no model that `micrograd train` saved: {error}") from error
    return predictor


def _of_plain_numbers(model: MLP, network: MLP) -> MLP:
    """The network, given a model's numbers as floats: it computes with floats, ten times as fast as with Values."""
    for layer, trained_layer in zip(network.layers, model.layers, strict=True):
        for neuron, trained in zip(layer.neurons, trained_layer.neurons, strict=True):
            neuron.w = [weight.data for weight in trained.w]  # type: ignore[misc]  # floats do what Values do
            neuron.b = trained.b.data  # type: ignore[assignment]  # see above
    return network


def _checksum(content: dict[str, Any]) -> str:
    return checksum(json.dumps(content, sort_keys=True).encode())
