"""Sums of what a mask leaves of a row's beginning go no farther, and have the same bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import weft
from weft.codegen.kernel.domain.bounds import with_bounds
from weft.frontend.engine.building import pipeline
from weft.ir.interp.plan import run_plan
from weft.ir.plans.calls import Call, kernel_calls
from weft.ir.text.printer import print_kernel


def solved(x: Any, m: Any, b: Any) -> Any:
    for i in range(len(x)):
        x[i] = (b[i] - m[i, :i] @ x[:i]) / m[i, i]
    return x


def sums(x: Any, m: Any, b: Any) -> Any:
    found = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(3):
            found[i] += np.sum(m[k, :i + 1] * b[:i + 1]) + m[i, :i].sum()
    return found


def far(x: Any, m: Any, b: Any) -> Any:
    """Ends beyond the row, and before it."""
    found = np.zeros_like(x)
    for i in range(len(x)):
        found[i] = m[0, :2 * i].sum() + m[1, :max(i - 3, 0)].sum()
    return found


def texts(calls: Sequence[Call]) -> list[str]:
    return [print_kernel(call.kernel) for call in kernel_calls(calls)]


def args(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    m = rng.normal(size=(n, n)) + np.eye(n) * 4
    m[rng.random((n, n)) < 0.1] = -0.0
    return np.zeros(n), m, rng.normal(size=n)


@pytest.mark.parametrize("n", [300, 2100])
@pytest.mark.parametrize("function", [solved, sums, far])
def test_the_same_bits(
    function: Callable[..., Any], n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if n > 1000 and function is not solved:
        n = 1100
    given = args(n)
    got = weft.compile(function)(*map(np.copy, given))
    np.testing.assert_allclose(got, function(*map(np.copy, given)), rtol=1e-9, atol=1e-12)
    monkeypatch.setattr(pipeline, "with_bounds", lambda calls: calls)
    np.testing.assert_array_equal(weft.compile(lambda *xs: function(*xs))(
        *map(np.copy, given)).view(np.int64), got.view(np.int64))


def test_the_loop_ends_where_the_mask_does() -> None:
    stages = weft.compile(solved).lower(*args(300)).stages
    text = "\n".join(map(print_kernel, stages.plan.kernels.values()))
    assert "lane i in t0 {" in text and "select" not in text
    small = args(300)
    np.testing.assert_array_equal(
        run_plan(weft.compile(solved).lower(*small).stages.plan, small)[0],
        weft.compile(solved)(*map(np.copy, small)))
    once = with_bounds(stages.after("lower").calls)
    assert texts(once) == texts(with_bounds(once)) != texts(stages.after("lower").calls)
