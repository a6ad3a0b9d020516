"""Sparse Jacobians and Hessians: the numbers of the dense ones, at the positions that a graph says."""

import copy
import importlib
import sys
from collections.abc import Callable
from operator import mul
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.tracing.colours import star_coloured

pytestmark = pytest.mark.slow(together=True)

sparse = pytest.importorskip("scipy.sparse")


def chained(x: Any) -> list[Any]:
    """Residuals of three neighbours each."""
    return [x[k] ** 2 * x[k + 1] - mg.sin(x[k + 2]) for k in range(len(x) - 2)]


def rosenbrock(x: Any) -> Any:
    return sum((100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(len(x) - 1)), 0.0)


POINT = np.array([0.5, -1.0, 2.0, 0.25, 3.0, -0.5])
WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "native": mg.compile,
    "numpy": lambda f: mg.compile(f, backend="numpy"),
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return WAYS[request.param]


def test_a_jacobian_has_the_numbers_of_the_dense_one_and_no_more_entries_than_the_residuals_have_operands(
    way: Any,
) -> None:
    found = way(mg.sparse_jacobian(chained))(POINT)
    assert isinstance(found, sparse.csr_array)
    assert found.has_canonical_format
    assert found.has_sorted_indices
    assert found.dtype == float
    assert found.nnz == 3 * 4
    dense = mg.jacobian(lambda x: np.array(chained(x)))(POINT)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14)


def test_a_hessian_has_the_numbers_of_the_dense_one(way: Any) -> None:
    found = way(mg.sparse_hessian(rosenbrock))(POINT)
    assert found.nnz == 6 + 2 * 5
    np.testing.assert_allclose(found.toarray(), mg.hessian(rosenbrock)(POINT), rtol=1e-14)


@pytest.mark.parametrize(("triangle", "part"), [("upper", np.triu), ("lower", np.tril)])
def test_a_hessian_may_be_one_of_its_triangles(way: Any, triangle: str, part: Any) -> None:
    found = way(mg.sparse_hessian(rosenbrock, triangle=triangle))(POINT)
    assert found.nnz == 6 + 5
    np.testing.assert_allclose(found.toarray(), part(mg.hessian(rosenbrock)(POINT)), rtol=1e-14)


def test_a_compiled_matrix_belongs_to_the_caller_and_follows_the_point() -> None:
    fast = mg.compile(mg.sparse_jacobian(chained))
    first = fast(POINT)
    first.data[:] = 0.0
    first.indices[:] = 0
    second = fast(POINT + 1.0)
    np.testing.assert_allclose(second.toarray(), mg.sparse_jacobian(chained)(POINT + 1.0).toarray(), rtol=1e-14)
    assert fast.cache_info().traces == 1


def test_other_arguments_may_be_anything_and_each_may_be_differentiated_by(way: Any) -> None:
    def f(p: dict[str, Any], x: list[Any], power: int) -> dict[str, Any]:
        return {"a": [p["w"] * x[0] ** power, p["w"]], "b": x[1] * p["v"][1]}

    arguments = {"w": 2.0, "v": [3.0, 4.0]}, [5.0, 6.0]
    by_p = way(mg.sparse_jacobian(f))(*arguments, power=2)
    by_x = way(mg.sparse_jacobian(f, 1))(*arguments, power=2)
    assert by_p.toarray().tolist() == [[25.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 6.0]]
    assert by_x.toarray().tolist() == [[20.0, 0.0], [0.0, 0.0], [0.0, 4.0]]
    assert by_x.nnz == 2


def test_a_residual_without_variables_is_an_empty_row(way: Any) -> None:
    found = way(mg.sparse_jacobian(lambda x: [7.0, mg.floor(x[0]), mg.detach(x[1]), x[2]]))([1.5, 2.0, 3.0])
    assert found.toarray().tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert found.nnz == 1


def test_an_entry_that_happens_to_be_zero_is_stored(way: Any) -> None:
    assert way(mg.sparse_jacobian(lambda x: [x[0] * x[1]]))([0.0, 0.0]).nnz == 2


def test_both_sides_of_where_and_all_that_may_be_taken_are_in_the_pattern() -> None:
    def f(x: Any, index: Any) -> list[Any]:
        return [mg.where(x[0] > 1.0, x[1], x[2]), mg.take(x, index)]

    fast = mg.compile(mg.sparse_jacobian(f))
    for start, index in (0.0, 1), (2.0, -1), (2.0, 0):
        found, eager = fast([start, 5.0, 6.0], index), mg.sparse_jacobian(f)([start, 5.0, 6.0], index)
        assert found.nnz == eager.nnz == 2 + 3
        np.testing.assert_array_equal(found.toarray(), eager.toarray())
        np.testing.assert_array_equal(found.indices, eager.indices)


def test_an_eager_pattern_has_what_may_be_taken_where_the_function_can_be_compiled() -> None:
    def picked(x: Any, index: Any) -> Any:
        return np.where(x > 0.0, x * x[0], mg.take([x[1] ** 2, x[2]], index))

    x = np.array([1.0, -2.0, 3.0])
    slopes = mg.sparse_jacobian(picked)(x, 0)
    assert slopes.toarray().tolist() == [[2.0, 0.0, 0.0], [0.0, -4.0, 0.0], [3.0, 0.0, 1.0]]
    assert (slopes.toarray() == mg.jacobian(picked)(x, 0)).all()
    assert slopes.nnz == 9
    curvature = mg.sparse_hessian(lambda x, index: mg.take(x, index) ** 3 * x[0])([1.0, 2.0, 3.0], 1)
    assert curvature.toarray().tolist() == [[0.0, 12.0, 0.0], [12.0, 12.0, 0.0], [0.0, 0.0, 0.0]]
    assert curvature.nnz == 9
    read = mg.sparse_jacobian(lambda x, index: [mg.take(x, index) * int(x[0].data)])([2.0, 3.0], 1)
    assert (read.toarray().tolist(), read.nnz) == ([[0.0, 2.0]], 1)  # it reads a number, and cannot be compiled

    def decided(x: Any, index: Any) -> Any:
        return [mg.take(x, index) if x[0] > 1.0 else x[0]]

    for start in 0.0, 2.0, 0.5:
        eager = mg.sparse_jacobian(decided)([start, 1.0], 1)
        assert eager.toarray().tolist() == mg.jacobian(decided)([start, 1.0], 1)

    def decided_often(x: Any, index: Any) -> list[Any]:
        total = mg.take(x, index)
        for number in range(8):  # more paths than can be looked at
            total = total * x[0] if x[1] > number else total + x[2]
        return [total]

    eager = mg.sparse_jacobian(decided_often)([1.0, 2.5, 3.0], 1)
    assert eager.toarray().tolist() == mg.jacobian(decided_often)([1.0, 2.5, 3.0], 1) == [[7.5, 1.0, 5.0]]


