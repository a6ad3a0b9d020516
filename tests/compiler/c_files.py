"""Exported files, compiled by the C compiler of this machine and called."""

import ctypes
import os
import re
import shutil
import subprocess
from itertools import count
from pathlib import Path

import numpy as np
import pytest

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler named cc")
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
WATCHED = ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")  # what is not optimised is compiled sooner
_NUMBERS = count()


def shared_library(source, flags=()):
    """What the compiler of this machine makes of a file, loaded."""
    library = f"{source[:-2]}_{next(_NUMBERS)}.so"  # one of the same name would be the one that is loaded already
    command = ["cc", *STRICT, *flags, "-fPIC", "-shared", source, "-o", library, "-lm"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(library)


class Built:
    """The functions of an exported file.

    Attributes:
        macros: the numbers in the header, such as INPUTS.
        source, header: the texts of both files.
    """

    def __init__(self, paths, flags=(), library=None):
        source, _ = map(str, paths)
        self.source, self.header = (Path(path).read_text(encoding="ascii") for path in paths)
        self.name = os.path.basename(source)[:-2]
        found = re.findall(r"^#define \w+?_((?:VALUE_)?[A-Z]+) (\d+)$", self.header, re.MULTILINE)
        self.macros = {name: int(number) for name, number in found}
        self.library = library or shared_library(source, flags)
        self.dtype = np.float32 if "const float *inputs" in self.header else np.float64

    def __call__(self, kind, inputs, parameters=None, seeds=None):
        """What name_KIND gives: its return value, and the arrays that it fills."""
        given = [inputs, *([parameters] if parameters is not None else []), *([seeds] if seeds is not None else [])]
        arrays = [np.array(numbers, dtype=self.dtype).ravel() for numbers in given]
        results = [np.full(self.macros["OUTPUTS"], 7.5, dtype=self.dtype)]
        if "value" not in kind:
            results.append(np.full(self.macros["GRADIENTS"], 7.5, dtype=self.dtype))
        size = self.macros["VALUE_WORK" if "value" in kind else "WORK"]
        work = [np.full(size, np.nan, dtype=self.dtype)] if size else []  # what is in it does not matter
        function = getattr(self.library, "_".join(filter(None, [self.name, kind])))
        code = function(*(ctypes.c_void_p(array.ctypes.data) for array in (*arrays, *results, *work)))
        return code, *results

    def value(self, *inputs):
        return self("value", np.concatenate([np.ravel(part) for part in inputs]))[1]

    def both(self, *inputs, **given):
        return self("", np.concatenate([np.ravel(part) for part in inputs]), **given)[1:]
