"""Views of arrays that were made before a branch or a loop, read and written in its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

A = np.arange(30.0)
M = np.arange(81.0).reshape(9, 9)
I2, I5 = np.int64(2), np.int64(5)


def rows_of_a_buffer(a: Any) -> Any:
    n = len(a)
    dp = np.zeros((n + 1, n + 1))
    for i in range(n):
        up = dp[i]
        row = dp[i + 1]
        for j in range(n):
            if a[i] % 3 == a[j] % 4:
                row[j + 1] = up[j] + 1
            else:
                row[j + 1] = max(up[j + 1], row[j])
    return dp


def bound_on_one_way(a: Any) -> Any:
    dp = np.zeros((len(a), 3))
    for i in range(len(a)):
        if a[i] > 3:
            row = dp[i]
            row[0] = a[i]
    return dp


def in_a_while(a: Any) -> Any:
    dp, k = np.zeros((4, 3)), 0
    while a[k] < 3:
        row = dp[k]
        row[k] = 2
        k += 1
    return dp, k


def only_read(a: Any) -> Any:
    table, k = np.array([[3, 1], [4, 1], [5, 9]]), 0
    while a[k] < 2:
        k += table[k][1]
    return np.ones(table[0, 0]) * a[k]


def read_on_both_ways(a: Any) -> Any:
    dp = np.zeros((4, 4))
    up = dp[1]
    dp[0], dp[1] = a[:4], a[4:8]
    y = up[0] + 1 if a[0] > 0 else up[2]
    if a[1] > 0:
        z = up[0] * 2
    else:
        z = up[1]
        z = z + up[3]
    return y, z, up


def stale_before_the_branch(m: Any, i: Any) -> Any:
    m = m.copy()
    up = m[i]
    m[i, 0] = 7
    if m[i, 1] > 30:
        z = up[0]
    else:
        z = up[0] + 1
        z = z * up[2]
    return m, up, z


def rows_of_rounds(m: Any, i: Any) -> Any:
    m = m.copy()
    up, row = m[i], m[i + 1]
    for j in range(9):
        if m[i, j] > 30:
            row[1] = up[0] + j
        else:
            row[j] = up[1] + 2
    return m, up, row


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{function.__name__: (function, (A,)) for function in (
        rows_of_a_buffer, bound_on_one_way, in_a_while, only_read, read_on_both_ways)},
    **{f"{function.__name__} {at}": (function, (M, at))
       for function in (stale_before_the_branch, rows_of_rounds) for at in (I2, I5)}}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("named", [False, True])
def test_agrees_with_numpy(name: str, named: bool) -> None:
    function, args = PROGRAMS[name]
    first = {"a": {0: "n"}} if len(args) == 1 else {"m": {0: "n", 1: "k"}}
    compiled = weft.compile(function, dynamic=first) if named else weft.compile(function)
    found, wanted = compiled(*args), function(*args)
    for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
