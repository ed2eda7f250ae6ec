"""Elements under a mask that is there before a loop are an array in it, which is made once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.plans.plan import Measure, all_steps


def votes(edges: Any, th: Any) -> Any:
    ys, xs = np.nonzero(edges)
    acc = np.zeros((400, len(th)), dtype=np.int64)
    for t in range(len(th)):
        rho = np.round(xs * np.cos(th[t]) + ys * np.sin(th[t])).astype(int) + 200
        np.add.at(acc[:, t], rho, 1)
    return acc


def written_in_rounds(edges: Any, th: Any) -> Any:
    x = th[th > 0]
    y = x
    total = 0.0
    for t in range(len(th)):
        y[0] += th[t]
        total += x.sum() + x[0]
    return total, x


def written_between(edges: Any, th: Any) -> Any:
    x, total = th[th > 0], 0.0
    for t in range(len(th)):
        total += (x * th[t]).sum()
    x[:2] = 7
    for t in range(len(th)):
        total += (x * th[t]).max() + x[1] + len(x)
    return total


def as_an_index(edges: Any, th: Any) -> Any:
    at, out = np.flatnonzero(th > 0), np.zeros_like(th)
    for t in range(5):
        out[at] += th[at] * t
        out = np.roll(out, 1)
    return out, at


def on_ways(edges: Any, th: Any) -> Any:
    x, total = th[th > 0], 0.0
    for t in range(len(th)):
        if th[t] > 0.5:
            total += np.sort(x)[0] * th[t]
        elif t > 3:
            total -= x.mean()
    return total


RNG = np.random.default_rng(0)
ARGS = RNG.random((30, 40)) < 0.05, np.linspace(-1.5, 1.5, 20)


@pytest.mark.parametrize("function", [
    votes, written_in_rounds, written_between, as_an_index, on_ways])
def test_like_numpy(function: Any) -> None:
    compiled = weft.compile(function)
    for th in (ARGS[1], -ARGS[1] + 0.1, np.abs(ARGS[1])):
        for got, want in zip(weft.tree.leaves(compiled(ARGS[0], th)),
                             weft.tree.leaves(function(ARGS[0], th.copy())), strict=True):
            np.testing.assert_allclose(got, want, 1e-12)


def test_it_is_made_once() -> None:
    steps = weft.compile(votes).lower(*ARGS).stages.plan.steps
    assert sum(isinstance(step, Measure) for step in steps) == 1
    assert sum(isinstance(step, Measure) for step in all_steps(steps)) == 1


def test_gradients_go_through() -> None:
    def loss(x: Any, w: Any) -> Any:
        y, total = x[x > 0], 0.0
        for t in range(6):
            total = total + (y * w[t]).sum() ** 2
        return total

    x, w = RNG.normal(size=15), RNG.normal(size=6)
    want = np.where(x > 0, 2 * x[x > 0].sum() * (w ** 2).sum(), 0)
    np.testing.assert_allclose(weft.compile(weft.grad(loss))(x, w), want, 1e-12)
