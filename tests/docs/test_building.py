"""How the site is built: cells, links, the reference, and packages that must be the ones that are meant."""

import base64
import hashlib
import io
import json
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from website import cells, packages, pages, reference
from website.ahead import compiling
from website.cells import CellError, Output

import micrograd as mg
from tests.folders import ROOT

PAGE = """# A page

```python
x = 1
print(x)  # 1
```

![what it drew](images/drawn.svg)

````markdown
```python
not a cell
```
````

```python {.recorded}
x
```

The end.
"""


class TestCells:
    def test_blocks_are_found_with_their_marks(self):
        found = [(block.language, block.marks, block.code) for block in cells.blocks(PAGE)]
        assert found == [
            ("python", (), "x = 1\nprint(x)  # 1\n"),
            ("markdown", (), "```python\nnot a cell\n```\n"),
            ("python", (".recorded",), "x\n"),
        ]

    def test_a_page_of_cells_keeps_all_of_its_text(self, tmp_path):
        outputs = [
            [Output("text", "1\n", ""), Output("picture", "<svg/>", "drawn.svg")],
            [Output("text", "a < b\n", "")],
        ]
        text = cells.with_cells(PAGE, outputs, "page", tmp_path, up="../")
        assert re.findall(r'<div class="(cell|cell-recorded)"', text) == ["cell", "cell-recorded"]
        assert re.findall(r'id="(cell-\d+)"', text) == ["cell-1"]
        assert "```python\nx = 1\nprint(x)\n```\n" in text  # what it prints stands below
        assert "```python\nx\n```\n" in text
        assert "````markdown\n```python\nnot a cell\n```\n````\n" in text
        assert text.startswith("# A page\n")
        assert text.endswith("\nThe end.\n")
        assert '<img src="../recorded/page-1-1.svg" alt="picture: drawn.svg">' in text
        assert (tmp_path / "page-1-1.svg").read_text() == "<svg/>"
        assert "what it drew" not in text  # the cell has shown that file
        assert "a &lt; b&#10;" in text

    def test_a_picture_of_something_else_stays(self, tmp_path):
        text = cells.with_cells(PAGE, [[Output("picture", "<svg/>", "other.svg")], []], "page", tmp_path)
        assert "![what it drew](images/drawn.svg)" in text

    def test_pages_and_tables_are_framed(self, tmp_path):
        outputs = [[Output("page", "<p>page</p>", "a.html"), Output("html", "<table>", 'M"LP')], []]
        text = cells.with_cells(PAGE, outputs, "page", tmp_path)
        rights = 'sandbox="allow-scripts allow-downloads"'
        assert f'<iframe data-kind="page" src="recorded/page-1-0.html" title="a.html" {rights}' in text
        assert 'title="M&quot;LP" sandbox=""' in text
        assert (tmp_path / "page-1-1.html").read_text().endswith("<table>")

    def test_blocks_are_run_from_first_to_last(self):
        assert cells.recorded("page.md", PAGE) == [[Output("text", "1\n", "")], [Output("text", "1\n", "")]]

    def test_blocks_neither_see_nor_change_what_their_user_keeps_at_home(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("MICROGRAD_PROGRESS", "mine")
        code = "import os, pathlib\n(pathlib.Path.home() / 'kept').touch()\nprint('MICROGRAD_PROGRESS' in os.environ)"
        assert cells.recorded("page.md", f"```python\n{code}\n```\n") == [[Output("text", "False\n", "")]]
        assert list(tmp_path.iterdir()) == []

    def test_a_block_that_raises_is_told_with_its_page(self):
        with pytest.raises(
            CellError, match=r"learn/x\.md: a block of Python cannot be run:\n(.|\n)*cell 1(.|\n)*ZeroDiv"
        ):
            cells.recorded("learn/x.md", "```python\n1 / 0\n```\n")


class TestPages:
    def test_links_out_of_docs_lead_to_pages_that_show_the_file(self):
        sources = set()
        text = "[a](../demos) [b](../README.md#name) [c](api.md) [d](https://x.org) [e](../none.py) `[f](../demos)`"
        assert pages.linked(text, "tutorial.md", sources) == (
            "[a](source/demos/index.md) [b](source/README.md.md) "
            "[c](api.md) [d](https://x.org) [e](../none.py) `[f](../demos)`"
        )
        assert sources == {"demos", "README.md"}

    def test_a_site_of_some_chapters_has_no_links_to_the_others(self):
        texts = {
            "index.md": "[The path](learn/index.md): [nets](learn/05-a-network.md#a) `[x](learn/05-a-network.md)`",
            "learn/index.md": "# Learn\n\n1. [One](01-one.md): first\n   of all\n5. [Nets](05-a.md): more\n\n6. no\n",
            "learn/01-one.md": "Later: [nets](05-a-network.md), [again](01-one.md).",
            "learn/05-a-network.md": "[One](01-one.md)",
        }
        assert pages.with_chapters(texts, {1}) == {
            "index.md": "[The path](learn/index.md): nets `[x](learn/05-a-network.md)`",
            "learn/index.md": "# Learn\n\n1. [One](01-one.md): first\n   of all\n{: value=1 }\n\n6. no\n",
            "learn/01-one.md": "Later: nets, [again](01-one.md).",
        }
        one = {"tutorial.md": "", "learn/05-a-network.md": "[One](01-one.md)"}
        assert pages.with_chapters(one, {5}) == {"tutorial.md": "", "learn/05-a-network.md": "One"}

    def test_exercises_are_those_of_the_chapters_that_are_wanted(self):
        assert [chapter["number"] for chapter in pages.exercises({2, 5})] == [2, 5]

    def test_links_from_a_folder_go_up(self):
        assert pages.linked("[a](../../demos)", "learn/01-x.md", set()) == "[a](../source/demos/index.md)"
        assert pages.linked("[a](../api.md)", "learn/01-x.md", set()) == "[a](../api.md)"

    def test_every_page_has_its_place_and_chapters_come_first(self):
        names = ["api.md", "index.md", "learn/02-b.md", "learn/01-a.md", "learn/index.md", "new.md", "tutorial.md"]
        sections = pages.navigation(names)
        assert sections["Learn"] == ["learn/index.md", "learn/01-a.md", "learn/02-b.md", "tutorial.md"]
        assert sections["Inside"] == ["new.md"]
        placed = [page for listed in sections.values() for page in listed if not page.startswith("reference/")]
        assert sorted([*placed, "index.md"]) == sorted(names)

    def test_the_order_names_pages_that_are_there(self):
        for page in [page for listed in pages.SECTIONS.values() for page in listed] + list(pages.LIVE):
            assert (ROOT / "docs" / page).exists()

    def test_the_page_knows_which_exercises_there_are(self):
        first, *_, last = pages.exercises()
        assert (first["number"], first["title"], first["page"]) == (
            1,
            "One multiplication",
            "01-one-multiplication.html",
        )
        assert first["exercises"][0] == ("1.1", "A nudge", 4)
        assert (last["number"], last["page"]) == (17, "17-tokens.html")

    def test_the_list_of_exercises_has_the_task_of_each_chapter(self):
        text = "# 1. One\n\n**1.2 Slope.** What is `f`?\n\nIt is\nsmall.\n\n```python\ncheck()\n```\n"
        chapter = {"number": 1, "title": "One", "page": "01-one.html", "exercises": [("1.2", "Slope", 3)]}
        made = pages.list_of_exercises([chapter], {"learn/01-one.md": text})
        assert made.endswith(
            "## 1. One\n\n**1.2 Slope.** What is `f`?\n\nIt is\nsmall.\n\n"
            "[Answer it in the chapter](01-one.md#cell-3)\n"
        )
        with pytest.raises(ValueError, match=r"01-one\.md does not ask for exercise 1\.2, Slope"):
            pages.list_of_exercises([chapter], {"learn/01-one.md": "# 1. One\n"})

    def test_every_exercise_has_its_hints_and_solution_and_a_cell_of_its_chapter(self):
        listed = [exercise for chapter in pages.exercises() for exercise in chapter["exercises"]]
        help_ = pages.hints()
        assert [number for number, _, _ in listed] == list(help_)
        assert all(cell >= 1 for _, _, cell in listed)
        assert help_["1.2"]["solution"] == "2.0"
        assert len(help_["1.2"]["hints"]) > 1


class TestReference:
    def test_no_public_name_is_missing(self):
        assert reference.missing() == set()

    def test_names_are_those_that_users_write(self):
        texts = reference.texts()
        assert "## `mg.tanh` {#mg.tanh}" in texts["functions.md"]
        assert "## `mg.testing.gradcheck` {#mg.testing.gradcheck}" in texts["testing.md"]
        assert "### `Value.backward` {#Value.backward}" in texts["values.md"]
        assert "## `mg.nn.MLP`" in texts["networks.md"]
        assert "requires_grad: bool = True,\n)\n```" in texts["values.md"]
        assert "Value.tanh" not in texts["values.md"]  # it only points to mg.tanh
        assert not re.search(r"^## .*\b_", "".join(texts.values()), re.MULTILINE)

    def test_they_are_the_same_each_time(self):
        assert not re.search(r"0x[0-9a-f]{6}|<function|<object", "".join(reference.texts().values()))

    def test_arguments_results_errors_and_examples_are_told(self):
        text = reference.texts()["training.md"]
        assert "mg.fit(\n    loss: Callable[..., Value],\n" in text
        assert "\n    *,\n    epochs: int = 1,\n" in text
        assert ") -> History\n```" in text
        assert "- `epochs`: how many times to go through the data.\n" in text
        assert "**Returns**\n\nThe history of the loss.\n" in text
        assert "- `TraceError`: if the loss cannot be compiled." in text
        assert "**Example**\n\n```pycon\n>>> from micrograd import Value\n>>> from micrograd.optim import SGD\n" in text

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_every_docstring_of_a_page_is_shown(self):
        for page in reference.PAGES:
            text = reference.texts()[f"{page.file}.md"]
            names = reference.names_of(page)
            assert names, page
            for name, item in names:
                first = item.__doc__.strip().split()[0].strip("`*")
                assert first in text.partition(f"## `{page.prefix}.{name}`")[2], name

    def test_signs_of_markdown_in_a_text_are_shown_as_they_are(self):
        assert reference._prose("a * b < c [0] and `x * y`, ``[z]``") == r"a \* b \< c \[0\] and `x * y`, ``[z]``"


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A program named npm that does what a shell script says."""

    def npm(script):
        program = tmp_path / "npm"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return npm


class TestWheels:
    """NumPy and matplotlib of Pyodide, for sites that are built with them."""

    @pytest.fixture
    def live(self, tmp_path):
        (tmp_path / "live" / "pyodide").mkdir(parents=True)
        (tmp_path / "wheels").mkdir()
        needs = {"numpy": [], "matplotlib": ["cycler", "numpy"], "cycler": [], "pandas": ["numpy"]}
        imports = {"matplotlib": ["matplotlib", "pylab"]}
        listed = {}
        for name, depends in needs.items():
            (tmp_path / "wheels" / f"{name}.whl").write_bytes(name.encode())
            listed[name] = {
                "depends": depends,
                "file_name": f"{name}.whl",
                "sha256": hashlib.sha256(name.encode()).hexdigest(),
                "imports": imports.get(name, [name]),
            }
        (tmp_path / "live" / "pyodide" / "pyodide-lock.json").write_text(json.dumps({"packages": listed}))
        return tmp_path / "live"

    def test_what_they_need_comes_with_them_and_nothing_else(self, live):
        assert packages.add_wheels(live.parent / "wheels", live) == {
            "numpy": "numpy",
            "matplotlib": "matplotlib",
            "pylab": "matplotlib",
            "cycler": "cycler",
        }
        copied = {path.name for path in (live / "pyodide").glob("*.whl")}
        assert copied == {"numpy.whl", "matplotlib.whl", "cycler.whl"}

    def test_a_site_without_them_imports_none(self, live):
        assert packages.add_wheels(None, live) == {}
        assert not list((live / "pyodide").glob("*.whl"))

    def test_a_wheel_that_is_missing_or_another_one_ends_the_build(self, live):
        wheel = live.parent / "wheels" / "cycler.whl"
        wheel.write_bytes(b"another")
        with pytest.raises(packages.PackageError, match=r"cycler\.whl has another digest"):
            packages.add_wheels(live.parent / "wheels", live)
        wheel.unlink()
        with pytest.raises(packages.PackageError, match=r"there is no cycler\.whl in"):
            packages.add_wheels(live.parent / "wheels", live)


class TestPackages:
    def test_what_is_installed_is_what_the_lock_file_names(self, tmp_path, npm):
        npm("cp package-lock.json seen; echo $@ > asked; mkdir node_modules")
        assert packages.fetch(tmp_path) == tmp_path / "node_modules"
        assert (tmp_path / "seen").read_bytes() == (packages.HERE / "package-lock.json").read_bytes()
        assert (tmp_path / "asked").read_text().startswith("ci --ignore-scripts ")

    @pytest.mark.slow
    def test_another_package_than_the_one_that_is_meant_is_refused(self, tmp_path):
        if shutil.which("npm") is None:
            pytest.skip("there is no npm")
        source, target = tmp_path / "source", tmp_path / "target"
        source.mkdir()
        target.mkdir()
        with tarfile.open(target / "tiny.tgz", "w:gz") as archive:
            text = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
            member = tarfile.TarInfo("package/package.json")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
        digest = hashlib.sha512((target / "tiny.tgz").read_bytes()).digest()
        wanted = {"name": "site", "dependencies": {"tiny": "file:tiny.tgz"}}
        (source / "package.json").write_text(json.dumps(wanted))
        for right in (True, False):
            integrity = "sha512-" + base64.b64encode(digest if right else bytes(64)).decode()
            tiny = {"version": "1.0.0", "resolved": "file:tiny.tgz", "integrity": integrity}
            lock = {"lockfileVersion": 3, "packages": {"": wanted, "node_modules/tiny": tiny}}
            (source / "package-lock.json").write_text(json.dumps(lock))
            if right:
                assert (packages.fetch(target, source) / "tiny" / "package.json").read_bytes() == text
            else:
                with pytest.raises(packages.PackageError, match=r"could not install the packages:\n.*EINTEGRITY"):
                    packages.fetch(target, source)

    def test_without_npm_it_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(packages.PackageError, match=r"there is no npm on the PATH: .* Install Node\.js"):
            packages.fetch(tmp_path)

    def test_without_a_network_it_says_what_npm_says(self, tmp_path, npm):
        npm("echo 'npm error network request failed' >&2; exit 1")
        message = r"could not install the packages:\nnpm error network request failed"
        with pytest.raises(packages.PackageError, match=message):
            packages.fetch(tmp_path)

    def test_every_package_is_pinned_to_one_version_and_one_digest(self):
        lock = json.loads((packages.HERE / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        wanted = lock.pop("")["dependencies"]
        assert sorted(wanted) == packages.NAMES
        for name, version in wanted.items():
            assert re.fullmatch(r"\d+\.\d+\.\d+", version)
            assert lock[f"node_modules/{name}"]["version"] == version
        assert all(re.fullmatch(r"sha512-[\w+/]{86}==", package["integrity"]) for package in lock.values())

    def test_the_site_gets_the_files_that_it_needs_and_the_licences(self, tmp_path):
        modules, live = tmp_path / "node_modules", tmp_path / "live"
        for name in packages.NAMES:
            _, files = packages.FILES.get(name, ("", ["dist/index.js"]))
            for file in ("package.json", "LICENSE", *files):
                path = modules / name / file.replace("*js", "mjs")
                path.parent.mkdir(parents=True, exist_ok=True)
                module = {"exports": {"import": "./dist/index.js"}} if name == "crelt" else {"module": "dist/index.js"}
                path.write_text(json.dumps({"version": "1.2.3", **module}))
        packages.unpack(modules, live)
        pyodide = {"pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"}
        assert {path.name for path in (live / "pyodide").iterdir()} == pyodide
        assert (live / "viz" / "viz.js").exists()
        assert {"codemirror-view.js", "crelt.js"} <= {path.name for path in (live / "editor").iterdir()}
        assert "@codemirror/view 1.2.3\n\n{" in (live / "licences.txt").read_text()

        other = (modules / "pyodide").rename(tmp_path / "another")
        (other / "pyodide.asm.mjs").rename(other / "pyodide.asm.js")  # as older ones call it
        (other / "python_stdlib.zip").write_text("another Python")
        packages.unpack(modules, tmp_path / "other", other)
        assert (tmp_path / "other" / "pyodide" / "python_stdlib.zip").read_text() == "another Python"
        assert (tmp_path / "other" / "pyodide" / "pyodide.asm.js").exists()
        (other / "pyodide.asm.js").unlink()
        with pytest.raises(packages.PackageError, match=r"there is no pyodide\.asm\.\*js in .*another"):
            packages.unpack(modules, tmp_path / "without", other)

    def test_modules_of_the_editor_import_each_other(self):
        text = "import { a } from '@codemirror/view';\nimport b from './near.js';\n// from 'nowhere'\n"
        assert packages.linked(text) == text.replace("@codemirror/view", "./codemirror-view.js")
        with pytest.raises(packages.PackageError, match="imports 'left-pad', which is not among the packages"):
            packages.linked("import pad from 'left-pad';\n")


def archive_of(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


ROOM = {"room/__init__.py": "", "room/door.py": "def knock():\n    return 'who'\n", "room/wall.py": "x = 1\n"}


class TestCompilingAhead:
    def test_what_is_loaded_is_compiled_and_the_rest_stays_source(self, tmp_path):
        path = tmp_path / "library.zip"
        loaded = {f"{path}/room/__init__.py", f"{path}/room/door.py"}
        made = compiling.compiled(archive_of(ROOM), str(path), loaded, keep_source=False)
        path.write_bytes(made)
        assert sorted(zipfile.ZipFile(path).namelist()) == ["room/__init__.pyc", "room/door.pyc", "room/wall.py"]
        code = "from room import door, wall; print(door.knock(), wall.x, door.knock.__code__.co_filename)"
        run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
        assert (run.stdout, run.stderr) == (f"who 1 {path}/room/door.py\n", "")
        assert compiling.compiled(archive_of(ROOM), str(path), loaded, keep_source=False) == made

    def test_the_source_of_what_a_learner_may_read_stays_beside(self, tmp_path):
        loaded = {f"{tmp_path}/room/__init__.py", f"{tmp_path}/room/door.py"}
        made = compiling.compiled(archive_of(ROOM), str(tmp_path), loaded, keep_source=True)
        zipfile.ZipFile(io.BytesIO(made)).extractall(tmp_path)
        assert len(list((tmp_path / "room" / "__pycache__").glob("door.*.pyc"))) == 1
        (tmp_path / "room" / "door.py").write_text("raise SystemExit('it was compiled again')")
        code = "from room import door; print(door.knock())"
        run = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": tmp_path}, capture_output=True, text=True)
        assert (run.stdout, run.stderr) == ("who\n", "")

    def test_what_cannot_be_imported_is_passed_over(self, tmp_path, monkeypatch):
        folder = tmp_path / "unlike_any_other"
        folder.mkdir()
        texts = {"__init__": "", "good": "", "needs": "import no_such_module", "__main__": "raise SystemExit"}
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setattr(sys, "modules", dict(sys.modules))
        files = compiling.load("unlike_any_other")
        assert {Path(file).stem for file in files if "unlike_any_other" in file} == {"__init__", "good"}

    def test_without_node_it_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(packages.PackageError, match=r"there is no node on the PATH: .* Install Node\.js"):
            packages.compile_ahead(tmp_path)

    def test_what_node_says_is_told(self, tmp_path, monkeypatch):
        (tmp_path / "node").write_text("#!/bin/sh\necho 'no such feature' >&2\nexit 1\n")
        (tmp_path / "node").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(packages.PackageError, match=r"could not compile .*:\nno such feature"):
            packages.compile_ahead(tmp_path)


class TestCommand:
    def build(self, *arguments, **options):
        command = [sys.executable, str(ROOT / "docs" / "build.py"), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, **options)

    def test_a_folder_with_something_else_in_it_is_left_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("mine")
        run = self.build(tmp_path)
        assert run.returncode == 1
        assert "has something else in it than a site: choose another folder" in run.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_a_file_is_no_folder(self, tmp_path):
        (tmp_path / "site").write_text("mine")
        run = self.build(tmp_path / "site")
        assert (run.returncode, run.stdout) == (1, "")
        assert "is a file" in run.stderr

    def test_it_says_what_it_needs(self):
        run = self.build("--help")
        assert "SITE" in run.stdout
        assert run.returncode == 0


def test_the_gallery_has_every_kind_of_picture():
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for name in ("draw_dot", "explore", "Recording", 'style="micrograd"', "depth=", "compile"):
        assert name in text
        assert hasattr(mg, name) or "=" in name
