"""The demos, run as a user runs them."""

import os
import subprocess
import sys

from tests.folders import DEMOS

COMMAND = [sys.executable, "-W", "error", "-u"]


def run(demo, *options, folder=None, path=None):
    """Run a demo where no display is, in a folder, with modules that come before the installed ones in another."""
    environment = {name: text for name, text in os.environ.items() if name != "DISPLAY"}
    environment |= {"MPLBACKEND": "TkAgg", "PYTHONUTF8": "1"}
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), environment.get("PYTHONPATH", "")])
    command = [*COMMAND, str(DEMOS / demo), *map(str, options)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", env=environment, timeout=600, check=False
    )


def printed(folder, demo, *options):
    """What a demo prints that is run in a folder."""
    result = run(demo, *options, folder=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout


def is_png(path):
    data = path.read_bytes()
    return data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
