"""Pyodide, Graphviz and the editor: packages of npm, each with its version and digest.

What is fetched is kept, so the network is asked once. `npm view NAME@VERSION dist.integrity` prints a digest.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """A package of npm, and which of its files the site needs."""

    name: str
    version: str
    integrity: str  # base64 of its SHA-512
    files: tuple[tuple[str, str], ...]  # the path in the package, and that in the site's folder live/

    @property
    def digest(self):
        return base64.b64decode(self.integrity).hex()


class PackageError(Exception):
    """A package cannot be had, or is not the one that is meant."""


def _module(name, version, integrity, path="dist/index.js"):
    return Package(name, version, integrity, ((path, f"editor/{file_of(name)}"),))


def file_of(name):
    """The file that a module of the editor becomes: "@codemirror/view" is codemirror-view.js."""
    return name.removeprefix("@").replace("/", "-") + ".js"


PACKAGES = (
    Package(
        "pyodide",
        "314.0.7",
        "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
        tuple(
            (name, f"pyodide/{name}")
            for name in (
                "pyodide.mjs",
                "pyodide.asm.mjs",
                "pyodide.asm.wasm",
                "python_stdlib.zip",
                "pyodide-lock.json",
            )
        ),
    ),
    Package(
        "@viz-js/viz",
        "3.31.0",
        "r7zlQdRvcwvIpjHGgs+KNWHeE/P5/Dq7k8ZAKaMCbZqomxCBJV78gVuQYaHzFVca+kB0mX0fMW9UFevCOBG50A==",
        (("dist/viz.js", "viz/viz.js"),),
    ),
    _module(
        "@codemirror/autocomplete",
        "6.20.4",
        "yF8RhOf2SXlg00+qtupzLhrglcas61boqaONiNcbPIebHCpJocpqTBA6dyrtUrQO47hqyTdeob/3XnYilT7TaQ==",
    ),
    _module(
        "@codemirror/commands",
        "6.11.1",
        "O/4hG3SC1YwcmQ0d2UVNDs+AsaNWd1iHVxbTeEBuqH+6bExAiPK3iS/BvpY6rZGURALv4ZD3sIgcCmRvw3ehBg==",
    ),
    _module(
        "@codemirror/lang-python",
        "6.2.1",
        "IRjC8RUBhn9mGR9ywecNhB51yePWCGgvHfY1lWN/Mrp3cKuHr0isDKia+9HnvhiWNnMpbGhWrkhuWOc09exRyw==",
    ),
    _module(
        "@codemirror/language",
        "6.13.1",
        "zfvU2r3TyylQLMj/te+5CnQ0rSqZi8B1oTCBbQkagcLW4Xc6imab6qN+pEJhsuNOLaJqiRyBXp9UhWA1DhVvDw==",
    ),
    _module(
        "@codemirror/state",
        "6.7.6",
        "kAz+AncRtKuIknedxT1bq4XwXv4UowhbkHU1myPrtVb/jZtImWuV5BXzv5vK6i3kYACsdiZiQKFQQ5Mq7elW8w==",
    ),
    _module(
        "@codemirror/streamparser",
        "6.0.0",
        "JTFPF6xrfjt0mnfGPgzcLiMwYmvIyNaoizp8BYzv8FE8KrT6GBGDZ190rtt+O7Wke3gG/MFHyiY9YGNeimof4w==",
    ),
    _module(
        "@codemirror/view",
        "6.43.15",
        "HHsfpqFeHyXLs983pSRe38Xajs0vFWZQ2BuX0m7Ki8w3jZ5iD8cuR3lBz2/5/X53Dhf32SBHKh6rtSTB6tKeGw==",
    ),
    _module(
        "@lezer/common",
        "1.5.5",
        "Pw7PVCndruF1pb3ebCxpSVpkMHSDjwRCLcTRw+RizUKco5QbWylwq2g4lnG/RYN7yTTQDXE9F77MwtkAyphrjg==",
    ),
    _module(
        "@lezer/highlight",
        "1.2.5",
        "O1GMVKgtf5YspFaRzpmqkVgMtIk2HG9uMAbH6wdAIdNh3TVzCsch/+cRi+6l2//UGDKe6NB9BW3cvuR5ezMQ0w==",
    ),
    _module(
        "@lezer/lr",
        "1.4.12",
        "On9HU4oMMiHPMkQDgoTnGahjgG5n/MkN38CgG77sMraKLL+3JBbeQNi1FcCXV9QRqwF9/BUXP3caHyJC1fBOTQ==",
    ),
    _module(
        "@lezer/python",
        "1.1.19",
        "MhQIURHRytsNzP/YXnqpYKW6la6voAH3kyplTOOiCdjyFY6cWWGFVmYVdHIPrElqSDf4iCDktQCockB9FxuhzQ==",
    ),
    _module(
        "style-mod",
        "4.1.4",
        "XXWIQt633/EpAFx8aZDOTjBzrCaGmhvEQlQo6MVPfa2OzO2cWo+4hV9h+6UkHYlXGfy+ODXKUdP7Pthmcu5ATw==",
        "src/style-mod.js",
    ),
    _module(
        "w3c-keyname",
        "2.2.8",
        "dpojBhNsCNN7T82Tm7k26A6G9ML3NkhDsnw9n/eoxSRlVBB4CEtIQ/KTCLI2Fwf3ataSXRhYFkQi3SlnFwPvPQ==",
        "index.js",
    ),
    _module(
        "crelt",
        "1.0.7",
        "aK6BbWfhf4U/wCcLHKPJl/xa6VkVstRaPywWtMKGwuOLc/wZTyQYuoxgvZnNsBvv7Kg3YTBQYYBCggcviQczuA==",
        "index.js",
    ),
    _module(
        "@marijn/find-cluster-break",
        "1.0.4",
        "Wy0V7+SGUjnF9/TkiM1hKVDPj7jKXduPNboMVtHTA8dySMURWqfg/JZ9E2Sq8JgSJmkl7k7Qe9FLeMSrSraWmQ==",
        "src/index.js",
    ),
)

IMPORT = re.compile(
    r"""(?P<before>^(?:import|export)\b[^'";]*\bfrom ['"])(?P<name>[^'"./][^'"]*)(?=['"];)""", re.MULTILINE
)


def cache_folder():
    """Where packages are kept: the folder that MICROGRAD_SITE_CACHE names, or one in the user's cache."""
    chosen = os.environ.get("MICROGRAD_SITE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "micrograd-site"


def fetch(packages=PACKAGES, cache=None):
    """Have every package in the cache, as a .tgz whose name is its digest.

    Returns:
        Each package with the path of its file.

    Raises:
        PackageError: if npm is missing, a package cannot be had, or one has another digest.
    """
    cache = cache or cache_folder()
    kept = [(package, cache / f"{package.digest[:40]}.tgz") for package in packages]
    missing = [(package, path) for package, path in kept if not _is(path, package)]
    if missing:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            _pack([package for package, _ in missing], folder)
            found = {hashlib.sha512(path.read_bytes()).hexdigest(): path for path in Path(folder).glob("*.tgz")}
            for package, path in missing:
                if package.digest not in found:
                    raise PackageError(
                        f"what npm gave for {package.name} {package.version} is not what was pinned: "
                        f"no file has the digest sha512-{package.integrity}"
                    )
                os.replace(found[package.digest], path)
    return kept


def _is(path, package):
    return path.is_file() and hashlib.sha512(path.read_bytes()).hexdigest() == package.digest


def _pack(packages, folder):
    npm = shutil.which("npm")
    if npm is None:
        raise PackageError("there is no npm on the PATH: what runs Python on the pages comes from npm. Install Node.js")
    wanted = [f"{package.name}@{package.version}" for package in packages]
    try:
        run = subprocess.run(
            [npm, "pack", "--ignore-scripts", *wanted],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PackageError(f"npm took longer than 5 minutes for {', '.join(wanted)}: is there a network?") from None
    if run.returncode != 0:
        said = [line for line in run.stderr.splitlines() if "error" in line.lower() and "log of this run" not in line]
        raise PackageError(f"npm could not fetch {', '.join(wanted)}:\n" + "\n".join(said[:5]))


def unpack(fetched, folder):
    """Write the files that the site needs, and the licences of all packages.

    Args:
        fetched: as fetch gives them.
        folder: the site's folder live/.
    """
    licences = []
    for package, path in fetched:
        with tarfile.open(path) as archive:
            for source, target in package.files:
                text = archive.extractfile(f"package/{source}").read()
                place = folder / target
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(linked(text.decode()).encode() if target.startswith("editor/") else text)
            names = [name for name in archive.getnames() if re.fullmatch(r"package/licen[cs]e(\.\w+)?", name, re.I)]
            said = [archive.extractfile(name).read().decode() for name in names]
            licences.append(f"{package.name} {package.version}\n\n{''.join(said) or 'see its page'}")
    (folder / "licences.txt").write_text(f"\n\n{'-' * 80}\n\n".join(licences), encoding="utf-8")


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
    names = {package.name for package in PACKAGES}

    def beside(found):
        if found["name"] not in names:
            raise PackageError(f"a module of the editor imports {found['name']!r}, which is not among the packages")
        return f"{found['before']}./{file_of(found['name'])}"

    return IMPORT.sub(beside, module)
