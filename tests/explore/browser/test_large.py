"""A large page, whose data is compressed: as small as it is to be, and the same page."""

import random
import re
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
    loss = model.loss([0, 13, 1, 18, 9, 14, 1, 0])  # marina
    path = tmp_path / "marina.html"
    mg.explore(loss, path)
    assert path.stat().st_size <= 1_500_000
    page = show(path)
    assert page.evaluate("nodes.length") > 50_000
    assert page.evaluate("nodes[root].data") == loss.data
    page.evaluate("go(steps.length - 1)")
    loss.backward()
    place = page.evaluate("nodes.findIndex((node) => node.path === 'query[3][5]')")
    assert page.evaluate("(place) => gradients[place]", place) == model.query[3][5].grad
    found = page.evaluate("nodes.map((node) => [node.path, gradients[node.index]]).filter(([path]) => path)")
    names = re.compile(r"^(\w+)((?:\[\d+\])+)$")
    for name, gradient in found:  # all of them: most shares are computed in the page
        matrix, indices = names.match(name).groups()
        weight = getattr(model, matrix)
        for index in re.findall(r"\d+", indices):
            weight = weight[int(index)]
        assert gradient == weight.grad, name
    assert len(found) > 1_000
