"""Calling: what users hold of a compiled function, and what it does at each call."""
