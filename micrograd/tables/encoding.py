"""Columns as numbers: what a network is given for the cells of a row, and what its outputs stand for.

A column of numbers becomes (x - mean) / scale, a column of text one input for each category, 0 or 1.
Where cells are missing, one more input says so. A target of text or of few whole numbers is a class, with
one output for each; another target is a quantity, standardised like an input.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from micrograd.functional import softmax
from micrograd.losses import cross_entropy, mean_squared_error
from micrograd.tables.table import DECIMAL_COMMA, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.tables.table import Table

MOST_CATEGORIES = 50
MOST_WHOLE_NUMBERS = 20  # a target with more of them is a quantity, not a class


@dataclass(frozen=True)
class Number:
    """A column of numbers, standardised; a missing one counts as the mean.

    Attributes:
        name: of the column.
        mean: of its numbers in the training rows.
        scale: their standard deviation.
        gaps: whether some were missing, so that one more input says where.

    Example:
        >>> Number("age", mean=30.0, scale=10.0, gaps=True).encode("45")
        [1.5, 0.0]
    """

    name: str
    mean: float
    scale: float
    gaps: bool

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs to the network."""
        return [self.name, f"{self.name} missing"] if self.gaps else [self.name]

    def encode(self, cell: str) -> list[float]:
        """The inputs for a cell.

        Raises:
            ValueError: if the cell is no finite number.
        """
        value = _finite(cell) if cell else self.mean
        standard = value / self.scale - self.mean / self.scale  # the difference itself might overflow
        return [standard, float(not cell)] if self.gaps else [standard]

    def knows(self, cell: str) -> bool:
        """Whether the network has learnt of such a cell: it is not missing, or some training rows had missing ones."""
        return bool(cell) or self.gaps


@dataclass(frozen=True)
class Category:
    """A column of text, one input for each category; all of them 0 for one that was not in the training rows.

    Attributes:
        name: of the column.
        categories: the texts in the training rows, sorted; "" among them where some were missing.

    Example:
        >>> Category("colour", ("blue", "red")).encode("red")
        [0.0, 1.0]
    """

    name: str
    categories: tuple[str, ...]

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs to the network."""
        return [f"{self.name} = {category}" if category else f"{self.name} missing" for category in self.categories]

    def encode(self, cell: str) -> list[float]:
        """The inputs for a cell."""
        return [float(cell == category) for category in self.categories]

    def knows(self, cell: str) -> bool:
        """Whether the network has learnt of such a cell: it is one of the categories."""
        return cell in self.categories


@dataclass(frozen=True)
class Classes:
    """A target that is one of several classes.

    Attributes:
        name: of the column.
        classes: the texts of its cells in the training rows, sorted; a number's as it is written.

    Example:
        >>> Classes("colour", ("blue", "red")).encode("red")
        1
    """

    name: str
    classes: tuple[str, ...]
    task = "classification"

    @property
    def outputs(self) -> int:
        """How many outputs the network has."""
        return len(self.classes)

    def encode(self, cell: str) -> int:
        """The index of a cell's class.

        Raises:
            ValueError: for a class that was not in the training rows.
        """
        if cell not in self.classes:
            raise ValueError(f"{cell!r} is none of the classes {', '.join(map(repr, self.classes))}")
        return self.classes.index(cell)

    def loss(self, outputs: Any, target: Any) -> Any:
        """The cross-entropy of the network's outputs."""
        return cross_entropy(outputs, target)

    def decode(self, outputs: Sequence[float]) -> list[float]:
        """The probability of each class."""
        return [float(probability) for probability in softmax(outputs)]

    def likeliest(self, probabilities: Sequence[float]) -> str:
        """The class with the largest probability."""
        return self.classes[probabilities.index(max(probabilities))]

    @property
    def header(self) -> tuple[str, ...]:
        """The header of a CSV file of predictions."""
        return self.name, "probability"

    def row(self, probabilities: Sequence[float]) -> tuple[str, ...]:
        """A prediction's line in a CSV file."""
        return self.likeliest(probabilities), f"{max(probabilities):.4f}"

    def described(self, probabilities: Sequence[float]) -> dict[str, Any]:
        """A prediction for JSON."""
        by_class = dict(zip(self.classes, probabilities, strict=True))
        return {"prediction": self.likeliest(probabilities), "probabilities": by_class}


@dataclass(frozen=True)
class Quantity:
    """A target that is a number, standardised.

    Attributes:
        name: of the column.
        mean: of its numbers in the training rows.
        scale: their standard deviation.

    Example:
        >>> Quantity("age", mean=30.0, scale=10.0).encode("45")
        1.5
    """

    name: str
    mean: float
    scale: float
    task = "regression"
    outputs = 1

    def encode(self, cell: str) -> float:
        """A cell's number, standardised.

        Raises:
            ValueError: if the cell is no finite number.
        """
        return _finite(cell) / self.scale - self.mean / self.scale

    def loss(self, output: Any, target: Any) -> Any:
        """The squared error of the network's output."""
        return mean_squared_error(output, target)

    def decode(self, output: float) -> float:
        """The number that the network's only output stands for."""
        return self.mean + self.scale * output

    @property
    def header(self) -> tuple[str, ...]:
        """The header of a CSV file of predictions."""
        return (self.name,)

    def row(self, prediction: float) -> tuple[str, ...]:
        """A prediction's line in a CSV file."""
        return (f"{prediction:.10g}",)

    def described(self, prediction: float) -> dict[str, Any]:
        """A prediction for JSON."""
        return {"prediction": prediction}


