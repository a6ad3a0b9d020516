"""Guards: what a compiled program takes for granted of its arguments and of what it closes over.

structure.py         what in the arguments is fixed in a program, and what may change from call to call
closed_over.py       what a function reads beside its arguments, and whether any of it was replaced
parameter_names.py   names for the Values that a function reads
"""
