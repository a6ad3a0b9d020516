"""The page of a report, and its numbers in words. Names from a table are shown as typed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def page(numbers: dict[str, Any], files: Sequence[str]) -> str:
    """The page: what was done, how well it went, the pictures.

    Args:
        numbers: what metrics.json holds.
        files: the names of the files beside the page; the pictures among them are shown.
    """
    rows, network, training = numbers["rows"], numbers["network"], numbers["training"]
    target, test = numbers["target"], numbers["on_test_rows"]
    facts = [
        ("Rows", f"{rows['training']:,} to train on, {rows['test']:,} to test on"),
        ("Rows without a target", f"{rows['without_target']:,}, left out" if rows["without_target"] else ""),
        ("Network", f"{describe(network)}, {network['parameters']:,} parameters"),
        (
            "Training",
            f"{training['epochs']:,} epochs, {training['steps']:,} steps, loss {training['first_loss']:.4g} to "
            f"{training['last_loss']:.4g}{', interrupted' if training['interrupted'] else ''}",
        ),
    ]
    kinds = [
        (column["name"], column["kind"], column["inputs"], column["missing"] or "") for column in numbers["columns"]
    ]
    captions = {
        "confusion.svg": "the test rows by true and predicted class",
        "scatter.svg": "the test rows by true and predicted number",
        "loss.svg": "the loss of each training step",
        "neuron.svg": "one neuron of the first layer, for the test row that is hardest to predict",
    }
    pictures = [
        f'<figure><img src="{name}" alt="{caption}"><figcaption>{caption.capitalize()}</figcaption></figure>'
        for name, caption in captions.items()
        if name in files
    ]
    parts = [
        f"<h1>{escape(target)}</h1>",
        f"<p class=headline>{escape(headline(numbers))}</p>",
        _html_table((), [fact for fact in facts if fact[1]]),
        "<h2>How well it predicts</h2>",
        _html_table(("", "test rows", "training rows"), _scores(test, numbers["on_training_rows"])),
        *pictures[:1],
    ]
    if "classes" in test:
        header = ("class", "test rows", "precision", "recall", "F1")
        shown = [
            (entry["class"], entry["rows"], *map(_percent, (entry["precision"], entry["recall"], entry["f1"])))
            for entry in test["classes"]
        ]
        parts += ["<h2>Class by class</h2>", _html_table(header, shown)]
    parts += [*pictures[1:], "<h2>Columns</h2>", _html_table(("column", "kind", "inputs", "missing"), kinds)]
    if numbers["left_out"]:
        parts += ["<h2>Columns left out</h2>", _html_table(("column", "because"), numbers["left_out"].items())]
    return _HTML.format(title=escape(target), body="\n".join(parts))


def describe(network: dict[str, Any]) -> str:
    """The network in words.

    Example:
        >>> describe({"inputs": 4, "hidden": [16, 16], "activation": "tanh", "outputs": 3})
        '4 inputs, 16 and 16 tanh neurons, 3 outputs'
    """
    hidden = f"{' and '.join(map(str, network['hidden']))} {network['activation']} neurons" if network["hidden"] else ""
    ends = [f"{network[end]} {end if network[end] != 1 else end[:-1]}" for end in ("inputs", "outputs")]
    return ", ".join(filter(None, (ends[0], hidden, ends[1])))


def headline(numbers: dict[str, Any]) -> str:
    """The result in a sentence."""
    test = numbers["on_test_rows"]
    if numbers["task"] == "classification":
        right = round(test["accuracy"] * test["rows"])
        return (
            f"Test accuracy: {_percent(test['accuracy'])} ({right:,} of {test['rows']:,} rows); "
            f"always guessing the commonest class gets {_percent(test['guessing'])}"
        )
    explained = "" if test["r2"] is None else f", R² {test['r2']:.3f}"
    return (
        f"Test error: {test['rmse']:.4g} (root mean square){explained}; always guessing the mean gets "
        f"{test['guessing']:.4g}"
    )


def _scores(test: dict[str, Any], training: dict[str, Any]) -> list[tuple[object, ...]]:
    """The scores of both sets of rows, a line each."""
    if "accuracy" in test:
        names = {"accuracy": "accuracy", "guessing": "guessing the commonest class"}
        return [(name, _percent(test[key]), _percent(training[key])) for key, name in names.items()]
    names = {
        "rmse": "root mean square error",
        "mae": "mean absolute error",
        "guessing": "root mean square error of guessing the mean",
        "r2": "R²",
    }
    return [
        (name, *("" if scores[key] is None else f"{scores[key]:.4g}" for scores in (test, training)))
        for key, name in names.items()
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _html_table(header: Sequence[str], rows: Iterable[Any]) -> str:
    """A table; the text in its cells is shown as typed."""
    head = f"<tr>{''.join(f'<th scope=col>{escape(str(cell))}</th>' for cell in header)}</tr>" if header else ""
    body = [
        f"<tr><th scope=row>{escape(str(first))}</th>{''.join(f'<td>{escape(str(cell))}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    ]
    return f"<table>{head}{''.join(body)}</table>"


_HTML = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{
  font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem;
  overflow-wrap: anywhere;
}}
h1, h2 {{ line-height: 1.2; margin: 2rem 0 .75rem; }}
.headline {{ font-size: 1.15rem; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: .25rem 1.25rem .25rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884; }}
th[scope=row] {{ font-weight: normal; }}
td {{ font-variant-numeric: tabular-nums; }}
figure {{ margin: 1.5rem 0; }}
img {{ max-width: 100%; background: white; border-radius: .5rem; }}
figcaption {{ opacity: .75; font-size: .9rem; }}
</style>
{body}
</html>
"""
