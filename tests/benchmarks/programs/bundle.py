"""ADBench's bundle adjustment: cameras, points and weights, with data as its generator draws them.

Half the sum of the squares of ADBench's residuals, so that the gradient is one row: of the weighted distances between
where a camera should see a point and where it saw it, and of 1 - weight^2. A camera has a rotation (an axis times an
angle), a centre, a focal length, a principal point and two numbers for its radial distortion.

Apart from ADBench's, cameras look at the points, and only what is less than 45 degrees aside is seen: projections of
what is beside a camera have up to 20 digits before the point, and no two libraries agree on them.
"""

import random
from functools import partial
from itertools import product
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

ROTATION, CENTRE, FOCAL, PRINCIPAL, RADIAL = slice(0, 3), slice(3, 6), 6, slice(7, 9), slice(9, 11)


def data(cameras: int, points: int, observations: int) -> tuple[Numbers, Numbers]:
    """Points in a cube of 10, cameras in one of 100; which camera saw which point is drawn without repeating a pair."""
    rng = random.Random(5)
    parameters = {
        "cameras": [drawn_camera(rng) for _ in range(cameras)],
        "points": [[10 * rng.random() for _ in range(3)] for _ in range(points)],
        "weights": [rng.random() for _ in range(observations)],
    }
    pairs = product(enumerate(parameters["cameras"]), enumerate(parameters["points"]))
    visible = [(i, j) for (i, camera), (j, point) in pairs if sees(camera, point)]
    chosen = rng.sample(visible, observations)
    seen = []
    for camera, point in chosen:
        x, y = projected(parameters["cameras"][camera], parameters["points"][point])
        seen.append([x + rng.gauss(0.0, 1.0), y + rng.gauss(0.0, 1.0)])
    return parameters, {"cameras": [i for i, _ in chosen], "points": [j for _, j in chosen], "seen": seen}


def drawn_camera(rng: random.Random) -> list[float]:
    """A camera that looks at the middle of the points."""
    while True:
        camera = [rng.gauss(0.0, 1.0) for _ in range(3)] + [100 * rng.random() for _ in range(3)]
        camera += [1000 * rng.random()]
        camera += [rng.gauss(0.0, 10.0) for _ in range(2)] + [0.1 * rng.random() for _ in range(2)]
        if sees(camera, [5.0, 5.0, 5.0]):
            return camera


def sees(camera: list[float], point: list[float]) -> bool:
    """Whether a point is before a camera and less than 45 degrees aside."""
    x, y, z = rotated(camera[ROTATION], [p - c for p, c in zip(point, camera[CENTRE], strict=True)])
    return z > 0 and x * x + y * y < z * z


def rotated(axis: list[Any], x: list[Any]) -> list[Any]:
    """Rodrigues' formula."""
    angle = mg.sqrt(mg.dot(axis, axis))
    cosine, sine = mg.cos(angle), mg.sin(angle)
    w = [a / angle for a in axis]
    cross = [w[1] * x[2] - w[2] * x[1], w[2] * x[0] - w[0] * x[2], w[0] * x[1] - w[1] * x[0]]
    along = mg.dot(w, x) * (1 - cosine)
    return [x[i] * cosine + cross[i] * sine + w[i] * along for i in range(3)]


def projected(camera: list[Any], point: list[Any]) -> list[Any]:
    """Where a camera sees a point."""
    x, y, z = rotated(camera[ROTATION], [p - c for p, c in zip(point, camera[CENTRE], strict=True)])
    x, y = x / z, y / z
    square = x * x + y * y
    first, second = camera[RADIAL]
    stretched = camera[FOCAL] * (1 + first * square + second * square * square)
    return [x * stretched + camera[PRINCIPAL][0], y * stretched + camera[PRINCIPAL][1]]


def scalars(w: Numbers, given: Numbers) -> Any:
    """Half the sum of the squares of all residuals."""
    squares = []
    for camera, point, weight, (x_seen, y_seen) in zip(
        given["cameras"], given["points"], w["weights"], given["seen"], strict=True
    ):
        x, y = projected(w["cameras"][camera], w["points"][point])
        squares += [(weight * (x - x_seen)) ** 2, (weight * (y - y_seen)) ** 2, (1 - weight * weight) ** 2]
    return 0.5 * sum(squares)


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same in arrays, all observations at a time."""
    cameras = w["cameras"][given["cameras"]]
    x = w["points"][given["points"]] - cameras[:, CENTRE]
    angle = xp.sqrt((cameras[:, ROTATION] ** 2).sum(1))[:, None]
    axis = cameras[:, ROTATION] / angle
    along = (axis * x).sum(1)[:, None] * (1 - xp.cos(angle))
    x = x * xp.cos(angle) + xp.cross(axis, x) * xp.sin(angle) + axis * along
    plane = x[:, :2] / x[:, 2:]
    square = (plane * plane).sum(1)
    stretched = cameras[:, FOCAL] * (1 + cameras[:, 9] * square + cameras[:, 10] * square * square)
    errors = w["weights"][:, None] * (plane * stretched[:, None] + cameras[:, PRINCIPAL] - given["seen"])
    return 0.5 * ((errors * errors).sum() + ((1 - w["weights"] ** 2) ** 2).sum())


def bundle(cameras: int = 20, points: int = 200, observations: int = 1000) -> Program:
    """The program for so many cameras, points and observations."""
    title = f"ADBench BA, {cameras} cameras, {points} points, {observations:,} observations"
    return Program(title, partial(data, cameras, points, observations), scalars, arrays)
