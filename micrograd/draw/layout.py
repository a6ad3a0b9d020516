"""Graphviz without a system package: a Digraph that lays itself out inside this process.

The graphviz package writes a graph in Graphviz's language and leaves the rest to a program named dot,
which pip does not install. The wheels of pygraphviz carry Graphviz itself, so a Picture asks them
first, and a ``dot`` on the PATH only where they are missing. A browser has neither: there, set_layout hands in
a function.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_type
from micrograd._support.files import write_atomically
from micrograd._support.locks import new_lock_for_library

try:
    import graphviz
except ImportError as error:
    raise ImportError("pictures need Graphviz: pip install graphviz pygraphviz") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from micrograd._support.files import StrPath

# Graphviz keeps global state: one layout at a time.
_lock = new_lock_for_library()
_fonts: list[bool] = []  # something in it says that Fontconfig has been used

LayOut = Callable[[str, str, str], "bytes | str"]
_own_layout: list[LayOut] = []  # what set_layout was given, if anything


def set_layout(lay_out: LayOut | None) -> None:
    """Have a function lay graphs out, in place of Graphviz inside of Python: pictures and pages then ask it.

    A browser has Graphviz as a program of its own, and can hand it in here.

    Args:
        lay_out: takes the graph in Graphviz's language, the format ("svg", "png", "plain" ...) and the engine ("dot"
            ...), and gives the picture, as bytes or as text. It raises ValueError for a format that it does not have.
            None goes back to Graphviz inside of Python.

    Raises:
        TypeError: for what is neither a function nor None.

    Example:
        >>> set_layout(lambda source, format, engine: f"<svg>{engine}: {len(source.splitlines())} lines</svg>")
        >>> Picture(body=["a -> b"]).pipe("svg")
        b'<svg>dot: 2 lines</svg>'
        >>> set_layout(None)
    """
    check_type(lay_out is None or callable(lay_out), "a layout must be a function or None", lay_out)
    _own_layout[:] = [] if lay_out is None else [lay_out]


class Picture(graphviz.Digraph):  # type: ignore[misc]  # the graphviz package has no types
    """A graphviz.Digraph that needs no ``dot`` program to be drawn.

    Everything a Digraph does works: notebooks show it, ``pipe`` gives the picture as bytes, ``render``
    and ``view`` write and open it, ``source`` is Graphviz's language.

    Example:
        >>> picture = Picture()
        >>> picture.edge("a", "b")
        >>> picture.pipe("svg", encoding="utf-8")[:5]
        '<?xml'
    """

    def pipe(
        self,
        format: str | None = None,  # noqa: A002  # Digraph's name for it
        *,
        engine: str | None = None,
        encoding: str | None = None,
        **options: Any,
    ) -> Any:
        """The picture in a format, as bytes, or as a str where an encoding is given.

        Args:
            format: ``"svg"``, ``"png"``, ``"pdf"`` ...; the Digraph's own where left out.
            engine: the layout; the Digraph's own, ``"dot"``, where left out.
            encoding: of the text, for formats that are text.
            options: what else graphviz.Digraph.pipe takes; those need a ``dot`` program.

        Raises:
            ValueError: for a format or an engine that Graphviz does not know.
            ImportError: if there is neither pygraphviz nor a ``dot`` program.
        """
        if _needs_program(options):
            return super().pipe(format, engine=engine, encoding=encoding, **options)
        picture = _laid_out(self.source, (format or self.format).lower(), (engine or self.engine).lower())
        return picture if encoding is None else picture.decode(encoding)

    def render(
        self,
        filename: StrPath | None = None,
        directory: StrPath | None = None,
        *,
        outfile: StrPath | None = None,
        view: bool = False,
        quiet_view: bool = False,
        **options: Any,
    ) -> str:
        """Write the picture to a file, and Graphviz's language for it beside it.

        Args:
            filename: of the source; the picture's is this and its format, as in ``graph.gv.svg``.
            directory: where to write.
            outfile: the picture's name, in place of filename; its suffix says the format.
            view: whether to open the picture in the system's viewer.
            quiet_view: as view, and what the viewer prints is dropped.
            options: ``cleanup``, ``format``, ``engine``, and what else graphviz.Digraph.render takes, which needs a
                ``dot`` program.

        Returns:
            The path of the picture.
        """
        given = dict(options)
        cleanup, format, engine = (given.pop(name, None) for name in ("cleanup", "format", "engine"))  # noqa: A001
        if _needs_program(given):
            options |= {"directory": directory, "outfile": outfile, "view": view, "quiet_view": quiet_view}
            path: str = super().render(filename, **options)
            return path
        if outfile is not None:
            outfile = Path(self.directory if directory is None else directory, outfile)
            format = format or outfile.suffix.removeprefix(".") or None  # noqa: A001
            filename, directory = filename or outfile.with_suffix(".gv").name, outfile.parent
        picture = self.pipe(format, engine=engine)
        source = self.save(filename, directory=directory)
        path = os.fspath(outfile) if outfile is not None else f"{source}.{format or self.format}"
        write_atomically(path, picture)
        if cleanup:
            os.remove(source)
        if view or quiet_view:
            graphviz.view(path, quiet=quiet_view)
        return path


def _has_library() -> bool:
    if _own_layout:
        return True
    try:
        import pygraphviz
    except ImportError:
        return False
    return int(pygraphviz.__version__.partition(".")[0]) >= 2  # those before it start a dot program themselves


def _needs_program(options: Mapping[str, Any]) -> bool:
    """Whether a ``dot`` program must lay a graph out; an ImportError where there is none."""
    if not any(options.values()) and _has_library():
        return False
    if shutil.which("dot") is None:
        raise ImportError("pictures need pygraphviz 2 or later (or Graphviz's dot): pip install 'pygraphviz>=2'")
    return True


@contextmanager
def _without_the_word_of_fontconfig() -> Iterator[None]:
    """Leave out what Fontconfig writes into the error output when it is first used, and notebooks would show.

    It has read the machine's files for another Fontconfig, or found none; the picture is drawn all the same. It
    writes past Python, so for that one layout the output goes into a file. Whatever else is written there comes out
    afterwards.
    """
    if _fonts:
        yield
        return
    _fonts.append(True)
    with ExitStack() as stack:
        try:
            output = os.dup(2)
            stack.callback(os.close, output)
            caught = stack.enter_context(TemporaryFile())
            os.dup2(caught.fileno(), 2)
        except OSError:  # there is no error output, or no room for a file
            yield
            return
        try:
            yield
        finally:
            os.dup2(output, 2)
            caught.seek(0)
            for line in caught:
                if not line.startswith(b"Fontconfig "):
                    os.write(2, line)


def _laid_out(source: str, format: str, engine: str) -> bytes:  # noqa: A002
    """The picture of a graph in Graphviz's language."""
    if format not in graphviz.FORMATS or engine not in graphviz.ENGINES:
        raise ValueError(f"Graphviz has no format {format!r} or no engine {engine!r}")
    if _own_layout:
        return _laid_out_by(_own_layout[0], source, format, engine)
    import pygraphviz

    class Graph(pygraphviz.AGraph):  # type: ignore[misc]  # the pygraphviz package has no types
        def number_of_nodes(self) -> int:
            return 0  # else draw prints a warning above 1,000; graphs that take too long are refused before

    with _lock, _without_the_word_of_fontconfig():
        return Graph(string=source).draw(format=format, prog=engine)


def _laid_out_by(lay_out: LayOut, source: str, format: str, engine: str) -> bytes:  # noqa: A002
    picture = lay_out(source, format, engine)
    if isinstance(picture, str):
        return picture.encode()
    if isinstance(picture, bytes):
        return picture
    raise TypeError(f"a layout must give bytes or text, not {type(picture).__name__}: {picture!r:.80}")
