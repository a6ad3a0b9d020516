"""The benchmarks' models written by hand in arrays, for the libraries that work on arrays.

Each class is a peer: it makes the parameters of a program as arrays of doubles, and its step computes the
loss and all gradients, from arrays and into arrays.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import perceptron
import transformer
from large import large_parameters, large_sample


def matrices(program: Any) -> dict[str, list[list[float]]]:
    """A program's parameters as numbers."""
    return program.parameters(float)


class Torch:
    """PyTorch, eager, in doubles, on one thread."""

    name = "PyTorch, eager"

    def __init__(self, program: str) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.step = {"transformer": self.transformer, "perceptron": self.perceptron, "large": self.large}[program]()

    def parameters(self, rows: dict[str, Any]) -> dict[str, Any]:
        """Tensors that require gradients."""
        return {
            name: self.torch.tensor(matrix, dtype=self.torch.float64, requires_grad=True)
            for name, matrix in rows.items()
        }

    def stepped(self, loss: Any, weights: dict[str, Any]) -> Any:
        """Loss and gradients, computed again."""

        def step() -> tuple[float, float]:
            for weight in weights.values():
                weight.grad = None
            value = loss()
            value.backward()
            return value, weights

        def result() -> tuple[float, float]:
            value, weights = step()
            return value.item(), max(w.grad.abs().max().item() for w in weights.values() if w.grad is not None)

        step.result = result  # type: ignore[attr-defined]  # what is compared, apart from what is timed
        return step

    def transformer(self) -> Any:
        """All positions of the word at a time, with a mask."""
        torch, w = self.torch, self.parameters(matrices(transformer))
        tokens = torch.tensor([transformer.END, *transformer.WORD])
        following = torch.tensor([*transformer.WORD, transformer.END])
        positions, n = torch.arange(len(tokens)), len(tokens)
        heads, size = transformer.HEADS, transformer.WIDTH // transformer.HEADS
        mask = torch.full((n, n), -math.inf, dtype=torch.float64).triu(1)

        def normalised(x: Any) -> Any:
            return x * (x.square().mean(-1, keepdim=True) + 1e-5) ** -0.5

        def loss() -> Any:
            x = normalised(w["letter"][tokens] + w["position"][positions])
            h = normalised(x)
            q, k, v = ((h @ w[name].T).view(n, heads, size).transpose(0, 1) for name in ("query", "key", "value"))
            shares = torch.softmax(q @ k.transpose(1, 2) / size**0.5 + mask, -1)
            x = x + (shares @ v).transpose(0, 1).reshape(n, -1) @ w["mix"].T
            x = x + torch.relu(normalised(x) @ w["widen"].T) @ w["narrow"].T
            return torch.nn.functional.cross_entropy(x @ w["output"].T, following)

        return self.stepped(loss, w)

    def perceptron(self) -> Any:
        """The whole batch as a matrix."""
        torch, w = self.torch, self.parameters(matrices(perceptron))
        moons = perceptron.two_moons()
        points = torch.tensor([[x, y] for x, y, _ in moons], dtype=torch.float64)
        sides = torch.tensor([side for *_, side in moons], dtype=torch.float64)

        def loss() -> Any:
            *hidden, last = w.values()
            h = points
            for layer in hidden:
                h = torch.relu(h @ layer[:, :-1].T + layer[:, -1])
            score = (h @ last[:, :-1].T + last[:, -1])[:, 0]
            squares = sum((layer * layer).sum() for layer in w.values())
            return torch.relu(1 - sides * score).mean() + perceptron.DECAY * squares

        return self.stepped(loss, w)

    def large(self) -> Any:
        """One sample through 784-256-10."""
        torch = self.torch
        w = self.parameters(large_parameters(float))
        pixels, target = large_sample()
        image, target = torch.tensor([pixels], dtype=torch.float64), torch.tensor([target])

        def loss() -> Any:
            hidden = torch.relu(image @ w["hidden"].T + w["hidden bias"])
            return torch.nn.functional.cross_entropy(hidden @ w["output"].T + w["output bias"], target)

        return self.stepped(loss, w)


