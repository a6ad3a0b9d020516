"""Guards: what a compiled program takes for granted of its arguments and of what it closes over.

structure.py         what in the arguments is fixed in a program, and what may change from call to call
closed_over.py       what a function reads beside its arguments, and whether any of it was replaced
code_names.py        the names and lines of code that is looked into
libraries.py         which packages are known, and what in them has no numbers
library_state.py     how objects of C and of libraries are read
comparison.py        what was read is compared at each call
sources.py           what gives another number each time is refused: random numbers, clocks, files
refusals.py          TraceError, and what it says
words.py           which expression of the user's program is refused, and what to write in its place
parameter_names.py   names for the Values that a function reads
"""
