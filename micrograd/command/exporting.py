"""export: an expression, or a model that train has saved, as a file of C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.command.grammar import ParsedExpression
from micrograd.command.output import OK, print_json
from micrograd.engine.primitives import equal, where
from micrograd.engine.value import Value
from micrograd.functional import dot, sigmoid, softmax

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from micrograd.tables.models import Model


def export(options: argparse.Namespace) -> int:
    """Write the file and its header."""
    is_model = options.what.endswith(".skops")
    function, example, texts = _of_model(options.what) if is_model else _of_expression(options.what.strip())
    try:
        from micrograd.compiler.calling.export import export as write
    except ModuleNotFoundError:
        raise ImportError("export needs NumPy: pip install numpy") from None

    paths = write(
        function,
        options.output,
        named=example,
        name=options.name,
        precision="float32" if options.float32 else "float64",
        gradients=not is_model,
        overwrite=options.overwrite,
        texts=texts,
    )
    if options.json:
        print_json({"wrote": paths})
    else:
        print(f"wrote {' and '.join(paths)}")
    return OK


def _of_expression(text: str) -> tuple[Callable[..., Any], dict[str, float], dict[str, str]]:
    """The function of an expression, an example of its arguments, and what the file says of it."""
    expression = ParsedExpression(text)
    if not expression.names:
        raise ValueError(f"{text!r:.80} has no names: it is the same number in each call")

    def function(**numbers: Any) -> Any:
        return expression(numbers)

    return function, dict.fromkeys(expression.names, 0.5), {"": f"The expression {text}."}


def _of_model(path: str) -> tuple[Callable[..., Any], dict[str, float], dict[str, str]]:
    """The same of a saved model: its arguments are the columns that it predicts from."""
    from micrograd.command.tables import check_packages

    check_packages()
    from micrograd.tables.models import load

    model = load(path)
    columns = [name for names in model.columns.values() for name in names]
    texts = {name: f"{name}: {text}" for name, text in _codes(model).items()}
    classes = getattr(model.pipeline, "classes_", None)
    answers = (
        [model.target] if classes is None else [f"the probability that {model.target} is {name}" for name in classes]
    )
    texts |= {f"outputs {number}": text for number, text in enumerate(answers)}
    texts[""] = (
        f"The model in {path}, which predicts {model.target} from a row of numbers. NAN stands for a missing number."
    )
    return _answer(model), dict.fromkeys(columns, 0.0), texts


def _codes(model: Model) -> dict[str, str]:
    """Which number stands for which category."""
    encoders = model.pipeline[0].named_transformers_
    names = model.columns["categories"]
    known = encoders["categories"][1].categories_ if names else []
    return {
        name: f"{', '.join(f'{code} for {text or chr(39) * 2}' for code, text in enumerate(texts))}; -1 for any other"
        for name, texts in zip(names, known, strict=True)
    }


def _answer(model: Model) -> Callable[..., Any]:
    """What the pipeline computes, as a function of numbers: it imputes, scales, runs the network and scales back."""
    from micrograd.tables.study import network_of
    from micrograd.training.rows import FUNCTIONS

    network, encoders, columns = network_of(model.pipeline), model.pipeline[0].named_transformers_, model.columns
    weights = [
        [[Value(w, label=f"weights of layer {number}") for w in row] for row in layer.T.tolist()]
        for number, layer in enumerate(network.coefs_, 1)
    ]
    biases = [
        [Value(b, label=f"biases of layer {number}") for b in layer.tolist()]
        for number, layer in enumerate(network.intercepts_, 1)
    ]
    imputer, scaler = encoders["numbers"] if columns["numbers"] else (None, None)
    known = [len(found) for found in encoders["categories"][1].categories_] if columns["categories"] else []
    target: Any = getattr(model.pipeline[-1], "transformer_", None)
    statistics = imputer.statistics_.tolist() if imputer else []
    indicated = imputer.indicator_.features_.tolist() if imputer else []
    centres, spreads = (scaler.mean_.tolist(), scaler.scale_.tolist()) if scaler else ([], [])
    is_multiclass = len(getattr(model.pipeline, "classes_", ())) > 2

    def answer(**row: Any) -> Any:
        numbers = [row[name] for name in columns["numbers"]]
        present = [equal(number, number) for number in numbers]  # NaN is not
        filled = [where(is_there, n, mean) for is_there, n, mean in zip(present, numbers, statistics, strict=True)]
        filled += [1.0 - present[position] for position in indicated]
        layer = [(x - centre) / spread for x, centre, spread in zip(filled, centres, spreads, strict=True)]
        for name, count in zip(columns["categories"], known, strict=True):
            layer += [equal(row[name], float(code)) for code in range(count)]
        for number, (rows, shifts) in enumerate(zip(weights, biases, strict=True), 1):
            layer = [dot(row, layer) + shift for row, shift in zip(rows, shifts, strict=True)]
            if number < len(weights):
                layer = [FUNCTIONS[network.activation](x) for x in layer]
        if target is not None:
            return layer[0] * float(target.scale_[0]) + float(target.mean_[0])
        if is_multiclass:
            return softmax(layer)
        chance = sigmoid(layer[0])
        return [sigmoid(-layer[0]), chance]

    return answer
