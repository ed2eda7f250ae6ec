"""Programs of about n operations, for any n: compile time grows with them, and no faster.

Each takes n and gives a function of two vectors of 64 numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft

Function = Callable[..., Any]


def chain(count: int) -> Function:
    def run(x: Any, y: Any) -> Any:
        for at in range(count // 2):
            x = np.tanh(x * y if at % 2 else -x)
        return x

    return run


def ladder(count: int) -> Function:
    """Every value has two readers, so there are 2 ** n paths."""
    def run(x: Any, y: Any) -> Any:
        for _ in range(count // 2):
            x, y = x + y, x * y
        return x

    return run


def wide(count: int) -> Function:
    def run(x: Any, y: Any) -> Any:
        parts = [np.tanh(x + at) if at % 2 else x * y - at for at in range(count // 3)]
        while len(parts) > 1:
            rest = parts[-1:] if len(parts) % 2 else []
            parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
        return parts[0]

    return run


def contractions(count: int) -> Function:
    def run(x: Any, y: Any) -> Any:
        h, w = x.reshape(8, 8), y.reshape(8, 8)
        for _ in range(count // 2):
            h = np.tanh(h @ w)
        return h

    return run


def gathers(count: int) -> Function:
    """Equal kernels whose failed checks stand for lines of their own."""
    def run(x: Any, y: Any) -> Any:
        at = y.astype(np.int64)
        for _ in range(count // 2):
            x = x[at] * 1.5
        return x

    return run


def simulation(count: int) -> Function:
    """Runge and Kutta's method on the equations of Lorenz, all steps written out."""
    def slope(s: Any) -> Any:
        return np.stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - s[2] * 2.6])

    def run(x: Any, y: Any) -> Any:
        s = x[:3]
        for _ in range(count // 100):
            a = slope(s)
            b = slope(s + 0.005 * a)
            c = slope(s + 0.005 * b)
            d = slope(s + 0.01 * c)
            s = s + 0.01 / 6 * (a + 2 * b + 2 * c + d)
        return s

    return run


def layers(count: int) -> Function:
    """Matrix products, reductions and their gradients, as in a deep network."""
    def forward(x: Any, y: Any) -> Any:
        h = x.reshape(8, 8)
        w = y.reshape(8, 8)
        for _ in range(count // 10):
            h = weft.nn.softmax(h @ w) + h
        return h.sum()

    def function(x: Any, y: Any) -> Any:
        return weft.value_and_grad(forward, argnums=(0, 1))(x, y)

    return function


def steps(count: int) -> Function:
    """Views between all operations: slices, transposes, concatenations."""
    def function(x: Any, y: Any) -> Any:
        for at in range(count // 5):
            a, z = x[:32], x[32:]
            x = np.concatenate([z * y[32:], a + y[:32]]).reshape(8, 8).T.reshape(-1)
            if at % 8 == 7:
                x = x / x.sum()
        return x

    return function


def scattered(count: int) -> Function:
    """A buffer that is written and read at places in no order."""
    order = np.random.default_rng(0).permutation(count // 4)

    def function(x: Any, y: Any) -> Any:
        buffer = np.zeros(count // 4, np.float32)
        for at, place in enumerate(order):
            buffer[place] = buffer[order[at // 2]] * 0.5 + x[at % 64]
        return buffer

    return function


def versions(count: int) -> Function:
    """A buffer of which something is asked for after each write."""
    order = np.random.default_rng(0).permutation(count // 6).tolist()

    def function(x: Any, y: Any) -> Any:
        buffer, total = np.zeros(count // 6, np.float32), 0.0
        for at, place in enumerate(order):
            buffer[place] = x[at % 64] * 0.5
            total = total + buffer[max(0, place - 2):place + 3].sum()
        return buffer, total

    return function
