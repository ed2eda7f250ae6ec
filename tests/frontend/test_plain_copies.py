"""Copies of plain arrays around the function, made by their methods, that hold traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

TABLE = np.arange(12.0).reshape(3, 4)
X, PLACE = np.arange(4.0) + 0.5, np.int64(2)


class Owner:
    def __init__(self) -> None:
        self.weights = np.ones(4)


OWNER = Owner()


def a_row(x: Any, i: Any) -> Any:
    t = TABLE.copy()
    t[i] = x
    return t, TABLE.sum()


def of_an_object(x: Any, i: Any) -> Any:
    w = OWNER.weights.copy()
    w[0] += x[0]
    w[i] = 2
    return w


def converted(x: Any, i: Any) -> Any:
    t, flat = TABLE.astype(np.float32), TABLE.flatten()
    t[1, i] = 4
    flat[i] = x[0]
    return t, flat


def sizes_stay_known(x: Any, i: Any) -> Any:
    t = TABLE.copy()
    return np.zeros(int(t[0, 1]) + t.shape[0]) + x[0], t


def rows_change_places(x: Any, i: Any) -> Any:
    t = TABLE.copy()
    t[[0, i]] = t[[i, 0]]
    return t + x


def results_of_reductions(x: Any, i: Any) -> Any:
    sums = TABLE.sum(axis=0)
    sums[i] = x[1]
    return sums, TABLE.max()


def sorted_and_filled(x: Any, i: Any) -> Any:
    t = TABLE.copy()
    t.sort(axis=0)
    t.fill(2)
    t[0, 0] = x[0]
    return t


def in_a_branch(x: Any, i: Any) -> Any:
    t = TABLE.copy()
    if x[0] > 0:
        t[i, 0] = 9
    else:
        t[0] = x
    return t


@pytest.mark.parametrize("function", [
    a_row, of_an_object, converted, sizes_stay_known, rows_change_places, results_of_reductions,
    sorted_and_filled, in_a_branch])
def test_agrees_with_numpy(function: Callable[..., Any]) -> None:
    before = TABLE.copy()
    for x in (X, -X):
        found, wanted = weft.compile(function)(x, PLACE), function(x, PLACE)
        for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(TABLE, before)
    np.testing.assert_array_equal(OWNER.weights, np.ones(4))


def test_the_array_itself_is_not_written() -> None:
    def function(x: Any) -> Any:
        TABLE[0] = x
        return x

    with pytest.raises(weft.Error, match=r"W203.*an array from around the"):
        weft.compile(function, inout="error")(X)
