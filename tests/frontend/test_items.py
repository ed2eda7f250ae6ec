"""Items of lists at places that are not known before the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy_samples import agree

import weft

X = np.arange(6.0)


def counted(x: Any) -> Any:
    counts = [0, 0, 0]
    for v in x:
        counts[int(v) % 3] += 1
        if v > 2:
            counts[int(v) - 6] -= 10
    return counts[0], counts[1], counts[2]


def stored(x: Any) -> Any:
    best = [0.0, 0.5, 0.0]
    best[np.argmax(x) % 3] = x[1] * 5
    best[-1] += 1
    return np.array(best)


def arrays(x: Any) -> Any:
    rows = [np.zeros(2), np.ones(2)]
    rows[int(x[1])] = x[:2]
    return np.stack(rows)


def at_known_places(x: Any) -> Any:
    stack, table = [], {"a": 1.0}
    for v in x[:3]:
        stack.append(v)
    if x[0] > 1:
        stack[0] = 9.0
    table["a"] += x[0]
    y = x.copy()
    y[1:3] = 0
    y[0] += 2
    return stack[0] + table["a"] + y.sum()


@pytest.mark.parametrize("function", [counted, stored, arrays, at_known_places])
@pytest.mark.parametrize("x", [X, X[::-1].copy(), np.array([2, 1, 5, 0, 3, 3.0])])
def test_written(function: Callable[[Any], Any], x: Any) -> None:
    if function is arrays and x[1] > 1:
        x = x * 0
    agree(weft.compile(function)(x), function(x), 0)


def test_beyond_the_end() -> None:
    def function(i: Any) -> Any:
        items = [1, 2, 3]
        items[int(i)] = 5
        return np.array(items)

    compiled = weft.compile(function)
    for i in (2.0, -3.0):
        agree(compiled(i), function(i), 0)
    for i in (3.0, -4.0):
        with pytest.raises(IndexError):
            compiled(i)


def test_one_of_several_arrays_is_not_written_to_in_their_place() -> None:
    def function(x: Any) -> Any:
        rows = [np.zeros(2), np.ones(2)]
        rows[int(x[1])][0] = 7
        return rows[0] + rows[1]

    with pytest.raises(weft.Error, match="W203: whether"):
        weft.compile(function)(X)


@pytest.mark.long
def test_one_of_several_arrays_in_a_loop() -> None:
    def function(x: Any) -> Any:
        rows = [np.zeros(2), np.ones(2)]
        return weft.scan(lambda total, v: (total + rows[v], None), np.zeros(2), x)[0]

    i = np.array([0, 1, 1])
    np.testing.assert_array_equal(weft.compile(function)(i), [2, 2])
