"""Sparse Jacobians and Hessians, with the zeros that are known from the graph left out.

The second residual of

    def f(x):
        return [x[0] * x[1], x[1] ** 2]

does not depend on x[0]. So the Jacobian has three entries, and each of them is a separate expression:

    row 0:   x[1]   x[0]
    row 1:     .    2 * x[1]

A row is computed by a backward pass through what its residual depends on, and through nothing else. So the work for a
Jacobian is that for its residuals, however many variables there are. Compiled, each entry is an output of the program,
and rows that are computed alike are one kernel.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import real_number
from micrograd._support.containers import Assembled, array_of, flatten
from micrograd.engine.choices import watching_choices
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value
from micrograd.transforms import OUTPUT, Inputs, check_differentiable, check_one_argument, grad, value_and_grad

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    from scipy.sparse import csr_array

    P = ParamSpec("P")

_TRIANGLES = (None, "upper", "lower")


def sparse_jacobian(f: Callable[P, Any], argnums: int = 0) -> Callable[P, csr_array[Any]]:
    """The function that returns the Jacobian of f as a sparse matrix.

    Args:
        f: a function that returns numbers in lists, tuples, dicts or arrays. These numbers, in order, are the rows.
        argnums: which argument to differentiate by. Its numbers, in order, are the columns.

    Returns:
        A function of the same arguments, whose result is a ``scipy.sparse.csr_array`` of floats, sorted and without
        duplicates. It has every entry that can be other than 0, for any choice of ``where`` and ``take``; an entry that
        happens to be 0 is stored. If f decides by ``if``, it has the entries of the path taken.

    Raises:
        TypeError: when called, if f returns one number (see ``grad``), or a result that is no number.
        ValueError: when called, if f returns no numbers, or if its result depends on Values that require a gradient,
            which a sparse matrix cannot hold: see ``jacobian``.
        ImportError: when called, if SciPy is not installed.

    Example:
        >>> slopes = sparse_jacobian(lambda x: [x[0] * x[1], x[1] ** 2])([2.0, 3.0])
        >>> slopes.toarray().tolist(), slopes.nnz
        ([[3.0, 2.0], [0.0, 6.0]], 3)
    """
    check_differentiable(f)
    check_one_argument(argnums, "sparse_jacobian")

    def made(inputs: Inputs, settings: dict[str, Any]) -> csr_array[Any]:
        result = _run(inputs, f, settings)
        if result is None:
            raise TypeError(
                "sparse_jacobian takes a function that returns numbers, not NoneType: end it with return, and a list "
                "or an array of them"
            )
        if isinstance(result, Value) or real_number(result) is not None:
            raise TypeError(
                "sparse_jacobian takes a function that returns several numbers, in a list or an array; of one number "
                "mg.grad gives the derivatives; for a matrix with one row, return [number]"
            )
        return _matrix(inputs, flatten(result, OUTPUT)[0], "sparse_jacobian")

    return _derivatives(f, argnums, made)


def sparse_hessian(
    f: Callable[P, Any], argnums: int = 0, *, triangle: str | None = None
) -> Callable[P, csr_array[Any]]:
    """The function that returns the second derivatives of f as a sparse matrix.

    Args:
        f: a function that returns one number.
        argnums: which argument to differentiate by. Its numbers, in order, are the rows and the columns.
        triangle: ``"upper"`` or ``"lower"`` for the entries on the diagonal and on that side of it; None for all.

    Returns:
        A function of the same arguments; see ``sparse_jacobian``.

    Raises:
        ValueError: for another triangle; and as ``sparse_jacobian`` does.
        TypeError: as ``grad`` does.

    Example:
        >>> curvature = sparse_hessian(lambda x: x[0] ** 2 * x[1] + x[2] ** 2)([2.0, 3.0, 1.0])
        >>> curvature.toarray().tolist(), curvature.nnz
        ([[6.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 2.0]], 4)
    """
    check_differentiable(f)
    check_one_argument(argnums, "sparse_hessian")
    if triangle not in _TRIANGLES:
        raise ValueError(f'triangle must be "upper", "lower" or None, not {triangle!r:.80}')
    slopes = grad(f, argnums)

    def made(inputs: Inputs, settings: dict[str, Any]) -> csr_array[Any]:
        found = flatten(_run(inputs, slopes, settings), OUTPUT)[0]
        return _matrix(inputs, found, "sparse_hessian", triangle)

    return _derivatives(f, argnums, made)


def sparsity(f: Callable[..., Any], *arguments: Any, argnums: int = 0, **settings: Any) -> csr_array[Any]:
    """Which derivatives of f can be other than 0: the pattern of the compiled ``sparse_jacobian``.

    The pattern of ``sparse_hessian(f)`` is ``sparsity(mg.grad(f), ...)``. It holds for all numbers, with both sides of
    ``where``, all elements that ``take`` may select, and all paths of ``if``.

    Args:
        f: a function that can be compiled, and returns numbers in lists, tuples, dicts or arrays.
        *arguments: of f; only their structure matters.
        argnums: which argument to differentiate by.
        **settings: named arguments of f.

    Returns:
        A ``scipy.sparse.csr_array`` of bools, which a notebook shows as a picture and ``mg.save`` writes as one.

    Raises:
        TraceError: if f cannot be compiled, or has more than 64 paths.
        ValueError: if f returns another number of residuals on another path.

    Example:
        >>> print(sparsity(lambda x: [x[0] * x[1], x[1] ** 2], [2.0, 3.0]).toarray().astype(int))
        [[1 1]
         [0 1]]
    """
    from micrograd.compiler import compile as compiled_function
    from micrograd.draw.pattern import Pattern

    slopes = compiled_function(sparse_jacobian(f, argnums), backend="numpy")
    found = slopes(*arguments, **settings)
    pattern = Pattern(_on_all_paths(found, slopes, lambda result: result, arguments, settings), dtype=bool)
    pattern.data[:] = True  # an entry that happens to be 0 is one of them
    return pattern


def _run(inputs: Inputs, f: Callable[..., Any], settings: dict[str, Any]) -> Any:
    """What f gives for the fresh Values."""
    if (tracer := tracer_on_top()) is not None:
        tracer.write_iterations()
    return inputs.run(f, settings)


def _matrix(inputs: Inputs, outputs: list[Any], name: str, triangle: str | None = None) -> Any:
    """The derivatives of outputs as a sparse matrix; while tracing, what makes one of the program's results."""
    import numpy as np
    import scipy.sparse  # noqa: F401  # its absence is noticed before the work

    if not outputs and inputs.fresh:
        raise ValueError(f"{name} takes a function that returns numbers; this one returned an empty result")
    inputs.connect(outputs)
    if inputs.is_connected:
        raise ValueError(
            f"{name} gives a matrix of plain numbers, through which no gradient flows, but the function depends on "
            "Values that require a gradient: use mg.jacobian, or mg.detach what is to be constant"
        )
    found = inputs.sparse_entries(outputs, symmetric=name == "sparse_hessian")
    rows, columns = (np.array(numbers, dtype=np.int64) for numbers in found[:2])
    entries = np.fromiter(found[2], object, len(rows))
    order = np.lexsort([columns, rows])
    if triangle is not None:
        order = order[columns[order] >= rows[order] if triangle == "upper" else columns[order] <= rows[order]]
    rows, columns, entries = rows[order], columns[order], entries[order]
    shape = len(outputs), len(inputs.fresh)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=shape[0])))
    assembled = _Pattern(shape, columns, starts)
    numbers = array_of(entries.shape)(entries.tolist())
    return assembled([numbers]) if tracer_on_top() is None else Assembled([numbers], assembled, f"the result of {name}")


