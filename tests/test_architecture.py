"""The architecture: components on layers, imports that run downwards only, and a map in docs that says what is so."""

import pytest

from tests.architecture import (
    COMMAND,
    COMPILER,
    MAP,
    PACKAGE,
    PICTURE,
    PICTURE_OF_COMPILER,
    Architecture,
    architectures,
    layers_of_map,
    lines_of_map,
    maps,
    page,
    without_lines,
)

pytestmark = pytest.mark.slow(together=True)

REDRAW = f"the map in docs/ is out of date; draw it again: {COMMAND}"
TEXT = MAP.read_text(encoding="utf-8")


@pytest.fixture(params=["package", "compiler"])
def which(request):
    """Which of the two architectures is tested."""
    return ["package", "compiler"].index(request.param)


@pytest.fixture
def architecture(which):
    """The architecture, read from the source when the first test asks for it."""
    return architectures()[which]


@pytest.fixture
def text(which):
    return maps(TEXT)[which]


@pytest.fixture
def picture(which):
    return (PICTURE, PICTURE_OF_COMPILER)[which]


def built(folder, **modules):
    """A package with these modules; two underscores stand for a folder: inner__a is inner/a.py."""
    package = folder / "made"
    for name, code in {"__init__": "", **modules}.items():
        path = package / ("__init__.py" if name == "__init__" else f"{name.replace('__', '/', 1)}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return Architecture(package)


class TestMicrograd:
    def test_no_components_and_no_modules_of_a_component_import_one_another_in_a_loop(self, architecture):
        assert architecture.loops() == []

    def test_no_import_runs_upwards_on_the_map(self, architecture, text):
        assert architecture.upward(layers_of_map(text)) == [], (
            f"mend the import; or, if the layers are to change, {COMMAND}"
        )

    def test_the_architecture_is_no_larger_than_it_was_meant_to_be(self):
        package, _ = architectures()
        assert len(package.components) <= 24
        assert max(package.layers().values()) <= 10

    def test_what_everything_stands_on_is_at_the_bottom(self):
        layers = dict(architectures()[0].by_layer())
        assert layers[1] == ["_support/"]
        assert layers[2] == ["engine/", "tables/"]  # tables are read and encoded without a single Value

    def test_the_compiler_is_no_larger_than_it_was_meant_to_be(self):
        _, compiler = architectures()
        assert len(compiler.components) <= 10
        assert max(compiler.layers().values()) <= 8
        assert sum(map(len, compiler.below().values())) <= 30  # imports between its packages

    def test_the_backends_have_what_is_shared_at_the_bottom_and_do_not_know_one_another(self):
        backends = Architecture(PACKAGE / "compiler" / "backends", f"{COMPILER}.backends")
        shared = {"shared/"}
        assert backends.below() == {
            "__init__.py": set(),
            "c/": shared,  # it writes files, and runs nothing
            "jax/": shared,
            "llvm/": shared,
            "numpy/": shared,
            "shared/": set(),
        }

    def test_every_component_says_what_it_is_for(self, architecture):
        assert [component for component in architecture.components if not architecture.says(component)] == []

    def test_every_module_says_what_it_is(self):
        package, _ = architectures()
        assert [path for path in map(str, package.modules.values()) if not package.says(path)] == []


class TestMap:
    def test_everything_in_the_package_is_on_it(self, architecture, text):
        entries = {path.relative_to(architecture.package).parts for path in architecture.package.rglob("*.py")}
        listed = {f"{first}/" if inner else first for first, *inner in entries}
        assert listed == set(layers_of_map(text)), REDRAW

    def test_it_is_the_one_that_is_drawn_from_the_imports(self):
        assert without_lines(TEXT) == without_lines(page()), REDRAW

    def test_its_lines_are_about_right(self, architecture, text):
        for component, lines in lines_of_map(text).items():
            assert architecture.lines(component) == pytest.approx(lines, rel=0.25, abs=50), REDRAW

    def test_its_picture_is_the_one_that_is_drawn_from_the_imports(self, architecture, picture):
        assert picture.read_text(encoding="utf-8").endswith(f"{architecture.mark()}\n"), REDRAW

    def test_a_drawn_picture_says_what_it_was_drawn_from(self, architecture):
        drawn = architecture.picture().decode()
        assert drawn.endswith(f"{architecture.mark()}\n")
        assert all(f"<title>{component}</title>" in drawn for component in architecture.components)


class TestRules:
    """What the checks find, in packages made for them."""

    def test_layers_are_the_longest_way_down(self, tmp_path):
        architecture = built(tmp_path, a="", b="import made.a", c="from made import a, b", d="from made.a import x")
        assert architecture.layers() == {"__init__.py": 1, "a.py": 1, "b.py": 2, "c.py": 3, "d.py": 2}
        assert architecture.loops() == architecture.upward(architecture.layers()) == []

    def test_an_arrow_that_a_longer_way_says_is_left_out(self, tmp_path):
        architecture = built(tmp_path, a="", b="import made.a", c="import made.a, made.b")
        assert architecture.arrows() == [("b.py", "a.py"), ("c.py", "b.py")]

    @pytest.mark.parametrize(
        "code",
        [
            "import made.b",
            "import made.b as other",
            "from made import b",
            "from made.b import thing",
            "from . import b",
            "from .b import thing",
            "def f():\n    from made import b",
            "if TYPE_CHECKING:\n    from made.b import Thing",
            "try:\n    import made.b\nexcept ImportError:\n    pass",
        ],
    )
    def test_a_loop_of_components_is_found_however_it_is_written(self, tmp_path, code):
        architecture = built(tmp_path, a=code, b="import made.a")
        assert architecture.loops() in (["a.py imports b.py imports a.py"], ["b.py imports a.py imports b.py"])

    def test_a_loop_of_components_whose_modules_have_none_is_found(self, tmp_path):
        architecture = built(tmp_path, first__a="import made.second__a", first__b="import made.second.a", second__a="",
                      second__b="import made.first.a")  # fmt: skip
        assert len(architecture.loops()) == 1

    def test_a_loop_inside_a_component_is_found(self, tmp_path):
        architecture = built(
            tmp_path, inner__a="from .b import x", inner__b="from ..inner import a", inner__c="import made.inner.a"
        )
        (loop,) = architecture.loops()
        assert "inner.a imports inner.b imports inner.a" in f"inner.a imports {loop}"

    def test_a_module_that_imports_from_its_own_package_is_in_a_loop_with_it(self, tmp_path):
        architecture = built(
            tmp_path, inner____init__="from made.inner.a import x", inner__a="from made.inner import y"
        )
        assert len(architecture.loops()) == 1

    def test_a_component_that_imports_the_whole_package_is_in_a_loop_with_it(self, tmp_path):
        architecture = built(tmp_path, a="from made import thing")
        (tmp_path / "made" / "__init__.py").write_text("from made.a import thing", encoding="utf-8")
        assert architecture.loops() == []
        assert len(Architecture(tmp_path / "made").loops()) == 1

    def test_an_import_upwards_is_named_with_its_line(self, tmp_path):
        layers = built(tmp_path, a="", b="import made.a", c__d="import made.b").layers()
        architecture = built(tmp_path, a="\nfrom made.c import d", b="import made.a", c__d="")
        assert architecture.loops() == []
        assert architecture.upward(layers) == ["made/a.py, line 2: a.py on layer 1 imports c/ on layer 3"]

    def test_an_import_on_the_same_layer_or_of_a_component_that_is_not_on_the_map_is_named(self, tmp_path):
        architecture = built(tmp_path, a="import made.b", b="", c="import made.d", d="")
        assert architecture.upward({"a.py": 1, "b.py": 1}) == [
            "made/a.py, line 1: a.py on layer 1 imports b.py on layer 1",
            "made/c.py, line 1: c.py on layer None imports d.py on layer None",
        ]

    def test_a_package_inside_another_is_read_by_its_whole_name(self, tmp_path):
        built(tmp_path, inner__a="", inner__b="import made.inner.a, made.c, inner.a", c="import made.inner.b")
        architecture = Architecture(tmp_path / "made" / "inner", "made.inner")
        assert architecture.below() == {"a.py": set(), "b.py": {"a.py"}}
        assert architecture.upward({"a.py": 2, "b.py": 1}) == [
            "made/inner/b.py, line 1: b.py on layer 1 imports a.py on layer 2"
        ]

    def test_what_is_of_other_packages_does_not_count(self, tmp_path):
        architecture = built(tmp_path, a="import os, made_up.b\nfrom math import b", b="import made.a")
        assert architecture.layers() == {"__init__.py": 1, "a.py": 1, "b.py": 2}

    def test_the_map_is_read_as_it_is_written(self, tmp_path):
        architecture = built(tmp_path, a='"""The first: a | b."""', b='"""The second."""\nimport made.a')
        assert layers_of_map(architecture.map()) == architecture.layers()
        assert lines_of_map(architecture.map()) == {"__init__.py": 0, "a.py": 0, "b.py": 0}
        assert "The second. |\n" in without_lines(architecture.map())
