"""What messages and docstrings say to install: the packages themselves."""

from pathlib import Path

import pytest

import micrograd
from tests.folders import ROOT

PACKAGE = Path(micrograd.__file__).parent
POSITIONS = (PACKAGE, ROOT / "demos", ROOT / "docs", ROOT / "README.md")
KINDS = (".py", ".html", ".css", ".js", ".md", ".ipynb", ".svg")
TEXTS = [path for position in POSITIONS for path in sorted([position, *position.rglob("*")]) if path.suffix in KINDS]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_names_an_extra_of_the_package(path):
    assert f"{micrograd.__name__}[" not in path.read_text(encoding="utf-8"), "an index has another project of this name"
