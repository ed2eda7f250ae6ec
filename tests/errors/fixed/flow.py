"""``errors/flow.py`` with the fixes applied; see ``fixing``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import weft

from ..programs import X
from .fixing import fixed

ONES = np.ones((3, 4), np.float32)


@fixed("pass arguments for which this holds")
def an_assertion_that_fails() -> Any:
    @weft.compile
    def root(x: Any) -> Any:
        assert x >= 0, "there is no real root"
        return np.sqrt(x)

    return root(4.0), 2.0


@fixed("pass arguments for which this holds")
def an_assertion_that_fails_in_a_round() -> Any:
    @weft.compile
    def product(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            assert np.all(x > 0)
            return total * x, None

        return weft.scan(step, xs[0], xs)[0]

    return product(2 * X), np.full(4, 16.0)


@fixed("return a value")
def an_assertion_beside_no_element() -> Any:
    @weft.compile
    def check(x: Any) -> Any:
        assert x.sum() > 0
        return x[:1]

    return check(X), ONES[:1]


@fixed("y = x.astype(np.float64).astype(np.float32)")
def other_dtypes_on_two_ways() -> Any:
    @weft.compile
    def half(x: Any) -> Any:
        if x.sum() > 0:  # noqa: SIM108
            y = x
        else:
            y = x.astype(np.float64).astype(np.float32)
        return y

    return half(-X), -ONES


@fixed("return np.where(x > 0, x, -x)")
def the_truth_of_many_elements_in_a_ternary() -> Any:
    @weft.compile
    def absolute(x: Any) -> Any:
        return np.where(x > 0, x, -x)

    return absolute(-X), ONES


@fixed("append the items to a list and return it")
def a_condition_in_a_generator() -> Any:
    def pieces(x: Any) -> list[Any]:
        items = []
        if x > 0:
            items.append(x)
        items.append(-x)
        return items

    f = weft.compile(lambda x: sum(pieces(x)))
    return [f(np.float64(2)), f(np.float64(-2))], [0.0, 2.0]


@fixed("x = weft.while_loop(lambda x: x > 1, body, x, max_iterations=1000)")
def a_loop_in_a_generator() -> Any:
    def halves(x: Any) -> Iterator[Any]:
        def body(x: Any) -> Any:
            return x / 2

        x = weft.while_loop(lambda x: x > 1, body, x, max_iterations=1000)
        yield x

    return weft.compile(lambda x: sum(halves(x)))(np.float64(9)), 9 / 16


@fixed("give 0 or more")
def a_bound_of_rounds_below_zero() -> Any:
    return weft.while_loop(lambda x: x < 9, lambda x: x * 2, 1.0, max_iterations=9), 16.0


@fixed("give an integer")
def a_bound_that_is_a_float() -> Any:
    power = weft.compile(lambda x, n: weft.fori_loop(0, n, lambda i, s: s * x, x))
    return power(2.0, 3), 16.0


@fixed("return a pair")
def a_round_that_gives_no_pair() -> Any:
    return weft.scan(lambda total, x: (total + x, None), X[0], X)[0], np.full(4, 4.0)


@fixed("length=")
def rounds_without_number() -> Any:
    return weft.scan(lambda total, _: (total * 2, total), 1.0, length=3), (8.0, [1.0, 2, 4])


@fixed("give arrays")
def rows_of_a_number() -> Any:
    return weft.scan(lambda total, x: (total * x, total), 1.0, np.array([2.0, 3])), (6.0, [1.0, 2])


@fixed("return the same nest from both")
def branches_of_different_nests() -> Any:
    return weft.cond(X.sum() > 0, lambda x: (x, x), lambda x: (x, -x), X), (ONES, ONES)


@fixed("pass floating-point values")
def gradient_of_integers() -> Any:
    return weft.grad(lambda n: np.sum(n * n))(np.arange(3.0)), [0.0, 2, 4]


@fixed("pass differentiated arguments by position")
def gradient_of_an_argument_that_is_not_there() -> Any:
    return weft.grad(lambda x, y: np.sum(x * y * y), argnums=1)(X, X), 2 * ONES


@fixed("return a pair, of which the first one is differentiated")
def gradient_with_nothing_beside_it() -> Any:
    return weft.grad(lambda x: (np.sum(x * x), x[0]), has_aux=True)(X), (2 * ONES, ONES[0])


@fixed("for step in range(n)", "leave it with break")
def rows_appended_in_a_loop() -> Any:
    @weft.compile
    def history(x: Any, last: Any) -> Any:
        n, rows = 5, []
        for step in range(n):
            if step == last:
                break
            rows.append(x * step)
        return rows[-1]

    return history(X, np.array(3)), 2 * ONES


@fixed("out = np.zeros(n)")
def items_appended_to_a_list_of_two_names() -> Any:
    @weft.compile
    def losses(x: Any) -> Any:
        n, count = 5, 0
        out = np.zeros(n)
        for _ in range(5):
            x = x * 0.5
            if x.sum() < 1:
                out[count] = x.sum()
                count += 1
        return out, count

    return losses(X), ([0.75, 0.375, 0, 0, 0], 2)


@fixed("call each of them on its own way")
def functions_on_two_ways() -> Any:
    @weft.compile
    def activated(x: Any) -> Any:
        return np.tanh(x) if x.sum() > 0 else np.sin(x)

    return [activated(X), activated(-X)], [np.tanh(X), np.sin(-X)]


@fixed("out[i] = row")
def an_array_that_each_round_makes_longer() -> Any:
    @weft.compile
    def rows(x: Any, n: Any) -> Any:
        out = np.zeros((5, 4))
        for i in range(n):
            row = x[0] * i
            out[i] = row
        return out

    return rows(X, np.array(3)), np.outer([0.0, 1, 2, 0, 0], np.ones(4))
