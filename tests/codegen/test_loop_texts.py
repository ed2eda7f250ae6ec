"""Texts of loops as they are compiled: what is in memory and what in registers, what is asked at
each round and what is not. Texts that are edited by hand give the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_kernel import run_native
from texts import without_places

import weft
from weft.ir.interp.kernel import run_kernel
from weft.ir.text.parser import parse_kernel
from weft.ir.text.printer import print_kernel, print_plan
from weft.ir.verify.verifier import verify_kernel

Golden = Callable[[str, str], None]


def cholesky(a: Any) -> Any:
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
    return a


def online_softmax(x: Any) -> Any:
    """The maximum so far, and the sum of exponentials below it, in one pass."""
    most, total = -np.inf, 0.0
    for i in range(x.size):
        above = np.maximum(most, x[i])
        total = total * np.exp(most - above) + np.exp(x[i] - above)
        most = above
    return most + np.log(total)


def positive_sum(x: Any) -> Any:
    return x[x > 0].sum()


def block_carry(x: Any) -> Any:
    """Columns that decay, a row at a time."""
    level = np.zeros(x.shape[1])
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        level = 0.9 * level + np.maximum(x[i], 0)
        out[i] = level
    return out


def common_divisor(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


def _filtered(x: Any) -> Any:
    """The energy behind a filter with one pole, which writes where the signal falls only."""
    y = np.zeros(x.size)
    for i in range(1, x.size):
        if x[i] < x[i - 1]:
            y[i] = 0.5 * y[i - 1] + x[i] * x[i]
        else:
            y[i] = y[i - 1]
    return (y * y).sum()


def slopes_of_a_filter(x: Any) -> Any:
    """A loop backwards, with what its rounds have saved."""
    return weft.grad(_filtered)(x)


def means_of_groups(keys: Any, values: Any) -> Any:
    """As many results as the largest key says."""
    sums = np.zeros(keys.max() + 1)
    np.add.at(sums, keys, values)
    return sums / np.bincount(keys)


M = np.random.default_rng(0).normal(size=(300, 80))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (cholesky, (M.T @ M + np.eye(80),)),
    "online_softmax": (online_softmax, (M[:, 0].copy(),)),
    "positive_sum": (positive_sum, (M[:, 0].copy(),)),
    "block_carry": (block_carry, (M[:150],)),
    "slopes_of_a_filter": (slopes_of_a_filter, (M[:, 0].copy(),)),
    "means_of_groups": (means_of_groups, (np.arange(300) % 7, M[:, 0].copy())),
    "common_divisor": (common_divisor, (832040, 514229)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name: str, golden: Golden) -> None:
    function, arguments = PROGRAMS[name]
    plan = weft.compile(target="x86-64-v3")(function).lower(*arguments).stages.after("loops").plan
    golden(without_places(print_plan(plan, kernels=True)), f"plans/{name}.plan")
    given = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    want = function(*given)
    np.testing.assert_allclose(weft.compile(function)(*arguments), want, rtol=1e-12)


def smoothed(a: Any, b: Any) -> Any:
    for _ in range(60):
        b[1:-1, 1:-1] = 0.25 * (a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = b[1:-1, 1:-1] * 0.5
    return a


@pytest.mark.parametrize(("old", "new"), [
    ("par j in 62 by 8192", "par j in 62 by 16"),
    ("vectorize j by 16", "vectorize j by 4"),
    ("vectorize j by 16", ""),
    ("par i in 62 by 1, par j in 62 by 8192", "par j in 62 by 5, par i in 62 by 7"),
    ("par i in 62 by 1", "seq i in 62 by 1"),
])
def test_a_text_that_is_edited(old: str, new: str) -> None:
    """Another tile, other vectors, another order of tasks."""
    a = np.random.default_rng(1).random((64, 64))
    plan = weft.compile(smoothed).lower(a, a.copy()).stages.plan
    text = next(text for text in map(print_kernel, plan.kernels.values())
                if text.count("= x0[") == 4)
    text = text.replace("vectorize j by 8", "vectorize j by 16")  # where vectors are half as wide
    assert old in text
    edited = parse_kernel(text.replace(old, new))
    verify_kernel(edited)
    found = []
    for run, kernel in ((run_native, parse_kernel(text)), (run_native, edited),
                        (run_kernel, edited)):
        b = a.copy()
        buffers = {param.name: a for param in kernel.params if not param.mutable}
        run(kernel, {**buffers, "y0": b}, {})
        found.append(b.tobytes())
    assert found[0] == found[1] == found[2]
