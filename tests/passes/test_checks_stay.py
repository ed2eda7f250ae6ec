"""What may fail: a step fails at every level of optimisation, or at none. What no result needs is
not run; a loop or a branch that is needed runs with all of its checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from texts import without_notes

import weft
from weft.ir.interp.graph import run_graph

TABLE, BAD, X = np.arange(4.0), np.array([0, 1, 9]), np.ones(3)


def of_a_carry(table: Any, places: Any, x: Any) -> Any:
    """Of what a loop carries and nobody reads afterwards."""
    def round_(state: Any, t: Any) -> Any:
        return (state[0] + x[t], table[places[t]]), None

    return weft.scan(round_, (0 * x[0], 0 * table[0]), np.arange(3))[0][0]


def of_pythons_while(table: Any, places: Any, x: Any) -> Any:
    total, _last, k = 0.0, 0.0, 0
    while total < 3:
        total, _last, k = total + x[k], table[places[k]], k + 1
    return total


def of_a_loop_around_a_constant(table: Any, places: Any, x: Any) -> Any:
    """What is read of the loop is what it was before."""
    return weft.fori_loop(0, 3, lambda t, c: (table[places[t]] + 0 * c[0], c[1]), (0.0, x))[1]


def of_a_branch(table: Any, places: Any, x: Any) -> Any:
    return weft.cond(x[0] > 0, lambda x: (x * 2, table[places[2]]), lambda x: (x, table[0]), x)[0]


def of_a_known_branch(table: Any, places: Any, x: Any) -> Any:
    holds = weft.fori_loop(0, 2, lambda t, c: c, 1.0) > 0
    return weft.cond(holds, lambda x: (x * 2, table[places[2]]), lambda x: (x, table[0]), x)[0]


@pytest.mark.parametrize("opt", [0, 1, 2])
@pytest.mark.parametrize("function", [
    of_a_carry, of_pythons_while, of_a_loop_around_a_constant, of_a_branch, of_a_known_branch])
def test_a_check_stays_though_nobody_reads_the_value(
    function: Callable[..., Any], opt: int
) -> None:
    compiled = weft.compile(opt=opt)(function)
    with pytest.raises(IndexError, match="W124"):
        compiled(TABLE, BAD, X)
    np.testing.assert_array_equal(compiled(TABLE, BAD % 4, X), function(TABLE, BAD % 4, X))


def test_results_that_cannot_fail_are_dropped_as_before() -> None:
    def two(x: Any) -> Any:
        return weft.fori_loop(0, 9, lambda t, c: (c[0] * 2, np.sin(c[1])), (x, x))[0]

    assert "sin" not in without_notes(weft.compile(two).lower("f32[100]").as_text("opt"))
    assert "sin" in without_notes(weft.compile(opt=0)(two).lower("f32[100]").as_text("trace"))


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_what_no_result_needs_is_not_run(opt: int) -> None:
    """Whatever it is behind: a sum, its square, an array without elements."""
    def unread(table: Any, places: Any, x: Any) -> Any:
        total = np.sum(table[places])
        return np.max(total * total * x, initial=0)

    compiled = weft.compile(opt=opt, on_recompile="silent")(unread)
    assert compiled(TABLE, BAD, np.ones(0)) == 0  # the maximum of nothing is known
    traced = compiled.trace(TABLE, BAD, np.ones(0))
    assert run_graph(traced.graph, [TABLE, BAD, np.ones(0)])[0] == 0
    with pytest.raises(IndexError, match="W124"):
        compiled(TABLE, BAD, X)


@pytest.mark.parametrize("opt", [0, 1, 2])
def test_percentiles_of_columns_that_are_not_there(opt: int) -> None:
    """Rows are gathered of an array without elements: stores that are never run."""
    found = weft.compile(opt=opt)(lambda x: np.percentile(x, [10, 50], 0))(np.zeros((5, 0)))
    assert found.shape == (2, 0)


def test_a_check_that_fails_on_a_way_not_taken() -> None:
    """Constants are computed while compiling; a check of them fails where it is run."""
    def larger(n: int, c: int) -> int:
        if c > 0:
            a = n * 0 + (2**63 - 1)
            a = a + 1
        else:
            a = n
        return a

    f = weft.compile(larger)
    assert f(3, 0) == 3
    with pytest.raises(OverflowError, match="W131"):
        f(3, 1)


def test_what_fails_around_a_loop_fails_whatever_is_known_in_it() -> None:
    """A number that is known to be positive is asked for all the same: it may not be there."""
    def divided(n: int, m: int, x: Any, c: int) -> Any:
        s, t = 0.0, 0
        for i in range(n):
            if 5 // (m - i) > 3:
                t = t + 1
        for _ in range(c):
            if t >= 0:
                s += 1.0 + s * 0.5
            else:
                s += x[0]
        return s

    def read(n: int, x: Any, c: int) -> Any:
        s, t, i = 0.0, 0, 0
        while i < n:
            t = x[i] & 7
            i += 1
        i = 0
        while i < c:
            if t < 8:
                s += 1.0 + s * 0.5
            i += 1
        return s

    x = np.arange(9)
    f, g = weft.compile(divided), weft.compile(read)
    assert f(5, 7, x, 3) == divided(5, 7, x, 3)
    with pytest.raises(ZeroDivisionError, match="W133"):
        f(15, 7, x, 3)
    assert g(5, x, 3) == read(5, x, 3)
    with pytest.raises(IndexError, match="W124"):
        g(15, x, 3)
