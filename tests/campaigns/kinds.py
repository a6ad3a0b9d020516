"""Expressions on arrays of every dtype, compiled and eager: the same numbers, classes and dtypes, or a refusal.

``python tests/campaigns/kinds.py --backend llvm`` tries all of them, and lists what differs.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import micrograd as mg
from micrograd import Value

DTYPES = [
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
    *(np.float16, np.float32, np.float64),
]
NUMBERS = {
    "vector": [3, 1, 2],
    "large": [100, 120, 7],
    "with 0": [0, 2, 1],
    "matrix": [[1, 2], [3, 4]],
    "no axes": 5,
    "empty": [],
}
KNOWN = {
    "np": np,
    "mg": mg,
    "value": Value(0.3),
    "bytes_": np.array([1, 2, 100], dtype=np.int8),
    "floats": np.array([0.1, 0.2, 0.3], dtype=np.float32),
    "float_": np.float32(0.1),
    "byte": np.int8(100),
}
_OF_ELEMENTS = ["a.ravel()[0]", "a"]
_OPERATORS = [
    *("-{}", "abs({})", "{0}+{0}", "{0}*{0}", "{}-1", "{}*2", "{}*3", "{}*0.5", "0.1*{}", "{}/2", "{}//2", "{}%3"),
    *("{}**2", "{}**3", "{}**5", "2-{}", "1/{}", "{}>1", "{}>0.1", "{}==0.1", "{}*t", "{}*n", "{}//n", "{}>t"),
    *("{}*byte", "byte*{}", "{}*value", "{}+True"),
]
EXPRESSIONS = [
    *(operator.format(item) for item in _OF_ELEMENTS for operator in _OPERATORS),
    *(f"a.{name}()" for name in ("sum", "mean", "prod", "max", "min", "std", "var", "cumsum", "cumprod", "tolist")),
    *(f"np.{name}(a)" for name in ("sqrt", "exp", "sin", "log1p", "square", "sign", "floor", "ceil", "rint", "trunc")),
    *(f"np.{name}(a)" for name in ("negative", "cbrt", "isfinite", "isnan", "ptp", "median", "average", "trace")),
    *(f"np.{name}(a, a)" for name in ("dot", "outer", "vdot", "kron", "cross", "logaddexp", "hypot", "arctan2")),
    *("np.maximum(a, 1)", "np.minimum(a, 2)", "np.maximum(a, 0.1)", "np.maximum(a, t)", "np.clip(a, 1, 2)"),
    *("np.where(a > 1, a, 0)", "np.where(a > 1, a, 0.1)", "np.where(a > 1, 1, 0)", "np.where(a > b, a, b)"),
    *("a.max()*2", "a.sum()*2", "np.mean(a)*2", "np.cumsum(a)*2", "np.sum(a*2)", "np.abs(a)*3", "(a>1)*a", "(a>1)*3"),
    *("a@a", "np.stack([a, a])", "np.concatenate([a.ravel(), a.ravel()])*2", "a.T", "a.ravel(order='K')"),
    *("a.astype(float)*0.1", "a.astype(int)*3", "a.dtype == float", "a.itemsize", "a.nbytes", "a.dtype.kind", "a.size"),
    *("[x*2 for x in a.ravel()]", "sum(list(a.ravel()))", "sum(a.ravel().tolist())", "a.item(0)*3", "a*[1, 2, 3]"),
    *("a*bytes_", "a*floats", "t*floats", "n*bytes_", "t*float_", "a*float_", "np.array([1, 2, 3])*a", "a+b", "a-b"),
    *("a/b", "a>b", "np.einsum('...i,...i->', a, a)", "np.einsum('i->', a.ravel())", "np.linalg.norm(a)"),
    *("np.zeros_like(a)+a", "np.float_power(a, 2)", "np.reciprocal(a)", "a.round()", "np.round(a, 1)", "(a>1).sum()"),
    *("mg.exp(a.ravel()[0])", "mg.maximum(a.ravel()[0], 2)", "mg.dot(list(a.ravel()), list(a.ravel()))"),
    *(
        "np.pad(a, 1)",
        "np.pad(a, 1, constant_values=300)*1",
        "np.pad(a, 1, constant_values=2.5)*1",
        "np.pad(a, 1).tolist()",
    ),
    *(f"np.pad(a, 1, mode='{mode}')*1" for mode in ("edge", "mean", "maximum", "linear_ramp", "wrap")),
    *("np.pad(a, 1, constant_values=t)", "np.pad(a, 1, constant_values=value)", "np.divmod(a, 2)", "divmod(a, t)"),
    *(f"np.{name}(a)" for name in ("modf", "frexp", "signbit", "spacing", "conjugate", "degrees", "positive")),
    *(f"np.{name}(a, 2)" for name in ("fmod", "copysign", "heaviside", "nextafter", "ldexp", "gcd", "left_shift")),
    *(
        "a.conjugate()",
        "np.conj(a)*2",
        "np.divmod(7, a)",
        "divmod(a, a)[1]*2",
        "np.bitwise_and(a, 3)",
        "~a",
        "a.real*2",
    ),
    *(
        "np.var(a, ddof=1)",
        "np.count_nonzero(a > 1)",
        "a.conj()",
        "np.broadcast_to(a, (2, *a.shape))*2",
        "a.reshape(-1)",
    ),
]
SAME = 1e-13  # sums may be taken in another order


def function_of(expression: str) -> Callable[..., Any]:
    """The expression as a function of two arrays and two numbers; with it a number that is surely computed."""
    return eval(f"lambda a, b, t, n: ({expression}, t * 1.5)", KNOWN)  # type: ignore[no-any-return]


def outcome(function: Callable[[], Any]) -> tuple[str, Any]:
    """What a function gives, in words and lists, or what it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "given", _told(function())
        except mg.TraceError as error:
            return "refused", str(error)
        except Exception as error:  # whatever eager raises
            return "raised", type(error).__name__


