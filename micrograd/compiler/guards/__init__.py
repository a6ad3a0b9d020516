"""Guards: what a compiled program takes for granted of its arguments and of what it closes over."""
