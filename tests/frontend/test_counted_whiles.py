"""``while`` loops over Python's numbers that branch in each round: loops of the program once there
have been many rounds, where bodies allow that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import all_nodes

X = np.random.default_rng(5).normal(size=90)
SEEN: list[int] = []


def walk(x: Any) -> Any:
    total, t = 0.0, 0
    while t < len(x):
        if x[t] > 0:
            total += x[t]
        else:
            total = total * 0.5 - x[t] ** 2 + np.sin(total)
        t += 1
    return total, t


def table(x: Any) -> Any:
    n = len(x) // 3
    best = np.zeros((n + 1, n + 1))
    i = 0
    while i < n:
        j = 0
        while j < n:
            if x[i] < x[j + n]:
                best[i + 1][j + 1] = best[i][j] + 1
            else:
                best[i + 1][j + 1] = max(best[i][j + 1], best[i + 1][j])
            j += 1
        i += 1
    return best


def ends_early(x: Any) -> Any:
    t, last = len(x) - 1, 0.0
    while t >= 0:
        if x[t] > 1.8 and x[t - 1] < 0:
            break
        if x[t] > 0:
            t -= 1
            continue
        last = x[t] - np.cos(last) + np.tanh(last)
        t -= 1
    return last, t


LOOPS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (walk, table, ends_early)}


def asks_for_sizes(x: Any) -> Any:
    total, t = 0.0, 0
    while t < len(x):
        if x[t] > 0:
            total += np.sum(np.ones(t) * x[t]) + np.sin(total)
        t += 1
    return total


def needs_the_number_behind(x: Any) -> Any:
    t, total = 0, 0.0
    while t < 40:
        if x[t] > 0:
            total = total + x[t] * np.sin(total) - np.cos(x[t])
        t += 1
    return np.zeros(t) + total


def remembers(x: Any) -> Any:
    total, t = 0.0, 0
    while t < len(x):
        SEEN.append(t)
        if x[t] > 0:
            total = total + x[t]
        t += 1
    return total


def large_powers(x: Any) -> Any:
    total, t = 0.0, 0
    while t < 80:
        if x[t] > 0:
            total += x[t] / 3 ** t
        t += 1
    return total


OTHERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (asks_for_sizes, needs_the_number_behind, remembers, large_powers)}


def size(function: Callable[..., Any], count: int) -> int:
    graph = weft.compile(function).trace(np.resize(X, count)).graph
    return sum(1 for _ in all_nodes(graph))


def agree(found: Any, wanted: Any) -> None:
    for a, b in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_the_program(name: str) -> None:
    for x in (X, -X, np.resize(X, 300)):
        agree(weft.compile(LOOPS[name])(x), LOOPS[name](x))
    assert size(LOOPS[name], 150) == size(LOOPS[name], 900)


@pytest.mark.parametrize("name", OTHERS)
def test_bodies_that_are_traced_round_by_round(name: str) -> None:
    SEEN.clear()
    agree(weft.compile(OTHERS[name])(X), OTHERS[name](X))
    assert set(SEEN) <= set(range(len(X)))


def test_gradients_go_back_through_rounds_as_they_stand() -> None:
    def loss(x: Any) -> Any:
        return walk(x)[0]

    step = 1e-6
    wanted = [(loss(X + step * unit) - loss(X - step * unit)) / (2 * step)
              for unit in np.eye(len(X))]
    for gradient in (weft.compile(weft.grad(loss)), weft.grad(weft.compile(loss))):
        np.testing.assert_allclose(gradient(X), wanted, rtol=1e-6, atol=1e-8)


def test_many_rounds_whose_number_is_known() -> None:
    """They are a loop, of so many rounds: traced one by one they would be compiled for minutes."""
    def total(x: Any) -> Any:
        i, t = 0, 0.0
        while i < x.size:
            t += x[i] * (i + 1)
            i += 1
        return t, i

    x = np.linspace(-1, 1, 20_000)
    compiled = weft.compile(total)
    assert "seq t0 in 20000 by 1" in compiled.lower(x).stages.text("kernel")
    assert compiled(x) == total(x)


def factorials(x: Any) -> Any:
    i, f = 0, 1
    while i < 300:
        i += 1
        f = f * i
        x[i % 100] = x[i % 100] * 0.5 + 1 / f
    return x


def ratios(x: Any) -> Any:
    a, b = 0, 1
    for i in range(300):
        a, b = b, a + b
        x[i % 100] = x[i % 100] * 0.5 + a / b
    return x


def sizes(x: Any) -> Any:
    i = 0
    while i < 400:
        y = np.ones(i % 3 + 1)
        x[i % 90] = x[(i * 7) % 90] * 0.5 + y.sum()
        i += 1
    return x, y


@pytest.mark.long
@pytest.mark.parametrize("function", [factorials, ratios, sizes])
def test_what_no_loop_of_the_program_has_is_traced_round_by_round(
    function: Callable[[Any], Any]
) -> None:
    """Integers of any length, and arrays of another size in each round."""
    x = np.linspace(1, 2, 100)
    found, wanted = weft.compile(function)(x.copy()), function(x.copy())
    for one, other in zip(weft.tree.leaves(found), weft.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
