"""mg.vmap over many items in a compiled function: one program for all of them, and the numbers of eager code."""

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.calling import mapped as mapped_calls
from micrograd.compiler.passes import packs
from micrograd.compiler.tracing import iterations

pytestmark = pytest.mark.slow(together=True)

BACKENDS = pytest.mark.parametrize("backend", ["llvm", "numpy", "jax"])
MANY = 150  # two blocks, and a part of one


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let small functions of few items be compiled once, too, and in several blocks."""
    monkeypatch.setattr(iterations, "OPERATIONS_MAPPED", 1)
    monkeypatch.setattr(mapped_calls, "_MOST", 64)


def values(count, start=-1.0):
    return [mg.Value(start + 2.0 * number / count) for number in range(count)]


def derivatives(function, leaves, arguments):
    """What a function gives, and the gradients of some Values."""
    for leaf in leaves:
        leaf.grad = 0.0
    result = function(*arguments)
    if isinstance(result, mg.Value):
        result.backward()
        result = result.data
    return [result, *[leaf.grad for leaf in leaves]]


def is_mapped(fast, *arguments):
    return "iterations, of which one program computes" in fast.explain(*arguments)


def assert_as_eager(function, leaves, *arguments, mapped=True, backend="llvm", **settings):
    fast = mg.compile(function, backend=backend, **settings)
    expected = derivatives(function, leaves, arguments)
    for _ in range(2):
        assert derivatives(fast, leaves, arguments) == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert is_mapped(fast, *arguments) is (mapped and backend != "jax")
    return fast


class TestOneProgram:
    def test_neither_runs_of_the_body_nor_kernels_grow_with_the_number_of_items(self, capsys):
        found = []
        for count in (100, 250):  # of more, an outline is looked at, as the function names sum
            tell = lambda x: print("ran") or mg.tanh(x) * x  # noqa: E731, T201
            fast = mg.compile(lambda xs, tell=tell: sum(mg.vmap(tell)(xs)), backend="llvm")
            fast([0.5] * count)
            found.append((capsys.readouterr().out, fast.explain().count("\n")))
        assert found[0] == found[1]
        assert found[0][0] == "ran\n" * 3

    def test_a_few_items_are_written_out(self):
        assert_as_eager(lambda xs: sum(mg.vmap(mg.tanh)(xs)), [], [0.5] * 10, mapped=False)

    def test_little_is_written_out(self, monkeypatch):
        monkeypatch.undo()
        fast = mg.compile(lambda xs: sum(mg.vmap(mg.tanh)(xs)))
        fast([0.5] * 1000)
        assert not is_mapped(fast)
        rows = np.random.default_rng(0).standard_normal((1000, 40))
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: mg.tanh(mg.dot(x, x)))(xs)))
        assert fast(rows) == pytest.approx(np.tanh((rows * rows).sum(axis=1)).mean())
        assert "vmap: 1,000 iterations, of which one program computes 1000 at a time" in fast.explain()

    def test_it_says_how_many_iterations_there_are(self):
        fast = mg.compile(lambda xs: sum(mg.vmap(mg.tanh)(xs)), backend="llvm")
        assert "vmap: 300 iterations, of which one program computes 64 at a time" in fast.explain([0.5] * 300)

    @pytest.mark.parametrize(("of_all", "programs"), [(mg.mean, 1), (lambda ys: mg.log(mg.mean(ys)), 2)])
    def test_gradients_that_need_no_result_are_computed_with_the_results(self, of_all, programs):
        def loss(w, xs):
            return of_all(mg.vmap(lambda x: mg.exp(w * x) * (1.0 + x * x))(xs))

        fast = mg.compile(mg.value_and_grad(loss), backend="llvm")
        found = fast(0.3, np.linspace(-1.0, 1.0, MANY))
        assert found == pytest.approx(mg.value_and_grad(loss)(0.3, np.linspace(-1.0, 1.0, MANY)), rel=1e-13)
        assert fast.explain().count("iterations, of which one program computes") == programs

    def test_a_function_that_begins_as_another_one_does_gives_its_own_results(self):
        def both(w, xs):
            first = mg.vmap(lambda x: mg.exp(w * x))(xs)
            second = mg.vmap(lambda x: mg.sin(mg.exp(w * x)))(xs)
            return [*first, *second]

        fast = mg.compile(both, backend="llvm")
        xs = np.linspace(-1.0, 1.0, MANY)
        assert fast(0.3, xs) == pytest.approx(both(0.3, xs), rel=1e-13)
        assert fast.explain().count("iterations, of which one program computes") == 1

    def test_a_first_item_of_another_class_is_written_out(self):
        w, xs = mg.Value(0.5), np.linspace(-1.0, 1.0, 300).tolist()
        function = lambda first, others: sum(mg.vmap(lambda x: mg.tanh(w * x))([first, *others]))  # noqa: E731
        fast = assert_as_eager(function, [w], mg.Value(0.3), xs)
        assert "vmap: 300 iterations, of which" in fast.explain()

    def test_another_number_of_items_needs_no_new_code(self):
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: mg.tanh(x) * mg.sin(x))(xs)), backend="llvm")
        fast(np.linspace(0.0, 1.0, 200))
        before = fast.cache_info().code_bytes
        fast(np.linspace(0.0, 1.0, 1000))
        assert fast.cache_info().code_bytes == before


@BACKENDS
class TestAsEager:
    def test_what_is_computed_before_is_gone_through_and_closed_over(self, backend):
        xs, w = values(MANY), mg.Value(0.5)

        def loss(given):
            scale = mg.exp(w)
            shifted = [mg.sin(x + w) for x in given]
            return sum(mg.relu(y) for y in mg.vmap(lambda x: scale * x * x - 0.3)(shifted))

        assert_as_eager(loss, [*xs, w], xs, backend=backend)

    @pytest.mark.unmeasured
    def test_one_goes_through_the_results_of_another_one(self, backend):
        xs, w = values(MANY), mg.Value(0.5)

        def loss(given):
            first = mg.vmap(lambda x: mg.tanh(w * x))(given)
            total = sum(first)
            second = mg.vmap(lambda y, x: y * x + total * w)(first, given)
            return sum(mg.vmap(lambda y: mg.exp(-y * y))([y - total for y in second]))

        assert_as_eager(loss, [*xs, w], xs, backend=backend)

    @pytest.mark.unmeasured
    def test_scan_inside(self, backend):
        w = mg.Value(0.4)

        def path(zs):
            (last, total), _ = mg.scan(lambda s, z: ((s[0] * mg.exp(w * z), s[1] + s[0]), None), (1.0, 0.0), zs)
            return mg.relu(last + total - 20.0)

        noise = np.random.default_rng(0).standard_normal((MANY, 20))
        assert_as_eager(lambda given: mg.mean(mg.vmap(path)(given)), [w], noise, backend=backend)

    def test_axes_and_containers(self, backend):
        w = mg.Value(0.4)
        matrix = np.random.default_rng(0).standard_normal((3, MANY))

        def loss(columns, scale, points):
            made = mg.vmap(
                lambda column, scale, point: {"a": (mg.dot(column, column) * scale, [point["x"] * w]), "b": column},
                in_axes=(1, None, {"x": 0, "y": None}),
                out_axes={"a": (0, 0), "b": 1},
            )(columns, scale, points)
            assert made["b"].shape == (3, MANY)
            rest = sum(row[0] for row in made["a"][1])
            return mg.mean(made["a"][0]) + rest + made["b"][1, 7] + points["y"]

        y = mg.Value(2.0)
        assert_as_eager(loss, [w, y], matrix, 0.5, {"x": list(matrix[0]), "y": y}, backend=backend)

    def test_one_array_twice(self, backend):
        rows = np.random.default_rng(0).standard_normal((MANY, 3))
        assert_as_eager(
            lambda xs: mg.mean(mg.vmap(lambda x, y: mg.tanh(mg.dot(x, y)))(xs, xs)), [], rows, backend=backend
        )

    def test_named_arguments_and_integers(self, backend):
        fast = mg.compile(lambda xs, ks: mg.vmap(lambda x, k: x * k + k * k)(xs, k=ks), backend=backend)
        xs, ks = [0.5 * n for n in range(MANY)], [n % 5 for n in range(MANY)]
        assert fast(xs, ks) == [x * k + k * k for x, k in zip(xs, ks, strict=True)]
        counts = mg.compile(lambda ks: mg.vmap(lambda k: 3 * k + 1)(ks), backend=backend)(ks)
        assert counts == [3 * k + 1 for k in ks]
        assert {type(count) for count in counts} == {int}

    def test_many_results(self, backend):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: mg.vmap(lambda x: (w * x, 2.0 * x))(xs), backend=backend)
        xs = np.linspace(0.0, 1.0, MANY)
        first, second = fast(xs)
        assert [y.data for y in first] == [0.5 * x for x in xs.tolist()]
        assert [y.data if isinstance(y, mg.Value) else y for y in second] == [2.0 * x for x in xs.tolist()]
        sum(y * y for y in first).backward()
        assert w.grad == pytest.approx(2 * 0.5 * sum(xs * xs))

    def test_results_that_are_given_or_closed_over(self, backend):
        w = mg.Value(0.5)
        xs = values(MANY)
        fast = mg.compile(lambda given: mg.vmap(lambda x: (x, w, 1.0, w * x))(given), backend=backend)
        given, closed, ones, made = fast(xs)
        assert [x.data for x in given] == [x.data for x in xs]
        assert {x.data for x in closed} == {0.5}
        assert ones == [1.0] * MANY
        sum([*given, *closed, *made]).backward()
        assert xs[3].grad == 1.5
        assert w.grad == pytest.approx(MANY + sum(x.data for x in xs))

    def test_inside_no_grad(self, backend):
        w = mg.Value(0.5)

        def f(xs):
            with mg.no_grad():
                total = mg.scan(lambda s, x: (s * w + x, None), 0.0, xs)[0]
                total += sum(mg.vmap(lambda x: mg.tanh(w * x))(xs))
            return w * total

        assert_as_eager(f, [w], [0.5] * MANY, mapped=False, backend=backend)

    def test_under_no_grad(self, backend):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: sum(mg.vmap(lambda x: w * x)(xs)), backend=backend)
        with mg.no_grad():
            result = fast([1.0] * MANY)
        assert result.data == MANY / 2
        assert not result.requires_grad

    @pytest.mark.unmeasured
    def test_nested(self, backend):
        w = mg.Value(0.5)
        matrix = np.random.default_rng(0).standard_normal((MANY, 4))
        assert_as_eager(
            lambda rows: mg.mean(mg.vmap(lambda row: sum(mg.vmap(lambda x: mg.tanh(w * x))(row)))(rows)),
            [w],
            matrix,
            backend=backend,
        )
        assert_as_eager(
            lambda rows: sum(mg.vmap(lambda column: mg.mean(mg.vmap(lambda x: mg.tanh(w * x))(column)))(rows)),
            [w],
            matrix.T.copy(),
            backend=backend,
        )

    @pytest.mark.unmeasured
    def test_derivatives_in_the_body(self, backend):
        w = mg.Value(0.5)
        slope = mg.grad(lambda x: mg.sin(w * x) * x)
        assert_as_eager(
            lambda xs: sum(y * y for y in mg.vmap(slope)(xs)), [w], [0.01 * n for n in range(MANY)], backend=backend,
            mapped=False,
        )  # fmt: skip


@pytest.mark.slow
class TestDerivatives:
    def test_second_derivatives_inside(self):
        loss = lambda w, xs: mg.mean(mg.vmap(lambda x: mg.tanh(w * x) * x)(w * xs))  # noqa: E731
        assert_as_eager(mg.grad(mg.grad(loss)), [], 0.5, np.linspace(-1.0, 1.0, MANY))

    @pytest.mark.parametrize("derivative", [lambda f, w: f(w), lambda f, w: mg.grad(f)(w * 1.0)])
    def test_what_iterations_give_is_a_factor_in_another_derivative(self, derivative):
        w = mg.Value(0.5)

        def loss(xs):
            factor = derivative(lambda v: mg.mean(mg.vmap(lambda x: mg.tanh(v * x) * x)(xs)), w)
            return mg.grad(lambda v: v * v * factor)(2.0)

        assert_as_eager(loss, [w], np.linspace(-1.0, 1.0, MANY))

    def test_of_a_compiled_function(self):
        fast = mg.compile(lambda w, xs: mg.mean(mg.vmap(lambda x: mg.tanh(w * x))(xs)), backend="llvm")
        xs = np.linspace(-1.0, 1.0, MANY).tolist()

        def loss(w):
            return mg.mean([mg.tanh(w * x) for x in xs])

        assert mg.grad(lambda w: fast(w, xs))(0.5) == pytest.approx(mg.grad(loss)(0.5))
        assert mg.grad(mg.grad(lambda w: fast(w, xs)))(0.5) == pytest.approx(mg.grad(mg.grad(loss))(0.5))

    @pytest.mark.parametrize("order", [1, *(pytest.param(order, marks=pytest.mark.slow) for order in (2, 3))])
    def test_in_a_compiled_function(self, order):
        xs = np.linspace(-1.0, 1.0, MANY)

        def loss(w, xs):
            wide = mg.exp(w)
            shifted = [mg.sin(x + w) for x in xs]
            made = mg.vmap(lambda x, y: (mg.tanh(w * x) * wide, x * y * w))(xs, shifted)
            return mg.mean(made[0]) + sum(made[1][:70]) * w

        def derivative(w, xs):
            f = lambda w: loss(w, xs)  # noqa: E731
            for _ in range(order):
                f = mg.grad(f)
            return f(w)

        fast = mg.compile(derivative, backend="llvm", verify=True)
        assert fast(0.5, xs) == pytest.approx(derivative(0.5, xs), rel=1e-11)
        assert is_mapped(fast)

    def test_with_the_value(self):
        def loss(p, rows):
            hidden = mg.vmap(lambda row: mg.relu(mg.dot(p["w"], row) + p["b"]))(rows)
            return mg.mean([y * y for y in mg.vmap(lambda y: y * p["c"] - 1.0)(hidden)])

        given = {"w": [0.1, -0.2, 0.7], "b": 0.1, "c": 2.0}
        rows = np.random.default_rng(0).standard_normal((MANY, 3))
        fast = mg.compile(mg.value_and_grad(loss), backend="llvm", verify=True)
        value, gradients = fast(given, rows)
        expected, exact = mg.value_and_grad(loss)(given, rows)
        assert value == pytest.approx(expected)
        assert gradients["w"] == pytest.approx(exact["w"])
        assert [gradients["b"], gradients["c"]] == pytest.approx([exact["b"], exact["c"]])
        assert is_mapped(fast)

    def test_by_what_is_gone_through(self):
        def loss(xs):
            return sum(y * (n % 3) for n, y in enumerate(mg.vmap(lambda x: mg.sin(x) * x)(xs)))

        xs = np.linspace(-1.0, 1.0, MANY)
        fast = mg.compile(mg.grad(loss), backend="llvm")
        assert fast(xs) == pytest.approx(mg.grad(loss)(xs))
        assert is_mapped(fast)

    def test_of_several_results_and_forwards(self):
        xs = np.linspace(-1.0, 1.0, MANY).tolist()

        def loss(w, xs):
            made = mg.vmap(lambda x: mg.tanh(w * x))(xs)
            return [sum(made), made[0] * made[1]]

        rows = mg.compile(mg.jacobian(loss), backend="llvm")
        assert rows(0.5, xs) == pytest.approx(mg.jacobian(loss)(0.5, xs))
        forwards = lambda w, xs: mg.jvp(lambda w: loss(w, xs)[0], (w,), (1.0,))  # noqa: E731
        assert mg.compile(forwards)(0.5, xs) == pytest.approx(forwards(0.5, xs))

    @pytest.mark.parametrize("may_fail", [False, True])
    def test_after_the_map(self, may_fail):
        w, xs = mg.Value(0.5), np.linspace(-1.0, 1.0, MANY)

        def slope(xs):
            found = mg.gradient(mg.mean(mg.vmap(lambda x: mg.tanh(w * x))(xs)), w)
            if may_fail and not isinstance(found, float):
                raise TypeError("no gradient")  # which comes only as a derivative is missing
            return found

        assert mg.compile(slope)(xs) == pytest.approx(slope(xs))

    def test_by_a_result_is_refused(self):
        def by_one_of_a_map(xs):
            made = mg.vmap(lambda x: mg.tanh(x))(xs)
            return mg.gradient(sum(made), made[5])

        def by_one_of_the_body(x):
            square = x * x
            return mg.gradient(square * square, square)

        for slope in by_one_of_a_map, mg.vmap(by_one_of_the_body):
            with pytest.raises(mg.TraceError, match="a gradient by a result"):
                mg.compile(slope)(values(MANY))

    def test_of_a_derivative_in_the_body(self):
        xs = values(MANY, start=0.5)
        slope = mg.grad(lambda z: mg.gradient(z * z * z, z, create_graph=True))
        assert_as_eager(lambda *given: sum(mg.vmap(slope)(list(given))), xs, *xs)

    def test_through_results_that_no_gradient_flows_to(self):
        xs, w = values(MANY), mg.Value(0.5)
        constants = [mg.Value(x.data, requires_grad=False) for x in xs]
        fast = mg.compile(lambda given: mg.vmap(lambda x: (x * x, w * mg.detach(x)))(given), backend="llvm")
        squares, products = fast(constants)
        assert {y.requires_grad for y in squares} == {False}
        assert {y.requires_grad for y in products} == {True}
        sum(products).backward()
        assert w.grad == pytest.approx(sum(x.data for x in xs))
        mixed = mg.compile(lambda a, b: mg.vmap(lambda x: x * x)([p * 1.0 for p in [*a, *b]]), backend="llvm")
        made = mixed(xs, constants)
        assert [y.requires_grad for y in made] == [True] * MANY + [False] * MANY


def test_a_body_may_look_at_a_sparse_matrix():
    def body(x):
        mg.sparse_jacobian(lambda v: [v[0] * x])([1.0])
        return x * 2.0

    assert mg.compile(lambda xs: sum(mg.vmap(body)(xs)))([0.5] * MANY) == MANY


@pytest.mark.parametrize("transform", [mg.jacobian, mg.sparse_jacobian])
def test_the_rows_of_a_jacobian_are_differentiated_once_each(transform, own_registry):
    pytest.importorskip("scipy")
    asked = []

    def rule(g, out, x):
        asked.append(x)
        return g * 3.0

    triple = mg.primitive("triple", "3*", lambda x: 3.0 * x, rule)
    fast = mg.compile(transform(lambda xs: mg.vmap(lambda x: triple(x) * x)(xs)))
    found = fast(np.arange(float(MANY)))
    diagonal = found.diagonal() if transform is mg.sparse_jacobian else np.diag(np.array(found))
    assert diagonal.tolist() == (6.0 * np.arange(MANY)).tolist()
    assert len(asked) == MANY  # and not once more for each row, with all others


class TestWritten:
    """Functions whose iterations differ, or remember something: as before, they are written out."""

    @pytest.mark.parametrize("by_a_variable", [False, True])
    def test_a_body_that_changes_something_runs_in_each_iteration(self, by_a_variable):
        seen = []
        append = seen.append

        def body(x):
            seen.append(None)
            return x * x

        def body_by_a_variable(x):
            append(None)
            return x * x

        body = body_by_a_variable if by_a_variable else body
        fast = mg.compile(lambda xs: sum(mg.vmap(body)(xs)), backend="llvm")
        assert fast([2.0] * MANY) == 4.0 * MANY
        assert len(seen) == MANY
        assert not is_mapped(fast)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("body", "factor"),
        [
            (lambda x, w: mg.gradient(x * x, x, create_graph=True), 2.0),
            (lambda x, w: mg.gradient(w * x, w, create_graph=True), 1.0),
            (lambda x, w: mg.jvp(lambda z: z * z + w, (x,), (1.0,))[1] + mg.jvp(lambda z: w, (x,), (1.0,))[1], 2.0),
            (lambda x, w: x + 0.0 * mg.gradient(x * x, x), 1.0),
        ],
        ids=["a derivative", "one by a Value from outside", "a tangent", "a plain derivative"],
    )
    def test_a_body_that_asks_for(self, body, factor):
        xs, w = values(MANY, start=0.5), mg.Value(0.5)
        fast = mg.compile(lambda given: sum(mg.vmap(body, (0, None))(given, w)))
        result = fast(xs)
        assert result.data == pytest.approx(factor * sum(x.data for x in xs))
        assert not is_mapped(fast, xs)

    def test_a_derivative_that_depends_on_what_is_from_outside(self):
        xs, w = values(MANY, start=0.5), mg.Value(0.5)

        def f(given):
            u = w * given[0]
            ours = mg.vmap(lambda x: mg.gradient(u * x, x))(given)
            theirs = mg.vmap(lambda x: mg.gradient(u, x))(given)
            return sum([*ours, *theirs])

        def of_a_constant(given):
            u = w * given[0]
            return sum(mg.vmap(lambda x: x * mg.grad(lambda z: z * z * u)(2.0))(given))

        for function in f, of_a_constant:
            assert_as_eager(function, [*xs, w], xs, mapped=False)

    @pytest.mark.parametrize(
        ("body", "make"),
        [
            (lambda x: x * x, lambda xs: [*xs, *[0.5] * MANY, 3]),
            (lambda pair: pair[0] * pair[1], lambda xs: [xs[:2]] * MANY + [[xs[0], xs[0]]]),
            (lambda x: x, lambda xs: xs),
        ],
        ids=["items of several kinds", "an item that is there twice", "a body that computes nothing"],
    )
    def test_what_is_not_mapped(self, body, make):
        xs = values(MANY)
        assert_as_eager(lambda given: sum(mg.vmap(body)(given)), xs, make(xs), mapped=False)

    def test_what_is_not_mapped_as_it_is_from_outside(self):
        w, constants, xs = mg.Value(0.5), [0.1 * n for n in range(MANY)], values(MANY)
        assert_as_eager(lambda: sum(mg.vmap(lambda c: w * c)(constants)), [w], mapped=False)
        asks = lambda given: sum(mg.vmap(lambda x: x if x == given[3] else x * x)(given))  # noqa: E731
        assert_as_eager(asks, xs, xs, mapped=False)

    def test_a_decision_that_goes_on_where_it_is_refused(self):
        def body(x):
            try:
                return x * 3.0 if x > 0 else x
            except TypeError:
                return x

        xs = values(MANY, start=0.5)
        assert_as_eager(lambda *given: sum(mg.vmap(body)(list(given))), xs, *xs)

    def test_attributes_of_values_are_those_of_each(self):
        xs = values(MANY)
        for number, x in enumerate(xs):
            x.scale = float(number % 4)
        assert_as_eager(lambda: sum(mg.vmap(lambda x: x * x.scale)(xs)), xs, mapped=False)

    def test_an_attribute_of_a_result_is_refused(self):
        def body(x):
            made = x * x
            made.iteration = 1
            return made

        with pytest.raises(mg.TraceError, match="the attribute 'iteration' of a result is set"):
            mg.compile(lambda xs: mg.vmap(body)(xs))(values(MANY))

    def test_one_result_twice(self):
        xs = values(MANY)
        fast = mg.compile(lambda given: mg.vmap(lambda x: (y := x * x, y))(given))
        first, second = fast(xs)
        assert [y.data for y in first] == pytest.approx([x.data**2 for x in xs])
        assert all(one is other for one, other in zip(first, second, strict=True))

    def test_behind_a_decision(self):
        def f(x, xs):
            factor = x if x > 0 else -x
            return sum(mg.vmap(lambda y: y * factor)(xs))

        xs, fast = [1.0] * MANY, mg.compile(f)
        for x in (2.0, -2.0):
            assert fast(x, xs) == pytest.approx(f(x, xs))

    def test_a_number_that_is_there_twice(self):
        def doubled(xs):
            return sum(mg.vmap(lambda pair: pair[0] * pair[1])(np.array([[x, x] for x in xs])))

        assert_as_eager(doubled, [], [0.1 * n for n in range(MANY)])
        assert_as_eager(lambda xs: doubled([*xs, 2 * xs[0]]), [], [0.1 * n for n in range(MANY)])

    def test_an_object_among_later_items(self):
        items = [*values(MANY), None, "text"]
        assert_as_eager(
            lambda: sum(mg.vmap(lambda x: x * x if isinstance(x, mg.Value) else 0.0)(items)), items[:MANY], mapped=False
        )
        rows = [*([x] for x in values(MANY)), {1.0}]
        assert_as_eager(lambda: sum(mg.vmap(lambda row: sum(row) * 2.0)(rows)), [rows[0][0]], mapped=False)

    def test_a_body_that_changes_something_where_it_is_refused(self):
        seen = []

        def body(x):
            try:
                return x.label or x * x
            except mg.TraceError:
                seen.append(None)
                raise

        with pytest.raises(mg.TraceError, match="which Value is given"):
            mg.compile(lambda xs: sum(mg.vmap(body)(xs)))(values(MANY))

    def test_objects_among_the_items(self):
        class Point:
            def __init__(self, x):
                self.x = x

        points = [Point(mg.Value(0.5)) for _ in range(MANY)]
        assert_as_eager(lambda: sum(mg.vmap(lambda p: p.x * p.x)(points)), [points[0].x], mapped=False)

    def test_the_program_itself_has_all_iterations_written_out(self):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: w * x)(xs)), backend="llvm")
        fast([2.0] * MANY)
        run = fast.program([2.0] * MANY)
        run.run()
        assert run.buffer[run.program.outputs[0]] == 1.0
        assert fast.program([2.0] * MANY).program is run.program
        with pytest.raises(ValueError, match=r"give program\(\) the arguments of <compiled"):
            fast.program()
        assert "kernel" in fast.profile([2.0] * MANY)
        closed = mg.compile(lambda: mg.mean(mg.vmap(lambda x: w * x)([w] * MANY)), backend="llvm")
        closed()
        assert closed.program().program.outputs.size == 1


class TestErrors:
    @pytest.mark.usefixtures("own_registry")
    def test_a_primitive_in_python_that_raises_around_the_iterations(self):
        def forward(x):
            if x < 0.0:
                raise LookupError("too small")
            return x

        own = mg.primitive("own", "own", forward, lambda g, out, x: g)
        fast = mg.compile(lambda x, xs: sum(mg.vmap(lambda v: mg.tanh(mg.log(v)))(xs)) + own(x), backend="llvm")
        for _ in range(2):
            assert fast(1.0, [1.0] * MANY) == 1.0
            with pytest.raises(LookupError, match="too small"):
                fast(-1.0, [1.0] * MANY)

    @pytest.mark.parametrize("item", [0, 1, MANY - 1])
    @pytest.mark.parametrize(
        ("function", "good", "bad", "error"),
        [
            (lambda xs: sum(mg.vmap(lambda x: mg.tanh(mg.log(x)))(xs)), 1.0, -1.0, ValueError),
            (
                lambda xs: sum(mg.where(y < 0.2, y, 0.0) for y in mg.vmap(lambda x: 1.0 / x)(xs)),
                1.0,
                0.0,
                ZeroDivisionError,
            ),
            (lambda xs: sum(mg.vmap(lambda x: mg.tanh(mg.exp(x) ** 3))(xs)) - 1.0, 0.0, 1000.0, OverflowError),
        ],
        ids=["at the end", "behind a choice", "inside"],
    )
    def test_an_iteration_that_raises(self, function, good, bad, error, item):
        fast = mg.compile(function, backend="llvm")
        xs = [good] * MANY
        before = fast(xs)
        assert before == pytest.approx(function(xs))
        xs[item] = bad
        with pytest.raises(error):
            fast(xs)
        assert fast([good] * MANY) == before

    def test_infinity_without_an_error(self):
        fast = mg.compile(lambda xs: sum(mg.exp(-y) for y in mg.vmap(lambda x: x * 1e300)(xs)))
        assert fast([1e300] * MANY) == 0.0

    def test_infinite_derivatives(self):
        w = mg.Value(0.0)
        fast = mg.compile(lambda xs: sum(mg.vmap(lambda x: mg.sqrt(w * x))(xs)))
        with pytest.raises(ZeroDivisionError):
            fast([1.0] * MANY).backward()

    def test_what_a_body_raises_comes_through(self):
        def body(x):
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            mg.compile(lambda xs: mg.vmap(body)(xs))([1.0] * MANY)

    def test_structures_that_differ(self):
        with pytest.raises(ValueError, match="length"):
            mg.compile(lambda xs, ys: mg.vmap(lambda x, y: x * y)(xs, ys))([1.0] * MANY, [1.0] * (MANY - 1))


class TestMemory:
    def test_a_loop_that_does_not_fit_is_refused_before_it_is_written(self, monkeypatch):
        monkeypatch.setattr(iterations, "bytes_there", lambda: 1e5)
        seen = mg.compile(lambda x: mg.scan(lambda s, _: (mg.sin(s) * 0.5, None), x, length=250)[0])
        with pytest.raises(MemoryError, match="250 iterations of 2 operations each, traced one by one, take about"):
            seen(1.0)
        monkeypatch.undo()
        assert seen(1.0) == pytest.approx(0.0)


class TestSettings:
    def test_verified(self):
        xs, w = values(MANY), mg.Value(0.5)
        assert_as_eager(
            lambda given: sum(mg.vmap(lambda x: mg.tanh(w * x))([mg.sin(x) for x in given])), [*xs, w], xs, verify=True
        )

    def test_in_float32(self):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: mg.sin(w * x))(xs)), precision="float32")
        xs = np.linspace(0.0, 1.0, MANY)
        result = fast(xs)
        assert result.data == pytest.approx(np.sin(0.5 * xs).mean(), rel=1e-6)
        result.backward()
        assert w.grad == pytest.approx((np.cos(0.5 * xs) * xs).mean(), rel=1e-6)

    def test_a_body_that_is_too_large_to_be_packed(self, monkeypatch):
        monkeypatch.setattr(packs, "_COPIED", 3)
        w = mg.Value(0.5)
        fast = assert_as_eager(
            lambda xs: mg.mean(mg.vmap(lambda x: mg.sin(w * x))(xs)), [w], np.linspace(0.0, 1.0, MANY)
        )
        assert "computes 1 at a time" in fast.explain()

    def test_programs_are_given_up_by_their_bytes(self):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: mg.sin(w * x))(xs)))
        fast(np.ones(MANY))
        assert fast.cache_info().program_bytes > 8 * MANY

    def test_pictures_and_pages(self, tmp_path):
        w = mg.Value(0.5)
        fast = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: mg.sin(w * x))(xs)))
        result = fast(np.ones(MANY))
        assert "sum" in fast.draw_dot().source
        mg.explore(result, tmp_path / "page.html")
        assert (tmp_path / "page.html").exists()


@BACKENDS
def test_two_maps_that_read_the_same_number_made_of_others(backend):
    """Each hands its gradient of that number on once."""
    weight = mg.Value(0.3)

    def function(items):
        scale = mg.exp(weight) * weight
        first = sum(mg.vmap(lambda x: mg.sin(x * scale))(items))
        second = sum(mg.vmap(lambda x: mg.cos(x * scale) * x)(items))
        return first + second * second

    fast = mg.compile(function, backend=backend)
    items = [number / MANY for number in range(MANY)]
    expected = derivatives(function, [weight], [items])
    np.testing.assert_allclose(derivatives(fast, [weight], [items]), expected, rtol=1e-9)
    assert is_mapped(fast, items) or backend == "jax"
