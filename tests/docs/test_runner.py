"""A cell is run, and what it gives is shown: the same module runs on the page."""

import sys
from functools import partial

import pytest
from website import runner
from website.runner import MOST_CHARACTERS, Runner


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs cells one after the other; gives the line at fault and what was shown, text after text as one."""
    monkeypatch.chdir(tmp_path)
    python, number = Runner(), 0

    def run(code):
        nonlocal number
        shown = []

        def show(kind, text, name):
            if kind == "text" and shown and shown[-1][0] == kind:
                text, _ = shown.pop()[1] + text, None
            shown.append((kind, text, name))

        line = python.run(number := number + 1, code, show)
        return line, shown

    return run


def test_names_last_from_cell_to_cell(run):
    assert run("x = 2\nprint(x)") == (0, [("text", "2\n", "")])
    assert run("x * 3") == (0, [("text", "6\n", "")])
    assert run("None") == (0, [])
    assert run("") == (0, [])
    assert run("__name__") == (0, [("text", "'__main__'\n", "")])


def test_texts_and_warnings_come_in_their_order(run):
    _, shown = run("import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c', end='', flush=True)")
    text = "".join(text for _, text, _ in shown)
    assert text == "a\nb\nc"
    assert ("warning", "b", "") in shown
    assert not sys.stdout.__class__.__module__.endswith("runner")


def test_values_are_drawn_and_networks_are_tables(run):
    _, ((kind, text, name),) = run("import micrograd as mg\nmg.Value(2.0) * 3")
    assert (kind, name) == ("picture", "Value")
    assert text.rstrip().endswith("</svg>")
    _, ((kind, text, name),) = run("mg.draw_dot(mg.Value(2.0) * 3)")
    assert (kind, name) == ("picture", "Picture")
    _, ((kind, text, name),) = run("mg.nn.MLP(2, [1])")
    assert (kind, name) == ("html", "MLP")
    assert text.startswith("<table>")


def test_files_that_a_cell_writes_are_shown(run):
    _, shown = run(
        "from pathlib import Path\nfor name in ('b.svg', 'a.html', 'c.txt'): _ = Path(name).write_text(name)"
    )
    assert shown == [("picture", "b.svg", "b.svg"), ("page", "a.html", "a.html")]
    assert run("Path('b.svg').read_text()") == (0, [("text", "'b.svg'\n", "")])
    _, shown = run("import os\nos.utime('b.svg', (1, 1))")  # it is another one now
    assert shown == [("picture", "b.svg", "b.svg")]


@pytest.mark.parametrize(
    ("code", "line", "last"),
    [
        ("print(1)\n\n1 / 0", 3, "ZeroDivisionError: division by zero"),
        ("def f():\n    return missing\nf()", 2, "NameError: name 'missing' is not defined"),
        ("x = 1\ny = (", 2, "SyntaxError: '(' was never closed"),
        ("raise SystemExit(3)", 1, "SystemExit: 3"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
        ("exec('1 +')", 1, "SyntaxError: invalid syntax"),
    ],
)
def test_an_error_points_at_its_line_of_the_cell(run, code, line, last):
    found, shown = run(code)
    kind, text, name = shown[-1]
    assert (found, kind, name) == (line, "error", str(line))
    assert text.rstrip().splitlines()[-1] == last
    assert "runner.py" not in text


def test_an_error_in_a_function_of_another_cell_points_at_the_call(run):
    run("def broken():\n    x = 1\n    raise ValueError('no')")
    line, shown = run("x = 1\nbroken()")
    assert line == 2
    assert 'File "cell 1", line 3, in broken\n    raise ValueError' in shown[-1][1]


def test_an_error_while_it_is_shown_is_told_too(run):
    line, shown = run("class Bad:\n    def __repr__(self):\n        raise OSError('unreadable')\nBad()")
    assert line == 3
    assert shown[-1][1].endswith("OSError: unreadable\n")


def test_a_loop_that_prints_does_not_fill_the_page(run):
    _, shown = run("for _ in range(300): print('x' * 1000)")
    text = "".join(text for _, text, _ in shown)
    assert MOST_CHARACTERS < len(text) < MOST_CHARACTERS + 100
    assert text.endswith("more than 100,000 characters: the rest is left out\n")
    assert run("1 + 1") == (0, [("text", "2\n", "")])


@pytest.mark.parametrize(
    "code", ["print('x' * 100_000)", "print('x' * 100_000, end=''); print('more')", "'x' * 99_999"]
)
def test_output_of_any_length_is_cut_with_a_notice_that_comes_once(run, code):
    _, ((kind, text, _),) = run(code)
    assert kind == "text"
    assert text.count("more than 100,000 characters: the rest is left out\n") == 1
    assert len(text) < MOST_CHARACTERS + 100


def test_a_long_error_is_cut_in_its_middle_and_shown_after_long_output(run):
    line, shown = run("print('x' * 200_000)\nraise ValueError('y' * 300_000 + ' the end')")
    kind, text, _ = shown[-1]
    assert (line, kind) == (2, "error")
    assert text.startswith("Traceback")
    assert "characters are left out" in text
    assert text.endswith("y the end\n")
    assert len(text) < MOST_CHARACTERS + 100


@pytest.mark.slow
def test_figures_of_matplotlib_are_shown_below_the_cell(run):
    pytest.importorskip("matplotlib")
    code = "import matplotlib.pyplot as plt\nfor title in ('one', ''): plt.figure(); _ = plt.title(title)\n'drawn'"
    line, shown = run(code)
    assert line == 0
    assert [(kind, name) for kind, _, name in shown] == [
        ("picture", "figure 1: one"),
        ("picture", "figure 2"),
        ("text", ""),
    ]
    assert shown[0][1].rstrip().endswith("</svg>")
    assert run("plt.get_fignums()") == (0, [("text", "[]\n", "")])


@pytest.mark.slow
def test_plt_show_shows_a_figure_where_the_cell_says_so(run, request):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    request.addfinalizer(partial(pyplot.switch_backend, pyplot.get_backend()))
    pyplot.switch_backend("module://website.figures")  # as where cells are the first to import matplotlib
    line, shown = run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nprint('after')")
    assert (line, [kind for kind, *_ in shown]) == (0, ["picture", "text"])
    elsewhere = (
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):\n    _ = plt.plot([1]); plt.show()"
    )
    assert [kind for kind, *_ in run(elsewhere)[1]] == ["picture"]


def test_where_the_page_has_no_such_module_it_says_what_to_do(run, monkeypatch):
    said = "This page cannot load numpy_of_nobody. To use it, run the cell in a Python of your own.\n"
    line, shown = run("import numpy_of_nobody")
    assert said not in shown[-1][1]  # a Python of one's own
    monkeypatch.setattr(sys, "platform", "emscripten")
    line, shown = run("x = 1\nimport numpy_of_nobody")
    assert line == 2
    assert shown[-1][1].endswith("ModuleNotFoundError: No module named 'numpy_of_nobody'\n" + said)
    _, shown = run(
        "try:\n    import numpy_of_nobody.here\nexcept ImportError: raise ImportError('it is needed') from None"
    )
    assert shown[-1][1].endswith("ImportError: it is needed\n" + said)
    _, shown = run("raise ModuleNotFoundError('It is not there.\\nYou can install it', name='numpy_of_nobody')")
    assert shown[-1][1].endswith("ModuleNotFoundError: It is not there.\n" + said)  # as Pyodide raises it
    _, shown = run("raise ImportError('for another reason')")
    assert shown[-1][1].endswith("ImportError: for another reason\n")


def test_what_the_page_can_load_is_loaded_for_a_cell_that_imports_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "emscripten")
    shown = []
    code = "try:\n    import numpy_of_nobody\nexcept ImportError: raise ImportError('it is needed') from None"
    Runner(["numpy_of_nobody"]).run(1, code, lambda kind, text, _: shown.append((kind, text)))
    said = "for a cell that says `import numpy_of_nobody`; the first time, it needs a network.\n"
    assert shown[-1][1].endswith(said)


def test_output_is_put_back_whatever_happens(run):
    before = sys.stdout, sys.stderr
    run("import sys\nsys.stdout = None\n1 / 0")
    assert (sys.stdout, sys.stderr) == before


def test_what_stands_for_output_is_no_terminal():
    output = runner.Output(None, "text")
    assert output.isatty() is False
    assert output.write("") == 0
    assert output.flush() is None


def test_notes_go_from_page_to_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MICROGRAD_PROGRESS", runner.NOTES)
    python = Runner()
    assert python.notes() == ""
    python.put_notes("")
    code = "import micrograd as mg\nmg.learn.check('1.2', 2.0)\nprint(str(mg.learn.progress()).splitlines()[-1])"
    shown = []
    python.run(1, code, lambda kind, text, name: shown.append(text))
    assert "".join(shown) == "kept in this browser\n"
    kept = python.notes()
    assert '"1.2"' in kept
    another = Runner()
    another.put_notes("")  # a new page, which has kept nothing
    assert another.notes() == ""
    another.put_notes(kept)
    shown.clear()
    another.run(
        1,
        "import micrograd as mg\nprint(mg.learn.progress().right)\nmg.learn.reset()",
        lambda *said: shown.append(said[1]),
    )
    assert "".join(shown) == "['1.2']\n"
    assert another.notes() == ""
    another.put_notes("no notes")
    another.run(2, "print(str(mg.learn.progress()).splitlines()[-1])", lambda *said: shown.append(said[1]))
    assert "damaged" in "".join(shown)
    assert another.notes() == "no notes"