def test_a_pattern_is_a_matrix_of_bools() -> None:
    found = mg.sparsity(chained, POINT)
    assert found.dtype == bool
    assert (found.toarray() == (np.abs(np.subtract.outer(np.arange(4), np.arange(6)) + 1.0) <= 1)).all()
    assert mg.sparsity(mg.grad(rosenbrock), POINT).nnz == 16
    assert mg.sparsity(lambda x: [x[0] ** 2], [0.0]).toarray().tolist() == [[True]]
    assert mg.sparsity(lambda p, x: [x * x], 1.0, 2.0, argnums=1).toarray().tolist() == [[True]]


def test_a_pattern_holds_for_all_numbers_or_says_what_to_write() -> None:
    def f(x: Any, index: Any) -> list[Any]:
        return [mg.where(x[0] > 1.0, x[1], x[2]), mg.take(x, index), mg.maximum(x[0], x[1])]

    for point, index in ([0.0, 5.0, 6.0], 1), ([2.0, 5.0, 6.0], -1):
        assert mg.sparsity(f, point, index).toarray().astype(int).tolist() == [[0, 1, 1], [1, 1, 1], [1, 1, 0]]
    assert mg.sparsity(lambda x: [x[0] if x[0] > 0.0 else x[1]], [1.0, 2.0]).toarray().tolist() == [[True, True]]
    with pytest.raises(TraceError, match="more than 64 ways"):
        mg.sparsity(many_paths, [1.0, 2.0])


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
def test_a_compiled_matrix_can_be_used_and_changed_as_any_other() -> None:
    fast = mg.compile(mg.sparse_jacobian(chained))
    found = fast(POINT)
    dense = found.toarray()
    np.testing.assert_allclose((found @ found.T).toarray(), dense @ dense.T)
    found[0, 5] = 7.0  # which stores an entry more
    found.data *= 2.0
    assert found.nnz == 13
    assert found[0, 5] == 14.0
    again = fast(POINT)
    assert again.nnz == 12
    np.testing.assert_array_equal(again.toarray(), dense)
    np.testing.assert_array_equal(copy.deepcopy(again).toarray(), dense)
    assert again.shape == dense.shape
    found.resize(2, 2)
    assert fast(POINT).shape == dense.shape


def test_a_pattern_is_shown_and_saved_as_a_picture(tmp_path: Path) -> None:
    pattern = mg.sparsity(chained, POINT)
    mg.save(pattern, tmp_path / "spy.svg")
    picture = (tmp_path / "spy.svg").read_text()
    assert picture == pattern._repr_svg_()
    ElementTree.fromstring(picture)
    assert picture.count("M") == 4  # three squares of a row are one
    assert "12 of 24 entries" in picture
    mg.save(sparse.csr_array((0, 6)), tmp_path / "empty.svg")
    ElementTree.fromstring((tmp_path / "empty.svg").read_text())
    with pytest.raises(ValueError, match=r"ends in \.svg: .*spy\.png"):
        mg.save(pattern, tmp_path / "spy.png")


def test_the_picture_of_a_large_pattern_is_small() -> None:
    from micrograd.draw.pattern import svg_of_pattern

    picture = svg_of_pattern(sparse.eye_array(20_000, format="csr"))
    assert picture.count("M") <= 480
    assert "20,000 of 400,000,000 entries" in picture


def test_rows_are_computed_through_what_they_depend_on_and_nothing_else() -> None:
    visits = []

    def rule(gradient: Any, output: Any, x: Any) -> Any:
        visits.append(x)
        return gradient * 2.0 * x

    square = mg.primitive("square_that_counts", "sq", lambda x: x * x, rule)
    found = mg.sparse_jacobian(lambda x: [square(each) for each in x])(np.arange(50.0))
    assert found.nnz == len(visits) == 50


def test_a_matrix_under_no_grad_is_the_same(way: Any) -> None:
    def under_no_grad(x: Any) -> Any:
        with mg.no_grad():
            return mg.sparse_jacobian(chained)(x)

    np.testing.assert_allclose(way(under_no_grad)(POINT).toarray(), mg.sparse_jacobian(chained)(POINT).toarray())


def test_second_derivatives_by_a_rule_of_another_custom_primitive() -> None:
    square = mg.primitive("square_in_a_rule", "sq2", lambda x: x**2, lambda gradient, output, x: gradient * 2.0 * x)
    rule = lambda gradient, output, x: gradient * 3.0 * square(x)  # noqa: E731  # as such rules are written
    cube = mg.primitive("cube_by_square", "cb", lambda x: x**3, rule)

    def energy(x: Any) -> Any:
        return sum(cube(x[k] * x[k + 1]) for k in range(len(x) - 1))

    x = np.linspace(0.1, 1.0, 40)
    found = mg.compile(mg.sparse_hessian(energy))(x).toarray()
    np.testing.assert_allclose(found, mg.sparse_hessian(energy)(x).toarray(), rtol=1e-10)


def test_variables_that_no_residual_reads_have_no_direction() -> None:
    def residuals(x: Any) -> list[Any]:
        shared = mg.tanh(x[0] * x[1] * x[2]) * mg.exp(x[0])
        for _ in range(5):
            shared = mg.sin(shared) * x[1] + shared
        return [shared * x[k] for k in range(3, 40)]

    x = np.linspace(0.1, 1.0, 42)
    fast = mg.compile(mg.sparse_jacobian(residuals))
    np.testing.assert_allclose(fast(x).toarray(), mg.sparse_jacobian(residuals)(x).toarray(), rtol=1e-10)
    assert "148 entries of 37 rows, by 4 directions" in fast.explain(x)


def test_a_program_from_buffer_to_buffer_writes_the_entries_in_the_order_of_the_matrix() -> None:
    fast = mg.compile(mg.sparse_jacobian(chained))
    run = fast.program(POINT)
    inputs, outputs = run.program.inputs, run.program.outputs
    for x in (POINT, POINT[::-1].copy()):
        run.buffer[inputs] = x
        run.run()
        assert run.buffer[outputs].tolist() == fast(x).data.tolist()


