"""C: programs as readable C99, which depends on math.h only."""
