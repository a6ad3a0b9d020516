"""What matplotlib draws with in cells: nothing opens a window, and plt.show() shows the figures below the cell."""

from __future__ import annotations

import sys

from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]  # matplotlib asks for these names


def show(*_, **__):
    """Show the figures that are open. Where a cell prints elsewhere meanwhile, they are shown when it ends."""
    if shown := getattr(sys.stdout, "shown", None):
        shown.figures()
