"""Contexts: no_grad records nothing, detect_anomaly looks at every result, scopes give the parts of a program names."""

from micrograd.contexts.anomaly import detect_anomaly
from micrograd.contexts.no_grad import no_grad
from micrograd.contexts.scope import record_scopes, scope

__all__ = ["detect_anomaly", "no_grad", "record_scopes", "scope"]
