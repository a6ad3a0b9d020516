"""What repeats in a graph, as a tree of boxes: pages and pictures fold it.

boxes.py        a box, and what hangs together with what in it
groups.py       the tree of boxes around the Values of a graph
runs.py         boxes of the runs of functions, modules and blocks
parameters.py   what parameters are called, and inputs with given names
samples.py      boxes of samples, each with its loss
patterns.py     boxes of sums, dot products, what is done to many Values side by side, and iterations of plain loops
order.py        the order of the program
"""
