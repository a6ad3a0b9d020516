"""Which primitives raise for no numbers, so that a program may compute what nobody needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.compiler.ir.entries import DIFFERENTIATED_AS
from micrograd.engine import composites, primitives, special_functions
from micrograd.engine import further_primitives as further

if TYPE_CHECKING:
    from micrograd.engine.primitive import Primitive

# The primitives that raise for no numbers; so do the library's composites, but for a few.
_SAFE = {
    *(primitives.identity, primitives.detach, primitives.is_zero, primitives.equal, primitives.less),
    *(primitives.less_equal, primitives.where, primitives.neg, primitives.add, primitives.sub, primitives.mul),
    *(primitives.relu, primitives.abs, primitives.maximum, primitives.minimum, primitives.tanh),
    *(further.erf, further.erfc, further.asinh, further.atan, further.atan2, further.hypot, further.floor),
    DIFFERENTIATED_AS,
}
_RAISING = {
    *(primitives.lower_power, further.lgamma, further.digamma, further.hurwitz_zeta, further.betaln, further.ndtri),
    *(further.erfinv, further.logit, further.digamma_slope, further.log_ratio, further.xlogy, further.rel_entr),
}


def is_of_library(primitive: Primitive) -> bool:
    """Whether a primitive is one of the library's formulas, which raise nothing inside."""
    formula = getattr(primitive.composite, "func", primitive.composite)  # where it has settings
    return getattr(formula, "__module__", None) in (composites.__name__, special_functions.__name__)


def is_safe(primitive: Primitive) -> bool:
    """Whether a primitive raises for no numbers."""
    return primitive in _SAFE or (is_of_library(primitive) and primitive not in _RAISING)
