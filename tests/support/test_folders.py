"""Folders that are written whole or not at all."""

import pytest

from micrograd._support import folders
from tests.tables.common import written


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("older", [False, True])
def test_it_appears_whole_or_not_at_all(tmp_path, error, older):
    folder = tmp_path / "report"

    def fill(new, text="new", fails=True):
        written(new / "one", text)
        if fails:
            raise error
        written(new / "two", text)

    if older:
        folders.write_folder(folder, lambda new: fill(new, "old", fails=False))
    with pytest.raises(type(error)):
        folders.write_folder(folder, fill)
    found = {file.name: file.read_text() for file in folder.iterdir()} if folder.exists() else {}
    assert found == ({"one": "old", "two": "old"} if older else {})
    assert [entry.name for entry in tmp_path.iterdir()] == (["report"] if older else [])


@pytest.mark.parametrize("older", [False, True])
def test_where_the_new_one_cannot_take_the_name_the_old_one_keeps_it(tmp_path, monkeypatch, older):
    folder, rename = tmp_path / "report", folders.Path.rename
    if older:
        folders.write_folder(folder, lambda new: written(new / "one", "old"))

    def refused(self, target):
        if self.name == "new":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(folders.Path, "rename", refused)
    with pytest.raises(PermissionError):
        folders.write_folder(folder, lambda new: written(new / "one", "new"))
    assert [file.read_text() for file in folder.glob("*")] == (["old"] if older else [])


def test_what_ctrl_c_makes_it_do_again_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "finish", lambda action: (action(), action()))
    folders.write_folder(tmp_path / "report", lambda new: written(new / "one", "new"))
    assert (tmp_path / "report" / "one").read_text() == "new"