def test_a_matrix_of_a_thousand_rows_is_a_few_kernels() -> None:
    fast = mg.compile(mg.sparse_jacobian(chained))
    x = np.linspace(-1.0, 1.0, 1000)
    assert fast(x).nnz == 3 * 998
    assert len(fast.program(x).program.kernels) < 20


def of_kinds(x: Any, index: Any) -> list[Any]:
    """Rows of several kinds, in turns: powers, quotients, dot products, choices, constants and variables."""
    kinds: list[Callable[[int], Any]] = [
        lambda k: x[k] ** 8 * x[k + 1] ** -3,
        lambda k: 2.0 / (x[k] + 5.0) ** 2.5 + x[0] / 3.0,
        lambda k: mg.dot([x[k], x[k + 1], 2.0], [x[k + 1], 3.0, x[k]]),
        lambda k: mg.where(x[k] > x[k + 1], mg.sqrt(x[k] + 9.0), mg.log(x[k + 1] + 9.0)),
        lambda k: mg.take([x[k], x[k + 1], 1.0], index),
        lambda k: x[k],
        lambda k: -0.0 * x[k] + 0.0 * x[k + 1],
        lambda k: mg.gelu(x[k]) + mg.logsumexp([x[k], x[k + 1]]) * mg.detach(x[k]),
        lambda k: (x[k] - x[k]) * x[k + 1] + mg.maximum(x[k] * x[k + 1], x[k] * x[k + 1]),
        lambda k: sum((x[j] * x[j] for j in range(len(x))), 0.0) * 1.0,
        lambda k: mg.floor(x[k]),
    ]
    return [kind(k) for k in range(len(x) - 1) for kind in kinds]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_rows_that_are_computed_alike_have_the_numbers_of_rules_that_are_asked_for_each(way: Any) -> None:
    x = 1.0 + np.sin(np.arange(9.0))
    found = way(mg.sparse_jacobian(of_kinds))(x, 1)
    np.testing.assert_allclose(found.toarray(), mg.jacobian(of_kinds)(x, 1), rtol=1e-12, atol=1e-12)

    def total(x: Any, index: Any) -> Any:
        return sum((each**2 for each in of_kinds(x, index)), 0.0)

    curvature = way(mg.sparse_hessian(total))(x, 1)
    np.testing.assert_allclose(curvature.toarray(), mg.hessian(total)(x, 1), rtol=1e-10, atol=1e-10)


def test_rules_of_alike_rows_are_asked_twice_and_those_of_a_users_primitive_each_time() -> None:
    asked = []

    def rule(gradient: Any, output: Any, x: Any) -> Any:
        asked.append(x)
        return gradient * 2.0 * len(asked)

    odd = mg.primitive("odd_rule", "odd", lambda x: x * x, rule)
    found = mg.compile(mg.sparse_jacobian(lambda x: [odd(each) * 3.0 for each in x]), backend="numpy")(np.ones(5))
    assert found.data.tolist() == [6.0, 12.0, 18.0, 24.0, 30.0]

    def failing(gradient: Any, output: Any, x: Any) -> Any:
        raise ZeroDivisionError("no slope here")

    bad = mg.primitive("failing_rule", "bad", lambda x: x * x, failing)
    with pytest.raises(ZeroDivisionError, match="no slope here"):
        mg.compile(mg.sparse_jacobian(lambda x: [bad(each) for each in x]), backend="numpy")(np.ones(5))


def test_rows_that_read_a_number_twice_are_not_those_that_read_two(way: Any) -> None:
    def f(x: Any, c: Any) -> list[Any]:
        return [x[k] * c[k] * c[5 if k == 1 else k + 4] for k in range(4)] + [x[0] * x[0], x[1] * x[2], x[2] * x[0]]

    x, c = np.array([2.0, 3.0, 5.0, 7.0]), np.array([1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5])
    c[1] = c[5]
    found = way(mg.sparse_jacobian(f))(x, c)
    np.testing.assert_allclose(found.toarray(), mg.jacobian(f)(x, c))

    def same(x: Any, c: Any) -> list[Any]:
        return [x[k] * c[k] * c[1 if k == 1 else k + 4] for k in range(4)]

    np.testing.assert_allclose(way(mg.sparse_jacobian(same))(x, c).toarray(), mg.jacobian(same)(x, c))


def test_rows_whose_operations_come_in_another_order_or_differ_far_from_their_ends(way: Any) -> None:
    def f(x: Any) -> list[Any]:
        early = [mg.exp(x[k]) * 2.0 if k % 2 else None for k in range(6)]
        late = [mg.sin(x[k]) for k in range(6)]
        rows = [(late[k] + x[k]) * (early[k] if k % 2 else mg.exp(x[k]) * 2.0) for k in range(6)]
        for step in range(9):  # deeper than what is compared at first
            rows = [mg.tanh(row + (0.5 if step or k < 3 else -0.5)) for k, row in enumerate(rows)]
        return rows

    x = np.linspace(0.1, 0.6, 6)
    np.testing.assert_allclose(way(mg.sparse_jacobian(f))(x).toarray(), mg.jacobian(f)(x), rtol=1e-12)


def chains_of(rows: list[Any], length: int, step: Callable[[Any], Any]) -> list[Any]:
    """Rows after as many equal steps of each."""
    for _ in range(length):
        rows = [step(row) for row in rows]
    return rows


def test_rows_that_look_alike_and_are_none_of_them_are_asked_one_by_one(way: Any) -> None:
    def f(x: Any) -> list[Any]:
        return chains_of([mg.sin(x[k]) * float(k) for k in range(12)], 8, mg.tanh)

    x = np.linspace(0.1, 0.6, 12)
    np.testing.assert_allclose(way(mg.sparse_jacobian(f))(x).toarray(), mg.jacobian(f)(x), rtol=1e-12)


def test_gradients_that_depend_on_no_variable_are_empty_rows(way: Any) -> None:
    def f(x: Any, weights: Any) -> Any:
        return sum((weight * each for weight, each in zip(weights, x, strict=True)), x[0] ** 2)

    found = way(mg.sparse_hessian(f))(np.ones(5), np.arange(5.0))
    assert (found.nnz, found.toarray()[0, 0]) == (1, 2.0)


