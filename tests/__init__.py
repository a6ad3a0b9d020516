"""The tests. Hypothesis draws the same examples in every run, so that a red test stays red until it is mended."""

from hypothesis import settings

settings.register_profile("micrograd", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("micrograd")
