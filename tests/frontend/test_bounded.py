"""Arrays in a loop whose size goes by the number of the iteration: the loop is one of the program,
which makes no size at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.graph import all_nodes
from weft.ir.ops.op import Kind

X = np.random.default_rng(1).random(23)


def sums(x: Any) -> Any:
    s = 0.0
    for t in range(len(x)):
        s = s * 0.5 + np.arange(t).sum() * x[t] + np.arange(3, t + 3)[: t // 2].sum()
    return s


def products(x: Any) -> Any:
    s = 0.0
    for t in range(1, len(x)):
        s = s * 0.5 + np.dot(x[:t], np.arange(t)) + (x[: t + 1] * np.arange(t + 1)).sum()
    return s


def one_longer(x: Any) -> Any:
    s = 0.0
    for t in range(1, len(x) + 1):
        w = np.arange(t) / t
        s = s * 0.5 + (x[:t] * w).sum() + (w * x[:t]).max()
    return s


def backwards(x: Any) -> Any:
    s, n = 0.0, len(x)
    for t in range(n):
        s = s * 0.5 + (np.arange(n - t) * x[t:]).sum() + np.arange(t)[::-1].sum()
    return s


def filled(x: Any) -> Any:
    s = 0.0
    for t in range(len(x)):
        both = np.zeros(t) + np.ones(t) * x[t] + np.full(t, 2.5)
        s = s * 0.5 + both.sum() + np.zeros((t, 3)).sum() + len(both) + both.size
    return s


def written(x: Any) -> Any:
    s = 0.0
    for t in range(len(x)):
        f = np.full(t, x[t])
        for k in range(t):
            f[k] = f[k] * 0.5 + x[k]
        g = f
        g += 1.0
        s = s * 0.5 + f.sum()
    return s


def items(x: Any) -> Any:
    s = 0.0
    for t in range(1, len(x)):
        a = np.arange(t)
        if x[t] > 0.5:
            a = a * 2
        s = s * 0.5 + a[-1] + a[0] + a[t // 2]
    return s


def kinds(x: Any) -> Any:
    s = 0.0
    for t in range(2, len(x), 3):
        a = np.arange(t, dtype=np.float32)
        s = s * 0.5 + a.mean() + np.ones(t, np.int8).sum()
    return s


def may_be_empty(x: Any) -> Any:
    s = 0.0
    for t in range(len(x)):
        a = np.arange(t - 3)
        s = s * 0.5 + a.sum() + a.size + np.arange(5, t).sum()
    return s


def in_loops(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s = s * 0.9 + np.arange(j).sum() + (np.arange(j + 1) * x[: j + 1]).sum()
    return s


def numbered(x: Any) -> Any:
    s = 0.0
    for k, v in enumerate(x):
        s = s * 0.5 + (np.arange(k) * v).sum() + np.ones(k + 2).sum()
    return s


def tables_of_rows(x: Any) -> Any:
    s = 0.0
    for t in range(1, len(x)):
        a = np.zeros((t, 2))
        a[t - 1, 1] = x[t]
        a[0] = 1.0
        s = s * 0.5 + a.sum() + a[-1, 1]
    return s


def into_an_array(x: Any) -> Any:
    out = np.zeros(len(x))
    for t in range(len(x)):
        out[t] = np.sum(x[t] ** np.arange(t))
    return out


FUNCTIONS = (sums, products, one_longer, backwards, filled, written, items, kinds, may_be_empty,
             in_loops, numbered, tables_of_rows, into_an_array)


def named(function: Callable[..., Any]) -> Any:
    return weft.compile(function, dynamic={"x": {0: "n"}})


@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_gives_what_numpy_gives(function: Callable[..., Any]) -> None:
    compiled = named(function)
    for size in (23, 2, 0, 11):
        found, wanted = compiled(X[:size]), function(X[:size])
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if function is kinds else 1e-12)
    assert not [node for node in all_nodes(compiled.trace(X).graph)
                if node.op.kind is Kind.EXTENT]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_known_size_gives_the_same(function: Callable[..., Any]) -> None:
    np.testing.assert_allclose(weft.compile(function)(X), function(X), rtol=1e-6)


def test_places_that_there_are_not() -> None:
    def reads(x: Any) -> Any:
        s = 0.0
        for t in range(1, len(x)):
            s = s + np.arange(t)[t]
        return s

    def writes(x: Any) -> Any:
        s = 0.0
        for t in range(1, len(x)):
            a = np.zeros(t)
            a[-t - 1] = x[t]
            s = s + a.sum()
        return s

    for function in (reads, writes):
        with pytest.raises(IndexError):
            function(X)
        with pytest.raises(IndexError):
            named(function)(X)


def test_what_is_not_bounded_has_a_size() -> None:
    def doubles(x: Any) -> Any:
        t, s = 1, 0.0
        while t < 50:
            s = s + np.arange(t).sum() * x[0]
            t = t * 2 + (x[0] > 2)
        return s

    def negative(x: Any) -> Any:
        s = 0.0
        for t in range(len(x)):
            s = s + np.zeros(t - 3).sum()
        return s

    np.testing.assert_allclose(weft.compile(doubles)(X), doubles(X))
    with pytest.raises(ValueError, match="negative"):
        named(negative)(X)


def test_gradients_and_batches() -> None:
    def loss(x: Any) -> Any:
        s = 0.0
        for t in range(1, len(x)):
            if x[t] > 0.5:
                s = s * 0.5 + np.dot(x[:t] ** 2, np.arange(t)) * x[t]
            else:
                s = s - np.sum(np.ones(t) * x[:t])
        return s

    x = np.random.default_rng(2).random(60)
    compiled = weft.compile(weft.grad(loss))
    assert sum(1 for _ in all_nodes(compiled.trace(x).graph)) < 400
    step = 1e-6
    wanted = [(loss(x + step * unit) - loss(x - step * unit)) / (2 * step) for unit in np.eye(60)]
    np.testing.assert_allclose(compiled(x), wanted, rtol=1e-6, atol=1e-6)
    points = np.stack([x, x[::-1], x * 0.7])
    np.testing.assert_allclose(weft.compile(weft.vmap(loss))(points), [*map(loss, points)])
