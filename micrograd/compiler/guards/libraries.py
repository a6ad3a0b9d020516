"""Which packages are libraries: their code is not inspected for what it reads.

A list of names, not a folder: a user's own package is inspected wherever it is installed. What only other libraries use
is not listed, as it is not reached.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import Any

_STANDARD = os.path.dirname(os.__file__)
_INSTALLED = ("site-packages", "dist-packages")
_NAMES_OF_LIBRARIES = """
micrograd numpy scipy jax jaxlib ml_dtypes pandas pyarrow polars xarray dask sklearn skops joblib threadpoolctl
statsmodels xgboost lightgbm catboost torch torchvision torchaudio tensorflow keras flax optax equinox haiku chex
orbax diffrax einops numba llvmlite cupy numexpr bottleneck sympy mpmath gmpy2 networkx casadi autograd cvxpy
matplotlib mpl_toolkits seaborn plotly bokeh altair PIL imageio skimage cv2 graphviz pygraphviz pydot IPython
ipykernel ipywidgets pytest _pytest hypothesis coverage debugpy pydevd tqdm rich absl hydra omegaconf yaml loguru
structlog wandb mlflow tensorboard attr attrs pydantic typing_extensions requests six decorator wrapt psutil pytz
dateutil sortedcontainers toolz cytoolz more_itertools h5py netCDF4 zarr tables narwhals array_api_compat transformers
datasets accelerate lightning pytorch_lightning gymnasium gym ray cython Cython cffi pybind11 pyodide js
"""
# Instances of what these hold do not change a number, or change all the time without that: loggers, locks, bars.
_NAMES_WITHOUT_NUMBERS = """
logging _thread multiprocessing concurrent asyncio warnings traceback tqdm rich loguru structlog
pytest _pytest hypothesis coverage typing typing_extensions inspect abc importlib matplotlib IPython
graphviz re pathlib datetime zoneinfo uuid ipaddress fractions decimal numbers jax jaxlib micrograd codecs
"""
_LIBRARIES = frozenset(_NAMES_OF_LIBRARIES.split())
_WITHOUT_NUMBERS = frozenset(_NAMES_WITHOUT_NUMBERS.split())


@lru_cache(1024)
def is_foreign(module: Any) -> bool:
    """Whether a module, by its name, belongs to the standard library, to this package, or to another known library."""
    if not isinstance(module, str):  # a class of Cython has none
        return True
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return top in _LIBRARIES or top.startswith("_cython_")
    file = getattr(sys.modules.get(top), "__file__", None)  # a user's module may have the name of a standard one
    return file is None or (file.startswith(_STANDARD) and not any(folder in file for folder in _INSTALLED))


def is_without_numbers(module: Any) -> bool:
    """Whether instances of a library's classes hold nothing that a traced function computes with, or never change."""
    return str(module).partition(".")[0] in _WITHOUT_NUMBERS