def inputs_of(table: Table, training: Table, names: Sequence[str]) -> tuple[list[Number | Category], dict[str, str]]:
    """How the columns are encoded, and which are left out and why.

    Args:
        table: all rows, which say whether a column holds numbers or text.
        training: those to train on, which alone give means, scales and categories.
        names: of the columns that may be inputs.

    Raises:
        ValueError: if a number is infinite, or numbers have commas in them.
    """
    columns: list[Number | Category] = []
    left_out: dict[str, str] = {}
    for name in names:
        refuse_commas(table, name)
        cells = training.column(name)
        column = _number(table, name, cells) if _are_numbers(table.column(name)) else _category(name, cells)
        if isinstance(column, str):
            left_out[name] = column
        else:
            columns.append(column)
    return columns, left_out


def target_of(table: Table, training: Table, name: str, task: str) -> Classes | Quantity:
    """How the target is encoded.

    Args:
        table: all rows, each with a target.
        training: those to train on, which alone give classes, mean and scale.
        name: of the target's column.
        task: "classification" or "regression".

    Raises:
        ValueError: if the cells of the target do not suit the task, or are all the same.
    """
    cells = training.column(name)
    if len(set(cells)) < 2:
        raise ValueError(f"there is nothing to learn: {name!r} is {cells[0]!r} in every row")
    if task == "regression":
        for cell, line in zip(table.column(name), table.lines, strict=True):
            if number(cell) is None:
                raise ValueError(f"line {line}: {cell!r} in {name!r} is no number, as the target of a regression is")
        mean, scale = _mean_and_scale(_finite_numbers(table, name, cells))
        if not scale:
            raise ValueError(f"there is nothing to learn: {name!r} is {mean:g} in every row")
        return Quantity(name, mean, scale)
    classes = sorted(set(cells), key=lambda cell: (number(cell) is None, number(cell) or 0.0, cell))
    if len(classes) > MOST_CATEGORIES:
        raise ValueError(f"{name!r} has {len(classes)} different values, and at most {MOST_CATEGORIES} can be classes")
    return Classes(name, tuple(classes))


def likely_task(cells: Sequence[str]) -> str:
    """Whether a target is a class, as text and up to 20 whole numbers are, or a quantity.

    Example:
        >>> likely_task(["0", "1", "1"]), likely_task(["0.5", "1.25"]), likely_task(["yes", "no"])
        ('classification', 'regression', 'classification')
    """
    if not _are_numbers(cells):
        return "classification"
    values = {number(cell) or 0.0 for cell in cells}
    few = len(values) <= MOST_WHOLE_NUMBERS
    return "classification" if few and all(map(float.is_integer, values)) else "regression"


def refuse_commas(table: Table, name: str) -> None:
    """Refuse a column of numbers such as 1,5, which would pass for text.

    Raises:
        ValueError: saying how to read them.
    """
    cells = [cell for cell in table.column(name) if cell and number(cell) is None]
    if cells and all(map(DECIMAL_COMMA.fullmatch, cells)):
        raise ValueError(
            f"{name!r} has numbers with commas, as {cells[0]!r}: if that is a decimal mark, give --decimal ,"
        )


def to_json(column: Number | Category | Classes | Quantity) -> dict[str, Any]:
    """The column as JSON, for from_json."""
    return {"kind": type(column).__name__, **asdict(column)}


def from_json(content: dict[str, Any]) -> Any:
    """The column that to_json wrote."""
    kinds: dict[str, Any] = {kind.__name__: kind for kind in (Number, Category, Classes, Quantity)}
    fields = {name: tuple(field) if isinstance(field, list) else field for name, field in content.items()}
    kind = kinds[str(fields.pop("kind"))]
    return kind(**fields)


def _number(table: Table, name: str, cells: Sequence[str]) -> Number | str:
    """A column of numbers, or why it is left out."""
    values = _finite_numbers(table, name, [cell for cell in cells if cell])
    if not values:
        return "it has no value in the training rows"
    mean, scale = _mean_and_scale(values)
    gaps = "" in cells
    if not scale and not gaps:
        return f"it is {values[0]:g} in every row"
    return Number(name, mean, scale or 1.0, gaps)


def _category(name: str, cells: Sequence[str]) -> Category | str:
    """A column of text, or why it is left out."""
    counts = Counter(cells)
    if len(counts) == 1:
        return f"it is {next(iter(counts))!r} in every row" if cells[0] else "it is missing in every row"
    if len(counts) > MOST_CATEGORIES or (len(counts) == len(cells) and len(cells) > 2):
        return f"it is text with {len(counts)} different values in {len(cells)} rows"
    return Category(name, tuple(sorted(counts)))


def _are_numbers(cells: Sequence[str]) -> bool:
    return any(cells) and all(number(cell) is not None for cell in cells if cell)


def _finite(cell: str) -> float:
    value = number(cell)
    if value is None or math.isinf(value):
        raise ValueError(f"{cell!r} is no finite number")
    return value


def _finite_numbers(table: Table, name: str, cells: Sequence[str]) -> list[float]:
    """The numbers of some cells; an infinite one anywhere in the column is an error."""
    for cell, line in zip(table.column(name), table.lines, strict=True):
        if cell and math.isinf(number(cell) or 0.0):
            raise ValueError(f"line {line}: {cell!r} in {name!r} is not finite; leave the cell empty if it is missing")
    return [_finite(cell) for cell in cells]


def _mean_and_scale(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation, of the largest numbers too."""
    largest = max(map(abs, values)) or 1.0
    shares = [value / largest for value in values]
    mean = math.fsum(shares) / len(shares)
    deviation = math.sqrt(math.fsum((share - mean) ** 2 for share in shares) / len(shares))
    return mean * largest, deviation * largest
