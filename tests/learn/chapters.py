"""Draw the pictures of the learner's path: each is what a block of its chapter saves.

python -m tests.learn.chapters     draws docs/learn/images/ anew
"""

import os
import re
import shutil
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

LEARN = Path(__file__).parents[2] / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[0-9]*.md"))


def run(page, folder):
    """Run all blocks of a chapter in a folder, where they leave their pictures and pages."""
    names = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            with redirect_stdout(StringIO()):
                exec(compile(code, page.name, "exec"), names)
    finally:
        os.chdir(before)


def main():
    os.environ["MICROGRAD_PROGRESS"] = "off"
    for page in CHAPTERS:
        with tempfile.TemporaryDirectory() as folder:
            run(page, folder)
            for picture in Path(folder).glob("*.svg"):
                shutil.copy(picture, LEARN / "images" / picture.name)


if __name__ == "__main__":
    main()