def _told(item: Any) -> Any:
    if isinstance(item, Value):
        return ["Value", item.data]
    if isinstance(item, np.ndarray) and item.dtype != object:
        return [item.dtype.name, item.shape, item.ravel().tolist()]
    if isinstance(item, (list, tuple, np.ndarray)):
        return [_told(part) for part in item]
    if isinstance(item, np.generic):  # a Python number in the place of NumPy's common ones is as good
        return [item.dtype.name if item.dtype.name not in _COMMON else type(item.item()).__name__, item.item()]
    return [type(item).__name__, item]


_COMMON = ("float64", "int64", "bool")


def is_same(x: Any, y: Any) -> bool:
    """Whether two outcomes are the same, or two numbers but for rounding."""
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(is_same, x, y))
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (x != x and y != y) or abs(x - y) <= SAME * max(abs(x), abs(y))
    return type(x) is type(y) and bool(x == y)


def what_differs(expression: str, dtype: Any, numbers: Any, backend: str) -> str:
    """What compiled code gives, and eager, where they differ, in words; nothing where they agree, or it is refused."""
    f = function_of(expression)
    arguments = np.array(numbers).astype(dtype), np.array(numbers).astype(dtype), 0.1, 3
    eager = outcome(lambda: f(*arguments))
    compiled = outcome(lambda: mg.compile(f, backend=backend)(*arguments))
    if compiled[0] == "refused" or (eager[0] == compiled[0] == "raised") or is_same(eager, compiled):
        return ""
    return f"{expression} of {np.dtype(dtype).name} {numbers}: {eager} eagerly, {compiled} compiled"


def main(arguments: list[str]) -> int:
    """Try all expressions; the number of those that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="numpy")
    backend = parser.parse_args(arguments).backend
    found: Counter[str] = Counter()
    for expression in EXPRESSIONS:
        for dtype in DTYPES:
            for name, numbers in NUMBERS.items():
                what = what_differs(expression, dtype, numbers, backend)
                found["differ" if what else "agree, or are refused"] += 1
                if what:
                    print(name, what)  # noqa: T201
    print(*[f"{count} {what}" for what, count in found.items()], sep="\n")  # noqa: T201
    return found["differ"]


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
