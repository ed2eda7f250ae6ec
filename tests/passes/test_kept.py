"""What kernels keep for later ones, and what those compute again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

ROWS, WIDTH = 64, 256  # of arrays that are large enough
SIZE = ROWS * WIDTH

rng = np.random.default_rng(0)
X, W, V = (rng.normal(size=shape).astype(np.float32) / 8
           for shape in ((ROWS, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH)))
G = np.ones(WIDTH, np.float32)


def kept(function: Callable[..., Any], *args: Any) -> list[int]:
    """The number of large arrays that each kernel stores."""
    plan = weft.compile(function).lower(*args).stages.plan
    return [sum(param.mutable and param.type.size == SIZE for param in kernel.params)
            for kernel in plan.kernels.values()]


def check(function: Callable[..., Any], *args: Any) -> None:
    """Bits are those of a program in which nothing is fused."""
    leaves = weft.tree.flatten(weft.compile(function)(*args))[0]
    alone = weft.tree.flatten(weft.compile(function, opt=0)(*args))[0]
    for one, other in zip(leaves, alone, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def gelu_gradient(x: Any, w: Any, v: Any) -> Any:
    def loss(w: Any, v: Any) -> Any:
        return np.sum((weft.nn.gelu(x @ w, approximate="tanh") @ v) ** 2)

    return weft.grad(loss, (0, 1))(w, v)


def norm_gradient(x: Any, w: Any, g: Any) -> Any:
    def loss(w: Any, g: Any) -> Any:
        return np.sum((weft.nn.layer_norm(x @ w, g) @ w) ** 2)

    return weft.grad(loss, (0, 1))(w, g)


def test_of_gelu_its_argument_the_tangent_and_the_result_are_kept() -> None:
    """The result as a product reads it; half of it, its square and the like are computed again."""
    assert max(kept(gelu_gradient, X, W, V)) == 3
    check(gelu_gradient, X, W, V)


def test_of_a_norm_its_argument_and_what_a_product_reads_are_kept() -> None:
    assert max(kept(norm_gradient, X, W, G)) <= 3
    check(norm_gradient, X, W, G)


def test_results_are_kept() -> None:
    def function(x: Any, w: Any) -> Any:
        y = x @ w
        half = y * 0.5
        total = np.sum(half, 0)
        return half, np.cumsum(total) @ np.tanh(half + 1.0).T

    check(function, X, W)
    assert sum(kept(function, X, W)) >= 1


@pytest.mark.parametrize("depth", [1, 4, 9, 40])
def test_long_chains_are_not_computed_again_and_again(depth: int) -> None:
    """What costs more than to store it is stored."""
    def function(x: Any, w: Any) -> Any:
        y = x @ w
        for at in range(depth):
            y = y * 1.5 - float(at)
        top = np.cumsum(np.max(y, 0))
        return np.sum(np.exp(y - top), 1)

    check(function, X, W)


def test_named_sizes() -> None:
    wanted = weft.compile(gelu_gradient)(X, W, V)
    named = weft.compile(gelu_gradient, dynamic={"x": {0: "b"}})
    for one, other in zip(named(X, W, V), wanted, strict=True):
        assert one.tobytes() == other.tobytes()


def test_small_arrays_are_kept_as_they_are() -> None:
    """To load them is nothing."""
    assert max(kept_small(X[:8, :16].copy(), W[:16, :16].copy(), V[:16, :16].copy())) > 3


def kept_small(x: Any, w: Any, v: Any) -> list[int]:
    plan = weft.compile(gelu_gradient).lower(x, w, v).stages.plan
    return [sum(param.mutable and param.type.size == x.size for param in kernel.params)
            for kernel in plan.kernels.values()]
