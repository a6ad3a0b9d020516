"""A large page, whose data is compressed: as small as it is to be, and the same page."""

from __future__ import annotations

import random
import runpy

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.explore import page as page_of
from tests.explore.test_explore import data_of
from tests.folders import ROOT

pytestmark = pytest.mark.slow


def changed_meanwhile():
    """Twice the same leaf, with another number at each use."""
    x = Value(0.1, label="x")
    first = x * 3.0
    x.data = 0.7
    return first + x * 3.0


def of_many_kinds():
    a, b, c = (Value(number, label=name) for name, number in {"a": 0.1, "b": -0.3, "c": 2e308}.items())
    inner = mg.tanh(a * b / 3.0) - (-a + mg.relu(b)) * mg.exp(b)
    chosen = mg.where(a > 0, mg.maximum(a, b), b)
    return inner / chosen + mg.detach(a) * b + mg.minimum(a * 0.0 * b, b) + 0.0 * mg.sigmoid(c)


@pytest.mark.parametrize("program", [changed_meanwhile, of_many_kinds])
def test_what_a_large_page_leaves_out_it_computes_to_the_last_bit(show, tmp_path, monkeypatch, program):
    root, numbers = program(), []
    for most, left_out in ((10**9, False), (0, True)):
        monkeypatch.setattr(page_of, "MOST_PLAIN", 0)
        monkeypatch.setattr(page_of, "MOST_PACKED", most)
        path = tmp_path / f"{left_out}.html"
        mg.explore(root, path)
        assert (None in [node["data"] for node in data_of(path)["nodes"]]) is left_out
        texts = "(row) => row.map((number) => (Object.is(number, -0) ? '-0' : String(number)))"
        page = show(path)
        numbers.append(
            [
                page.evaluate(f"({texts})(nodes.map((node) => node.data))"),
                page.evaluate(f"passes.turns.map((turn) => ({texts})(turn.shares))"),
                page.evaluate(f"passes.turns.map((turn) => ({texts})(turn.locals))"),
            ]
        )
    assert numbers[0] == numbers[1]


def test_the_page_of_a_word_is_small_and_steps_through_both_passes(show, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "demos"))
        demo = runpy.run_path(str(ROOT / "demos" / "names.py"))
    random.seed(42)
    model = demo["Transformer"](27, 16)
    loss = model.loss([0, 5, 13, 13, 1, 0])  # emma
    path = tmp_path / "emma.html"
    mg.explore(loss, path)
    assert path.stat().st_size <= 1_000_000
    page = show(path)
    assert page.evaluate("nodes.length") > 40_000
    assert page.evaluate("nodes[root].data") == loss.data
    page.evaluate("go(steps.length - 1)")
    loss.backward()
    place = page.evaluate("nodes.findIndex((node) => node.path === 'query[3][5]')")
    assert page.evaluate("(place) => gradients[place]", place) == model.query[3][5].grad
