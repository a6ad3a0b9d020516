"""What backends have in common, and which there are.

backend.py        the contract: program -> run, run(numbers) -> (outputs, gradients)
executable.py     what a backend may do beside: keep a program in a buffer, for fit and for fast.program()
choice.py         the backends by name; a new one is a file, and a line there
batches.py        batches of fit, in packs of examples that have a program in common
deciding.py       programs with decisions between them, as a plan that backends run
written.py        numbers of code that a backend writes with operators, and the base operations
limits.py         how many bytes are kept, in memory and on disk
python_calls.py   primitives for which a backend has no code, called in Python
"""
