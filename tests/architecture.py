"""The map of the architecture: which components the package has, on which layer each is, and who imports whom.

    python -m tests.architecture     draws docs/architecture.md and its pictures again

The compiler, which is the largest component, is drawn in the same way: its packages and modules are components too.

A component is what the listing of the package shows: a package with all that is in it, or a module. The lowest layer
has the components that import no other. Each other component is one layer above the highest of those that it imports.
An import counts wherever it is written: at the top, in a function, or for type checkers only.
"""

import ast
import functools
import re
import textwrap
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE, MAP, PICTURE = (
    ROOT / "micrograd",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "images" / "architecture.svg",
)
COMPILER, PICTURE_OF_COMPILER = "micrograd.compiler", ROOT / "docs" / "images" / "compiler_architecture.svg"
COMMAND = "python -m tests.architecture"

INK, GREY, TINT = "#1f2933", "#616e7c", "#e3f0f8"
FONT = "Helvetica,Arial,sans-serif"
WIDEST = 27  # characters of a line in a box

TEXT = """\
# The architecture

Every component of the package, and what each is for. A component is a package, or a module that stands by itself.
The layers follow from the imports: a component imports from lower layers only, so no import runs upwards, and none in a
loop.

![The components of micrograd on their layers, with arrows from each to those that it imports](images/architecture.svg)

An arrow leads from a component to one that it imports. It is left out where other arrows already lead there. A white
box is a package, a blue one a single module.

| layer | component | what it is for | lines |
|---|---|---|---|
{rows}

Lines are those of Python, to the nearest ten, when the map was drawn. A test compares the map with the imports. To draw
it again: `{command}`.

## Inside the compiler

The same rules hold inside `micrograd/compiler/`, the largest component. What a program is made of is in `ir/`, and what
makes one program of another is in `passes/`.

![The packages of the compiler, with arrows from each to those that it imports](images/compiler_architecture.svg)

| layer | component | what it is for | lines |
|---|---|---|---|
{rows_of_compiler}

## The modules

What each module says of itself in its first line.
{modules}
"""


class Import(NamedTuple):
    """One import of a module of the package by another."""

    importer: str
    line: int
    imported: str


