"""Slices with computed ends that loops and branches carry: views of one array, whatever round it
is, and whichever way was taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([-1.0, -2.0, 2.0, 3.0, 5.0, 1.0])


def chosen_by_a_branch(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[k:]
    if x[0] > 0:
        a = x[1:k]
    return a


def shorter_in_each_round(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[k:]
    for _ in range(3):
        a = a[1:] if a.size > 1 else a
    return a


def written_in_rounds(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[:k]
    for i in range(3):
        a[i % 2] += 1
    return x, a


def until_it_is_large(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[k:k+2]
    while a.sum() < 20:
        a += 1
        a[0] *= 2
    return x, a


def turned_where_positive(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[1:k]
    for i in range(len(a)):
        if a[i] > 0:
            a[i] = -a[i]
    return x, a


def exchanged(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[1:k]
    b = x[k:]
    for i in range(min(len(a), len(b))):
        a[i], b[i] = b[i], a[i]
    return x, a, b


def written_backwards(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[1:k]
    for i in range(3):
        b = a[::-1]
        b[0] += i
    return x, a


def written_in_a_branch(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[1:k]
    if k > 2:
        a[0] = 7
    else:
        a[-1] = 3
    return x, a


def another_one_in_each_round(x: Any, k: Any) -> Any:
    x = x.copy()
    a = x[:k]
    for i in range(2):
        a = x[k:] if i else x[:k]
        a[0] += 1
    return x, a


def in_a_list(x: Any, k: Any) -> Any:
    x = x.copy()
    parts = [x[:k], x[k:]]
    for i in range(2):
        for part in parts:
            part += i
    return x, parts[0]


@pytest.mark.parametrize("function", [
    chosen_by_a_branch, shorter_in_each_round, written_in_rounds,
    until_it_is_large, turned_where_positive, exchanged,
    written_backwards, written_in_a_branch, another_one_in_each_round,
    in_a_list])
def test_slices_go_round(function: Callable[..., Any]) -> None:
    compiled = weft.compile(function, on_recompile="silent")
    for k in (3, 4, 2):
        want, got = function(X.copy(), k), compiled(X.copy(), np.int64(k))
        for one, other in zip(want if isinstance(want, tuple) else [want],
                              got if isinstance(want, tuple) else [got], strict=True):
            np.testing.assert_array_equal(one, other)
