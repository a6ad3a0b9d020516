"""A large page, whose data is compressed: as small as it is to be, and the same page."""

from __future__ import annotations

import random
import runpy

import pytest

import micrograd as mg
from tests.folders import ROOT

pytestmark = pytest.mark.slow


def test_the_page_of_a_word_is_small_and_steps_through_both_passes(show, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "demos"))
        demo = runpy.run_path(str(ROOT / "demos" / "names.py"))
    random.seed(42)
    model = demo["Transformer"](27, 16)
    loss = model.loss([0, 5, 13, 13, 1, 0])  # emma
    path = tmp_path / "emma.html"
    mg.explore(loss, path)
    assert path.stat().st_size <= 2_000_000
    page = show(path)
    assert page.evaluate("nodes.length") > 40_000
    assert page.evaluate("nodes[root].data") == loss.data
    page.evaluate("go(steps.length - 1)")
    loss.backward()
    place = page.evaluate("nodes.findIndex((node) => node.path === 'query[3][5]')")
    assert page.evaluate("(place) => gradients[place]", place) == model.query[3][5].grad
