"""Progress that is the test's own."""

import pytest


@pytest.fixture(autouse=True)
def kept_in(tmp_path, monkeypatch):
    path = tmp_path / "kept" / "progress.json"
    monkeypatch.setenv("MICROGRAD_PROGRESS", str(path))
    return path
