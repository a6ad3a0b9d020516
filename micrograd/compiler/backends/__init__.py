"""Backends run programs: each is one function that makes a run of a program.

backend.py         the contract: program -> run, run(numbers) -> (outputs, gradients)
executable.py      what a backend may do beside: keep a program in a buffer, for fit and for fast.program()
choice.py          the backends by name; a new one is a file, and a line there
numpy_backend.py   NumPy: the reference
llvm_backend.py    native code, which llvm_machine.py compiles and object_cache.py keeps; llvm_codes.py says which
                   code a kernel needs, and it is written by llvm_kernels.py, llvm_products.py (of matrices),
                   llvm_scalars.py (small kernels of loops) and llvm_functions.py (primitives), all with
                   llvm_writer.py; other small kernels need none, as llvm_interpreter.py makes them words of a table.
                   llvm_fusing.py makes one kernel of two, where only the one reads what the other writes
jax_backend.py     a function of arrays, which XLA compiles: jax_reads.py (operands), jax_kernels.py, jax_loops.py
                   (as scans) and jax_functions.py (primitives)
jax_mesh.py        the devices of JAX that fit shares a batch out to, those of several processes too, which keep in
                   step by jax_processes.py
batches.py         batches of fit, in packs of examples that have a program in common
llvm_batches.py    the same in native code, whose blocks run in the threads of crew.py; llvm_batch_runner.py
                   writes what runs the blocks, and llvm_runners.py what calls kernels
python_calls.py    primitives for which a backend has no code, called in Python
"""
