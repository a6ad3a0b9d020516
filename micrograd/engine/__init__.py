"""The engine: what a Value is, and how backpropagation runs.

To understand it, read three modules in this order:

primitives.py    the table: each primitive's forward function and derivative, a line each
value.py         Value: operators that compute and remember
backward.py      the two passes: count the uses, pass the gradients on

What these stand on:

primitive.py     what a primitive is, and the registry of them
node.py          a Value as a float, and micrograd's own names
methods.py       the functions as methods of a Value
further_primitives.py   the rest of the table
floats.py        forward functions that Python's math lacks
composites.py    forward functions that are formulas over other primitives
special_functions.py    sinc, the gamma function, Bessel functions and quantiles, which are longer formulas
closures.py      operations whose derivative is a closure
order.py         every Value after its operands
higher_order.py  gradients that are graphs themselves
differentiation.py  which function a transform is running, and what its result depends on
recorder.py      who records what the operators do
tracer.py        what a recorder of numbers that are not known yet is asked
calls.py         which run of which function a Value came out of, for pages
choices.py       whether a function took one of several numbers
lost_gradients.py  what warns where a gradient is lost unsaid, as by math.exp(v)
commit.py        all or nothing: many numbers set in one step
stored.py        leaves whose numbers are stored in arrays, brought up to date when somebody looks
storage.py       these arrays: the numbers and gradients of many leaves
array_calls.py   functions of whole arrays, each call one node
lapack.py        factorisations of matrices of floats, each of which is kept for the gradient
linear_algebra.py  solutions, determinants and decompositions, as such functions
value_arrays.py  arrays of Values, which NumPy asks first
numpy_functions.py  what NumPy's functions make of Values: one table, for eager and compiled code
signals.py       Fourier transforms, fits of polynomials and convolution
copying.py       pickling and copying graphs of any depth
freeing.py       graphs of any depth freed in a browser
"""

import sys

from micrograd.engine import copying
from micrograd.engine.freeing import free_in_turns
from micrograd.engine.value import Value

free_in_turns(sys.platform)

__all__ = ["Value", "copying"]
