"""C: programs as readable C99, which depends on math.h only.

formulas.py     primitives as expressions of C
regions.py      which numbers are read and written together, and which are needed for one iteration only
words.py        many numbers by themselves, as a table
memory.py       where these are: in arrays of the caller, tables, local variables, or the work array
products.py     functions for products of matrices
loops.py        a kernel as loops
alike.py        functions that kernels of the same form share
repeats.py      statements that differ in numbers only, as a loop
scattered.py    sums of different lengths as loops
distinct_rows.py    tables of few different rows, as these and which each row is
kernels.py      blocks of kernels as statements, loops and calls
functions.py    a program as a function
decisions.py    programs with choices and loops between them, as functions
files.py        a whole source file and its header
"""
