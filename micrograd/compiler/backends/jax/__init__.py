"""The JAX backend: a function of arrays, which XLA compiles.

jax_backend.py     a program as one function
jax_reads.py       operands
jax_kernels.py     kernels
jax_loops.py       loops, as scans
jax_functions.py   the forward functions of primitives, and their derivatives for JAX
jax_arrays.py      functions of whole arrays, such as those of linear algebra
jax_checks.py      in which state JAX computes what we do
jax_mesh.py        the devices of JAX that fit shares a batch out to
jax_processes.py   what several processes tell each other before each step
"""