@pytest.mark.slow
def test_long_rows_are_asked_one_by_one() -> None:
    def f(x: Any) -> list[Any]:
        return chains_of(list(x), 600, lambda row: mg.sin(row) * 0.9)

    x = np.linspace(0.1, 0.6, 4)
    found = mg.compile(mg.sparse_jacobian(f), backend="numpy")(x)
    np.testing.assert_allclose(found.diagonal(), mg.grad(lambda x: sum(f(x), 0.0))(x), rtol=1e-12)


def of_one_chain(x: Any) -> list[Any]:
    """Many rows, which have a long chain in common and a variable of their own each; some are constants."""
    chain = x[0]
    for _ in range(20):
        chain = mg.tanh(chain * x[1] + x[2])
    return [*(chain * each**2 + mg.floor(chain) for each in x[3:]), 7.0, mg.floor(x[0]), x[4]]


def test_rows_with_much_in_common_are_computed_by_directions_of_several_columns() -> None:
    x = np.linspace(0.5, 1.5, 23)
    fast = mg.compile(mg.sparse_jacobian(of_one_chain), backend="numpy")
    found = fast(x)
    assert found.nnz == 20 * 4 + 1
    assert found[[22]].nnz == 1
    np.testing.assert_allclose(found.toarray(), mg.jacobian(of_one_chain)(x), rtol=1e-13)
    assert "81 entries of 23 rows, by 4 directions" in str(fast.explain())
    direct = mg.compile(mg.sparse_jacobian(chained), backend="numpy")
    direct(x)
    assert "63 entries of 21 rows, each by its own expression" in str(direct.explain())
    curvature = mg.compile(mg.sparse_hessian(lambda x: sum(of_one_chain(x)[:20], 0.0)), backend="numpy")
    dense = mg.hessian(lambda x: sum(of_one_chain(x)[:20], 0.0))(x)
    np.testing.assert_allclose(curvature(x).toarray(), dense, rtol=1e-11, atol=1e-12)


