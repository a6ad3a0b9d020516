"""The LLVM backend: native code.

llvm_backend.py        native kernels, called one after the other by a native loop
llvm_machine.py        LLVM for this processor, and the native functions that it has compiled
object_cache.py        compiled kernels on disk
llvm_codes.py          which code a kernel needs
llvm_kernels.py        kernels as LLVM code
llvm_products.py       products of matrices
llvm_scalars.py        small kernels of loops, written out number by number
llvm_functions.py      the forward functions of primitives
llvm_writer.py         what the code of kernels is written with
llvm_interpreter.py    other small kernels, which need no code: they are words of a table
llvm_runners.py        native functions that call kernels
llvm_calls.py          native functions that Python calls
llvm_entries.py        native functions that callers in C know how to call
llvm_update.py         an optimiser's update of arrays in one pass over memory
llvm_deciding.py       decisions between programs
llvm_batches.py        batches of fit, whose blocks run on all cores
llvm_batch_runner.py   the native function that runs these blocks
llvm_steps.py          many steps of fit in one native call
thread_pool.py         the threads that they run in
"""
