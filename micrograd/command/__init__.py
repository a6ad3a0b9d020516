"""The parts of the command ``micrograd``, which main.py runs.

main.py         runs it
words.py        what may be typed, and the help
output.py       the exit codes, and JSON
tokens.py       the words of an expression
corrections.py  what a text that is no expression may have meant
grammar.py      expressions, read without running them
expressions.py  grad, check, draw and explore
tables.py       train and predict
exporting.py    export
"""
