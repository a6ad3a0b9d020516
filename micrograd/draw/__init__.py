"""Pictures of graphs, and what notebooks show.

graph.py      which Values are drawn, and how they hang together
folded.py     the picture of a large graph, in boxes
array_steps.py  calls of linear algebra, as boxes of their steps
rotations.py  the steps of eigenvalues and singular values
opening.py    which of the boxes stand open
strip.py      many numbers as colours
lecture.py    the graph as micrograd's lecture has it
card.py       how a Value and an operation look
style.py      colours and letters
text.py       numbers and labels as a reader likes them
dot.py        pictures as text, without Graphviz
pattern.py    where the entries of a sparse matrix are
layout.py     Graphviz, as a command or inside of Python
notebook.py   tables of modules and curves of losses
plots.py      plots by matplotlib, in the colours of the page around them

What repeats in a graph is found in folding/.
"""

from micrograd.draw.graph import draw_dot, save, svg, trace

__all__ = ["draw_dot", "save", "svg", "trace"]
