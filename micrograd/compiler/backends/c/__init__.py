"""C: programs as readable C99, which depends on math.h only.

formulas.py     primitives as expressions of C
regions.py      which numbers are read and written together, and which are needed for one iteration only
memory.py       where these are: in arrays of the caller, tables, local variables, or the work array
kernels.py      the kernels as loops and statements
files.py        a whole source file and its header
"""
