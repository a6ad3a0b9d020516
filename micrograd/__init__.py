"""A scalar autograd engine: write a program on Values, get its exact gradient.

Example:
    >>> import micrograd as mg
    >>> x, y = mg.Value(2.0), mg.Value(-3.0)
    >>> f = x * y + mg.exp(x)
    >>> f.backward()
    >>> y.grad
    2.0
"""

from typing import TYPE_CHECKING

from micrograd import functional, losses, nn, optim, testing
from micrograd.arrays import array, cho_solve, convolve2d, expm, gradients, numbers, solve_triangular
from micrograd.compiler import TraceError, compile, from_jax, to_jax
from micrograd.contexts.anomaly import detect_anomaly
from micrograd.contexts.errors import errors
from micrograd.contexts.no_grad import no_grad
from micrograd.contexts.scope import record_scopes, scope
from micrograd.draw.graph import draw_dot, save, trace
from micrograd.engine.custom import operation, primitive
from micrograd.engine.functions import *
from micrograd.engine.lost_gradients import GradientWarning
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.functional import *
from micrograd.loops import cond, scan, switch, vmap, while_loop
from micrograd.pages import explore
from micrograd.sparse import nlp, sparse_hessian, sparse_jacobian, sparsity
from micrograd.training.fit import fit
from micrograd.training.recording import Recording
from micrograd.transforms import (
    fixed_point,
    grad,
    gradient,
    hessian,
    hvp,
    jacobian,
    jvp,
    root,
    value_and_grad,
    vjp,
)

__all__ = [
    "GradientWarning",
    "Recording",
    "TraceError",
    "Value",
    "__version__",
    "array",
    "cho_solve",
    "compile",
    "cond",
    "convolve2d",
    "detect_anomaly",
    "draw_dot",
    "errors",
    "explore",
    "expm",
    "fit",
    "fixed_point",
    "from_jax",
    "grad",
    "gradient",
    "gradients",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "losses",
    "nlp",
    "nn",
    "no_grad",
    "numbers",
    "operation",
    "optim",
    "primitive",
    "record_scopes",
    "root",
    "save",
    "scan",
    "scope",
    "solve_triangular",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "switch",
    "testing",
    "to_jax",
    "topological_order",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
__all__ += functional.__all__

__version__: str
estimators: "ModuleType"
learn: "ModuleType"

if TYPE_CHECKING:
    from types import ModuleType
else:  # which the type checkers would take for a module that has every name

    def __getattr__(name: str) -> object:
        if name == "__version__":  # importlib.metadata takes longer to load than the rest of micrograd
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("micrograd")
            except PackageNotFoundError:  # as in the browser
                return "not installed"
        if name in ("estimators", "learn"):  # scikit-learn, and the learner's exercises, are loaded when asked for
            from importlib import import_module

            return import_module(f"micrograd.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "estimators", "learn"]


del TYPE_CHECKING
