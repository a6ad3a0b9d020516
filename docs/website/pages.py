"""The pages of the site: which there are, their order, and where their links lead."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from website import cells, reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# The pages whose Python blocks can be changed and run, beside those of the folder learn/.
LIVE = ("index.md", "tutorial.md", "explore.md", "gallery.md")

# The order of the pages. One that is not here comes last in "Inside".
SECTIONS = {
    "Learn": ["tutorial.md", "articles.md", "from-pytorch.md", "from-jax.md", "from-casadi.md"],
    "Use": ["gallery.md", "explore.md", "command.md", "testing.md", "primitives.md", "compiler.md", "scaling.md"],
    "Reference": ["api.md"],
    "Trust": ["reliability.md", "performance.md"],
    "Inside": ["engine.md", "house.md", "contributing.md", "changelog.md"],
}

WIDE = "---\nhide:\n  - navigation\n  - toc\n---\n\n"  # a page for code, which has long lines

LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def is_live(name):
    """Whether the Python blocks of a page run on it."""
    return name in LIVE or name.startswith("learn/")


def stage(folder):
    """Write all pages of the site into a folder, as the site generator takes them.

    Args:
        folder: a new one.

    Returns:
        The navigation: sections with their pages.

    Raises:
        CellError: if a block of a live page cannot be run.
    """
    names = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    sources = set()
    for path in DOCS.rglob("*"):
        if path.is_file() and "website" not in path.parts and path.suffix not in (".md", ".py", ".pyc"):
            _write(folder / path.relative_to(DOCS), path.read_bytes())
    (folder / "recorded").mkdir()
    texts = {name: (DOCS / name).read_text(encoding="utf-8") for name in names}
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        live = [name for name in names if is_live(name)]
        outputs = dict(zip(live, threads.map(cells.recorded, live, map(texts.get, live)), strict=True))
    for name, text in texts.items():
        if name in outputs:
            label, up = name.removesuffix(".md").replace("/", "-"), "../" * name.count("/")
            text = cells.with_cells(text, outputs[name], label, folder / "recorded", up=up)
        _write(folder / name, linked(text, name, sources).encode())
    for name, text in reference.texts().items():
        _write(folder / "reference" / name, text.encode())
    for path in sorted(sources):
        _stage_source(folder, path, sources)
    return navigation(names)


def linked(text, name, sources):
    """A page whose links to files of the repository outside of docs lead to pages that show them.

    Args:
        text: of the page.
        name: of the page, from docs/.
        sources: gets the files and folders that are linked to, from the root.

    Returns:
        The text.
    """

    def moved(found):
        target = Path(os.path.normpath(DOCS / Path(name).parent / found["target"]))
        if target.is_relative_to(DOCS) or not target.exists():
            return found[0]
        path = target.relative_to(ROOT).as_posix()
        sources.add(path)
        page = f"source/{path}/index.md" if target.is_dir() else f"source/{path}.md"
        return f"{found['before']}{'../' * name.count('/')}{page}"

    parts = CODE.split(text)
    return "".join(part if index % 2 else LINK.sub(moved, part) for index, part in enumerate(parts))


def _stage_source(folder, path, sources):
    """A page that shows a file of the repository, or pages for those of a folder."""
    place = ROOT / path
    if place.is_dir():
        files = [file for file in sorted(place.glob("*.py")) if file.read_text(encoding="utf-8").strip()]
        listed = "\n".join(f"- [`{file.name}`]({file.name}.md): {_about(file)}" for file in files)
        _write(folder / "source" / path / "index.md", f"# {path}/\n\n{listed}\n".encode())
        for file in files:
            if f"{path}/{file.name}" not in sources:
                _stage_source(folder, f"{path}/{file.name}", sources)
        return
    text = place.read_text(encoding="utf-8")
    _write(folder / "source" / f"{path}.md", f"{WIDE}# {path}\n\n````python\n{text}````\n".encode())


def _about(file):
    """The first line of a module's docstring, or nothing."""
    found = re.match(r'(?:#.*\n)*\s*r?"""(.*?)(?:"""|\n)', file.read_text(encoding="utf-8"))
    return found[1] if found else ""


def _write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def exercises():
    """The chapters with what they ask, for the page to show what is done: number, title, page and exercises of each."""
    from micrograd.learn.catalogue import CHAPTERS

    files = {int(path.name[:2]): f"{path.stem}.html" for path in (DOCS / "learn").glob("[0-9]*.md")}
    return [
        {
            "number": chapter.number,
            "title": chapter.title,
            "page": files[chapter.number],
            "exercises": [(exercise.number, exercise.title) for exercise in chapter.exercises],
        }
        for chapter in CHAPTERS
    ]


def navigation(names):
    """The sections of the site, each with its pages: the chapters of learn/ in their order, then the others."""
    placed = {page for pages in SECTIONS.values() for page in pages} | {"index.md"}
    sections = {title: [page for page in pages if page in names] for title, pages in SECTIONS.items()}
    chapters = sorted(name for name in names if name.startswith("learn/"))
    sections["Learn"] = sorted(chapters, key=lambda name: name != "learn/index.md") + sections["Learn"]
    sections["Inside"] += [name for name in names if name not in placed and not name.startswith("learn/")]
    sections["Reference"] += [f"reference/{page.file}.md" for page in reference.PAGES]
    return sections
