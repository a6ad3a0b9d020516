"""Calling: what users hold of a compiled function, and what it does at each call.

function.py         the compiled function
kept.py             its programs, by the structure of their arguments, and how much of all that is kept
boundary.py         the numbers of arguments as one array, and results made of outputs
specialise.py       a function traced for one structure of its arguments
of_rows.py          the same for many rows, from a few of them
paths.py            the programs of a function that decides on numbers, one for each way through it
masks.py            arrays of bools that are others at each call, as numbers of a program
mapped.py           programs in which mg.vmap runs a function in many iterations
quick.py            calls with plain floats, for which nothing is looked up again
nested_lists.py     the numbers of nested lists, read at once
call.py             the primitive of a compiled function's result
last_call.py        the last call as a Value, for a page that opens it
pure_function.py    a pure function of JAX made of a function of Values, and its parameters: arrays by name
export.py           a program as a file of C
native.py           the native function of a program
picture.py          a picture of a program
profile.py          where the time of a program goes
"""
