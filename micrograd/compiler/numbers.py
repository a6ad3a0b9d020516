"""The two kinds of arrays that the compiler works with: whole numbers, such as nodes and places, and floats."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
