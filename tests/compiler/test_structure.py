"""What in the arguments is fixed in a program, and what may change from call to call."""

import gc
import weakref
from collections import namedtuple
from itertools import count

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.structure import Structure

Point = namedtuple("Point", "x y")


def test_numbers_and_values_are_leaves_and_the_rest_is_the_key():
    x = Value(2.0)
    structure = Structure({"points": [Point(1.0, x)], "mode": "fast", "flag": True, "array": np.array([3, 4])})
    assert structure.leaves == [1.0, x, 3, 4]
    assert structure.numbers() == [1.0, 2.0, 3.0, 4.0]
    other = Structure({"points": [Point(-1.0, Value(0.0))], "mode": "fast", "flag": True, "array": np.array([5, 6])})
    assert structure.key == other.key
    for change in ({"mode": "slow"}, {"flag": False}, {"points": []}, {"points": [(1.0, x)]}, {"array": np.array([3])}):
        assert Structure(structure.nested | change).key != structure.key


def test_containers_are_rebuilt_with_other_leaves():
    nested = ({"p": Point(1.0, [Value(2.0)]), "mode": "fast"}, np.array([[3.0, 4.0]]), None)
    rebuilt = Structure(nested).rebuilt("abcd")
    assert rebuilt[0] == {"p": Point("a", ["b"]), "mode": "fast"}
    assert type(rebuilt[0]["p"]) is Point
    assert rebuilt[1].tolist() == [["c", "d"]]
    assert rebuilt[2] is None


def test_another_structure_is_traced_anew_and_other_numbers_are_not():
    traces = count()

    @mg.compile
    def f(xs, name="a"):
        next(traces)
        return sum(x * 2.0 for x in xs)

    assert [f([Value(1.0)]).data, f([Value(5.0)]).data] == [2.0, 10.0]
    assert next(traces) == 1
    assert f([Value(1.0), Value(2.0)]).data == 6.0
    f([Value(1.0)], name="b")
    f((Value(1.0),))
    assert next(traces) == 5
    f([Value(7.0)])
    assert next(traces) == 6


@pytest.mark.parametrize("argument", [{1, 2}, object(), [[object()], []], bytearray(b"a")])
def test_arguments_that_are_neither_numbers_nor_static_are_refused(argument):
    try:
        hash(argument)
        hashable = True
    except TypeError:
        hashable = False
    fast = mg.compile(lambda a: 1.0)
    if hashable or isinstance(argument, list):
        assert fast(argument) == 1.0  # static: compared as an object
    else:
        with pytest.raises(TypeError, match="static arguments that are hashable"):
            fast(argument)


def test_numpy_numbers_and_static_arrays_as_arguments():
    w = Value(2.0)
    fast = mg.compile(lambda x, mask: sum(w * x for keep in mask if keep))
    assert fast(np.float32(1.5), np.array([True, False, True])).data == 6.0
    assert fast(np.int64(2), np.array([True, True, True])).data == 12.0


def test_objects_are_static_and_told_apart():
    class Same:
        def __init__(self, number):
            self.w = Value(number)

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1

    fast = mg.compile(lambda model, x: model.w * x)
    assert [fast(Same(2.0), 1.0).data, fast(Same(5.0), 1.0).data] == [2.0, 5.0]
    traces = count()
    counted = mg.compile(lambda model, x: (next(traces), model.w * x)[1])
    models = [Same(2.0), Same(5.0)]
    assert [counted(model, x).data for x in (1.0, 3.0) for model in models] == [2.0, 5.0, 6.0, 15.0]
    assert next(traces) == 2
    mixed = mg.compile(lambda xs: xs[1] * 2 if xs[0] == "double" else xs[1])
    assert mixed(np.array(["double", Value(3.0)], dtype=object)).data == 6.0


def test_the_arguments_of_a_call_are_not_kept():
    class Watched(Value):
        pass

    x = Watched(2.0)
    seen = weakref.ref(x)
    fast = mg.compile(lambda numbers: numbers[0] * numbers[1])
    assert fast([x, 3.0]).data == 6.0
    del x
    gc.collect()
    assert seen() is None
    assert fast([Value(2.0), 3.0]).data == 6.0
