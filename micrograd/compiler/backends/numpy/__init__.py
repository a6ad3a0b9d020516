"""The NumPy backend: the reference."""
