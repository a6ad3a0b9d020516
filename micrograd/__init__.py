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

from micrograd import losses, nn, optim, testing
from micrograd.arrays import array, cho_solve, convolve2d, expm, gradients, numbers, solve_triangular
from micrograd.compiler import TraceError, compile, from_jax, to_jax
from micrograd.contexts.anomaly import detect_anomaly
from micrograd.contexts.errors import errors
from micrograd.contexts.no_grad import no_grad
from micrograd.contexts.scope import record_scopes, scope
from micrograd.draw.graph import draw_dot, save, trace
from micrograd.engine.closures import operation
from micrograd.engine.lost_gradients import GradientWarning
from micrograd.engine.order import topological_order
from micrograd.engine.primitive import primitive
from micrograd.engine.scipy_functions import (
    betaln,
    entr,
    erfinv,
    expit,
    gammaln,
    i0,
    i1,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    polygamma,
    rel_entr,
    xlogy,
)
from micrograd.engine.value import Value
from micrograd.explore import explore
from micrograd.functional import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    ceil,
    clip,
    cos,
    cosh,
    degrees,
    detach,
    digamma,
    dot,
    elu,
    erf,
    erfc,
    exp,
    exp2,
    expm1,
    floor,
    fma,
    gelu,
    hypot,
    leaky_relu,
    lgamma,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logsumexp,
    maximum,
    mean,
    minimum,
    radians,
    relu,
    sigmoid,
    sign,
    silu,
    sin,
    sinc,
    sinh,
    softmax,
    softplus,
    sqrt,
    take,
    tan,
    tanh,
    where,
)
from micrograd.loops import cond, scan, switch, vmap, while_loop
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
    "abs",
    "acos",
    "acosh",
    "array",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "betaln",
    "ceil",
    "cho_solve",
    "clip",
    "compile",
    "cond",
    "convolve2d",
    "cos",
    "cosh",
    "degrees",
    "detach",
    "detect_anomaly",
    "digamma",
    "dot",
    "draw_dot",
    "elu",
    "entr",
    "erf",
    "erfc",
    "erfinv",
    "errors",
    "exp",
    "exp2",
    "expit",
    "explore",
    "expm",
    "expm1",
    "fit",
    "fixed_point",
    "floor",
    "fma",
    "from_jax",
    "gammaln",
    "gelu",
    "grad",
    "gradient",
    "gradients",
    "hessian",
    "hvp",
    "hypot",
    "i0",
    "i1",
    "jacobian",
    "jvp",
    "leaky_relu",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_ndtr",
    "logaddexp",
    "logit",
    "logsumexp",
    "losses",
    "maximum",
    "mean",
    "minimum",
    "ndtr",
    "ndtri",
    "nlp",
    "nn",
    "no_grad",
    "numbers",
    "operation",
    "optim",
    "polygamma",
    "primitive",
    "radians",
    "record_scopes",
    "rel_entr",
    "relu",
    "root",
    "save",
    "scan",
    "scope",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "softmax",
    "softplus",
    "solve_triangular",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity",
    "sqrt",
    "switch",
    "take",
    "tan",
    "tanh",
    "testing",
    "to_jax",
    "topological_order",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "where",
    "while_loop",
    "xlogy",
]

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
