"""Kills a process while it writes checkpoints, and looks at what can be restored.

    python tests/runtime/kills.py 200              one file each
    python tests/runtime/kills.py 200 cpu:0 cpu:1  a shard for each device

The child writes checkpoint after checkpoint of two variables that have the same value in every
element, in files of a folder that keeps three. Prints what is wrong, then ``done N``.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import weft
from weft.runtime.storage.history import MANIFEST

SHAPES = {"a": (64, 256), "b": (1000,)}


class Model:
    """The two variables, on these devices in turn."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.variables = {}
        for at, (name, shape) in enumerate(SHAPES.items()):
            with weft.device(devices[at % len(devices)] if devices else None):
                self.variables[name] = weft.Variable(np.zeros(shape, int), name=name)

    def save(self, folder: Path, step: int) -> None:
        for name, shape in SHAPES.items():
            self.variables[name].assign(np.full(shape, step))
        weft.save(folder, self.variables, step, keep=3)

    def write(self, folder: Path, step: int) -> None:
        """Checkpoints without end, from ``step`` on."""
        while True:
            step += 1
            self.save(folder, step)


def kill_one(model: Model, folder: Path, step: int, wait: float) -> None:
    child = os.fork()
    if child == 0:
        model.write(folder, step)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kills(folder: Path, count: int, devices: Sequence[str]) -> Iterator[str]:
    """What is wrong after each of ``count`` kills."""
    rng, model = random.Random(0), Model(devices)
    last = 0
    model.save(folder, 0)
    for at in range(count):
        kill_one(model, folder, last, 10 ** rng.uniform(-3, -1))
        found = {name: np.full(shape, -1) for name, shape in SHAPES.items()}
        step = weft.restore(folder, found)
        if step is None or step < last:
            yield f"kill {at}: step {step} after {last}"
        for name, array in found.items():
            if not (array == step).all():
                yield f"kill {at}: {name} of step {step} is {np.unique(array)}"
        last = step or last
    model.save(folder, last + 1)
    left = sorted(set(os.listdir(folder)) - {MANIFEST})
    if len(left) != min(3, last + 2) * max(1, len(devices)) or not all(
            name.startswith("step-") for name in left):
        yield f"left behind: {left}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        number = int(sys.argv[1])
        for problem in kills(Path(place) / "run", number, sys.argv[2:]):
            print(problem)
        print(f"done {number}")
