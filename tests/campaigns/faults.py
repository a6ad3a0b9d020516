"""Let calls, signals and allocations fail, one at a time, at every position: what is all or nothing must be so.

    python -m tests.campaigns.faults --write docs/reliability.md

The tests do the same, and count nothing.
"""

import argparse
import sys
import warnings
from pathlib import Path

from tqdm import tqdm

from tests import faults
from tests.campaigns.page import measured, report
from tests.compiler import test_all_or_nothing as of_the_compiler
from tests.engine import test_all_or_nothing as of_the_engine

HEADING = "## All or nothing"
CASES = {**of_the_engine.CASES, **of_the_compiler.CASES}
ACTIONS = {
    "`backward()` of tanh, gelu and products; again, with where": ("backward", "backward_again"),
    "`backward()` through a hand-written derivative; one that backpropagates itself": (
        "backward_by_hand",
        "backward_inside_of_another",
    ),
    "`backward()` that raises, and is undone; `mg.gradient` through a hand-written derivative": (
        "backward_that_fails",
        "gradient_by_hand",
    ),
    "`backward()` under `detect_anomaly`; with `create_graph=True`": ("backward_watched", "graphs"),
    "`Module.zero_grad`, `load_state_dict`": ("zero_grad", "load"),
    "`SGD.step` with momentum, `Adam.step`": ("momentum", "Adam"),
    "`mg.grad(mg.grad(f))`, alone and under `no_grad`": ("transform", "silent"),
    "a compiled function and its `backward()`, on NumPy": ("compiled_backward", "compiled_call"),
    "`backward()` through two results of a compiled function": ("backward_of_several",),
    "what a compiled `fit` writes back": ("write_back",),
    "the gradients that `gradcheck` and pages put back": ("check", "page"),
    "the numbers that a recording puts back": ("recording",),
}


def count(case: str, kind: str) -> int:
    """How many faults of a kind an action was given; an AssertionError where one has torn something."""
    return faults.check_every_position(CASES[case], kind, of_the_engine.ALLOWED.get(case))


def section(counts: dict[str, list[int]]) -> str:
    """The section of docs/reliability.md."""
    rows = [f"| {action} | {' | '.join(f'{number:,}' for number in numbers)} |" for action, numbers in counts.items()]
    return f"""{HEADING}

What changes several numbers changes all of them or none, whatever error occurs, and repeating the call gives the
right numbers. The tests inject faults, as SQLite's do (`tests/faults.py`): the first call of a function fails, then
the second, and so on, until the action completes. The same happens where Python checks for signals, and with
allocations. After each fault nothing or everything has changed. No recorder, refusal of floats, use count or lock is
left behind.

Calls raise RecursionError and MemoryError; signals raise KeyboardInterrupt, SystemExit and an exception of a handler;
allocations raise MemoryError. So many faults were injected on CPython
{sys.version_info.major}.{sys.version_info.minor}, without damage:

| action | calls that failed | signals | allocations |
|---|---|---|---|
{chr(10).join(rows)}

{measured("tests.campaigns.faults")}

A compiled step of `fit` ends in one assignment, and writes back to the Values in one. There are two exceptions. If
there is no memory for the tuple of three with which Python leaves a `with` block, its thread keeps a lock. A signal
between two instructions at the end of a `with` block takes effect only when its exception is dropped.

`pytest tests/engine/test_forks.py` forks twelve children while three threads are busy in the engine, the compiler and
Graphviz. None hangs, and the child undoes a backward pass that another thread had begun.
"""


def main(words: list[str] | None = None) -> None:
    """Plant the faults, and write how many there were."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=CASES, metavar="CASE", help="one case, and write nothing")
    parser.add_argument("--write", type=Path, help="the Markdown page to put the section into")
    arguments = parser.parse_args(words)
    kinds = [kind for kind in faults.ERRORS if kind != "memory" or faults._testcapi]
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None  # Python itself runs short, and says so where nobody can catch it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if arguments.only:
                numbers = ", ".join(f"{kind} {count(arguments.only, kind)}" for kind in kinds)
                sys.stdout.write(f"{arguments.only}: {numbers}\n")
                return
            found = {}
            for action, cases in tqdm(ACTIONS.items(), unit="action"):
                found[action] = [sum(count(case, kind) for case in cases) for kind in kinds]
    finally:
        sys.unraisablehook = hook
    report(section(found), HEADING, arguments.write)


if __name__ == "__main__":
    main()
