"""What runs a program: NumPy, or native code through LLVM."""
