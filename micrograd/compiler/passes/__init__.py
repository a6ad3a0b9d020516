"""The passes of the compiler, each from one representation of a program to the next.

lists.py         the lists of the passes, one for each kind of backend
histories.py     loops that ask in every iteration, as two bodies
every_path.py    a function that decides, as choices between all ways through it
stages.py        what a pass is, and what runs and times them
normalise.py     everything becomes a sum of products, or a primitive
checks.py        which numbers must be checked to be finite, as eager would have raised
packs.py         one program for several examples of a batch
allocate.py      arrays get the memory of arrays that nobody reads any more
adjoint.py       the reverse program, from the primitives' own derivative rules
reroll.py        operations that are alike become kernels over arrays, with the help of those that follow
alike.py         which rows of matrices of integers are the same
alone.py         operations that are like few others
sums.py          sums that are alike become one kernel
placing.py       where each number lies in the buffer
repeats.py       stretches of operations that come again and again, which become loops
levels.py        on which level each operation is computed, so that loops are found as they were meant
iteration_graph.py    what one iteration of such a loop computes, as a graph
transposing.py   numbers that belong to samples are laid out so that those of all samples are neighbours
fusing.py        one kernel of two, where only the one reads what the other writes
regions.py       straight programs with decisions between them
verifier.py      whether a program computes after a pass what it computed before
interpreters.py  what programs compute modulo a prime, with random functions in the place of primitives
field.py         arithmetic modulo that prime
listing.py       a graph or a program as text, and how large it is after each pass
progress.py      a compile that takes long says what it does
"""
