"""The parts of the command ``micrograd``, which main.py runs.

main.py         runs it
words.py        what may be typed, and the help
output.py       the exit codes, and JSON
notation.py     the tokens of an expression; suggestions for mathematical notation
grammar.py      expressions, parsed without running them
expressions.py  grad, check, draw and explore
tables.py       train and predict
exporting.py    export
"""
