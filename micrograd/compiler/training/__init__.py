"""The steps of fit as compiled programs.

steps.py          losses, gradients and the update, on numbers that stay where they run
buffer_steps.py   in one buffer, on the backends whose programs stay in one
mesh_steps.py     on a mesh of JAX's devices
update.py         the update of an optimiser as a program
"""
