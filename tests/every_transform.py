"""Tangents and batches of every sample of every op row, and nests of transforms:

    python -m every_transform tangents             against gradients and differences
    python -m every_transform batches              against a loop over the batch
    python -m every_transform batches --native     compiled, which takes minutes
    python -m every_transform nests                transforms of transforms, of all functions
    TRITON_INTERPRET=1 python -m every_transform triton     these and random programs, there

``--every 25`` takes every 25th of the nests and of 500 random programs. Prints what is wrong, then
how many there were.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "support"))

from nests import ALL, nested
from transform_rows import (
    batch_cases,
    batch_problems,
    native,
    run_graph,
    tangent_cases,
    tangent_problems,
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("tangents", "batches", "nests", "triton"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--native", action="store_true")
    chosen = parser.parse_args(arguments)
    run = native if chosen.native else run_graph
    cases, problems = ((tangent_cases, tangent_problems) if chosen.way == "tangents" else
                       (batch_cases, batch_problems))
    wrong = count = 0
    if chosen.way == "nests":
        bad = [case for case in ALL if not np.allclose(*nested(*case), rtol=1e-12)]
        print(*bad, f"{len(ALL)} nests, {len(bad)} problems", sep="\n")
        return 1 if bad else 0
    if chosen.way == "triton":
        return _in_triton(chosen.every)
    for op, dtype, sample in cases():
        count += 1
        for problem in problems(op, sample, dtype, np.random.default_rng(count), run):
            wrong += 1
            print(problem, flush=True)
    print(f"{count} samples, {wrong} problems")
    return 1 if wrong else 0


def _in_triton(every: int) -> int:
    from transform_triton import nest_problems, program_problems

    count = wrong = 0
    for name, problem in chain(nest_problems(every), program_problems(7, range(0, 500, every))):
        count += 1
        if problem:
            wrong += 1
            print(f"{name}: {problem}", flush=True)
    print(f"{count} programs, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