def arrowhead(x: Any) -> Any:
    """A number with second derivatives by the first variable and each other, and a long chain in all of them."""
    chain = x[0]
    for _ in range(20):
        chain = mg.tanh(chain * 1.1)
    return sum((chain * each**2 for each in x[1:]), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("triangle", [None, "upper", "lower"])
def test_a_hessian_takes_the_directions_of_a_star_colouring(triangle: str | None) -> None:
    x = np.linspace(0.5, 1.5, 30)
    fast = mg.compile(mg.sparse_hessian(arrowhead, triangle=triangle), backend="numpy")
    part: Any = {None: np.array, "upper": np.triu, "lower": np.tril}[triangle]
    np.testing.assert_allclose(fast(x).toarray(), part(mg.hessian(arrowhead)(x)), rtol=1e-12)
    assert "88 entries of 30 rows, by 2 directions, one for each colour of a star colouring" in str(fast.explain())


def test_a_star_colouring_that_needs_no_fewer_colours_is_not_taken() -> None:
    def f(x: Any) -> Any:
        rows = chains_of(list(x), 20, lambda row: mg.tanh(row * 1.1))
        return sum((rows[k] ** 2 * rows[(k + 1) % 4] for k in range(4)), 0.0)

    x = np.linspace(0.5, 1.5, 4)
    fast = mg.compile(mg.sparse_hessian(f), backend="numpy")
    np.testing.assert_allclose(fast(x).toarray(), mg.hessian(f)(x), rtol=1e-12)


def test_numbers_on_both_sides_of_the_diagonal_of_rules_that_are_no_derivatives_are_their_own() -> None:
    odd = mg.primitive(
        "odd_product",
        "odd",
        lambda x, y: x * y,
        lambda gradient, output, x, y: gradient * (3.0 * y),
        lambda gradient, output, x, y: gradient * x,
    )

    def f(x: Any) -> Any:
        chain = arrowhead(x)
        return sum((odd(chain, each) for each in x[1:]), chain)

    x = np.linspace(0.5, 1.5, 8)
    found = mg.compile(mg.sparse_hessian(f), backend="numpy")(x)
    np.testing.assert_allclose(found.toarray(), mg.hessian(f)(x), rtol=1e-12)
    assert abs(found - found.T).max() > 0.1

    def one_sided(x: Any) -> Any:  # what one gradient does not show, the other does
        return arrowhead(x) + sum((mg.detach(each) * x[0] * mg.relu(each) for each in x[1:]), 0.0)

    fast = mg.compile(mg.sparse_hessian(one_sided), backend="numpy")
    np.testing.assert_allclose(fast(x).toarray(), mg.hessian(one_sided)(x), rtol=1e-12)


def test_a_ring_of_four_needs_three_colours_and_its_matrix_all_four() -> None:
    ring = {0: [1, 3], 1: [0, 2], 2: [1, 3], 3: [2, 0]}
    assert star_coloured(ring, 3) == {0: 0, 1: 1, 2: 0, 3: 2}  # of 0 1 0 1 no entry would stand alone
    assert star_coloured(ring, 2) is None


def test_variables_that_nothing_depends_on_have_no_colour() -> None:
    x = np.linspace(0.5, 1.5, 8)
    fast = mg.compile(mg.sparse_hessian(lambda x: arrowhead(x[:-1])), backend="numpy")
    np.testing.assert_allclose(fast(x).toarray(), mg.hessian(lambda x: arrowhead(x[:-1]))(x), rtol=1e-12)
    assert "by 2 directions" in str(fast.explain())


def test_rows_whose_derivatives_need_numbers_of_their_own_are_asked_one_by_one() -> None:
    nothing = float("nan")  # which is equal to none, so each row writes it down
    f = mg.sparse_jacobian(lambda x: [each**nothing for each in x])
    found = mg.compile(f, backend="numpy")(np.arange(1.0, 6.0))
    assert found.nnz == 5
    assert np.isnan(found.data).tolist() == np.isnan(f(np.arange(1.0, 6.0)).data).tolist() == [True] * 5


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_in_a_star_colouring_each_entry_or_its_mirror_image_stands_alone(pairs: set[tuple[int, int]]) -> None:
    rows: dict[int, list[int]] = {k: [] for k in range(10)}
    for i, j in {(i, j) for pair in pairs for i, j in (pair, pair[::-1])}:
        rows[i].append(j)
    found = star_coloured(rows, 10)
    assert found is not None

    def is_alone(i: int, j: int) -> bool:
        return [found[k] for k in rows[i]].count(found[j]) == 1

    assert all(is_alone(i, j) or is_alone(j, i) for i in rows for j in rows[i])


@pytest.mark.slow
def test_rows_with_much_in_common_whose_columns_need_more_colours_are_computed_one_by_one() -> None:
    def f(x: Any) -> list[Any]:
        chains = chains_of(list(x), 10, lambda each: mg.tanh(each * 1.5))
        return [chains[i] * chains[j] for i in range(len(x)) for j in range(i)]

    x = np.linspace(0.1, 0.9, 6)
    fast = mg.compile(mg.sparse_jacobian(f), backend="numpy")
    np.testing.assert_allclose(fast(x).toarray(), mg.jacobian(f)(x), rtol=1e-13)
    assert "30 entries of 15 rows, each by its own expression" in str(fast.explain())


cube = mg.primitive("cube_of_a_user", "cube", lambda x: x**3, lambda gradient, output, x: gradient * 3.0 * x * x)


def repeated(a: Any, b: Any) -> Any:
    for _ in range(12):
        a = 0.5 * a + 0.25 * b
    return a


# What each does, and whether it depends on its second operand.
OPERATIONS: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "+": (lambda a, b, index: a + b, True),
    "*": (lambda a, b, index: a * b, True),
    "s": (lambda a, b, index: mg.sin(a), False),
    "e": (lambda a, b, index: mg.tanh(a - b), True),
    "c": (lambda a, b, index: mg.where(a > b, a, b), True),
    "t": (lambda a, b, index: mg.take([a, 2.0, b], index), True),
    "u": (lambda a, b, index: cube(a), False),
    "l": (lambda a, b, index: repeated(a, b), True),
}


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("".join(OPERATIONS)), st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=12
    ),
    st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3),
    st.integers(-3, 2),
)
@settings(max_examples=8)
def test_matrices_of_random_programs_are_the_dense_ones(
    steps: list[tuple[str, int, int]], point: list[float], index: int
) -> None:
    def f(x: Any, index: Any) -> list[Any]:
        made = list(x)
        for name, first, second in steps:
            a, b = made[first % len(made)], made[second % len(made)]
            made.append(mg.tanh(OPERATIONS[name][0](a, b, index)))
        return made[3:]

    def total(x: Any, index: Any) -> Any:
        return sum(f(x, index)[1:], f(x, index)[0])

    jacobian, hessian = mg.sparse_jacobian(f)(point, index), mg.sparse_hessian(total)(point, index)
    np.testing.assert_allclose(jacobian.toarray(), mg.jacobian(f)(point, index), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(hessian.toarray(), mg.hessian(total)(point, index), rtol=1e-12, atol=1e-12)
    for function, dense in (mg.sparse_jacobian(f), jacobian), (mg.sparse_hessian(total), hessian):
        compiled = mg.compile(function, backend="numpy")(point, index)
        np.testing.assert_allclose(compiled.toarray(), dense.toarray(), rtol=1e-11, atol=1e-11)
        assert not (dense.astype(bool) > compiled.astype(bool)).nnz
    columns = [{0}, {1}, {2}]
    for name, first, second in steps:
        a, b = columns[first % len(columns)], columns[second % len(columns)]
        columns.append(a | b if OPERATIONS[name][1] else a)
    expected = [[column in row for column in range(3)] for row in columns[3:]]
    assert mg.sparsity(f, point, index).toarray().tolist() == expected


ROWS = 40  # of a vmap, more than are run one by one


def of_three(a: Any, b: Any, c: Any) -> Any:
    return c**2 - 2 * mg.sin(b) * a + b


def in_slices(x: Any) -> Any:
    return of_three(x[:-2], x[1:-1], x[2:])


def of_rows(x: Any) -> Any:
    return mg.vmap(of_three)(x[:-2], x[1:-1], x[2:])


def of_a_loop(x: Any) -> Any:
    return [of_three(x[k], x[k + 1], x[k + 2]) for k in range(len(x) - 2)]


@pytest.mark.parametrize("residuals", [in_slices, of_rows, of_a_loop])
def test_rows_that_are_stated_in_any_way_are_one_program_however_many_there_are(residuals: Any) -> None:
    kernels = []
    for rows in (ROWS, 10 * ROWS):
        x = 0.3 + 0.2 * np.sin(np.arange(rows + 2))
        fast = mg.compile(mg.sparse_jacobian(residuals))
        np.testing.assert_allclose(fast(x).toarray(), mg.sparse_jacobian(residuals)(x).toarray(), rtol=1e-13)
        kernels.append([type(kernel).__name__ for kernel in fast.program(x).program.kernels])
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize("residuals", [in_slices, of_rows])
def test_stated_rows_are_traced_a_few_times_however_many_there_are(residuals: Any) -> None:
    def noted(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is of_three.__code__:
            runs.append(frame.f_lineno)

    runs: list[int] = []
    x = np.linspace(0.0, 1.0, 10 * ROWS)
    fast, before = mg.compile(mg.sparse_jacobian(residuals), backend="numpy"), sys.getprofile()
    sys.setprofile(noted)
    try:
        found = fast(x)
    finally:
        sys.setprofile(before)
    assert found.nnz == 3 * (len(x) - 2)
    assert 1 <= len(runs) <= 3


STEADY = Value(0.75, requires_grad=False)
BODIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "with what is from outside": lambda a, b, n: mg.tanh(STEADY * a) + 0.5 * b,
    "a sum of products": lambda a, b, n: mg.dot([a, b, 2.0], [b, a, a]),
    "a choice by an index": lambda a, b, n: mg.take([a * b, 3.0, b], 2) + mg.take([a, b, a * a], n),
    "a choice": lambda a, b, n: mg.where(a > b, a * a, b),
    "a power": lambda a, b, n: (a + 2.0) ** 2 + b**3 + mg.sqrt(b * b + 1.0),
    "a derivative": lambda a, b, n: mg.grad(lambda a: mg.sin(a * b))(a),
    "a primitive of the user": lambda a, b, n: cube(a) * b,
    "the same for all": lambda a, b, n: a + mg.exp(STEADY) * 2.0,
    "several numbers": lambda a, b, n: {"product": a * b, "parts": [a + b, a]},
    "whole arrays": lambda a, b, n: np.array([a, b]) @ np.array([[1.0, 2.0], [3.0, 4.0]]),
    "another loop": lambda a, b, n: np.sum(mg.vmap(lambda c: c * a)(np.array([b, 2.0 * b]))),
    "no number of its own": lambda a, b, n: a,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_iterations_of_a_vmap_that_are_written_at_once_have_the_derivatives_of_those_that_run(name: str) -> None:
    body = BODIES[name]

    def residuals(x: Any, n: Any) -> Any:
        return mg.vmap(body, in_axes=(0, 0, None))(x[:-1], x[1:] * 1.5, n)

    def energy(x: Any, n: Any) -> Any:
        found = residuals(x, n)
        if name == "several numbers":
            return np.sum(found["product"][:, None] * np.array(found["parts"]))
        return np.sum(np.array(found) ** 2)

    x = 0.3 + np.sin(np.arange(ROWS + 1.0))
    found = mg.compile(mg.sparse_jacobian(residuals))(x, 1)
    np.testing.assert_allclose(found.toarray(), mg.sparse_jacobian(residuals)(x, 1).toarray(), rtol=1e-12, atol=1e-13)
    curvature = mg.compile(mg.sparse_hessian(energy))(x, 1)
    np.testing.assert_allclose(curvature.toarray(), mg.hessian(energy)(x, 1), rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from("".join(OPERATIONS)), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6
    ),
    st.integers(-3, 2),
)
@settings(max_examples=6)
def test_equal_rows_of_random_programs_have_the_derivatives_of_single_ones(
    steps: list[tuple[str, int, int]], index: int
) -> None:
    def row(a: Any, b: Any, c: Any, index: Any) -> Any:
        made = [a, b, c]
        for name, first, second in steps:
            made.append(mg.tanh(OPERATIONS[name][0](made[first % len(made)], made[second % len(made)], index)))
        return made[-1]

    def one_by_one(x: Any, index: Any) -> Any:
        return [row(x[k], x[k + 1], x[k + 2], index) for k in range(len(x) - 2)]

    def at_once(x: Any, index: Any) -> Any:
        return mg.vmap(row, in_axes=(0, 0, 0, None))(x[:-2], x[1:-1], x[2:], index)

    def energy(x: Any, index: Any) -> Any:
        return np.sum(at_once(x, index) ** 2)

    x = np.sin(np.arange(ROWS + 2.0))
    expected = mg.sparse_jacobian(one_by_one)(x, index)
    found = mg.compile(mg.sparse_jacobian(at_once), backend="numpy")(x, index)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-11, atol=1e-12)
    assert not (expected.astype(bool) > found.astype(bool)).nnz
    pattern = mg.compile(mg.sparse_jacobian(one_by_one), backend="numpy")(x, index)
    assert (found.indptr.tolist(), found.indices.tolist()) == (pattern.indptr.tolist(), pattern.indices.tolist())
    curvature = mg.compile(mg.sparse_hessian(energy), backend="numpy")(x, index)
    np.testing.assert_allclose(curvature.toarray(), mg.hessian(energy)(x, index), rtol=1e-9, atol=1e-10)


