"""ADBench's LSTM, which predicts the bits of the next character; its weights are diagonal, so it has no matrices.

With data as ADBench's generator makes it: all parameters and the first states drawn evenly from 0 to 1, and a text of
which a character is 14 bits. A layer has four gates, and a weight and a bias for each; before the first layer and after
the last one there is a scale, and at the end a bias.
"""

import itertools
import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

BITS = 14
TEXT = "abcdefghijklmnopqrstuvwxyz      ,.;:\n\N{RIGHT SINGLE QUOTATION MARK}"


def data(layers: int, characters: int, bits: int = BITS) -> tuple[Numbers, Numbers]:
    """Weights and biases by layer and gate, the states at the start, and a text as bits, the highest first."""
    rng = random.Random(17)

    def even(*shape: int) -> Any:
        return [even(*shape[1:]) for _ in range(shape[0])] if shape else rng.random()

    parameters = {"weights": even(layers, 4, bits), "biases": even(layers, 4, bits), "outside": even(3, bits)}
    text = [ord(rng.choice(TEXT)) for _ in range(characters)]
    sequence = [[float(character >> bit & 1) for bit in range(bits - 1, -1, -1)] for character in text]
    return parameters, {"hidden": even(layers, bits), "cells": even(layers, bits), "sequence": sequence}


def after(weights: Any, biases: Any, x: list[Any], hidden: list[Any], cell: list[Any]) -> tuple[list[Any], list[Any]]:
    """A layer's hidden state and cell, a step later."""
    new_hidden, new_cell = [], []
    for i in range(len(x)):
        (forget, take, give, change), (b_forget, b_take, b_give, b_change) = (
            [gate[i] for gate in gates] for gates in (weights, biases)
        )
        kept = cell[i] * mg.sigmoid(x[i] * forget + b_forget)
        new = kept + mg.sigmoid(hidden[i] * take + b_take) * mg.tanh(hidden[i] * change + b_change)
        new_cell.append(new)
        new_hidden.append(mg.sigmoid(x[i] * give + b_give) * mg.tanh(new))
    return new_hidden, new_cell


def scalars(w: Numbers, given: Numbers) -> Any:
    """Minus the mean logarithm of the share of what came; ADBench adds 2 to the sum that normalises."""
    sequence = given["sequence"]
    hidden, cells = list(given["hidden"]), list(given["cells"])
    scale, out_scale, out_bias = w["outside"]
    total = 0.0
    for now, following in itertools.pairwise(sequence):
        x = [number * factor for number, factor in zip(now, scale, strict=True)]
        for layer, (weights, biases) in enumerate(zip(w["weights"], w["biases"], strict=True)):
            hidden[layer], cells[layer] = after(weights, biases, x, hidden[layer], cells[layer])
            x = hidden[layer]
        predicted = [a * b + c for a, b, c in zip(x, out_scale, out_bias, strict=True)]
        normaliser = mg.log(2 + sum(mg.exp(p) for p in predicted))
        total += mg.dot(following, [p - normaliser for p in predicted])
    return -total / ((len(sequence) - 1) * len(scale))


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same in arrays, the states from step to step."""
    sequence = given["sequence"]
    scale, out_scale, out_bias = w["outside"]

    def step(states: Any, now: Any) -> tuple[Any, Any]:
        x, states_after = now * scale, []
        for layer, (hidden, cell) in enumerate(states):
            weights, biases = w["weights"][layer], w["biases"][layer]
            forget, give = (xp.sigmoid(x * weights[gate] + biases[gate]) for gate in (0, 2))
            take = xp.sigmoid(hidden * weights[1] + biases[1])
            cell = cell * forget + take * xp.tanh(hidden * weights[3] + biases[3])
            x = give * xp.tanh(cell)
            states_after.append((x, cell))
        return tuple(states_after), x

    _, x = xp.scan(step, tuple(zip(given["hidden"], given["cells"], strict=True)), sequence[:-1])
    predicted = x * out_scale + out_bias
    normalised = predicted - xp.log(2 + xp.exp(predicted).sum(1))[:, None]
    return -(sequence[1:] * normalised).mean()


def lstm(layers: int = 2, characters: int = 1024, bits: int = BITS) -> Program:
    """The program for so many layers and characters."""
    title = f"ADBench LSTM, {layers} layers, {characters:,} characters"
    return Program(title, partial(data, layers, characters, bits), scalars, arrays)
