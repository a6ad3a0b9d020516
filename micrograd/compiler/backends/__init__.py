"""Backends run programs: each is one function that makes a run of a program.

``shared/`` has the contract, ``numpy/`` is the reference, ``llvm/`` makes native code, and ``jax/`` makes functions
that XLA compiles for what JAX finds. ``c/`` writes programs as files of C, and runs nothing.
"""