def _derivatives(
    f: Callable[..., Any], argnums: int, made: Callable[[Inputs, dict[str, Any]], Any]
) -> Callable[..., csr_array[Any]]:
    """The function of f's arguments that gives a matrix.

    Args:
        f: what is differentiated.
        argnums: by which argument.
        made: makes the matrix of the operations that f does on inputs.
    """

    def of_one_call(*arguments: Any, **settings: Any) -> Any:
        return made(Inputs(arguments, argnums, as_numbers=True), settings)

    @cache
    def of_all_calls() -> Callable[..., Any]:
        from micrograd.compiler import compile as compiled_function

        return compiled_function(of_one_call, backend="numpy")

    def derivatives(*arguments: Any, **settings: Any) -> csr_array[Any]:
        with watching_choices() as choices:
            found = of_one_call(*arguments, **settings)
        if choices and tracer_on_top() is None:
            return _with_what_may_occur(found, of_all_calls(), arguments, settings)
        return found

    derivatives.differentiated = f  # type: ignore[attr-defined]  # it is called with the same arguments
    return derivatives


def _with_what_may_occur(
    found: Any, compiled: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, Any]
) -> Any:
    """The matrix of an eager call, with the entries of what the function may take in the place of what it took.

    ``mg.take`` and ``np.where`` leave nothing in the graph of an eager call of what they did not take. A compiled
    function has it, on the path of the call. One that cannot be compiled keeps the entries of its call.
    """
    from micrograd.compiler import TraceError

    try:
        whole = compiled(*arguments, **settings)
    except (TraceError, ArithmeticError, ValueError):
        return found
    return _joined(found, whole)


