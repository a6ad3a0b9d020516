"""Numbers of code that a backend writes with operators, and the base operations that operators are enough for.

The LLVM backend writes instructions with them, the C backend expressions, and JAX hands arrays to XLA. So the formulas
of composites, which are written with operators for everybody, become code in all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from micrograd.compiler.ir.entries import DIFFERENTIATED_AS
from micrograd.engine import further_primitives, primitives

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


class Written(ABC):
    """A number of the code: its operators write the code of another one."""

    __hash__ = None  # type: ignore[assignment]  # == is no question of identity

    @abstractmethod
    def operation(self, sign: str, x: Any, y: Any) -> Any:
        """What ``x sign y`` gives, for + - * / and **; one of both may be a float."""

    @abstractmethod
    def comparison(self, sign: str, other: Any) -> Any:
        """What ``self sign other`` gives: 1 where it holds, else 0."""

    @staticmethod
    def _operator(sign: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """An operator, and its reflection."""
        return lambda x, y: x.operation(sign, x, y), lambda y, x: y.operation(sign, x, y)

    @staticmethod
    def _comparison(sign: str) -> Callable[..., Any]:
        return lambda x, y: x.comparison(sign, y)

    __add__, __radd__ = _operator("+")
    __sub__, __rsub__ = _operator("-")
    __mul__, __rmul__ = _operator("*")
    __truediv__, __rtruediv__ = _operator("/")
    __pow__, __rpow__ = _operator("**")
    __lt__, __le__, __gt__, __ge__ = map(_comparison, ("<", "<=", ">", ">="))
    __eq__ = _comparison("==")


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


def built_in(name: str) -> Primitive:
    """The primitive of this name that micrograd comes with, also where a user's has taken its place in the table."""
    found: Primitive = getattr(primitives, name, None) or getattr(further_primitives, name)
    return found


_SAME_NAME = "exp expm1 log sqrt sin cos tan tanh log2 log10 hypot floor abs"
_ARC = "asin acos atan asinh acosh atan2"  # which are arcsin and so on there


def functions_of(library: Any) -> dict[Primitive, Callable[..., Any]]:
    """The base operations that numpy and jax.numpy have in common, by one name, as a backend on arrays needs them."""
    functions = WITH_OPERATORS | {built_in(name): getattr(library, name) for name in _SAME_NAME.split()}
    functions |= {built_in(name): getattr(library, f"arc{name[1:]}") for name in _ARC.split()}
    return functions | {
        primitives.where: lambda condition, x, y: library.where(condition != 0, x, y),
        primitives.relu: lambda x: library.where(x <= 0, 0.0, x),
        primitives.maximum: lambda x, y: library.where((x >= y) | library.isnan(x), x, y),
        primitives.minimum: lambda x, y: library.where((x <= y) | library.isnan(x), x, y),
    }
