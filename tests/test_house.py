"""The house: rooms on floors, imports that run downwards only, and a map in docs that says what is so."""

import ast
import re

import pytest

from tests.house import (
    COMMAND,
    COMPILER,
    MAP,
    PACKAGE,
    PICTURE,
    PICTURE_OF_COMPILER,
    House,
    floors_of_map,
    houses,
    lines_of_map,
    maps,
    page,
    without_lines,
)

REDRAW = f"the map in docs/ is out of date; draw it anew: {COMMAND}"
HOUSE, INSIDE = houses()
TEXT = MAP.read_text(encoding="utf-8")
MAP_OF_PACKAGE, MAP_OF_COMPILER = maps(TEXT)
BOTH = pytest.mark.parametrize(
    ("house", "text", "picture"),
    [(HOUSE, MAP_OF_PACKAGE, PICTURE), (INSIDE, MAP_OF_COMPILER, PICTURE_OF_COMPILER)],
    ids=["package", "compiler"],
)


def built(folder, **modules):
    """A package with these modules; two underscores stand for a folder: inner__a is inner/a.py."""
    package = folder / "made"
    for name, code in {"__init__": "", **modules}.items():
        path = package / ("__init__.py" if name == "__init__" else f"{name.replace('__', '/', 1)}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return House(package)


class TestMicrograd:
    @BOTH
    def test_no_rooms_and_no_modules_of_a_room_import_one_another_in_a_loop(self, house, text, picture):
        assert house.loops() == []

    @BOTH
    def test_no_import_runs_upwards_on_the_map(self, house, text, picture):
        assert house.upward(floors_of_map(text)) == [], f"mend the import; or, if the floors are to change, {COMMAND}"

    def test_the_house_is_no_larger_than_it_was_meant_to_be(self):
        assert len(HOUSE.rooms) <= 24
        assert max(HOUSE.floors().values()) <= 10

    def test_what_everything_stands_on_is_at_the_bottom(self):
        floors = dict(HOUSE.by_floor())
        assert floors[1] == ["_support/"]
        assert floors[2] == ["engine/", "tables/"]  # tables are read and encoded without a single Value

    def test_the_compiler_is_no_larger_than_it_was_meant_to_be(self):
        assert len(INSIDE.rooms) <= 10
        assert max(INSIDE.floors().values()) <= 8
        assert sum(map(len, INSIDE.below().values())) <= 30  # imports between its packages

    def test_the_backends_have_what_is_shared_at_the_bottom_and_do_not_know_one_another(self):
        backends = House(PACKAGE / "compiler" / "backends", f"{COMPILER}.backends")
        shared = {"shared/"}
        assert backends.below() == {
            "__init__.py": set(),
            "c/": shared,  # it writes files, and runs nothing
            "jax/": shared,
            "llvm/": shared,
            "numpy/": shared,
            "shared/": set(),
        }

    @BOTH
    def test_every_room_says_what_it_is_for(self, house, text, picture):
        assert [room for room in house.rooms if not house.says(room)] == []

    def test_a_package_that_lists_its_modules_lists_them_all(self):
        lists = 0
        for init in PACKAGE.rglob("__init__.py"):
            says = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
            if re.search(r"^\w+\.py  ", says, re.MULTILINE):
                modules = {path.name for path in init.parent.glob("*.py")} - {"__init__.py"}
                assert set(re.findall(r"\b\w+\.py\b", says)) == modules, init
                lists += 1
        assert lists >= 6


class TestMap:
    @BOTH
    def test_everything_in_the_package_is_on_it(self, house, text, picture):
        entries = {path.relative_to(house.package).parts for path in house.package.rglob("*.py")}
        listed = {f"{first}/" if inner else first for first, *inner in entries}
        assert listed == set(floors_of_map(text)), REDRAW

    def test_it_is_the_one_that_is_drawn_from_the_imports(self):
        assert without_lines(TEXT) == without_lines(page()), REDRAW

    @BOTH
    def test_its_lines_are_about_right(self, house, text, picture):
        for room, lines in lines_of_map(text).items():
            assert house.lines(room) == pytest.approx(lines, rel=0.25, abs=50), REDRAW

    @BOTH
    def test_its_picture_is_the_one_that_is_drawn_from_the_imports(self, house, text, picture):
        assert picture.read_text(encoding="utf-8").endswith(f"{house.mark()}\n"), REDRAW

    @BOTH
    def test_a_drawn_picture_says_what_it_was_drawn_from(self, house, text, picture):
        drawn = house.picture().decode()
        assert drawn.endswith(f"{house.mark()}\n")
        assert all(f"<title>{room}</title>" in drawn for room in house.rooms)


class TestRules:
    """What the checks find, in packages made for them."""

    def test_floors_are_the_longest_way_down(self, tmp_path):
        house = built(tmp_path, a="", b="import made.a", c="from made import a, b", d="from made.a import x")
        assert house.floors() == {"__init__.py": 1, "a.py": 1, "b.py": 2, "c.py": 3, "d.py": 2}
        assert house.loops() == house.upward(house.floors()) == []

    def test_an_arrow_that_a_longer_way_says_is_left_out(self, tmp_path):
        house = built(tmp_path, a="", b="import made.a", c="import made.a, made.b")
        assert house.arrows() == [("b.py", "a.py"), ("c.py", "b.py")]

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
    def test_a_loop_of_rooms_is_found_however_it_is_written(self, tmp_path, code):
        house = built(tmp_path, a=code, b="import made.a")
        assert house.loops() in (["a.py imports b.py imports a.py"], ["b.py imports a.py imports b.py"])

    def test_a_loop_of_rooms_whose_modules_have_none_is_found(self, tmp_path):
        house = built(tmp_path, first__a="import made.second__a", first__b="import made.second.a", second__a="",
                      second__b="import made.first.a")  # fmt: skip
        assert len(house.loops()) == 1

    def test_a_loop_inside_a_room_is_found(self, tmp_path):
        house = built(
            tmp_path, inner__a="from .b import x", inner__b="from ..inner import a", inner__c="import made.inner.a"
        )
        (loop,) = house.loops()
        assert "inner.a imports inner.b imports inner.a" in f"inner.a imports {loop}"

    def test_a_module_that_imports_from_its_own_package_is_in_a_loop_with_it(self, tmp_path):
        house = built(tmp_path, inner____init__="from made.inner.a import x", inner__a="from made.inner import y")
        assert len(house.loops()) == 1

    def test_a_room_that_imports_the_whole_package_is_in_a_loop_with_it(self, tmp_path):
        house = built(tmp_path, a="from made import thing")
        (tmp_path / "made" / "__init__.py").write_text("from made.a import thing", encoding="utf-8")
        assert house.loops() == []
        assert len(House(tmp_path / "made").loops()) == 1

    def test_an_import_upwards_is_named_with_its_line(self, tmp_path):
        floors = built(tmp_path, a="", b="import made.a", c__d="import made.b").floors()
        house = built(tmp_path, a="\nfrom made.c import d", b="import made.a", c__d="")
        assert house.loops() == []
        assert house.upward(floors) == ["made/a.py, line 2: a.py on floor 1 imports c/ on floor 3"]

    def test_an_import_on_the_same_floor_or_of_a_room_that_is_not_on_the_map_is_named(self, tmp_path):
        house = built(tmp_path, a="import made.b", b="", c="import made.d", d="")
        assert house.upward({"a.py": 1, "b.py": 1}) == [
            "made/a.py, line 1: a.py on floor 1 imports b.py on floor 1",
            "made/c.py, line 1: c.py on floor None imports d.py on floor None",
        ]

    def test_a_package_inside_another_is_read_by_its_whole_name(self, tmp_path):
        built(tmp_path, inner__a="", inner__b="import made.inner.a, made.c, inner.a", c="import made.inner.b")
        house = House(tmp_path / "made" / "inner", "made.inner")
        assert house.below() == {"a.py": set(), "b.py": {"a.py"}}
        assert house.upward({"a.py": 2, "b.py": 1}) == [
            "made/inner/b.py, line 1: b.py on floor 1 imports a.py on floor 2"
        ]

    def test_what_is_of_other_packages_does_not_count(self, tmp_path):
        house = built(tmp_path, a="import os, made_up.b\nfrom math import b", b="import made.a")
        assert house.floors() == {"__init__.py": 1, "a.py": 1, "b.py": 2}

    def test_the_map_is_read_as_it_is_written(self, tmp_path):
        house = built(tmp_path, a='"""The first: a | b."""', b='"""The second."""\nimport made.a')
        assert floors_of_map(house.map()) == house.floors()
        assert lines_of_map(house.map()) == {"__init__.py": 0, "a.py": 0, "b.py": 0}
        assert "The second. |\n" in without_lines(house.map())
