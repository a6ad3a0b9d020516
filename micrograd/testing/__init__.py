"""Check gradients, of this library or any other, and draw random programs to check them on.

gradcheck            a gradient against finite differences, at a point of your choice
numerical_gradient   these differences alone
check_primitive      all that a custom primitive must do
strategies           numbers, programs, networks and data for Hypothesis (which must be installed)
"""

from typing import TYPE_CHECKING, Any

from micrograd.testing.check_primitive import PrimitiveError, check_primitive
from micrograd.testing.checking import GradientError, Report, Row, gradcheck, numerical_gradient
from micrograd.testing.programs import Expression, Program

if TYPE_CHECKING:
    from micrograd.testing import strategies

__all__ = [
    "Expression",
    "GradientError",
    "PrimitiveError",
    "Program",
    "Report",
    "Row",
    "check_primitive",
    "gradcheck",
    "numerical_gradient",
    "strategies",
]


def __getattr__(name: str) -> Any:
    if name == "strategies":  # which loads Hypothesis, so not before it is asked for
        from importlib import import_module

        return import_module("micrograd.testing.strategies")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
