"""The parts of the command ``micrograd``, which main.py runs.

main.py         runs it
words.py        what may be typed, and the help
output.py       the exit codes, and JSON
grammar.py      expressions, read without running them
expressions.py  grad, check, draw and explore
tables.py       train and predict
"""
