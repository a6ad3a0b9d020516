"""The passes of the compiler, each from one representation of a program to the next.

stages.py        the list of the passes, and what runs and times them
equals.py        equal operations of a trace become one
normalise.py     everything becomes a sum of products, or a primitive
checks.py        which numbers must be checked to be finite, as eager would have raised
packs.py         one program for several examples of a batch
adjoint.py       the reverse program, from the primitives' own derivative rules
reroll.py        operations that are alike become kernels over arrays, with the help of those that follow
alike.py         which rows of matrices of integers are the same
alone.py         operations that are like few others
sums.py          sums that are alike become one kernel
placing.py       where each number lies in the buffer
repeats.py       stretches of operations that come again and again, which become loops
turn_graph.py    what one iteration of such a loop computes, as a graph
transposing.py   numbers that belong to samples are laid out so that those of all samples are neighbours
sharing.py       kernels write over numbers that nobody reads any more
progress.py      a compile that takes long says what it does
"""
