"""What the tests of tables share: the report of a training."""

import pytest

from micrograd.command.main import main
from tests.tables.common import small_file


@pytest.fixture(scope="package")
def small_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    path = small_file(folder, 60)
    assert (
        main(["train", str(path), "--target", "kind", "--epochs", "30", "-o", str(folder / "report"), "--quiet"]) == 0
    )
    return folder / "report"