def test_iterations_that_do_other_things_are_run_one_by_one() -> None:
    def body(a: Any, power: Any) -> Any:
        return mg.sin(a) if power == "sine" else a * a

    def residuals(x: Any) -> Any:
        return mg.vmap(body)(x, ["sine", "square"] * (ROWS // 2))

    x = np.linspace(0.1, 1.0, ROWS)
    found = mg.compile(mg.sparse_jacobian(residuals), backend="numpy")(x)
    np.testing.assert_allclose(found.diagonal(), np.where(np.arange(ROWS) % 2, 2 * x, np.cos(x)), rtol=1e-14)


def test_what_raises_in_an_iteration_raises_what_it_raises_eagerly() -> None:
    fast = mg.compile(mg.sparse_jacobian(mg.vmap(lambda a: mg.log(a) * a**3)))
    x = np.linspace(0.1, 1.0, ROWS)
    np.testing.assert_allclose(fast(x).diagonal(), x * x + 3 * x * x * np.log(x), rtol=1e-12)
    x[7] = -1.0
    with pytest.raises(ValueError, match="log"):
        fast(x)


@pytest.mark.slow
def test_memory_grows_with_the_entries() -> None:
    sizes = []
    for n in (250, 500, 1000):
        fast = mg.compile(mg.sparse_hessian(rosenbrock), backend="numpy")
        found = fast(np.linspace(-1.0, 1.0, n))
        sizes.append((found.nnz, fast.program().program.size))
    (few, small), _, (many, large) = sizes
    assert large / small < 1.1 * many / few


def test_a_constant_that_is_closed_over_is_read_at_each_call() -> None:
    scale = Value(2.0, requires_grad=False)
    fast = mg.compile(mg.sparse_jacobian(lambda x: [scale * x[0], x[1]]))
    assert fast([1.0, 1.0]).toarray().tolist() == [[2.0, 0.0], [0.0, 1.0]]
    scale.data = 3.0
    assert fast([1.0, 1.0]).toarray().tolist() == [[3.0, 0.0], [0.0, 1.0]]


def test_values_that_require_no_gradient_are_constants_among_the_arguments(way: Any) -> None:
    x, weight = [Value(number, requires_grad=False) for number in (1.0, 2.0)], Value(3.0, requires_grad=False)

    def residuals(x: Any, weight: Any) -> list[Any]:
        return [x[0] * weight, x[0] * x[1]]

    for function in residuals, mg.compile(residuals):
        slopes = way(mg.sparse_jacobian(function))
        assert slopes(x, weight).toarray().tolist() == [[3.0, 0.0], [2.0, 1.0]]
        with pytest.raises(ValueError, match=r"use mg\.jacobian, or mg\.detach"):
            slopes(x, Value(3.0))
        assert way(mg.sparse_jacobian(function, 1))(x, weight).toarray().tolist() == [[1.0], [0.0]]
    curvature = way(mg.sparse_hessian(lambda x: x[0] * x[1] ** 2))
    assert curvature(x).toarray().tolist() == [[0.0, 4.0], [4.0, 2.0]]


# What cannot be

WEIGHT = Value(5.0)


@pytest.mark.parametrize(
    ("function", "arguments", "error", "message"),
    [
        (mg.sparse_jacobian(lambda x: x[0]), ([1.0],), TypeError, "returns several numbers.*mg.grad"),
        (mg.sparse_jacobian(lambda x: None), ([1.0],), TypeError, "not NoneType: end it with return"),
        (mg.sparse_hessian(lambda x: None), ([1.0],), TypeError, "not NoneType: end it with return"),
        (mg.sparse_jacobian(lambda x: 1.0), ([1.0],), TypeError, r"for a matrix with one row, return \[number\]"),
        (mg.sparse_jacobian(lambda x: []), ([1.0],), ValueError, "empty result"),
        (mg.sparse_jacobian(lambda x: [WEIGHT * x[0]]), ([1.0],), ValueError, "use mg.jacobian, or mg.detach"),
        (mg.sparse_jacobian(chained), (list(map(Value, POINT)),), ValueError, "use mg.jacobian, or mg.detach"),
        (mg.sparse_hessian(lambda x: WEIGHT * x[0] ** 2), ([1.0],), ValueError, "use mg.jacobian, or mg.detach"),
        (mg.sparse_hessian(lambda x: [x[0]]), ([1.0],), TypeError, "one number.*mg.jacobian"),
        (mg.sparse_jacobian(chained), ("text",), TypeError, "not str"),
    ],
)
def test_what_has_no_sparse_matrix_is_refused(function: Any, arguments: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        function(*arguments)
    with pytest.raises((error, mg.TraceError)):
        mg.compile(function)(*arguments)


def test_under_no_grad_weights_are_constants() -> None:
    with mg.no_grad():
        assert mg.sparse_jacobian(lambda x: [WEIGHT * x[0]])([1.0]).toarray().tolist() == [[5.0]]


def test_inside_a_compiled_function_a_matrix_can_only_be_returned() -> None:
    jacobian = mg.sparse_jacobian(chained)
    both = mg.compile(lambda x: (mg.exp(x[0]), {"slopes": jacobian(x)}))
    value, found = both(POINT)
    np.testing.assert_allclose(found["slopes"].toarray(), jacobian(POINT).toarray())
    assert value == pytest.approx(np.exp(0.5))
    mg.compile(lambda x: (hasattr(jacobian(x), "__index__"), jacobian(x))[1])(POINT)  # to ask is no use
    with pytest.raises(TypeError, match="the result of sparse_jacobian can only be returned"):
        mg.compile(lambda x: jacobian(x).toarray())(POINT)
    for use in (lambda a, x: a @ x, lambda a, x: x[:4] @ a, lambda a, x: a[0], lambda a, x: 2.0 * a):
        with pytest.raises(TypeError, match="can only be returned"):
            mg.compile(lambda x, use=use: use(jacobian(x), x))(POINT)


# Programs for solvers


def circle(x: Any) -> list[Any]:
    return [x[0] ** 2 + x[1] ** 2, x[1] * x[2]]


def distance(x: Any) -> Any:
    return (x[0] - 2.0) ** 2 + x[1] ** 2 * x[2]


@pytest.mark.parametrize("compile", [False, True])
def test_a_program_for_solvers_gives_what_they_ask_for(compile: bool) -> None:  # noqa: A002  # as in mg.nlp
    program = mg.nlp(distance, circle, start=[1.0, 1.0, 1.0], compile=compile)
    x, multipliers = np.array([0.5, -1.0, 2.0]), np.array([3.0, 4.0])
    assert (program.variables, program.constraint_count) == (3, 2)
    assert program.objective(x) == pytest.approx(distance(x))
    np.testing.assert_allclose(program.gradient(x), mg.grad(distance)(x))
    np.testing.assert_allclose(program.constraints(x), circle(x))
    dense = mg.jacobian(lambda x: np.array(circle(x)))(x)
    rows, columns = program.jacobianstructure()
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1), (1, 2)]
    np.testing.assert_allclose(program.jacobian(x), dense[rows, columns])
    np.testing.assert_allclose(program.jacobian_matrix(x).toarray(), dense)

    def lagrangian(x: Any) -> Any:
        first, second = circle(x)
        return 0.5 * distance(x) + 3.0 * first + 4.0 * second

    expected = mg.hessian(lagrangian)(x)
    rows, columns = program.hessianstructure()
    assert (rows >= columns).all()
    np.testing.assert_allclose(program.hessian(x, multipliers, 0.5), expected[rows, columns])
    np.testing.assert_allclose(program.objective_hessian(x).toarray(), mg.hessian(distance)(x))
    constraint = program.scipy_constraint(0.0, 1.0)
    weighted = mg.hessian(lambda x: 3.0 * circle(x)[0] + 4.0 * circle(x)[1])(x)
    np.testing.assert_allclose(constraint.hess(x, multipliers).toarray(), weighted)


def test_what_a_program_gives_is_the_callers_own() -> None:
    program = mg.nlp(distance, circle, start=[1.0, 1.0, 1.0])
    x = np.array([0.5, -1.0, 2.0])
    before = program.gradient(x).copy(), program.jacobian(x).copy(), program.jacobianstructure()[1].copy()
    program.gradient(x)[:] = program.jacobian(x)[:] = program.constraints(x)[:] = 9.0
    program.jacobian_matrix(x).data[:] = 9.0
    program.jacobianstructure()[1][:] = 0
    after = program.gradient(x), program.jacobian(x), program.jacobianstructure()[1]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
    x[0] = 1.5  # the point may be changed in place, as solvers do
    np.testing.assert_allclose(program.gradient(x), mg.grad(distance)(x))


def test_a_program_without_constraints_has_empty_parts() -> None:
    program = mg.nlp(rosenbrock, start=POINT)
    assert program.constraints(POINT).shape == program.jacobian(POINT).shape == (0,)
    assert [positions.shape for positions in program.jacobianstructure()] == [(0,), (0,)]
    assert program.jacobian_matrix(POINT).shape == (0, 6)
    assert len(program.hessianstructure()[0]) == 11
    with pytest.raises(ValueError, match="has no constraints"):
        program.scipy_constraint(0.0, 0.0)


def many_paths(x: Any) -> list[Any]:
    total = x[0]
    for number in range(7):
        total = total * x[1] if x[0] > number else total
    return [total]


@pytest.mark.parametrize(
    ("constraints", "compile", "instead"),
    [
        (lambda x: [x[0] * x[1] if x[0] > 0.0 else x[0]], False, "mg.where in place of if, and compile them"),
        (many_paths, True, "if$"),
    ],
)
def test_a_pattern_that_changes_from_point_to_point_is_refused(
    constraints: Any,
    compile: bool,  # noqa: A002  # as in mg.nlp
    instead: str,
) -> None:
    program = mg.nlp(rosenbrock, constraints, start=[-1.0, 1.0], compile=compile)
    assert program.jacobian([-2.0, 3.0]).tolist() == [1.0]
    with pytest.raises(ValueError, match=f"did other operations at this point.*{instead}"):
        program.jacobian([3.5, 1.0])


def test_patterns_of_a_program_have_what_any_point_may_need() -> None:
    def objective(x: Any) -> Any:
        return x[0] ** 2 if x[0] > 0.0 else x[1] * x[2]

    def constraints(x: Any) -> list[Any]:
        return [x[0] * x[1] if x[0] > 0.0 else x[2], x[1] if x[1] > x[2] else x[0]]

    assert mg.sparsity(constraints, [1.0, 2.0, 3.0]).toarray().tolist() == [[True] * 3, [True, True, False]]
    program = mg.nlp(objective, constraints, start=[1.0, 2.0, 3.0])
    rows, columns = program.jacobianstructure()
    below, left = program.hessianstructure()
    for point in [1.0, 2.0, 3.0], [-1.0, 2.0, 3.0], [-1.0, 5.0, 3.0], [1.0, 5.0, 3.0]:
        found = np.zeros((2, 3))
        found[rows, columns] = program.jacobian(point)
        np.testing.assert_allclose(found, mg.jacobian(constraints)(point))
        found = np.zeros((3, 3))
        found[below, left] = program.hessian(point, [1.0, 2.0], 1.0)
        expected = mg.hessian(lambda x: objective(x) + sum(map(mul, constraints(x), [1.0, 2.0])))(point)
        np.testing.assert_allclose(found, np.tril(expected))
    bounds = mg.nlp(objective, start=[1.0, 2.0, 3.0])
    assert [len(numbers) for numbers in (*bounds.jacobianstructure(), *bounds.hessianstructure())] == [0, 0, 2, 2]


@pytest.mark.parametrize("compile", [False, True])
def test_a_number_of_constraints_that_changes_is_refused(compile: bool) -> None:  # noqa: A002  # as in mg.nlp
    def constraints(x: Any) -> list[Any]:
        return [x[0], x[1]] if x[0] > 0.0 else [x[0]]

    if compile:
        with pytest.raises(ValueError, match="on one path the function returns 2 numbers, on another 1"):
            mg.nlp(rosenbrock, constraints, start=[1.0, 1.0])
        return
    program = mg.nlp(rosenbrock, constraints, start=[1.0, 1.0], compile=False)
    for ask in program.constraints, program.jacobian, program.objective:
        with pytest.raises(ValueError, match="are 1 numbers at this point, and 2 at the start: return as many"):
            ask([-1.0, 1.0])
    assert program.constraints([2.0, 1.0]).tolist() == [2.0, 1.0]


def test_whole_numbers_are_taken_as_floats(way: Any) -> None:
    for x in ([1, 2], np.array([1, 2])):
        assert way(mg.sparse_jacobian(lambda x: [x[0] * x[1], 3]))(x).toarray().tolist() == [[2.0, 1.0], [0.0, 0.0]]
        assert way(mg.sparse_hessian(lambda x: x[0] * x[1]))(x).toarray().tolist() == [[0.0, 1.0], [1.0, 0.0]]
    program = mg.nlp(lambda x: x[0] ** 2, lambda x: [x[0] * x[1], 3], start=[1, 2])
    assert (program.gradient([3, 4]).tolist(), program.constraints([3, 4]).tolist()) == ([6.0, 0.0], [12.0, 3.0])


def test_of_no_variables_there_are_no_columns(way: Any) -> None:
    nothing = np.zeros(0)
    assert way(mg.sparse_jacobian(lambda x: [1.0, 2.0]))(nothing).shape == (2, 0)
    assert way(mg.sparse_hessian(lambda x: 1.0))(nothing).shape == (0, 0)


def test_scipy_solves_a_program_with_sparse_derivatives() -> None:
    from scipy.optimize import minimize

    program = mg.nlp(rosenbrock, lambda x: [x[k] * x[k + 1] for k in range(9)], start=np.full(10, 0.5))
    found = minimize(
        program.objective,
        np.full(10, 0.5),
        jac=program.gradient,
        hess=program.objective_hessian,
        constraints=program.scipy_constraint(-np.inf, 0.8),
        method="trust-constr",
        options={"gtol": 1e-8, "maxiter": 300},
    )
    assert found.success
    assert (program.constraints(found.x) <= 0.8 + 1e-6).all()
    assert found.constr_violation < 1e-6


def test_a_program_has_the_callbacks_of_cyipopt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent / "stand_ins")  # whether cyipopt is installed or not
    problem_of: Any = importlib.import_module("cyipopt").Problem
    monkeypatch.delitem(sys.modules, "cyipopt")

    def constraints(x: Any) -> list[Any]:
        return [x[0] ** 2 + x[1] ** 2 - 2.0, x[1] * x[2] - x[3], x[4]]

    program = mg.nlp(lambda x: mg.exp(x[0]) + x[1] ** 2 + (x[2] - 1.0) ** 2 + x[3] ** 2, constraints, start=np.ones(5))
    start, zeros = np.array([-0.9, 0.9, 0.5, 0.5, 0.5]), np.zeros(3)
    problem = problem_of(program.variables, 3, problem_obj=program, cl=zeros, cu=zeros)
    problem.add_option("print_level", 0)
    solution, info = problem.solve(start)
    assert info["status"] == 0
    np.testing.assert_allclose(constraints(solution), 0.0, atol=1e-9)
    slopes = program.jacobian_matrix(solution).toarray()
    np.testing.assert_allclose(program.gradient(solution), -slopes.T @ info["mult_g"], atol=1e-9)
    assert info["obj_val"] == program.objective(solution)


def test_least_squares_takes_a_sparse_jacobian() -> None:
    from scipy.optimize import least_squares

    def residuals(x: Any) -> list[Any]:
        return [10.0 * (x[k + 1] - x[k] ** 2) for k in range(19)] + [1.0 - each for each in x]

    found = least_squares(
        lambda x: np.array(residuals(x)), np.zeros(20), jac=mg.compile(mg.sparse_jacobian(residuals)), x_scale="jac"
    )
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
