"""What messages and docstrings say to install: the packages themselves."""

from pathlib import Path

import micrograd
from tests.folders import ROOT

POSITIONS = (Path(micrograd.__file__).parent, ROOT / "demos", ROOT / "docs", ROOT / "README.md")
KINDS = (".py", ".html", ".css", ".js", ".md", ".ipynb", ".svg")


def test_nothing_names_an_extra_of_the_package():
    """An index has another project of this name."""
    texts = [path for position in POSITIONS for path in [position, *position.rglob("*")] if path.suffix in KINDS]
    assert len(texts) > 400
    naming = [path for path in texts if f"{micrograd.__name__}[" in path.read_text(encoding="utf-8")]
    assert naming == []
