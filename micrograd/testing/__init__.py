"""Check gradients, of this library or any other, and draw random programs to check them on.

    gradcheck            a gradient against finite differences, at a point of your choice
    numerical_gradient   these differences alone
    strategies           numbers, programs, networks and data for Hypothesis (``micrograd[testing]``)
"""

from micrograd.testing.gradients import GradientError, Report, Row, gradcheck, numerical_gradient

__all__ = ["GradientError", "Report", "Row", "gradcheck", "numerical_gradient"]
