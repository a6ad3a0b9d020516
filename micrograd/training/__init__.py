"""Training: fit, the history of its loss, and recordings of it."""

from micrograd.training.fit import fit
from micrograd.training.history import History
from micrograd.training.recording import Recording

__all__ = ["History", "Recording", "fit"]
