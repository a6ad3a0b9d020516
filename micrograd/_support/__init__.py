"""What the other packages stand on, and users never name.

archives.py     zip files of arrays that ask for no more memory than they may
axes.py         arrays of numbers and Values, row by row along an axis
checks.py       what counts as a number, and errors that say which operation and numbers they are about
callers.py      the line of the user's program that is running
containers.py   numbers in nested lists, tuples, dicts and arrays
files.py        writing files whole or not at all; reading text, packed or not
folders.py      writing folders whole or not at all
interrupts.py   finishing what must not be left half done; what handlers of signals have raised
locks.py        locks that do not stay locked in a forked child
memory.py       how much memory there is, and the refusal of what needs more
saved_state.py  numbers by name, in a file that is whole or refused
"""
