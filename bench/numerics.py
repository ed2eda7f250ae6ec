"""Steps of numerical programs that are larger than one kernel, as each framework writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Bench, Workload
from .peers import Framework, Function
from .report import Table


def kmeans(framework: Framework) -> Function:
    """A step of Lloyd's algorithm (1982): the new centres."""
    def step(points: Any, centres: Any) -> Any:
        xp = framework.np
        far = (centres * centres).sum(1) - 2 * (points @ centres.T)
        nearest = xp.argmin(far, 1)
        ones = xp.ones_like(points[:, :1])
        sums = framework.sums_of(points, nearest, len(centres))
        counts = framework.sums_of(ones, nearest, len(centres))
        return sums / xp.maximum(counts, xp.ones_like(counts))

    return step


def forces(framework: Framework) -> Function:
    """The accelerations of bodies that attract each other, softened near by."""
    def run(places: Any, masses: Any) -> Any:
        xp = framework.np
        apart = places[None, :, :] - places[:, None, :]
        squares = (apart * apart).sum(-1) + 0.01
        pull = masses / (squares * xp.sqrt(squares))
        return (apart * pull[:, :, None]).sum(1)

    return run


def sweeps(framework: Framework) -> Function:
    """Fifty means of the four neighbours, all around the border included (periodic)."""
    def run(x: Any) -> Any:
        roll = framework.np.roll
        return framework.repeat(50, lambda x: 0.25 * (
            roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1)), x)

    return run


def stencil(framework: Framework) -> Function:
    """Fifty means of the four neighbours inside a border that stays."""
    def sweep(x: Any) -> Any:
        inner = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        if framework.name == "jax":
            return x.at[1:-1, 1:-1].set(inner)
        x = x.clone() if "torch" in framework.name else x.copy()
        x[1:-1, 1:-1] = inner
        return x

    return lambda x: framework.repeat(50, sweep, x)


def run(bench: Bench) -> list[Table]:
    rng = np.random.default_rng(0)
    points, centres = rng.standard_normal((100_000, 16)).astype("f4"), None
    centres = points[:32].copy()
    plane = rng.standard_normal((1024, 1024)).astype("f4")
    works = [
        Workload("k-means step, 100,000 x 16, 32 centres", kmeans, (points, centres),
                 flop=2 * points.size * 32),
        Workload("n-body, 1024", forces, (rng.standard_normal((1024, 3)).astype("f4"),
                                          rng.random(1024).astype("f4")), flop=19 << 20,
                 tolerance=1e-3),
        # As the sweeps of a block could stay in a cache, their bytes are no limit.
        Workload("stencil, 1024 x 1024, 50 sweeps", stencil, (plane,), flop=4 * 50 << 20)]
    if not bench.quick:
        works.append(Workload("rolled, 1024 x 1024, 50 sweeps", sweeps, (plane,),
                              flop=4 * 50 << 20))
    return [bench.compare("numerical programs", works)]
