"""Gradients of loops that store: loops the other way, whose rounds cost what they touch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.plans.plan import Copy, Group, KernelCall, Loop, Step, all_steps

N = 600  # rounds enough to be a loop of the program


def recurrence(x: Any, p: Any) -> Any:
    y = np.zeros(x.size)
    for i in range(1, x.size):
        y[i] = 0.5 * y[i - 1] + np.sin(x[i])
    return y


def rows(x: Any, p: Any) -> Any:
    y = np.zeros((x.size, 3))
    for i in range(1, x.size):
        y[i] = np.tanh(y[i - 1]) + x[i]
    return y


def ways(x: Any, p: Any) -> Any:
    y, z = np.zeros(x.size), np.zeros(x.size)
    for i in range(1, x.size):
        if x[i] > 0.0:
            y[i] = y[i - 1] * x[i]
        else:
            z[i] = z[i - 1] - x[i]
            y[i] = z[i - 1]
    return y, z


def nested(x: Any, p: Any) -> Any:
    a = x[:24] * x[24:48, None]
    y = np.zeros((24, 24))
    for i in range(1, 24):
        for j in range(1, 24):
            y[i, j] = 0.5 * y[i - 1, j] + 0.25 * y[i, j - 1] + a[i, j] ** 2
    return y


def aligned(x: Any, p: Any) -> Any:
    """Two signals along each other (soft dynamic time warping, Cuturi and Blondel 2017)."""
    a, b = x[:24], x[24:48]
    cost = np.zeros((25, 25))
    for i in range(24):
        for j in range(24):
            cost[i + 1, j + 1] = (a[i] - b[j]) ** 2 - np.log(
                np.exp(-cost[i, j]) + np.exp(-cost[i, j + 1]) + np.exp(-cost[i + 1, j]))
    return cost[24, 24]


def swapped(x: Any, p: Any) -> Any:
    y = x.copy()
    for i in range(y.size):
        y[i], y[p[i]] = y[p[i]], y[i] * x[i]
    return y


def places(x: Any, p: Any) -> Any:
    """Of which some are the same one, some from the end."""
    y = np.zeros(x.size)
    for i in range(1, x.size - 1):
        y[p[i - 1:i + 2] // 100 - 3] += x[i] * 0.25
    return y


def overwritten(x: Any, p: Any) -> Any:
    """The last one stays where places are the same."""
    y = np.zeros(x.size)
    for i in range(1, x.size - 1):
        y[p[i - 1:i + 2] // 100 - 3] = x[i - 1:i + 2] * y[i]
        y[i] = x[i]
    return y


def blocks(x: Any, p: Any) -> Any:
    y = np.zeros((x.size + 4, 8))
    for i in range(x.size):
        y[i:i + 4, 2:6] += x[i] * x[i]
    return y


def roots(x: Any, p: Any) -> Any:
    """Of what is overwritten, where the root has no slope."""
    y = np.zeros(x.size)
    for i in range(1, x.size):
        y[i] = np.sqrt(y[i])
        y[i] = abs(x[i]) + 0.5 * y[i - 1]
    return y


def counted(x: Any, p: Any) -> Any:
    y, i = np.zeros(x.size), 1
    while i < x.size and y[i - 1] < 1e300:
        y[i] = 0.5 * y[i - 1] + x[i] ** 2
        i += 1
    return y


def segments(x: Any, p: Any) -> Any:
    """Whose ends are computed; some have no elements."""
    ends = np.sort(p[::7])
    y = x.copy()
    for i in range(ends.size - 1):
        y[ends[i]:ends[i + 1]] -= y[ends[i]:ends[i + 1]].sum() * 0.01
    return y


def scaled_segments(x: Any, p: Any) -> Any:
    """Of which each round has to keep what it scales."""
    ends = np.sort(p[::7])
    y = x.copy()
    for i in range(ends.size - 1):
        y[ends[i]:ends[i + 1]] *= 0.5 + y[ends[i]:ends[i + 1]].sum() * 0.01
    return y


FORMS = [recurrence, rows, ways, nested, swapped, places, overwritten, blocks, roots, counted,
         segments]


def arguments(n: int = N) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    return rng.standard_normal(n), rng.integers(0, n, n)


def loss(function: Callable[..., Any]) -> Callable[..., Any]:
    def of(x: Any, p: Any) -> Any:
        results = function(x, p)
        return sum((each * each).sum() for each in (
            results if isinstance(results, tuple) else (results,)))

    return of


@pytest.mark.parametrize("n", [48, N])
@pytest.mark.parametrize("function", [*FORMS, aligned, scaled_segments])
def test_gradients_are_slopes(function: Callable[..., Any], n: int) -> None:
    """Of rounds that are traced one by one, where there are few, too."""
    x, p = arguments(n)
    of = loss(function)
    found = weft.compile(weft.grad(of))(x, p)
    way = np.random.default_rng(5).standard_normal(n)
    step = 1e-6
    slope = (of(x + step * way, p) - of(x - step * way, p)) / (2 * step)
    np.testing.assert_allclose(found @ way, slope, rtol=1e-5, atol=1e-7)


def in_rounds(steps: Iterable[Step]) -> list[Step]:
    return [inner for step in all_steps(steps) if isinstance(step, Loop)
            for inner in all_steps(step.body)]


@pytest.mark.parametrize("function", FORMS)
def test_no_round_touches_a_whole_array(function: Callable[..., Any]) -> None:
    x, p = arguments()
    plan = weft.compile(weft.grad(loss(function))).lower(x, p).stages.after("loops").plan
    rounds, types = in_rounds(plan.steps), plan.types()
    assert rounds and all(step.source.indices or types[step.source.buffer].size < 24
                          for step in rounds if isinstance(step, Copy))
    for step in rounds:
        for launch in step.launches if isinstance(step, Group) else (step,):
            if isinstance(launch, KernelCall):
                assert all(axis.extent < 24 or axis.low for axis in launch.kernel.axes)
