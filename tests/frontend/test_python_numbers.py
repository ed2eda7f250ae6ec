"""What Python asks of numbers, and its functions of them: traced numbers answer as NumPy's do."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft

X = np.array([2.25, 1.5, -0.5, 1.5])
KINDS: tuple[Any, ...] = (
    float, int, bool, complex, np.floating, np.integer, np.generic, np.ndarray, numbers.Number,
    numbers.Real, numbers.Integral, np.float64, np.float32, np.bool_, list, (int, float),
    (list, tuple, np.ndarray), str)


@pytest.mark.parametrize("x", [X, X.astype(np.float32), np.arange(4), X > 1, X + 1j])
@pytest.mark.parametrize("number", [2, 2.5, True, 1 + 2j])
def test_classes(x: Any, number: Any) -> None:
    def told(x: Any, number: Any) -> Any:
        things = (x, number, x[0], x[:1], x.sum(), x[..., 0], np.array(number), np.abs(number),
                  number * 2, x[0] + number, len(x), np.asarray(x[0]), x.reshape(2, 2)[0])
        return [(*(isinstance(thing, kind) for kind in KINDS), np.isscalar(thing),
                 hasattr(thing, "__len__")) for thing in things]

    assert weft.compile(told)(x, number) == told(x, number)


def distance(x: Any) -> Any:
    return math.dist(x, x[::-1]), math.dist([x[0], 1.0], [2.0, x[1]])


def rounded(x: Any) -> Any:
    return round(x[0]), round(x[1]), round(x[0], 1), round(float(x[2])), round(x.sum(), 2)


def parts(x: Any) -> Any:
    return complex(x[0], x[1]), complex(x[2]), complex(0, x[0]), complex(x[0] + 1j, 2)


def least(x: Any) -> Any:
    return min(x, key=lambda v: abs(v - 1)), max(x, key=lambda v: -v * v), min(
        3.0, x[0], -1.0, key=lambda v: v * v)


def places(x: Any) -> Any:
    return (max(range(len(x)), key=lambda i: x[i]), min(range(1, len(x)), key=lambda i: x[i]),
            max(range(len(x)), key=x.__getitem__), max(range(3), key=lambda i: -i))


def pairs(x: Any) -> Any:
    return min(zip(x, x[::-1], strict=True), key=lambda pair: pair[0] - pair[1]), max(
        enumerate(x), key=lambda pair: pair[1])


def in_order(x: Any) -> Any:
    return (sorted(x, key=lambda v: -v), sorted(range(len(x)), key=lambda i: x[i]),
            sorted(range(len(x)), key=lambda i: x[i], reverse=True), sorted(x, reverse=True),
            sorted(range(3), key=lambda i: -i))


@pytest.mark.parametrize("function", [distance, rounded, parts, least, places, pairs, in_order])
@pytest.mark.parametrize("x", [X, -X, np.array([np.nan, 2.0, 1.0, 3.0]),
                               np.array([1.0, np.nan, 0.5, np.inf])])
def test_functions(function: Callable[[Any], Any], x: Any) -> None:
    if np.isnan(x).any() and function in (rounded, in_order):
        pytest.skip("Python rounds no NaN, and its order with them is none")
    found, wanted = (weft.tree.leaves(each) for each in (weft.compile(function)(x), function(x)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def test_numbers_have_no_length() -> None:
    for function in (lambda x, n: len(n), lambda x, n: len(x[0])):
        with pytest.raises(TypeError, match="len"):
            weft.compile(function)(X, 2.0)
    for x in (X, X[:1], np.array(2.5), np.complex64(1), np.True_, 1j):
        for function in (lambda x: round(x), lambda x: round(x, 1)):
            with pytest.raises(TypeError) as wanted:
                function(x)
            with pytest.raises(TypeError, match=f"^{wanted.value}$"):
                weft.compile(function)(x)
