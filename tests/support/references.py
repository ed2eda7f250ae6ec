"""Layers in float64 loops over their definitions, and derivatives by differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

import weft

Array = np.ndarray[Any, Any]


def slope(function: Callable[[Any], Any], x: Any, eps: float = 1e-6) -> Any:
    """Central differences of a scalar function of one float64 array."""
    result = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += eps
        down[at] -= eps
        result[at] = (function(up) - function(down)) / (2 * eps)
    return result


def check(
    function: Callable[..., Any], args: tuple[Any, ...], wanted: Any, rtol: float = 1e-10
) -> None:
    """On arrays and traced, the values are those wanted; the gradient for the float64 arguments is
    the difference quotient along a direction."""
    plain = function(*args)
    assert np.shape(plain) == np.shape(wanted)
    np.testing.assert_allclose(plain, wanted, rtol=rtol, atol=1e-12)
    rng = np.random.default_rng(7)
    weights = rng.normal(size=np.shape(wanted))
    floats = [at for at, arg in enumerate(args) if np.result_type(arg) == np.float64]
    ways = [rng.normal(size=np.shape(args[at])) for at in floats]

    def loss(*args: Any) -> Any:
        return np.sum(function(*args) * weights)

    value, found = weft.value_and_grad(loss, argnums=tuple(floats))(*args)
    np.testing.assert_allclose(value, np.sum(wanted * weights), rtol=1e-9, atol=1e-11)

    def moved(by: float) -> Any:
        near = list(args)
        for at, way in zip(floats, ways, strict=True):
            near[at] = args[at] + by * way
        return loss(*near)

    # Four points, so that the error goes as the fourth power of the step.
    slope = (8 * (moved(1e-4) - moved(-1e-4)) - (moved(2e-4) - moved(-2e-4))) / 12e-4
    along = sum(np.sum(part * way) for part, way in zip(found, ways, strict=True))
    np.testing.assert_allclose(along, slope, rtol=1e-7, atol=1e-9)


def conv(x: Array, w: Array, stride: Any, pads: Any, dilation: Any, groups: int = 1) -> Array:
    """Convolution by its sum: x (N, C, *S), w (O, C / groups, *K)."""
    x = np.pad(x, ((0, 0), (0, 0), *pads))
    sizes = [(dim - (k - 1) * d - 1) // s + 1 for dim, k, d, s in zip(
        x.shape[2:], w.shape[2:], dilation, stride, strict=True)]
    y = np.zeros((len(x), len(w), *sizes))
    made, taken = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        channels = slice(o // made * taken, o // made * taken + taken)
        for place in product(*map(range, sizes)):
            window = x[:, channels][(..., *(
                slice(at * s, at * s + (k - 1) * d + 1, d)
                for at, s, k, d in zip(place, stride, w.shape[2:], dilation, strict=True)))]
            y[:, o][(..., *place)] = np.sum(window * w[o], axis=tuple(range(1, x.ndim)))
    return y


def pool(x: Array, window: Any, stride: Any, pads: Any, reduce: Any, value: float) -> Array:
    """A reduction of every window: x (N, C, *S)."""
    x = np.pad(x, ((0, 0), (0, 0), *pads), constant_values=value)
    sizes = [(dim - k) // s + 1 for dim, k, s in zip(x.shape[2:], window, stride, strict=True)]
    y = np.zeros((*x.shape[:2], *sizes))
    for place in product(*map(range, sizes)):
        y[(..., *place)] = reduce(x[(..., *(
            slice(at * s, at * s + k) for at, s, k in zip(place, stride, window, strict=True)))],
            axis=tuple(range(2, x.ndim)))
    return y


def log_softmax(x: Array) -> Array:
    """Along the last axis."""
    out: Array = x - x.max(-1, keepdims=True)
    return out - np.log(np.exp(out).sum(-1, keepdims=True))


def sigmoid(x: Array) -> Array:
    out: Array = 1 / (1 + np.exp(-x))
    return out
