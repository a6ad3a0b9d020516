"""The map of the house: which rooms the package has, on which floor each is, and who imports whom.

    python -m tests.house     draws docs/house.md and its pictures anew

The compiler, which is the largest room, is drawn in the same way: its packages and modules are rooms too.

A room is what stands in the listing of the package: a package with all that is in it, or a module. The lowest floor is
of rooms that import no other; each other room is one floor above the highest of those that it imports. An import
counts wherever it is written: at the top, in a function, or for type checkers only.
"""

from __future__ import annotations

import ast
import re
import textwrap
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE, MAP, PICTURE = ROOT / "micrograd", ROOT / "docs" / "house.md", ROOT / "docs" / "images" / "house.svg"
COMPILER, PICTURE_OF_COMPILER = "micrograd.compiler", ROOT / "docs" / "images" / "compiler_house.svg"
COMMAND = "python -m tests.house"

INK, GREY, TINT = "#1f2933", "#616e7c", "#e3f0f8"
FONT = "Helvetica,Arial,sans-serif"
WIDEST = 27  # characters of a line in a box

TEXT = """\
# The house

Every room of the package, and what each is for. A room is a package, or a module that stands by itself. The floors
follow from the imports: a room imports from lower floors only, so nothing runs upwards and nothing in a loop.

![The rooms of micrograd on their floors, with arrows from each to those that it imports](images/house.svg)

An arrow leads from a room to one that it imports. One that would say nothing new is left out: where a room is reached
by way of another. A white box is a package, a blue one a single module.

| floor | room | what it is for | lines |
|---|---|---|---|
{rows}

Lines are those of Python, to the nearest ten, when the map was drawn. A test compares the map with the imports. To draw
it anew: `{command}`.

## Inside the compiler

The same rules hold inside `micrograd/compiler/`, the largest room. What a program is made of is in `ir/`, and what
makes one program of another is in `passes/`.

![The packages of the compiler, with arrows from each to those that it imports](images/compiler_house.svg)

| floor | room | what it is for | lines |
|---|---|---|---|
{rows_of_compiler}
"""


class Import(NamedTuple):
    """One import of a module of the package by another."""

    importer: str
    line: int
    imported: str


