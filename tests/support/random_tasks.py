"""Random placement problems, the best placement there is, and round-robin."""

from __future__ import annotations

import itertools
import math
import random

from weft.passes.placement.simulate import Made, Problem, Task, Where, segments, simulate

CALL = 2e-6  # seconds of a segment by itself


def problem(
    seed: int, tasks: int, devices: int, *, pinned: float = 0.0, transfer: float = 10e-6
) -> Problem:
    """A random graph with random costs: tasks of about 10 us, each reading up to three of those
    before; a part of them ``pinned`` to a device."""
    rng = random.Random(seed)
    made, found = [], []
    for at in range(tasks):
        reads = {rng.randrange(max(0, at - 6), at) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))
                 } if at else set()
        usual = 1e-5 * rng.lognormvariate(0, 1)
        seconds = [usual * rng.uniform(0.7, 1.4) for _ in range(devices)]
        if rng.random() < pinned:
            only = rng.randrange(devices)
            seconds = [each if device == only else math.inf
                       for device, each in enumerate(seconds)]
        found.append(Task(f"t{at}", tuple(seconds), tuple(sorted(reads))))
        cost = transfer * rng.lognormvariate(0, 0.5)
        made.append(Made(at, tuple(tuple(cost * (a != b) for b in range(devices))
                                   for a in range(devices))))
    return Problem(devices, tuple(found), tuple(made))


def seconds(of: Problem, where: Where) -> float:
    """The simulated step, as it is run: in segments."""
    return simulate(*segments(of, where, CALL)).seconds


def optimum(of: Problem) -> float:
    """The shortest step of all placements."""
    return min(seconds(of, where) for where in itertools.product(
        *(of.allowed(at) for at in range(len(of.tasks)))))


def round_robin(of: Problem) -> float:
    """The step with each task on the next device that it may be on."""
    able = [of.allowed(at) for at in range(len(of.tasks))]
    return seconds(of, [each[at % len(each)] for at, each in enumerate(able)])
