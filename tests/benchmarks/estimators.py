"""The estimators beside scikit-learn's: ``python tests/benchmarks/estimators.py``, which takes half a minute.

Both read handwritten digits: 64 hidden neurons, 30 epochs, batches of 32, Adam. They take turns on one core, in one
process, and learn from the same rows with the same seed. The first fit of ours finds its kernels where an earlier run
left them; run it twice. Seconds are those of the processor.
"""

import math
import os
import time
import warnings
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before NumPy reads them

from sklearn import neural_network
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from micrograd import estimators

SEEDS, TRIES = 5, 3
STEPS = 30 * math.ceil(1437 / 32)


def fit(module: Any, seed: int) -> tuple[float, float]:
    """The seconds of a fit, and the accuracy for the rows held back."""
    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, digits, test_size=0.2, stratify=digits, random_state=seed)
    settings = {"batch_size": 32, "max_iter": 30, "n_iter_no_change": 30, "random_state": seed}
    network = module.MLPClassifier((64,), **settings)
    start = time.process_time()
    network.fit(parts[0], parts[2])
    return time.process_time() - start, network.score(parts[1], parts[3])


def main() -> None:
    """Write a line for the first fit, and one for each seed."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore", ConvergenceWarning)  # theirs always warns after max_iter
    lines = [f"first fit of ours: {fit(estimators, 0)[0]:.2f} s"]
    for seed in range(SEEDS):
        tries = [(fit(estimators, seed), fit(neural_network, seed)) for _ in range(TRIES)]
        line = f"seed {seed}:"
        for name, found in zip(("ours", "scikit-learn"), zip(*tries, strict=True), strict=True):
            seconds, accuracy = min(found)
            line += f"  {name} {seconds:.2f} s, {1e6 * seconds / STEPS:.0f} us a step, accuracy {accuracy:.4f}"
        lines.append(line)
    print("\n".join(lines))  # noqa: T201  # it is a command


if __name__ == "__main__":
    main()