def _on_all_paths(
    found: Any,
    compiled: Any,
    matrix_of: Callable[[Any], Any],
    arguments: tuple[Any, ...],
    settings: dict[str, Any],
) -> Any:
    """A matrix that a compiled function has just given, with the entries of all paths that the function may take.

    Args:
        found: the matrix.
        compiled: the function.
        matrix_of: where the matrix is in its result.
        arguments: of the call.
        settings: the same.
    """
    if compiled.has_paths():
        for result in compiled.results_of_paths(*arguments, **settings):
            other = matrix_of(result).assemble([0.0])
            if other.shape != found.shape:
                raise ValueError(
                    f"on one path the function returns {found.shape[0]} numbers, on another {other.shape[0]}: return "
                    "as many on each"
                )
            found = _joined(found, other)
    return found


def _joined(found: Any, other: Any) -> Any:
    """A matrix with the entries of another one, too, which are 0 there."""
    import numpy as np

    (rows, columns), (others, beside), width = _positions(found), _positions(other), found.shape[1]
    wanted = width * rows + columns
    keys = np.union1d(wanted, width * others + beside)
    data = np.zeros(len(keys))
    data[np.searchsorted(keys, wanted)] = found.data
    starts = np.searchsorted(keys, width * np.arange(found.shape[0] + 1))
    return _Pattern(found.shape, keys - width * np.repeat(np.arange(found.shape[0]), np.diff(starts)), starts)([data])


@dataclass(frozen=True)
class _Pattern:
    """Where the entries of a matrix are.

    Attributes:
        shape: the numbers of rows and columns.
        columns: the column of each entry, row by row.
        starts: where each row begins among these, and where the last ends.
    """

    shape: tuple[int, ...]
    columns: Any
    starts: Any

    @cached_property
    def _empty(self) -> csr_array[Any]:
        import numpy as np
        from scipy.sparse import csr_array

        made = csr_array((np.zeros(len(self.columns)), self.columns, self.starts), shape=self.shape)
        made.has_canonical_format = True
        return made

    def __call__(self, parts: list[Any]) -> csr_array[Any]:
        """The matrix with these entries."""
        import numpy as np

        pattern = self._empty
        made: csr_array[Any] = object.__new__(type(pattern))  # the constructor takes twenty times as long
        made.__dict__.update(vars(pattern))
        made.data = np.asarray(parts[0], dtype=float)
        made.indices, made.indptr = pattern.indices.copy(), pattern.indptr.copy()
        return made


