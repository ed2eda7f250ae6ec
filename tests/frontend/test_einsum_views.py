"""``np.einsum`` of one operand, nothing of which is summed, is a view that may be written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(0)
CASES = {
    "ii->i": (3, 3), "ij->ji": (3, 4), "iij->ij": (3, 3, 4), "iji->ij": (3, 4, 3),
    "iji->ji": (3, 4, 3), "ijij->ij": (2, 3, 2, 3), "ijij->ji": (2, 3, 2, 3),
    "iiij->ij": (3, 3, 3, 2), "...ii->...i": (2, 3, 3), "ii...->...i": (3, 3, 2),
    "ijk->kij": (2, 3, 4), "ii": (3, 3)}


@pytest.mark.parametrize("subscripts", [case for case in CASES if case != "ii"])
def test_writes_reach_the_array_and_the_other_way_round(subscripts: str) -> None:
    def function(a: Any) -> Any:
        a = a.copy()
        view = np.einsum(subscripts, a)
        view[...] = view * 3 + 1
        np.einsum(subscripts, a)[0] += 7
        a[0] = a[0] * 2
        return a, view

    x = RNG.normal(size=CASES[subscripts])
    for got, want in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("subscripts", ["ij->i", "ii", "ij,jk->ik"])
def test_what_is_summed_is_new(subscripts: str) -> None:
    def function(a: Any) -> Any:
        a = a.copy()
        made = np.einsum(subscripts, *[a] * (1 + subscripts.count(",")))
        made += 1
        return a, made

    x = np.arange(9.0).reshape(3, 3)
    for got, want in zip(weft.compile(function)(x), function(x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_in_loops_branches_gradients_and_of_any_size() -> None:
    def function(a: Any) -> Any:
        a = a * 1
        for i in range(2):
            np.einsum("ii->i", a)[i] = a[i, 0]
        if a[0, 1] > 0:
            np.einsum("ii->i", a)[:] = 0
        return a

    x = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(weft.compile(function)(x), function(x))
    np.testing.assert_array_equal(weft.compile(function)(-x), function(-x))

    def written(a: Any) -> Any:
        b = a * 1
        np.einsum("ii->i", b)[:] = 1
        return (b * b).sum()

    np.testing.assert_array_equal(weft.grad(written)(x), 2 * x * (1 - np.eye(3)))
    sized = weft.compile(dynamic={"a": {0: "n", 1: "n"}})(lambda a: (written(a), a.shape[0]))
    assert sized(x) == (written(x), 3) and sized(x[:2, :2]) == (written(x[:2, :2]), 2)


def test_the_diagonal_of_numpy_stays_read_only() -> None:
    def function(a: Any) -> Any:
        a = a.copy()
        np.diagonal(a)[0] = 1
        return a

    with pytest.raises(weft.Error, match=r"W203: the result of np.diagonal is read-only"):
        weft.compile(function)(np.eye(2))
