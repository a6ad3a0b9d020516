"""The chapters: each has a picture that its own lines draw, and a page to step through."""

import re
from xml.etree import ElementTree

import pytest

from micrograd.learn.catalogue import CHAPTERS as IN_CATALOGUE
from tests.learn.chapters import CHAPTERS, LEARN, run


def texts(path):
    return sorted(text for element in ElementTree.parse(path).iter() if (text := (element.text or "").strip()))


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_its_pictures_are_those_that_its_lines_draw_and_its_page_is_written(page, tmp_path, own_registry):
    run(page, tmp_path)
    shown = re.findall(r"\]\(images/([\w-]+\.svg)\)", page.read_text(encoding="utf-8"))
    assert shown
    for name in shown:
        assert texts(tmp_path / name) == texts(LEARN / "images" / name), "draw it anew: python -m tests.learn.chapters"
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
