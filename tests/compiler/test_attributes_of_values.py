"""Attributes of one's own on Values, in compiled functions: read, replaced, set, and left behind."""

import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.guards.closed_over import ClosedOver
from tests.compiler.runs import Runs
from tests.compiler.test_what_is_closed_over import check


def made(number=2.0, **attributes):
    """A Value with attributes."""
    value = Value(number)
    vars(value).update(attributes)
    return value


BOXES = {
    "variable": (lambda p: p, lambda box: box),
    "list": (lambda p: [Value(1.0), p], lambda box: box[1]),
    "dict": (lambda p: {"p": p}, lambda box: box["p"]),
    "tuple": (lambda p: (p, 2.0), lambda box: box[0]),
    "array": (lambda p: mg.array([Value(1.0), p]), lambda box: box[1]),
    "attribute of a Value": (lambda p: made(inner=p), lambda box: box.inner),
    "twice": (lambda p: [p, [p, None]], lambda box: box[1][0]),
    "nested": (lambda p: [[p], "a"], lambda box: box[0][0]),
}


@pytest.mark.parametrize(("put", "taken"), BOXES.values(), ids=BOXES.keys())
@pytest.mark.slow
def test_one_that_is_replaced_is_noticed(put, taken, backend):
    p = made(m=Value(3.0), scale=2.0, flag=True, row=[Value(1.0), 2.0])
    box = put(p)

    def f(x):
        q = taken(box)
        total = q * q.m * x * q.scale + q.row[0] * q.row[1]
        return total if q.flag else -total

    check(
        f,
        lambda: setattr(p, "m", Value(5.0)),
        lambda: setattr(p, "m", 7.0),
        lambda: setattr(p, "scale", 4.0),
        lambda: setattr(p, "flag", False),
        lambda: p.row.__setitem__(0, Value(9.0)),
        lambda: setattr(p, "row", [2.0, 3.0]),
        lambda: p.m == setattr(p, "data", 11.0),
        backend=backend,
    )


def test_one_that_is_read_by_a_name_that_is_put_together_is_noticed(backend):
    p, parts = made(scale=2.0, other=1.0), ["sca", "le"]
    check(
        lambda x: x * getattr(p, "".join(parts)),
        lambda: setattr(p, "scale", 5.0),
        lambda: parts.__setitem__(slice(None), ["ot", "her"]),
        backend=backend,
    )


def test_one_that_is_left_on_an_element_is_refused_with_its_position(backend):
    rows = [Value(1.0), made(scale=2.0)]

    def f(x):
        rows[1].kept = x
        return x * rows[1]

    with pytest.raises(TraceError, match=r"rows\[1\]\.kept"):
        mg.compile(f, backend=backend)(3.0)
    assert vars(rows[1]) == {"scale": 2.0}


def test_gradients_flow_to_values_in_attributes(backend):
    p = made(2.0, m=Value(3.0))
    mg.compile(lambda x: p.m * p * x, backend=backend)(4.0).backward()
    assert (p.grad, p.m.grad) == (12.0, 8.0)


@pytest.mark.parametrize(
    "read",
    [
        lambda p: getattr(p, "m", 1.0),
        lambda p: p.m if hasattr(p, "m") else 1.0,
        lambda p: vars(p).get("m", 1.0),
        lambda p: p.__dict__.get("m", 1.0),
        lambda p: getattr(p, "".join(["", "m"]), 1.0),
    ],
)
@pytest.mark.parametrize("others", [{}, {"label": "p"}, {"color": "red"}], ids=["none", "label", "other"])
@pytest.mark.slow
@pytest.mark.unmeasured
def test_one_that_comes_and_goes_is_noticed(read, others, backend):
    p, q = made(**others), made(**others)
    check(
        lambda x: p * x * read(p) + q * read(q),
        lambda: setattr(p, "m", 3.0),
        lambda: delattr(p, "m"),
        lambda: setattr(p, "m", 4.0),
        lambda: (delattr(p, "m"), setattr(q, "m", 4.0)),
        lambda: setattr(q, "m", Value(5.0)),
        backend=backend,
    )


def test_one_whose_absence_is_an_error_that_is_caught_is_noticed(backend):
    p = Value(2.0)

    def m():
        try:
            return p.m
        except AttributeError:
            return 1.0

    def n():
        try:
            return p.n
        except Exception:
            return 1.0

    check(lambda x: p * x * m(), lambda: setattr(p, "m", 3.0), lambda: delattr(p, "m"), backend=backend)
    check(lambda x: p * x * n(), lambda: setattr(p, "n", 3.0), lambda: delattr(p, "n"), backend=backend)


def test_one_that_is_missing_is_missing(backend):
    p = Value(2.0)
    fast = mg.compile(lambda x: p.m * x, backend=backend)
    for argument in (1.0, Value(1.0)):
        with pytest.raises(AttributeError, match="'Value' object has no attribute 'm'"):
            fast(argument)
    p.m = 3.0
    assert fast(2.0) == 6.0


def test_one_in_position_of_a_method_is_called(backend):
    p = made(tanh=lambda: Value(7.0))
    check(lambda x: p.tanh() * x, lambda: setattr(p, "tanh", lambda: Value(8.0)), backend=backend)


