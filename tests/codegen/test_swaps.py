"""Elements and rows that change places: what is read of an array before a store, or before a loop
or a branch that stores, is read before it, and no array is copied for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.plans.plan import Copy, all_steps


def rows(a: Any, p: Any) -> Any:
    for k in range(a.shape[0]):
        q = p[k]
        for j in range(a.shape[1]):
            t = a[k, j]
            a[k, j] = a[q, j]
            a[q, j] = t
    return a


def shuffled(a: Any, p: Any) -> Any:
    """The first element against another one, in each row."""
    for k in range(a.shape[0]):
        first = a[k, 0]
        a[k, 0] = a[k, p[k]]
        a[k, p[k]] = first
        a[k, 1] = first + a[k, 0]
    return a


def pivoted(a: Any, p: Any) -> Any:
    """Gaussian elimination with partial pivoting, element by element."""
    n = p.size
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[best, k]):
                best = i
        if best != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[best, j]
                a[best, j] = t
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
    return a


def inserted(a: Any, p: Any) -> Any:
    """Insertion sort of each row: what is inserted is read before the loop that makes room."""
    for k in range(p.size):
        for i in range(1, p.size):
            key, j = a[k, i], i - 1
            while j >= 0 and a[k, j] > key:
                a[k, j + 1] = a[k, j]
                j -= 1
            a[k, j + 1] = key
    return a


def rows_inserted(a: Any, p: Any) -> Any:
    """Whole rows by their first element, from the last to the first."""
    for i in range(p.size - 2, -1, -1):
        key, j = a[i].copy(), i + 1
        while j < p.size and a[j, 0] < key[0]:
            a[j - 1] = a[j]
            j += 1
        a[j - 1] = key
    return a


def chosen(a: Any, p: Any) -> Any:
    """Columns and elements before branches that store."""
    for k in range(1, p.size):
        old, column = a[k, k], a[:, k].copy()
        if p[k] > k:
            a[k - 1, k] = old + 1.0
            a[k, k] = 3.0
        else:
            a[:, k] = 4.0
        a[k - 1, k] += old + column[p[k]]
        a[:, k - 1] = column
    return a


@pytest.mark.parametrize("function", [rows, shuffled, pivoted, inserted, rows_inserted, chosen])
def test_elements_change_places(function: Callable[..., Any]) -> None:
    rng = np.random.default_rng(2)
    a, p = rng.random((40, 40)), rng.integers(0, 40, 40)
    compiled = weft.compile(function)
    np.testing.assert_array_equal(compiled(a.copy(), p), function(a.copy(), p))
    plan = compiled.lower(a, p).stages.plan
    types = plan.types()
    copied = [step for step in all_steps(plan.steps) if isinstance(step, Copy)
              and types[step.source.buffer].shape == a.shape]
    assert len(copied) == 1  # of the argument
