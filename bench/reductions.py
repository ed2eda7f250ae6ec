"""Sums, means, maxima and their positions along rows, columns and everything; transposes.

The limit is to read each element once: nearly nothing is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table

TITLE = "reductions and transposes"


def sum_along(axis: int | None) -> Any:
    def make(framework: Framework) -> Function:
        xp = framework.np

        def run(x: Any) -> Any:
            return xp.sum(x) if axis is None else xp.sum(x, axis=axis)

        return run

    return make


def largest_along(axis: int) -> Any:
    def make(framework: Framework) -> Function:
        def run(x: Any) -> Any:
            return framework.largest(x, axis)

        return run

    return make


def argmax(framework: Framework) -> Function:
    xp = framework.np

    def run(x: Any) -> Any:
        return xp.argmax(x, axis=1)

    return run


def mean_of_squares(framework: Framework) -> Function:
    xp = framework.np

    def run(x: Any, y: Any) -> Any:
        return xp.mean((x - y) * (x - y))

    return run


def mean_and_variance(framework: Framework) -> Function:
    """Both moments of each column, as batch norm needs them."""
    xp = framework.np

    def run(x: Any) -> Any:
        mean = xp.mean(x, axis=0)
        return mean, xp.mean(x * x, axis=0) - mean * mean

    return run


def transpose(framework: Framework) -> Function:
    def run(x: Any) -> Any:
        return framework.copy_of(x.T)

    return run


def add_transposed(_: Framework) -> Function:
    def run(x: Any) -> Any:
        return x + x.T

    return run


def swap_axes(framework: Framework) -> Function:
    """(batch, time, heads, width) to (batch, heads, time, width), as attention does."""
    xp = framework.np

    def run(x: Any) -> Any:
        return framework.copy_of(xp.swapaxes(x, 1, 2))

    return run


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)
    # Positive numbers: a sum near zero would have no digits to compare.
    x, y = (rng.uniform(0, 1, (1024, 1024)).astype(np.float32) for _ in range(2))
    tall = rng.uniform(0, 1, (65536, 32)).astype(np.float32)
    heads = rng.uniform(0, 1, (8, 256, 8, 64)).astype(np.float32)
    works = [
        Workload("row sums, 1024 x 1024", sum_along(1), (x,)),
        Workload("column sums, 1024 x 1024", sum_along(0), (x,)),
        Workload("full sum, 1 M", sum_along(None), (x,)),
        Workload("row maxima, 1024 x 1024", largest_along(1), (x,)),
        Workload("row argmax, 1024 x 1024", argmax, (x,)),
        Workload("mean of squared difference, 1 M", mean_of_squares, (x, y)),
        Workload("column mean and variance, 65536 x 32", mean_and_variance, (tall,),
                 tolerance=1e-3),
        Workload("transpose, 1024 x 1024", transpose, (x,)),
    ]
    if not bench.quick:
        small = x[:64, :64].copy()
        works += [
            Workload("row sums, 64 x 64", sum_along(1), (small,)),
            Workload("row sums, 65536 x 32", sum_along(1), (tall,)),
            Workload("column sums, 65536 x 32", sum_along(0), (tall,)),
            Workload("x + x.T, 1024 x 1024", add_transposed, (x,)),
            Workload("swap axes, 8 x 256 x 8 x 64", swap_axes, (heads,)),
            Workload("full sum, 1 M float64", sum_along(None), (x.astype(np.float64),)),
        ]
    return [bench.compare(TITLE, works)]