class House:
    """What a package is made of, read from its source.

    Args:
        package: its folder.
        name: what imports call it, with the packages that it is in; by default it is in none.

    Attributes:
        modules: the modules by name: ``engine.value``, and ``engine.__init__`` for what its package is itself.
        imports: all imports among them.
        rooms: the names of the rooms, as in the listing: ``engine/``, ``nn.py``.
    """

    def __init__(self, package: Path, name: str = "") -> None:
        self.package, self.name = package, name or package.name
        paths = (path.relative_to(package) for path in sorted(package.rglob("*.py")))
        self.modules = {".".join(path.with_suffix("").parts): path for path in paths}
        self.imports = [found for name in self.modules for found in self._imports_of(name)]
        self.rooms = sorted({self.room(name) for name in self.modules})

    def room(self, module: str) -> str:
        """The room that a module is in."""
        first, *inner = self.modules[module].parts
        return f"{first}/" if inner else first

    def _imports_of(self, importer: str) -> list[Import]:
        found = []
        for node in ast.walk(ast.parse((self.package / self.modules[importer]).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                around = [self.name, *importer.split(".")][: -node.level] if node.level else []
                source = ".".join([*around, *([node.module] if node.module else [])])
                names = [f"{source}.{alias.name}" for alias in node.names]
            else:
                continue
            inside = [name[len(self.name) + 1 :] for name in names if f"{name}.".startswith(f"{self.name}.")]
            imported = sorted({self._module_of(name) for name in inside})
            found += [Import(importer, node.lineno, module) for module in imported if module != importer]
        return found

    def _module_of(self, name: str) -> str:
        """The module that an imported name is, or comes from: the longest part of the name that is one."""
        parts = name.split(".") if name else []
        while True:
            for module in (".".join(parts), ".".join([*parts, "__init__"])):
                if module in self.modules:
                    return module
            parts.pop()

    def below(self) -> dict[str, set[str]]:
        """The rooms that each room imports."""
        below: dict[str, set[str]] = {room: set() for room in self.rooms}
        for importer, _, imported in self.imports:
            below[self.room(importer)].add(self.room(imported))
        return {room: others - {room} for room, others in below.items()}

    def loops(self) -> list[str]:
        """A loop among the rooms, and one among the modules of each room, where there are any."""
        graphs = [self.below()]
        for room in self.rooms:
            inside = [name for name in self.modules if self.room(name) == room]
            graphs.append({name: self._imported(name) & {*inside} for name in inside})
        return [" imports ".join(loop[::-1]) for graph in graphs if (loop := _loop(graph))]

    def _imported(self, importer: str) -> set[str]:
        return {imported for name, _, imported in self.imports if name == importer}

    def upward(self, floors: dict[str, int]) -> list[str]:
        """The imports that lead to another room and not to a lower floor.

        Args:
            floors: the floor of each room, as on a map.
        """
        return [
            f"{self.name.replace('.', '/')}/{self.modules[importer].as_posix()}, line {line}: "
            f"{start} on floor {floors.get(start)} imports {end} on floor {floors.get(end)}"
            for importer, line, imported in self.imports
            if (start := self.room(importer)) != (end := self.room(imported))
            and not floors.get(start, 0) > floors.get(end, 0)
        ]

    def floors(self) -> dict[str, int]:
        """The floor of each room: one above the highest of those that it imports."""
        below, floors = self.below(), {}
        for room in TopologicalSorter(below).static_order():
            floors[room] = 1 + max((floors[other] for other in below[room]), default=0)
        return floors

    def arrows(self) -> list[tuple[str, str]]:
        """From room to room, but for those that a longer way says already."""
        below = self.below()
        reached: dict[str, set[str]] = {}
        for room in TopologicalSorter(below).static_order():
            reached[room] = below[room].union(*(reached[other] for other in below[room]))
        return [
            (room, other)
            for room in self.rooms
            for other in sorted(below[room])
            if not any(other in reached[between] for between in below[room])
        ]

    def says(self, room: str) -> str:
        """What a room is for: the first line of its docstring."""
        path = self.package / (f"{room}__init__.py" if room.endswith("/") else room)
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return docstring.partition("\n")[0].replace("``", "`")

    def lines(self, room: str) -> int:
        """How long the modules of a room are together."""
        paths = [self.package / path for name, path in self.modules.items() if self.room(name) == room]
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)

    def by_floor(self) -> list[tuple[int, list[str]]]:
        """The floors from the top down, each with its rooms."""
        floors = self.floors()
        ordered = sorted(self.rooms, key=lambda room: (-floors[room], room))
        return [(floor, list(rooms)) for floor, rooms in groupby(ordered, key=floors.__getitem__)]

    def map(self) -> str:
        """The rows of the table of rooms."""
        rows = [
            f"| {floor} | `{room}` | {self.says(room)} | {round(self.lines(room), -1):,} |"
            for floor, rooms in self.by_floor()
            for room in rooms
        ]
        return "\n".join(rows)

    def drawing(self) -> list[str]:
        """The picture in Graphviz's language, a statement a line."""
        style = f'shape=box style=filled fillcolor=white color="{GREY}" margin="0.1,0.04" fontname="{FONT}"'
        statements = [
            f'graph [ranksep=0.34 nodesep=0.22 pad=0.15 tooltip=" " fontname="{FONT}"]',
            f"node [{style}]",
            f'edge [color="{GREY}" arrowsize=0.6 penwidth=0.8 tooltip=" "]',
        ]
        for floor, rooms in self.by_floor():
            sign = f'<font point-size="9" color="{GREY}">floor {floor}</font>'
            boxes = [f'{floor} [shape=plain style="" tooltip=" " label=<{sign}>]', *map(self._box, rooms)]
            statements.append(f"{{ rank=same; {'; '.join(boxes)} }}")
        statements.append(f"{' -> '.join(str(floor) for floor, _ in self.by_floor())} [style=invis weight=100]")
        return [*statements, *(f'"{room}" -> "{other}"' for room, other in self.arrows())]

    def _box(self, room: str) -> str:
        said = self.says(room).replace("`", "")
        count = len(textwrap.wrap(said, WIDEST))
        lines = next(lines for width in range(1, WIDEST + 1) if len(lines := textwrap.wrap(said, width)) == count)
        label = (
            '<table border="0" cellspacing="0" cellpadding="2">'
            f'<tr><td><font point-size="12" color="{INK}"><b>{room}</b></font></td></tr>'
            f'<tr><td><font point-size="8.5" color="{GREY}">{"<br/>".join(map(escape, lines))}</font></td></tr></table>'
        )
        fill = "" if room.endswith("/") else f' fillcolor="{TINT}"'
        return f'"{room}" [tooltip="{escape(said)}" label=<{label}>{fill}]'

    def picture(self) -> bytes:
        """The picture, which says at its end what it was drawn from."""
        from micrograd.draw.layout import Picture

        drawn = Picture(self.name.replace(".", "_"), body=[f"{statement}\n" for statement in self.drawing()]).pipe(
            "svg"
        )
        return drawn.rstrip() + f"\n{self.mark()}\n".encode()

    def mark(self) -> str:
        """What tells a picture of this house from another, wherever Graphviz puts the boxes."""
        digest = sha256("\n".join(self.drawing()).encode()).hexdigest()
        return f"<!-- drawn from {digest} -->"


def _loop(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def houses() -> tuple[House, House]:
    """The package, and the compiler inside it."""
    return House(PACKAGE), House(ROOT / COMPILER.replace(".", "/"), COMPILER)


def page() -> str:
    """The page of both maps."""
    package, compiler = houses()
    return TEXT.format(rows=package.map(), rows_of_compiler=compiler.map(), command=COMMAND)


def maps(page: str) -> list[str]:
    """The map of the package and that of the compiler, on a page of both."""
    return page.split("## Inside the compiler")


def floors_of_map(text: str) -> dict[str, int]:
    """The floor of each room, as a map says it."""
    return {room: int(floor) for floor, room in re.findall(r"^\| (\d+) \| `([^`]+)` \|", text, re.MULTILINE)}


def lines_of_map(text: str) -> dict[str, int]:
    """The lines of each room, as a map says them."""
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \| .* \| ([\d,]+) \|$", text, re.MULTILINE)
    return {room: int(lines.replace(",", "")) for room, lines in rows}


def without_lines(text: str) -> str:
    """A map without the lines of its rooms, which change every day."""
    return re.sub(r" [\d,]+ \|$", "", text, flags=re.MULTILINE)


def main() -> None:
    """Draw the map."""
    for house, picture in zip(houses(), (PICTURE, PICTURE_OF_COMPILER), strict=True):
        if _loop(house.below()):
            raise SystemExit(f"A house with a loop among its rooms has no floors: {house.loops()[0]}")
        picture.write_bytes(house.picture())
    MAP.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
