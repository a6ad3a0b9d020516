"""The programs of the suite, one file each: what people bring to a library of gradients.

To add one, write a file with the function in scalars and in arrays, and name it here.
"""

from programs.bundle import bundle
from programs.gaussian_process import gaussian_process
from programs.gmm import gmm
from programs.irregular import irregular
from programs.lstm import lstm
from programs.mlp import mlp
from programs.parabola import parabola
from programs.recurrent import recurrent
from programs.runge_kutta import runge_kutta
from programs.transformer import LARGE, SMALL, transformer

PROGRAMS = {
    "gmm-2-5": gmm(2, 5),
    "gmm-10-5": gmm(10, 5),
    "gmm-10-25": gmm(10, 25),
    "ba": bundle(),
    "lstm": lstm(),
    "rnn-50": recurrent(50),
    "rnn-500": recurrent(500),
    "gp": gaussian_process(64),
    "rk-200": runge_kutta(200),
    "rk-1000": runge_kutta(1000),
    "rk-1000-scan": runge_kutta(1000, scan=True),
    "mlp": mlp(),
    "mlp-arguments": mlp(arguments=True),
    "transformer": transformer("transformer, 2 layers 64 wide, 64 letters", LARGE, 1, 63),
    "word": transformer("the benchmark's transformer, one word", SMALL, 1, 6),
    "words": transformer("the benchmark's transformer, 32 words", SMALL, 32, 6, arguments=True),
    "parabola": parabola(150_000),
    "irregular": irregular(5_000),
}