class NonlinearProgram:
    """An objective and constraints, with the derivatives that solvers of nonlinear programs ask for; see ``nlp``.

    The methods without arguments and those of a point are the callbacks of cyipopt: ``cyipopt.Problem(n, m,
    problem_obj=program, ...)``. A point is an array of ``variables`` floats.

    Attributes:
        variables: how many variables there are.
        constraint_count: how many constraints there are.
    """

    def __init__(
        self, objective: Callable[..., Any], constraints: Callable[..., Any] | None, start: Any, compiled: bool
    ) -> None:
        import numpy as np

        from micrograd.compiler import compile as compiled_function

        for name, function in ("objective", objective), ("constraints", constraints):
            if not callable(function) and (function is not None or name == "objective"):
                raise TypeError(f"{name} must be a function of the point, not {type(function).__name__}")

        def of_first_order(point: Any) -> Any:
            value, slopes = value_and_grad(objective)(point)
            if constraints is None:
                return value, slopes, [], None
            inputs = Inputs((point,), 0, as_numbers=True)
            residuals = _residuals(_run(inputs, constraints, {}))  # once, for their values and their derivatives
            matrix = _matrix(inputs, residuals, "sparse_jacobian")
            return value, slopes, list(map(inputs.returned, residuals)), matrix

        def lagrangian(point: Any, multipliers: Any, factor: Any) -> Any:
            total = factor * objective(point)
            if constraints is None:
                return total
            pairs = zip(multipliers, _residuals(constraints(point)), strict=True)
            return sum((multiplier * residual for multiplier, residual in pairs), total)

        def of_second_order(point: Any, multipliers: Any, factor: float) -> Any:
            return sparse_hessian(lagrangian, triangle="lower")(point, multipliers, factor)

        prepared: Callable[..., Any] = compiled_function if compiled else lambda function: function
        self._first, self._second = prepared(of_first_order), prepared(of_second_order)
        point = np.array(start, dtype=float)
        if point.ndim != 1 or not point.size:
            raise ValueError(f"start must be one number or more in an array with one axis, not of shape {point.shape}")
        self.variables = len(point)
        self._point: Any = None
        self._is_compiled = compiled
        self.constraint_count = -1
        _, _, residuals, slopes = self._at(point)
        self.constraint_count = len(residuals)
        multipliers = np.ones(self.constraint_count)
        self._jacobian_pattern, self._hessian_pattern = slopes, self._second(point, multipliers, 1.0)
        if compiled:
            self._take_all_paths(point, multipliers)

    def _take_all_paths(self, point: Any, multipliers: Any) -> None:
        """Let the patterns have the entries of all paths that another point may take, unless these are too many."""
        from micrograd.compiler import TraceError

        slopes, curvature = self._jacobian_pattern, self._hessian_pattern
        with suppress(TraceError):
            if slopes is not None:
                slopes = _on_all_paths(slopes, self._first, lambda result: result[3], (point,), {})
            given = point, multipliers, 1.0
            curvature = _on_all_paths(curvature, self._second, lambda result: result, given, {})
            self._jacobian_pattern, self._hessian_pattern = slopes, curvature

    def _checked(self, x: Any) -> Any:
        """A point as an array of its own: solvers change theirs in place."""
        import numpy as np

        point = np.array(x, dtype=float)
        if point.shape != (self.variables,):
            raise ValueError(f"this program has {self.variables} variables; a point of shape {point.shape} was given")
        return point

    def _at(self, x: Any) -> Any:
        """What the first program gives at a point, where it runs once."""
        import numpy as np

        point = self._checked(x)
        if self._point is None or not np.array_equal(point, self._point):
            found = self._first(point)
            if self.constraint_count not in (-1, len(found[2])):
                raise ValueError(
                    f"the constraints are {len(found[2])} numbers at this point, and {self.constraint_count} at the "
                    "start: return as many at each point"
                )
            self._found, self._point = found, point
        return self._found

    def objective(self, x: Any) -> float:
        """The objective at a point."""
        return float(self._at(x)[0])

    def gradient(self, x: Any) -> Any:
        """The gradient of the objective at a point: an array of ``variables`` floats."""
        return self._at(x)[1].copy()

    def constraints(self, x: Any) -> Any:
        """The constraints at a point: an array of ``constraint_count`` floats."""
        import numpy as np

        return np.array(self._at(x)[2], dtype=float)

    def jacobianstructure(self) -> tuple[Any, Any]:
        """The rows and the columns of the entries of the constraints' Jacobian."""
        return _positions(self._jacobian_pattern)

    def jacobian(self, x: Any) -> Any:
        """These entries at a point."""
        return self._entries(self._at(x)[3], self._jacobian_pattern)

    def hessianstructure(self) -> tuple[Any, Any]:
        """The rows and the columns of the entries of the Lagrangian's Hessian, its lower triangle."""
        return _positions(self._hessian_pattern)

    def hessian(self, x: Any, multipliers: Any, factor: float) -> Any:
        """These entries at a point.

        Args:
            x: the point.
            multipliers: of the constraints, an array of ``constraint_count`` floats.
            factor: of the objective.
        """
        return self._entries(self._hessian_matrix(x, multipliers, factor), self._hessian_pattern)

    def jacobian_matrix(self, x: Any) -> csr_array[Any]:
        """The Jacobian of the constraints at a point, as a sparse matrix."""
        from scipy.sparse import csr_array

        found = self._at(x)[3]
        return csr_array((0, self.variables)) if found is None else found.copy()

    def objective_hessian(self, x: Any) -> csr_array[Any]:
        """The Hessian of the objective at a point, as a sparse matrix: ``hess`` of ``scipy.optimize.minimize``."""
        import numpy as np

        return _symmetric(self._hessian_matrix(x, np.zeros(self.constraint_count), 1.0))

    def scipy_constraint(self, lower: Any, upper: Any) -> Any:
        """The constraints for ``scipy.optimize.minimize(method="trust-constr")``.

        Args:
            lower: their lower bounds, a number or an array.
            upper: their upper bounds.

        Returns:
            A ``scipy.optimize.NonlinearConstraint``.

        Raises:
            ValueError: if there are no constraints.
        """
        from scipy.optimize import NonlinearConstraint

        if self._jacobian_pattern is None:
            raise ValueError("this program has no constraints: leave out constraints= of minimize")
        return NonlinearConstraint(
            self.constraints,
            lower,
            upper,
            jac=self.jacobian_matrix,
            hess=lambda x, multipliers: _symmetric(self._hessian_matrix(x, multipliers, 0.0)),
        )

    def _hessian_matrix(self, x: Any, multipliers: Any, factor: float) -> Any:
        import numpy as np

        given = np.array(multipliers, dtype=float)
        if given.shape != (self.constraint_count,):
            raise ValueError(
                f"this program has {self.constraint_count} constraints; multipliers of shape {given.shape} were given"
            )
        return self._second(self._checked(x), given, float(factor))

    def _entries(self, found: Any, pattern: Any) -> Any:
        """The entries of a matrix, which must be where those of the pattern are."""
        import numpy as np

        if pattern is None:
            return np.zeros(0)
        if found.nnz < pattern.nnz:
            found = _joined(found, pattern)
        if not (np.array_equal(found.indptr, pattern.indptr) and np.array_equal(found.indices, pattern.indices)):
            instead = "write mg.where in place of if" + ("" if self._is_compiled else ", and compile them")
            raise ValueError(
                "the functions did other operations at this point than at the start, so derivatives lie elsewhere: "
                + instead
            )
        return found.data.copy()


