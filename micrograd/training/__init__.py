"""Training: fit, the history of its loss, and recordings of it."""

from micrograd.training.fit import History, fit
from micrograd.training.recording import Recording

__all__ = ["History", "Recording", "fit"]
