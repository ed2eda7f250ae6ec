"""Loops over parts of arrays that become shorter or longer from round to round, as in textbooks of
linear algebra: loops of the program, which write in place and copy nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.interp.plan import run_plan
from weft.ir.kernels.access import may_share
from weft.ir.plans.plan import Copy, Loop, Plan, all_steps
from weft.ir.text.parser import parse_kernel


def factors(a: Any) -> Any:
    for k in range(len(a) - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a


def factors_by_rows_and_columns(a: Any) -> Any:
    for k in range(len(a) - 1):
        a[k + 1:, k] = a[k + 1:, k] / a[k, k]
        a[k + 1:, k + 1:] = a[k + 1:, k + 1:] - a[k + 1:, k][:, None] * a[k, k + 1:][None, :]
    return a


def eliminated(a: Any) -> Any:
    for k in range(len(a) - 1):
        for i in range(k + 1, len(a)):
            a[i, k:] -= a[k, k:] * (a[i, k] / a[k, k])
    return a


def from_above(a: Any) -> Any:
    """What is read lies before what is written, and is written in the round before."""
    for k in range(len(a) - 1):
        a[k + 1:] += a[k] / 16
    return a


def from_below(a: Any) -> Any:
    """What is read is written in the same round."""
    for k in range(len(a) - 1):
        a[k + 1:] += a[k + 1] / 16
    return a


def durbin(a: Any) -> Any:
    r = a[0]
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = alpha
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / (beta + 3)
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def covariance(a: Any) -> Any:
    c = np.zeros_like(a)
    a = a - a.mean(0)
    for i in range(len(a)):
        c[i:, i] = c[i, i:] = a[:, i] @ a[:, i:] / (len(a) - 1.0)
    return c


def turned(a: Any) -> Any:
    s = np.zeros(len(a))
    for k in range(1, len(a)):
        s[k] = a[0, :k][::-1] @ a[1, :k] + np.flip(a[2, k:])[0] + np.flipud(a[:, 0][:k])[-1]
    return s


FUNCTIONS = (factors, factors_by_rows_and_columns, eliminated, from_above, from_below, durbin,
             covariance, turned)


def matrix(n: int) -> Any:
    return np.random.default_rng(n).random((n, n)) + n * np.eye(n)


@pytest.mark.parametrize("n", [7, 90])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_as_numpy_has_it(function: Callable[..., Any], n: int) -> None:
    got = weft.compile(function)(matrix(n))
    np.testing.assert_allclose(got, function(matrix(n)), rtol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_rounds_are_one_loop(function: Callable[..., Any]) -> None:
    plan = weft.compile(function).lower(matrix(200)).stages.plan
    assert any(isinstance(step, Loop) for step in plan.steps) and len(plan.kernels) < 30
    np.testing.assert_allclose(run_plan(plan, [matrix(200)])[0], function(matrix(200)), rtol=1e-9)


def copies(plan: Plan) -> int:
    return sum(isinstance(step, Copy) for loop in all_steps(plan.steps) if isinstance(loop, Loop)
               for step in all_steps(loop.body))


@pytest.mark.parametrize("function", [factors, factors_by_rows_and_columns, eliminated, from_above])
def test_nothing_is_copied_in_a_round(function: Callable[..., Any]) -> None:
    plan = weft.compile(function).lower(matrix(200)).stages.plan
    assert copies(plan) == 0
    assert not any(loop.carried for loop in all_steps(plan.steps) if isinstance(loop, Loop))


KERNEL = """
kernel @k(x: f64[9,9], y: mut f64[9,9]) {
  par i in 9 by 1, par j in 9 by 16 {
    %0: i64 = index i
    %1: i64 = index t0 + 1
    %2: bool = ge %0, %1
    %3: f64 = x[i, j]
    %4: f64 = x[t0, j]
    %5: f64 = sub %3, %4
    %6: f64 = select %2, %5, %3
    y[i, j] = %6
  }
}
"""


@pytest.mark.parametrize(("change", "allowed"), [
    (("", ""), True), (("x[t0, j]", "x[t0 + 1, j]"), False), (("x[t0, j]", "x[j, t0]"), False),
    (("ge %0", "lt %0"), False), (("select %2, %5, %3", "select %2, %3, %5"), False),
    (("select %2, %5, %3", "select %2, %5, %4"), False)])
def test_what_stays_may_be_read_anywhere(change: tuple[str, str], allowed: bool) -> None:
    kernel = parse_kernel(KERNEL.replace(*change) if change[0] else KERNEL)
    assert may_share(kernel, "x", "y") == allowed


def test_a_size_that_is_asked_for_is_no_fault_of_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each loop was tried in several ways before the argument became a static one."""
    from weft.frontend.rewriting import retrace

    traces = []
    attempt = retrace.attempt

    def counted(*args: Any, **options: Any) -> Any:
        traces.append(1)
        return attempt(*args, **options)

    monkeypatch.setattr(retrace, "attempt", counted)

    def pooled(x: Any, n: int) -> Any:
        y = np.empty((x.shape[0] // 2, x.shape[1] // 2))
        for i in range(y.shape[0]):
            for j in range(y.shape[1]):
                y[i, j] = np.max(x[2 * i:2 * i + 2, 2 * j:2 * j + 2])
        return np.reshape(y, (n, -1))

    x = np.random.default_rng(0).random((60, 60))
    np.testing.assert_array_equal(weft.compile(pooled)(x, 9), pooled(x, 9))
    assert len(traces) <= 8
