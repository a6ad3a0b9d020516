"""The command that runs the tests on each Python, and the one that builds what is released."""

import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests import release, versions
from tests.folders import ROOT

PYTHON = """#!/bin/sh
case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    *"-m pytest"*) echo "$*" >> asked.txt; {tests} ;;
esac
"""


@pytest.fixture
def position(tmp_path, monkeypatch):
    """A folder in which Pythons can be put that no test needs; the real one is 3.11 to the command."""
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    monkeypatch.setattr(versions, "this_version", lambda: "3.11")
    monkeypatch.setattr(versions.sys, "executable", str(python(tmp_path, "3.11")))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(versions, "VERSIONS", ("3.11", "3.98", "3.99t"))  # which no machine has
    return tmp_path


def python(folder, version, tests="echo '=== 3 passed in 0.1s ==='"):
    path = folder / f"python{version}"
    path.write_text(PYTHON.format(tests=tests))
    path.chmod(0o755)
    return path


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["versions", *words])
    return versions.main(), capsys.readouterr().out.splitlines()


def test_each_python_that_is_there_runs_the_tests_and_the_others_are_named(position, monkeypatch, capsys):
    python(position, "3.99t", tests="echo '=== 2 passed, 1 skipped in 0.1s ==='")
    code, lines = run(monkeypatch, capsys)
    assert code == 0
    assert lines == [
        "Python 3.11: 3 passed in 0.1s",
        "Python 3.98: not on this machine, so not run",
        "Python 3.99t: 2 passed, 1 skipped in 0.1s",
    ]
    assert {folder.name for folder in position.glob(".venv-*")} == {".venv-3.11", ".venv-3.99t"}
    assert "not slow" in (position / "asked.txt").read_text()


def test_a_failure_ends_with_1_and_what_pytest_printed_is_shown(position, monkeypatch, capsys):
    python(position, "3.98", tests="echo 'E  1 is not 2'; echo '= 1 failed in 0.1s ='; exit 1")
    code, lines = run(monkeypatch, capsys)
    assert (code, "E  1 is not 2" in lines) == (1, True)
    assert "Python 3.98: 1 failed in 0.1s" in lines


def built(folder, *, size=10, lacks=None):
    """Distributions of all files of the package, empty ones."""
    names = subprocess.run(["git", "ls-files", "micrograd"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    folder.mkdir()
    source, wheel = folder / "m-1.tar.gz", folder / "m-1.whl"
    with tarfile.open(source, "w") as packed:
        for name in names:
            packed.addfile(tarfile.TarInfo(f"m-1/{name}"))
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in names:
            if name != lacks:
                packed.writestr(zipfile.ZipInfo(name), "")
    with source.open("ab") as file:
        file.write(bytes(size))
    return {".gz": source, ".whl": wheel}


def test_what_is_wrong_with_a_release_is_said(tmp_path):
    right, same = built(tmp_path / "right"), built(tmp_path / "same")
    assert release.wrong_with(right, same) == []
    large = built(tmp_path / "large", size=release.LARGEST, lacks="micrograd/py.typed")
    differs, too_large, lacks = release.wrong_with(large, same)[1:]
    assert differs == "m-1.whl differs from build to build"
    assert too_large.endswith("bytes, and 1,040,000 are too many")
    assert lacks == "the wheel lacks micrograd/py.typed"
