"""Pictures of graphs, and what notebooks show.

graph.py      which Values are drawn, and how they hang together
lecture.py    the graph as micrograd's lecture has it
card.py       how a Value and an operation look
text.py       numbers and labels as a reader likes them
dot.py        pictures as text, without Graphviz
layout.py     Graphviz, as a command or inside of Python
notebook.py   tables of modules and curves of losses
"""

from micrograd.draw.graph import draw_dot, save, svg, trace

__all__ = ["draw_dot", "save", "svg", "trace"]
