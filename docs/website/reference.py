"""The reference: a page for each part of the library, made from the docstrings of what users name.

It looks at the objects themselves, under the names that users write. A reader of the source files alone would not find
the methods that a loop puts on Value.
"""

from __future__ import annotations

import importlib
import inspect
import re
from typing import NamedTuple

import micrograd as mg

LINE = 76  # characters of a signature on one line
SECTION = re.compile(r"^(Args|Returns|Raises|Warns|Attributes|Example):$")
ENTRY = re.compile(r"^(\*{0,2}\w[\w, .*]*): (.*)$")


class Page(NamedTuple):
    """A page of the reference."""

    file: str
    title: str
    prefix: str  # what its names begin with: mg.tanh
    module: str  # where they are looked up
    origins: tuple[str, ...]  # the modules that make them; a name from elsewhere is on another page


PAGES = (
    Page("values", "Values", "mg", "micrograd", ("micrograd.engine",)),
    Page("functions", "Functions", "mg", "micrograd", ("micrograd.functional",)),
    Page("derivatives", "Derivatives", "mg", "micrograd", ("micrograd.transforms", "micrograd.sparse")),
    Page("loops", "Loops", "mg", "micrograd", ("micrograd.loops",)),
    Page("arrays", "Arrays", "mg", "micrograd", ("micrograd.arrays",)),
    Page("networks", "Networks", "mg.nn", "micrograd.nn", ("micrograd.nn",)),
    Page("losses", "Losses", "mg.losses", "micrograd.losses", ("micrograd.losses",)),
    Page("optimisers", "Optimisers", "mg.optim", "micrograd.optim", ("micrograd.optim",)),
    Page("training", "Training", "mg", "micrograd", ("micrograd.training",)),
    Page("pictures", "Pictures and pages", "mg", "micrograd", ("micrograd.draw", "micrograd.pages")),
    Page(
        "layout", "A layout of one's own", "micrograd.draw.layout", "micrograd.draw.layout", ("micrograd.draw.layout",)
    ),
    Page("contexts", "Contexts", "mg", "micrograd", ("micrograd.contexts",)),
    Page("compiling", "Compiling", "mg", "micrograd", ("micrograd.compiler",)),
    Page("testing", "Testing", "mg.testing", "micrograd.testing", ("micrograd.testing",)),
    Page(
        "strategies",
        "Random programs",
        "mg.testing.strategies",
        "micrograd.testing.strategies",
        ("micrograd.testing.strategies",),
    ),
    Page("learning", "Exercises", "mg.learn", "micrograd.learn", ("micrograd.learn",)),
    Page("estimators", "Estimators", "micrograd.estimators", "micrograd.estimators", ("micrograd.estimators",)),
)


def names_of(page):
    """The public names of a page, with what they name: classes first, then functions, in the order of the alphabet."""
    module = importlib.import_module(page.module)
    listed = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    found = [(name, getattr(module, name)) for name in listed]
    ours = [(name, item) for name, item in found if callable(item) and _is_of(item, page.origins)]
    return sorted(ours, key=lambda pair: (not inspect.isclass(pair[1]), pair[0].lower()))


def _is_of(item, origins):
    module = getattr(item, "__module__", None) or ""
    return any(module == origin or module.startswith(f"{origin}.") for origin in origins)


def texts():
    """The pages of the reference as Markdown, by their file's name."""
    return {f"{page.file}.md": _page(page) for page in PAGES}


def missing():
    """The public names of `import micrograd as mg` that no page has."""
    here = {name for page in PAGES if page.module == "micrograd" for name, _ in names_of(page)}
    public = {name for name, item in vars(mg).items() if not name.startswith("_") and not inspect.ismodule(item)}
    return public - here


