"""Run the tests on each Python that this machine has.

    python -m tests.versions                      what is not slow, on each
    python -m tests.versions 3.10 3.13            on these
    python -m tests.versions --others             but not on the Python that runs this
    python -m tests.versions --minutes 15         at most so long, for all of them together
    python -m tests.versions 3.11 --lowest        with the lowest versions that the extras allow

A Python is found by its command, python3.12, or python3.14t for the one without a lock; and where pyenv keeps it. Each
gets an environment of its own, .venv-3.12 or .venv-3.12-lowest, which stays for the next time. The last lines say of
each Python what was run, or that it is not there; the exit code is 1 if tests failed, or could not be run, on one that
is.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.10", "3.14", "3.14t", "3.13", "3.12", "3.11")  # the oldest, and from the newest on: time may run out
INSTALL = (
    ("--upgrade", "pip>=25.1"),  # from which on it knows groups
    ("--editable", ".[all]", "--group", "test"),
)
TESTS = ("-m", "pytest", "--quiet", "--numprocesses", "auto", "--dist", "worksteal", "-m", "not slow")


def this_version() -> str:
    """The version of the Python that runs this."""
    is_free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return f"{sys.version_info.major}.{sys.version_info.minor}{'t' * is_free_threaded}"


def found(version: str) -> str | None:
    """The path of the command of a Python that runs; None where there is none."""
    if version == this_version():
        return sys.executable
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    of_pyenv = [str(path) for path in sorted(kept.glob(f"{version.rstrip('t')}.*/bin/python{version}"))]
    for path in (shutil.which(f"python{version}"), *of_pyenv):  # pyenv has commands on the PATH that say where it is
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def lowest_versions(project: dict[str, Any]) -> list[str]:
    """What to install for the lowest versions that the extras allow; where the tests need a higher one, for that.

    >>> extras = {"compile": ["numpy>=2.1", "llvmlite>=0.44"], "all": ["micrograd[compile]"]}
    >>> tests = {"test": ["numpy>=2.1", "llvmlite>=0.45"]}
    >>> lowest_versions({"project": {"optional-dependencies": extras}, "dependency-groups": tests})
    ['llvmlite==0.45', 'numpy==2.1']
    """
    extras = [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    found: dict[str, str] = {}
    for each in (*extras, *project["dependency-groups"]["test"]):
        name, _, version = each.partition(">=")
        if version and (each in extras or name in found):
            found[name] = max(version, found.get(name, "0"), key=lambda text: [*map(int, text.split("."))])
    return [f"{name}=={version}" for name, version in sorted(found.items())]


def run_on(version: str, python: str, end: float | None, lowest: bool = False) -> tuple[bool, str]:
    """Run the tests on a Python.

    Args:
        version: as in VERSIONS.
        python: the path of its command.
        end: when to stop, as time.monotonic() counts; None for never.
        lowest: whether to install the lowest versions that the extras allow.

    Returns:
        Whether nothing failed, and what happened.
    """
    folder, begin = ROOT / f".venv-{version}{'-lowest' * lowest}", time.monotonic()
    own = str(folder / "bin" / "python")
    pip, packages = INSTALL
    if lowest:
        import tomllib  # which Python 3.10 does not have

        packages = (*packages, *lowest_versions(tomllib.loads((ROOT / "pyproject.toml").read_text())))
    installing = [[own, "-m", "pip", "install", "--quiet", *words] for words in (pip, packages)]
    setting_up = [[python, "-m", "venv", str(folder)], *installing]
    for words in setting_up:
        done = _run(words, end)
        if done is None:
            return True, "not run: there was no time left to set it up"
        if done.returncode:
            return False, f"cannot be set up: {_last_line(done.stdout)}"
    done = _run([own, *TESTS, *(["--exitfirst"] if end is not None else [])], end)
    if done is None:
        return True, f"stopped after {time.monotonic() - begin:.0f} s, when no test had failed"
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0, _last_line(done.stdout)


def _run(words: list[str], end: float | None) -> subprocess.CompletedProcess[str] | None:
    """Run a command; None where there was no time for it."""
    left = None if end is None else max(end - time.monotonic(), 0)
    try:
        return subprocess.run(
            words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def _last_line(text: str) -> str:
    return re.sub(r"^=+ | =+$", "", next(iter(text.strip().splitlines()[::-1]), "it says nothing"))


def main() -> int:
    """Run the tests on each Python, and say of each what happened."""
    parser = argparse.ArgumentParser(description="Run the tests on each Python that this machine has.")
    parser.add_argument("versions", nargs="*", help="which (default: all)")
    parser.add_argument("--others", action="store_true", help="leave out the Python that runs this")
    parser.add_argument("--minutes", type=float, help="at most so long, for all of them together")
    parser.add_argument("--lowest", action="store_true", help="with the lowest versions that the extras allow")
    options = parser.parse_args()
    end = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    all_right, report = True, []
    for version in options.versions or VERSIONS:
        if options.others and version == this_version():
            continue
        if (python := found(version)) is None:
            report.append(f"Python {version}: not on this machine, so not run")
            continue
        is_right, what = run_on(version, python, end, options.lowest)
        all_right = all_right and is_right
        report.append(f"Python {version}{', lowest versions' * options.lowest}: {what}")
    print(*report, sep="\n")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
