"""What tests leave out on JAX: XLA takes a fifth of a second for the smallest program."""

from zlib import crc32


def is_left_out(backend: str, example: object) -> bool:
    """Whether an example of many is left out: on JAX nine in ten are, and always the same."""
    return backend == "jax" and crc32(repr(example).encode()) % 10 > 0
