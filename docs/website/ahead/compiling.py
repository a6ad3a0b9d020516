"""Compiles Python's own library and the packages of the site: runs in Pyodide when the site is built, under Node.js.

Half of the time until a first cell ran was spent on compiling modules of Python's library from their source. What is
loaded by the packages is compiled here; the rest stays source, which weighs half as much.
"""

import contextlib
import importlib
import importlib._bootstrap_external as importing
import io
import pkgutil
import sys
import zipfile


def load(*packages):
    """Import all modules of some packages, but for those that need what is not there.

    Returns:
        The files of all modules that are loaded now.
    """
    for package in packages:
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{package}.", onerror=lambda _: None):
            if not found.name.endswith("__main__"):
                with contextlib.suppress(ImportError):
                    importlib.import_module(found.name)
    return {file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}


def compiled(archive, folder, loaded, keep_source):
    """An archive in which modules that were loaded are compiled.

    Args:
        archive: a zip file as bytes.
        folder: where its files are when Python runs.
        loaded: the files of the modules to compile.
        keep_source: whether the source stays beside what was compiled, for whoever wants to read it.

    Returns:
        The new zip file as bytes: the same for the same archive, without dates.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as written:

        def write(name, content):
            written.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)

        for name in given.namelist():
            source, file = given.read(name), f"{folder}/{name}"
            wanted = name.endswith(".py") and file in loaded
            if wanted:
                code = compile(source, file, "exec", dont_inherit=True, optimize=0)
                bytecode = importing._code_to_hash_pyc(code, bytes(8), False)  # it is not compared with the source
                write(_beside(name) if keep_source else f"{name}c", bytes(bytecode))
            if keep_source or not wanted:
                write(name, source)
    return made.getvalue()


def _beside(name):
    """Where Python looks for what it has compiled of a file."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/__pycache__/".lstrip("/") + f"{file.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
