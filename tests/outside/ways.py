"""The ways in which a program is run: as it is, and compiled by each backend."""

import micrograd as mg

WAYS = {
    "eager": lambda f: f,
    "numpy": lambda f: mg.compile(f, backend="numpy"),
    "llvm": lambda f: mg.compile(f, backend="llvm"),
}
