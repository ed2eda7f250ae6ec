"""What is stacked along a last axis of a few: all are stored at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "last": lambda x, y: np.stack([x, y], -1), "middle": lambda x, y: np.stack([x, y], 1),
    "joined": lambda x, y: np.concatenate([x[..., None], y[..., None]], -1),
    "turned": lambda x, y: np.stack([x.T, y.T], -1),
    "parts": lambda x, y: np.stack([x[:, :5], y[:, 5:10]], -1).reshape(-1),
    "rows": lambda x, y: np.stack([x[0], y[1]], -1),
    "every second": lambda x, y: np.stack([x, y], -1)[:, ::2],
    "padded": lambda x, y: np.stack([np.pad(x, 1), np.pad(y, 1)], -1),
    "three": lambda x, y: np.stack([x, y, x + y], -1),
    "four": lambda x, y: np.stack([x, y, x + y, y], -1),
    "five": lambda x, y: np.stack([x, y, x + y, y, x], -1),
    "three turned": lambda x, y: np.stack([x.T, y.T, x.T], -1)[::2],
    "grid": lambda x, y: np.stack(np.meshgrid(x[0], y[1]), -1),
}


@pytest.mark.parametrize("target", ["x86-64-v3", None])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "?", "c8"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_as_numpy(name: str, dtype: str, target: str | None) -> None:
    rng = np.random.default_rng(0)
    x, y = ((3 * rng.normal(size=(7, 33))).astype(dtype) for _ in range(2))
    found = weft.compile(FUNCTIONS[name], target=target)(x, y)
    np.testing.assert_array_equal(found, FUNCTIONS[name](x, y))
    assert found.dtype == x.dtype


@pytest.mark.parametrize("count", [2, 3, 4])
def test_all_are_stored_by_one_task(count: int) -> None:
    """There is no axis of so many, no guard, and nothing is chosen."""
    x = np.zeros((40, 100))
    lowered = weft.compile(lambda x: np.stack([x + at for at in range(count)], -1)).lower(x)
    (kernel,) = lowered.stages.plan.kernels.values()
    assert all(axis.extent != count for axis in kernel.axes)
    words = [type(stmt).__name__ for stmt in kernel.body]
    assert words.count("Store") == count and "Index" not in words
    assert "scatter" not in lowered.as_text("llvm")
