"""Scopes: which boxes pages show, and that they change nothing else."""

import asyncio
import copy
import gc
import pickle
import random
import threading
import weakref

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.contexts.calls import calls_of
from micrograd.draw.folding.runs import runs_of


def boxes(root):
    """The runs of a graph, each as its names from the outermost in, with the number of Values that it made itself."""
    counts = {}
    for run in runs_of(mg.topological_order(root)).values():
        names, outer = [], run
        while outer is not None:
            names.insert(0, outer.name)
            outer = outer.parent
        counts.setdefault(run, ["/".join(names), 0])[1] += 1
    return sorted(map(tuple, counts.values()))


@mg.scope
def square(x):
    return x * x


@mg.scope("sum of squares")
def energy(xs):
    return sum(square(x) for x in xs)


class TestCalls:
    def test_each_call_of_a_decorated_function_is_a_box_in_that_of_its_caller(self):
        root = energy([Value(1.0), Value(2.0)]) + square(Value(3.0))
        squares = ("sum of squares/square", 1)
        assert boxes(root) == [("square", 1), ("sum of squares", 2), squares, squares]

    def test_what_went_in_is_not_of_the_call(self):
        x = Value(2.0)
        before = mg.exp(x) + 1
        assert boxes(square(before)) == boxes(square(x=before)) == [("square", 1)]
        assert boxes(energy([before, {"a": [before]}["a"][0]]))[0] == ("sum of squares", 2)

    def test_what_a_function_closes_over_is_not_of_the_call(self):
        scale = mg.exp(Value(2.0))
        later: list[Value] = []

        @mg.scope
        def scaled(x):
            return scale * x + len(later)

        assert boxes(scaled(Value(1.0)) + scaled(Value(2.0))) == [("scaled", 2), ("scaled", 2)]

    def test_a_function_may_refer_to_what_is_assigned_later(self):
        @mg.scope
        def early(x):
            return x * 2 if x is None else later * x

        root = early
        later = Value(2.0) + 1
        assert boxes(root(Value(1.0))) == [("early", 1)]

    def test_what_it_leaves_in_containers_belongs_to_the_call_that_made_it(self):
        memory: list[Value] = []

        @mg.scope
        def read(x):
            memory.append(mg.exp(x))
            return sum(memory)

        assert boxes(read(Value(1.0)) + read(Value(2.0))) == [("read", 2), ("read", 3)]

    def test_a_result_that_is_handed_on_is_of_the_innermost_and_inside_of_the_others(self):
        outer = mg.scope("outer")(lambda x: square(x))
        assert boxes(outer(Value(2.0))) == [("outer/square", 1)]
        assert boxes(mg.scope("again")(outer)(Value(2.0))) == [("again/outer/square", 1)]
        same = mg.scope("same")(lambda x: x)
        assert boxes(same(Value(1.0)) * 2) == []
        x = Value(2.0) * 3
        assert same(x) is x
        assert boxes(x + 1) == []

    def test_calls_in_calls_in_calls(self):
        middle = mg.scope("middle")(lambda x: square(x) + 1)
        outer = mg.scope("outer")(lambda x: middle(x) * middle(x + 1))
        inner = ("outer/middle/square", 1)
        assert boxes(outer(Value(2.0))) == [("outer", 2), ("outer/middle", 1), ("outer/middle", 1), inner, inner]
        handed_on = mg.scope("top")(lambda x: outer(x))
        assert ("top/outer/middle/square", 1) in boxes(handed_on(Value(2.0)))

    def test_a_call_inside_that_gives_several_results(self):
        pair = mg.scope("pair")(lambda x: (x * 2, x * 3))
        used = mg.scope("used")(lambda x: pair(x)[0] + sum(pair(x)))
        assert boxes(used(Value(1.0))) == [("used", 3), ("used/pair", 1), ("used/pair", 2)]

    def test_results_in_containers_and_arrays(self):
        import numpy as np

        both = mg.scope("both")(
            lambda x: {"a": [x * 2], "b": (x * 3, 1.0, None, "x"), "c": np.array([x * 4, 2.0], object)}
        )
        given = both(Value(1.0))
        assert boxes(given["a"][0] + given["b"][0] + given["c"][0]) == [("both", 3)]
        assert boxes(both(np.array([1.0, 2.0])[0] * Value(2.0))["a"][0]) == [("both", 1)]

    def test_modules_of_any_kind(self):
        class Line(mg.nn.Module):
            def __init__(self):
                self.slope, self.intercept = Value(2.0), Value(1.0)

            def __call__(self, x):
                return self.slope * x + self.intercept

        class Twice(mg.nn.Module):
            def __init__(self):
                self.line = Line()

            def __call__(self, x):
                return self.line(self.line(x))

        assert boxes(Twice()(3.0)) == [("Twice/Line", 2), ("Twice/Line", 2)]

    def test_calls_in_iterations_are_in_their_iterations_also_in_loops_in_loops(self):
        def step(state, x):
            contributions, _ = mg.scan(lambda total, k: (square(total + k), None), state, [1.0, 2.0])
            return mg.tanh(contributions * x), square(state)

        last, outputs = mg.scan(step, Value(0.25), [0.5, 0.25, 0.125])
        outer, inner = "scan iteration", "scan iteration/scan iteration"
        assert boxes(last + sum(outputs)) == sorted(
            3 * [(outer, 2), (f"{outer}/square", 1)] + 6 * [(inner, 1), (f"{inner}/square", 1)]
        )

    def test_what_iterations_are_handed_and_hand_on_as_it_is_remembers_none(self):
        constant, leaf = Value(2.0, requires_grad=False), Value(3.0)
        before = mg.exp(leaf)
        for _ in range(3):
            mg.scan(lambda state, x: (state, [x, (leaf, {"a": constant})]), constant, [leaf, leaf])
        assert not constant._calls
        assert not leaf._calls
        assert boxes(before) == []

    def test_iterations_of_vmap_and_scan(self):
        rate = Value(0.5)
        last, _ = mg.scan(lambda y, _: (y - rate * y, None), 8.0, length=3)
        assert boxes(last) == [("scan iteration", 2)] * 3
        assert boxes(sum(mg.vmap(lambda x: mg.tanh(rate * x))([1.0, 2.0]))) == [("vmap iteration", 2)] * 2

    def test_iterations_under_no_grad_are_plain_numbers(self):
        with mg.no_grad():
            assert [y.data for y in mg.vmap(lambda x: x * Value(2.0))([1.0, 2.0])] == [2.0, 4.0]

    def test_programs_of_the_library(self):
        logits = [Value(1.0), Value(2.0)]
        contributions = mg.softmax(logits)
        assert {name for name, _ in boxes(contributions[0] + contributions[1])} == {"softmax"}
        names = {name for name, _ in boxes(mg.losses.cross_entropy([logits, logits], [0, 1]))}
        assert names == {"cross_entropy", "cross_entropy/logsumexp", "mean"}

    @pytest.mark.parametrize("name", ["mean_squared_error", "hinge", "binary_cross_entropy"])
    def test_losses(self, name):
        loss = getattr(mg.losses, name)
        before = mg.exp(Value(1.0))
        assert {box for box, _ in boxes(loss(before, 1))} == {name}
        several = {box for box, _ in boxes(loss([before, Value(2.0), before], [1, 1, 1]))}
        assert several == {name, f"{name}/mean"}
        assert {box for box, _ in boxes(mg.mean([loss(before, 1), loss(Value(2.0), 1)]))} == {name, "mean"}

    def test_a_generator_is_used_up_before_the_box_begins(self):
        x = Value(1.0)
        assert ("softmax", 2) not in boxes(mg.mean(mg.exp(x * i) for i in range(3)))
        assert boxes(mg.mean(mg.exp(x * i) for i in range(3))) == [("mean", 3)]


