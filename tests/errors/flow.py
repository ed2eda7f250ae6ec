"""Wrong programs with Python's own control flow, with loops and gradients; see ``programs``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import weft

from .programs import X, wrong


@wrong("W125", AssertionError)
def an_assertion_that_fails() -> None:
    @weft.compile
    def root(x: Any) -> Any:
        assert x >= 0, "there is no real root"  # here
        return np.sqrt(x)

    root(4.0)
    root(-4.0)


@wrong("W125", AssertionError)
def an_assertion_that_fails_in_a_round() -> None:
    @weft.compile
    def product(xs: Any) -> Any:
        def step(total: Any, x: Any) -> Any:
            assert np.all(x > 0)  # here
            return total * x, None

        return weft.scan(step, xs[0], xs)[0]

    product(X)
    product(-X)


@wrong("W113", TypeError)
def an_assertion_beside_no_element() -> None:
    @weft.compile
    def check(x: Any) -> Any:
        assert x.sum() > 0  # here
        return x[:0]

    check(X)


@wrong("W111", TypeError)
def other_dtypes_on_two_ways() -> None:
    @weft.compile
    def half(x: Any) -> Any:
        if x.sum() > 0:  # noqa: SIM108
            y = x
        else:
            y = x.astype(np.float64)  # here
        return y

    half(X)


@wrong("W102", ValueError)
def the_truth_of_many_elements_in_a_ternary() -> None:
    @weft.compile
    def absolute(x: Any) -> Any:
        return x if x > 0 else -x  # here

    absolute(X)


@wrong("W201", TypeError)
def a_condition_in_a_generator() -> None:
    def pieces(x: Any) -> Iterator[Any]:
        if x > 0:  # here
            yield x
        yield -x

    weft.compile(lambda x: sum(pieces(x)))(np.float64(2))


@wrong("W201", TypeError)
def a_loop_in_a_generator() -> None:
    def halves(x: Any) -> Iterator[Any]:
        while x > 1:  # here
            x = x / 2
            yield x

    weft.compile(lambda x: sum(halves(x)))(np.float64(9))


@wrong("W112", TypeError)
def a_bound_of_rounds_below_zero() -> None:
    weft.while_loop(lambda x: x < 9, lambda x: x * 2, 1.0, max_iterations=-1)  # here


@wrong("W112", TypeError)
def a_bound_that_is_a_float() -> None:
    @weft.compile
    def power(x: Any, n: Any) -> Any:
        return weft.fori_loop(0, n, lambda i, s: s * x, x)  # here

    power(2.0, 3.0)


@wrong("W102", ValueError)
def a_round_that_gives_no_pair() -> None:
    def step(total: Any, x: Any) -> Any:  # here
        return total + x

    weft.scan(step, X[0], X)


@wrong("W102", ValueError)
def rounds_without_number() -> None:
    weft.scan(lambda total, _: (total * 2, total), 1.0)  # here


@wrong("W102", ValueError)
def rows_of_a_number() -> None:
    weft.scan(lambda total, x: (total * x, total), 1.0, 2.0)  # here


@wrong("W102", ValueError)
def branches_of_different_nests() -> None:
    weft.cond(X.sum() > 0, lambda x: (x, x), lambda x: x, X)  # here


@wrong("W111", TypeError)
def gradient_of_integers() -> None:
    weft.grad(lambda n: np.sum(n * n))(np.arange(3))  # here


@wrong("W114", TypeError)
def gradient_of_an_argument_that_is_not_there() -> None:
    weft.grad(lambda x: np.sum(x * x), argnums=1)(X)  # here


@wrong("W114", TypeError)
def gradient_with_nothing_beside_it() -> None:
    weft.grad(lambda x: np.sum(x * x), has_aux=True)(X)  # here


@wrong("W201", TypeError)
def rows_appended_in_a_loop() -> None:
    @weft.compile
    def history(x: Any, n: Any) -> Any:
        rows = []
        for i in range(n):  # here
            rows.append(x * i)
            print(i)
        return rows[-1]

    history(X, np.array(3))


@wrong("W102", ValueError)
def items_appended_to_a_list_of_two_names() -> None:
    @weft.compile
    def losses(x: Any) -> Any:
        found = kept = []
        for _ in range(5):
            x = x * 0.5
            if x.sum() < 1:  # here
                found.append(x.sum())
        return kept

    losses(X)


@wrong("W102", ValueError)
def functions_on_two_ways() -> None:
    @weft.compile
    def activated(x: Any) -> Any:
        f = np.sin
        if x.sum() > 0:  # here
            f = np.tanh
        return f(x)

    activated(X)


@wrong("W102", ValueError)
def an_array_that_each_round_makes_longer() -> None:
    @weft.compile
    def rows(x: Any, n: Any) -> Any:
        found = x[:0]
        for i in range(n):
            found = np.vstack([found, x * i])  # here
        return found

    rows(X, np.array(3))
