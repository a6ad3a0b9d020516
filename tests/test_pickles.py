"""Transforms and compiled functions go to other processes, if the function does."""

import multiprocessing
import pickle

import joblib
import numpy as np
import pytest

import micrograd as mg

WEIGHT = mg.Value(3.0, requires_grad=False)


def energy(p, scale=1.0):
    return scale * WEIGHT * p[0] ** 2 * mg.sin(p[1])


def of_pair(p):
    return [p[0] * p[1], p[0]]


@mg.compile
def decorated(p):
    return p[0] * p[1]


class Shapes:
    @staticmethod
    @mg.compile
    def area(p):
        return p[0] * p[1]


fast = mg.compile(energy, backend="numpy")
POINT = [2.0, 0.5]
FUNCTIONS = {
    "grad": mg.grad(energy),
    "value_and_grad": mg.value_and_grad(energy),
    "jacobian": mg.jacobian(of_pair),
    "hessian": mg.hessian(energy),
    "compiled": fast,
    "compiled gradient": mg.compile(mg.grad(energy), backend="numpy"),
    "gradient of a compiled function": mg.grad(fast),
    "decorated": decorated,
    "vmap": mg.vmap(mg.sin),
    "compiled vmap": mg.compile(mg.vmap(mg.sin), backend="numpy"),
    "a method": Shapes.area,
    "gradient of a decorated function": mg.grad(decorated),
}


def numbers(result):
    return np.asarray(mg.numbers(result) if not isinstance(result, tuple) else [float(result[0]), *result[1]])


def call(name):
    return numbers(FUNCTIONS[name](POINT)).tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_pickle_computes_the_same(name):
    again = pickle.loads(pickle.dumps(FUNCTIONS[name]))
    assert numbers(again(POINT)).tolist() == call(name)


def test_arguments_may_have_any_name():
    def function(x, argnums):
        return x * argnums

    assert mg.grad(function)(2.0, argnums=3.0) == 3.0
    assert mg.jacobian(function)(2.0, argnums=3.0) == 3.0


def test_hessian_times_a_vector():
    again = pickle.loads(pickle.dumps(mg.hvp(energy)))
    assert again(POINT, [1.0, 0.0]) == mg.hvp(energy)(POINT, [1.0, 0.0])


def test_settings_of_a_compiled_function_are_kept():
    made = mg.compile(energy, backend="numpy", disable=("cse",), precision="float32")
    again = pickle.loads(pickle.dumps(made))
    assert again._settings == made._settings
    assert numbers(again(POINT)).tolist() == numbers(made(POINT)).tolist()


def test_a_function_that_cannot_be_pickled_says_so():
    for function in (mg.grad(lambda x: x), mg.compile(lambda x: x)):
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError), match=r"pickle|lookup|local object"):
            pickle.dumps(function)


@pytest.mark.slow
@pytest.mark.unmeasured
def test_pools_that_spawn_processes_and_joblib_take_them():
    functions = [FUNCTIONS[name] for name in ("grad", "hessian", "compiled gradient", "decorated")]
    expected = [numbers(function(POINT)).tolist() for function in functions]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results = [pool.apply_async(function, (POINT,)) for function in functions]
        assert [numbers(result.get(120)).tolist() for result in results] == expected
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(function)(POINT) for function in functions)
    assert [numbers(result).tolist() for result in found] == expected
