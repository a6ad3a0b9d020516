"""What compiled functions keep has limits, and what was given up is made again with the same numbers."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm import llvm_machine, object_cache

pytestmark = pytest.mark.slow(together=True)

pytest.importorskip("llvmlite")


def squares(xs):
    return mg.dot(xs, xs)


def numbers(count):
    return [0.5 + index for index in range(count)]


def expected(count):
    return sum(x * x for x in numbers(count))


class TestPrograms:
    def test_all_are_kept_below_the_limit(self):
        fast = mg.compile(squares, backend="numpy")
        for count in range(1, 12):
            fast(numbers(count))
        info = fast.cache_info()
        assert (info.programs, info.traces, info.given_up) == (11, 11, 0)
        assert 0 < info.program_bytes < info.program_limit == 256e6

    def test_the_one_that_was_not_used_for_longest_is_given_up_and_made_again(self, monkeypatch):
        fast = mg.compile(squares, backend="numpy")
        fast(numbers(3))
        monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", str(2.5 * fast.cache_info().program_bytes / 1e6))
        fast(numbers(4))
        fast(numbers(3))  # now 4 was not used for longest
        for count in (5, 6):
            assert fast(numbers(count)) == pytest.approx(expected(count))
        info = fast.cache_info()
        assert info.programs < info.traces == 4
        traces = info.traces
        for count in (6, 4, 3):
            assert fast(numbers(count)) == pytest.approx(expected(count))
        assert fast.cache_info().traces > traces

    def test_with_no_room_the_last_one_is_kept(self, monkeypatch):
        monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", "0")
        fast = mg.compile(squares)
        for count in (2, 3, 2, 3):
            assert fast(numbers(count)) == pytest.approx(expected(count))
        assert fast.cache_info()[:3] == (1, 4, 3)
        fast(numbers(3))
        assert fast.cache_info().traces == 4

    def test_results_of_a_program_that_was_given_up_are_differentiated(self, monkeypatch):
        monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", "0")
        xs = [Value(1.0), Value(2.0)]
        fast = mg.compile(lambda values: [mg.dot(values, values), values[0] * 3.0])
        first, second = fast(xs)
        fast([Value(1.0)] * 3)
        (first + second).backward()
        assert [x.grad for x in xs] == [5.0, 4.0]

    def test_objects_that_are_given_in_turn_are_counted(self):
        class Scale:
            def __init__(self, number):
                self.number = number

        fast = mg.compile(lambda scale, x: scale.number * x, backend="numpy")
        with pytest.warns(RuntimeWarning, match="was traced for 33 objects"):
            found = [fast(Scale(float(number)), 2.0) for number in range(34)]
        assert found == [2.0 * number for number in range(34)]
        assert fast.cache_info().given_up == 2

    def test_a_cleared_cache_is_filled_again(self):
        fast = mg.compile(squares)
        fast(numbers(2))
        fast.cache_clear()
        assert fast.cache_info()[:4] == (0, 0, 0, 0)
        assert fast(numbers(2)) == pytest.approx(expected(2))
        assert fast.cache_info().traces == 1

    @pytest.mark.parametrize("wrong", ["-1", "much", "nan", "inf", "1e305"])
    def test_a_limit_that_is_no_number_is_refused_by_name(self, wrong, monkeypatch):
        monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", wrong)
        with pytest.raises(ValueError, match=f"MICROGRAD_PROGRAMS_MB must be a number of megabytes.*'{wrong}'"):
            mg.compile(squares, backend="numpy")(numbers(2))

    def test_an_empty_limit_is_the_usual_one(self, monkeypatch):
        monkeypatch.setenv("MICROGRAD_PROGRAMS_MB", "")
        assert mg.compile(squares, backend="numpy").cache_info().program_limit == 256e6


def unlike(number):
    """A function whose code is like that of no other number."""
    return lambda x: mg.sin(mg.exp(x * (1.0 + number))) + number


class TestCode:
    @pytest.mark.slow
    def test_engines_that_no_program_uses_are_freed(self, monkeypatch, tmp_path):
        monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))
        monkeypatch.setenv("MICROGRAD_CODE_MB", "0.02")
        monkeypatch.setattr(llvm_machine, "_machine", None)
        engines, kept = [], []
        for count in range(1, 40):
            fast = mg.compile(lambda xs: mg.mean([mg.tanh(x) * xs[0] for x in xs[1:]]))
            xs = [Value(0.1 * index) for index in range(2 * count + 1)]
            found = fast(xs)
            engines += [weakref.ref(engine) for engine in llvm_machine._machine._engines]
            if count == 3:
                kept.append((fast, xs, found.data))
            assert fast.cache_info().code_bytes < 2 * 0.02e6 + 100_000
        del fast
        gc.collect()
        alive = {id(engine()) for engine in engines if engine() is not None}
        assert len(alive) <= len(llvm_machine._machine._engines) + 1
        for function, xs, number in kept:
            assert function(xs).data == number

    def test_a_cleared_cache_leaves_running_programs_alone(self):
        first, second = mg.compile(unlike(1)), mg.compile(unlike(2))
        before = first(0.1), second(0.1)
        first.cache_clear()
        assert (first(0.1), second(0.1)) == before

    def test_without_llvm_there_is_no_native_code(self, monkeypatch):
        fast = mg.compile(squares, backend="numpy")
        fast(numbers(2))
        monkeypatch.setattr(llvm_machine, "_machine", None)
        fast.cache_clear()
        assert fast.cache_info().code_bytes == 0
        for module in ("llvm_machine", "object_cache"):
            monkeypatch.delitem(sys.modules, f"micrograd.compiler.backends.llvm.{module}")
        fast.cache_clear()
        info = fast.cache_info()
        assert (info.code_bytes, info.disk_bytes) == (0, 0)

    def test_threads_compile_and_run_while_code_is_given_up(self, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CODE_MB", "0")
        wrong = []

        def work(number):
            found = [mg.compile(squares)(numbers(count)) for count in range(2, 12)]
            if found != pytest.approx([expected(count) for count in range(2, 12)]):
                wrong.append(number)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong


class TestDisk:
    @pytest.fixture
    def position(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path))
        monkeypatch.setattr(llvm_machine, "_machine", None)
        object_cache._written.clear()
        return tmp_path

    def entries(self, position):
        return sorted(path.name for path in position.iterdir() if path.name != object_cache.KEY)

    def test_entries_that_were_not_read_for_longest_are_removed(self, position, monkeypatch):
        mg.compile(unlike(1))(0.1)
        old = self.entries(position)
        for name in old:
            os.utime(position / name, (1, 1))
        size = object_cache.bytes_on_disk()
        assert size > 0
        monkeypatch.setenv("MICROGRAD_CACHE_MB", str(size / 1e6))
        monkeypatch.setattr(llvm_machine, "_machine", None)
        object_cache._written.clear()
        mg.compile(lambda xs: mg.mean([mg.tanh(x) for x in xs]))([Value(1.0) for _ in range(50)])
        assert not set(old) & set(self.entries(position))
        assert (position / object_cache.KEY).exists()
        assert mg.compile(unlike(1))(0.1) == unlike(1)(0.1)

    def test_reading_an_entry_makes_it_the_last_one_to_go(self, position, monkeypatch):
        mg.compile(unlike(1))(0.1)
        for name in self.entries(position):
            os.utime(position / name, (1, 1))
        monkeypatch.setattr(llvm_machine, "_machine", None)
        mg.compile(unlike(1))(0.1)
        assert any((position / name).stat().st_mtime > 1 for name in self.entries(position))

    def test_a_folder_without_room_still_gives_numbers(self, position, monkeypatch):
        monkeypatch.setenv("MICROGRAD_CACHE_MB", "0")
        for number in (1, 2):
            assert mg.compile(unlike(number))(0.1) == pytest.approx(unlike(number)(0.1))
        assert self.entries(position) == []

    def test_an_entry_that_cannot_be_removed_stays(self, position, monkeypatch):
        mg.compile(unlike(1))(0.1)

        def refuse(path):
            raise PermissionError(path)

        with monkeypatch.context() as patch:
            patch.setattr(object_cache.os, "unlink", refuse)
            object_cache._shrink(os.fspath(position), 0.0)
        assert self.entries(position)

    def test_other_files_are_let_alone(self, position):
        (position / "notes.txt").write_text("mine", encoding="utf-8")
        (position / ("a" * 32)).mkdir()
        object_cache._shrink(os.fspath(position), 0.0)
        assert sorted(path.name for path in position.iterdir()) == ["a" * 32, "notes.txt"]

    @pytest.mark.slow
    def test_another_process_may_have_removed_an_entry(self, position):
        mg.compile(unlike(1))(0.1)
        code = f"""
import pathlib, micrograd as mg
for path in pathlib.Path({str(position)!r}).iterdir():
    path.unlink()
print(mg.compile(lambda x: mg.sin(x))(0.5))
"""
        environment = {**os.environ, "MICROGRAD_CACHE": str(position)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert float(done.stdout) == pytest.approx(0.479425538604203)
        assert mg.compile(unlike(1))(0.1) == pytest.approx(unlike(1)(0.1))
