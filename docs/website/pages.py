"""The pages of the site: which there are, their order, and where their links lead."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from website import cells, home, reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# The pages whose Python blocks can be changed and run, beside those of the folder learn/.
LIVE = ("index.md", "tutorial.md", "explore.md", "gallery.md")

LIST = "learn/exercises.md"  # the page of all exercises, which is made of the chapters

# The order of the pages. One that is not here comes last in "Inside".
SECTIONS = {
    "Learn": ["tutorial.md", "articles.md", "from-pytorch.md", "from-jax.md", "from-casadi.md"],
    "Use": ["gallery.md", "explore.md", "command.md", "testing.md", "primitives.md", "compiler.md", "scaling.md"],
    "Reference": ["api.md"],
    "Trust": ["reliability.md", "performance.md"],
    "Inside": ["engine.md", "architecture.md", "contributing.md", "changelog.md"],
}

EXERCISES = """# All exercises

Each with how far you are: new, tried or solved. Hints and solutions are a button away; the notes on what you have done
are kept in this browser only.
"""

# Wide pages: the home page, and those for code, which has long lines.
WIDE = "---\nhide:\n  - navigation\n  - toc\n---\n\n"

# On the home page, the index of the search, which is larger than all else, is asked for once somebody does something.
SEARCH_LATER = """<script>{
  const begin = (resolve) => ["keydown", "pointerdown"].forEach((kind) => addEventListener(kind, resolve));
  const begun = new Promise(begin);
  const { open, send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, address, ...rest) {
    this.isIndex = String(address).endsWith("/search.json");
    return open.call(this, method, address, ...rest);
  };
  XMLHttpRequest.prototype.send = function (...body) {
    if (this.isIndex) begun.then(() => send.apply(this, body));
    else send.apply(this, body);
  };
}</script>
"""

LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?(?=\))")
TO_CHAPTER = re.compile(r"\[(?P<text>[^\]]+)\]\((?:[^)\s]*/)?(?P<chapter>\d\d)-[\w-]+\.md(?:#[^)\s]*)?\)")
LISTED = re.compile(r"^\d+\. \[[^\]]+\]\((?P<chapter>\d\d)-[\w-]+\.md\):.*\n(?:(?!\d+\. |\n).*\n)*", re.MULTILINE)
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def is_live(name):
    """Whether the Python blocks of a page run on it."""
    return name in LIVE or (name.startswith("learn/") and name != LIST)


def chapter_of(name):
    """The number of the chapter that a page of the site is, None of another page.

    Example:
        >>> chapter_of("learn/05-a-network.md"), chapter_of("learn/index.md")
        (5, None)
    """
    found = re.match(r"learn/(\d\d)-", name)
    return int(found[1]) if found else None


def stage(folder, chapters=None):
    """Write all pages of the site into a folder, as the site generator takes them.

    Args:
        folder: a new one.
        chapters: the numbers of those to have on the site; all where left out.

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
    texts[LIST] = list_of_exercises(exercises(chapters), texts)
    texts = texts if chapters is None else with_chapters(texts, chapters)
    names = list(texts)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        live = [name for name in names if is_live(name)]
        outputs = dict(zip(live, threads.map(cells.recorded, live, map(texts.get, live)), strict=True))
    for name, text in texts.items():
        if name in outputs:
            label, up = name.removesuffix(".md").replace("/", "-"), "../" * name.count("/")
            text = cells.with_cells(text, outputs[name], label, folder / "recorded", up=up)
        text = linked(text, name, sources)
        _write(folder / name, (f"{WIDE}{text}\n{SEARCH_LATER}" if name == "index.md" else text).encode())
    for name, text in reference.texts().items():
        _write(folder / "reference" / name, text.encode())
    for path in sorted(sources):
        _stage_source(folder, path, sources)
    return navigation(names)


