"""The list of passes: what each did, and what is computed where one of them is left out."""

import math
import re

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.passes import allocate, listing, packs, transposing
from micrograd.compiler.passes.lists import COMMON, NATIVE, OPTIONAL


def table(fast, *arguments):
    """The rows of the table of passes, by their names."""
    head, *rows = [re.split(r"  +", line) for line in fast.explain(*arguments, passes=True).splitlines()]
    assert head == ["pass", "ms", "operations", "arrays", "numbers", "bytes"]
    return {name: cells for name, *cells in rows}


def mixture(points, w):
    """Many samples with few numbers each, equal operations, and chains of maps."""
    return sum(mg.exp(-((x - w[0]) ** 2)) * mg.tanh(x * w[1]) + mg.exp(-((x - w[0]) ** 2)) for x in points)


def numbers_of(fast, points):
    """The result and the gradients, as exact texts."""
    w = [Value(0.5), Value(-1.25)]
    result = fast(points, w)
    result.backward()
    return [number.hex() for number in (result.data, w[0].grad, w[1].grad)]


POINTS = [math.sin(i) for i in range(70)]


def recurrent(xs, w):
    h = w
    for x in xs:
        h = mg.tanh(h * x + w)
    return h


class TestExplain:
    def test_each_pass_is_listed_with_its_time_and_the_size_of_the_program_after_it(self):
        fast = mg.compile(mixture, backend="numpy")
        rows = table(fast, POINTS, [Value(0.5), Value(-1.25)])
        assert list(rows) == [*(each.name for each in COMMON), "compile"]
        assert all(float(cells[0]) >= 0 for cells in rows.values())
        assert [len(cells) for cells in rows.values()] == [5] * len(COMMON) + [1]
        sizes = {name: [int(cell.replace(",", "")) for cell in cells[1:]] for name, cells in rows.items()}
        assert sizes["cse"][0] < sizes["trace"][0]
        assert sizes["adjoint"][0] > sizes["batch"][0] == sizes["normalise"][0]
        assert sizes["transpose"][2:] == [fast.program().program.size, 8 * fast.program().program.size]

    def test_native_code_has_passes_of_its_own(self):
        pytest.importorskip("llvmlite")
        rows = table(mg.compile(mixture, backend="llvm"), POINTS, [Value(0.5), Value(-1.25)])
        assert list(rows) == [*(each.name for each in NATIVE), "compile"]

    def test_a_loop_counts_at_each_iteration_and_whole_vectors_as_their_products(self, monkeypatch):
        rows = table(mg.compile(recurrent, backend="numpy"), POINTS[:40], Value(0.5))
        assert int(rows["reroll"][1]) >= 80
        assert int(rows["reroll"][2]) < 40
        monkeypatch.setattr("micrograd.compiler.passes.normalise.MANY", 1)
        w, x = [Value(0.1 * i) for i in range(20)], [0.5 * i for i in range(20)]
        rows = table(mg.compile(lambda x: mg.dot(w, x), backend="numpy"), x)
        assert int(rows["normalise"][1]) == 20

    def test_without_it_the_kernels_are_listed_as_before(self):
        fast = mg.compile(lambda x: x * x, backend="numpy")
        untimed = [
            re.sub(r"[\d.]+ [nµum]?s\b", "a while", text)
            for text in (str(fast.explain(Value(2.0))), fast.explain(passes=False))
        ]
        assert untimed[0] == untimed[1]
        assert fast.explain().splitlines()[0].startswith("1 scalar operations")
        with pytest.raises(ValueError, match="has not been called"):
            mg.compile(lambda x: x, backend="numpy").explain(passes=True)

    def test_a_backend_whose_runs_are_plain_functions_has_the_passes_that_all_have(self):
        numpy = backend_of("numpy")
        plain = Backend("plain", lambda program: lambda numbers: numpy.run_of(program)(numbers))
        program = mg.compile(lambda x: 3 * x, backend="numpy").program(Value(2.0)).program
        outputs, gradients = plain.run_of(program)(np.array([5.0]))
        assert (outputs.tolist(), gradients.tolist()) == ([15.0], [3.0])
        assert plain.passes == COMMON

    def test_what_is_no_program_has_no_size(self):
        assert listing.effect_of(len) is None


