"""Index maps: what they say of single numbers, and of those at the iterations of a loop."""

import numpy as np
import pytest

from micrograd.compiler.ir.index_maps import Positions, accesses

UNEVEN = np.array([0, 1, 5])  # how far terms are from the first


def of_columns(starts):
    """Three terms for each column, unevenly apart."""
    return Positions.of(np.array(starts)[:, None] + UNEVEN, 7)


@pytest.mark.parametrize("steps", [[0, 1, 2, 3], [0, 1, 5, 6]], ids=["even", "uneven"])
@pytest.mark.parametrize("starts", [[0, 10, 20], [3, 1, 40]])
def test_a_part_has_the_same_positions_and_moves_as_far(starts, steps):
    whole = Positions.of(np.array(starts)[:, None] + steps, 7)
    for begin, end in ((0, 2), (1, 3), (2, 4), (0, 4)):
        part = whole.part(begin, end)
        assert part.positions().tolist() == whole.positions()[:, begin:end].tolist()
        assert part.iteration_step == 7


def test_a_part_of_what_is_in_no_order_has_the_same_positions_and_moves_as_far():
    whole = Positions.of(np.array([[0, 4, 9], [1, 7, 2]]), 7)
    part = whole.part(1, 3)
    assert part.positions().tolist() == [[4, 9], [7, 2]]
    assert part.iteration_step == 7


@pytest.mark.parametrize(
    ("second", "table"),
    [(range(100, 108), (2, 1, 3)), ([100, 101, 109, 103, 110, 105, 106, 107], (2, 8, 3))],
    ids=["even", "uneven"],
)
def test_the_columns_of_every_row_count_and_not_those_of_the_first_alone(second, table):
    target = Positions.of(np.array([*range(8), *range(20, 28)])[:, None], 7)
    operand = of_columns([*range(8), *second])
    rows, columns, _, (access,) = accesses(target, [operand])
    assert (rows, columns, access.table.shape, access.iteration_step) == (2, 8, table, 7)
    assert access.positions(rows, columns, 3).reshape(-1, 3).tolist() == operand.positions().tolist()


@pytest.mark.parametrize(("jump", "shape"), [(8, (2, 8)), (4, (1, 16))])
def test_rows_are_cut_where_any_term_jumps_unless_they_get_shorter_than_a_vector(jump, shape):
    positions = np.arange(16)[:, None] + UNEVEN
    positions[:, 2] += 100 * (np.arange(16) // jump)
    operand = Positions.of(positions)
    rows, columns, _, (access,) = accesses(Positions.of(np.arange(16)[:, None]), [operand])
    assert (rows, columns) == shape
    assert access.table.shape == (rows, 1 if jump == 8 else columns, 3)
    assert access.positions(rows, columns, 3).reshape(-1, 3).tolist() == positions.tolist()
