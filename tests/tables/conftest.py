"""What the tests of tables share: the report of a training."""

import pytest

from micrograd.command.main import main
from tests.tables.common import small_file

WORDS = ["--target", "kind", "--epochs", "20", "--folds", "3", "--seed", "3", "--quiet"]


@pytest.fixture(scope="package")
def small_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    assert main(["train", str(small_file(folder, 60)), *WORDS, "-o", str(folder / "report")]) == 0
    return folder / "report"
