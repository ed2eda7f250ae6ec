"""Functions that copy an array unless its memory has an order: C, F, or of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(16.0).reshape(4, 4) + 1
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "C": lambda y: np.ascontiguousarray(y), "C of turned": lambda y: np.ascontiguousarray(y.T),
    "C of columns": lambda y: np.ascontiguousarray(y[:, :2]),
    "C of rows": lambda y: np.ascontiguousarray(y[1:]),
    "F": lambda y: np.asfortranarray(y), "F of a row": lambda y: np.asfortranarray(y[0]),
    "require C": lambda y: np.require(y, requirements="C"),
    "require F": lambda y: np.require(y, requirements=["F"]),
    "require own": lambda y: np.require(y[1:], requirements="O"),
    "asarray F": lambda y: np.asarray(y, order="F"),
    "asarray C": lambda y: np.asarray(y.T, order="C"),
    "asarray": lambda y: np.asarray(y.T), "other dtype": lambda y: np.asarray(y, np.float32, "C"),
    "trimmed": lambda y: np.trim_zeros(y[0]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_writes_reach_what_is_no_copy(name: str) -> None:
    def to_base(x: Any) -> Any:
        y = x.copy()
        z = FUNCTIONS[name](y)
        y *= 2
        return y, z

    def to_other(x: Any) -> Any:
        y = x.copy()
        z = FUNCTIONS[name](y)
        z += 1
        return y, z

    for function in (to_base, to_other):
        for got, want in zip(weft.compile(function)(X), function(X), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ["C", "F"])
def test_of_an_argument_it_is_not_known(order: str) -> None:
    def written(x: Any) -> Any:
        z = np.asarray(x, order=order)
        z += 1
        return z

    def both(x: Any) -> Any:
        z = np.asarray(x, order=order)
        z += 1
        return z, x

    given = X.copy()
    want = written(X.copy(order="K" if order == "F" else "F"))
    np.testing.assert_array_equal(weft.compile(inout="error")(written)(given), want)
    np.testing.assert_array_equal(given, X)
    with pytest.raises(weft.Error, match="W203: x:0 was changed in place through another name"):
        weft.compile(inout="error")(both)(X)
    with pytest.raises(weft.Error, match=r"W203: .* or on how an array lies in memory"):
        weft.compile(both)(X)


def test_of_a_part_of_a_part_it_is_not_known() -> None:
    @weft.compile
    def both(x: Any) -> Any:
        y = x.copy()
        z = np.ascontiguousarray(y[0, ::2])
        z += 1
        return y

    with pytest.raises(weft.Error, match=r"W203: .* or on how an array lies in memory"):
        both(X)


@pytest.mark.parametrize("order", ["A", "K"])
def test_elements_as_memory_has_them(order: str) -> None:
    def read(x: Any) -> Any:
        y = x.copy()
        z = y.reshape(2, 2, 4).transpose(1, 2, 0)
        return [np.ravel(each, order) for each in (
            y, y.T, y.T.T, y[1:, ::2], z, z.T, z.transpose(1, 0, 2), x[0], x[:1], y[:, 0] + 1)], (
            y.T.flatten(order), y.T.reshape(2, 8, order="A"), np.reshape(y, (2, 8), order="A"))

    found = weft.tree.leaves(weft.compile(read)(X))
    for one, other in zip(found, weft.tree.leaves(read(X)), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(TypeError, match="W113: the order of its elements in memory is not known"):
        weft.compile(lambda x: x.T.ravel(order))(X)


@pytest.mark.parametrize("view", [
    lambda b: np.asarray(b), lambda b: np.asanyarray(b), lambda b: np.ascontiguousarray(b),
    lambda b: np.asfortranarray(b), lambda b: np.require(b), lambda b: np.array(b),
    lambda b: np.asarray(b, float), lambda b: np.asarray(b, int), lambda b: np.asarray(b[:2]),
    lambda b: np.array(b, copy=None), lambda b: np.asarray(np.asarray(b))])
def test_of_an_array_that_is_plain_until_a_traced_value_comes(view: Callable[[Any], Any]) -> None:
    def to_the_array(x: Any) -> Any:
        b = np.zeros(3)
        w = view(b)
        b[0] = x[0, 0]
        w[1] = 7
        return b, w

    def to_the_other(x: Any) -> Any:
        b = np.zeros(3)
        w = view(b)
        w[1] = x[0, 1]
        b[0] = 3
        return b, w

    for function in (to_the_array, to_the_other):
        for got, want in zip(weft.compile(function)(X), function(X), strict=True):
            np.testing.assert_array_equal(got, want)
