"""The JAX backend: a function of arrays, which XLA compiles."""
