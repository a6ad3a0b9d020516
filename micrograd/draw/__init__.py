"""Pictures of graphs, and what notebooks show.

What repeats in a graph is found in folding/.
"""

from micrograd.draw.graph import draw_dot, save, svg, trace

__all__ = ["draw_dot", "save", "svg", "trace"]