def test_those_that_no_code_names_cost_no_trace_and_no_look():
    """An optimiser's state, set at each step of a training whose loss is compiled."""
    model, traces = mg.nn.MLP(2, [3, 1]), Runs()
    for p in model.parameters():
        p.m = 0.0

    def loss(x):
        print(end="", file=traces)
        return (model([x, 1.0]) - 0.5) ** 2 + 0.01 * sum(p * p for p in model.parameters())

    fast = mg.compile(loss)
    for step in range(5):
        for p in model.parameters():
            p.grad = 0.0
        fast(0.5).backward()
        for p in model.parameters():
            p.m = 0.9 * p.m + p.grad
            p.data -= 0.1 * p.m
            if step == 2:
                p.new = [step]
    assert traces.times == 1


def looked_at(f):
    """How many things a look goes through, by kind."""
    found = ClosedOver([("", f)])
    return [len(items) for items in vars(found._comparison).values() if isinstance(items, list)]


def test_a_value_without_attributes_costs_nothing_at_a_call():
    row, labelled = [Value(1.0) for _ in range(5)], [Value(1.0, label="w") for _ in range(5)]
    attributed = [made(m=1.0) for _ in range(5)]

    def over(values):
        return lambda x: mg.dot(values, values) * x

    assert looked_at(over(row)) == looked_at(over(labelled)) == looked_at(over(attributed))


class TestArguments:
    def test_one_that_the_function_reads_is_refused_with_what_to_do(self, backend):
        fast = mg.compile(lambda x: x * x.m, backend=backend)
        for _ in range(2):
            with pytest.raises(TraceError, match=rf"'m' of an argument.*{__file__}:\d+.*Give it as an argument"):
                fast(made(m=3.0))

    def test_one_that_is_asked_for_is_refused_wherever_it_is_there(self, backend):
        fast = mg.compile(lambda x: x * getattr(x, "m", 1.0), backend=backend)
        assert fast(Value(2.0)).data == 2.0
        with pytest.raises(TraceError, match="'m' of an argument"):
            fast(made(m=3.0))
        assert fast(Value(2.0)).data == 2.0
        assert fast(made(2.0, other=3.0)).data == 2.0

    def test_one_that_is_missing_is_missing(self, backend):
        fast = mg.compile(lambda x: x * x.m, backend=backend)
        for argument in (Value(2.0), made(other=1.0)):
            with pytest.raises(AttributeError, match="no attribute 'm'"):
                fast(argument)

    def test_those_that_nobody_reads_do_no_harm(self, backend):
        traces = Runs()
        fast = mg.compile(lambda xs: (print(end="", file=traces), mg.tanh(xs[0] * xs[1]) * xs[0])[1], backend=backend)
        x, y = made(0.5, m=1.0), Value(0.25, label="y")
        for step in range(3):
            x.m = step
            fast([x, y]).backward()
            eager = mg.gradient(fast.function([x, y]), [x, y])
            assert [x.grad, y.grad] == pytest.approx(eager, rel=1e-14)
            x.grad = y.grad = 0.0
            y.label += "y"
        assert traces.times == 1 + 3  # and the function itself three times

    @pytest.mark.parametrize("argument", [2.0, Value(2.0)], ids=["number", "Value"])
    def test_setting_one_is_refused(self, argument, backend):
        def f(x):
            x.m = 1.0
            return x * 2

        with pytest.raises(TraceError, match="the attribute 'm' of an argument"):
            mg.compile(f, backend=backend)(argument)
        assert not hasattr(argument, "m")

    def test_a_label_may_be_set_and_is_dropped(self, backend):
        def f(x):
            y = x * 2
            x.label = y.label = "name"
            return y

        x = Value(2.0)
        assert mg.compile(f, backend=backend)(x).data == 4.0
        assert x.label == ""


class TestSetInside:
    def test_on_what_is_computed_and_stays_inside(self, backend):
        def f(x):
            hidden = x * 2
            hidden.factor = x + 1
            return hidden * hidden.factor

        assert mg.compile(f, backend=backend)(Value(3.0)).data == 24.0

    def test_on_a_result_is_refused(self, backend):
        def f(x):
            y = x * 2
            y.color = "red"
            return [y]

        with pytest.raises(TraceError, match="the attribute 'color' of a result"):
            mg.compile(f, backend=backend)(Value(3.0))

    @pytest.mark.parametrize("attributes", [{}, {"m": 0.5}, {"color": "red"}], ids=str)
    def test_a_number_that_is_left_on_a_value_is_refused_and_taken_away(self, attributes, backend):
        p = made(2.0, **attributes)

        def named(x):
            p.m = x * 2
            return p * x

        def computed(x):
            setattr(p, "".join(["", "m"]), x * 2)
            return p * x

        for f, where in ((named, rf" \({__file__}:{named.__code__.co_firstlineno + 1}\)"), (computed, "")):
            fast = mg.compile(f, backend=backend)
            for _ in range(2):
                with pytest.raises(TraceError, match=rf"left behind in p\.m{where}: .*pass it in as an argument"):
                    fast(1.0)
                assert vars(p) == attributes

    def test_a_plain_one_is_set_as_eagerly(self, backend):
        p = Value(2.0)

        def f(x):
            p.seen = True
            p.count = getattr(p, "count", 0) + 1
            return p * x

        fast = mg.compile(f, backend=backend)
        for calls in range(1, 5):
            assert fast(3.0).data == 6.0
            assert (p.seen, p.count) == (True, calls)

    def test_a_plain_one_that_is_set_for_the_first_time_and_then_replaced_is_set_again(self, backend):
        p = Value(2.0)

        def f(x):
            p.seen = True
            return p * x

        fast = mg.compile(f, backend=backend)
        fast(3.0)
        p.seen = False
        fast(3.0)
        assert p.seen is True
