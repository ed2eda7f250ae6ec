"""Kills a process while it writes checkpoints, and looks at what can be restored.

    python tests/runtime/kills.py 200

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
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import weft
from weft.runtime.history import MANIFEST

SHAPES = {"a": (64, 256), "b": (1000,)}


def write(folder: Path, step: int) -> None:
    """Checkpoints without end, from ``step`` on."""
    while True:
        step += 1
        arrays = {name: np.full(shape, step) for name, shape in SHAPES.items()}
        weft.save(folder, arrays, step, keep=3)


def kill_one(folder: Path, step: int, wait: float) -> None:
    child = os.fork()
    if child == 0:
        write(folder, step)
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kills(folder: Path, count: int) -> Iterator[str]:
    """What is wrong after each of ``count`` kills."""
    rng = random.Random(0)
    last = 0
    weft.save(folder, {name: np.zeros(shape, int) for name, shape in SHAPES.items()}, 0, keep=3)
    for at in range(count):
        kill_one(folder, last, 10 ** rng.uniform(-3, -1))
        found = {name: np.full(shape, -1) for name, shape in SHAPES.items()}
        step = weft.restore(folder, found)
        if step is None or step < last:
            yield f"kill {at}: step {step} after {last}"
        for name, array in found.items():
            if not (array == step).all():
                yield f"kill {at}: {name} of step {step} is {np.unique(array)}"
        last = step or last
    weft.save(folder, {name: np.ones(shape, int) for name, shape in SHAPES.items()}, last + 1,
              keep=3)
    left = sorted(set(os.listdir(folder)) - {MANIFEST})
    if len(left) != min(3, last + 2) or not all(name.startswith("step-") for name in left):
        yield f"left behind: {left}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        number = int(sys.argv[1])
        for problem in kills(Path(place) / "run", number):
            print(problem)
        print(f"done {number}")
