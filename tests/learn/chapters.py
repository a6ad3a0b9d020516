"""Run the chapters of the learner's path, as the notebooks that are made of them, and draw their pictures.

python -m tests.learn.chapters     draws docs/learn/images/ again: each picture is what a block of its chapter saves
"""

import os
import re
import shutil
import tempfile
from contextlib import redirect_stdout
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
LEARN = DOCS / "learn"
CHAPTERS = sorted(LEARN.glob("[0-9]*.md"))


def loaded_notebooks():
    """docs/notebooks.py as a module."""
    spec = spec_from_file_location("notebooks", DOCS / "notebooks.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


notebooks = loaded_notebooks()


def run(page, folder):
    """Run the notebook of a chapter in a folder, where it leaves its pictures and pages.

    Returns:
        For each cell of code what it printed, and what the comments beside its prints say is printed; line by line.
    """
    names, found, before = {"__name__": "__main__"}, [], Path.cwd()
    made = notebooks.notebook(page.read_text(encoding="utf-8"))
    os.chdir(folder)
    try:
        for cell in made["cells"]:
            if cell["cell_type"] == "code":
                code, printed = "".join(cell["source"]), StringIO()
                with redirect_stdout(printed):
                    exec(compile(code, page.name, "exec"), names)
                promised = re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)
                found.append((printed.getvalue().splitlines(), promised))
    finally:
        os.chdir(before)
    return found


def main():
    os.environ["MICROGRAD_PROGRESS"] = "off"
    for page in CHAPTERS:
        with tempfile.TemporaryDirectory() as folder:
            run(page, folder)
            for picture in Path(folder).glob("*.svg"):
                shutil.copy(picture, LEARN / "images" / picture.name)


if __name__ == "__main__":
    main()
