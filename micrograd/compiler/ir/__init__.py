"""The representations of a program, from what a trace writes down to kernels over one buffer.

entries.py      what a trace writes down, one operation after the other
equals.py       equal operations of a trace become one
columns.py      the same as arrays, primitive by primitive
graph.py        sums of products and primitives, which one pass hands to the next
vectors.py      long dot products, which stay whole in a graph
traversals.py        what is found by going through a graph, from one frontier to the next
program.py      kernels over arrays in one buffer, which every backend can read
regions.py      straight programs with decisions between them
arrays.py       which arrays of a program a kernel reads and writes
index_maps.py   where the results and the operands of a kernel lie, as offsets and strides, or as tables
extrapolated.py  what a program would be for another number of rows, from what it is for three
layout.py       where the numbers of a program lie in its buffer
"""