class Jax:
    """JAX, compiled by jit, in doubles."""

    name = "JAX, jit"

    def __init__(self, program: str) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp
        from by_hand import loss_by_hand

        assert program == "transformer"
        weights = {name: jnp.array(matrix) for name, matrix in matrices(transformer).items()}
        word = jnp.array([transformer.END, *transformer.WORD, transformer.END])
        compiled = jax.jit(jax.value_and_grad(partial(loss_by_hand, word=word)))

        def step() -> None:
            jax.block_until_ready(compiled(weights))

        def result() -> tuple[float, float]:
            value, gradients = compiled(weights)
            return float(value), max(float(abs(g).max()) for g in gradients.values())

        step.result = result  # type: ignore[attr-defined]  # what is compared, apart from what is timed
        self.step, self.with_gradients = step, lambda: compiled(weights)


class Casadi:
    """CasADi: the same scalars, as an SX function that its virtual machine runs."""

    name = "CasADi, SX function"

    def __init__(self, program: str) -> None:
        import casadi
        import numpy as np

        assert program == "transformer"
        numbers: list[float] = []
        symbols: list[Any] = []

        def leaf(number: float) -> Scalar:
            numbers.append(number)
            symbols.append(casadi.SX.sym("p"))
            return Scalar(symbols[-1])

        def softmax(xs: list[Scalar]) -> list[Scalar]:
            largest = xs[0].x
            for x in xs[1:]:
                largest = casadi.fmax(largest, x.x)
            powers = [(x - largest).exp() for x in xs]
            total = sum(powers)
            return [power / total for power in powers]

        transformer.softmax = softmax
        loss = transformer.loss(transformer.parameters(leaf), leaf).x
        vector = casadi.vertcat(*symbols)
        function = casadi.Function("loss", [vector], [loss, casadi.gradient(loss, vector)])
        inputs, value, gradient = np.array(numbers), np.zeros(1), np.zeros(len(numbers))
        buffer, evaluate = function.buffer()
        buffer.set_arg(0, memoryview(inputs))
        buffer.set_res(0, memoryview(value))
        buffer.set_res(1, memoryview(gradient))
        kept = (function, buffer, inputs)  # CasADi has their addresses only

        def step() -> None:
            evaluate()

        step.kept = kept  # type: ignore[attr-defined]  # functions take attributes

        def result() -> tuple[float, float]:
            evaluate()
            return float(value[0]), float(abs(gradient).max())

        step.result = result  # type: ignore[attr-defined]  # what is compared, apart from what is timed
        self.step = step


class Scalar:
    """A CasADi symbol with the operators and methods that the program uses."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __add__(self, other: Any) -> Scalar:
        return Scalar(self.x + getattr(other, "x", other))

    def __sub__(self, other: Any) -> Scalar:
        return Scalar(self.x - getattr(other, "x", other))

    def __mul__(self, other: Any) -> Scalar:
        return Scalar(self.x * getattr(other, "x", other))

    def __truediv__(self, other: Any) -> Scalar:
        return Scalar(self.x / getattr(other, "x", other))

    def __pow__(self, power: float) -> Scalar:
        return Scalar(self.x**power)

    def __neg__(self) -> Scalar:
        return Scalar(-self.x)

    __radd__, __rmul__ = __add__, __mul__

    def exp(self) -> Scalar:
        """E to the power of this."""
        import casadi

        return Scalar(casadi.exp(self.x))

    def log(self) -> Scalar:
        """The natural logarithm."""
        import casadi

        return Scalar(casadi.log(self.x))

    def relu(self) -> Scalar:
        """The positive part."""
        import casadi

        return Scalar(casadi.fmax(self.x, 0))
