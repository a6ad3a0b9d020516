"""What each of two processes that train together does: python -m tests.compiler.in_two_processes PORT NUMBER FOLDER.

Each has four virtual devices. What becomes of each training it prints as JSON, a line for each. In the last training,
the second process is killed.
"""

import json
import os
import random
import signal
import sys
from pathlib import Path

PORT_IS_TAKEN = 75

if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}

import jax  # noqa: E402  # which reads the environment

import micrograd as mg  # noqa: E402


def network():
    """A classifier, its examples and its optimiser: the same ones each time."""
    rng = random.Random(1)
    random.seed(1)
    model = mg.nn.MLP(3, [4, 3], activation="tanh")
    examples = [([rng.gauss(0, 1) for _ in range(3)], rng.randrange(3)) for _ in range(19)]
    optimizer = mg.optim.Adam(model, mg.optim.cosine(0.05, 0.01, 9))
    return model, optimizer, lambda x, target: mg.losses.cross_entropy(model(x), target), examples


def line():
    """The same of a model that is compiled at once."""
    w = mg.Value(1.0)
    model = mg.nn.MLP(1, [1])
    model.layers[0].neurons[0].w = [w]
    examples = [(0.5 * position, 1.0 - position) for position in range(5)]
    return model, mg.optim.SGD([w], 0.05, momentum=0.5), lambda x, y: (w * x - y) ** 2, examples


def trained(made, **settings):
    """What becomes of a training: the history, the parameters and the optimiser's state, and the error, if any."""
    _, optimizer, loss, examples = made
    found = {"error": "", "steps": [], "interrupted": False}
    try:
        history = mg.fit(loss, examples, optimizer, **{"epochs": 3, "batch_size": 8, "seed": 3, **settings})
        found |= {"steps": history.steps, "interrupted": history.interrupted}
    except (RuntimeError, LookupError) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    numbers = [parameter.data for parameter in optimizer.parameters]
    return found | {"parameters": numbers, "state": optimizer._state, "taken": optimizer.steps}


def after_two_epochs(action):
    """A callback that does something after two epochs."""
    return lambda history: action() if len(history.epochs) == 2 else None


def fail():
    raise LookupError("there is no third epoch")


def send(number):
    os.kill(os.getpid(), number)


def main(port, number, folder):
    try:
        jax.distributed.initialize(f"127.0.0.1:{port}", 2, number)
    except RuntimeError as error:
        if "RPC server" in str(error):
            sys.exit(PORT_IS_TAKEN)
        raise
    leads = number == 0

    def show(made, **settings):
        sys.stdout.write(json.dumps(trained(made, compile="jax", **settings)) + "\n")
        sys.stdout.flush()

    show(network(), devices="all", progress=True)
    show(line(), devices=2, callback=None if leads else after_two_epochs(fail))
    show(line(), devices=2, callback=None if leads else after_two_epochs(lambda: send(signal.SIGINT)))
    show(line(), devices=2, seed=3 if leads else 4)
    show(line(), devices=2, epochs=2 if leads else 3)
    made = line()
    die = after_two_epochs(lambda: send(signal.SIGKILL))

    def save(history):
        made[0].save(folder / f"model{number}.json")
        if not leads:
            die(history)

    show(made, devices=2, callback=save)
    sys.stderr.flush()
    os._exit(0)  # at its end JAX would wait for the process that was killed


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
