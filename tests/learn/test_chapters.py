"""The chapters: each runs, with a picture that its own lines draw, and a page to step through; as notebooks, too."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from micrograd.learn.catalogue import CHAPTERS as IN_CATALOGUE
from tests.learn.chapters import CHAPTERS, DOCS, LEARN, notebooks, run


def texts(path):
    return sorted(text for element in ElementTree.parse(path).iter() if (text := (element.text or "").strip()))


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_its_notebook_prints_what_it_promises_and_draws_its_pictures_and_its_page(page, tmp_path, own_registry):
    for printed, promised in run(page, tmp_path):
        assert printed == promised
    shown = re.findall(r"\]\(images/([\w-]+\.svg)\)", page.read_text(encoding="utf-8"))
    assert shown
    for name in shown:
        assert texts(tmp_path / name) == texts(LEARN / "images" / name), "draw it again: python -m tests.learn.chapters"
    pages = list(tmp_path.glob("*.html"))
    assert pages
    assert all("<title>" in page.read_text(encoding="utf-8") for page in pages)


def test_no_picture_is_left_over():
    shown = {
        name for page in CHAPTERS for name in re.findall(r"images/([\w-]+\.svg)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in (LEARN / "images").iterdir()} == shown


def test_every_chapter_of_the_catalogue_has_a_page():
    assert [int(page.name[:2]) for page in CHAPTERS] == [chapter.number for chapter in IN_CATALOGUE]


class TestNotebooks:
    def test_one_is_written_for_each_chapter_with_its_pictures(self, tmp_path):
        command = [sys.executable, DOCS / "notebooks.py", tmp_path / "made"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        written = sorted((tmp_path / "made").glob("*.ipynb"))
        assert [path.stem for path in written] == [page.stem for page in CHAPTERS]
        assert run.stdout.splitlines() == [f"wrote {path}" for path in written]
        for path in written:
            for link in re.findall(r"\]\(((?:images/)?[\w-]+\.(?:svg|ipynb))\)", path.read_text(encoding="utf-8")):
                assert (path.parent / link).exists(), link

    @pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
    def test_nothing_of_a_chapter_is_lost_or_changed_but_links_to_others(self, page):
        text = page.read_text(encoding="utf-8")
        cells = notebooks.notebook(text)["cells"]
        again = "\n\n".join(
            f"```python\n{source}\n```" if cell["cell_type"] == "code" else source
            for cell in cells
            if (source := "".join(cell["source"]))
        )
        unmarked = text.replace("```python {.recorded}", "```python")  # a notebook can run what a browser cannot
        assert again == notebooks.relinked(unmarked).strip("\n")

    def test_links_lead_to_notebooks_or_are_text(self):
        text = "[next](02-a-graph.md), [pages](../explore.md), [the picture](images/one.svg)"
        assert notebooks.relinked(text) == "[next](02-a-graph.ipynb), pages, [the picture](images/one.svg)"
        assert notebooks.cells("# One\n\n```python\nx = 1\n```\n\nTwo.\n") == [
            ("markdown", "# One"), ("code", "x = 1"), ("markdown", "Two.")
        ]  # fmt: skip

    def test_its_form_is_that_of_nbformat_4(self):
        made = json.loads(json.dumps(notebooks.notebook("# One\n\n```python\nx = 1\ny = 2\n```\n")))
        assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
        assert made["cells"] == [
            {"cell_type": "markdown", "id": "cell-0", "metadata": {}, "source": ["# One"]},
            {
                "cell_type": "code",
                "id": "cell-1",
                "metadata": {},
                "source": ["x = 1\n", "y = 2"],
                "execution_count": None,
                "outputs": [],
            },
        ]

    def test_without_a_folder_it_says_how_it_is_called(self):
        run = subprocess.run([sys.executable, DOCS / "notebooks.py"], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (1, "usage: python docs/notebooks.py FOLDER\n")