def _page(page):
    about = inspect.getdoc(importlib.import_module(page.module)) if page.module != "micrograd" else ""
    parts = [f"# {page.title}", _prose(about.partition("\n\n")[0])] if about else [f"# {page.title}"]
    if page.prefix.startswith("mg"):
        parts.append("Here `mg` is `import micrograd as mg`.")
    for name, item in names_of(page):
        parts += _entry(f"{page.prefix}.{name}", item, "##")
        if inspect.isclass(item):
            for method, found in _methods(item):
                parts += _entry(f"{name}.{method}", found, "###")
    return "\n\n".join(part for part in parts if part) + "\n"


def _methods(kind):
    """The public methods and properties of a class that say what they do.

    Those that are functions too, or point to one, as the methods of Value do, are left to that function.
    """
    found = []
    for name in sorted(dir(kind)):
        item = inspect.getattr_static(kind, name)
        if name.startswith("_") and name != "__call__":
            continue
        text = inspect.getdoc(item) or ""
        ours = getattr(item, "__module__", None) or getattr(getattr(item, "fget", None), "__module__", "")
        is_function = text.startswith("See micrograd.") or ours == "micrograd.functional"
        if text and str(ours).startswith("micrograd") and not is_function:
            found.append((name, item))
    return found


def _entry(name, item, level):
    anchor = re.sub(r"[^\w.]", "", name)
    heading = f"{level} `{name}` {{#{anchor}}}"
    signature = "" if isinstance(item, property) else _signature(name, item)
    return [heading, signature, _documentation(inspect.getdoc(item) or "")]


def _signature(name, item):
    try:
        given = inspect.signature(item)
    except ValueError:
        return ""
    parameters = [parameter for parameter in given.parameters.values() if parameter.name not in ("self", "cls")]
    words = re.sub(r"'([^']*)'", r"\1", str(given.replace(parameters=[])).partition(")")[2])
    if inspect.isclass(item):
        words = ""
    shown, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        annotation = parameter.annotation
        if isinstance(annotation, str):
            parameter = parameter.replace(annotation=_Bare(annotation.strip("'\"")))
        if repr(parameter.default).startswith("<") and parameter.default is not parameter.empty:
            parameter = parameter.replace(default=_Bare("..."))  # an object, with an address of its own each time
        shown.append(str(parameter))
    line = f"{name}({', '.join(shown)}){words}"
    if len(line) > LINE:
        line = f"{name}(\n" + "".join(f"    {part},\n" for part in shown) + f"){words}"
    return f"```python\n{line}\n```"


class _Bare(str):
    """An annotation that is shown without quotes."""

    def __repr__(self):
        return str(self)


def _documentation(text):
    """A docstring as Markdown: its sections as lists, and its example as code."""
    parts, name, lines = [], "", []
    for line in [*text.splitlines(), "Example:"]:  # the last closes the one before
        if found := SECTION.match(line):
            parts.append(_section(name, lines))
            name, lines = found[1], []
        else:
            lines.append(line)
    return "\n\n".join(part for part in parts if part)


def _section(name, lines):
    text = inspect.cleandoc("\n".join(lines)) if name else "\n".join(lines).strip()
    if not name:
        return _prose(text)
    if name == "Example":
        return f"**Example**\n\n```pycon\n{text}\n```"
    if name == "Returns":
        return f"**Returns**\n\n{_prose(text)}"
    entries = []
    for line in text.splitlines():
        found = ENTRY.match(line)
        if found:
            entries.append(f"- `{found[1]}`: {found[2]}")
        elif entries:
            entries[-1] += f" {line.strip()}"
        else:
            return f"**{_title(name)}**\n\n{_prose(text)}"
    return f"**{_title(name)}**\n\n" + "\n".join(_prose(entry) for entry in entries)


def _title(name):
    return "Arguments" if name == "Args" else name


def _prose(text):
    """A text whose signs Markdown would take for its own, outside of code."""
    parts = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    return "".join(part if index % 2 else re.sub(r"([<>*_\[\]])", r"\\\1", part) for index, part in enumerate(parts))
