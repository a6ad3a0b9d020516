"""Make notebooks of the chapters of the learner's path.

    python docs/notebooks.py FOLDER     writes a notebook for each chapter, and the pictures beside them

A chapter stays the one source: its text becomes cells of text, and each Python block a cell of code. Links to other
chapters lead to their notebooks; of links to other pages, which are not there, the text stays.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

LEARN = Path(__file__).parent / "learn"
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def cells(text):
    """The cells of a chapter: pairs of "markdown" or "code", and the source.

    Example:
        >>> cells("# One\\n\\n```python\\nx = 1\\n```\\n\\nTwo.\\n")
        [('markdown', '# One'), ('code', 'x = 1'), ('markdown', 'Two.')]
    """
    parts = BLOCK.split(text)  # text, code, text, code, ..., text
    kinds = ["markdown", "code"] * len(parts)
    return [(kind, part.strip("\n")) for kind, part in zip(kinds, parts, strict=False) if part.strip()]


def relinked(text):
    """A chapter with the links that its notebook has.

    Example:
        >>> relinked("[next](02-a-graph.md), [pages](../explore.md)")
        '[next](02-a-graph.ipynb), pages'
    """
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", re.sub(r"\]\((\d\d-[\w-]+)\.md\)", r"](\1.ipynb)", text))


def notebook(text):
    """A chapter as a notebook, in the form of nbformat 4."""
    made = []
    for index, (kind, source) in enumerate(cells(relinked(text))):
        cell = {"cell_type": kind, "id": f"cell-{index}", "metadata": {}, "source": source.splitlines(keepends=True)}
        made.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def write(folder, chapters=None):
    """Write the notebooks of these chapters, or of all, and the pictures beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in sorted(LEARN.glob("[0-9]*.md")):
        if chapters is not None and int(page.name[:2]) not in chapters:
            continue
        path = folder / f"{page.stem}.ipynb"
        path.write_text(json.dumps(notebook(page.read_text(encoding="utf-8")), indent=1) + "\n", encoding="utf-8")
        written.append(path)
    shutil.copytree(LEARN / "images", folder / "images", dirs_exist_ok=True)
    return written


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/notebooks.py FOLDER")
    for written in write(Path(sys.argv[1])):
        sys.stdout.write(f"wrote {written}\n")