class Architecture:
    """What a package is made of, read from its source.

    Args:
        package: its folder.
        name: what imports call it, with the packages that it is in; by default it is in none.

    Attributes:
        modules: the modules by name: ``engine.value``, and ``engine.__init__`` for what its package is itself.
        imports: all imports among them.
        components: the names of the components, as in the listing: ``engine/``, ``nn.py``.
    """

    def __init__(self, package: Path, name: str = "") -> None:
        self.package, self.name = package, name or package.name
        paths = (path.relative_to(package) for path in sorted(package.rglob("*.py")))
        self.modules = {".".join(path.with_suffix("").parts): path for path in paths}
        self.imports = [found for name in self.modules for found in self._imports_of(name)]
        self.components = sorted({self.component(name) for name in self.modules})

    def component(self, module: str) -> str:
        """The component that a module is in."""
        first, *inner = self.modules[module].parts
        return f"{first}/" if inner else first

    def _imports_of(self, importer: str) -> list[Import]:
        found = []
        for node in _import_statements((self.package / self.modules[importer]).read_text(encoding="utf-8")):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                around = [self.name, *importer.split(".")][: -node.level] if node.level else []
                source = ".".join([*around, *([node.module] if node.module else [])])
                names = [f"{source}.{alias.name}" for alias in node.names]
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
        """The components that each component imports."""
        below: dict[str, set[str]] = {component: set() for component in self.components}
        for importer, _, imported in self.imports:
            below[self.component(importer)].add(self.component(imported))
        return {component: others - {component} for component, others in below.items()}

    def loops(self) -> list[str]:
        """A loop among the components, and one among the modules of each component, where there are any."""
        graphs = [self.below()]
        for component in self.components:
            inside = [name for name in self.modules if self.component(name) == component]
            graphs.append({name: self._imported(name) & {*inside} for name in inside})
        return [" imports ".join(loop[::-1]) for graph in graphs if (loop := _loop(graph))]

    def _imported(self, importer: str) -> set[str]:
        return {imported for name, _, imported in self.imports if name == importer}

    def upward(self, layers: dict[str, int]) -> list[str]:
        """The imports that lead to another component and not to a lower layer.

        Args:
            layers: the layer of each component, as on a map.
        """
        return [
            f"{self.name.replace('.', '/')}/{self.modules[importer].as_posix()}, line {line}: "
            f"{start} on layer {layers.get(start)} imports {end} on layer {layers.get(end)}"
            for importer, line, imported in self.imports
            if (start := self.component(importer)) != (end := self.component(imported))
            and not layers.get(start, 0) > layers.get(end, 0)
        ]

    def layers(self) -> dict[str, int]:
        """The layer of each component: one above the highest of those that it imports."""
        below, layers = self.below(), {}
        for component in TopologicalSorter(below).static_order():
            layers[component] = 1 + max((layers[other] for other in below[component]), default=0)
        return layers

    def arrows(self) -> list[tuple[str, str]]:
        """From component to component, but for those that a longer way says already."""
        below = self.below()
        reached: dict[str, set[str]] = {}
        for component in TopologicalSorter(below).static_order():
            reached[component] = below[component].union(*(reached[other] for other in below[component]))
        return [
            (component, other)
            for component in self.components
            for other in sorted(below[component])
            if not any(other in reached[between] for between in below[component])
        ]

    def says(self, component: str) -> str:
        """What a component is for: the first line of its docstring."""
        path = self.package / (f"{component}__init__.py" if component.endswith("/") else component)
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return docstring.partition("\n")[0].replace("``", "`")

    def listing(self) -> str:
        """A table of the modules of each package in this one."""
        tables = []
        for folder in sorted({path.parent for path in self.modules.values() if path.parent.name}):
            paths = [path for path in self.modules.values() if path.parent == folder and path.name != "__init__.py"]
            if paths and folder.name != "exercises":  # those are a chapter each
                rows = [f"| `{path.name}` | {self.says(str(path))} |" for path in paths]
                tables.append("\n".join([f"\n### `{folder}/`\n", "| module | what it is |", "|---|---|", *rows]))
        return "\n".join(tables)

    def lines(self, component: str) -> int:
        """How long the modules of a component are together."""
        paths = [self.package / path for name, path in self.modules.items() if self.component(name) == component]
        return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)

    def by_layer(self) -> list[tuple[int, list[str]]]:
        """The layers from the top down, each with its components."""
        layers = self.layers()
        ordered = sorted(self.components, key=lambda component: (-layers[component], component))
        return [(layer, list(components)) for layer, components in groupby(ordered, key=layers.__getitem__)]

    def map(self) -> str:
        """The rows of the table of components."""
        rows = [
            f"| {layer} | `{component}` | {self.says(component)} | {round(self.lines(component), -1):,} |"
            for layer, components in self.by_layer()
            for component in components
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
        for layer, components in self.by_layer():
            sign = f'<font point-size="9" color="{GREY}">layer {layer}</font>'
            boxes = [f'{layer} [shape=plain style="" tooltip=" " label=<{sign}>]', *map(self._box, components)]
            statements.append(f"{{ rank=same; {'; '.join(boxes)} }}")
        statements.append(f"{' -> '.join(str(layer) for layer, _ in self.by_layer())} [style=invis weight=100]")
        return [*statements, *(f'"{component}" -> "{other}"' for component, other in self.arrows())]

    def _box(self, component: str) -> str:
        said = self.says(component).replace("`", "")
        count = len(textwrap.wrap(said, WIDEST))
        lines = next(lines for width in range(1, WIDEST + 1) if len(lines := textwrap.wrap(said, width)) == count)
        label = (
            '<table border="0" cellspacing="0" cellpadding="2">'
            f'<tr><td><font point-size="12" color="{INK}"><b>{component}</b></font></td></tr>'
            f'<tr><td><font point-size="8.5" color="{GREY}">{"<br/>".join(map(escape, lines))}</font></td></tr></table>'
        )
        fill = "" if component.endswith("/") else f' fillcolor="{TINT}"'
        return f'"{component}" [tooltip="{escape(said)}" label=<{label}>{fill}]'

    def picture(self) -> bytes:
        """The picture, which says at its end what it was drawn from."""
        from micrograd.draw.layout import Picture

        drawn = Picture(self.name.replace(".", "_"), body=[f"{statement}\n" for statement in self.drawing()]).pipe(
            "svg"
        )
        return drawn.rstrip() + f"\n{self.mark()}\n".encode()

    def mark(self) -> str:
        """What tells a picture of this architecture from another, wherever Graphviz puts the boxes."""
        digest = sha256("\n".join(self.drawing()).encode()).hexdigest()
        return f"<!-- drawn from {digest} -->"


_WITH_STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


@functools.cache
def _import_statements(source: str) -> list[ast.Import | ast.ImportFrom]:
    """The imports in a module, wherever they are written; those of the compiler are asked for twice."""
    found, waiting = [], [ast.parse(source)]
    while waiting:  # through statements only, which takes a tenth of the time of ast.walk
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append(node)
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, _WITH_STATEMENTS)]
    return found


def _loop(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@functools.cache
def architectures() -> tuple[Architecture, Architecture]:
    """The package, and the compiler inside it."""
    return Architecture(PACKAGE), Architecture(ROOT / COMPILER.replace(".", "/"), COMPILER)


def page() -> str:
    package, compiler = architectures()
    return TEXT.format(rows=package.map(), rows_of_compiler=compiler.map(), command=COMMAND, modules=package.listing())


def maps(page: str) -> list[str]:
    """The map of the package and that of the compiler, on a page of both."""
    return page.split("## Inside the compiler")


def layers_of_map(text: str) -> dict[str, int]:
    """The layer of each component, as a map says it."""
    return {component: int(layer) for layer, component in re.findall(r"^\| (\d+) \| `([^`]+)` \|", text, re.MULTILINE)}


def lines_of_map(text: str) -> dict[str, int]:
    """The lines of each component, as a map says them."""
    rows = re.findall(r"^\| \d+ \| `([^`]+)` \| .* \| ([\d,]+) \|$", text, re.MULTILINE)
    return {component: int(lines.replace(",", "")) for component, lines in rows}


def without_lines(text: str) -> str:
    """A map without the lines of its components, which change every day."""
    return re.sub(r" [\d,]+ \|$", "", text, flags=re.MULTILINE)


def main() -> None:
    for architecture, picture in zip(architectures(), (PICTURE, PICTURE_OF_COMPILER), strict=True):
        if _loop(architecture.below()):
            raise SystemExit(
                f"An architecture with a loop among its components has no layers: {architecture.loops()[0]}"
            )
        picture.write_bytes(architecture.picture())
    MAP.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
