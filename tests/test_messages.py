"""What messages and docstrings say to install: the packages themselves."""

from pathlib import Path

import pytest

import micrograd

ROOT = Path(micrograd.__file__).parent
TEXTS = [path for path in sorted(ROOT.rglob("*")) if path.suffix in (".py", ".html", ".css", ".js")]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_names_an_extra_of_the_package(path):
    assert f"{micrograd.__name__}[" not in path.read_text(encoding="utf-8"), "an index has another project of this name"
