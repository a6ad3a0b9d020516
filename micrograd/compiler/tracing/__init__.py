"""Tracing: a function runs once on symbols, which write down what is done to them."""

from micrograd.compiler.tracing import derivatives as derivatives  # which the tape cannot import, and needs
from micrograd.compiler.tracing import symbol_arrays as symbol_arrays
