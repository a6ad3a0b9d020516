"""Numbers of code that a backend writes with operators, and the base operations that operators are enough for.

The LLVM backend writes instructions with them, the C backend expressions. So the formulas of composites, which are
written with operators for everybody, become code in both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from micrograd.compiler.ir.entries import DIFFERENTIATED_AS
from micrograd.engine import primitives

if TYPE_CHECKING:
    from collections.abc import Callable


class Written(ABC):
    """A number of the code: its operators write the code of another one."""

    __hash__ = None  # type: ignore[assignment]  # == is no question of identity

    @abstractmethod
    def operation(self, sign: str, x: Any, y: Any) -> Any:
        """What ``x sign y`` gives, for + - * / and **; one of both may be a float."""

    @abstractmethod
    def comparison(self, sign: str, other: Any) -> Any:
        """What ``self sign other`` gives: 1 where it holds, else 0."""

    def __add__(self, other: Any) -> Any:
        return self.operation("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.operation("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return self.operation("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.operation("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.operation("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.operation("*", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self.operation("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.operation("/", other, self)

    def __pow__(self, other: Any) -> Any:
        return self.operation("**", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self.operation("**", other, self)

    def __lt__(self, other: Any) -> Any:
        return self.comparison("<", other)

    def __le__(self, other: Any) -> Any:
        return self.comparison("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self.comparison(">", other)

    def __ge__(self, other: Any) -> Any:
        return self.comparison(">=", other)

    def __eq__(self, other: object) -> Any:
        return self.comparison("==", other)


WITH_OPERATORS: dict[Any, Callable[..., Any]] = {
    primitives.identity: lambda x: x,
    primitives.detach: lambda x: x,
    DIFFERENTIATED_AS: lambda x, _: x,
    primitives.is_zero: lambda x: x == 0.0,
    primitives.equal: lambda x, y: x == y,
    primitives.less: lambda x, y: x < y,
    primitives.less_equal: lambda x, y: x <= y,
    primitives.neg: lambda x: -x,
    primitives.add: lambda x, y: x + y,
    primitives.sub: lambda x, y: x - y,
    primitives.mul: lambda x, y: x * y,
    primitives.div: lambda x, y: x / y,
    primitives.pow: lambda x, y: x**y,
}
_LIBRARY = (
    "expm1 exp2 log log1p log2 log10 sin cos tan asin acos atan atan2 hypot sinh cosh tanh asinh acosh atanh erf erfc"
)
OF_THE_LIBRARY = _LIBRARY.split()  # functions of the C library that have the name of their primitive
