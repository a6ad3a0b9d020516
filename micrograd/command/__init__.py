"""The parts of the command ``micrograd``, which cli.py runs.

words.py        what may be typed, and the help
output.py       the exit codes, and JSON
expressions.py  grad, check, draw and explore
tables.py       train and predict
"""
