"""The tests. Hypothesis draws the same examples in every run, so that a red test stays red until it is mended.

So there are few of them. With ``MICROGRAD_EXAMPLES=1000`` in the environment it draws others in each run, and so many
where a test does not say how many.
"""

import os

from hypothesis import settings

EXAMPLES = "MICROGRAD_EXAMPLES"

settings.register_profile(
    "micrograd",
    max_examples=int(os.environ.get(EXAMPLES, 24)),
    derandomize=EXAMPLES not in os.environ,
    deadline=None,
    print_blob=True,
)
settings.load_profile("micrograd")