def with_chapters(texts, chapters):
    """The pages of a site with some chapters: links to the others are plain text, and the path leaves them out.

    Args:
        texts: of the pages, by name.
        chapters: the numbers of those that stay.
    """

    def unlinked(found):
        return found[0] if int(found["chapter"]) in chapters else found["text"]

    def listed(found):
        number = int(found["chapter"])
        return f"{found[0]}{{: value={number} }}\n" if number in chapters else ""

    staying = {name: text for name, text in texts.items() if chapter_of(name) in {None, *chapters}}
    path = "learn/index.md"
    if path in staying:
        staying[path] = LISTED.sub(listed, staying[path])
    return {name: _outside_of_code(text, lambda part: TO_CHAPTER.sub(unlinked, part)) for name, text in staying.items()}


def _outside_of_code(text, change):
    """A text that is changed, but for what is code in it."""
    return "".join(part if index % 2 else change(part) for index, part in enumerate(CODE.split(text)))


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

    return _outside_of_code(text, lambda part: LINK.sub(moved, part))


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


def exercises(chapters=None):
    """The chapters with what they ask, for the page to show what is done: number, title, page and exercises of each.

    Of an exercise there are its number, its title and the number of the cell that checks it.

    Args:
        chapters: the numbers of those that are wanted; all where left out.
    """
    from micrograd.learn.catalogue import CHAPTERS

    files = {int(path.name[:2]): path for path in (DOCS / "learn").glob("[0-9]*.md")}
    return [
        {
            "number": chapter.number,
            "title": chapter.title,
            "page": f"{files[chapter.number].stem}.html",
            "exercises": [
                (exercise.number, exercise.title, cells.place_of(f'check("{exercise.number}"', text))
                for exercise in chapter.exercises
            ],
        }
        for chapter in CHAPTERS
        if chapters is None or chapter.number in chapters
        for text in [files[chapter.number].read_text(encoding="utf-8")]
    ]


def hints():
    """The hints and the solution of each exercise, by its number."""
    from micrograd.learn.catalogue import EXERCISES

    return {
        number: {"hints": exercise.hints, "solution": exercise.solution.strip()}
        for number, exercise in EXERCISES.items()
    }


def ten_lines():
    """The program of the home page, which the page trains."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    return next(block.code for block in cells.blocks(text) if home.MARK in block.code)


def list_of_exercises(listed, texts):
    """The page that lists all exercises, each with its task as its chapter has it.

    Args:
        listed: what exercises() gives.
        texts: of the pages, by name.

    Returns:
        Its text.

    Raises:
        ValueError: if a chapter does not have one of its exercises.
    """
    parts = [EXERCISES]
    for chapter in listed:
        page = chapter["page"].removesuffix(".html") + ".md"
        parts.append(f"## {chapter['number']}. {chapter['title']}\n")
        for number, title, cell in chapter["exercises"]:
            found = re.search(
                rf"^\*\*{re.escape(number)} .*?(?=^```|^#)", texts[f"learn/{page}"], re.DOTALL | re.MULTILINE
            )
            if found is None:
                raise ValueError(f"{page} does not ask for exercise {number}, {title}")
            parts.append(f"{found[0].rstrip()}\n\n[Answer it in the chapter]({page}#cell-{cell})\n")
    return "\n".join(parts)


def navigation(names):
    """The sections of the site, each with its pages: the chapters of learn/ in their order, then the others."""
    placed = {page for pages in SECTIONS.values() for page in pages} | {"index.md"}
    sections = {title: [page for page in pages if page in names] for title, pages in SECTIONS.items()}
    chapters = sorted(name for name in names if name.startswith("learn/"))
    chapters.sort(key=lambda name: (name != "learn/index.md", name != LIST))
    sections["Learn"] = chapters + sections["Learn"]
    sections["Inside"] += [name for name in names if name not in placed and not name.startswith("learn/")]
    sections["Reference"] += [f"reference/{page.file}.md" for page in reference.PAGES]
    return sections