class TestShow:
    def test_a_graph_is_shown_node_by_node_and_a_program_kernel_by_kernel(self, capsys):
        fast = mg.compile(lambda x: mg.take([x, 2 * x], 1) + 2.0 * x * x + mg.tanh(x), backend="numpy")
        fast(Value(1.0))
        fast.show(after="batch")
        assert capsys.readouterr().out.splitlines() == [
            "inputs n0", "n2 = 2 * n0", "n6 = tanh(n0)", "n7 = n2 + n2 * n0 + n6", "outputs n7"
        ]  # fmt: skip
        fast.show(after="normalise")
        assert "n6 = tanh(n0)" in capsys.readouterr().out
        fast.show(after="adjoint")
        assert re.search(r"^gradients n\d+$", capsys.readouterr().out, re.MULTILINE)
        fast.show(after="reroll")
        assert "[9] = tanh 1x1 of [0]" in capsys.readouterr().out.splitlines()

    def test_arguments_may_be_given_and_takes_maxima_and_tables_are_shown(self, capsys):
        def f(xs, index):
            return mg.take(mg.softmax(xs), index) + sum(xs[(7 * i * i) % 11] * xs[i] for i in range(11))

        fast = mg.compile(f, backend="numpy")
        fast.show([Value(0.1 * i) for i in range(11)], 1.0, after="normalise")
        text = capsys.readouterr().out
        assert re.search(r"^n\d+ = take\(n11, (n\d+, )*n\d+\)$", text, re.MULTILINE)
        assert re.search(r"^n\d+ = max\(n0, n1, ", text, re.MULTILINE)
        fast.show(after="transpose")
        assert "[table" in capsys.readouterr().out

    def test_loops_single_numbers_and_long_listings(self, capsys, monkeypatch):
        fast = mg.compile(recurrent, backend="numpy")
        fast(POINTS[:40], Value(0.5))
        fast.show(after="reroll")
        assert re.search(r"^loop of \d\d iterations\n    \[\d+ \+ \d+i\] = ", capsys.readouterr().out, re.MULTILINE)
        monkeypatch.setenv("MICROGRAD_LOOPS", "0")
        monkeypatch.setattr("micrograd.compiler.passes.reroll._MANY", 1)
        monkeypatch.setattr("micrograd.compiler.passes.listing._MOST", 10)
        fast.show(after="reroll")
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 11
        assert re.fullmatch(r"\.\.\. and \d\d+ lines more", lines[-1])

    @pytest.mark.parametrize("name", ["trace", "cse", "compile", "fuse", "folding"])
    def test_what_is_not_kept_or_no_pass_is_refused(self, name):
        fast = mg.compile(lambda x: x * x, backend="numpy")
        with pytest.raises(ValueError, match=f"show takes one of normalise, batch, adjoint, .* not '{name}'"):
            fast.show(Value(2.0), after=name)


@pytest.fixture
def small(monkeypatch):
    """As if small programs were worth all passes."""
    monkeypatch.setattr(allocate, "_LARGE", 0)
    monkeypatch.setattr(allocate, "_LEAST", 8)
    monkeypatch.setattr(transposing, "_NUMBERS", 1)
    monkeypatch.delenv("MICROGRAD_DISABLE", raising=False)


@pytest.mark.usefixtures("small")
class TestDisable:
    @pytest.mark.slow
    @pytest.mark.unmeasured
    @pytest.mark.parametrize("name", OPTIONAL)
    def test_the_numbers_stay_the_same(self, name, backend):
        expected = numbers_of(mg.compile(mixture, backend=backend), POINTS)
        fast = mg.compile(mixture, backend=backend, disable=[name])
        found = numbers_of(fast, POINTS)
        if name in ("cse", "transpose"):  # gradients of equal operations are added up in another order
            assert [float.fromhex(x) for x in found] == pytest.approx([*map(float.fromhex, expected)], rel=1e-13)
        else:
            assert found == expected
        rows = table(fast)
        assert name not in rows or rows[name][0] == "disabled"
        assert [row for row, cells in rows.items() if cells[0] == "disabled"] == [row for row in rows if row == name]

    def test_on_small_integers_they_are_the_same_bit_for_bit(self, backend):
        def f(xs):
            return sum((2 * x + 1) * (2 * x + 1) - x for x in xs)

        found = set()
        for disable in ((), *((name,) for name in OPTIONAL), OPTIONAL):
            xs = [Value(float(i)) for i in range(-5, 6)]
            result = mg.compile(f, backend=backend, disable=disable)(xs)
            result.backward()
            found.add((result.data, *(x.grad for x in xs)))
        assert len(found) == 1

    def test_equal_operations_stay_apart(self):
        sizes = [
            table(mg.compile(mixture, backend="numpy", disable=disable), POINTS, [1.0, 2.0])["cse"][1]
            for disable in ((), ("cse",))
        ]
        assert sizes[0] < sizes[1]

    def test_the_environment_names_passes_too(self, monkeypatch):
        monkeypatch.setenv("MICROGRAD_DISABLE", "cse, transpose")
        rows = table(mg.compile(mixture, backend="numpy", disable=("batch",)), POINTS, [1.0, 2.0])
        assert [name for name, cells in rows.items() if cells[0] == "disabled"] == ["cse", "batch", "transpose"]
        monkeypatch.setenv("MICROGRAD_DISABLE", "adjoint")
        with pytest.raises(ValueError, match="MICROGRAD_DISABLE names 'adjoint'; the passes that can be left out"):
            mg.compile(mixture)

    def test_fit_heeds_it(self, monkeypatch, backend):
        def trained():
            w = [Value(0.5), Value(-1.0)]
            mg.fit(lambda x: (w[0] * x + w[1]) ** 2, [1.0, 2.0, 3.0, 4.0], mg.optim.SGD(w, 0.0625), epochs=2,
                   batch_size=4, compile=backend, progress=False)  # fmt: skip
            return [x.data for x in w]

        batches = []
        monkeypatch.setattr(
            "micrograd.compiler.passes.lists.packed", lambda *given: batches.append(1) or packs.packed(*given)
        )
        expected = trained()
        assert batches
        batches.clear()
        monkeypatch.setenv("MICROGRAD_DISABLE", "batch,fuse,allocate")
        assert trained() == pytest.approx(expected, rel=1e-14)
        assert not batches
