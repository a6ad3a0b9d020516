"""Build what is released, and look at it.

    python -m tests.release              in a temporary folder
    python -m tests.release dist         and keep the files there

The source distribution is built twice, from two copies of the last commit, and a wheel from each: their bytes must be
equal. The source distribution has less than 1.01 MB. It needs
`pip install --group release`.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 1_040_000  # bytes of the source distribution


def build(source: Path, into: Path, *kinds: str) -> dict[str, Path]:
    """Build distributions; the files by their suffixes."""
    words = [sys.executable, "-m", "build", *kinds, "--outdir", str(into), str(source)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout)
    return {file.suffix: file for file in into.iterdir()}


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def wrong_with(one: dict[str, Path], other: dict[str, Path]) -> list[str]:
    """What is wrong with two builds of the same commit."""
    found = [
        f"{one[kind].name} differs from build to build" for kind in one if digest(one[kind]) != digest(other[kind])
    ]
    size = one[".gz"].stat().st_size
    if size >= LARGEST:
        found.append(f"{one['.gz'].name} has {size:,} bytes, and {LARGEST:,} are too many")
    with tarfile.open(one[".gz"]) as packed:
        sources = {name.partition("/")[2] for name in packed.getnames()}
    with zipfile.ZipFile(one[".whl"]) as packed:
        installed = {name for name in packed.namelist() if name.startswith("micrograd/")}
    kept = subprocess.run(["git", "ls-files", "micrograd"], cwd=ROOT, capture_output=True, text=True, check=True)
    for what, names in (("source distribution", sources), ("wheel", installed)):
        found += [f"the {what} lacks {name}" for name in kept.stdout.split() if name not in names]
    return found


def main() -> int:
    """Build twice, compare, and say what was built."""
    parser = argparse.ArgumentParser(description="Build what is released, and look at it.")
    parser.add_argument("folder", nargs="?", type=Path, help="where to put the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        builds = []
        for name in ("one", "another position"):  # neither the path nor the time may be in the files
            source = Path(folder) / name / "micrograd"
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(source)], check=True)
            os.utime(source / "pyproject.toml", (0, 0) if builds else None)
            builds.append(build(source, Path(folder) / name / "dist"))
        wrong = wrong_with(*builds)
        for file in builds[0].values():
            print(f"{file.name}: {file.stat().st_size:,} bytes, SHA-256 {digest(file)}")
            if options.folder and not wrong:
                options.folder.mkdir(exist_ok=True)
                shutil.copy(file, options.folder)
    print("\n".join(wrong) or "Two builds are equal, and nothing is missing")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
