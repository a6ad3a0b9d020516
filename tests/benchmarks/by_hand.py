"""The benchmark's transformer as who knows JAX writes it, in arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import transformer


def loss_by_hand(weights: Any, word: Any) -> Any:
    """The mean negative log likelihood of the letters of a word, which begins and ends with the end."""
    tokens, following = word[:-1], word[1:]
    count, heads = len(tokens), transformer.HEADS
    size = transformer.WIDTH // heads
    mask = jnp.triu(jnp.full((count, count), -jnp.inf), 1)

    def normalised(x: Any) -> Any:
        return x * (jnp.square(x).mean(-1, keepdims=True) + 1e-5) ** -0.5

    x = normalised(weights["letter"][tokens] + weights["position"][:count])
    h = normalised(x)
    q, k, v = ((h @ weights[n].T).reshape(count, heads, size).swapaxes(0, 1) for n in ("query", "key", "value"))
    shares = jax.nn.softmax(q @ k.swapaxes(1, 2) / size**0.5 + mask, -1)
    x = x + (shares @ v).swapaxes(0, 1).reshape(count, -1) @ weights["mix"].T
    x = x + jax.nn.relu(normalised(x) @ weights["widen"].T) @ weights["narrow"].T
    return -jax.nn.log_softmax(x @ weights["output"].T)[jnp.arange(count), following].mean()
