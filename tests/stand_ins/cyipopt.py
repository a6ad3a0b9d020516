"""A stand-in for cyipopt, which needs IPOPT's library: its Problem, with the signatures that its documentation has.

It calls all callbacks as cyipopt does, by position, and checks what they return as that does. It solves problems with
equations only, by Newton's method on their conditions of optimality.
"""

from typing import Any

import numpy as np
from scipy.sparse import block_array, coo_array, eye_array
from scipy.sparse.linalg import spsolve


class Problem:
    """A nonlinear program whose callbacks are methods of an object."""

    def __init__(
        self, n: int, m: int, problem_obj: Any = None, lb: Any = None, ub: Any = None, cl: Any = None, cu: Any = None
    ) -> None:
        assert lb is ub is None
        assert np.array_equal(cl, cu)
        self._n, self._m, self._object, self._goal = n, m, problem_obj, np.array(cl, dtype=float)
        self._options: dict[str, Any] = {}
        self._jacobian, self._hessian = problem_obj.jacobianstructure(), problem_obj.hessianstructure()
        for positions, rows in (self._jacobian, m), (self._hessian, n):
            row, column = map(np.asarray, positions)
            assert row.dtype.kind == column.dtype.kind == "i"
            assert len(row) == len(column)
            assert (row >= 0).all()
            assert (row < rows).all()
            assert (column >= 0).all()
            assert (column < n).all()
        row, column = self._hessian
        assert (row >= column).all()  # the lower triangle

    def add_option(self, keyword: str, val: Any) -> None:
        self._options[keyword] = val

    def solve(
        self, x: Any, lagrange: Any = (), zl: Any = (), zu: Any = ()
    ) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
        """The solution, and what is known of it."""
        assert len(lagrange) == len(zl) == len(zu) == 0
        point, multipliers = np.array(x, dtype=float), np.zeros(self._m)
        for _ in range(100):
            slopes, misses, step = self._step(point, multipliers)
            change = max(abs(slopes).max(), abs(misses).max(initial=0.0))
            if change < 1e-10:
                break
            point += step[: self._n]  # in place, as IPOPT does
            multipliers = multipliers + step[self._n :]
        found = {"x": point, "g": self._object.constraints(point), "obj_val": self._object.objective(point)}
        return point, {**found, "mult_g": multipliers, "status": 0 if change < 1e-10 else -1}

    def _step(self, x: Any, multipliers: Any) -> tuple[Any, Any, Any]:
        gradient, found = self._object.gradient(x), np.asarray(self._object.constraints(x))
        assert isinstance(self._object.objective(x), float)
        assert gradient.shape == (self._n,)
        assert found.shape == (self._m,)
        slopes = self._filled(self._object.jacobian(x), self._jacobian, (self._m, self._n))
        lower = self._filled(self._object.hessian(x, multipliers, 1.0), self._hessian, (self._n, self._n))
        diagonal = coo_array((lower.diagonal(), (np.arange(self._n),) * 2), shape=lower.shape)
        curvature = lower + lower.T - diagonal + 1e-9 * eye_array(self._n)
        system = block_array([[curvature, slopes.T], [slopes, -1e-12 * eye_array(self._m)]], format="csc")
        residual = np.concatenate([gradient + slopes.T @ multipliers, found - self._goal])
        return residual[: self._n], residual[self._n :], spsolve(system, -residual)

    @staticmethod
    def _filled(entries: Any, positions: Any, shape: tuple[int, int]) -> Any:
        assert entries.shape == positions[0].shape
        assert entries.dtype == float
        return coo_array((entries, positions), shape=shape).tocsr()
