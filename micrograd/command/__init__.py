"""The parts of the command ``micrograd``, which main.py runs."""
