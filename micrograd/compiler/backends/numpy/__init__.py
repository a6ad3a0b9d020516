"""The NumPy backend: the reference.

numpy_backend.py   each kernel is one or two calls of NumPy on views of the buffer
"""
