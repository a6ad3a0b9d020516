"""How good predictions are: numbers for classes and for quantities, each beside what guessing would get."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def classification(classes: Sequence[str], wanted: Sequence[str], guesses: Sequence[str], usual: str) -> dict[str, Any]:
    """Accuracy, precision and recall, and which class was taken for which.

    Args:
        classes: all there are.
        wanted: the right class of each row.
        guesses: the predicted one.
        usual: the class that guessing would always say.

    Returns:
        ``accuracy`` and that of ``guessing``, both from 0 to 1; for each of ``classes`` its ``precision``,
        ``recall`` and ``f1`` (None where nothing was predicted or there to find); and ``confusion``, a row
        for each right class, a column for each predicted one.

    Example:
        >>> classification(["cat", "dog"], ["cat", "dog", "dog"], ["dog", "dog", "dog"], "dog")["confusion"]
        [[0, 1], [0, 2]]
    """
    pairs = Counter(zip(wanted, guesses, strict=True))
    confusion = [[pairs[right, guess] for guess in classes] for right in classes]
    by_class = []
    for index, name in enumerate(classes):
        right, there, said = confusion[index][index], sum(confusion[index]), sum(row[index] for row in confusion)
        scores = {
            "precision": _share(right, said),
            "recall": _share(right, there),
            "f1": _share(2 * right, said + there),
        }
        by_class.append({"class": name, "rows": there, **scores})
    return {
        "rows": len(wanted),
        "accuracy": _share(sum(pairs[name, name] for name in classes), len(wanted)),
        "guessing": _share(sum(name == usual for name in wanted), len(wanted)),
        "classes": by_class,
        "confusion": confusion,
    }


def regression(wanted: Sequence[float], predicted: Sequence[float], usual: float) -> dict[str, Any]:
    """Errors in the target's unit, and the share of its variance that is explained.

    Args:
        wanted: the right number of each row.
        predicted: the predicted one.
        usual: the number that guessing would always say.

    Returns:
        ``rmse`` and ``mae``, the root of the mean square and the mean size of the errors; ``guessing``, the
        rmse of always saying ``usual``; and ``r2``, the share of the variance of ``wanted`` that the
        predictions explain (None where there is no variance, or they are too far off).

    Example:
        >>> regression([0.0, 4.0], [1.0, 3.0], 2.0)
        {'rows': 2, 'rmse': 1.0, 'mae': 1.0, 'guessing': 2.0, 'r2': 0.75}
    """
    errors = [prediction - right for prediction, right in zip(predicted, wanted, strict=True)]
    rmse = _root_mean_square(errors)
    mean = math.fsum(right / len(wanted) for right in wanted)
    deviation = _root_mean_square([right - mean for right in wanted])
    ratio = rmse / deviation if deviation else math.inf
    return {
        "rows": len(wanted),
        "rmse": rmse,
        "mae": math.fsum(abs(error) / len(errors) for error in errors),
        "guessing": _root_mean_square([usual - right for right in wanted]),
        "r2": 1 - ratio * ratio if math.isfinite(ratio * ratio) else None,
    }


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _root_mean_square(errors: Sequence[float]) -> float:
    return math.hypot(*errors) / math.sqrt(len(errors))