def nlp(
    objective: Callable[..., Any],
    constraints: Callable[..., Any] | None = None,
    *,
    start: Any,
    compile: bool = True,  # noqa: A002  # as in mg.fit
) -> NonlinearProgram:
    """A nonlinear program: all callbacks of a solver, from one definition.

    Values, gradients and the constraints' Jacobian are computed by one program, once for each point; the Hessian of the
    Lagrangian by another. Both matrices are sparse.

    Args:
        objective: a function of an array of variables that returns the number to minimise.
        constraints: a function of the same array that returns numbers in a list or an array; None if there are none.
        start: a point, as an array or a list of numbers, which gives the number of variables.
        compile: whether to compile the functions; then each point may take one of up to 64 paths, as ``if`` decides.
            Otherwise they run eagerly, and must do the same operations at each point.

    Returns:
        An object to pass to cyipopt as ``problem_obj``. For SciPy:

            minimize(p.objective, x, jac=p.gradient, hess=p.objective_hessian, method="trust-constr",
                     constraints=p.scipy_constraint(lower, upper))

    Raises:
        TypeError, ValueError: as ``value_and_grad`` and ``sparse_jacobian`` do.

    Example:
        >>> p = nlp(lambda x: x[0] ** 2 + x[1] ** 2, lambda x: [x[0] * x[1], x[1]], start=[1.0, 2.0])
        >>> p.objective([3.0, 4.0]), p.gradient([3.0, 4.0]).tolist(), p.jacobian([3.0, 4.0]).tolist()
        (25.0, [6.0, 8.0], [4.0, 3.0, 1.0])
        >>> [positions.tolist() for positions in p.jacobianstructure()]
        [[0, 0, 1], [0, 1, 1]]
        >>> p.hessian([3.0, 4.0], [10.0, 0.0], 1.0).tolist()
        [2.0, 10.0, 2.0]
    """
    return NonlinearProgram(objective, constraints, start, compile)


def _residuals(result: Any) -> list[Any]:
    """The numbers that the constraints gave."""
    if result is None or isinstance(result, (Value, float, int)):
        instead = "return them" if result is None else "of a single one, write [number]"
        raise TypeError(
            f"constraints must return numbers in a list or an array, not {type(result).__name__}: {instead}"
        )
    if residuals := flatten(result, OUTPUT)[0]:
        return residuals
    raise ValueError("the constraints are an empty list: leave out constraints= if there are none")


def _positions(pattern: Any) -> tuple[Any, Any]:
    """The rows and the columns of the entries of a matrix, in order."""
    import numpy as np

    if pattern is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr)), pattern.indices.copy()


def _symmetric(lower: Any) -> Any:
    """A matrix of which the lower triangle is given."""
    from scipy.sparse import triu

    return (lower + triu(lower.T, k=1)).tocsr()
