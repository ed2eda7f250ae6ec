"""``errors/control.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from ..programs import X
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("x.astype(np.float32)")
def carry_changes_its_dtype() -> Any:
    @weft.compile
    def rnn(state: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            x = (state["h"] + x).astype(np.float64)
            return {"h": x.astype(np.float32)}, None

        return weft.scan(step, state, xs)[0]["h"]

    return rnn({"h": X[0]}, X), np.full(4, 4.0)


@fixed("stack rows as a second result of scan")
def carry_changes_its_shape() -> Any:
    collect = weft.compile(lambda xs: weft.scan(lambda count, x: (count + 1, x), 0, xs))
    return collect(X), (3, ONES)


@fixed("return a carry of the nest of the first one")
def carry_becomes_another_nest() -> Any:
    rnn = weft.compile(lambda h, xs: weft.scan(lambda h, x: (h + x, h), h, xs))
    return rnn(X[0], X), (np.full(4, 4.0), np.outer([1.0, 2, 3], np.ones(4)))


@fixed("return the same shape and dtype from both")
def branches_of_different_shapes() -> Any:
    clip = weft.compile(lambda x, w: weft.cond(np.sum(x) > 3, lambda: x * 2, lambda: x @ w))
    return clip(X, np.ones((4, 4), np.float32)), 2 * ONES


@fixed("x != 0")
def condition_is_a_number() -> Any:
    count = weft.compile(lambda x: weft.while_loop(lambda x: x != 0, lambda x: x - 1, x))
    return count(np.int64(3)), 0


@fixed("weft.while_loop(lambda s: s < 9, lambda s: s * x, x, max_iterations=1000)")
def gradient_of_a_loop_without_bound() -> Any:
    def loss(x: Any) -> Any:
        return weft.while_loop(lambda s: s < 9, lambda s: s * x, x, max_iterations=1000)

    return weft.grad(loss)(2.0), 32.0  # of x**4


@fixed("weft.fori_loop(0, int(x), lambda i, s: s * x, x, max_iterations=1000)")
def gradient_of_counted_rounds_without_bound() -> Any:
    def loss(x: Any) -> Any:
        return weft.fori_loop(0, int(x), lambda i, s: s * x, x, max_iterations=1000)

    return weft.grad(loss)(2.0), 12.0  # of x**3


@fixed("weft.while_loop(lambda s: s < 9, body, s, max_iterations=1000)")
def gradient_of_pythons_while() -> Any:
    @weft.compile
    def loss(x: Any) -> Any:
        def body(s: Any) -> Any:
            return s * x

        s = x
        return weft.while_loop(lambda s: s < 9, body, s, max_iterations=1000)

    return weft.grad(loss)(2.0), 32.0


@fixed("pass arguments for which this holds")
def more_rounds_than_said() -> Any:
    @weft.compile
    def power(x: Any, n: Any) -> Any:
        return weft.fori_loop(0, n, lambda i, s: s * x, x, max_iterations=3)

    return power(2.0, 3), 16.0


@fixed("x.copy()")
def outer_array_changed_in_a_body() -> Any:
    @weft.compile
    def fill(xs: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            x, total = state
            rows = x.copy()
            rows[i] = total
            return rows, total + 1

        return weft.fori_loop(0, 3, step, (np.zeros_like(xs), 0.0))[0]

    return fill(X), np.outer([0.0, 1, 2], np.ones(4))


@fixed("give arrays with equal first axes")
def rows_that_differ_in_number() -> Any:
    @weft.compile
    def total(xs: Any, ys: Any) -> Any:
        return weft.scan(lambda t, r: (t + r["x"], r["y"]), xs[0], {"x": xs, "y": ys})

    return total(X, 2 * X), (np.full(4, 4.0), 2 * ONES)
