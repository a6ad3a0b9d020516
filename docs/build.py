"""Build the site: python docs/build.py SITE; or with some chapters only: python docs/build.py SITE --chapters 1,2,5.

What it makes are plain files, which any server serves: python -m http.server --directory SITE. Nothing on them asks
another server for anything. It needs `pip install '.[docs]'`, and npm for what runs Python on the pages.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import notebooks  # noqa: E402  # after the path says where they are
from website import cells, home, packages, pages  # noqa: E402

MARK = "live/digest.txt"  # a folder with this file is a site, which may be replaced
WEBSITE = HERE / "website"
MADE = ("editor.js", "service-worker.js")  # of live/: they are written again for the site
LARGE = ("pyodide/pyodide.asm.wasm", "pyodide/python_stdlib.zip", "packages.zip")  # of live/: they show the progress
ASIDE = ("source/", "reference/", "404.html", "sitemap")  # not kept for reading without a network


class BuildError(Exception):
    """The site cannot be built, for a reason that the user can mend."""


def main(arguments=None):
    """Build the site that the command line names; the exit code is 0, or 1 with a line that says why not."""
    parser = argparse.ArgumentParser(description="Build the site from docs/.")
    parser.add_argument("site", metavar="SITE", type=Path, help="the folder to write; an older site there is replaced")
    parser.add_argument("--chapters", type=_chapters, help="those of the path to have, such as 1,2,5 (default: all)")
    parser.add_argument(
        "--wheels", type=Path, help="a folder with Pyodide's packages, for NumPy and matplotlib in cells"
    )
    parser.add_argument("--pyodide", type=Path, help="the folder of npm's package pyodide, in another version")
    options = parser.parse_args(arguments)
    try:
        build(options.site, options.chapters, options.wheels, options.pyodide)
    except (BuildError, cells.CellError, packages.PackageError, ImportError) as error:
        print(f"the site was not built: {error}", file=sys.stderr)
        return 1
    print(f"wrote {options.site}: python -m http.server --directory {options.site}")
    return 0


def _chapters(words):
    """The numbers in a list such as 1,2,5."""
    there = [chapter["number"] for chapter in pages.exercises()]
    wanted = {int(word) for word in words.split(",") if word.strip().isdecimal()}
    if len(wanted) < len(words.split(",")) or not wanted <= {*there}:
        raise argparse.ArgumentTypeError(f"a list of chapters from {there[0]} to {there[-1]}, such as 1,2,5: {words!r}")
    return wanted


def build(site, chapters=None, wheels=None, pyodide=None):
    """Build the site into a folder: whole, in place of an older one, or not at all.

    Args:
        site: the folder.
        chapters: the numbers of the chapters of the path that it has; all where left out.
        wheels: a folder with Pyodide's packages; without, cells cannot import NumPy and matplotlib.
        pyodide: the folder of another Pyodide than the pinned one, which the wheels are then of.

    Raises:
        BuildError: if there is something else in the folder, or Zensical is missing or fails.
        CellError: if a block of a page cannot be run.
        PackageError: if a package of npm cannot be had.
    """
    site = Path(os.path.abspath(site))
    _check(site)
    site.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=site.parent, prefix=".site-") as folder:
        installed = Path(folder) / "npm"
        installed.mkdir()
        modules = packages.fetch(installed)
        made = _generated(Path(folder), chapters)
        _add_runner(made, modules, chapters, wheels, pyodide)
        if site.exists():
            site.rename(Path(folder) / "old")
        made.rename(site)


def _check(site):
    if site.is_dir() and any(site.iterdir()) and not (site / MARK).exists():
        raise BuildError(f"{site} has something else in it than a site: choose another folder")
    if site.exists() and not site.is_dir():
        raise BuildError(f"{site} is a file: choose another name for the folder")
    wanted = [name for name in ("zensical", "graphviz", "pygraphviz") if importlib.util.find_spec(name) is None]
    if wanted:
        raise BuildError(f"it needs {', '.join(wanted)}: pip install {' '.join(wanted)}, or all of '.[docs]'")


def _generated(folder, chapters):
    """What Zensical makes of the pages."""
    staged = folder / "docs"
    staged.mkdir()
    sections = pages.stage(staged, chapters)
    shutil.copytree(WEBSITE / "live", staged / "live", ignore=shutil.ignore_patterns(*MADE))
    settings = (WEBSITE / "zensical.toml").read_text(encoding="utf-8")
    (folder / "zensical.toml").write_text(settings.replace("[project]\n", f"[project]\nnav = {_nav(sections)}\n", 1))
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise BuildError(f"Zensical says:\n{run.stdout}{run.stderr}")
    return folder / "site"


def _nav(sections):
    """The navigation in the language of the settings."""
    parts = [
        '{ "Home" = "index.md" }',
        *(f"{{ {json.dumps(title)} = {json.dumps(names)} }}" for title, names in sections.items()),
    ]
    return f"[{', '.join(parts)}]"


def _add_runner(made, modules, chapters, wheels, pyodide):
    """Add what runs Python on the pages, and the service worker that keeps it."""
    live = made / "live"
    packages.unpack(modules, live, pyodide)
    editor = (WEBSITE / "live" / "editor.js").read_text(encoding="utf-8")
    (live / "editor" / "editor.js").write_text(packages.linked(editor), encoding="utf-8")
    _zip_python(live / "packages.zip")
    packages.compile_ahead(live)
    imports = packages.add_wheels(wheels, live)
    listed = pages.exercises(chapters)
    numbers = {number for chapter in listed for number, *_ in chapter["exercises"]}
    hints = {number: help_ for number, help_ in pages.hints().items() if number in numbers}
    (live / "exercises.json").write_text(json.dumps(listed), encoding="utf-8")
    (live / "hints.json").write_text(json.dumps(hints), encoding="utf-8")
    notebooks.write(made / "learn", chapters)
    home.write(made, pages.ten_lines())
    sizes = {Path(name).name: (live / name).stat().st_size for name in LARGE}
    _put_in(live / "worker.js", WEBSITE / "live" / "worker.js", SIZES=json.dumps(sizes), IMPORTS=json.dumps(imports))
    files = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for name in files:
        digest.update(f"{name}\0".encode() + (made / name).read_bytes())
    runner = [name for name in files if name.startswith("live/") and not name.endswith(".whl")]  # kept once used
    path = [name for name in files if not name.startswith(("live/", *ASIDE))]
    path.sort(key=lambda name: not name.startswith(("assets/", "learn/")))  # what is missed first, first
    values = {
        "FILES": json.dumps(runner),
        "PAGES": json.dumps(path),
        "micrograd-DIGEST": f"micrograd-{digest.hexdigest()[:20]}",
    }
    _put_in(made / "service-worker.js", WEBSITE / "live" / "service-worker.js", **values)
    (made / MARK).write_text(digest.hexdigest() + "\n", encoding="utf-8")


def _put_in(path, source, **values):
    """Write a script in which names of constants have got their values."""
    text = source.read_text(encoding="utf-8")
    for name, value in values.items():
        text = re.sub(
            rf'(?<=^const )(\w+ = "?){re.escape(name)}\b',
            lambda found, value=value: found[1] + value,
            text,
            flags=re.MULTILINE,
        )
    path.write_text(text, encoding="utf-8")


def _zip_python(path):
    """What Python in the browser has beside its own library: micrograd, graphviz's Digraph, and what runs a cell."""
    graphviz = Path(importlib.util.find_spec("graphviz").origin).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for package in (HERE.parent / "micrograd", graphviz):
            for file in sorted(package.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    _add(archive, file, f"{package.name}/{file.relative_to(package).as_posix()}")
        for name in ("runner.py", "figures.py"):
            _add(archive, WEBSITE / name, f"cell_{name}")


def _add(archive, file, name):
    """Add a file without its date, so that the same files make the same site."""
    archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    sys.exit(main())
