"""The kinds of exercises: how each is judged.

kind.py        what all have in common: probes, outcomes, and the simplest probe that shows a fault
values.py      a number, gradients by name, a choice
functions.py   a derivative, and a function that does what another one does
graphs.py      the order of visits, paths, a planted mistake, zeros, a gradient to reach, what to store
engines.py     an operation with its _backward, an order, a whole class Value
"""
