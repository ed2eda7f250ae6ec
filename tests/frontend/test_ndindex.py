"""Loops over the places of arrays: np.ndindex and np.ndenumerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft

X = np.random.default_rng(0).random((20, 20))


def by_pairs(x: Any) -> Any:
    y = x.copy()
    for i, j in np.ndindex(*x.shape):
        if y[i, j] > 0.5:
            y[i, j] = y[i, j - 1] * 2
        else:
            y[i, j] += 1
    return y


def by_places(x: Any) -> Any:
    y = x.copy()
    for place in np.ndindex(x.shape):
        if y[place] > 0.5:
            y[place] *= 2
    return y


def by_elements(x: Any) -> Any:
    total = 0.0
    for (i, j), value in np.ndenumerate(x):
        if value > 0.5:
            total += value * i - j
    return total


def of_none(x: Any) -> Any:
    total = x[0, 0]
    for _ in np.ndindex():
        total += 1
    for _ in np.ndindex(2, 0):
        total += 100
    for (i,) in np.ndindex(3):
        if x[i, 0] > 0.2:
            total += i
    return total


@pytest.mark.parametrize("function", [by_pairs, by_places, by_elements, of_none])
@pytest.mark.parametrize("size", [(20, 20), (3, 4)])
def test_places(function: Callable[[Any], Any], size: tuple[int, int]) -> None:
    x = X[:size[0], :size[1]]
    np.testing.assert_allclose(weft.compile(function)(x), function(x), rtol=1e-12)


@pytest.mark.parametrize("function", [by_pairs, by_places, by_elements])
def test_sizes_that_are_not_known(function: Callable[[Any], Any]) -> None:
    compiled = weft.compile(function, dynamic={"x": {0: "n", 1: "m"}})
    for n, m in ((3, 4), (5, 2), (1, 7)):
        np.testing.assert_allclose(compiled(X[:n, :m]), function(X[:n, :m]), rtol=1e-12)


def test_many_places_are_one_loop() -> None:
    graph = without_notes(weft.compile(by_pairs).lower(X).as_text("trace"))
    assert graph.count("cond") < 20


def test_gradients() -> None:
    found = weft.compile(weft.grad(by_elements))(X)
    np.testing.assert_array_equal(found, np.where(X > 0.5, np.arange(20.0)[:, None], 0))
