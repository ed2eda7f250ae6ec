"""List comprehensions that would draw much are loops of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 40))
IDX = RNG.integers(0, 40, (300, 40))


def correlation(a: Any, b: Any) -> Any:
    return np.corrcoef(a, b)[0, 1]


def bootstrapped(x: Any, y: Any, idx: Any) -> Any:
    boots = np.array([correlation(x[i], y[i]) for i in idx])
    return boots.mean(), max([np.var(x[i]) for i in idx]), np.quantile(boots, 0.9), len(boots)


def left_out(x: Any, y: Any, idx: Any) -> Any:
    n = len(x)
    every = [correlation(x[np.arange(n) != i], y[np.arange(n) != i]) for i in range(n)]
    return every, sum(every), max(every), every[3], len(every)


def appended(x: Any, y: Any, idx: Any) -> Any:
    every = [correlation(x[i], y[i]) for i in idx]
    other = every
    other.append(x[0])
    return np.array(every), len(other)


def paired(x: Any, y: Any, idx: Any) -> Any:
    return np.array([np.stack([x[i] * 2, y[i]]).sum(1) * w
                     for i, w in zip(idx, x[idx[:, 0]], strict=False)])


def of_several_shapes(x: Any, y: Any, idx: Any) -> Any:
    return [np.sum(x[:k] * y[:k]) for k in range(30)], [x[:k].std() for k in range(1, 30)]


def viewed(x: Any, y: Any, idx: Any) -> Any:
    """Items are views of an array, which are written to by way of the list."""
    a = np.outer(x, y)
    rows = [row[:3] for row in a]
    for row in rows:
        row -= row.mean()
    rows[3][0] = 5
    return a, isinstance([correlation(x[i], y[i]) for i in idx], list)


def listed_again(x: Any, y: Any, idx: Any) -> Any:
    """What keeps its items is given views."""
    a = np.outer(np.arange(300.0), x)
    rows = tuple([row[1:][1:][:9] for row in a])
    rows[3][0] = 5
    return a, np.array([correlation(x[i], y[i]) for i in idx])


def beside_a_loop(x: Any, y: Any, idx: Any) -> Any:
    """One of the two cannot be a loop of the program."""
    parts = [x[:k] * y[:k] + x[1] * y[k] - np.sin(x[k]) for k in range(1, 35)]
    boots = np.array([correlation(x[i], y[i]) for i in idx])
    return parts, boots


@pytest.mark.parametrize("function", [
    beside_a_loop, viewed, listed_again, bootstrapped, left_out, appended, paired,
    of_several_shapes])
def test_like_numpy(function: Any) -> None:
    compiled = weft.compile(function)
    got, want = compiled(X, Y, IDX), function(X, Y, IDX)
    assert weft.tree.structure(got) == weft.tree.structure(want)
    for one, other in zip(weft.tree.leaves(got), weft.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, 1e-9)
        assert isinstance(one, type(other))


def test_rounds_are_drawn_once() -> None:
    text = weft.compile(bootstrapped).lower(X, Y, IDX).as_text("trace")
    assert len(text.splitlines()) < 500


def test_extremes_of_lists_are_numbers() -> None:
    def function(x: Any) -> Any:
        chosen = [each for each in x if each > 0]
        return max(chosen), min(chosen)

    for each in weft.compile(function)(X):
        assert isinstance(each, np.float64)
