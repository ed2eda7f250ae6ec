"""Gradients of functions that leave values out, compared with right ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft

Function = Callable[[Any], Any]


def check(
    function: Function, x: Any, wanted: Any, *, forward: bool = True, second: bool = True
) -> None:
    """Both modes, compiled and at once; second derivatives are finite and agree."""
    x, wanted = np.asarray(x, float), np.asarray(wanted, float)
    for found in (weft.grad(function)(x), weft.compile(weft.grad(function))(x)):
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-10)
    if forward:
        for at in np.ndindex(x.shape):
            along = np.zeros(x.shape)
            along[at] = 1
            _, slope = weft.jvp(function, (x,), (along,))
            np.testing.assert_allclose(slope, wanted[at], rtol=1e-7, atol=1e-10)
    if second:
        ones = np.ones(x.shape)
        mixed = weft.jvp(weft.grad(function), (x,), (ones,))[1]
        assert np.isfinite(mixed).all()
        np.testing.assert_allclose(
            weft.grad(lambda x: np.sum(weft.grad(function)(x)))(x), mixed, rtol=1e-7, atol=1e-10)
