"""Pyodide, Graphviz and the editor: packages of npm, as package-lock.json pins them to versions and digests."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
FILES = {  # the folder of live/ and what goes there; of any other package, its module goes to editor/
    "pyodide": (
        "pyodide",
        ("pyodide.mjs", "pyodide.asm.*js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"),
    ),
    "@viz-js/viz": ("viz", ("dist/viz.js",)),
}
WITH_WHEELS = ("numpy", "matplotlib")
NAMES = sorted(json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"])
IMPORT = re.compile(
    r"""(?P<before>^(?:import|export)\b[^'";]*\bfrom ['"])(?P<name>[^'"./][^'"]*)(?=['"];)""", re.MULTILINE
)


class PackageError(Exception):
    """A package cannot be had, or is not the one that is meant."""


def file_of(name):
    """The file that a module of the editor becomes: "@codemirror/view" is codemirror-view.js."""
    return name.removeprefix("@").replace("/", "-") + ".js"


def fetch(folder, source=HERE):
    """Install the packages into a folder; npm compares each with its digest, and keeps what it has fetched.

    Args:
        folder: gets a folder node_modules.
        source: the folder with package.json and package-lock.json.

    Returns:
        The folder node_modules.

    Raises:
        PackageError: if npm is missing, a package cannot be had, or one has another digest.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise PackageError("there is no npm on the PATH: what runs Python on the pages comes from npm. Install Node.js")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, folder)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        raise PackageError("npm took longer than 5 minutes: is there a network?") from None
    if run.returncode != 0:
        said = [line for line in run.stderr.splitlines() if "error" in line.lower() and "log of this run" not in line]
        raise PackageError("npm could not install the packages:\n" + "\n".join(said[:5]))
    return folder / "node_modules"


def unpack(modules, folder, pyodide=None):
    """Write the files that the site needs, and the licences of all packages.

    Args:
        modules: the folder node_modules.
        folder: the site's folder live/.
        pyodide: the folder of another Pyodide, as npm unpacks it; that of modules where left out.

    Raises:
        PackageError: if a file is missing.
    """
    for part in ("pyodide", "viz", "editor"):
        (folder / part).mkdir(parents=True)
    licences = []
    for name in NAMES:
        package = Path(pyodide) if pyodide and name == "pyodide" else modules / name
        about = json.loads((package / "package.json").read_text(encoding="utf-8"))
        if name in FILES:
            part, files = FILES[name]
            for pattern in files:
                found = next(package.glob(pattern), None)
                if found is None:
                    raise PackageError(f"there is no {pattern} in {package}: is it the package {name} of npm?")
                shutil.copyfile(found, folder / part / found.name)
        else:
            module = package / (about.get("module") or about["exports"]["import"])
            text = linked(module.read_text(encoding="utf-8"))
            (folder / "editor" / file_of(name)).write_text(text, encoding="utf-8")
        said = [
            path.read_text(encoding="utf-8")
            for path in sorted(package.iterdir())
            if re.fullmatch(r"licen[cs]e(\.\w+)?", path.name, re.IGNORECASE)
        ]
        licences.append(f"{name} {about['version']}\n\n{''.join(said) or 'see its page'}")
    (folder / "licences.txt").write_text(f"\n\n{'-' * 80}\n\n".join(licences), encoding="utf-8")


def add_wheels(source, folder):
    """Copy Pyodide's own NumPy and matplotlib, and what they need, beside Pyodide.

    Args:
        source: a folder with its wheels, such as a release of Pyodide unpacks to; None for a site without them.
        folder: the site's folder live/.

    Returns:
        The names that cells import, each with the package that it loads.

    Raises:
        PackageError: if a wheel is missing, or has another digest than this version of Pyodide names.
    """
    if source is None:
        return {}
    listed = json.loads((folder / "pyodide" / "pyodide-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted, imports = list(WITH_WHEELS), {}
    for name in wanted:  # what one needs comes after it
        package = listed[name]
        wanted += [other for other in package["depends"] if other not in wanted]
        file = Path(source) / package["file_name"]
        if not file.is_file():
            raise PackageError(f"there is no {file.name} in {source}: is it of the version of Pyodide that is pinned?")
        if hashlib.sha256(file.read_bytes()).hexdigest() != package["sha256"]:
            raise PackageError(f"{file} has another digest than this version of Pyodide names")
        shutil.copyfile(file, folder / "pyodide" / file.name)
        imports |= dict.fromkeys(package["imports"], name)
    return imports


def compile_ahead(folder):
    """Compile Python's library and the packages in the site's folder live/, so that no browser has to.

    Raises:
        PackageError: if there is no Node.js, or it cannot run Pyodide.
    """
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        raise PackageError("there is no node on the PATH: it compiles what runs on the pages. Install Node.js")
    program = Path(__file__).parent / "ahead" / "compile.mjs"
    run = subprocess.run([node, program, folder], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        said = "\n".join(run.stderr.splitlines()[-8:])
        raise PackageError(f"Node.js could not compile what runs on the pages:\n{said}")


def linked(module):
    """A module of the editor whose imports are files beside it, as a browser wants them."""

    def beside(found):
        if found["name"] not in NAMES:
            raise PackageError(f"a module of the editor imports {found['name']!r}, which is not among the packages")
        return f"{found['before']}./{file_of(found['name'])}"

    return IMPORT.sub(beside, module)
