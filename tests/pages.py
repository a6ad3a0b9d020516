"""README and docs, as tests read them."""

import re

from tests.folders import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page_of(name):
    """What the page of that name says; several folders may have one named index.md."""
    found = [page.read_text(encoding="utf-8") for page in PAGES if page.name == name]
    assert found, name
    return "\n".join(found)


def on_one_line(name):
    """A page whose lines are not wrapped."""
    return " ".join(page_of(name).split())


def section(name, heading):
    """What a page has under a heading of the second level."""
    _, found, rest = page_of(name).partition(f"\n## {heading}\n")
    assert found, heading
    return rest.partition("\n## ")[0]


def tables(text):
    """The tables of a text: the cells of each line, headings apart."""
    return [
        [cells(line) for line in table.splitlines()[2:]] for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    ]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def spans(text):
    """The code in the sentences of a text, outside of blocks."""
    return re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
