"""Runs the cells of a page, one after the other, and shows what they give.

The same module runs them when the site is built, in CPython, and on the page itself, in a browser.
"""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import os
import sys
import traceback

MOST_CHARACTERS = 100_000  # of the text of one cell: a loop that prints for ever must not fill the page
NOTES = "this browser"  # the file of mg.learn's notes; mg.learn.progress() says "kept in this browser"
SHOWN = {".svg": "picture", ".html": "page"}  # files that a cell writes, and how the page shows them


class Shown:
    """The outputs of one cell, in their order: text that follows text is one."""

    def __init__(self, show):
        self._show, self._left = show, MOST_CHARACTERS

    def text(self, text, kind="text"):
        """Show a text, as much of it as there is room for; then say once that the rest is left out."""
        if self._left is None or not text:
            return
        if len(text) <= self._left:
            self._left -= len(text)
        else:
            text = f"{text[: self._left]}\n... more than {MOST_CHARACTERS:,} characters: the rest is left out\n"
            self._left = None
        self._show(kind, text, "")

    def value(self, value):
        """Show what the last line of a cell gives, as a notebook does."""
        for method, kind in (("_repr_svg_", "picture"), ("_repr_image_svg_xml", "picture"), ("_repr_html_", "html")):
            found = getattr(value, method, None)
            if callable(found) and (text := found()) is not None:
                self._show(kind, text, type(value).__name__)
                return
        self.text(f"{value!r}\n")

    def error(self, text, line):
        """Show an error, however much was shown before: its last lines say what it is."""
        if len(text) > MOST_CHARACTERS:
            half = MOST_CHARACTERS // 2
            text = f"{text[:half]}\n... {len(text) - 2 * half:,} characters are left out\n{text[-half:]}"
        self._show("error", text, str(line))

    def figures(self):
        """Show the figures of matplotlib that are open, and close them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot else ():
            figure, drawn = pyplot.figure(number), io.StringIO()
            figure.savefig(drawn, format="svg", bbox_inches="tight")
            pyplot.close(figure)
            title = next((axes.get_title() for axes in figure.axes if axes.get_title()), "")
            self._show("picture", drawn.getvalue(), f"figure {number}: {title}" if title else f"figure {number}")

    def file(self, path, kind):
        with open(path, encoding="utf-8") as file:
            self._show(kind, file.read(), os.path.basename(path))


class Output:
    """What stands for sys.stdout and sys.stderr while a cell runs."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, shown, kind):
        self.shown, self._kind = shown, kind

    def write(self, text):
        if text:
            self.shown.text(text, self._kind)
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


class Runner:
    """The names that the cells of a page share, a run of each cell, and what mg.learn keeps from page to page."""

    def __init__(self, packages=()):
        """Begin with no names. The packages are those that the page can load, by the names that cells import."""
        self.names = {"__name__": "__main__"}
        self._packages = frozenset(packages)
        os.environ.setdefault("MPLBACKEND", f"module://{__name__.replace('runner', 'figures')}")  # the module beside it

    def run(self, number, code, show):
        """Run a cell.

        Args:
            number: of the cell on its page, from 1.
            code: the cell.
            show: is called with a kind ("text", "warning", "picture", "page", "html" or "error"), a text and a name.

        Returns:
            0, or the line of the cell at which an error was raised; -1 for an error that has no line.
        """
        name, shown, before = f"cell {number}", Shown(show), _files()
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
        usual = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Output(shown, "text"), Output(shown, "warning")
        try:
            result = self._executed(code, name)
            shown.figures()
            if result is not None:
                shown.value(result)
        except BaseException as error:  # also SystemExit: a cell may raise anything, and the page stays
            advice = self._missing(error) if sys.platform == "emscripten" else ""
            text, line = _told(error, name)
            shown.error(text + advice, line)
            return line
        finally:
            sys.stdout, sys.stderr = usual
        for path, kind in _new_files(before):
            shown.file(path, kind)
        return 0

    def put_notes(self, text):
        """Let mg.learn find what the page has kept of it; "" for nothing."""
        if text:
            with open(NOTES, "w", encoding="utf-8") as file:
                file.write(text)
        elif os.path.exists(NOTES):
            os.remove(NOTES)

    def notes(self):
        """What the page is to keep: a text, "" for nothing."""
        if not os.path.isfile(NOTES):
            return ""
        with open(NOTES, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _missing(self, error):
        """What to do about a module that is not there, also where micrograd says that it needs one; "" for others."""
        missing = error if isinstance(error, ModuleNotFoundError) else error.__context__
        if not (isinstance(error, ImportError) and isinstance(missing, ModuleNotFoundError) and missing.name):
            return ""
        error.msg = error.msg.partition("\n")[0]  # Pyodide goes on about other ways to load it, which a page has not
        name = missing.name.partition(".")[0]
        if name in self._packages:
            return f"This page loads {name} for a cell that says `import {name}`; the first time, it needs a network.\n"
        return f"This page cannot load {name}. To use it, run the cell in a Python of your own.\n"

    def _executed(self, code, name):
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.names)
        return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), self.names)


def _told(error, name):
    """What Python says of an error, without the frames of this module; and the line of the cell."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("cell ")]
    lines = [frame.lineno for frame in frames if frame.filename == name]
    if isinstance(error, SyntaxError) and error.filename == name:
        lines = [error.lineno or 1]
    kept = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    return "".join(kept + traceback.format_exception_only(error)), lines[-1] if lines else -1


def _files():
    return {entry.name: entry.stat().st_mtime_ns for entry in os.scandir() if entry.is_file()}


def _new_files(before):
    """The files that were written since, the oldest first, of those that a page can show."""
    written = [(time, name) for name, time in _files().items() if before.get(name) != time]
    kinds = ((name, SHOWN.get(os.path.splitext(name)[1].lower())) for _, name in sorted(written))
    return [(name, kind) for name, kind in kinds if kind]


def in_browser(lay_out, limit, packages):
    """A runner for a browser. Functions of JavaScript lay pictures out, and end this worker after so many seconds."""
    import logging

    from pyodide.ffi import JsException

    from micrograd.draw.layout import set_layout
    from micrograd.learn.deadline import set_timer

    def laid_out(source, kind, engine):
        try:
            return lay_out(source, kind, engine)
        except JsException as error:
            raise ValueError(f"the page cannot draw this as {kind!r}: {error}. It can as 'svg'") from None

    def no_input(prompt=""):
        raise OSError("input() has nobody to ask on a page: write the answer into the cell")

    set_layout(laid_out)
    set_timer(limit)
    os.environ["MICROGRAD_PROGRESS"] = NOTES
    builtins.input = no_input
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it would tell each new Python of its fonts
    return Runner(packages)
