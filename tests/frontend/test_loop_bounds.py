"""Gradients of loops that end after some rounds whatever they compute, as one of their numbers
shows: nobody has to say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([2.0, 1.0, 0.5])


def counted(x: Any) -> Any:
    n = 0
    while x.sum() > 1 and n < 3:
        x = x * x * 0.7
        n += 1
    return x.sum()


def counted_down(x: Any) -> Any:
    n = 30
    while n > 0 and np.abs(x).max() > 1e-3:
        x = np.sin(x) * 0.9
        n -= 2
    return x.sum()


def over_time(x: Any) -> Any:
    t = 0.0
    while t < 1.0:
        x = x + 0.1 * np.sin(x)
        t += 0.1
        if x.sum() > 4:
            break
    return x.sum()


def growing(x: Any) -> Any:
    k = 1
    while not (k >= 100 or x[0] > 9):
        x = x * 1.5
        k *= 2
    return (x * k).sum()


def newton(x: Any) -> Any:
    n, y = 0, x
    while True:
        new = 0.5 * (y + x / y)
        n += 1
        if np.abs(new - y).max() < 1e-9 or n >= 25:
            break
        y = new
    return new.sum()


def halved(x: Any) -> Any:
    def going(carry: Any) -> Any:
        return np.logical_and(carry[1] < 8, carry[0].sum() > 1)

    return weft.while_loop(going, lambda carry: (carry[0] * 0.5, carry[1] + 1), (x, 0))[0].sum()


@pytest.mark.parametrize("function", [counted, counted_down, over_time, growing, newton, halved])
def test_gradients(function: Callable[[Any], Any]) -> None:
    value, gradient = weft.compile(weft.value_and_grad(function))(X)
    plain = weft.compile(halved) if function is halved else function
    np.testing.assert_allclose(value, plain(X), rtol=1e-12)
    for at in range(3):
        step = 1e-6 * np.eye(3)[at]
        slope = (plain(X + step) - plain(X - step)) / 2e-6
        np.testing.assert_allclose(gradient[at], slope, rtol=1e-5, atol=1e-8)


def endless(x: Any) -> Any:
    n = 0
    while x.sum() > 1 or n < 3:  # goes on as long as x says
        x = x * 0.5
        n += 1
    return x.sum()


def moved_by_x(x: Any) -> Any:
    n = 0.0
    while n < 3:
        n += x[0]
    return n


def standing(x: Any) -> Any:
    n = 0
    while n < 3 and x.sum() > 1:
        x = x * 0.5
        n += 0
    return x.sum()


@pytest.mark.parametrize("function", [endless, moved_by_x, standing])
def test_loops_without_a_bound(function: Callable[[Any], Any]) -> None:
    with pytest.raises(weft.Error, match="W113: there is no gradient of a loop whose number of r"):
        weft.compile(weft.grad(function))(X)
