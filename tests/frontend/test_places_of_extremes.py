"""argmax and argmin of long rows, which are searched by parts, and of short ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.ops.axes.reduce import LONG, PART

RNG = np.random.default_rng(8)
SIZES = (LONG - 1, LONG, LONG + PART - 1, 100_003)


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
@pytest.mark.parametrize("dtype", ["f4", "u8", "?"])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_of_equal_ones(function: Callable[..., Any], dtype: str, size: int) -> None:
    """Extremes at ends and borders of parts, several of them, and NaNs before and after them."""
    compiled = weft.compile(lambda x: function(x))
    last = size - PART
    borders = (0, 1, PART - 1, PART, last - 1, last, last + 1, size // PART * PART - 1, size - 1)
    plain = RNG.integers(0, 2, size) if dtype == "?" else RNG.integers(10, 50, size)
    for place in borders:
        x = plain.astype(dtype)
        if dtype != "?":
            x[place::PART] = 99 if function is np.argmax else 1
        assert compiled(x) == function(x)
        if x.dtype.kind == "f":
            x[place + 1::7 * PART] = np.nan
            assert compiled(x) == function(x)


def test_all_equal_all_nan_and_what_is_computed() -> None:
    for x in (np.zeros(LONG + 5), np.full(LONG + 5, np.nan), np.full(LONG, -np.inf)):
        assert weft.compile(np.argmax)(x) == np.argmax(x) == 0
    x = RNG.normal(size=(300, 200))
    for function in (lambda x: np.argmax(np.sin(x) * 2), lambda x: np.argmin(x, keepdims=True),
                     lambda x: np.unravel_index(np.argmax(x), x.shape)):
        np.testing.assert_array_equal(weft.compile(function, verify=True)(x), function(x))
    np.testing.assert_array_equal(weft.vmap(np.argmax)(np.tile(x.ravel(), (2, 1))),
                                  [np.argmax(x)] * 2)
    rows = RNG.normal(size=(2, LONG))
    np.testing.assert_array_equal(weft.compile(lambda x: np.argmax(x, 1))(rows), np.argmax(rows, 1))
