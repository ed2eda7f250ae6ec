"""Stores that end a branch are stores behind it, with the same bits as before."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import Graph, all_nodes, control_of
from weft.ir.ops.control.region import Looping
from weft.passes.control.stores import hoist_stores

X = np.array([-0.0, np.nan, 3.0, -1.0, 2.0, 0.5, -7.0, 4.0, 1.0, 9.0])
M = np.arange(60.0).reshape(6, 10) - 20


def subsequence(a: Any, b: Any) -> Any:
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                table[i, j] = table[i - 1, j - 1] + 1
            else:
                table[i, j] = max(table[i - 1, j], table[i, j - 1])
    return table


def bubbles(x: Any) -> Any:
    x = x.copy()
    for i in range(len(x)):
        for j in range(len(x) - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


def guarded(x: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(len(x)):
        if i + 1 < len(x) and x[i] > 0:
            y[i + 1] = x[i]
    return y


def three_ways(x: Any) -> Any:
    y = x.copy()
    for i in range(len(x)):
        if x[i] > 2:
            y[i] = 1
        elif x[i] < 0:
            y[-1 - i] = x[i]
            y[0] = y[i] + 1
        else:
            y[i] = 0
    return y


def unlike(x: Any, at: Any) -> Any:
    y, z = x * 2, x + 1
    if at > 3:
        y[at] = 5
        z[2] = 7
    else:
        y[1:3] = x[:2]
        z[at] = y[1]
    return y, z


def one_after_the_other(x: Any, at: Any) -> Any:
    y = x * 2
    if at > 3:
        y[0] = 5
        y[at] = y[0] + y[at - 1]
        y[0] = 6
    return y


def in_the_other_way(x: Any, at: Any) -> Any:
    y = x * 2
    if at > 3:
        pass
    else:
        y[at] = 4
        y[at + 1] = 5
    return y


def rows(m: Any, at: Any) -> Any:
    y = m.copy()
    for i in range(1, len(m)):
        if m[i, at] > 0:
            y[i] = y[i - 1] + m[i]
            y[:, 0] = i
    return y


def until(x: Any) -> Any:
    y, at = x.copy(), 0
    while at < 8 and y[at] != 2.0:
        if y[at] > 0:
            y[at + 1] = y[at] * 2
        at = at + 1
    return y, at


def complex_numbers(x: Any, at: Any) -> Any:
    y = x * (1 + 2j)
    if at > 3:
        y[at] = 3 - 4j
    return y


def flags(x: Any) -> Any:
    prime = np.ones(40, bool)
    for i in range(2, 7):
        if prime[i] and x[i] != 0:
            for k in range(i * i, 40, i):
                prime[k] = False
    return prime


def longest_rise(x: Any) -> Any:
    best = np.ones(len(x), int)
    for i in range(1, len(x)):
        for j in range(i):
            if x[j] < x[i] and best[j] + 1 > best[i]:
                best[i] = best[j] + 1
    return best


def chain(p: Any) -> Any:
    n = len(p) - 1
    cost = np.zeros((n, n))
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i, j] = np.inf
            for k in range(i, j):
                q = cost[i, k] + cost[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < cost[i, j]:
                    cost[i, j] = q
    return cost


PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
    "subsequence": (subsequence, [(np.arange(9) % 3, np.arange(12) % 4),
                                  (np.arange(20) % 3, np.arange(30) % 4)]),
    "bubbles": (bubbles, [(X[2:],), (np.random.default_rng(0).normal(size=40),)]),
    "guarded": (guarded, [(X,), (np.tile(X, 5),)]),
    "three ways": (three_ways, [(X,), (np.tile(X, 3),)]),
    "unlike": (unlike, [(X, 2), (X, 5)]),
    "one after the other": (one_after_the_other, [(X, 2), (X, 5)]),
    "in the other way": (in_the_other_way, [(X, 2), (X, 5)]),
    "rows": (rows, [(M, 0), (M, 7), (np.tile(M, (4, 1)), 3)]),
    "until": (until, [(X,), (-X,)]),
    "complex": (complex_numbers, [(X, 2), (X, 5)]),
    "flags": (flags, [(X,)]),
    "longest rise": (longest_rise, [(X,), (np.sin(np.arange(70.0)),)]),
    "chain": (chain, [(X[2:],), (np.arange(40.0) % 7,)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    function, calls = PROGRAMS[name]
    compiled = weft.compile(function, on_recompile="silent")
    for args in calls:
        found, wanted = compiled(*args), function(*map(np.copy, args))
        for one, other in zip(np.atleast_1d(found) if isinstance(found, np.ndarray) else found,
                              wanted, strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(np.signbit(np.real(one)), np.signbit(np.real(other)))


def _branches(graph: Graph) -> list[Any]:
    return [node for node in all_nodes(graph) if "then" in node.attrs]


def stored(x: Any, c: Any, at: Any) -> Any:
    y = x.copy()
    for k in range(int(at)):
        if c > k:
            y[at] += c
    return y


def of_both_ways(x: Any, c: Any, at: Any) -> Any:
    y = x.copy()
    if c > 0:
        y[at] = c
    else:
        y[at - 1] = c
    return y


def of_one_way(x: Any, c: Any, at: Any) -> Any:
    """Which another round has elsewhere."""
    y = x.copy()
    for k in range(int(at)):
        if c > k:
            y[k] += c
    return y


def summed_before(x: Any, c: Any, at: Any) -> Any:
    y = x.copy()
    if c > 0:
        y[at] = c
        c = y.sum()
    return y, c


def copied(x: Any, c: Any, at: Any) -> Any:
    y = x.copy()
    if c > 0:
        y = x * 2
        y[at] = c
    return y


@pytest.mark.parametrize(("function", "moves"), (
    (stored, True), (of_both_ways, True), (of_one_way, False), (summed_before, False),
    (copied, False)))
def test_what_leaves_a_branch(function: Callable[..., Any], moves: bool) -> None:
    graph = weft.compile(function).trace(np.zeros(500), 1.0, np.int64(3)).graph
    (before,), (after,) = _branches(graph), _branches(hoist_stores(graph))
    assert any(value.type.shape for value in before.results)
    assert any(value.type.shape for value in after.results) is not moves


@pytest.mark.parametrize("function", [longest_rise, chain])
@pytest.mark.parametrize("dynamic", [None, {0: "n"}])
def test_what_a_loop_stores_where_rounds_tell_is_carried(
    function: Callable[..., Any], dynamic: dict[int, str] | None
) -> None:
    name = next(iter(inspect.signature(function).parameters))
    compiled = weft.compile(function, dynamic=dynamic and {name: dynamic})
    x = np.sin(np.arange(70.0))
    graph = compiled.lower(x).stages.after("ranges").graph
    inner = [loop for node in all_nodes(graph) if isinstance(loop := control_of(node), Looping)
             and all(control_of(each) is None for each in loop.body.nodes)]
    assert inner
    assert all(node.op.name != "scatter" for loop in inner for node in loop.body.nodes)
    np.testing.assert_array_equal(compiled(x), function(x))


def test_large_rows_stay_in_the_branch() -> None:
    def replaced(m: Any, c: Any, at: Any) -> Any:
        y = m * 2
        if c > 0:
            y[at] = c
        return y

    graph = weft.compile(replaced).trace(np.zeros((3, 100)), 1.0, 1).graph
    (branch,) = _branches(hoist_stores(graph))
    assert branch.results[0].type.shape == (3, 100)


def test_the_gradient_of_a_conditional_store() -> None:
    def loss(x: Any) -> Any:
        y = x * x
        for i in range(1, 30):
            if x[i] > 0:
                y[i] = y[i - 1] * x[i]
        return y.sum()

    x = np.random.default_rng(1).normal(size=30)
    gradient = weft.compile(weft.grad(loss))(x)
    for at in range(30):
        ends = []
        for h in (1e-6, -1e-6):
            moved = x.copy()
            moved[at] += h
            ends.append(loss(moved))
        assert abs(gradient[at] - (ends[0] - ends[1]) / 2e-6) < 1e-5


def test_unknown_sizes() -> None:
    f = weft.compile(subsequence, dynamic={"a": {0: "n"}, "b": {0: "m"}}, on_recompile="error")
    g = weft.compile(guarded, dynamic={"x": {0: "n"}}, on_recompile="error")
    for n, m in ((20, 30), (1, 1), (0, 4), (7, 0)):
        a, b = np.arange(n) % 3, np.arange(m) % 4
        np.testing.assert_array_equal(f(a, b), subsequence(a, b))
        np.testing.assert_array_equal(g(a * 1.0), guarded(a * 1.0))
