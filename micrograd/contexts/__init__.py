"""Contexts that change what the operators do: no_grad records nothing, detect_anomaly looks at every result."""

from micrograd.contexts.anomaly import detect_anomaly
from micrograd.contexts.no_grad import no_grad

__all__ = ["detect_anomaly", "no_grad"]