class TestBlocks:
    def test_are_boxes_where_they_are_recorded(self):
        def program(x):
            y = mg.exp(x)
            with mg.scope("outer"):
                y = y * 2
                with mg.scope("inner"):
                    y = square(y) + 1
            return y * 3

        assert boxes(program(Value(1.0))) == [("square", 1)]
        with mg.record_scopes():
            root = program(Value(1.0))
        assert boxes(root) == [("outer", 1), ("outer/inner", 1), ("outer/inner/square", 1)]

    def test_inside_of_a_call(self):
        @mg.scope
        def f(x):
            y = x * 2
            with mg.scope("part"):
                y = mg.exp(y) + 1
            return y * 3

        with mg.record_scopes(), mg.record_scopes():
            root = f(Value(1.0))
        assert boxes(root) == [("f", 2), ("f/part", 2)]

    def test_a_call_whose_result_is_made_in_a_block_of_its_own(self):
        @mg.scope
        def f(x):
            with mg.scope("part"):
                return x * 2

        with mg.record_scopes(), mg.scope("all"):
            root = f(Value(1.0)) + 1
        assert boxes(root) == [("all", 1), ("all/f/part", 1)]

    def test_the_next_block_of_the_name_is_another_box(self):
        part = mg.scope("part")
        with mg.record_scopes():
            x = Value(1.0)
            for _ in range(3):
                with part:
                    x = x * 2
            with part, part:
                x = x * 2
        assert boxes(x) == [("part", 1)] * 3 + [("part/part", 1)]

    def test_one_that_fails_is_over(self):
        with mg.record_scopes():
            with pytest.raises(ZeroDivisionError), mg.scope("part"):
                Value(1.0) / 0.0
            assert boxes(Value(1.0) * 2) == []

    def test_tasks_and_threads_have_their_own(self):
        async def one(name):
            with mg.record_scopes(), mg.scope(name):
                x = Value(1.0) * 2
                await asyncio.sleep(0)
                return x + 1

        async def both():
            return await asyncio.gather(one("a"), one("b"))

        assert [boxes(x) for x in asyncio.run(both())] == [[("a", 2)], [("b", 2)]]
        found = []
        with mg.record_scopes(), mg.scope("here"):
            thread = threading.Thread(target=lambda: found.append(boxes(Value(1.0) * 2)))
            thread.start()
            thread.join()
        assert found == [[]]

    def test_a_generator_that_is_left_in_between_holds_no_block_open(self):
        def generator():
            with mg.scope("left"):
                yield

        with mg.record_scopes():
            held = generator()
            next(held)
            del held
            assert boxes(Value(1.0) * 2) == []

    @pytest.mark.parametrize("outer", [mg.no_grad, mg.detect_anomaly])
    def test_where_something_else_records_nothing_is_changed(self, outer):
        with outer(), mg.record_scopes(), mg.scope("part"):
            y = Value(2.0) * 3
        assert y.data == 6.0
        assert y.requires_grad == (outer is mg.detect_anomaly)
        assert boxes(y) == []

    def test_after_the_context_has_ended_elsewhere_nothing_is_recorded(self):
        def generator():
            with mg.record_scopes(), mg.scope("part"):
                yield

        one, two = generator(), generator()
        next(one)
        next(two)
        one.close()
        two.close()
        assert boxes(Value(2.0) * 3) == []


