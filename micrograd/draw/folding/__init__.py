"""What repeats in a graph, as a tree of boxes: pages and pictures fold it."""
