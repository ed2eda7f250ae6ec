"""What a round writes to a few elements costs what it touches, however large the array is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.plans.plan import Launch, Loop, all_steps


def one(c: Any, x: Any, n: int) -> Any:
    for k in range(n):
        c[2] += x[k]
    return c


def some(c: Any, x: Any, n: int) -> Any:
    for k in range(n):
        c[2] += x[k]
        c[3:7:2] = c[4:6] * 0.5 + x[k]
        c[0] = c[6] - c[2]
    return c


def filled(c: Any, x: Any, n: int) -> Any:
    for k in range(n):
        c[1:3] = 0
        c[4] += x[k] + c[1]
    return c


def in_branches(c: Any, x: Any, n: int) -> Any:
    for k in range(n):
        if x[k] > 0:
            c[5] += x[k]
        else:
            c[6] -= 1
    return c


def of_rows(c: Any, x: Any, n: int) -> Any:
    m = c.reshape(10, -1)
    for k in range(n):
        m[1, 3:5] += x[k]
        m[2:4, 0] = m[0, 1:3]
        m[9] = m[8] + 1
    return c


@pytest.mark.parametrize("function", [one, some, filled, in_branches, of_rows])
def test_a_round_costs_what_it_touches(function: Callable[..., Any]) -> None:
    x = np.random.default_rng(2).normal(size=20)
    c = np.arange(1000.0)
    plan = weft.compile(function).lower(c, x, 3).stages.plan
    (loop,) = [step for step in plan.steps if isinstance(step, Loop)]
    rounds = [*loop.test, *loop.body]
    launched = [plan.kernels[step.kernel] for step in all_steps(rounds)
                if isinstance(step, Launch)]
    most = 100 if function is of_rows else 2
    assert max(max((axis.extent for axis in kernel.axes), default=1)  # type: ignore[type-var]
               for kernel in launched) <= most
    for n in (0, 1, 20):
        got, want = c.copy(), c.copy()
        np.testing.assert_array_equal(
            weft.compile(function)(got, x, n), function(want, x, n))
        np.testing.assert_array_equal(got, want)
        kept = c.copy()  # which nobody may write to
        weft.compile(lambda c, x, n: function(c.copy(), x, n))(kept, x, n)
        np.testing.assert_array_equal(kept, c)
