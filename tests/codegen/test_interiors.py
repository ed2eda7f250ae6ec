"""Stencils and other stores of parts of arrays: what is stored is read where it is, and kernels do
not run over borders that stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft


def jacobi(a: Any, b: Any) -> Any:
    for _ in range(60):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1]
                               + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1]
                               + b[:-2, 1:-1])
    return a, b


def rows(a: Any, b: Any) -> Any:
    for _ in range(60):
        a[5:] = a[5:] * 0.5 + b[:-5]
        b[:-3, 4:9] += a[3:, 4:9]
    return a, b


def steps(a: Any, b: Any) -> Any:
    """Every other row and column, of which what lies between stays."""
    for _ in range(60):
        a[1::2, ::3] = a[1::2, ::3] * 0.5 + b[1::2, ::3]
        b[2:-2:2, 1:-1] = a[1:-3:2, 2:] + a[3:-1:2, :-2] * 0.25
    return a, b


def two_parts(a: Any, b: Any) -> Any:
    for _ in range(60):
        a[:10] = a[:10] * 0.5 + 1
        a[-10:] = a[-10:] * 0.25 + b[-10:]
        b[:, 0] = a[:, 1]
        b[:, -1] = a[:, -2]
    return a, b


def read_as_it_was(a: Any, b: Any) -> Any:
    """What was there before the store, and what is there after it, are both read."""
    for _ in range(60):
        inner = a[1:-1, 1:-1] * 0.5 + b[1:-1, 1:-1] * 0.25
        old = a.sum(0)
        a[1:-1, 1:-1] = inner
        b[1:-1] += old * 1e-5 + (inner * inner).sum() * 1e-7
        b[1:-1, 2:] -= 0.1 * inner
    return a, b


def straight(a: Any, b: Any) -> Any:
    a[1:-1] = np.sqrt(np.abs(b[2:] + b[:-2]))
    b[1:-1] = a[1:-1] - 0.5 * (a[2:] + a[:-2])
    return a, b, a[1:-1].sum()


@pytest.mark.parametrize("shape", [(40, 36), (70, 19), (300, 200)])
@pytest.mark.parametrize("function", [
    jacobi, rows, steps, two_parts, read_as_it_was, straight])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_parts_are_stored(
    function: Callable[..., Any], shape: tuple[int, int], dtype: Any
) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random(shape).astype(dtype), rng.random(shape).astype(dtype)
    want = function(a.copy(), b.copy())
    for threads in (1, 2):
        found = weft.compile(function, threads=threads)(a.copy(), b.copy())
        for one, other in zip(want, found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-3 if dtype == np.float32 else 1e-9)


def test_the_border_is_no_part_of_the_loop() -> None:
    a = np.zeros((64, 64))
    plan = weft.compile(jacobi).lower(a, a.copy()).stages.plan
    stencils = [kernel for kernel in plan.kernels.values()
                if [axis.extent for axis in kernel.axes] == [62, 62]]
    assert stencils
    assert all(not kernel.splits for kernel in stencils)


def test_no_bit_depends_on_where_a_kernel_runs() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((90, 90)), rng.random((90, 90))
    want = jacobi(a.copy(), b.copy())
    found = weft.compile(jacobi)(a.copy(), b.copy())
    assert all(one.tobytes() == other.tobytes() for one, other in zip(want, found, strict=True))
