"""NumPy, JAX and PyTorch behind the same few names, so that a program in arrays is written once.

Each is its library, with the functions whose names or ways differ.
"""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class ArrayLibrary:
    """An array library, as it is but for what the subclass defines."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name)

    def scan(self, step: Callable[[Any, Any], tuple[Any, Any]], state: Any, inputs: Any) -> tuple[Any, Any]:
        """The last state, and the outputs of all steps; a step gives of a state and an input a state and an output."""
        outputs = []
        for item in inputs:
            state, output = step(state, item)
            outputs.append(output)
        return state, self.stack(outputs)

    def causal_mask(self, length: int) -> Any:
        """0 where a letter may look, minus infinity at later ones."""
        return self.triu(self.full((length, length), -math.inf), 1)

    def placed(self, numbers: Any, shape: tuple[int, int], rows: Any, columns: Any) -> Any:
        """Matrices of zeros with numbers in these positions."""
        matrices = self.zeros((len(numbers), *shape))
        matrices[:, rows, columns] = numbers
        return matrices


class Numpy(ArrayLibrary):
    def __init__(self) -> None:
        import numpy as np

        super().__init__(np)

    def array(self, numbers: Any) -> Any:
        """An array of numbers that are given in lists."""
        return self.library.array(numbers)[()]  # a single one is a float, which is faster

    def relu(self, x: Any) -> Any:
        return self.maximum(x, 0)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + self.exp(-x))

    def logsumexp(self, x: Any, axis: int) -> Any:
        """The logarithm of the sum of the exponentials."""
        largest = x.max(axis, keepdims=True)
        return self.log(self.exp(x - largest).sum(axis)) + largest.squeeze(axis)

    def softmax(self, x: Any) -> Any:
        """Shares along the last axis."""
        powers = self.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        return (self.logsumexp(scores, 1) - scores[self.arange(len(scores)), classes]).mean()

    def solved_below(self, factor: Any, numbers: Any) -> Any:
        """What a lower triangular matrix is to be multiplied with. NumPy has nothing quicker for these."""
        return self.linalg.solve(factor, numbers)


class Jax(ArrayLibrary):
    """JAX, in doubles."""

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        super().__init__(jnp)
        self.jax = jax
        self.relu, self.sigmoid, self.softmax = jax.nn.relu, jax.nn.sigmoid, jax.nn.softmax
        self.scan, self.logsumexp = jax.lax.scan, jax.scipy.special.logsumexp

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        return -self.jax.nn.log_softmax(scores)[self.arange(len(scores)), classes].mean()

    def placed(self, numbers: Any, shape: tuple[int, int], rows: Any, columns: Any) -> Any:
        """Matrices of zeros with numbers in these positions."""
        positions = self.array(rows), self.array(columns)
        return self.zeros((len(numbers), *shape)).at[:, positions[0], positions[1]].set(numbers)

    def solved_below(self, factor: Any, numbers: Any) -> Any:
        """What a lower triangular matrix is to be multiplied with."""
        return self.jax.scipy.linalg.solve_triangular(factor, numbers, lower=True)


class Torch(ArrayLibrary):
    """PyTorch, in doubles, on one thread."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        super().__init__(torch)
        self.array, self.cross_entropy = torch.tensor, torch.nn.functional.cross_entropy
        self.cross = torch.linalg.cross

    def softmax(self, x: Any) -> Any:
        """Shares along the last axis."""
        return self.library.softmax(x, -1)

    def solved_below(self, factor: Any, numbers: Any) -> Any:
        """What a lower triangular matrix is to be multiplied with."""
        return self.linalg.solve_triangular(factor, numbers[:, None], upper=False)[:, 0]


def casadi_functions() -> SimpleNamespace:
    """The functions of micrograd that the programs use, for the symbols of CasADi's SX and for floats."""
    import casadi

    def dot(xs: Any, ys: Any) -> Any:
        products = [x * y for x, y in zip(xs, ys, strict=True)]
        return sum(products[1:], products[0])

    def mean(xs: Any) -> Any:
        return sum(xs[1:], xs[0]) / len(xs)

    def largest(xs: Any) -> Any:
        highest = xs[0]
        for x in xs[1:]:
            highest = casadi.fmax(highest, x)
        return highest

    def powers(xs: Any) -> tuple[Any, list[Any]]:
        shift = largest(xs)
        return shift, [casadi.exp(x - shift) for x in xs]

    def softmax(xs: Any) -> list[Any]:
        _, found = powers(xs)
        total = sum(found[1:], found[0])
        return [power / total for power in found]

    def logsumexp(xs: Any) -> Any:
        shift, found = powers(xs)
        return casadi.log(sum(found[1:], found[0])) + shift

    def cross_entropy(scores: Any, target: Any) -> Any:
        if isinstance(target, list):
            return mean([cross_entropy(row, each) for row, each in zip(scores, target, strict=True)])
        return logsumexp(scores) - scores[target]

    def scan(step: Any, state: Any, inputs: Any) -> tuple[Any, list[Any]]:
        outputs = []
        for item in inputs:
            state, output = step(state, item)
            outputs.append(output)
        return state, outputs

    return SimpleNamespace(
        scan=scan,
        dot=dot,
        mean=mean,
        softmax=softmax,
        logsumexp=logsumexp,
        losses=SimpleNamespace(cross_entropy=cross_entropy),
        take=lambda sequence, index: sequence[index],
        sigmoid=lambda x: 1 / (1 + casadi.exp(-x)),
        relu=lambda x: casadi.fmax(x, 0),
        **{name: getattr(casadi, name) for name in ("exp", "log", "tanh", "sqrt", "sin", "cos")},
    )
