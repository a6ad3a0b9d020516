"""The representations of a program, from what a trace writes down to kernels over one buffer."""
