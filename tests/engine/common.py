"""What the tests of the engine share: a setting of Hypothesis and a count of Values."""

import gc

from hypothesis import strategies as st

from micrograd import Value

moderate = st.floats(-2.0, 2.0)


def live_values():
    return sum(type(thing) is Value for thing in gc.get_objects())
