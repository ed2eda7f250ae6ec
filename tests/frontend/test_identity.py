"""What Python answers alone: ``x is True``, ``type(x)``, and where an iterator is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

import weft

X = np.arange(6.0)


def matched(train: bool, x: Any) -> Any:
    match train:
        case True:
            return x * 2
        case _:
            return x * 3


def compared(train: bool, x: Any) -> Any:
    if train is not True:
        return x * 3
    return x * 2 if (x[0] > -9) is not True else x  # a bool of NumPy is not Python's


def within(train: bool, x: Any) -> Any:
    def scale() -> Any:
        return 2 if train is True else 3

    return x * scale()


@pytest.mark.parametrize("function", [matched, compared, within])
@pytest.mark.parametrize("train", [True, False, np.True_, 1])
def test_truths(function: Callable[..., Any], train: Any) -> None:
    np.testing.assert_array_equal(weft.compile(function)(train, X), function(train, X))


def kinds(n: Any, x: Any) -> Any:
    if type(n) is int:
        return x * n
    if type(n) == float:  # noqa: E721  # as people write it
        return x + n
    return x - n if type(x) in (np.ndarray,) and type(n) is np.float32 else x


@pytest.mark.parametrize("n", [3, 0.5, np.float32(2), np.float64(2), True, np.ones(6)])
def test_classes(n: Any) -> None:
    np.testing.assert_array_equal(weft.compile(kinds)(n, X), kinds(n, X))


def test_an_object_may_be_of_any_class() -> None:
    class Scale:
        def __init__(self, by: float) -> None:
            self.by = by

        def scaled(self, x: Any) -> Any:
            return type(self)(self.by * 2).by * x if type(self) is Scale else x

    np.testing.assert_array_equal(weft.compile(Scale(2.0).scaled)(X), X * 4)


def generated() -> Iterator[float]:
    k = 0.0
    while True:
        k += 1
        yield k


@pytest.mark.parametrize("made", [
    lambda: iter([1.0, 2.0, 3.0]), lambda: iter(range(5)), lambda: map(abs, [1.0, 2.0, 3.0]),
    lambda: zip([1.0, 2.0], [3.0, 4.0], strict=True), lambda: count(1), generated,
    lambda: reversed([1.0, 2.0, 3.0]), lambda: enumerate([1.0, 2.0])])
def test_what_takes_from_an_iterator_on_one_way_is_refused(made: Callable[[], Any]) -> None:
    def taking(x: Any) -> Any:
        items, total = made(), x[0]
        if x[1] > 0:
            total = total + np.sum(next(items))
        return total + np.sum(next(items))

    with pytest.raises(weft.Error, match="W203: 'items' leads to"):
        weft.compile(taking)(X)


def test_iterators_that_ways_leave_alone() -> None:
    def total(x: Any) -> Any:
        found = 0.0
        for a, b in zip(x, iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), strict=True):
            if a > 2:
                found += a * b
        return found

    assert weft.compile(total)(X) == total(X)


def test_numbers_are_cut_off() -> None:
    def cut(x: float) -> float:
        return math.trunc(x) + 0.5

    for x in (2.7, -2.7):
        assert weft.compile(cut)(x) == cut(x)


def test_a_flag_beside_one_that_is_compared_decides_shapes() -> None:
    def program(x: Any, train: bool, mode: Any) -> Any:
        if type(mode) is not bool:
            raise TypeError("a bool")
        if mode is True:
            x = x * 2
        return x[:2] if train else x

    for train in (True, False):
        for mode in (True, False):
            np.testing.assert_array_equal(
                weft.compile(program)(X, train, mode), program(X, train, mode))
    with pytest.raises(TypeError, match="a bool"):
        weft.compile(program)(X, True, 3)


def test_functions_of_weft_that_lead_to_themselves() -> None:
    def program(x: Any, first: bool) -> Any:
        y = np.where(x < 3, x.dtype.type(2), x)
        if first is True:
            return weft.special.xlogy(y, y)
        return weft.special.erf(y) if x[0] > 0 else y

    compiled = weft.compile(program)
    np.testing.assert_allclose(compiled(X, True), weft.special.xlogy(
        np.where(X < 3, 2.0, X), np.where(X < 3, 2.0, X)))
    np.testing.assert_array_equal(compiled(X, False), np.where(X < 3, 2.0, X))
