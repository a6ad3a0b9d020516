"""The engine: what a Value is, and how backpropagation runs.

Everything that one expression and its ``backward()`` run is in these, in the order to read them:

primitives.py    the table: each primitive's forward function and derivative, a line each
composites.py    forward functions that are formulas over other primitives
primitive.py     what a primitive is, and the registry of them
node.py          the fields of a Value
value.py         Value: operators that compute and remember
methods.py       the functions as methods of a Value
backward.py      the two passes: count the uses, pass the gradients on
commit.py        all or nothing: many numbers set in one step

What stands beside them:

primitive_base.py  what primitives can do beside: parameters, arrays, more than two operands
further_primitives.py   the rest of the table
floats.py        forward functions that Python's math lacks
special_functions.py    sinc, the gamma function, Bessel functions and other longer formulas
operations.py    the primitives by their names, for composites
custom.py        the user's own primitives and operations
applying.py      shorter ways to apply some primitives
float_like.py    what a float can do beside: compare, round, convert, print
history.py       micrograd's own names for how a Value was made
failures.py      what clears a backpropagation that failed
order.py         every Value after its operands
higher_order.py  gradients that are graphs themselves
differentiation.py  which function a transform is running, and what its result depends on
recorder.py      who records what the operators do
tracer.py        what a recorder of numbers that are not known yet is asked
calls.py         which run of which function a Value came out of, for pages
choices.py       whether a function took one of several numbers
lost_gradients.py  what warns where a gradient is lost unsaid, as by math.exp(v)
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

from micrograd.engine import applying, copying
from micrograd.engine.freeing import free_in_turns
from micrograd.engine.value import Value

free_in_turns(sys.platform)

__all__ = ["Value", "applying", "copying"]
