"""Calls of linear algebra in pictures and pages: boxes that open into their steps."""

import sys

import numpy as np
import pytest

import micrograd as mg
from micrograd.draw.array_steps import opened_arrays
from micrograd.engine.array_calls import ArrayCall
from micrograd.pages.passes import passes

pytestmark = pytest.mark.slow(together=True)

RANDOM = np.random.default_rng(11)
SQUARE = RANDOM.normal(size=(3, 3))
SYMMETRIC = SQUARE @ SQUARE.T + np.eye(3)
TALL = RANDOM.normal(size=(4, 2))
VECTOR = RANDOM.normal(size=3)

CALLS = {
    "solve": (lambda a: np.linalg.solve(a, VECTOR), SQUARE),
    "solve, of a diagonal matrix": (lambda a: np.linalg.solve(a, VECTOR), np.diag([3.0, 2.0, 4.0])),
    "inv, of two": (np.linalg.inv, RANDOM.normal(size=(2, 3, 3))),
    "inv, of numbers too": (lambda a: np.linalg.inv(np.append(a, [0.0, 0.0, 2.0]).reshape(2, 2)), np.full(1, 4.0)),
    "det": (np.linalg.det, SQUARE),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], SQUARE),
    "cholesky": (np.linalg.cholesky, SYMMETRIC),
    "qr": (lambda a: np.linalg.qr(a)[1], SQUARE),
    "qr, of one number": (lambda a: np.linalg.qr(a * 1.5)[1], SQUARE[:1, :1]),
    "eigh": (lambda a: np.linalg.eigh(a)[1] * np.linalg.eigh(a)[0], SYMMETRIC),
    "eigh, of the upper triangle": (lambda a: np.linalg.eigh(a, "U")[1], SYMMETRIC),
    "eigh, of a diagonal matrix": (lambda a: np.linalg.eigh(np.diag(np.diag(a)))[0], np.diag([3.0, 1.0, 2.0])),
    "svd": (lambda a: np.linalg.svd(a, full_matrices=False)[0], TALL),
    "svd, of a wide matrix": (lambda a: np.linalg.svd(a, full_matrices=False)[2], TALL.T),
    "svd, of numbers too": (lambda a: np.linalg.svd(np.concatenate([np.eye(4)[:, :2], a], axis=1))[1], TALL),
    "pinv": (np.linalg.pinv, TALL),
    "lstsq": (lambda a: np.linalg.lstsq(a, TALL[:, 0], rcond=None)[0], TALL),
    "expm": (mg.expm, 4 * SQUARE),
    "solve_triangular": (lambda a: mg.solve_triangular(a, VECTOR, lower=True), SYMMETRIC),
    "fft": (lambda a: np.fft.fft(a).imag, VECTOR),
}


def result_of(call, numbers):
    """A number that depends on all that a call gives."""
    a = mg.array(numbers)
    found = np.ravel(call(a))
    return a, (found * np.linspace(1.0, 2.0, found.size)).sum()


def calls_under(root):
    return [node for node in mg.topological_order(root) if isinstance(node._primitive, ArrayCall)]


@pytest.mark.parametrize("name", CALLS)
def test_the_steps_make_what_the_call_gave_and_pass_on_its_gradients(name):
    a, root = result_of(*CALLS[name])
    root.backward()
    expected, before = mg.gradients(a), mg.topological_order(root)
    assert calls_under(root)
    with opened_arrays(root):
        assert not calls_under(root)
        steps = [node for node in mg.topological_order(root) if not node.is_leaf]
        for node in steps:
            assert node._primitive.forward(*node._inputs()) == pytest.approx(node.data, rel=1e-9, abs=1e-12)
        shown = {node: node.grad for node in steps}
        assert np.reshape(mg.gradient(root, list(a.flat)), a.shape) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        root.backward()
        assert {node: node.grad for node in steps} == pytest.approx(shown, rel=1e-9, abs=1e-12)
    assert mg.topological_order(root) == before
    assert calls_under(root)


def test_a_page_has_a_box_that_opens_into_the_steps():
    a = mg.array([[2.0, 1.0], [1.0, 3.0]])
    root = np.linalg.solve(a, [1.0, 2.0]).sum()
    with opened_arrays(root):
        data, _ = passes(root)
    (box,) = [number for number, group in enumerate(data["groups"]) if group["name"] == "solve"]
    inside = [data["primitives"][node["primitive"]]["name"] for node in data["nodes"]
              if node["group"] == box and node["primitive"] is not None]  # fmt: skip
    assert {"sqrt", "div", "mul", "add"} <= set(inside)
    assert data["backward"]


def test_a_picture_that_folds_has_the_call_as_a_box_that_stands_open_where_it_fits(tmp_path):
    a = mg.array([[4.0, 0.0], [2.0, 5.0]])
    for element, name in zip(a.flat, "pqrs", strict=True):
        element.label = name
    root = np.linalg.cholesky(a)[1, 1] * 2.0
    root.backward()
    mg.save(root, tmp_path / "whole.dot")
    assert "sqrt" not in (tmp_path / "whole.dot").read_text(encoding="utf-8")  # unfolded, it is one node
    mg.save(root, tmp_path / "folded.dot", fold=True)
    drawn = (tmp_path / "folded.dot").read_text(encoding="utf-8")
    assert "cluster" in drawn
    assert drawn.count("sqrt") == 2
    assert mg.gradients(a) == pytest.approx(np.array([[0.125, 0.0], [-0.5, 0.5]]))


def test_boxes_of_several_calls_are_a_stack_of_steps_up_to_a_number_in_all():
    a = mg.array(SQUARE)
    x = a
    for _ in range(20):
        x = np.linalg.inv(x)
    root = x.sum()
    with opened_arrays(root):
        steps = len(mg.topological_order(root))
        left = len(calls_under(root))
    assert 0 < left < 20
    assert steps < 4_000


def test_large_calls_and_those_that_divide_by_zero_stay_nodes():
    for matrix in (np.eye(30), [[0.0, 2.0], [0.0, 3.0]]):
        root = np.linalg.det(mg.array(matrix))
        with opened_arrays(root):
            assert len(calls_under(root)) == 1


def test_what_a_rule_calls_without_steps_stays_a_node():
    a = mg.array(SYMMETRIC)
    (slope, *_) = mg.gradient(np.linalg.eigh(a)[1][0, 0], list(a.flat), create_graph=True)
    with opened_arrays(slope):
        assert [node._op for node in calls_under(slope)] == ["gaps of eigenvalues"]


def test_the_steps_are_those_of_the_numbers_that_the_call_had():
    a = mg.array(SYMMETRIC)
    root = np.linalg.cholesky(a)[0, 0]
    a[0, 0].data = 100.0
    with opened_arrays(root):
        steps = [node for node in mg.topological_order(root) if not node.is_leaf]
        assert [node._inputs()[0] for node in steps] == [SYMMETRIC[0, 0], SYMMETRIC[0, 0]]  # less nothing, and its root
    assert a[0, 0].data == 100.0


def test_where_no_function_of_arrays_is_loaded_there_is_nothing_to_open(monkeypatch):
    monkeypatch.delitem(sys.modules, "micrograd.engine.array_calls")
    assert "tanh" in mg.draw_dot(mg.tanh(mg.Value(0.5)), fold=True).source