class Scale(mg.nn.Module):
    """As small as a module can be: its input is an operand of its result."""

    def __init__(self, formula):
        self.factor, self.formula = Value(0.5), formula

    def forward(self, x):
        return self.formula(self.factor, x)


SMALL = {
    "second operand": lambda factor, x: factor * x,
    "first operand": lambda factor, x: x * factor,
    "only operand": lambda factor, x: x.tanh(),
    "both operands": lambda factor, x: x * x,
    "inside": lambda factor, x: mg.exp(x * factor),
    "of many": lambda factor, x: mg.dot([factor, x], [1.0, factor]),
    "unused": lambda factor, x: factor * 2.0,
    "constant": lambda factor, x: factor * mg.detach(x),
}


class TestSmallModules:
    @pytest.mark.parametrize("formula", SMALL.values(), ids=SMALL)
    def test_a_call_has_its_module_its_input_and_when_it_was(self, formula):
        scale, before = Scale(formula), mg.exp(Value(0.25))
        results = [scale(before), scale(before)]
        first, second = ([*calls_of(result)] for result in results)
        assert [(call.name, call.of, call.inputs) for call in first + second] == 2 * [("Scale", scale, [id(before)])]
        assert first[0].start < first[0].end <= second[0].start < second[0].end
        made = [node for node in mg.topological_order(results[0]) if not node.is_leaf and node not in (before,)]
        assert ("Scale", len(made)) in boxes(results[0])

    def test_modules_around_modules(self):
        scale, around = Scale(SMALL["second operand"]), Scale(lambda factor, x: scale(scale(x)))
        outer = Scale(lambda factor, x: around(x))
        inner, middle, last = calls_of(outer(Value(2.0)))
        assert (inner.of, middle.of, last.of) == (scale, around, outer)
        assert last.start <= middle.start < inner.start < inner.end < middle.end < last.end
        assert boxes(outer(Value(2.0))) == 2 * [("Scale/Scale/Scale", 1)]

    def test_what_is_handed_on_as_it_is_remembers_all_calls_and_not_itself(self, without_collector):
        class Note:
            pass

        same, x = Scale(lambda factor, x: x), Value(2.0) * 3.0
        x.note = Note()
        note = weakref.ref(x.note)
        assert same(same(x)) is x
        assert [call.inputs for call in calls_of(x)] == [[id(x)], [id(x)]]
        del x
        assert note() is None

    @pytest.mark.parametrize("name", ["unused", "constant"])
    def test_a_result_that_does_not_need_the_input_does_not_keep_it(self, name, without_collector):
        class Note:
            pass

        x = Value(2.0) * 3.0
        x.note = Note()
        note, result = weakref.ref(x.note), Scale(SMALL[name])(x)
        del x
        assert note() is None
        assert len(calls_of(result)) == 1

    def test_a_list_that_the_module_changes_counts_as_it_was(self):
        first, second = Value(1.0), Value(2.0)
        given = [first, second]
        taken = Scale(lambda factor, x: factor * x.pop())(given)
        assert calls_of(taken)[0].inputs == [id(given), id(first), id(second)]

    def test_long_chains_are_freed_and_copied(self):
        scale, result = Scale(SMALL["second operand"]), Value(1.0)
        for number in range(30_000):
            result = scale(result)
            if number == 2000:
                assert copy.deepcopy(result).data == result.data
        del result


