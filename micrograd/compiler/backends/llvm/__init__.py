"""The LLVM backend: native code."""
