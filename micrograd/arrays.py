"""Arrays of Values: NumPy's own object arrays, with Values in them.

There is no tensor class. ``array`` makes an ndarray whose elements are Values, and NumPy does the rest with
the operators and methods that Values have: ``a @ b`` multiplies and adds them, ``np.exp(a)`` calls
``exp()`` on each, and slicing, broadcasting, ``sum``, ``reshape`` and ``concatenate`` only move them.

    w = array([[1.0, 2.0], [3.0, 4.0]])
    (w @ [1.0, -1.0]).sum().backward()
    gradients(w)                          # [[1, -1], [1, -1]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.axes import array_of_objects, required_numpy
from micrograd._support.checks import is_unknown, required_number
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from numpy import ndarray


def array(
    nested: Any, shape: tuple[int, ...] | int | None = None, *, label: str = "", requires_grad: bool = True
) -> ndarray[Any, Any]:
    """An array of Values.

    Args:
        nested: numbers or Values in nested lists, or a NumPy array of them; or, with a shape, a
            function that takes each index and returns the number there.
        shape: the shape, with a function.
        label: labels the new Values, with their index: ``w[0, 1]``.
        requires_grad: False for constants.

    Returns:
        An object array. A Value among the elements stays that Value; a number becomes a fresh leaf. Inside a
        compiled function, comparisons of the array can be compiled.

    Raises:
        TypeError: if an element is neither a number nor a Value, or a function is given without a shape.
        ValueError: if the nested lists are not of one shape.
        ImportError: if NumPy is not installed.

    Example:
        >>> w = array(lambda row, column: row + 10 * column, shape=(2, 3))
        >>> numbers(w)
        array([[ 0., 10., 20.],
               [ 1., 11., 21.]])
        >>> (w * w).sum().backward()
        >>> gradients(w)[1]
        array([ 2., 22., 42.])
    """
    numpy = required_numpy()
    if callable(nested):
        if shape is None:
            raise TypeError("an array of a function needs its shape: array(function, shape=(2, 3))")
        elements: Any = _filled(numpy, nested, shape)
    elif shape is not None:
        raise TypeError("shape is for a function of the index; to shape numbers, reshape their array")
    else:
        elements = array_of_objects(nested)
    result = numpy.empty(elements.shape, dtype=object)
    for index in numpy.ndindex(elements.shape):
        element = elements[index]
        if is_unknown(element) and element.is_number:  # of a compiled function
            element = element.as_plain(Value)
        elif not isinstance(element, Value):
            name = f"{label}[{', '.join(map(str, index))}]" if label else ""
            element = Value(element, label=name, requires_grad=requires_grad)
        result[index] = element
    return Value._array(result)


def numbers(values: Any) -> ndarray[Any, Any]:
    """The numbers of an array of Values, as a float array of the same shape.

    Example:
        >>> numbers([Value(1.0), Value(2.0)])
        array([1., 2.])
    """
    return _each(values, lambda value: value.data if isinstance(value, Value) else required_number(value, "an element"))


def gradients(values: Any) -> ndarray[Any, Any]:
    """The gradients of an array of Values, as a float array of the same shape; 0 for plain numbers.

    Example:
        >>> x = Value(3.0)
        >>> (x * x).backward()
        >>> gradients([x, 1.0])
        array([6., 0.])
    """
    return _each(values, lambda value: float(value.grad) if isinstance(value, Value) else _no_gradient(value))


def expm(a: Any) -> Any:
    """The exponential of a matrix, or of a stack of matrices: ``scipy.linalg.expm`` for Values.

    Args:
        a: an array of Values or numbers whose last two axes have the same length.

    Example:
        >>> expm([[0.0, 1.0], [0.0, 0.0]])
        array([[1., 1.],
               [0., 1.]])
    """
    from micrograd.engine import linear_algebra, value_arrays

    return value_arrays.arranged(linear_algebra.expm(a))


def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution of linear equations with a triangular matrix: ``scipy.linalg.solve_triangular`` for Values.

    Args:
        a: a square matrix; its other triangle is ignored.
        b: the right-hand side, or several of them as columns.
        trans: 1 or "T" for the equations with the transposed triangle.
        lower: whether it is the lower triangle.
        unit_diagonal: whether to read the diagonal as ones.

    Raises:
        numpy.linalg.LinAlgError: if an element of the diagonal is 0.

    Example:
        >>> solve_triangular([[2.0, 9.0], [1.0, 1.0]], [2.0, 3.0], lower=True)
        array([1., 2.])
    """
    from micrograd.engine import linear_algebra, value_arrays

    return value_arrays.arranged(linear_algebra.solve_triangular(a, b, trans, lower, unit_diagonal))


def cho_solve(factor_and_lower: tuple[Any, bool], b: Any) -> Any:
    """The solution of linear equations, from the Cholesky factor of the matrix: ``scipy.linalg.cho_solve`` for Values.

    Args:
        factor_and_lower: the factor, and whether it is the lower one, as ``np.linalg.cholesky`` gives.
        b: the right-hand side, or several of them as columns.

    Example:
        >>> cho_solve(([[2.0, 0.0], [0.0, 1.0]], True), [4.0, 3.0])
        array([1., 3.])
    """
    from micrograd.engine import linear_algebra, value_arrays

    return value_arrays.arranged(linear_algebra.cho_solve(factor_and_lower, b))


def convolve2d(a: Any, kernel: Any, mode: str = "full") -> Any:
    """The convolution of two matrices: ``scipy.signal.convolve2d`` for Values.

    Args:
        a: an array of Values or numbers, with two axes.
        kernel: another one.
        mode: "full"; "same" for the shape of a; or "valid" for the part that needs no zeros around a.

    Raises:
        ValueError: for another shape or mode; with "valid", for a kernel larger than a.

    Example:
        >>> convolve2d([[1.0, 2.0], [3.0, 4.0]], [[1.0, -1.0]], mode="valid")
        array([[1.],
               [1.]])
    """
    from micrograd.engine import signals, value_arrays

    return value_arrays.arranged(signals.convolve2d(a, kernel, mode))


def _no_gradient(number: Any) -> float:
    required_number(number, "an element")
    return 0.0


def _each(values: Any, number: Callable[[Any], float]) -> ndarray[Any, Any]:
    numpy, elements = required_numpy(), array_of_objects(values)
    result = numpy.empty(elements.shape)
    for index in numpy.ndindex(elements.shape):
        result[index] = number(elements[index])
    return result


def _filled(numpy: ModuleType, function: Callable[..., Any], shape: tuple[int, ...] | int) -> Any:
    elements = numpy.empty(shape, dtype=object)
    for index in numpy.ndindex(elements.shape):
        elements[index] = function(*index)
    return elements
