"""Wrong programs with control flow; see ``programs``."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft

from .programs import W, X, wrong


@wrong("W111", TypeError)
def carry_changes_its_dtype() -> None:
    @weft.compile
    def rnn(state: Any, xs: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h = np.tanh(state["h"] + x)
            return {"h": h.astype(np.float64)}, h  # here

        return weft.scan(step, state, xs)

    rnn({"h": X[0]}, X)


@wrong("W102", ValueError)
def carry_changes_its_shape() -> None:
    @weft.compile
    def collect(xs: Any) -> Any:
        def step(rows: Any, x: Any) -> Any:
            return np.concatenate([rows, x[None]]), None  # here

        return weft.scan(step, xs[:1], xs)[0]

    collect(X)


@wrong("W102", ValueError)
def carry_becomes_another_nest() -> None:
    @weft.compile
    def rnn(h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:  # here
            return (h + x, h), h

        return weft.scan(step, h, xs)

    rnn(X[0], X)


@wrong("W102", ValueError)
def branches_of_different_shapes() -> None:
    @weft.compile
    def clip(x: Any, w: Any) -> Any:
        def product() -> Any:
            return x @ w  # here

        return weft.cond(np.sum(x) > 3, lambda: x, product)

    clip(X, W)


@wrong("W111", TypeError)
def condition_is_a_number() -> None:
    @weft.compile
    def count(n: Any) -> Any:
        return weft.while_loop(lambda n: n, lambda n: n - 1, n)  # here

    count(np.int64(3))


@wrong("W113", TypeError)
def gradient_of_a_loop_without_bound() -> None:
    def loss(x: Any) -> Any:
        return weft.while_loop(lambda s: s < 9, lambda s: s * x, x)  # here

    weft.grad(loss)(2.0)


@wrong("W113", TypeError)
def gradient_of_counted_rounds_without_bound() -> None:
    def loss(x: Any) -> Any:
        return weft.fori_loop(0, int(x), lambda i, s: s * x, x)  # here

    weft.grad(loss)(2.0)


@wrong("W113", TypeError)
def gradient_of_pythons_while() -> None:
    @weft.compile
    def loss(x: Any) -> Any:
        s = x
        while s < 9:  # here
            s = s * x
        return s

    weft.grad(loss)(2.0)


@wrong("W124", IndexError)
def more_rounds_than_said() -> None:
    @weft.compile
    def power(x: Any, n: Any) -> Any:
        return weft.fori_loop(0, n, lambda i, s: s * x, x, max_iterations=3)  # here

    power(2.0, 4)


@wrong("W203", TypeError)
def outer_array_changed_in_a_body() -> None:
    @weft.compile
    def fill(xs: Any) -> Any:
        rows = np.zeros_like(xs)

        def step(i: Any, total: Any) -> Any:
            rows[i] = total  # here
            return total + 1

        weft.fori_loop(0, 3, step, 0.0)
        return rows

    fill(X)


@wrong("W102", ValueError)
def rows_that_differ_in_number() -> None:
    @weft.compile
    def total(xs: Any, ys: Any) -> Any:
        rows = {"x": xs, "y": ys}
        return weft.scan(lambda t, r: (t + r["x"], r["y"]), xs[0], rows)  # here

    total(X, X[:2])
