"""Programs that change what they close over between the calls of a compiled function, against a small reference.

The reference is the same function without the compiler, on a twin of everything: what is done to the one is done
to the other, and numbers and gradients must stay equal.
"""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import micrograd as mg
from micrograd import Value
from tests.machines import machine_settings

NUMBERS = st.sampled_from([-1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 1, 2, True])
POSITIONS = st.integers(0, 3)


class Part:
    """A part of a model, with what users put in them."""

    factor = 1.0

    def __init__(self):
        self.w, self.scale, self.negative, self.mode = Value(0.5), 1.0, False, "sum"

    def __call__(self, x):
        y = self.w * x * self.scale * self.factor
        return -y if self.negative else y


class World:
    """A function, all that it closes over, and what trains it."""

    def __init__(self, compiled):
        self.parts = [Part(), Part()]
        self.row = [Value(0.25), 2.0, Value(-0.5)]
        self.table = {"a": Value(1.0), "b": 0.5}
        self.array = mg.array([0.5, -1.0])
        self.large = np.zeros(100_001)
        self.kind = type("Kind", (Part,), {})
        self.own = self.kind()
        flag, bias = True, Value(0.125)

        def f(x):
            total = bias * 1.0 + self.large[7]
            for part in (*self.parts, self.own):
                total = total + part(x) if part.mode == "sum" else total * part(x)
            for number in self.row:
                total = total + number * x
            for key, number in self.table.items():
                total = total + number * (x if key == "a" else 2.0)
            return total + (self.array * self.array).sum() if flag else total - self.array[0]

        def set_flag(new):
            nonlocal flag
            flag = new

        def set_bias(new):
            nonlocal bias
            bias = Value(new)

        self.set_flag, self.set_bias, self.bias = set_flag, set_bias, lambda: bias
        self.eager = f
        self.f = mg.compile(f, backend=compiled) if compiled else f
        self.compiled = compiled or False

    def values(self):
        """All Values, in one order."""
        found = [self.bias(), *(part.w for part in (*self.parts, self.own)), *self.row, *self.table.values()]
        found += self.array.tolist()
        return [value for value in found if isinstance(value, Value)]

    def optimizer(self):
        """What trains those that are not frozen."""
        return mg.optim.SGD([value for value in self.values() if value.requires_grad], 0.01)


class Changes(RuleBasedStateMachine):
    """Changes, each done to both worlds, and calls."""

    backend: str

    @initialize()
    def make(self):
        self.worlds = World(None), World(self.backend)

    @rule(x=NUMBERS, as_value=st.booleans(), quiet=st.booleans())
    def call(self, x, as_value, quiet):
        results = []
        for world in self.worlds:
            argument = Value(x) if as_value else x
            if quiet:
                with mg.no_grad():
                    result = world.f(argument)
            else:
                result = world.f(argument)
            if isinstance(result, Value) and result.requires_grad:
                result.backward()
            results.append((result.data, argument.grad if as_value else 0.0))
        assert results[1] == pytest.approx(results[0], rel=1e-12, abs=1e-12)

    @rule(position=POSITIONS, number=NUMBERS)
    def set_in_row(self, position, number):
        for world in self.worlds:
            world.row[position % len(world.row)] = number

    @rule(position=POSITIONS, number=NUMBERS)
    def replace_a_value(self, position, number):
        for world in self.worlds:
            if position == 0:
                world.row[0] = Value(number)
            elif position == 1:
                world.table["a"] = Value(number)
            elif position == 2:
                world.array[1] = Value(number)
            else:
                world.set_bias(number)

    @rule(number=NUMBERS)
    def set_in_a_large_array(self, number):
        for world in self.worlds:
            world.large[7] = number

    @rule(number=NUMBERS)
    def grow(self, number):
        for world in self.worlds:
            if len(world.row) < 6:
                world.row.append(Value(number))
                world.table[f"k{len(world.table)}"] = number

    @rule()
    def shrink_and_turn(self):
        for world in self.worlds:
            if len(world.row) > 1:
                world.row.pop(0)
            world.row.reverse()
            world.table["b"] = world.table.pop("b")

    @rule(position=POSITIONS, number=NUMBERS, negative=st.booleans(), mode=st.sampled_from(["sum", "product"]))
    def set_attributes(self, position, number, negative, mode):
        for world in self.worlds:
            part = (*world.parts, world.own)[position % 3]
            part.scale, part.negative, part.mode = number, negative, mode

    @rule(position=POSITIONS, number=NUMBERS)
    def set_what_is_the_class_s(self, position, number):
        for world in self.worlds:
            if position == 0:
                world.kind.factor = number
            elif position == 1:
                world.own.factor = number
            elif position == 2:
                world.parts[0].factor = number
            elif "factor" in vars(world.own):
                del world.own.factor

    @rule(number=NUMBERS)
    def replace_a_part(self, number):
        for world in self.worlds:
            world.parts = [*world.parts[1:], Part()]
            world.parts[-1].w = Value(number)

    @rule(flag=st.booleans())
    def set_flag(self, flag):
        for world in self.worlds:
            world.set_flag(flag)

    @rule(position=POSITIONS, number=NUMBERS)
    def set_data(self, position, number):
        for world in self.worlds:
            values = world.values()
            values[position % len(values)].data = number

    @rule(position=POSITIONS, free=st.booleans())
    def freeze(self, position, free):
        for world in self.worlds:
            values = world.values()
            values[position % len(values)].requires_grad = free

    @rule()
    def take_a_step(self):
        for world in self.worlds:
            optimizer = world.optimizer()
            if optimizer.parameters:
                optimizer.zero_grad()
                (world.f(0.5) * 1.0).backward()
                optimizer.step()

    @rule(change=st.booleans(), by_rate=st.booleans(), noise=st.booleans())
    def train(self, change, by_rate, noise):
        histories = []
        for world in self.worlds:
            if not any(value.requires_grad for value in world.values()):
                return

            def callback(history, world=world):
                if change:
                    world.row[0] = 0.25 * len(history.epochs)
                    world.table["b"] = Value(0.5, requires_grad=False)

            def rate(step, world=world):
                world.large[7] = 0.25 * step
                return 0.01

            optimizer = world.optimizer()
            optimizer.learning_rate = rate if by_rate else optimizer.learning_rate
            histories.append(
                mg.fit(
                    lambda x, y, f=world.eager, noise=0.0: mg.tanh(f(x) - y + noise) * 1.0,
                    [(0.5, 0.25), (-1.0, 0.5)],
                    optimizer,
                    epochs=3,
                    seed=0,
                    progress=False,
                    compile=world.compiled,
                    callback=callback,
                    noise=(lambda count: [0.125 * position for position in range(count)]) if noise else None,
                ).epochs
            )
        assert histories[1] == pytest.approx(histories[0], rel=1e-9, abs=1e-9)
        for world in self.worlds:
            for value in world.values():
                value.grad = 0.0

    @invariant()
    def numbers_and_gradients_agree(self):
        eager, compiled = ([(v.data, v.grad) for v in world.values()] for world in self.worlds)
        assert len(eager) == len(compiled)
        for expected, found in zip(eager, compiled, strict=True):
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


class OnNumpy(Changes):
    backend = "numpy"


class OnLlvm(Changes):
    backend = "llvm"


_SETTINGS = machine_settings(examples=15, steps=20)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was traced again:RuntimeWarning")
class TestOnNumpy(OnNumpy.TestCase):
    settings = _SETTINGS


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*was traced again:RuntimeWarning")
class TestOnLlvm(OnLlvm.TestCase):
    settings = _SETTINGS