class TestNothingElse:
    def test_numbers_and_gradients_are_the_same(self):
        def gradients(run):
            random.seed(0)
            model = mg.nn.MLP(2, [3, 1], activation="tanh")
            with mg.record_scopes() if run else mg.scope("nothing"), mg.scope("all"):
                loss = mg.losses.mean_squared_error([model([1.0, 2.0])], [energy([Value(1.0), 2.0])])
            loss.backward()
            return [loss.data, *(parameter.grad for parameter in model.parameters())]

        assert gradients(True) == gradients(False)

    def test_no_input_is_kept_alive(self):
        class Note:
            pass

        unused, kept = Value(1.0), []
        unused.note = Note()
        dead = weakref.ref(unused.note)
        f = mg.scope("f")(lambda x, y: x * 2)
        kept.append(f(Value(1.0), [unused]))
        del unused
        gc.collect()
        assert dead() is None
        assert boxes(kept[0]) == [("f", 1)]

    def test_results_can_be_copied_and_pickled_and_have_no_boxes_then(self):
        root = energy([Value(1.0), Value(2.0)])
        for other in (copy.deepcopy(root), pickle.loads(pickle.dumps(root))):
            assert other.data == root.data
            assert boxes(other) == []

    def test_compiled_functions_are_the_same(self):
        @mg.compile(backend="numpy")
        def fast(xs):
            with mg.record_scopes(), mg.scope("part"):
                return energy(xs) + mg.softmax(xs)[0]

        xs = [Value(1.0), Value(2.0)]
        assert fast(xs).data == pytest.approx(5 + mg.softmax([1.0, 2.0])[0], rel=1e-15)
        assert boxes(fast(xs)) == []

    def test_a_compiled_module_notices_what_is_replaced(self):
        class Line(mg.nn.Module):
            def __init__(self):
                self.slope, self.doubled = Value(2.0), False

            def __call__(self, x):
                return self.slope * x * (2 if self.doubled else 1)

        line = Line()
        fast = mg.compile(line, backend="numpy")
        assert fast(3.0).data == 6.0
        line.doubled = True
        assert fast(3.0).data == 12.0
        line.slope = Value(5.0)
        assert fast(3.0).data == 30.0

    def test_a_function_keeps_its_name_and_its_words(self):
        assert square.__name__ == "square"
        assert energy([2.0]) == 4.0


class TestWrongUse:
    def test_what_runs_later_is_refused(self):
        def generator():
            yield 1

        async def coroutine():
            return 1

        for later in (generator, coroutine):
            with pytest.raises(TypeError, match=f"cannot decorate {later.__name__}, which runs later"):
                mg.scope(later)

    def test_an_endless_container_is_no_trouble(self):
        endless: list = [Value(1.0)]
        endless.append(endless)
        assert boxes(mg.scope("f")(lambda xs: xs[0] * 2)(endless)) == [("f", 1)]
