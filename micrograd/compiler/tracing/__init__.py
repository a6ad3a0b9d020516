"""Tracing: a function runs once on symbols, which write down what is done to them.

source.py          what is traced, and how
symbols.py         the numbers that are not known yet
tape.py            what is done to them, written down
rewrites.py        operations that are written down as others
detached_tape.py   what writes on a tape under no_grad
trace.py           the trace of a function
derivatives.py     derivatives of what is on a tape, written on it
questions.py       the decisions of a function on numbers, and how a program answers them
largest.py         max of numbers that a generator reads, which is no question
decisions.py       mg.cond and mg.while_loop where the program decides, as one that is exported does
promotion.py       of which kind the result of an operator is for plain numbers of several kinds
symbol_arrays.py   the comparisons and choices of NumPy on arrays of symbols
orders.py          sorting, and elements of arrays by numbers that are not known
indexing.py        elements of lists by an index that is a number, and loops: for these a function has other code
lanes.py           operations on arrays of symbols, written for all elements at once
gradients_in_lanes.py  and their gradients
array_gradients.py  the gradients of functions of whole arrays, which a program calls as it calls these
dependence.py      what lies between the inputs of a transform and its results, and what each of these depends on
iterations.py      the loops of a traced function, of which a vmap over many items is written down once
colours.py         the columns of a sparse Jacobian that one direction computes together
outline.py         what a function does to whole arrays, to find whether it does the same to any number of rows
plain_loops.py     the loops in Python in an outline
variables.py       what is in the variables of a function, to find whether it does the same again
body.py            what one iteration of such a vmap writes down
"""

from micrograd.compiler.tracing import derivatives as derivatives  # which the tape cannot import, and needs
from micrograd.compiler.tracing import symbol_arrays as symbol_arrays
