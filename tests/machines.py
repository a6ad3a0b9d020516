"""How long the state machines of Hypothesis run.

MICROGRAD_EXAMPLES=1000 pytest tests/training/test_life_of_a_model.py     # longer, and other programs each time
"""

import os

from hypothesis import HealthCheck, settings

from tests import EXAMPLES


def machine_settings(examples, steps):
    """So many programs of so many steps, the same ones on every run; or as many as the environment says."""
    return settings(
        max_examples=int(os.environ.get(EXAMPLES, examples)),
        stateful_step_count=steps,
        derandomize=EXAMPLES not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
